"""Select and quote the most representative sentences of a text. Nothing is rephrased."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxframe_engine.analyses.english_lexicon import STOPWORDS, nounness, rarity, stem, words_of
from voxframe_engine.analyses.lexicon_scoring import clues, find_clues
from voxframe_engine.text.sentences import joined

Matrix = NDArray[np.float64]

_COMMON = 2.5  # words up to this rarity have no weight
_LABEL = 1.5  # weight of a word for the topic that it indicates


def term_weights(text: str) -> dict[str, float]:
    """Return the stems of content words, weighted by frequency times rarity."""
    weights: defaultdict[str, float] = defaultdict(float)
    for word in words_of(text):
        if word not in STOPWORDS and len(word) > 2:
            weights[stem(word)] += max(0.0, rarity(word) - _COMMON)
    return weights


def rows(texts: Sequence[str], *, labels: bool = True) -> Matrix:
    """Return one vector per text, of unit length or zero: its terms and, with `labels`, the topics they indicate.

    Topics make sentences similar that share no word: "tomato" and "compost" both indicate gardening.
    """
    described = []
    for text in texts:
        weights = dict(term_weights(text))
        for _, matching in find_clues(text, clues("topics.txt")) if labels else ():
            for clue in matching:
                name = f"#{clue.label.split('>')[0]}"
                amount = _LABEL * (2.0 if clue.sign == "!" else 1 / math.sqrt(len(matching)))
                weights[name] = weights.get(name, 0.0) + amount
        described.append(weights)
    columns = {name: at for at, name in enumerate(dict.fromkeys(name for weights in described for name in weights))}
    matrix = np.zeros((len(texts), max(1, len(columns))))
    for at, weights in enumerate(described):
        for name, amount in weights.items():
            matrix[at, columns[name]] = amount
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = matrix / np.where(lengths == 0, 1.0, lengths)
    return unit


_EARLY = 0.6  # bonus of the first sentence, decreasing to 0; the words give up to 1
_FILLED = 0.7  # factor for each filler within a sentence
_OPENING = re.compile(
    r"^(?:(?:and|so|but|well|now|yeah|yes|no(?=,)|okay|ok|right|um|uh|oh|hey|like(?=,)|you know|i mean|i think|"
    r"of course|finally|again|basically|anyway|actually)\b,? )+",
    re.IGNORECASE,
)
_MANNERS = re.compile(
    r"(?:good (?:morning|evening|afternoon|night)|hello|hi|thanks?|welcome|goodbye|bye)\b", re.IGNORECASE
)
#: Words that stand for something said before, if no noun is before them in the sentence.
_REFERS = frozenset(
    """
    it it's its it'll they they're they'd they've they'll them their he he's he'd he'll him his she she's she'd she'll
    her this those these both neither ones such same
    """.split()
)
#: Words that stand for something said before if a sentence begins with them.
_GOES_ON = frozenset(
    "that that's that'd that'll which because then than otherwise therefore instead especially except".split()
)
_FILLER = re.compile(
    r"\b(?:um+|uh+|er+m?|you know|i mean|i don't know|kind of|sort of|or something|or whatever)\b"
    r"|, like\b|\blike,|\b(\w+),? \1\b",
    re.IGNORECASE,
)
_SHORTEST = 4  # words
#: Words that cannot end a sentence: it was cut.
_HANGING = frozenset("the a an my your our their and or but because if than whether although as of".split())
_SAME = 0.6  # cosine above which two sentences are near-duplicates


def stands_alone(text: str) -> bool:
    """Return True for a whole statement that needs nothing of what came before it.

    Example:
        >>> stands_alone("The roots were broken."), stands_alone("They were broken."), stands_alone("The roots were,")
        (True, False, False)
    """
    quote = quoted(text)
    words = words_of(quote)
    if quote.endswith("?") or not is_whole(quote):
        return False
    refers = next((at for at, word in enumerate(words) if word in _REFERS), len(words))
    named = next((at for at, word in enumerate(words) if word not in STOPWORDS and nounness(word) > 0), len(words))
    return named < refers and words[0] not in _GOES_ON and not _FILLER.match(quote)


def is_whole(text: str) -> bool:
    """Return True for a sentence of several words, without fillers, that was not cut off."""
    words = words_of(_FILLER.sub("", text))
    ends = text.endswith((".", "?", "!")) and not text.endswith("..")
    return ends and len(words) >= _SHORTEST and words[-1] not in _HANGING


def scores(texts: Sequence[str]) -> list[float]:
    """Score how representative each sentence is of all of them, lowered for sentences that are hard to quote."""
    weights = term_weights(joined([{"text": text} for text in texts]))
    values = []
    for text in texts:
        length = max(1, len(words_of(text)))
        value = sum(weights.get(term, 0.0) ** 0.5 for term in term_weights(text)) / length**0.5
        value *= 0.5 if length < 5 or _MANNERS.match(text) else 1.0
        value *= _FILLED ** len(_FILLER.findall(quoted(text)))
        values.append(value)
    greatest = max(values, default=0.0) or 1.0
    return [value / greatest + _EARLY * (1 - at / len(values)) for at, value in enumerate(values)]


def choose(texts: Sequence[str], count: int, values: Sequence[float] | None = None) -> list[int]:
    """Return the indexes of the sentences to quote, in order, without near-duplicates.

    Sentences that do not stand alone are left out, even if fewer than `count` are left.
    """
    ranking = scores(texts) if values is None else values
    selected: list[int] = []
    for at in sorted(filter(lambda at: stands_alone(texts[at]), range(len(texts))), key=lambda at: -ranking[at]):
        if len(selected) == count:
            break
        vector, *neighbours = rows([texts[n] for n in (at, *selected)], labels=False)
        if all(vector @ other < _SAME for other in neighbours):
            selected.append(at)
    return sorted(selected)


def quoted(text: str) -> str:
    """Return a sentence without its opening filler words.

    Example:
        >>> quoted("And so, well, the roots were broken.")
        'The roots were broken.'
    """
    remaining = _OPENING.sub("", text.replace("so, well,", "so well,"))
    remaining = remaining or text
    return remaining[:1].upper() + remaining[1:]
