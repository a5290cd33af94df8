"""What an analysis or a plot needs to find in a DataFrame, and how it says what is missing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd


def require(df: pd.DataFrame, needed: tuple[str, ...], purpose: str) -> None:
    """Check that a DataFrame has the columns an operation reads.

    Args:
        df: What was given.
        needed: Names of the columns.
        purpose: The operation, in words for the message.

    Raises:
        TypeError: It is no DataFrame.
        ValueError: A column is missing.
    """
    if not isinstance(df, pd.DataFrame):
        raise TypeError(f"{purpose} takes a DataFrame, such as voxframe.load_words(...) gives, not {type(df).__name__}")
    missing = [name for name in needed if name not in df.columns]
    if missing:
        raise ValueError(f"{purpose} needs the columns {', '.join(needed)}; the DataFrame lacks {', '.join(missing)}")


def voices(df: pd.DataFrame) -> pd.Series[str]:
    """Who speaks in each row: the speaker's name, else the label, else "channel" and its name, else null."""
    nobody = pd.Series(pd.NA, index=df.index, dtype="string")
    speaker = df["speaker"].astype("string") if "speaker" in df.columns else nobody
    channel = df["channel"].astype("string") if "channel" in df.columns else nobody
    name = df["speaker_name"].astype("string") if "speaker_name" in df.columns else nobody
    return name.fillna(speaker).fillna("channel " + channel)


def voice_codes(df: pd.DataFrame) -> tuple[npt.NDArray[np.intp], list[str | None]]:
    """Who speaks in each row, as positions in a list of names: `voices`, many times as fast.

    Returns:
        For each row the position of its name, and the names; a null name is one too.

    Example:
        >>> code, names = voice_codes(pd.DataFrame({"speaker": ["B", None, "B"], "channel": ["1", "1", None]}))
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
    place, known = pd.factorize(np.array([*names, None], object), use_na_sentinel=False)  # a label may be a name, too
    used, rows = np.unique(place[codes], return_inverse=True)  # -1 is the last: nobody
    return rows, [None if pd.isna(known[n]) else str(known[n]) for n in used]
