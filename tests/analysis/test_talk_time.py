import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import voxframe
from voxframe.analysis import balance, pace, speech_activity, talk_time, turn_matrix, turn_statistics
from voxframe.errors import OptionError

_UTTERANCES = pd.DataFrame(
    {
        "transcript_id": ["t", "t", "t", "u"],
        "speaker": ["A", "B", "A", "A"],
        "text": ["one two three", "four", "five six", "seven"],
        "start_ms": [0, 4_000, 5_000, 0],
        "end_ms": [3_000, 5_000, 11_000, 30_000],
    }
)


def test_talk_time_of_utterances() -> None:
    """Turns, words, seconds, share and rate per transcript and speaker are those computed by hand."""
    rows = talk_time(_UTTERANCES).set_index(["transcript_id", "speaker"])
    assert rows.loc[("t", "A")].to_list() == pytest.approx([2, 5, 9.0, 0.9, 5 / 9 * 60])
    assert rows.loc[("t", "B")].to_list() == pytest.approx([1, 1, 1.0, 0.1, 60.0])
    assert rows.loc[("u", "A")].to_list() == pytest.approx([1, 1, 30.0, 1.0, 2.0])


def test_the_longest_talk_time_comes_first() -> None:
    """Transcripts keep their order; within one, speakers are sorted by talk time."""
    turned = pd.concat([_UTTERANCES.iloc[[1]], _UTTERANCES.iloc[[0, 2, 3]]])
    assert talk_time(turned)[["transcript_id", "speaker"]].values.tolist() == [["t", "A"], ["t", "B"], ["u", "A"]]


def test_words_give_the_same_as_their_turns() -> None:
    """From words, each speaker's time runs from the first to the last word of every turn."""
    words = pd.DataFrame(
        {
            "transcript_id": "t",
            "word_idx": range(4),
            "speaker": ["A", "A", "B", "A"],
            "text": ["one", "two", "three", "four"],
            "start_ms": [0, 1_500, 2_000, 3_000],
            "end_ms": [1_000, 2_000, 3_000, 4_000],
        }
    )
    assert talk_time(words)[["speaker", "turns", "words", "talk_s", "share"]].values.tolist() == [
        ["A", 2, 3, 3.0, 0.75],
        ["B", 1, 1, 1.0, 0.25],
    ]


def test_names_are_used_instead_of_labels() -> None:
    """A speaker with a name has one row with the name."""
    named = _UTTERANCES.assign(speaker_name="Ada")
    assert set(talk_time(named)["speaker"]) == {"Ada"}


def test_turns_without_an_end_are_not_counted() -> None:
    """A turn without an end adds neither a turn nor words, and a warning counts it."""
    known = talk_time(_UTTERANCES)
    unknown = _UTTERANCES.iloc[:1].assign(end_ms=pd.array([None], dtype="Int64"))
    with pytest.warns(UserWarning, match="talk_time: 1 of 5 rows have no times and are left out") as caught:
        pd.testing.assert_frame_equal(talk_time(pd.concat([_UTTERANCES, unknown])), known)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("measure", [talk_time, balance, turn_statistics, turn_matrix, pace])
def test_a_table_without_times_says_why_there_is_no_result(measure: Callable[..., pd.DataFrame]) -> None:
    """One warning says how many rows have no times; measures that others are made of do not repeat it."""
    unknown = _UTTERANCES.assign(end_ms=pd.array([None] * 4, dtype="Int64"))
    rows = unknown.assign(text="x").drop(columns="word_count", errors="ignore")
    with pytest.warns(UserWarning, match=f"{measure.__name__}: 4 of 4 rows have no times") as caught:
        measure(rows)
    assert len(caught) == 1


def test_a_known_word_count_is_used() -> None:
    """The service's word count is used, and words are counted by spaces only if it is null."""
    counted = _UTTERANCES.iloc[:2].assign(word_count=pd.array([7, None], dtype="Int64"))
    assert talk_time(counted)["words"].to_list() == [7, 1]


def test_unknown_speakers_have_a_row() -> None:
    """A transcript without speakers has one row with a null speaker and the whole share."""
    rows = talk_time(_UTTERANCES.iloc[:2].assign(speaker=None))
    assert rows["speaker"].isna().to_list() == [True]
    assert rows["share"].to_list() == [1.0]


def test_no_talk_time_has_no_share_and_no_pace() -> None:
    """A speaker without talk time has no share and no speaking rate."""
    row = talk_time(_UTTERANCES.iloc[[0]].assign(end_ms=0)).iloc[0]
    assert math.isnan(row["share"])
    assert math.isnan(row["words_per_minute"])


def test_no_rows_have_the_same_columns() -> None:
    """An empty DataFrame gives an empty one with the same dtypes."""
    assert talk_time(_UTTERANCES.iloc[:0]).dtypes.equals(talk_time(_UTTERANCES).dtypes)


def test_a_dict_is_refused_with_the_next_step() -> None:
    """The error for a payload names the loader to use."""
    with pytest.raises(TypeError, match="load_words"):
        talk_time({"words": []})  # type: ignore[arg-type]


def test_the_denominator_of_a_share_is_the_named_one() -> None:
    """Shares are of all talk, of the time in which anybody speaks, or of the recording, as worked by hand."""
    rows = pd.DataFrame(
        {
            "transcript_id": ["t", "t"],
            "speaker": ["A", "B"],
            "text": "x",
            "start_ms": [0, 3_000],
            "end_ms": [4_000, 5_000],
        }
    )
    recordings = pd.DataFrame({"transcript_id": ["t"], "audio_duration_s": [10.0]})
    assert talk_time(rows)["share"].to_list() == pytest.approx([4 / 6, 2 / 6])
    assert talk_time(rows, of="speech")["share"].to_list() == pytest.approx([4 / 5, 2 / 5])
    assert talk_time(rows, of="recording")["share"].to_list() == pytest.approx([4 / 5, 2 / 5])
    assert talk_time(rows, of="recording", transcripts=recordings)["share"].to_list() == pytest.approx([0.4, 0.2])
    with pytest.raises(OptionError, match="of must be one of talk, speech, recording, got"):
        talk_time(rows, of="all")  # type: ignore[arg-type]


def test_turns_are_cut_at_minutes_and_grouped_by_metadata() -> None:
    """Talk time of a turn over two minutes counts in both, its words once; speakers of two recordings stay apart."""
    rows = pd.DataFrame(
        {
            "transcript_id": ["t", "u", "u"],
            "speaker": ["A", "A", "B"],
            "text": ["one two", "three", "four"],
            "start_ms": [50_000, 0, 1_000],
            "end_ms": [70_000, 1_000, 4_000],
            "team": ["x", "x", "y"],
        }
    )
    table = talk_time(rows, by=["minute", "speaker"])
    assert table[["transcript_id", "minute", "speaker", "turns", "words", "talk_s", "share"]].values.tolist() == [
        ["t", 0, "A", 1, 2, 10.0, 1.0],
        ["t", 1, "A", 0, 0, 10.0, 1.0],
        ["u", 0, "A", 1, 1, 1.0, 0.25],
        ["u", 0, "B", 1, 1, 3.0, 0.75],
    ]
    assert talk_time(rows, by="team")[["team", "talk_s", "share"]].values.tolist() == [
        ["x", 21.0, 0.875],
        ["y", 3.0, 0.125],
    ]
    words = rows.assign(word_idx=0)
    assert talk_time(words, by=words["team"])["talk_s"].to_list() == [21.0, 3.0]
    with pytest.raises(OptionError, match="cannot group by 'customer'"):
        talk_time(rows, by="customer")


SPEECH = pd.DataFrame(
    {
        "transcript_id": ["t", "t", "t", "u", "u"],
        "speaker": ["A", "B", "A", "A", "B"],
        "start_ms": [0, 3_000, 61_000, 0, 2_000],
        "end_ms": [4_000, 5_000, 62_000, 1_900, 3_000],
        "customer": ["x", "x", "x", "y", "y"],
    }
)


def test_speech_silence_and_overlap_add_up() -> None:
    """Seconds with nobody, anybody and several speakers equal those worked by hand; unknown overlap is null."""
    table = speech_activity(SPEECH).set_index("transcript_id")
    numbers = ["duration_s", "speech_s", "silence_s", "overlap_s", "overlap_share"]
    assert table.loc["t", numbers].to_list() == pytest.approx([62, 6, 56, 1, 1 / 6])
    assert table.loc["u", numbers[:3]].to_list() == pytest.approx([3, 2.9, 0.1])
    assert table.loc["u", numbers[3:]].isna().all()
    assert table["shows_overlap"].to_list() == [True, False]
    assert speech_activity(SPEECH.assign(channel=SPEECH["speaker"]))["overlap_s"].to_list() == [1, 0]
    minutes = speech_activity(SPEECH, by=["customer", "minute"])
    assert minutes[["customer", "minute", "duration_s", "speech_s", "recordings"]].values.tolist() == [
        ["x", 0, 60.0, 5.0, 1],
        ["x", 1, 2.0, 1.0, 1],
        ["y", 0, 3.0, pytest.approx(2.9), 1],
    ]
    total = speech_activity(SPEECH, by=None)
    assert total[["recordings", "duration_s", "overlap_s", "overlap_base_s"]].values.tolist() == [[2, 65.0, 1.0, 6.0]]
    with pytest.raises(OptionError, match="differs within a recording"):
        speech_activity(SPEECH, by="speaker")


def test_short_pauses_of_a_speaker_belong_to_their_speech() -> None:
    """Silence up to the given length joins the words of one speaker, not those of two."""
    words = pd.DataFrame(
        {"transcript_id": "t", "speaker": list("AAB"), "start_ms": [0, 1_200, 2_100], "end_ms": [1_000, 2_000, 3_000]}
    )
    assert speech_activity(words)["silence_s"].to_list() == pytest.approx([0.1])
    assert speech_activity(words, max_pause_ms=0)["silence_s"].to_list() == pytest.approx([0.3])


@pytest.mark.long
def test_speech_and_overlap_equal_those_of_pyannote() -> None:
    """Speech and overlap of random speakers equal those of pyannote.core."""
    core = pytest.importorskip("pyannote.core")
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {"transcript_id": "t", "speaker": rng.choice(list("ABC"), 80), "start_ms": rng.integers(0, 90_000, 80)}
    )
    rows["end_ms"] = rows["start_ms"] + rng.integers(1, 4_000, 80)
    annotation = core.Annotation()
    for n, row in enumerate(rows.itertuples()):
        annotation[core.Segment(row.start_ms / 1000, row.end_ms / 1000), n] = row.speaker
    table = speech_activity(rows, max_pause_ms=0)
    assert table["speech_s"].to_list() == pytest.approx([annotation.get_timeline().support().duration()])
    merged = annotation.support()
    assert table["overlap_s"].to_list() == pytest.approx([merged.get_overlap().duration()])


def test_balance_of_shares_worked_by_hand() -> None:
    """Gini, entropy and evenness of one, two and four speakers equal those worked by hand."""
    rows = pd.DataFrame(
        {
            "transcript_id": ["a"] * 4 + ["b", "b", "c"],
            "speaker": list("ABCDABA"),
            "text": "x",
            "start_ms": 0,
            "end_ms": [1_000, 2_000, 3_000, 4_000, 5_000, 5_000, 7],
        }
    )
    table = balance(rows)
    assert table["speakers"].to_list() == [4, 2, 1]
    assert table["gini"].to_list() == pytest.approx([0.25, 0, 0])  # (1*-3 + 2*-1 + 3*1 + 4*3) / (4 * 10)
    assert table["entropy_bits"].to_list() == pytest.approx([1.846439, 1, 0])
    assert table["evenness"].to_list() == pytest.approx([1.846439 / 2, 1, math.nan], nan_ok=True)
    assert table["effective_speakers"].to_list() == pytest.approx([2**1.846439, 2, 1])
    assert balance(rows, of="words")["gini"].to_list() == [0, 0, 0]
    assert balance(rows.iloc[:0]).columns.to_list() == table.columns.to_list()


@pytest.mark.parametrize(("key", "expected"), [("5s", {0: 4.0, 1: 5.0, 2: 1.0}), ("0.1min", {0: 5.0, 1: 5.0})])
def test_time_bins_have_any_length(key: str, expected: dict[int, float]) -> None:
    """Turns are cut at the limits of bins of a stated length; bins are counted from 0."""
    table = talk_time(_UTTERANCES[_UTTERANCES["transcript_id"] == "t"], by=key)
    assert table.set_index(key)["talk_s"].to_dict() == pytest.approx(expected)
    activity = speech_activity(_UTTERANCES[_UTTERANCES["transcript_id"] == "t"], by=key)
    assert activity.set_index(key)["speech_s"].to_dict() == pytest.approx(expected)


@pytest.mark.parametrize("key", ["0min", "5m", "min"])
def test_other_texts_are_no_time_bins(key: str) -> None:
    """A bin without a length or with another unit is an error that names the forms."""
    with pytest.raises(OptionError, match=f"cannot group by '{key}'; choose from .*minute, 5min, tenth"):
        talk_time(_UTTERANCES, by=key)


@pytest.mark.parametrize("by", [5, b"speaker", [5], [["speaker"]], [None]])
@pytest.mark.parametrize("measure", [talk_time, turn_statistics, turn_matrix, pace])
def test_groups_are_columns(measure: Callable[..., object], by: object) -> None:
    """Anything but names of columns, Series and lists of these is refused."""
    with pytest.raises(OptionError, match="groups are given as a column, a Series, or a list of these, got"):
        measure(_UTTERANCES, by=by)


def test_a_group_is_used_once() -> None:
    """A column that is named twice is one group."""
    twice = talk_time(_UTTERANCES, by=["transcript_id", "speaker", "speaker"])
    pd.testing.assert_frame_equal(twice, talk_time(_UTTERANCES, by=["transcript_id", "speaker"]))


@pytest.mark.parametrize("name", [5, "", []])
def test_names_of_columns_are_text(name: object) -> None:
    """A column that is chosen by a number or an empty text is refused with the purpose."""
    with pytest.raises(OptionError, match=rf"timeline takes names of columns, got {re.escape(repr(name))}"):
        voxframe.plots.timeline(_UTTERANCES, by=name)  # type: ignore[arg-type]


def test_ids_of_recordings_may_be_numbers():
    """A share of the recording is found by an id that is a number, as by one that is text."""
    rows = pd.DataFrame({"transcript_id": [7, 7], "speaker": ["A", "B"], "text": "hi", "start_ms": [0, 3000]})
    rows["end_ms"] = rows["start_ms"] + 1000
    assert talk_time(rows, of="recording")["share"].tolist() == [0.25, 0.25]


def test_a_turn_that_ends_before_it_starts_is_left_out():
    """Damaged times take nothing away from the talk time of the other turns."""
    rows = pd.DataFrame(
        {"transcript_id": "t", "speaker": "A", "text": "hi", "start_ms": [0, 9000], "end_ms": [3000, 50]}
    )
    assert talk_time(rows)[["turns", "talk_s"]].values.tolist() == [[1, 3.0]]
