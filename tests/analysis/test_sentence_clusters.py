"""Clusters of sentences and their typical words."""

import math

import numpy as np
import pytest

from voxframe.corpus.search.meaning import kmeans, typical_words


def test_typical_words_follow_the_published_formula():
    """Weights computed by hand: a is 4 words per cluster; "tree" is 2 of 5 words here and in no other cluster."""
    texts = ["tree tree rain leaf", "bill", "bill rain pay"]
    weights = {
        "tree": 2 / 5 * math.log(1 + 4 / 2),
        "bill": 1 / 5 * math.log(1 + 4 / 2),
        "rain": 1 / 5 * math.log(1 + 4 / 2),
        "leaf": 1 / 5 * math.log(1 + 4 / 1),
    }
    expected = sorted(weights, key=lambda word: (-weights[word], word))
    assert expected == ["tree", "leaf", "bill", "rain"]
    assert typical_words(texts, [0, 0, 1], clusters=2)[0] == expected
    assert typical_words(texts, [0, 0, 1], clusters=2)[1] == ["pay", "bill", "rain"]
    assert typical_words(["The tree isn't the tree of the 2020s."], [0], clusters=2) == [["tree"], []]


def test_clusters_are_the_groups_that_vectors_form():
    """Points around four directions are separated as they were made, the largest group first."""
    chance = np.random.default_rng(5)
    sizes = [40, 30, 20, 10]
    made = np.repeat(range(4), sizes)
    vectors = np.eye(8, dtype=np.float32)[made] + chance.normal(0, 0.1, (100, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = chance.permutation(100)
    labels, centres = kmeans(vectors[order], 4, seed=2)
    assert labels.tolist() == made[order].tolist()
    assert np.diag(centres @ np.eye(8)[:, :4]) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("clusters", "expected"), [(1, [0, 0, 0]), (3, [0, 0, 0])])
def test_equal_vectors_share_a_cluster(clusters, expected):
    """Equal sentences never fall into different clusters, even if there are more clusters than directions."""
    labels, _ = kmeans(np.tile(np.float32([0.6, 0.8]), (3, 1)), clusters)
    assert labels.tolist() == expected
