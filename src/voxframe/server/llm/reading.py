"""Sentences that a reader's short answer comes from, so that they can be quoted."""

from __future__ import annotations

import re

import numpy as np

from voxframe.reader import Reader
from voxframe.server.analyses.entities.text import DIGIT, DIGITS, TEENS, TENS, digits_of
from voxframe.server.llm.bm25 import BM25Index, BM25Match, Scores, terms

_MOST_READ, _MOST_WORDS = 48, 1000  # sentences, and the words in them
_LEAST_SUPPORT = 0.5  # share of an answer that is in one sentence
_ASKED = 0.3  # weight of words that the question has, too
_BY_CLOSENESS = 0.5  # weight of closeness to the question among sentences with equal support
_QUESTION = 0.5  # factor for sentences that are questions
_NUMBER = re.compile(rf"{DIGITS}|\b(?:{DIGIT}|{TENS}|{TEENS}|\d+)\b")


def read(index: BM25Index, reader: Reader, question: str, scores: Scores) -> list[BM25Match] | None:
    """Return the sentence that a reader takes its answer from.

    Args:
        index: The sentences.
        reader: The reader.
        question: The question.
        scores: Closeness of each sentence to an answer. Of a long text, the reader sees the closest sentences.

    Returns:
        One sentence; none if the text does not answer the question; None if the answer has no word to go by ("Yes").
    """
    places = _passage(index, scores)
    said = reader.answer([index.lines[place].text for place in places], question)
    words, asked = _content(said), _content(question)
    if not words:
        return None if said else []
    if words <= asked:  # it repeats the question
        return []
    weights = {word: index.weight(word) * (_ASKED if word in asked else 1.0) for word in words}
    support = np.zeros(len(index.lines))
    for place in places:
        support[place] = sum(weights[word] for word in words & _content(index.lines[place].text))
    support /= sum(weights.values())
    if support.max() < _LEAST_SUPPORT:  # the words are not from the text
        return []
    closeness = scores / (scores.max() or 1.0)
    return index.best(np.where(index.is_question, _QUESTION, 1.0) * support * (1 + _BY_CLOSENESS * closeness), 1)


def _content(text: str) -> set[str]:
    """Return the stems and numbers of a text; "twenty-two" is the number 22."""
    low = text.lower()
    return {*terms(_NUMBER.sub(" ", low)), *(digits_of(number[0]) for number in _NUMBER.finditer(low))}


def _passage(index: BM25Index, scores: Scores) -> list[int]:
    """Return the places of the closest sentences with their neighbours, in order."""
    places: set[int] = set()
    words = 0
    for best in map(int, np.argsort(-scores, kind="stable")):
        for place in (best, best + 1, best - 1):
            if 0 <= place < len(index.lines) and place not in places and len(places) < _MOST_READ:
                words += len(index.lines[place].text.split())
                if words > _MOST_WORDS:
                    return sorted(places)
                places.add(place)
    return sorted(places)
