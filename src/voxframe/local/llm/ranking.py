"""Which sentences answer a question: BM25 over stems, what stands around a sentence, what kind of answer it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe.local.analyses.english import stem, words_of
from voxframe.local.llm.material import Line, Source

Scores = NDArray[np.float64]

_K1, _B = 1.2, 0.4  # sentences are short and of much the same length: length says little
_AFTER_QUESTION, _NEXT_AFTER_QUESTION = 0.8, 0.3  # what a question passes on to the sentences after it
_AROUND = 0.2  # what a sentence passes on to its neighbours
_CONTEXT = 0.15  # what a word of the context counts beside one of the question
_KIND = 1.35  # what the right kind of answer is worth

_FUNCTION = frozenset(
    """
    a about am an and any are as at be been being but by can could did do does doing done for from had has have having
    he her here hers him his how i if in into is it its just let me might mine must my of on or our ours please s
    shall she should so some such than that the their theirs them then there these they this those to too up us was we
    were what when where which who whom whose why will with would you your yours say said tell told talk speaker
    speakers mention mentioned discuss discussed transcript conversation list give find identify describe explain write
    all every each according
    """.split()
)
_NUMBER = (
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred|thousand|"
    r"million|half|dozen)\b"
)
_TIME = (
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december|monday|tuesday|wednesday|"
    r"thursday|friday|saturday|sunday|today|tomorrow|yesterday|tonight|morning|evening|week|month|year|summer|winter|"
    r"spring|autumn|nineteen|eighteen|twenty|\w+(?:st|nd|rd|th) of)\b|\d{4}|\bin may\b|\bof may\b"
)
#: What a question sounds like, and what its answer holds.
_KINDS = (
    (r"\bhow (?:many|much|old|long|often|far|big|large)\b|\bcosts?\b|\bprice\b|\bnumber\b", _NUMBER),
    (r"\bwhen\b|\b(?:what|which) (?:day|date|year|time)\b", _TIME),
    (r"\bwhy\b|\breasons?\b|\bcaus(?:es?|ing)\b", r"\b(?:because|since|so that|due to|caused?|reason)\b"),
    (r"\bwho(?:se|m)?\b", r"(?-i:(?<=\w )[A-Z][a-z]+|(?<=, )[A-Z][a-z]+)|\bpeople\b|\w+ers?\b"),
    (r"\bwhere\b", r"\b(?:in|at|on|from|near|behind|to)\b (?:the )?\w+"),
)
_HOW = re.compile(r"\bhow (?:many|much|old|long|often|far|big|large)\b", re.IGNORECASE)  # is of no subject
_WANTS = [(re.compile(asked, re.IGNORECASE), re.compile(answer, re.IGNORECASE)) for asked, answer in _KINDS]


def terms(text: str) -> list[str]:
    """Stems of the words of a text, without those that only hold sentences together.

    Example:
        >>> terms("What did the ships carry?")
        ['ship', 'carri']
    """
    return [stem(word) for word in words_of(text) if word.partition("'")[0] not in _FUNCTION]


class Found(NamedTuple):
    """A sentence that was found.

    Attributes:
        place: Its place among all sentences.
        line: The sentence.
        score: How well it answers; 0 is not at all.
    """

    place: int
    line: Line
    score: float


class Index:
    """The sentences of several sources, to be asked.

    Args:
        sources: The sources.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.lines = [line for source in sources for line in source.lines]
        self._first = np.zeros(len(self.lines), bool)  # of its source: nothing is passed on across that border
        at = 0
        for source in sources:
            if source.lines:
                self._first[at] = True
            at += len(source.lines)
        self._places: dict[str, list[int]] = {}
        self._times: dict[str, list[int]] = {}
        lengths = []
        for place, line in enumerate(self.lines):
            found = terms(line.text)
            lengths.append(len(found))
            for term in found:
                places = self._places.setdefault(term, [])
                if places and places[-1] == place:
                    self._times[term][-1] += 1
                else:
                    places.append(place)
                    self._times.setdefault(term, []).append(1)
        self._length = np.asarray(lengths, np.float64)
        self._mean = max(1.0, float(self._length.mean())) if lengths else 1.0
        self.is_question: NDArray[np.bool_] = np.asarray(
            [line.text.rstrip("\"')] ").endswith("?") for line in self.lines], bool
        )

    def weight(self, term: str) -> float:
        """How much a term tells: the rarer, the more."""
        count = len(self._places.get(term, ()))
        return math.log(1 + (len(self.lines) - count + 0.5) / (count + 0.5))

    def matches(self, text: str) -> Scores:
        """BM25 of each sentence for the words of a text."""
        scores = np.zeros(len(self.lines))
        for term in set(terms(text)):
            if term in self._places:
                places = np.asarray(self._places[term])
                times = np.asarray(self._times[term], np.float64)
                norm = _K1 * (1 - _B + _B * self._length[places] / self._mean)
                scores[places] += self.weight(term) * times * (_K1 + 1) / (times + norm)
        return scores

    def evidence(self, question: str, context: str = "") -> Scores:
        """How well each sentence answers a question."""
        own = self.matches(_HOW.sub(" ", question))
        if context:
            about = self.matches(context)
            own = own + _CONTEXT * np.where(own > 0, about, 0.0)
        total = own + _AROUND * (self._before(own, 1) + self._after(own))
        asked = np.where(self.is_question, own, 0.0)
        total = total + _AFTER_QUESTION * self._before(asked, 1) + _NEXT_AFTER_QUESTION * self._before(asked, 2)
        total = np.where(self.is_question, 0.3 * total, total)
        kinds = [answer for wanted, answer in _WANTS if wanted.search(question)]
        for place in np.flatnonzero(total) if kinds else ():
            if any(kind.search(self.lines[place].text) for kind in kinds):
                total[place] *= _KIND
        return total

    def question_before(self, place: int) -> Line | None:
        """The question that a sentence follows at once, if it does."""
        asked = place > 0 and not self._first[place] and self.is_question[place - 1]
        return self.lines[place - 1] if asked else None

    def best(self, scores: Scores, count: int) -> list[Found]:
        """The sentences with the highest scores, the highest first."""
        order = np.argsort(-scores, kind="stable")[:count]
        return [Found(int(at), self.lines[at], float(scores[at])) for at in order if scores[at] > 0]

    def _before(self, values: Scores, steps: int) -> Scores:
        """For each sentence the value of the one so many before it, in the same source."""
        for _ in range(steps):
            values = np.concatenate([[0.0], values[:-1]]) if len(values) else values
            values = np.where(self._first, 0.0, values)
        return values

    def _after(self, values: Scores) -> Scores:
        if not len(values):
            return values
        last = np.concatenate([self._first[1:], [True]])
        return np.where(last, 0.0, np.concatenate([values[1:], [0.0]]))


def in_order(found: Iterable[Found]) -> list[Found]:
    """Sentences as they were said."""
    return sorted(found, key=lambda one: one.place)
