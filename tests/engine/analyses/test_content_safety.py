"""Content safety of passages."""

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled, meaning

from voxframe import encoder
from voxframe_engine.analyses.labels import content_safety, judge

FIRE = "Smoke from the wildfires covered the valley. Thousands were evacuated before the fire reached the town."
WINE = "We had a bottle of wine."


@pytest.mark.parametrize("half", labelled.HALVES)
def test_the_labelled_passages_get_their_label(half):
    """And harmless ones hardly ever get any."""
    score = scores.score_safety(half)
    assert score.precision >= 0.9
    assert score.recall >= 0.9


def test_content_safety_goes_by_meaning():
    """With the encoder, one in twenty ordinary texts gets a label at most, and nine of ten unsafe ones get one."""
    false, found, right = meaning.score_unsafe("held", encoder.load())
    assert false <= 0.05
    assert found >= 0.9
    assert right >= 0.85
    assert judge([["She shoots portraits."]], encoder.load())[0][0]["confidence"] < 0.5
    assert content_safety([], encoder=encoder.load())["results"] == []


def test_the_threshold_is_in_percent():
    """Labels below the threshold are left out; the default is 50."""
    confidence = next(one["confidence"] for one in judge([[WINE]])[0] if one["label"] == "alcohol")
    below, above = int(confidence * 100), int(confidence * 100) + 1
    said = labelled.sentences(WINE)
    assert set(content_safety(said, {"content_safety_confidence": below})["summary"]) == {"alcohol"}
    assert content_safety(said, {"content_safety_confidence": above})["results"] == []
    assert content_safety(said) == content_safety(said, {"content_safety_confidence": 50})


def test_results_name_their_sentences_and_summarise_severities():
    """Passages without a label are left out; shares of low, medium and high sum to 1."""
    calm = "Nothing of the kind is to be heard in this sentence about a walk along the river. " * 5
    said = labelled.sentences(calm + FIRE)
    result = content_safety(said)
    (passage,) = result["results"]
    first, last = passage["sentences_idx_start"], passage["sentences_idx_end"]
    assert passage["text"] == " ".join(sentence["text"] for sentence in said[first : last + 1])
    assert passage["timestamp"] == {"start": said[first]["start"], "end": said[last]["end"]}
    assert last == len(said) - 1
    assert 0 < result["summary"]["disasters"] <= 1
    assert set(result["severity_score_summary"]["disasters"]) == {"low", "medium", "high"}
    assert sum(result["severity_score_summary"]["disasters"].values()) == pytest.approx(1)


def test_worse_things_are_more_severe():
    """A glass of wine is not alcoholism."""

    def severity(text):
        return next(one["severity"] for one in judge([[text]])[0] if one["label"] == "alcohol")

    assert severity("He is an alcoholic and goes from one binge drinking night to the next.") > severity(WINE)


def test_masked_profanity_is_profanity():
    """Words masked by the filter still count as profanity."""
    assert [one["label"] for one in judge([["What the f*** is this?"]])[0]] == ["profanity"]


def test_acute_symptoms_are_health_issues():
    """Callers and patients who cannot breathe or collapse are health_issues; similar talk is not."""
    ill, well = meaning.score_patients(encoder.load())
    assert ill >= 0.85
    assert well >= 0.95
