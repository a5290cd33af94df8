import pandas as pd
import pytest

from voxframe.analysis import turns


def _words(rows: list[tuple], columns: str = "transcript_id speaker text start_ms end_ms") -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


def test_a_turn_ends_when_the_speaker_changes() -> None:
    """Consecutive words of one speaker make one turn, from the first word's start to the last word's end."""
    words = _words(
        [
            ("t", "A", "Is", 0, 100),
            ("t", "A", "it?", 150, 300),
            ("t", "B", "Yes.", 400, 600),
            ("t", "A", "Good.", 700, 900),
        ]
    )
    found = turns(words)
    assert found[["turn_idx", "speaker", "text", "start_ms", "end_ms", "word_count"]].values.tolist() == [
        [0, "A", "Is it?", 0, 300, 2],
        [1, "B", "Yes.", 400, 600, 1],
        [2, "A", "Good.", 700, 900, 1],
    ]


def test_a_turn_ends_with_its_latest_word() -> None:
    """If words of a turn overlap, the turn ends when the last of them ends."""
    assert turns(_words([("t", "A", "a", 0, 1000), ("t", "A", "b", 300, 500)]))["end_ms"].tolist() == [1000]


def test_turns_do_not_cross_transcripts() -> None:
    """The same label in another transcript is another turn, and turns are counted from 0 again."""
    found = turns(_words([("t", "A", "One", 0, 1), ("u", "A", "two", 5, 6), ("t", "A", "three", 7, 8)]))
    assert found[["transcript_id", "turn_idx", "text"]].values.tolist() == [["t", 0, "One three"], ["u", 0, "two"]]


def test_words_are_sorted_by_time() -> None:
    """Words of channels that follow each other in the table are merged by time."""
    found = turns(_words([("t", "A", "one", 0, 10), ("t", "A", "three", 40, 50), ("t", "B", "two", 20, 30)]))
    assert found["text"].to_list() == ["one", "two", "three"]


def test_pause_splits_a_turn() -> None:
    """With pause_ms, a longer silence begins a new turn; a silence of exactly that length does not."""
    words = _words([("t", "A", "one", 0, 100), ("t", "A", "two", 600, 700), ("t", "A", "three", 1201, 1300)])
    assert turns(words, pause_ms=500)["text"].to_list() == ["one two", "three"]


def test_channel_stands_for_a_missing_speaker() -> None:
    """Words of separate channels without speakers become turns of those channels."""
    rows = [("t", None, "1", "Hello?", 0, 10), ("t", None, "2", "Hi.", 20, 30)]
    found = turns(_words(rows, "transcript_id speaker channel text start_ms end_ms"))
    assert found["speaker"].to_list() == ["channel 1", "channel 2"]


def test_no_speakers_give_one_turn() -> None:
    """Words with neither speaker nor channel are one turn of an unknown speaker."""
    found = turns(_words([("t", None, "a", 0, 10), ("t", None, "b", 20, 30)]))
    assert found["text"].to_list() == ["a b"]
    assert found["speaker"].isna().all()


def test_nulls_do_not_break_turns() -> None:
    """A word without a start is left out with a warning, a null text is empty, and a null end is the start."""
    rows = [("t", "A", "a", 0, None), ("t", "A", None, 20, 30), ("t", "A", "lost", None, 40)]
    with pytest.warns(UserWarning, match="turns: 1 of 3 rows have no times and are left out$"):
        found = turns(_words(rows).astype({"start_ms": "Int64", "end_ms": "Int64"}))
    assert found[["text", "start_ms", "end_ms"]].values.tolist() == [["a", 0, 30]]


def test_no_words_have_all_columns() -> None:
    """No words give no turns, with the same columns and dtypes."""
    one = turns(_words([("t", "A", "a", 0, 10)]))
    none = turns(_words([]))
    assert len(none) == 0
    assert none.dtypes.equals(one.dtypes)


def test_missing_column_is_named() -> None:
    """The error for a DataFrame without a required column names the column."""
    with pytest.raises(ValueError, match="lacks start_ms, end_ms"):
        turns(pd.DataFrame({"transcript_id": ["t"], "text": ["a"]}))


def test_longer_rows_keep_their_number_of_words() -> None:
    """Sentences are joined to turns that have the words of all of them."""
    rows = _words([("t", "A", "How far?", 0, 10), ("t", "A", "Two miles or so?", 20, 30), ("t", "B", "Yes.", 40, 50)])
    assert turns(rows)["word_count"].to_list() == [6, 1]
    assert turns(rows.assign(word_count=[2, None, 1]))["word_count"].to_list() == [6, 1]
    assert turns(rows.assign(word_idx=range(3)))["word_count"].to_list() == [2, 1]  # words with a space in them


def test_times_with_fractions_are_rounded() -> None:
    """Times such as 1000 times the seconds of another engine need not be whole ms."""
    rows = pd.DataFrame({"transcript_id": "t", "text": ["a", "b"], "start_ms": [0.6, 400.2], "end_ms": [399.7, 800.4]})
    assert turns(rows)[["start_ms", "end_ms"]].values.tolist() == [[1, 800]]
