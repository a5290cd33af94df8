import math

import pandas as pd
import pytest

from voxframe.analysis import talk_time

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
    """A turn without an end adds neither a turn nor words."""
    known = talk_time(_UTTERANCES)
    unknown = _UTTERANCES.iloc[:1].assign(end_ms=pd.array([None], dtype="Int64"))
    pd.testing.assert_frame_equal(talk_time(pd.concat([_UTTERANCES, unknown])), known)


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
