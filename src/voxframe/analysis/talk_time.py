"""Talk time: how long each speaker of a transcript spoke, and how fast."""

from __future__ import annotations

import numpy as np
import pandas as pd

from voxframe.analysis.columns import require, voices
from voxframe.analysis.turns import TEXT, turns


def talk_time(spoken: pd.DataFrame) -> pd.DataFrame:
    """Talk time per transcript and speaker.

    A speaker's talk time is the sum of the lengths of their turns, pauses inside a turn included; speech at the same
    time counts for both. `share` is the speaker's part of the talk time of all speakers of that transcript, so shares
    add up to 1. `words_per_minute` is `words / (talk_s / 60)`.

    Args:
        spoken: Turns (`voxframe.load_utterances`) or words (`voxframe.load_words`). Words are grouped into turns
            first: a new one begins where the speaker changes. Turns with no start or end are left out.

    Returns:
        One row per transcript and speaker, transcripts as they came, who spoke most first: `transcript_id` str,
        `speaker` str (null where it is not known; "channel 1" where only channels are), `turns` int64, `words` int64,
        `talk_s` float64 (s), `share` float64 (0-1, null with no talk time), `words_per_minute` float64.

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
    if "word_idx" in spoken.columns:
        spoken = turns(spoken)
    written = spoken["text"].fillna("").str.count(r"\S+")
    counted = spoken["word_count"] if "word_count" in spoken.columns else written
    rows = pd.DataFrame(
        {
            "transcript_id": spoken["transcript_id"].astype(TEXT),
            "speaker": voices(spoken).astype(TEXT),
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
    return table.iloc[np.lexsort((-table["talk_s"].to_numpy(), place))].reset_index(drop=True)
