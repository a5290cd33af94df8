"""Measures of transcripts in which speakers or overlap are unknown, and shares by person."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from voxframe import analysis
from voxframe.analysis import talk_time, turn_statistics, turn_taking

_TURNS = {"transcript_id": "t", "text": "Well.", "start_ms": [0, 1000, 2000], "end_ms": [900, 1900, 2900]}


def test_shares_by_person_are_of_their_group() -> None:
    """Two people of group x have 1 and 3 s, those of group y 5 and 1 s: the shares of each group add up to 1."""
    df = pd.DataFrame(
        {
            "transcript_id": ["a", "a", "b", "b"],
            "person": ["Ann", "Bob", "Ann", "Cy"],
            "speaker": ["A", "B", "A", "B"],
            "group": ["x", "x", "y", "y"],
            "text": "Well.",
            "start_ms": [0, 1000, 0, 5000],
            "end_ms": [1000, 4000, 5000, 6000],
        }
    )
    found = talk_time(df, by=["group", "person"])
    assert found["share"].round(2).to_list() == [0.25, 0.75, 0.83, 0.17]
    assert talk_time(df, by=["group", "person"], of="recording")["share"].round(2).to_list() == [0.25, 0.75, 0.83, 0.17]


def test_a_turn_without_a_speaker_is_of_nobody() -> None:
    """A null between two turns of one person is no other speaker; the rows left out are counted."""
    with pytest.warns(UserWarning, match="1 of 3 rows have no speaker"):
        found = turn_taking(pd.DataFrame(_TURNS | {"speaker": ["A", None, "A"]}))
    assert set(found["speaker"]) == {"A"}
    assert not found["kind"].isin(["gap", "overlap"]).any()


def test_interruptions_are_unknown_without_overlap() -> None:
    """A transcript that gives every moment to one speaker cannot show an interruption."""
    found = turn_statistics(pd.DataFrame(_TURNS | {"speaker": ["A", "B", "A"]}), by="transcript_id")
    assert found["transfers"].to_list() == [2]
    assert found["interruption_share"].isna().all()
    assert found["interruption_recordings"].to_list() == [0]


def test_pauses_in_segments_with_one_time_are_unknown() -> None:
    """A speaker whose words all share the time of their segment has no known pauses; one warning counts the words."""
    rows = {"transcript_id": "t", "word_idx": range(4), "text": "Well.", "start_ms": [0, 400, 900, 1900]}
    words = pd.DataFrame(
        {**rows, "end_ms": [400, 800, 1300, 2300], "speaker": list("AABB"), "timing": ["segment"] * 2 + ["word"] * 2}
    )
    with pytest.warns(UserWarning, match="delivery: 2 of 4 words share the time of their segment") as caught:
        found = analysis.delivery(words)
    assert len(caught) == 1
    assert found["pauses"].to_list() == [pd.NA, 1]
    assert found["pause_s"].fillna(-1).to_list() == [-1, 0.6]
    assert found["words_per_minute"].to_list() == [60 * 2 / 0.8, 60 * 2 / 1.4]
    with pytest.warns(UserWarning, match="pauses: 2 of 4 words share"):
        assert analysis.pauses(words)["pause_ms"].to_list() == [600]


def test_a_recording_without_times_has_no_row_of_activity() -> None:
    """Measures of time have rows of the recordings with times only, and count the rows that they leave out."""
    words = pd.DataFrame(
        {"transcript_id": ["a", "b"], "text": "Well.", "start_ms": [0, None], "end_ms": [900, None], "speaker": "A"}
    )
    for measure in (analysis.speech_activity, analysis.pace):
        with pytest.warns(UserWarning, match="1 of 2 rows have no times and are left out"):
            assert measure(words)["transcript_id"].to_list() == ["a"]


@pytest.mark.parametrize(
    ("measure", "column", "what"),
    [
        (analysis.balance, "speaker", "speaker"),
        (analysis.turn_matrix, "speaker", "speaker"),
        (analysis.questions, "text", "text"),
        (analysis.ngrams, "text", "text"),
        (lambda words: analysis.find_words(words, "yes"), "text", "text"),
        (analysis.turns, "start_ms", "times"),
        (lambda words: analysis.label_shares(words.assign(label="x"), words), "start_ms", "times"),
    ],
)
def test_an_empty_result_says_why(measure: Any, column: str, what: str) -> None:
    """A result without rows from a table with rows comes with one warning, which names what the rows lack."""
    words = pd.DataFrame({"transcript_id": "a", "speaker": "A", "text": ["yes", "no"], "start_ms": [0, 9000]})
    words["end_ms"] = [500, 9500]
    words[column] = pd.Series([None, None], dtype=object)
    with pytest.warns(
        UserWarning, match=rf"rows have no {what} and are left out, so that the result is empty"
    ) as caught:
        assert measure(words).empty
    assert len([one for one in caught if "left out" in str(one.message)]) == 1
