"""Select and quote the most representative sentences of a text. Nothing is rephrased."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxframe_engine.analyses.english_lexicon import STOPWORDS, content, rarity, stem, words_of
from voxframe_engine.analyses.key_phrases import key_phrases
from voxframe_engine.analyses.lexicon_scoring import clues, find_clues
from voxframe_engine.text.sentences import Sentence, joined

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
_LEADS_NOWHERE = re.compile(r"(?:it|they|he|she|this|that|these|those|yes|no|which|there)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:and|so|but|well|now|yeah|yes|no(?=,)|okay|ok|right|um|uh|oh|you know|i mean|i think|of course|finally|"
    r"again)\b,? )+",
    re.IGNORECASE,
)
_MANNERS = re.compile(
    r"(?:good (?:morning|evening|afternoon|night)|hello|hi|thanks?|welcome|goodbye|bye)\b", re.IGNORECASE
)
_SAME = 0.6  # cosine above which two sentences are near-duplicates
_HEADLINE = 110  # characters


def scores(texts: Sequence[str]) -> list[float]:
    """Score how representative each sentence is of all of them, lowered for sentences that are hard to quote."""
    whole = term_weights(joined([{"text": text} for text in texts]))
    values = []
    for text in texts:
        length = max(1, len(words_of(text)))
        value = sum(whole.get(term, 0.0) ** 0.5 for term in term_weights(text)) / length**0.5
        value *= 0.5 if text.rstrip().endswith("?") else 1.0
        value *= 0.85 if _LEADS_NOWHERE.match(text) else 1.0
        value *= 0.5 if length < 5 or _MANNERS.match(text) else 1.0
        values.append(value)
    greatest = max(values, default=0.0) or 1.0
    return [value / greatest + _EARLY * (1 - at / len(values)) for at, value in enumerate(values)]


def choose(texts: Sequence[str], count: int, values: Sequence[float] | None = None) -> list[int]:
    """Return the indexes of the sentences to quote, in order, without near-duplicates."""
    ranking = scores(texts) if values is None else values
    chosen: list[int] = []
    for at in sorted(range(len(texts)), key=lambda at: -ranking[at]):
        if len(chosen) == count:
            break
        one, *others = rows([texts[n] for n in (at, *chosen)], labels=False)
        if all(one @ other < _SAME for other in others):
            chosen.append(at)
    return sorted(chosen)


def quoted(text: str) -> str:
    """Return a sentence without its opening filler words.

    Example:
        >>> quoted("And so, well, the roots were broken.")
        'The roots were broken.'
    """
    rest = _OPENING.sub("", text.replace("so, well,", "so well,"))
    rest = rest or text
    return rest[:1].upper() + rest[1:]


def headline(texts: Sequence[str], values: Sequence[float] | None = None) -> str:
    """Return the most representative short sentence, without its full stop."""
    if not texts:
        return ""
    ranking = scores(texts) if values is None else values
    values = [value * (1.0 if len(text) <= _HEADLINE else 0.6) for value, text in zip(ranking, texts, strict=True)]
    best = quoted(texts[max(range(len(texts)), key=values.__getitem__)])
    if len(best) > _HEADLINE:
        best = best[:_HEADLINE].rpartition(" ")[0].rstrip(",;:") + "..."
    return best.rstrip(".")


def gist(sentences: Sequence[Sentence]) -> str:
    """Return the two best key phrases, or the beginning of the headline if there are none."""
    phrases = [result["text"] for result in key_phrases(sentences)["results"]]
    if not phrases:
        return " ".join(headline([sentence["text"] for sentence in sentences]).split()[:6])
    other = next((phrase for phrase in phrases[1:] if set(content(phrase)).isdisjoint(content(phrases[0]))), None)
    text = phrases[0] if other is None else f"{phrases[0]} and {other}"
    return text[:1].upper() + text[1:]
