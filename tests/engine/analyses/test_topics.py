"""Topics of passages."""

import statistics

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled, meaning

from voxframe import encoder
from voxframe_engine.analyses.labels import CLEAR, FLOOR, custom_relevances, taxonomy_relevances, topics

BREAD = "You mix rye flour and water and let the dough sit overnight. The oven has to be hot when the bread goes in."


@pytest.mark.parametrize("half", labelled.HALVES)
def test_the_labelled_passages_get_their_topic_first(half):
    """Labelled passages get their topic first; passages without a topic get none."""
    first, level, empty = scores.score_topics(half)
    assert first >= 0.9
    assert level >= 0.95
    assert empty == 1


@pytest.mark.parametrize("half", labelled.HALVES)
def test_topics_of_ones_own_are_found_in_the_passages_about_them(half):
    """And hardly anywhere else."""
    assert scores.score_custom_topics(half).f1 >= 0.85


def test_labels_are_hierarchical_with_relevances_above_the_floor():
    """The label above a label is relevant too; the summary's greatest is 1."""
    result = topics(labelled.sentences(BREAD))
    assert result["status"] == "success"
    (passage,) = result["results"]
    labels = {label["label"]: label["relevance"] for label in passage["labels"]}
    assert {"Food&Drink", "Food&Drink>Cooking"} <= set(labels)
    assert all(FLOOR <= relevance <= 1 for relevance in labels.values())
    assert list(labels.values()) == sorted(labels.values(), reverse=True)
    assert passage["timestamp"] == {"start": 0, "end": labelled.words(BREAD)[-1]["end"]}
    assert max(result["summary"].values()) == 1
    assert set(result["summary"]) == set(labels)


def test_passages_are_whole_sentences_of_about_half_a_minute():
    """Together they are the whole text."""
    text = " ".join(sentence for part in labelled.talks("dev")[0].sections for sentence in part.sentences)
    results = topics(labelled.sentences(text))["results"]
    assert " ".join(result["text"] for result in results) == text
    assert all(result["timestamp"]["end"] - result["timestamp"]["start"] <= 30_000 for result in results)
    assert len(results) >= 3


def test_one_word_that_may_mean_anything_is_not_enough():
    """A goal alone is no sport."""
    assert topics(labelled.sentences("That is our goal."))["summary"] == {}


def test_a_shared_word_is_no_topic():
    """Tick the box, due date and Procter and Gamble are not about boxing, dating and gambling."""
    texts = ["Please tick the box.", "The due date is Friday.", "Procter and Gamble raised its prices."]
    names = ["boxing", "dating", "gambling"]
    for found in custom_relevances(texts, names, encoder.load()):
        assert max(found.values()) < FLOOR
    for label in ("Sports>Boxing", "FamilyAndRelationships>Dating"):
        assert all(found.get(label, 0.0) < FLOOR for found in taxonomy_relevances(texts, encoder.load()))


@pytest.mark.parametrize("coder", [None, "encoder"])
def test_one_word_is_never_fully_relevant(coder):
    """A text of one word has a relevance of at most a half."""
    coder = coder and encoder.load()
    for found in (*taxonomy_relevances(["Boxing"], coder), *custom_relevances(["Boxing"], ["boxing"], coder)):
        assert found
        assert max(found.values()) <= 0.5


def test_deeper_labels_are_closer_than_the_first_level():
    """A passage about sculptures is Fine Art, and not Opera: of the deeper labels, at least 70 % are right."""
    rows = [row for half in (*labelled.HALVES, labelled.FRESH) for row in labelled.halved("topics.txt", half)]
    right = []
    for (labels, _), found in zip(rows, taxonomy_relevances([text for _, text in rows], encoder.load()), strict=True):
        gold = labels.split(",")
        deeper = [label for label, value in found.items() if ">" in label and value >= FLOOR]
        right += [any(f"{one}>".startswith(f"{label}>") for one in gold) for label in deeper]
    assert statistics.mean(right) >= 0.7


def test_topics_go_by_meaning():
    """With the encoder, the first level of labelled passages that were only scored is right for 85 percent."""
    level, empty = meaning.score_levels("held", encoder.load())
    assert level >= 0.85
    assert empty == 1
    assert meaning.score_custom("held", encoder.load()).f1 >= 0.7


def test_spoken_passages_get_their_topic_first():
    """Of forty spoken passages that were only scored, four of five get their topic first; small talk gets none."""
    right, empty = meaning.score_levels("spoken", encoder.load())
    assert right >= 0.8
    assert empty == 1


def test_at_most_three_topics_unless_they_are_clear():
    """A passage has more than three labels only if each of them is clearly relevant."""
    texts = [line.split(" | ")[1] for line in labelled.lines("topics_spoken.txt")]
    for passage in topics(labelled.sentences(" ".join(texts)), encoder.load())["results"]:
        assert all(label["relevance"] >= CLEAR for label in passage["labels"][3:])
