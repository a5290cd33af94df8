"""What sentences are about, as rows of numbers that can be compared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxframe.local.analyses.english import STOPWORDS, rarity, stem, words_of
from voxframe.local.analyses.evidence import clues, heard

Matrix = NDArray[np.float64]

_COMMON = 2.5  # rarity of words that tell nothing
_LABEL = 1.5  # what a word counts for the topic that it speaks for, beside counting for itself


def term_weights(text: str) -> dict[str, float]:
    """Stems of the words that carry a subject, with how often they come times how rare they are."""
    weights: defaultdict[str, float] = defaultdict(float)
    for word in words_of(text):
        if word not in STOPWORDS and len(word) > 2:
            weights[stem(word)] += max(0.0, rarity(word) - _COMMON)
    return weights


def rows(texts: Sequence[str], *, labels: bool = True) -> Matrix:
    """One row a text, of unit length (or zeros): its terms and, with `labels`, the topics its words speak for.

    Topics make sentences alike that share no word: "tomato" and "compost" both speak of gardens.
    """
    described = []
    for text in texts:
        weights = dict(term_weights(text))
        for _, speaking in heard(text, clues("topics.txt")) if labels else ():
            for clue in speaking:
                name = f"#{clue.label.split('>')[0]}"
                amount = _LABEL * (2.0 if clue.sign == "!" else 1 / math.sqrt(len(speaking)))
                weights[name] = weights.get(name, 0.0) + amount
        described.append(weights)
    places = {name: at for at, name in enumerate(dict.fromkeys(name for weights in described for name in weights))}
    matrix = np.zeros((len(texts), max(1, len(places))))
    for at, weights in enumerate(described):
        for name, amount in weights.items():
            matrix[at, places[name]] = amount
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = matrix / np.where(lengths == 0, 1.0, lengths)
    return unit
