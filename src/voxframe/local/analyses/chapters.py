"""Chapters: where the subject changes, with gist, headline and summary.

Method: sentences become rows of terms and topics (`features`); of all ways to cut the transcript the one is taken whose
chapters hold together best, each cut at a price that is lower where the speaker announces something new ("let us talk
about money"). Gist, headline and summary are quoted from the chapter, never written anew.

Quality: Pk 0.00 (0 is best, a coin gives 0.5) on 30 held-out texts put together of sections of talks, where equal
lengths, told how many, gave 0.18. On 30 of talks of another hand: Pk 0.19, two of three changes found, nine cuts of ten
right; equal lengths gave 0.25. Weak at: talk that drifts from one thing to the next, and subjects whose
words the lists do not know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from voxframe.local.analyses.extract import choose, gist, headline, quoted
from voxframe.local.analyses.features import Matrix, rows
from voxframe.local.analyses.passages import Sentence, spanned

_SHORTEST = 4  # sentences
_PRICE, _ANNOUNCED = 0.3, -0.2  # of a chapter; one that is announced is worth something by itself
_MOST_UNITS = 1200  # more sentences than that are taken two or three at a time: the work grows with the square
_ANNOUNCES = re.compile(
    r"^(?:(?:and|so|but|well|now|okay|right|then),? )*(?:let us|let's|we will|we'll|i want to|i'd like to) (?:now )?"
    r"(?:talk about|turn to|move on|move to|come to|speak about|start with|switch to)\b"
    r"|^(?:moving on|turning to|next up|(?:the|our) next (?:question|topic|point|guest)|another (?:question|topic))\b",
    re.IGNORECASE,
)


def chapters(sentences: Sequence[Sentence]) -> list[dict[str, Any]]:
    """`chapters` of the wire, in order; together they span all sentences."""
    bounds = [0, *boundaries([sentence["text"] for sentence in sentences]), len(sentences)]
    made = []
    for first, last in pairwise(bounds):
        part = sentences[first:last]
        texts = [sentence["text"] for sentence in part]
        if not texts:
            continue
        told = choose(texts, min(4, 1 + len(texts) // 4))
        made.append(
            {
                "summary": " ".join(quoted(texts[at]) for at in told),
                "gist": gist(part),
                "headline": headline(texts),
                **spanned(part),
            }
        )
    return made


def boundaries(texts: Sequence[str]) -> list[int]:
    """Places of the sentences that begin a new chapter; the first sentence is not among them."""
    size = -(-len(texts) // _MOST_UNITS) or 1
    units = [" ".join(texts[at : at + size]) for at in range(0, len(texts), size)]
    prices = np.array([_ANNOUNCED if _ANNOUNCES.search(unit) else _PRICE for unit in units])
    return [at * size for at in _cut(rows(units), prices)]


def _cut(matrix: Matrix, prices: Matrix) -> list[int]:
    """The best cuts, by dynamic programming over where the last chapter begins.

    A chapter of n rows is worth the mean, over its rows, of how alike a row is to all others in it.
    """
    count = len(matrix)
    alike = np.zeros((count + 1, count + 1))
    alike[1:, 1:] = (matrix @ matrix.T).cumsum(axis=0).cumsum(axis=1)
    corners = alike.diagonal()
    best = np.full(count + 1, -np.inf)
    best[0] = 0.0
    before = np.zeros(count + 1, np.int64)
    for end in range(_SHORTEST, count + 1):
        starts = np.arange(0, end - _SHORTEST + 1)
        lengths = end - starts
        inside = corners[end] - 2 * alike[starts, end] + corners[starts]
        values = best[starts] + inside / lengths - 1 - prices[starts]
        before[end] = starts[np.argmax(values)]
        best[end] = values[before[end] - starts[0]]
    cuts, end = [], count
    while end > 0:
        end = int(before[end])
        cuts.append(end)
    return [cut for cut in reversed(cuts) if cut]
