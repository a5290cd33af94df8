"""Sentences that answer a question in the judgement of a reader, so that they can be quoted."""

from __future__ import annotations

import math
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
_CLOSEST = 2  # sentences that are judged beside the one of the answer
_NOWHERE = 1.0  # doubt if no sentence has the words of the answer
_LEAST_SURE = -0.4  # sum of both judgements: of the text, and of the sentence
_NUMBER = re.compile(rf"{DIGITS}|\b(?:{DIGIT}|{TENS}|{TEENS}|\d+)\b")


def read(index: BM25Index, reader: Reader, question: str, scores: Scores, context: str = "") -> list[BM25Match]:
    """Return the sentences that answer a question, the best one first.

    A reader answers in a few words, and the sentence that they are from is found. It then judges this sentence and the
    closest ones, each with its neighbours.

    Args:
        index: The sentences.
        reader: The reader.
        question: The question.
        scores: Closeness of each sentence to an answer. Of a long text, the reader sees the closest sentences. The
            encoder of the reader, if it has one, says again how close these are.
        context: Context of the question.

    Returns:
        The sentence of the short answer, then the others, the best one first. An empty list if the text does not answer
        the question: the reader says so or repeats the question; or it doubts that the text and the sentence answer it.
    """
    places = passage(index, scores)
    if reader.encoder is not None:
        scores = index.closeness(question, reader.encoder, context, places)
    question = f"{context} {question}".strip()
    said = reader.answer([index.lines[place].text for place in places], question)
    words, asked = _content(said.text), _content(question)
    if not said.text or (words and words <= asked):
        return []
    source = _source(index, places, words, asked, scores)
    looked_at = [] if source is None else [source]  # an answer such as "Yes" is from no sentence
    looked_at += [one.place for one in index.best(scores, _CLOSEST + 1) if one.place != source][:_CLOSEST]
    judged = dict(zip(looked_at, reader.judge([_around(index, place) for place in looked_at], question), strict=True))
    sure = max(judged.values(), default=-math.inf) if source is None else judged[source]
    if said.answered + sure - (_NOWHERE if source is None else 0) < _LEAST_SURE:
        return []
    order = sorted(judged, key=lambda place: (place != source, -judged[place]))
    return [BM25Match(place, index.lines[place], judged[place]) for place in order]


def _source(index: BM25Index, places: list[int], words: set[str], asked: set[str], scores: Scores) -> int | None:
    """Return the place of the sentence that has the words of a short answer, or None if there is none."""
    if not words:
        return None
    weights = {word: index.weight(word) * (_ASKED if word in asked else 1.0) for word in words}
    support = np.zeros(len(index.lines))
    for place in places:
        support[place] = sum(weights[word] for word in words & _content(index.lines[place].text))
    support /= sum(weights.values())
    if support.max() < _LEAST_SUPPORT:  # the words are not from the text
        return None
    closeness = scores / (scores.max() or 1.0)
    (best,) = index.best(np.where(index.is_question, _QUESTION, 1.0) * support * (1 + _BY_CLOSENESS * closeness), 1)
    return best.place


def _around(index: BM25Index, place: int) -> str:
    return " ".join(line.text for line in index.lines[max(place - 1, 0) : place + 2])


def _content(text: str) -> set[str]:
    """Return the stems and numbers of a text; "twenty-two" is the number 22."""
    low = text.lower()
    return {*terms(_NUMBER.sub(" ", low)), *(digits_of(number[0]) for number in _NUMBER.finditer(low))}


def passage(index: BM25Index, scores: Scores) -> list[int]:
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
