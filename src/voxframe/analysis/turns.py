"""Turns: stretches of words by one speaker."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from voxframe.analysis.columns import require, voices


def turns(words: pd.DataFrame, *, pause_ms: float | None = None) -> pd.DataFrame:
    """Group words into turns: a new turn begins where the speaker changes.

    Words are taken in time order within each transcript (`start_ms`, then as they stand). Where words have no
    speaker, their channel stands for it ("channel 1"); where they have neither, the transcript is one voice with a
    null name. Words with no start time are left out.

    Args:
        words: Words as `voxframe.load_words` gives them.
        pause_ms: Also begin a new turn where the same speaker was silent for longer than this; None for never.

    Returns:
        One row per turn: `transcript_id` str, `turn_idx` int64 (from 0 in each transcript), `speaker` str, `text` str,
        `start_ms`, `end_ms` Int64, `word_count` int64.

    Raises:
        ValueError: A column is missing.

    Example:
        >>> import pandas as pd
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "A", "B"], "text": ["How", "far?", "Here."],
        ...                       "start_ms": [0, 300, 900], "end_ms": [200, 500, 1300]})
        >>> turns(words)[["speaker", "text", "end_ms"]].values.tolist()
        [['A', 'How far?', 500], ['B', 'Here.', 1300]]
    """
    require(words, ("transcript_id", "text", "start_ms", "end_ms"), "turns")
    given = words.assign(speaker=voices(words))[["transcript_id", "speaker", "text", "start_ms", "end_ms"]]
    given = given[given["start_ms"].notna()]
    # Transcripts stay in the order they came in; codes sort faster than text.
    transcript, _ = pd.factorize(given["transcript_id"], use_na_sentinel=False)
    speaker, _ = pd.factorize(given["speaker"], use_na_sentinel=False)
    start = given["start_ms"].to_numpy(np.float64)
    end = given["end_ms"].fillna(given["start_ms"]).to_numpy(np.float64)
    order = np.lexsort((start, transcript))
    given, transcript, speaker, start, end = (
        given.iloc[order],
        transcript[order],
        speaker[order],
        start[order],
        end[order],
    )

    begins = np.ones(len(given), bool)
    begins[1:] = (transcript[1:] != transcript[:-1]) | (speaker[1:] != speaker[:-1])
    if pause_ms is not None:
        begins[1:] |= start[1:] - end[:-1] > pause_ms
    first = np.flatnonzero(begins)
    text = given["text"].fillna("").astype(object).to_numpy()
    edges = np.r_[first, len(given)]
    texts = [" ".join(filter(None, text[a:b])) for a, b in pairwise(edges)]
    new_transcript = np.flatnonzero(np.r_[True, np.diff(transcript[first]) != 0]) if len(first) else first
    sizes = np.diff(np.r_[new_transcript, len(first)])
    return pd.DataFrame(
        {
            "transcript_id": given["transcript_id"].to_numpy()[first],
            "turn_idx": np.arange(len(first)) - np.repeat(new_transcript, sizes),
            "speaker": given["speaker"].array[first],
            "text": texts,
            "start_ms": start[first],
            "end_ms": np.maximum.reduceat(end, first) if len(first) else end,
            "word_count": np.diff(edges),
        }
    ).astype(
        {
            "transcript_id": TEXT,
            "turn_idx": "int64",
            "speaker": TEXT,
            "text": TEXT,
            "start_ms": "Int64",
            "end_ms": "Int64",
            "word_count": "int64",
        }
    )


#: The dtype of text in voxframe's tables.
TEXT = pd.StringDtype("pyarrow", na_value=np.nan)
