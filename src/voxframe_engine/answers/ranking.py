"""Ranking of sentences as answers to a question: by their words, and by a late-interaction model.

By words: BM25 over stems, their neighbours, and the kind of answer. Among given answers, the one with the most support
in the sentences about the question is selected.

By the model: each token of a question is compared with all tokens of a sentence, and the best matches are added
(ColBERT: Khattab and Zaharia, 2020). The tokens are encoded by all-MiniLM-L6-v2 with changed weights, the sentences
eight at a time, so that each is encoded in its context. The changes (`answer_weights.npz`: low-rank factors, LoRA) were
fitted on texts and questions written for the project, by `python -m tests.benchmarks train_answers`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe import encoder
from voxframe.encoder import SentenceEncoder, Vectors
from voxframe.errors import MissingExtraError, ModelError
from voxframe_engine.analyses.lexicon import stem, words_of
from voxframe_engine.answers import Line, Source, is_question

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

_K1, _B = 1.2, 0.4  # a small b, because sentences have similar lengths
_AFTER_QUESTION, _NEXT_AFTER_QUESTION = 0.8, 0.3  # share of a question's score added to the next two sentences
_AROUND = 0.2  # share of a sentence's score added to its neighbours
_CONTEXT = 0.15  # weight of a word of the context relative to one of the question
_KIND = 1.35  # factor for the right kind of answer

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
#: Pattern of a question, and pattern of its answer.
_KINDS = (
    (r"\bhow (?:many|much|old|long|often|far|big|large)\b|\bcosts?\b|\bprice\b|\bnumber\b", _NUMBER),
    (r"\bnamed?\b|\bcalled\b", r"(?-i:(?<=\w )[A-Z][a-z]+)"),
    (r"\bwhen\b|\b(?:what|which) (?:day|date|year|time)\b", _TIME),
    (r"\bwhy\b|\breasons?\b|\bcaus(?:es?|ing)\b", r"\b(?:because|since|so that|due to|caused?|reason)\b"),
    (r"\bwho(?:se|m)?\b", r"(?-i:(?<=\w )[A-Z][a-z]+|(?<=, )[A-Z][a-z]+)|\bpeople\b|\w+ers?\b"),
    (r"\bwhere\b", r"\b(?:in|at|on|from|near|behind|to)\b (?:the )?\w+"),
)
_HOW = re.compile(r"\bhow (?:many|much|old|long|often|far|big|large)\b", re.IGNORECASE)  # not a search term
_YES_OR_NO = re.compile(
    r"\W*(?:and |so |but )*(?:is|are|was|were|am|do|does|did|can|could|will|would|shall|should|may|might|must|has|have"
    r"|had)(?:n't)?\b",
    re.IGNORECASE,
)
_WANTS = [(re.compile(question, re.IGNORECASE), re.compile(answer, re.IGNORECASE)) for question, answer in _KINDS]


def wants_yes_or_no(question: str) -> bool:
    """Return True if a question can be answered with yes or no."""
    return _YES_OR_NO.match(question) is not None


def terms(text: str) -> list[str]:
    """Return the stems of the words of a text, without function words."""
    return [stem(word) for word in words_of(text) if word.partition("'")[0] not in _FUNCTION]


class Match(NamedTuple):
    """A sentence in a ranking."""

    place: int
    line: Line
    score: float


class BM25Index:
    """A search index over the sentences of several sources.

    Attributes:
        is_first: For each, True if it does not follow the one before; scores do not cross it.
        is_bare: For each, True if it says yes or no, and nothing more.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.lines = [line for source in sources for line in source.lines]
        self.is_first = np.zeros(len(self.lines), bool)
        at = 0
        for source in sources:
            if source.lines:
                self.is_first[[at, *(at + place for place in source.breaks)]] = True
            at += len(source.lines)
        self._places: dict[str, list[int]] = {}
        self._times: dict[str, list[int]] = {}
        lengths = []
        for place, line in enumerate(self.lines):
            words = terms(line.text)
            lengths.append(len(words))
            for term in words:
                places = self._places.setdefault(term, [])
                if places and places[-1] == place:
                    self._times[term][-1] += 1
                else:
                    places.append(place)
                    self._times.setdefault(term, []).append(1)
        self._length = np.asarray(lengths, np.float64)
        self._mean = max(1.0, float(self._length.mean())) if lengths else 1.0
        self.is_bare = np.asarray(
            [
                length <= 1 and bool(_SAYS_YES.match(line.text) or _SAYS_NO.match(line.text))
                for length, line in zip(lengths, self.lines, strict=True)
            ],
            bool,
        )
        self.is_question: Flags = np.asarray([is_question(line.text) for line in self.lines], bool)

    def weight(self, term: str) -> float:
        """Return the inverse document frequency of a term."""
        count = len(self._places.get(term, ()))
        return math.log(1 + (len(self.lines) - count + 0.5) / (count + 0.5))

    def matches(self, text: str) -> Scores:
        """Return the BM25 score of each sentence for the words of a text."""
        scores = np.zeros(len(self.lines))
        for term in set(terms(text)):
            if term in self._places:
                places = np.asarray(self._places[term])
                times = np.asarray(self._times[term], np.float64)
                norm = _K1 * (1 - _B + _B * self._length[places] / self._mean)
                scores[places] += self.weight(term) * times * (_K1 + 1) / (times + norm)
        return scores

    def neighbour(self, place: int, scores: Scores) -> Match | None:
        """Return the better one of the sentences directly before and after another in the same source."""
        beside = [] if self.is_first[place] else [place - 1]
        if place + 1 < len(self.lines) and not self.is_first[place + 1]:
            beside.append(place + 1)
        best = max(beside, key=lambda at: float(scores[at]), default=None)
        return None if best is None else Match(best, self.lines[best], float(scores[best]))

    def shared(self, question: str) -> Scores:
        """Return the BM25 score of each sentence for the words of a question."""
        return self.matches(_HOW.sub(" ", question))

    def evidence(self, question: str, context: str = "") -> Scores:
        """Return the score of each sentence as an answer to a question."""
        shared = self.shared(question)
        if context:
            about = self.matches(context)
            shared = shared + _CONTEXT * np.where(shared > 0, about, 0.0)
        total = shared + _AROUND * (self._before(shared, 1) + self._after(shared))
        after_question = np.where(self.is_question, shared, 0.0)
        total = (
            total
            + _AFTER_QUESTION * self._before(after_question, 1)
            + _NEXT_AFTER_QUESTION * self._before(after_question, 2)
        )
        total = np.where(self.is_question, 0.3 * total, total)
        kinds = [answer for pattern, answer in _WANTS if pattern.search(question)]
        for place in np.flatnonzero(total) if kinds else ():
            if any(kind.search(self.lines[place].text) for kind in kinds):
                total[place] *= _KIND
        return total

    def question_before(self, place: int) -> Line | None:
        """Return the question directly before a sentence in the same source, if there is one."""
        after_question = place > 0 and not self.is_first[place] and self.is_question[place - 1]
        return self.lines[place - 1] if after_question else None

    def best(self, scores: Scores, count: int) -> list[Match]:
        """Return the sentences with the highest scores, highest first."""
        order = np.argsort(-scores, kind="stable")[:count]
        return [Match(int(at), self.lines[at], float(scores[at])) for at in order if scores[at] > 0]

    def _before(self, values: Scores, steps: int) -> Scores:
        """Shift scores by a number of sentences within each source."""
        for _ in range(steps):
            values = np.concatenate([[0.0], values[:-1]]) if len(values) else values
            values = np.where(self.is_first, 0.0, values)
        return values

    def _after(self, values: Scores) -> Scores:
        if not len(values):
            return values
        last = np.concatenate([self.is_first[1:], [True]])
        return np.where(last, 0.0, np.concatenate([values[1:], [0.0]]))


def in_order(matches: Iterable[Match]) -> list[Match]:
    """Return sentences in their original order."""
    return sorted(matches, key=lambda match: match.place)


_LOOKED_AT = 6  # number of sentences considered
_YES, _NO = frozenset({"yes", "true", "correct"}), frozenset({"no", "false", "incorrect"})
_OTHERWISE = re.compile(
    r"(?i)\W*(?:n/?a|none|neither|other|unknown|unclear|unsure|not (?:mentioned|stated|known|sure|applicable))\b"
)
_OPENING = r"(?i)\W*(?:(?:oh|well|mostly|i think),? )*"
_SAYS_YES = re.compile(
    _OPENING
    + r"(?:yes|yeah|yep|sure|certainly|absolutely|of course|indeed|exactly|definitely|correct|that(?: i|')s right)\b"
)
_SAYS_NO = re.compile(_OPENING + r"(?:no|nope|not really|not at all|never|i don't think so)\b(?! doubt)")
_NEGATED = re.compile(r"(?i)\b(?:not|no|never|nobody|none|nothing|cannot|without|hardly|unable|neither|nor)\b|n't\b")
NO_EVIDENCE = "No sentence of the text supports any of the options."


def choose_option(index: BM25Index, question: str, options: Sequence[str], context: str = "") -> str:
    """Return the option with the most support; else one such as "not mentioned" or "other", or `NO_EVIDENCE`."""
    fallback = next((option for option in options if _OTHERWISE.match(option)), NO_EVIDENCE)
    matches = index.best(index.evidence(question, context), _LOOKED_AT)
    yes = next((option for option in options if option.strip(" .").lower() in _YES), None)
    no = next((option for option in options if option.strip(" .").lower() in _NO), None)
    if yes is not None and no is not None:
        return (yes if _is_so(index, matches, question) else no) if matches else fallback
    scores = {option: _score(index, matches, option) for option in options if option is not fallback}
    best = max(scores, key=scores.__getitem__, default=fallback)
    return best if scores.get(best, 0.0) > 0 else fallback


def _is_so(index: BM25Index, matches: Sequence[Match], question: str) -> bool:
    """Return True if the best sentence about a question answers it with yes."""
    asked_negative = bool(_NEGATED.search(question))
    for match in matches:
        if _SAYS_YES.match(match.line.text):
            return True
        if _SAYS_NO.match(match.line.text):
            return False
        if index.question_before(match.place):
            break
    return bool(_NEGATED.search(matches[0].line.text)) == asked_negative


def _score(index: BM25Index, matches: Sequence[Match], option: str) -> float:
    """Return the support for an option in the sentences about a question, plus a little for support in all others."""
    words = set(terms(option)) or set(words_of(option))
    total = sum(map(index.weight, words)) or 1.0

    def part(text: str) -> float:
        present = {*terms(text), *words_of(text)}
        return sum(index.weight(term) for term in words & present) / total

    near = sum(match.score * part(match.line.text) for match in matches)
    anywhere = float(index.matches(option).max(initial=0.0))
    return near + 0.05 * anywhere


WEIGHTS = Path(str(files("voxframe_engine.answers"))) / "answer_weights.npz"
#: Sentences that are encoded together, and sentences before them that they are encoded with.
BLOCK, BEFORE = 8, 2
#: Tokens at the beginning and the end of what is encoded.
BEGIN, END = 101, 102

_MOST_TOKENS = 510  # of what is encoded together, without both ends
_MOST_OF_A_QUESTION = 100
_MOST_ENCODED = 4000  # sentences
_WITHOUT_MODEL = "Questions are answered by common words instead of meaning"


def unit(vectors: Vectors) -> Vectors:
    """Return vectors with length 1, but zeros for zeros."""
    result: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
    return result


@dataclass(frozen=True)
class EncodedBlock:
    """Sentences of a block, encoded in their context.

    Attributes:
        means: For each sentence, the mean of its tokens, of length 1.
    """

    tokens: NDArray[np.float16]
    counts: list[int]
    means: NDArray[np.float16]


class AnswerModel:
    """Compares sentences with questions."""

    def __init__(self, coder: SentenceEncoder) -> None:
        self._encoder = coder
        with np.load(WEIGHTS) as stored:
            self._weights: dict[str, Vectors] = {
                name: stored[name].astype(np.float32)
                for name in ("projection", "importance", "parts", "beside", "nothing")
            }

    def encode(self, blocks: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[EncodedBlock]:
        """Encode blocks of sentences, each given as the sentences directly before it and its own."""
        rows: list[list[int]] = []
        spans: list[list[tuple[int, int, int]]] = []  # for each block, the row, start and end of each sentence
        for before, sentences in blocks:
            tokens = self._encoder.tokens([*before, *sentences])
            context = [number for ids in tokens[: len(before)] for number in ids]
            row = [BEGIN, *context] if len(context) < _MOST_TOKENS // 2 else [BEGIN]
            spans.append([])
            for ids in tokens[len(before) :]:
                if len(row) + len(ids) > _MOST_TOKENS + 1:  # long sentences, such as text without punctuation
                    rows.append([*row, END])
                    row = [BEGIN]
                spans[-1].append((len(rows), len(row), len(row) + len(ids)))
                row += ids
            rows.append([*row, END])
        states: list[Vectors] = [np.empty((0, 0), np.float32)] * len(rows)
        for at, state in self._encoder.states(rows):
            states[at] = state
        return [self._block([states[row][start:end] for row, start, end in places]) for places in spans]

    def _block(self, sentences: Sequence[Vectors]) -> EncodedBlock:
        """Return the block of sentences, given the vectors of their tokens. An empty sentence gets a token of zeros."""
        filled = [vectors if len(vectors) else np.zeros((1, encoder.SIZE), np.float32) for vectors in sentences]
        means = unit(np.array([vectors.mean(axis=0) for vectors in filled]))
        tokens = self._projected(np.concatenate(filled))
        return EncodedBlock(tokens.astype(np.float16), [len(vectors) for vectors in filled], means.astype(np.float16))

    def compare(
        self, question: str, blocks: Sequence[EncodedBlock], is_question: Flags, starts_run: Flags
    ) -> tuple[Scores, float]:
        """Return a logit for each sentence, and one for "the text does not answer the question".

        A sentence without tokens gets -inf.

        Args:
            starts_run: For each sentence, True if the previous one in `blocks` is not the one before it in the text.
        """
        (tokens,) = self._encoder.tokens([question])
        ((_, states),) = self._encoder.states([[BEGIN, *tokens[:_MOST_OF_A_QUESTION], END]])
        # One row for each token of the question, one column for each token of the sentences.
        alike = self._projected(states) @ np.concatenate([block.tokens for block in blocks]).T.astype(np.float32)
        starts = np.cumsum([0, *(count for block in blocks for count in block.counts)])[:-1]
        importance = states @ self._weights["importance"]
        weights = np.exp(importance - importance.max())
        best = (weights / weights.sum()) @ np.maximum.reduceat(alike, starts, axis=1)
        means = np.concatenate([block.means for block in blocks]).astype(np.float32)
        is_empty, close = ~means.any(axis=1), means @ unit(states.mean(axis=0))
        features = np.stack([best, close], axis=1) @ self._weights["parts"]
        before = np.where(starts_run, features, np.roll(features, 1))
        after = np.where(np.roll(starts_run, -1), features, np.roll(features, -1))
        after_question = ~starts_run & np.roll(is_question, 1)
        by_before, by_after, by_question, by_form = self._weights["beside"]
        total = (
            features + (by_before + by_question * after_question) * (before - features) + by_after * (after - features)
        )
        nothing = self._weights["nothing"]
        scores = np.where(is_empty, -np.inf, total + by_form * is_question)
        return scores, float(states[0] @ nothing[:-1] + nothing[-1])

    def _projected(self, states: Vectors) -> Vectors:
        return unit(states @ self._weights["projection"].T)


class EncodedText:
    """Sentences to be compared with several questions. Each is encoded once.

    Args:
        is_first: For each, True if it does not follow the one before: the first one of a source or passage.
    """

    def __init__(self, model: AnswerModel, sentences: Sequence[str], is_first: Flags, is_question: Flags) -> None:
        self._model, self._sentences, self._is_first, self._is_question = model, sentences, is_first, is_question
        self._blocks: dict[int, EncodedBlock] = {}  # by the place of the first sentence

    def compare(self, question: str, words: Scores) -> tuple[Scores, float]:
        """Return a logit for each sentence, and one for "the text does not answer the question".

        In a text with more than 4,000 sentences, only the blocks with the most words of the question are scored; the
        others get -inf.

        Args:
            words: For each sentence, a score of the words that it shares with the question.
        """
        scores = np.full(len(self._sentences), -np.inf)
        firsts = [*np.flatnonzero(self._is_first), len(self._sentences)]
        blocks = [(at, min(at + BLOCK, end)) for start, end in pairwise(firsts) for at in range(start, end, BLOCK)]
        if len(self._sentences) > _MOST_ENCODED:
            blocks.sort(key=lambda block: -words[slice(*block)].max())
            blocks = sorted(blocks[: _MOST_ENCODED // BLOCK])
        if not blocks:
            return scores, 0.0
        new = [(at, end) for at, end in blocks if at not in self._blocks]
        texts = [
            (self._sentences[at if self._is_first[at] else at - BEFORE : at], self._sentences[at:end])
            for at, end in new
        ]
        encoded = dict(zip((at for at, _ in new), self._model.encode(texts), strict=True))
        self._blocks = {at: encoded.get(at) or self._blocks[at] for at, _ in blocks}  # of a long text, no more
        places = np.concatenate([np.arange(*block) for block in blocks])
        starts_run = self._is_first[places] | (np.diff(places, prepend=-2) != 1)
        scores[places], nothing = self._model.compare(
            question, [*self._blocks.values()], self._is_question[places], starts_run
        )
        return scores, nothing


@cache
def find_model() -> AnswerModel | None:
    """Return the model if that of the sentence encoder is on this machine, else None after one warning per process."""
    try:
        return AnswerModel(SentenceEncoder(encoder.converted(WEIGHTS)))
    except (MissingExtraError, ModelError) as error:
        warnings.warn(f"{_WITHOUT_MODEL}: {error}", stacklevel=2)
        return None
