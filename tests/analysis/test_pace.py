from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voxframe
from voxframe.analysis import (
    delivery,
    label_shares,
    low_confidence,
    pace,
    pauses,
    questions,
    sentiment_over_time,
    talk_time,
)
from voxframe.errors import OptionError


def words(*rows: tuple[str, str, int, int], transcript_id: str = "t") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["speaker", "text", "start_ms", "end_ms"])
    return table.assign(transcript_id=transcript_id)


#: A short exchange, worked by hand.
TALK = words(
    ("A", "Um,", 0, 400),
    ("A", "is", 1000, 1200),  # after a pause of 600 ms
    ("A", "it?", 1300, 1500),
    ("B", "No.", 2000, 2400),  # after a gap
    ("B", "Why?”", 3000, 3600),  # after a pause of 600 ms
    ("A", "Oh.", 3500, 3700),
    ("B", "Well.", 4000, 4400),  # after A's word, so no pause
).assign(confidence=[0.1, 0.9, 0.4, 0.3, 0.9, None, 0.9])


def test_pauses_are_silences_of_one_speaker():
    """Silences of 250 ms or more between words of one speaker are pauses; those at a change of speaker are not."""
    assert pauses(TALK)[["speaker", "start_ms", "pause_ms", "before", "after"]].values.tolist() == [
        ["A", 400, 600, "Um,", "is"],
        ["B", 2400, 600, "No.", "Why?”"],
    ]
    assert pauses(TALK, min_ms=100)["pause_ms"].tolist() == [600, 100, 600]
    assert pauses(TALK.iloc[:0]).columns.tolist() == pauses(TALK).columns.tolist()


def test_questions_and_doubtful_words_are_runs_of_words():
    """A question reaches from the sentence's first word to the mark; runs of low confidence end with the turn."""
    assert questions(TALK)[["speaker", "text", "start_ms", "end_ms", "words"]].values.tolist() == [
        ["A", "Um, is it?", 0, 1500, 3],
        ["B", "Why?”", 3000, 3600, 1],
    ]
    with pytest.warns(UserWarning, match="low_confidence: 1 of 7 rows have no confidence and are left out"):
        doubtful = low_confidence(TALK)
    assert doubtful[["text", "words", "mean_confidence"]].values.tolist() == [
        ["Um,", 1, 0.1],
        ["it?", 1, 0.4],
        ["No.", 1, 0.3],
    ]
    assert len(questions(TALK.iloc[:0])) == len(low_confidence(TALK.iloc[:0])) == 0


def test_delivery_worked_by_hand():
    """Rates of pace, pauses, fillers, questions and doubtful words have the denominators that the docstring names."""
    table = delivery(TALK).set_index("speaker")
    a, b = table.loc["A"], table.loc["B"]
    # A: 400 + 200 + 100 (short silence) + 200 + 200 ms of speech, and a pause of 600 ms.
    assert [a["words"], a["articulation_s"], a["pause_s"]] == pytest.approx([4, 1.1, 0.6])
    assert [a["words_per_minute"], a["articulation_wpm"]] == pytest.approx([4 / 1.7 * 60, 4 / 1.1 * 60])
    assert [a["pauses"], a["pauses_per_minute"], a["mean_pause_ms"]] == pytest.approx([1, 60 / 1.7, 600])
    assert [a["fillers"], a["fillers_per_100"], a["questions"], a["low_share"]] == pytest.approx([1, 25, 1, 2 / 3])
    assert [b["articulation_s"], b["pause_s"], b["questions_per_100"]] == pytest.approx([1.4, 0.6, 100 / 3])
    nothing = words(("A", "x", 0, 0))
    assert delivery(nothing, by="tenth")["tenth"].isna().tolist() == [True]  # a recording without length
    both = pd.concat([TALK, TALK.assign(transcript_id="u")], ignore_index=True)
    assert delivery(both, by=None)["words"].tolist() == [14]
    assert delivery(both, by=both["transcript_id"].rename("site"))["pauses"].tolist() == [2, 2]


def test_pace_in_windows_and_rolling_windows():
    """Words count where their middle is; windows without any are kept, can overlap, and end with the recording."""
    rows = words(*(("A", "x", at, at + 400) for at in (0, 500, 1800, 6000)), ("B", "y", 1000, 1400))
    table = pace(rows, window_s=2)
    assert table["words"].tolist() == [3, 1, 0, 1]  # the third middle is at 2.0 s
    assert table["end_ms"].tolist() == [2000, 4000, 6000, 6400]
    assert table["window_wpm"].tolist() == pytest.approx([90, 30, 0, 150])
    assert table["articulation_s"].tolist() == pytest.approx([1.5, 0.2, 0, 0.4])  # with the silence of 100 ms of A
    rolling = pace(rows, window_s=4, step_s=2)
    assert rolling[["start_ms", "words"]].values.tolist() == [[0, 4], [2000, 1], [4000, 1]]
    apart = pace(rows, by="speaker", window_s=4)
    assert apart[["speaker", "start_ms", "words"]].values.tolist() == [
        ["A", 0, 3],
        ["A", 4000, 1],
        ["B", 0, 1],
        ["B", 4000, 0],
    ]
    both = pd.concat([rows, rows.iloc[:1].assign(transcript_id="u")])  # an index with equal labels
    assert pace(both, window_s=2)["articulation_s"].tolist() == pytest.approx([1.5, 0.2, 0, 0.4, 0.4])
    two = pace(both, by=None, window_s=10)
    assert two[["transcript_id", "words"]].values.tolist() == [["t", 5], ["u", 1]]
    with pytest.raises(OptionError, match="multiple of step_s, got 5 and 2"):
        pace(rows, window_s=5, step_s=2)


def test_speech_and_articulation_mean_the_same_in_pace_and_delivery():
    """One window over a whole recording has the speech and the articulation rate of `delivery`."""
    both = pd.concat([TALK, TALK.assign(transcript_id="u", start_ms=TALK["start_ms"] * 2)], ignore_index=True)
    both.loc[9, "end_ms"] = 3200  # overlaps the next word
    names = ["words", "articulation_s", "articulation_wpm"]
    for by in ("transcript_id", ["transcript_id", "speaker"]):
        pd.testing.assert_frame_equal(pace(both, by, window_s=60)[names], delivery(both, by)[names])


def test_sentiment_in_windows():
    """Polarity is the difference of positive and negative sentences over all sentences, null without sentences."""
    rows = words(("A", "", 0, 10), ("B", "", 10, 20), ("A", "", 20, 30), ("A", "", 2500, 2600))
    rows["sentiment"] = ["positive", "NEGATIVE", "POSITIVE", "other"]
    table = sentiment_over_time(rows, window_s=1)
    assert table[["sentences", "positive", "neutral", "negative"]].values.tolist() == [
        [3, 2, 0, 1],
        [0] * 4,
        [1, 0, 0, 0],
    ]
    assert table["polarity"].fillna(9).tolist() == pytest.approx([1 / 3, 9, 0])
    assert sentiment_over_time(rows, by="speaker", window_s=9)["polarity"].tolist() == pytest.approx([2 / 3, -1])


def test_labels_per_speaker_and_minute():
    """Words under several labels count for each; the share is of all words of the group, the strength their mean."""
    rows = words(("A", "x", 0, 100), ("A", "x", 100, 200), ("B", "x", 200, 300), ("A", "x", 60_000, 60_100))
    labels = pd.DataFrame(
        {
            "transcript_id": ["t", "t", "u"],
            "label": ["Pets", "News", "Pets"],
            "relevance": [0.5, 1.0, 0.1],
            "start_ms": [0, 120, 0],
            "end_ms": [300, 70_000, 70_000],
        }
    )
    table = label_shares(labels, rows)
    assert table[["speaker", "minute", "label", "words", "word_share", "strength"]].values.tolist() == [
        ["A", 0, "News", 1, 0.5, 1.0],
        ["A", 0, "Pets", 2, 1.0, 0.5],
        ["A", 1, "News", 1, 1.0, 1.0],
        ["B", 0, "News", 1, 1.0, 1.0],
        ["B", 0, "Pets", 1, 1.0, 0.5],
    ]
    assert label_shares(labels, rows, by=None)["word_share"].tolist() == [0.75, 0.75]
    assert len(label_shares(labels.iloc[:0], rows)) == 0


INTERVIEW = Path(__file__).parents[2] / "data/payloads/interview.json"


@pytest.mark.parametrize(
    ("measure", "rows_of_name"), [(delivery, 1), (pauses, 0), (questions, 0), (low_confidence, 0), (pace, 1)]
)
def test_measures_of_words_refuse_turns(measure, rows_of_name):
    """Turns and sentences are an error that names the loader; a word may be a name of two words."""
    turns = voxframe.load_utterances(INTERVIEW)
    own = turns[["transcript_id", "speaker", "text", "start_ms", "end_ms", "confidence"]]
    said = r"got turns or other longer rows, such as 'Good morning.*pass words instead, from voxframe\.load_words"
    for rows in (turns, own, voxframe.load_sentences(INTERVIEW)):
        with pytest.raises(OptionError, match=rf"^{measure.__name__} needs one word per row, {said}"):
            measure(rows)
    with pytest.raises(OptionError, match=r"got turns or other longer rows; pass words"):
        measure(words(("A", "Yes.", 0, 400)).assign(word_count=1, confidence=0.9))
    named = words(("A", "New York", 0, 400), ("A", "is", 500, 600)).assign(confidence=0.9)
    with nullcontext() if rows_of_name else pytest.warns(UserWarning, match="the result is empty, because no "):
        assert len(measure(named)) == rows_of_name  # no pause, question or word with a low confidence


def test_labels_of_turns_are_refused():
    """Shares of words under a label need words."""
    topics = pd.DataFrame({"transcript_id": "t", "label": ["Pets"], "start_ms": 0, "end_ms": 900})
    with pytest.raises(OptionError, match="label_shares needs one word per row"):
        label_shares(topics, words(("A", "How far is it?", 0, 900)))


@pytest.mark.parametrize("below", [90, -0.1, "0.5", None, float("nan")])
def test_a_low_confidence_is_from_0_to_1(below: Any) -> None:
    """A percentage, and what is no number, is refused instead of choosing other words."""
    with pytest.raises(OptionError, match="below must be a number from 0 to 1, got"):
        low_confidence(TALK, below=below)


def test_words_before_the_start_belong_to_the_first_window() -> None:
    """A time below 0, as after a correction of times, is in the first window of its own recording."""
    first = words(("A", "a", 0, 400), ("A", "b", 1500, 1900))
    second = words(("A", "c", -700, -300), ("A", "d", 100, 400)).assign(transcript_id="u")
    table = pace(pd.concat([first, second], ignore_index=True), window_s=1)
    assert table[["transcript_id", "start_ms", "words"]].values.tolist() == [["t", 0, 1], ["t", 1000, 1], ["u", 0, 2]]


def test_a_word_in_two_segments_of_a_label_counts_once() -> None:
    """Segments of one label that overlap do not count their words twice."""
    rows = words(("A", "a", 0, 100), ("A", "b", 200, 300))
    labels = pd.DataFrame({"transcript_id": "t", "label": "Pets", "start_ms": [0, 0], "end_ms": [150, 120]})
    assert label_shares(labels, rows, by=None)[["words", "word_share"]].values.tolist() == [[1.0, 0.5]]


def test_words_that_overlap_or_touch_have_no_pause_between_them() -> None:
    """With no shortest pause, every silence counts, but words without silence have none, in both measures."""
    rows = words(("A", "a", 0, 500), ("A", "b", 400, 800), ("A", "c", 800, 900), ("A", "d", 901, 1000))
    assert pauses(rows, min_ms=0)["pause_ms"].tolist() == [1]
    assert delivery(rows, min_pause_ms=0)[["pauses", "pause_s"]].values.tolist() == [[1.0, 0.001]]


def test_a_word_of_a_measure_has_a_letter_or_a_digit():
    """Dashes and notes in rows of their own are words of no measure, so that rates of one name agree."""
    rows = words(
        ("A", "Hello", 0, 400), ("A", "\u2014", 500, 700), ("A", "\u266a", 800, 900), ("A", "you?", 1000, 1500)
    )
    rows = rows.assign(word_idx=range(4))
    labels = pd.DataFrame({"transcript_id": "t", "label": ["x"], "start_ms": [0], "end_ms": [2000]})
    for table in (talk_time(rows), delivery(rows), pace(rows), label_shares(labels, rows), questions(rows)):
        assert table["words"].tolist() == [2]
    assert delivery(rows)["words_per_minute"].tolist() == talk_time(rows)["words_per_minute"].tolist()
