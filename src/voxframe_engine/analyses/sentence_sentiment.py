"""Sentiment of each sentence.

Method: a classifier on the vector of the sentence encoder and the score of VADER (vaderSentiment), a lexicon of rated
words with rules for negation and emphasis. `confidence` is the probability of the sentiment. Without the encoder: VADER
alone, and the distance of its score from the threshold instead of a probability.

Most sentences of talk are neither positive nor negative, so the training sentences have many short answers, greetings,
questions and cut sentences, all neutral.

Quality (`python -m tests.benchmarks analyses`): 90 % of 129 sentences of calls, podcasts, meetings and interviews
right, 86 % of 78 other spoken sentences; 95 % of 104 pieces of small talk are neutral (65 % before there were such
training sentences). All were written in this project, before the training sentences. VADER alone: 63 % of the 78. Weak
on irony, on complaints without a word of feeling ("it has been down since Sunday"), and on recognition errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from voxframe.encoder import SentenceEncoder, Vectors
from voxframe_engine.analyses.english_lexicon import without_redacted
from voxframe_engine.analyses.lexicon_scoring import classifier
from voxframe_engine.text.sentences import Sentence

_POSITIVE, _NEGATIVE = 0.3, -0.05
_WORDS = 0.3  # scale of the score by rated words beside the vectors, by cross-validation


def sentiment(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> list[dict[str, Any]]:
    """Return the field `sentiment_analysis_results`. Without an encoder, rated words decide.

    Example:
        >>> sentences = [{"text": "I love it.", "start": 0, "end": 900, "speaker": "A"}]
        >>> sentiment(sentences)[0]["sentiment"]
        'POSITIVE'
    """
    results = []
    judged = judge([sentence["text"] for sentence in sentences], encoder)
    for sentence, (label, confidence) in zip(sentences, judged, strict=True):
        result = {
            "text": sentence["text"],
            "start": sentence["start"],
            "end": sentence["end"],
            "sentiment": label,
            "confidence": confidence,
            "speaker": sentence.get("speaker"),
        }
        results.append({**result, "channel": sentence["channel"]} if "channel" in sentence else result)
    return results


def judge(texts: Sequence[str], encoder: SentenceEncoder | None = None) -> list[tuple[str, float]]:
    """Return the sentiment of each text and its confidence, 0 to 1."""
    if encoder is None:
        return [_by_words(text) for text in texts]
    model = classifier("sentiment")
    chances = model.probabilities(features(texts, encoder))
    return [(model.labels[int(row.argmax())], round(float(row.max()), 5)) for row in chances]


def features(texts: Sequence[str], encoder: SentenceEncoder) -> Vectors:
    """Return the input of the classifier: the vector of each text, and its score by rated words as the last column."""
    scores = np.array([_score(text) for text in texts], np.float32).reshape(-1, 1)
    return np.hstack([encoder.encode([without_redacted(text) for text in texts]), _WORDS * scores])


def _by_words(text: str) -> tuple[str, float]:
    score = _score(text)
    if score >= _POSITIVE:
        return "POSITIVE", _share(score - _POSITIVE, 1 - _POSITIVE)
    if score <= _NEGATIVE:
        return "NEGATIVE", _share(_NEGATIVE - score, 1 + _NEGATIVE)
    return "NEUTRAL", _share(min(_POSITIVE - score, score - _NEGATIVE), (_POSITIVE - _NEGATIVE) / 2)


def _score(text: str) -> float:
    score: float = _analyser().polarity_scores(without_redacted(text))["compound"]
    return score


def _share(distance: float, greatest: float) -> float:
    return round(0.5 + 0.5 * min(1.0, distance / greatest), 5)


@cache
def _analyser() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
