"""Columns as bytes for the browser: 32-bit numbers, and UTF-8 texts with their offsets, as in Arrow."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

#: The largest time a column can carry: 24 days in ms.
LAST_MS = 2**31 - 1


def times(df: pd.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Start and end in ms, shape (rows,) float64, and where they are a stretch of time that can be shown."""
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan)
    end = df["end_ms"].to_numpy(np.float64, na_value=np.nan)
    return start, end, (start >= 0) & (end >= start) & (end <= LAST_MS)  # false where one is not known


def int32(values: npt.ArrayLike) -> bytes:
    r"""Whole numbers as bytes of an Int32Array.

    Example:
        >>> int32([1, 256])
        b'\x01\x00\x00\x00\x00\x01\x00\x00'
    """
    return np.asarray(values).astype("<i4").tobytes()


def float32(values: npt.ArrayLike) -> bytes:
    """Numbers as bytes of a Float32Array; unknown ones are NaN."""
    return np.asarray(values, np.float64).astype("<f4").tobytes()


def texts(values: Iterable[object]) -> tuple[bytes, bytes]:
    r"""Texts as UTF-8 bytes one after the other, and an Int32Array of where each begins and the last ends.

    Nulls become empty texts, characters that no UTF-8 has become "?".

    Example:
        >>> data, offsets = texts(["Hi", None, "é"])
        >>> data, np.frombuffer(offsets, "<i4").tolist()
        (b'Hi\xc3\xa9', [0, 2, 2, 4])
    """
    encoded = [value.encode("utf-8", "replace") if isinstance(value, str) else b"" for value in values]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return b"".join(encoded), int32(np.r_[0, np.cumsum(lengths)])


def bands(table: pd.DataFrame | None, text: str, prefix: str) -> dict[str, bytes]:
    """Columns of stretches of time with a text: `<prefix>_start`, `_end`, `_text`, `_offsets`, in time order.

    Args:
        table: Rows with `start_ms` and `end_ms`; None for none.
        text: Name of the column with the text.
        prefix: Beginning of the names.
    """
    if table is None:
        return {}
    start, end, known = times(table)
    order = np.flatnonzero(known)[np.argsort(start[known], kind="stable")]
    data, offsets = texts(table[text].iloc[order])
    packed = {"start": int32(start[order]), "end": int32(end[order]), "text": data, "offsets": offsets}
    return {f"{prefix}_{name}": value for name, value in packed.items()}
