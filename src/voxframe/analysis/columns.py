"""What an analysis or a plot needs to find in a DataFrame, and how it says what is missing."""

from __future__ import annotations

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
