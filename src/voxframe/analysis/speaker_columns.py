"""Checks for required columns, and the speaker of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


def require(df: pd.DataFrame, needed: tuple[str, ...], purpose: str) -> None:
    """Check that a DataFrame has the required columns.

    Args:
        df: The argument to check.
        needed: Names of the required columns.
        purpose: Operation to name in error messages.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing.
    """
    if not isinstance(df, pd.DataFrame):
        raise TypeError(
            f"{purpose} needs a DataFrame, such as the result of voxframe.load_words, not {type(df).__name__}"
        )
    missing = [name for name in needed if name not in df.columns]
    if missing:
        raise ValueError(f"{purpose} needs the columns {', '.join(needed)}; the DataFrame lacks {', '.join(missing)}")


def row_speakers(df: pd.DataFrame) -> pd.Series[str]:
    """Return the speaker of each row: the name, else the label, else "channel" and the channel name, else null."""
    nobody = pd.Series(pd.NA, index=df.index, dtype="string")
    speaker = df["speaker"].astype("string") if "speaker" in df.columns else nobody
    channel = df["channel"].astype("string") if "channel" in df.columns else nobody
    name = df["speaker_name"].astype("string") if "speaker_name" in df.columns else nobody
    return name.fillna(speaker).fillna("channel " + channel)


def speaker_labels(df: pd.DataFrame) -> pd.Series[str]:
    """Return the original speaker label of each row, ignoring names; else "channel" and the channel name, else null."""
    return row_speakers(_unnamed(df))


def label_names(df: pd.DataFrame) -> dict[Any, Any] | None:
    """Return the name of each label of one transcript: its most frequent name, or the label itself if it has no name.

    Args:
        df: Rows with `speaker` or `channel`, and optionally `speaker_name`.

    Returns:
        Names by label, both str; the key None stands for rows without a label. None if no row has a name.

    Example:
        >>> label_names(pd.DataFrame({"speaker": ["A", "A", "B"], "speaker_name": ["Ada", "Ada", None]}))
        {'A': 'Ada', 'B': 'B'}
    """
    if "speaker_name" not in df.columns or df["speaker_name"].isna().all():
        return None
    code, found = speaker_codes(_unnamed(df))
    given = pd.DataFrame({"label": code, "name": df["speaker_name"].to_numpy(object)}).dropna()
    counts = given.groupby(["label", "name"]).size().sort_values(ascending=False, kind="stable").reset_index()
    most = counts.drop_duplicates("label")
    return dict(zip(found, found, strict=True)) | {
        found[label]: str(name) for label, name in zip(most["label"], most["name"], strict=True)
    }


def _unnamed(df: pd.DataFrame) -> pd.DataFrame:
    return df[[name for name in ("speaker", "channel") if name in df.columns]]


def speaker_codes(df: pd.DataFrame) -> tuple[npt.NDArray[np.intp], list[str | None]]:
    """Return the speakers as integer codes and a list of names; much faster than `row_speakers`.

    Returns:
        The index in the list for each row, and the list. If rows have no speaker, None is in the list.

    Example:
        >>> code, names = speaker_codes(pd.DataFrame({"speaker": ["B", None, "B"], "channel": ["1", "1", None]}))
        >>> code.tolist(), names
        ([0, 1, 0], ['B', 'channel 1'])
    """
    codes, names = np.full(len(df), -1, np.intp), list[str]()
    for column, prefix in (("speaker_name", ""), ("speaker", ""), ("channel", "channel ")):
        if column in df.columns and df[column].notna().any() and (codes < 0).any():
            found, labels = pd.factorize(df[column])
            whole = not names and (found >= 0).all()
            codes = found if whole else np.where((codes < 0) & (found >= 0), found + len(names), codes)
            names += [f"{prefix}{label}" for label in labels]
            if whole:
                return codes, list(names)
    if not names:
        return np.zeros(len(df), np.intp), [None] * min(1, len(df))
    place, known = pd.factorize(np.array([*names, None], object), use_na_sentinel=False)  # a label may equal a name
    used, rows = np.unique(place[codes], return_inverse=True)  # code -1 is the last entry: no speaker
    return rows, [None if pd.isna(known[n]) else str(known[n]) for n in used]
