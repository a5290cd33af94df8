"""Columns as bytes for the browser: 32-bit numbers, and UTF-8 texts with offsets as in Arrow."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

#: Maximum time in ms (24 days).
LAST_MS = 2**31 - 1


def times(df: pd.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return start and end in ms (float64, shape (rows,)), and True for rows with valid times."""
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan)
    end = df["end_ms"].to_numpy(np.float64, na_value=np.nan)
    return start, end, (start >= 0) & (end >= start) & (end <= LAST_MS)  # False for NaN


def int32(values: npt.ArrayLike) -> bytes:
    r"""Return whole numbers as the bytes of an Int32Array.

    Example:
        >>> int32([1, 256])
        b'\x01\x00\x00\x00\x00\x01\x00\x00'
    """
    return np.asarray(values).astype("<i4").tobytes()


def float32(values: npt.ArrayLike) -> bytes:
    """Return numbers as the bytes of a Float32Array; missing numbers are NaN."""
    return np.asarray(values, np.float64).astype("<f4").tobytes()


def texts(values: Iterable[object]) -> tuple[bytes, bytes]:
    r"""Return concatenated UTF-8 bytes of texts, and their offsets as the bytes of an Int32Array.

    Nulls become empty texts; characters that UTF-8 cannot encode become "?".

    Example:
        >>> data, offsets = texts(["Hi", None, "é"])
        >>> data, np.frombuffer(offsets, "<i4").tolist()
        (b'Hi\xc3\xa9', [0, 2, 2, 4])
    """
    encoded = [value.encode("utf-8", "replace") if isinstance(value, str) else b"" for value in values]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return b"".join(encoded), int32(np.r_[0, np.cumsum(lengths)])


def bands(table: pd.DataFrame | None, text: str, prefix: str) -> dict[str, bytes]:
    """Return columns of titled spans in time order: `<prefix>_start`, `_end`, `_text` and `_offsets`.

    Args:
        table: Rows with `start_ms` and `end_ms`; None gives no columns.
        text: Column with the titles.
        prefix: Prefix of the column names.
    """
    if table is None:
        return {}
    start, end, known = times(table)
    order = np.flatnonzero(known)[np.argsort(start[known], kind="stable")]
    data, offsets = texts(table[text].iloc[order])
    packed = {"start": int32(start[order]), "end": int32(end[order]), "text": data, "offsets": offsets}
    return {f"{prefix}_{name}": value for name, value in packed.items()}
