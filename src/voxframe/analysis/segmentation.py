"""Words in scripts without spaces: Chinese, Japanese, Thai, Lao, Khmer and Burmese.

With the extra `scripts`, a word is what ICU finds with its dictionaries; without it, a character with its vowel signs
and tone marks. Searches find characters in both cases, so that any string inside a text is found.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from voxframe._text import is_unspaced, join_words, pieces
from voxframe.analysis.search_terms import fold

#: Name of the segmentation, which the search index stores.
SEGMENTATION = "icu" if find_spec("icu4py") else "characters"


def continued(texts: Sequence[str], runs: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the positions of tokens that continue the word of the token before, among the tokens of all texts.

    Args:
        texts: Texts in order, such as the words of a table. Their tokens are those of `search_terms.spoken`.
        runs: Recording, speaker and the like of each. A word may go on in the next text of the same run.

    Example:
        >>> continued(["今", "天", "很好"], [0, 0, 0]).tolist()
        [1, 3]
    """
    if SEGMENTATION != "icu":
        return np.empty(0, np.int64)
    found, size = list[int](), 0
    for _, run in groupby(zip(texts, runs, strict=True), key=lambda pair: pair[1]):
        rows = [unicodedata.normalize("NFKC", text) for text, _ in run]
        whole = join_words(rows)
        starts, at = _starts(whole), 0
        for piece in (piece for row in rows for word in row.split() for piece in pieces(word)):
            at = whole.index(piece, at)
            if fold(piece):
                if at not in starts and is_unspaced(piece):
                    found.append(size)
                size += 1
            at += len(piece)
    return np.array(found, np.int64)


def _starts(text: str) -> set[int]:
    """Return where words begin."""
    from icu4py.breakers import WordBreaker  # an extra, whose data are 40 MB

    return {0, *accumulate(map(len, WordBreaker(text, "und")))}
