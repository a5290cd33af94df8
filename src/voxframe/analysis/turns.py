"""Turns of speakers, and the time that each speaker talks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from voxframe.analysis.speaker_columns import label_names, require, row_speakers

#: The dtype of text in voxframe's tables.
TEXT = pd.StringDtype("pyarrow", na_value=np.nan)


def turns(words: pd.DataFrame, *, pause_ms: float | None = None) -> pd.DataFrame:
    """Group words into turns: a new turn begins when the speaker changes.

    Words are sorted by `start_ms` within each transcript; words with the same start keep their order. If a word has no
    speaker, its channel is used ("channel 1"). If it has neither, its speaker is null. Words without a start are left
    out.

    Args:
        words: Words, as returned by `voxframe.load_words`.
        pause_ms: Also begin a new turn after a silence longer than this, in ms. None (default): never.

    Returns:
        One row per turn: `transcript_id` str, `turn_idx` int64 (counts from 0 in each transcript), `speaker` str,
        `text` str, `start_ms` Int64, `end_ms` Int64, `word_count` int64.

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
    given = words.assign(speaker=row_speakers(words))[["transcript_id", "speaker", "text", "start_ms", "end_ms"]]
    given = given[given["start_ms"].notna()]
    # Codes keep the order of the transcripts and sort faster than text.
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


def talk_time(spoken: pd.DataFrame) -> pd.DataFrame:
    """Return the talk time of each speaker per transcript.

    The talk time of a speaker is the sum of the lengths of their turns, including pauses inside a turn. If two people
    speak at the same time, it counts for both. `share` is the fraction of the talk time of all speakers of the
    transcript, so shares add up to 1. `words_per_minute` is `words / (talk_s / 60)`.

    Args:
        spoken: Turns (`voxframe.load_utterances`) or words (`voxframe.load_words`). Words are first grouped into turns
            by `turns`. Turns without a start or end are left out.

    Returns:
        One row per transcript and speaker. Transcripts keep their order; within each, the longest talk time is first.
        Columns: `transcript_id` str, `speaker` str ("channel 1" if only channels are known, else null), `turns` int64,
        `words` int64, `talk_s` float64 (s), `share` float64 (0-1, NaN if there is no talk time), `words_per_minute`
        float64. `attrs["label_names"]` has the names by label, which plots use for colours; None if speakers have no
        names or there is more than one transcript.

    Raises:
        ValueError: A column is missing.

    Example:
        >>> import voxframe
        >>> payload = {"id": "a", "utterances": [
        ...     {"speaker": "A", "text": "How far is it?", "start": 0, "end": 1000},
        ...     {"speaker": "B", "text": "Two miles or so.", "start": 1000, "end": 4000}]}
        >>> talk_time(voxframe.load_utterances(payload))[["speaker", "talk_s", "share"]].values.tolist()
        [['B', 3.0, 0.75], ['A', 1.0, 0.25]]
    """
    require(spoken, ("transcript_id", "text", "start_ms", "end_ms"), "talk_time")
    named = label_names(spoken) if spoken["transcript_id"].nunique() == 1 else None
    if "word_idx" in spoken.columns:
        spoken = turns(spoken)
    written = spoken["text"].fillna("").str.count(r"\S+")
    counted = spoken["word_count"] if "word_count" in spoken.columns else written
    rows = pd.DataFrame(
        {
            "transcript_id": spoken["transcript_id"].astype(TEXT),
            "speaker": row_speakers(spoken).astype(TEXT),
            "words": counted.fillna(written).astype("int64"),
            "talk_s": (spoken["end_ms"] - spoken["start_ms"]).astype("Float64").to_numpy(np.float64, na_value=np.nan)
            / 1000,
        }
    )
    rows = rows[rows["talk_s"].notna()]
    groups = rows.groupby(["transcript_id", "speaker"], sort=False, dropna=False)
    table = groups.agg(turns=("words", "size"), words=("words", "sum"), talk_s=("talk_s", "sum")).reset_index()
    whole = table.groupby("transcript_id", sort=False, dropna=False)["talk_s"].transform("sum")
    table["share"] = table["talk_s"] / whole.where(whole > 0)
    table["words_per_minute"] = table["words"] / (table["talk_s"].where(table["talk_s"] > 0) / 60)
    place, _ = pd.factorize(table["transcript_id"], use_na_sentinel=False)
    table = table.iloc[np.lexsort((-table["talk_s"].to_numpy(), place))].reset_index(drop=True)
    table.attrs["label_names"] = named
    return table
