"""A late-interaction model that scores sentences as answers to a question.

Each token of a question is compared with all tokens of a sentence, and the best matches are added (ColBERT: Khattab and
Zaharia, 2020). The tokens are encoded by all-MiniLM-L6-v2 with changed weights, the sentences eight at a time, so that
each is encoded in its context. The changes (`answer_weights.npz`: low-rank factors, LoRA) were fitted on texts and
questions written for the project, by `python -m tests.benchmarks train_answers`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxframe import encoder
from voxframe.encoder import SentenceEncoder, Vectors
from voxframe.errors import MissingExtraError, ModelError

WEIGHTS = Path(str(files("voxframe_engine.answers"))) / "answer_weights.npz"
#: Sentences that are encoded together, and sentences before them that they are encoded with.
BLOCK, BEFORE = 8, 2
#: Tokens at the beginning and the end of what is encoded.
BEGIN, END = 101, 102

_MOST_TOKENS = 510  # of what is encoded together, without both ends
_MOST_OF_A_QUESTION = 100
_MOST_ENCODED = 4000  # sentences
_WITHOUT_MODEL = "Questions are answered by common words instead of meaning"

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]


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
        """Encode blocks of sentences.

        Args:
            blocks: For each block, the sentences directly before it, and its sentences.
        """
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
        means = _unit(np.array([vectors.mean(axis=0) for vectors in filled]))
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
        is_empty, close = ~means.any(axis=1), means @ _unit(states.mean(axis=0))
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
        return _unit(states @ self._weights["projection"].T)


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


def _unit(vectors: Vectors) -> Vectors:
    """Return vectors with length 1, but zeros for zeros."""
    unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
    return unit


@cache
def find() -> AnswerModel | None:
    """Return the model if that of the sentence encoder is on this machine, else None after one warning per process."""
    try:
        return AnswerModel(SentenceEncoder(encoder.converted(WEIGHTS)))
    except (MissingExtraError, ModelError) as error:
        warnings.warn(f"{_WITHOUT_MODEL}: {error}", stacklevel=2)
        return None
