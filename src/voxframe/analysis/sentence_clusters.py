"""Clusters of sentences by meaning, and the words that are typical of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from voxframe._text import FUNCTION_WORDS

_Vectors = npt.NDArray[np.float32]
_Labels = npt.NDArray[np.int64]
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*[^\W_]")  # at least two characters
_ROUNDS = 30
_SAMPLE = 20_000  # sentences from which the first centres are drawn

#: English words that say nothing about the subject of a sentence.
IGNORED = FUNCTION_WORDS | frozenset(
    "ain aren come couldn didn doesn don hadn hasn haven isn please shouldn uh um wasn weren won wouldn".split()
)


def kmeans(vectors: _Vectors, clusters: int, seed: int = 0) -> tuple[_Labels, _Vectors]:
    """Group vectors by their direction (spherical k-means).

    Source: I. Dhillon and D. Modha, "Concept decompositions for large sparse text data using clustering", Machine
    Learning 42, 2001. The first centres are drawn with k-means++ (D. Arthur and S. Vassilvitskii, SODA 2007). The same
    input and seed give the same clusters.

    Args:
        vectors: Array of shape (n, d), float32, each row of length 1.
        clusters: Number of clusters, from 1 to n.
        seed: Seed of the random numbers.

    Returns:
        The cluster of each vector, int64 of shape (n,), the largest cluster first; and the centres, float32 of shape
        (clusters, d), each of length 1. With several equal vectors, some clusters can be empty.

    Example:
        >>> directions = np.array([[1, 0], [0, 1], [0.6, 0.8], [0, 1]], np.float32)
        >>> kmeans(directions, 2)[0].tolist()
        [1, 0, 0, 0]
    """
    chance = np.random.default_rng(seed)
    centres = _first_centres(vectors, clusters, chance)
    labels = np.full(len(vectors), -1, np.int64)
    for _ in range(_ROUNDS):
        new = (vectors @ centres.T).argmax(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
        order = np.argsort(labels, kind="stable")
        used, first = np.unique(labels[order], return_index=True)
        sums = np.add.reduceat(vectors[order], first, axis=0)
        centres[used] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    by_size = np.argsort(-np.bincount(labels, minlength=clusters), kind="stable")
    rank = np.empty(clusters, np.int64)
    rank[by_size] = np.arange(clusters)
    return rank[labels], centres[by_size]


def _first_centres(vectors: _Vectors, clusters: int, chance: np.random.Generator) -> _Vectors:
    some = vectors if len(vectors) <= _SAMPLE else vectors[np.sort(chance.choice(len(vectors), _SAMPLE, replace=False))]
    chosen = [int(chance.integers(len(some)))]
    distance = np.full(len(some), np.inf)
    for _ in range(1, clusters):
        # Of vectors of length 1, the squared distance is 2 - 2 cos.
        distance = np.minimum(distance, np.maximum(1 - some @ some[chosen[-1]], 0).astype(np.float64))
        total = distance.sum()
        chosen.append(int(np.searchsorted(np.cumsum(distance), chance.random() * total, "right")) if total else 0)
    return some[np.minimum(chosen, len(some) - 1)].copy()


def typical_words(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    *,
    clusters: int,
    words: int = 10,
    ignore: Collection[str] = IGNORED,
) -> list[list[str]]:
    """Return the words that are typical of each cluster, by class-based TF-IDF.

    The weight of a word in a cluster is tf / n * log(1 + a / f): tf counts the word in the cluster, n counts all words
    of the cluster, f counts the word in all clusters, and a is the mean number of words per cluster. Source: M.
    Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", arXiv:2203.05794, 2022.

    Args:
        texts: The sentences.
        labels: Cluster of each sentence, 0 or more.
        clusters: Number of clusters.
        words: Maximum number of words per cluster.
        ignore: Words to leave out, in lower case. The default is a list of English function words.

    Returns:
        For each cluster its words, the most typical first. Words of equal weight are in alphabetical order.

    Example:
        >>> typical_words(["Trees need rain.", "The trees are old.", "Pay the bill."], [0, 0, 1], clusters=2, words=2)
        [['trees', 'need'], ['bill', 'pay']]
    """
    counts: list[Counter[str]] = [Counter() for _ in range(clusters)]
    for text, label in zip(texts, np.asarray(labels).tolist(), strict=True):
        found = (word.replace("\u2019", "'") for word in _WORD.findall(text.lower()))
        counts[label].update(word for word in found if word.partition("'")[0] not in ignore)
    everywhere = sum(counts, Counter[str]())
    mean = everywhere.total() / max(1, clusters)
    weights = [
        {word: n / count.total() * np.log1p(mean / everywhere[word]) for word, n in count.items()} for count in counts
    ]
    return [sorted(weight, key=lambda word: (-weight[word], word))[:words] for weight in weights]
