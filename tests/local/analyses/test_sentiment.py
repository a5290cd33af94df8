"""Sentiment of sentences."""

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe.local.analyses.sentiment import judge, sentiment


def test_the_labelled_sentences_are_judged_right():
    """Nine of ten, and no sentiment far behind the others."""
    right, kinds = scores.score_sentiment()
    assert right >= 0.9
    assert min(kinds.values()) >= 0.85


def test_there_is_one_result_a_sentence_with_its_time_and_speaker():
    """In order, with the speaker's label, and the channel where there are channels."""
    said = labelled.sentences("I love it. It is Monday. I hate it.")
    said[0]["speaker"], said[1]["channel"] = "A", "2"
    results = sentiment(said)
    assert [r["sentiment"] for r in results] == ["POSITIVE", "NEUTRAL", "NEGATIVE"]
    assert [(r["text"], r["start"], r["end"]) for r in results] == [(s["text"], s["start"], s["end"]) for s in said]
    assert [r["speaker"] for r in results] == ["A", None, None]
    assert [r.get("channel") for r in results] == [None, "2", None]


@pytest.mark.parametrize("text", ["", "####", "I love it", "It is terrible, awful, horrible!", "Monday"])
def test_confidence_is_between_a_half_and_one(text):
    """Whatever the sentence."""
    assert 0.5 <= judge(text)[1] <= 1


def test_stronger_words_give_more_confidence():
    """Praise of three kinds is surer than "good"."""
    assert judge("It was wonderful, perfect and beautiful!")[1] > judge("It was good.")[1]
