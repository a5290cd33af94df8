"""Topics of passages."""

import hashlib

import numpy as np
import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe.errors import MissingExtraError
from voxframe.local.analyses import semantic
from voxframe.local.analyses.topics import FLOOR, custom_topics, topics

BREAD = "You mix rye flour and water and let the dough sit overnight. The oven has to be hot when the bread goes in."


@pytest.mark.parametrize("half", labelled.HALVES)
def test_the_labelled_passages_get_their_topic_first(half):
    """And where no topic can be given, none is."""
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


def encode(texts):
    """Bags of words as vectors: enough of an encoder to see that one is used."""
    rows = np.zeros((len(texts), 512), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(",", " ").split():
            row[int(hashlib.md5(word.encode()).hexdigest(), 16) % 512] = 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_embeddings_take_the_place_of_words_where_there_are_any():
    """Passages and topics go through the encoder, and cosines become relevances."""
    seen = []

    def watched(texts):
        seen.extend(texts)
        return encode(texts)

    said = labelled.sentences("zebra quagga okapi")
    result = custom_topics(said, ["zebra quagga okapi", "bread"], watched)
    assert "zebra quagga okapi" in seen
    assert set(result["summary"]) == {"zebra quagga okapi"}
    assert custom_topics(said, ["bread"])["summary"] == {}


def test_a_semantic_model_without_its_extra_is_a_clear_error(monkeypatch):
    """Named in the environment, but not installed; unset, words do the work."""
    monkeypatch.delenv(semantic.VARIABLE, raising=False)
    assert semantic.encoder() is None
    monkeypatch.setenv(semantic.VARIABLE, "no-such-model")
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="semantic"):
        semantic.encoder()
