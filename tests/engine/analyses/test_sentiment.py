"""Sentiment of sentences."""

import re
import statistics

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe import encoder
from voxframe_engine.analyses.lexicon import judge, sentiment


def test_sentiment_goes_by_meaning():
    """With the encoder, four of five sentences that were only scored are right, also by other authors."""
    for name in ("sentiment_meaning.txt", "sentiment_fresh.txt", "sentiment_spoken.txt"):
        assert scores.score_sentiment(name, encoder.load())[0] >= 0.8
    assert judge(["I can't thank you enough."], encoder.load())[0][0] == "POSITIVE"


def test_small_talk_and_cut_sentences_are_neutral():
    """Greetings, answers of a few words and cut sentences are neutral in nine of ten cases."""
    judged = judge(list(labelled.lines("small_talk.txt")), encoder.load())
    assert statistics.mean(label == "NEUTRAL" for label, _ in judged) >= 0.9


def test_results_do_not_depend_on_the_encoder():
    """The fields are the same with and without the encoder; a transcript without sentences has no results."""
    said = labelled.sentences("I love it. It is Monday. I hate it.")
    assert [r["sentiment"] for r in sentiment(said, encoder.load())] == ["POSITIVE", "NEUTRAL", "NEGATIVE"]
    assert [r.keys() for r in sentiment(said, encoder.load())] == [r.keys() for r in sentiment(said)]
    assert sentiment([], encoder.load()) == []


def test_the_labelled_sentences_are_judged_right():
    """Without the encoder: nine of ten, and no sentiment far behind the others."""
    right, kinds = scores.score_sentiment()
    assert right >= 0.9
    assert min(kinds.values()) >= 0.85


def test_there_is_one_result_a_sentence_with_its_time_and_speaker():
    """There is one result per sentence, in order, with its speaker, and with its channel if channels are separate."""
    said = labelled.sentences("I love it. It is Monday. I hate it.")
    said[0]["speaker"], said[1]["channel"] = "A", "2"
    results = sentiment(said)
    assert [r["sentiment"] for r in results] == ["POSITIVE", "NEUTRAL", "NEGATIVE"]
    assert [(r["text"], r["start"], r["end"]) for r in results] == [(s["text"], s["start"], s["end"]) for s in said]
    assert [r["speaker"] for r in results] == ["A", None, None]
    assert [r.get("channel") for r in results] == [None, "2", None]


@pytest.mark.parametrize("text", ["", "####", "I love it", "It is terrible, awful, horrible!", "Monday"])
def test_confidence_is_between_a_half_and_one(text):
    """Confidence is between 0.5 and 1 for any sentence."""
    assert 0.5 <= judge([text])[0][1] <= 1


def test_stronger_words_give_more_confidence():
    """Praise of three kinds is surer than "good"."""
    (_, more), (_, less) = judge(["It was wonderful, perfect and beautiful!", "It was good."])
    assert more > less


def test_no_sentence_is_scored_that_the_classifier_was_trained_with():
    """A training sentence shares less than 60 % of its words with any sentence that is only scored."""

    def words(row):
        return set(re.findall(r"[a-z']+", row[2:].lower()))

    names = ("sentiment_meaning", "sentiment_fresh", "sentiment_spoken")
    scored = [words(row) for name in names for row in labelled.lines(f"{name}.txt")]
    trained = [words(row) for name in ("", "_spoken") for row in labelled.lines(f"sentiment{name}_training.txt")]
    assert max(len(a & b) / len(a | b) for a in trained for b in scored) < 0.6
