"""Labels of a text: by word lists that indicate them, and by classifiers on the sentence vectors of `voxframe.encoder`.

A classifier is a multinomial logistic regression, fitted on sentences that were written for this project. The weights
are in `weights.npz`; `python -m tests.benchmarks train` writes them from the sentences in
tests/engine/analyses/labelled.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe.encoder import Vectors
from voxframe_engine.analyses.english_lexicon import stem, words_of


class Clue(NamedTuple):
    """A word or phrase that indicates a label.

    Attributes:
        label: Text before the colon in the file: the label, and for content safety its severity.
        sign: "!" if one occurrence suffices, "?" if it counts only beside other words, else empty.
    """

    label: str
    sign: str


_LONGEST = 3  # words of a clue
#: Clues by their stems.
Clues = Mapping[tuple[str, ...], tuple[Clue, ...]]


@cache
def clues(file: str) -> Clues:
    """Read a file with lines of the form `label: word, !word, ?word phrase`."""
    by_word: dict[tuple[str, ...], tuple[Clue, ...]] = {}
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        label, colon, listed = line.partition(": ")
        if line.startswith("#") or not colon:
            continue
        for entry in listed.split(","):
            term = entry.strip()
            sign = term[0] if term[0] in "!?" else ""
            key = stems(term.removeprefix(sign))
            by_word[key] = (*by_word.get(key, ()), Clue(label, sign))
    return by_word


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of all words of a text."""
    return tuple(stem(word) for word in words_of(text))


def find_clues(text: str, listed: Clues) -> Iterator[tuple[tuple[str, ...], tuple[Clue, ...]]]:
    """Yield every match in a text, the longest at each position, repeated matches included."""
    parts = stems(text)
    at = 0
    while at < len(parts):
        for length in range(min(_LONGEST, len(parts) - at), 0, -1):
            key = parts[at : at + length]
            if key in listed:
                yield key, listed[key]
                at += length - 1
                break
        at += 1


def ancestors(label: str) -> Iterable[str]:
    """Return the ancestors of a hierarchical label.

    Example:
        >>> list(ancestors("Sports>Soccer"))
        ['Sports']
    """
    levels = label.split(">")
    return (">".join(levels[:depth]) for depth in range(1, len(levels)))


#: Constant column beside the vectors.
BIAS = 0.3
#: Mean length of the vectors of words: classifiers of words are trained with vectors divided by it.
WORD_SCALE = 7.4
_FILE = "weights.npz"


class Classifier(NamedTuple):
    """A classifier of sentence vectors.

    Attributes:
        weights: One row per column of the vectors and one for the constant; one column per label.
    """

    labels: Sequence[str]
    weights: NDArray[Any]

    def probabilities(self, vectors: Vectors) -> NDArray[np.float64]:
        """Return the probability of each label, one row per vector."""
        scores = vectors.astype(np.float64) @ self.weights[:-1] + BIAS * self.weights[-1]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return shares


@cache
def classifier(name: str) -> Classifier:
    """Return a classifier: "topics", "sentiment", "safety", "parts" (of speech) or "names"."""
    stored = _stored()
    return Classifier([str(label) for label in stored[f"{name}_labels"]], stored[name].astype(np.float64))


@cache
def label_vectors() -> tuple[Sequence[str], Vectors]:
    """Return the labels of the taxonomy, and one vector per label."""
    stored = _stored()
    return [str(label) for label in stored["taxonomy_labels"]], stored["taxonomy"].astype(np.float32)


@cache
def _stored() -> Mapping[str, NDArray[Any]]:
    with np.load(io.BytesIO(files(__package__).joinpath(_FILE).read_bytes())) as archive:
        return dict(archive)
