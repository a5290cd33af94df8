import numpy as np
import pandas as pd
import pytest

import voxframe
from voxframe.analysis import turn_matrix, turn_statistics, turn_taking
from voxframe.errors import OptionError


def spoken(*rows: tuple[str, str, int, int], transcript_id: str = "t") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["speaker", "text", "start_ms", "end_ms"])
    return table.assign(transcript_id=transcript_id)


#: A meeting of three, worked by hand.
MEETING = spoken(
    ("A", "Shall we start?", 0, 1000),
    ("B", "Yes.", 1300, 1600),  # an answer, no backchannel
    ("A", "Then the first point is", 1600, 4000),
    ("C", "the budget", 2000, 2500),  # within
    ("B", "uh-huh", 3000, 3200),  # backchannel
    ("A", "the plan.", 4300, 6000),
    ("C", "I do not agree", 5000, 8000),  # overlap of 1 s: an interruption
    ("B", "Why?", 7900, 8400),  # overlap of 0.1 s
    ("C", "Money.", 9400, 9900),
)


def test_a_meeting_worked_by_hand():
    """Each turn has the kind, offset and previous speaker that follow from the definitions."""
    table = turn_taking(MEETING)
    shown = table[["speaker", "kind", "offset_ms", "previous_speaker", "end_ms"]].astype(object)
    assert shown.where(shown.notna(), None).values.tolist() == [
        ["A", "start", None, None, 1000],
        ["B", "gap", 300, "A", 1600],
        ["A", "latch", 0, "B", 6000],
        ["C", "within", -2000, "A", 2500],
        ["B", "backchannel", -1000, "A", 3200],
        ["C", "overlap", -1000, "A", 8000],
        ["B", "overlap", -100, "C", 8400],
        ["C", "gap", 1000, "B", 9900],
    ]
    assert table["text"][2] == "Then the first point is the plan."
    assert table["interruption"].tolist() == [False] * 5 + [True, False, False]
    assert table["after_question"].tolist() == [False, True, False, False, False, False, False, True]
    assert table["previous_idx"].fillna(-1).tolist() == [-1, 0, 1, 2, 2, 2, 5, 6]
    assert table["word_count"].tolist() == [3, 1, 7, 2, 1, 4, 1, 1]


def test_statistics_of_the_meeting():
    """Counts, shares, latency and the longest monologue of each speaker equal those counted in the turns above."""
    table = turn_statistics(MEETING).set_index("speaker")
    assert table["turns"].to_dict() == {"A": 2, "B": 2, "C": 2}
    assert table["longest_turn_s"].to_dict() == {"A": 4.4, "B": 0.5, "C": 3.0}
    assert table["longest_start_ms"].to_dict() == {"A": 1600, "B": 7900, "C": 5000}
    assert table["transfers"].to_dict() == {"A": 1, "B": 2, "C": 2}
    assert table["transfer_overlap_share"].to_dict() == {"A": 0, "B": 0.5, "C": 0.5}
    assert table["interruptions"].to_dict() == {"A": 0, "B": 0, "C": 1}
    assert table["responses"].to_dict() == {"A": 0, "B": 1, "C": 1}
    assert table.loc[["B", "C"], "response_ms"].tolist() == [300, 1000]
    assert table["within"].sum() == table["backchannels"].sum() == 1
    together = turn_statistics(MEETING, by=None)
    assert together[["turns", "transfers", "median_offset_ms", "words"]].values.tolist() == [[6, 5, 0.0, 20]]
    halves = turn_statistics(MEETING.assign(site="x"), by=["site", "tenth"])
    assert halves["turns"].sum() == 6


def test_who_follows_whom():
    """The matrix counts transfers, never backchannels, and its shares add up to 1 per previous speaker."""
    table = turn_matrix(MEETING).set_index(["previous", "following"])
    counts = {("A", "B"): 1, ("A", "C"): 1, ("B", "A"): 1, ("B", "C"): 1, ("C", "A"): 0, ("C", "B"): 1}
    assert table["transfers"].to_dict() == counts
    assert table["interruptions"].sum() == table.loc[("A", "C"), "interruptions"] == 1
    assert table.groupby("previous")["transfer_share"].sum().tolist() == [1, 1, 1]


def test_recordings_are_apart():
    """Nobody follows a speaker of another recording, and equal labels of two recordings are two people."""
    both = pd.concat([MEETING, spoken(("A", "Hello.", 0, 500), ("B", "Hi.", 400, 900), transcript_id="a")])
    table = turn_taking(both)
    assert (table["kind"] == "start").sum() == 2
    assert len(turn_statistics(both)) == 5
    assert turn_matrix(both)["transfers"].sum() == 6
    with pytest.raises(OptionError, match="different people"):
        turn_matrix(both, by=None)
    roles = both.assign(role=both["speaker"].map({"A": "chair"}).fillna("guest"))
    assert turn_matrix(roles, by=None, of="role")[["previous", "following", "transfers"]].values.tolist() == [
        ["chair", "guest", 3],
        ["guest", "chair", 1],
        ["guest", "guest", 2],
    ]


def test_speakers_with_the_same_times():
    """The first speaker by name has the floor, in any order of the rows and beside any other recording."""
    both = spoken(("A", "a", 0, 900), ("B", "b", 0, 900))
    other = spoken(("B", "x", 0, 500), transcript_id="s")
    for table in (both, both[::-1], pd.concat([other, both]), pd.concat([both[::-1], other])):
        found = turn_taking(table)
        found = found[found["transcript_id"] == "t"]
        assert found[["speaker", "kind"]].values.tolist() == [["A", "start"], ["B", "within"]]


def test_words_give_the_turns_of_the_service():
    """The words of a recording give the turns that the service made of the same words."""
    path = "data/payloads/interview.json"
    words, turns = voxframe.load_words(path), voxframe.load_utterances(path)
    table = turn_taking(words)
    assert (
        table[["speaker", "start_ms", "end_ms"]].values.tolist()
        == turns[["speaker", "start_ms", "end_ms"]].values.tolist()
    )
    assert table["word_count"].tolist() == turns["word_count"].tolist()


def test_no_rows_have_the_same_columns():
    """An empty DataFrame gives empty tables with the same columns and dtypes."""
    for function in (turn_taking, turn_statistics, turn_matrix):
        whole, empty = function(MEETING), function(MEETING.iloc[:0])
        pd.testing.assert_frame_equal(empty, whole.iloc[:0])


def states(table: pd.DataFrame) -> list[tuple[str, int]]:
    """Gaps and overlaps of two speakers by Heldner and Edlund's procedure: states of each moment, then runs of them."""
    active = np.zeros((2, int(table["end_ms"].max())), bool)
    for row in table.itertuples():
        active[int(row.speaker == "B"), row.start_ms : row.end_ms] = True
    state = active[0] + 2 * active[1]
    first = np.flatnonzero(np.r_[True, np.diff(state) != 0])
    runs = list(zip(state[first], np.diff(np.r_[first, len(state)]), strict=True))
    found = []
    for (before, _), (now, length), (after, _) in zip(runs, runs[1:], runs[2:], strict=False):
        if {before, after} == {1, 2} and now in (0, 3):
            found.append(("overlap", -length) if now == 3 else ("gap", length))
    return found


def test_offsets_equal_those_of_the_frame_procedure():
    """For two speakers, gaps and overlaps equal those found by labelling every millisecond."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        edges = np.sort(rng.choice(4000, 60, replace=False))
        split = rng.permutation(60) < 30
        rows = [
            (speaker, "x", int(a), int(b))
            for speaker, own in (("A", edges[split]), ("B", edges[~split]))
            for a, b in zip(own[::2], own[1::2], strict=True)
        ]
        table = turn_taking(spoken(*rows), backchannels=(), max_pause_ms=0)
        transfers = table[table["kind"].isin(["gap", "overlap"])]
        assert list(zip(transfers["kind"], transfers["offset_ms"], strict=True)) == states(spoken(*rows))
