"""Chapters, which are topic segments with gist, headline and summary, and the summary of a whole transcript.

Chapters: sentences are compared by their words and topics (`extract.rows`), and by meaning if there is an encoder.
Dynamic programming finds the segmentation with the most coherent chapters. Each boundary has a cost, which grows with
the length of the text and is lower if the speaker announces a new subject ("let us talk about money"). In recordings of
five minutes or more, no chapter is shorter than a minute. Gist, headline and summary quote the chapter; a headline that
does not name the subject starts with the gist.

Quality (`python -m tests.benchmarks analyses`): Pk 0.05 (0 is perfect, chance is 0.5) on 30 texts from talks by another
author, 85 of 89 boundaries found, none wrong; by words alone, Pk 0.19. A talk of 11 minutes about two subjects gets two
chapters. Weak on gradual topic shifts.

Summary, in five types and three models: the text is divided into chapters, so that every subject is covered. In each,
the most representative sentences are quoted (`extract`). The models differ in the selection: `informative` takes the
most representative sentences, `conversational` at least one per speaker, with speaker labels, `catchy` prefers short
and emotional ones.

Quality: of the sentences selected in the sections of eight talks, 56 percent are labelled as belonging in a summary (42
in the half used for development, 71 in the other); of first sentences 50, of random sentences 32. On three talks by
another author 59, the same as first sentences. Models and types were not evaluated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxframe.encoder import SentenceEncoder, Vectors
from voxframe_engine.analyses.english_lexicon import STOPWORDS, content, nounness, words_of
from voxframe_engine.analyses.extract import Matrix, choose, gist, headline, quoted, rows, scores
from voxframe_engine.analyses.key_phrases import key_phrases
from voxframe_engine.analyses.sentence_sentiment import judge
from voxframe_engine.text.sentences import Sentence, spanned

_SHORTEST = 4  # sentences
_LONG_MS, _LEAST_MS = 300_000, 60_000  # chapters of recordings this long have at least this duration
_PRICE = 1.8  # cost of a boundary in a short text
_WORDS_PRICE = 0.3  # the same without an encoder
_SHORT = 30  # sentences; in longer texts the cost grows with the root of the length
_STEEPEST = 3.0  # times _SHORT, from where the cost does not grow any more
_ANNOUNCED = 0.5  # discount of an announced boundary
_WORDS = 0.5  # weight of common words beside common meaning
_AROUND = 0.5  # share of the neighbours in the vector of a sentence
_REPEATED, _NOUN, _OFTEN = 2, 0.5, 0.08  # words that can name a subject, and what their repetition is worth
_COMMON = 0.8  # share of the mean of all sentences that is removed, so that unrelated sentences have a cosine of 0
_MOST_UNITS = 1200  # longer texts are grouped by two or more sentences, because the work grows with the square
_MOST_BULLETS, _MOST_QUOTED = 8, 7  # parts of a bulleted summary; sentences of a paragraph
_LIVELY_WORDS = 14  # longest lively sentence
_ANNOUNCES = re.compile(
    r"^(?:(?:and|so|but|well|now|okay|right|then),? )*(?:let us|let's|we will|we'll|i want to|i'd like to) (?:now )?"
    r"(?:talk about|turn to|move on|move to|come to|speak about|start with|switch to)\b"
    r"|^(?:moving on|turning to|next up|(?:the|our) next (?:question|topic|point|guest)|another (?:question|topic))\b",
    re.IGNORECASE,
)


def chapters(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> list[dict[str, Any]]:
    """Return the field `chapters`: in order, they cover all sentences. Without an encoder, only words are compared."""
    texts = [sentence["text"] for sentence in sentences]
    vectors = _contrasted(encoder.encode(texts)) if encoder and texts else None
    starts = [sentence["start"] for sentence in sentences]
    end = max((sentence["end"] for sentence in sentences), default=0)
    bounds = [0, *_boundaries(texts, vectors, [*starts, end]), len(sentences)]
    made = []
    for first, last in pairwise(bounds):
        part = sentences[first:last]
        quotable = texts[first:last]
        if not quotable:
            continue
        values = scores(quotable)
        if vectors is not None:
            own = vectors[first:last]
            values = [value + float(more) for value, more in zip(values, own @ own.mean(axis=0), strict=True)]
        told = choose(quotable, min(4, 1 + len(quotable) // 4), values)
        about = gist(part) if encoder is None else _subject(part, quotable, encoder)
        made.append(
            {
                "summary": " ".join(quoted(quotable[at]) for at in told),
                "gist": about,
                "headline": _named(headline(quotable, values), about),
                **spanned(part),
            }
        )
    return made


def boundaries(texts: Sequence[str], encoder: SentenceEncoder | None = None) -> list[int]:
    """Return the indexes of the sentences that start a new chapter, except the first sentence."""
    vectors = _contrasted(encoder.encode(texts)) if encoder and texts else None
    return _boundaries(texts, vectors, [0] * (len(texts) + 1))


def _subject(part: Sequence[Sentence], texts: Sequence[str], encoder: SentenceEncoder) -> str:
    """Return the two phrases that are closest in meaning to a chapter: its key phrases, and words that it repeats."""
    counts = Counter(word for text in texts for word in {*words_of(text)} - STOPWORDS)
    times = {
        word: count
        for word, count in counts.items()
        if count >= _REPEATED and len(word) > 2 and nounness(word) >= _NOUN
    }
    times |= {result["text"].lower(): result["count"] for result in key_phrases(part)["results"]}
    if not times:
        return gist(part)
    whole = encoder.encode(texts).mean(axis=0)
    closeness = encoder.encode(list(times)) @ (whole / np.linalg.norm(whole))
    ranking = sorted(zip(times, closeness, strict=True), key=lambda one: -one[1] - _OFTEN * np.log(times[one[0]]))
    first = ranking[0][0]
    other = next((phrase for phrase, _ in ranking if set(content(first)).isdisjoint(content(phrase))), None)
    text = first if other is None else f"{first} and {other}"
    return text[:1].upper() + text[1:]


def _named(line: str, about: str) -> str:
    """Return a headline that has at least one word of the gist."""
    if not about or set(content(about)) & set(content(line)):
        return line
    return f"{about}: {line}"


def _contrasted(vectors: Vectors) -> Vectors:
    """Return vectors of sentences among their neighbours, without what all sentences have in common."""
    mixed = vectors.copy()
    mixed[1:] += _AROUND * vectors[:-1]
    mixed[:-1] += _AROUND * vectors[1:]
    mixed -= _COMMON * mixed.mean(axis=0)
    unit: Vectors = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
    return unit


def _boundaries(texts: Sequence[str], vectors: Vectors | None, times: Sequence[int]) -> list[int]:
    size = -(-len(texts) // _MOST_UNITS) or 1
    units = [" ".join(texts[at : at + size]) for at in range(0, len(texts), size)]
    words = rows(units)
    alike = words @ words.T
    if vectors is not None:
        means = np.stack([vectors[at : at + size].mean(axis=0) for at in range(0, len(texts), size)])
        alike = _WORDS * alike + means @ means.T
    np.fill_diagonal(alike, 0.0)
    price = _WORDS_PRICE if vectors is None else _PRICE * min(max(1.0, len(units) / _SHORT), _STEEPEST) ** 0.5
    prices = np.array([price - _ANNOUNCED * bool(_ANNOUNCES.search(unit)) for unit in units])
    starts = np.array([*times[:-1:size], times[-1]])
    least = _LEAST_MS if starts[-1] - starts[0] >= _LONG_MS else 0
    return [at * size for at in _cut(alike, prices, starts, least)]


def _cut(alike: Matrix, prices: Matrix, times: NDArray[np.int64], least: int) -> list[int]:
    """Find the best boundaries by dynamic programming over the start of the last chapter.

    The value of a chapter is the mean, over its sentences, of the sum of their similarities to all others in it.
    """
    count = len(alike)
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = alike.cumsum(axis=0).cumsum(axis=1)
    corners = sums.diagonal()
    best = np.full(count + 1, -np.inf)
    best[0] = 0.0
    before = np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        starts = np.flatnonzero(times[end] - times[: max(0, end - _SHORTEST + 1)] >= least)
        if len(starts):
            lengths = end - starts
            inside = corners[end] - 2 * sums[starts, end] + corners[starts]
            values = best[starts] + inside / lengths - prices[starts]
            before[end] = starts[np.argmax(values)]
            best[end] = values.max()
    cuts, end = [], count
    while end > 0:
        end = int(before[end])
        cuts.append(end)
    return [cut for cut in reversed(cuts) if cut]


def summary(sentences: Sequence[Sentence], options: Mapping[str, Any] | None = None) -> str:
    """Return the field `summary`, for the options `summary_type` and `summary_model`."""
    if not sentences:
        return ""
    kind = (options or {}).get("summary_type") or "bullets"
    model = (options or {}).get("summary_model") or "informative"
    if kind == "gist":
        return _gist(sentences, model)
    if kind == "headline":
        return _headline(sentences, model)
    if kind == "paragraph":
        return " ".join(_quotes(sentences, min(_MOST_QUOTED, 2 + len(sentences) // 12), model))
    each = 1 if kind == "bullets" else 3
    return "\n".join(f"- {' '.join(_quotes(part, each, model))}" for part in _parts(sentences))


def _parts(sentences: Sequence[Sentence]) -> list[Sequence[Sentence]]:
    """Divide into chapters, or into equal parts if there is only one subject; at most `_MOST_BULLETS` parts."""
    cuts = [0, *boundaries([sentence["text"] for sentence in sentences]), len(sentences)]
    least = min(3, len(sentences) // 4) or 1
    while len(cuts) - 1 < least:  # halve the longest
        at = max(range(len(cuts) - 1), key=lambda n: cuts[n + 1] - cuts[n])
        cuts.insert(at + 1, (cuts[at] + cuts[at + 1]) // 2)
    while len(cuts) - 1 > _MOST_BULLETS:  # join the shortest to the one after it
        at = min(range(1, len(cuts) - 1), key=lambda n: cuts[n + 1] - cuts[n - 1])
        del cuts[at]
    return [sentences[first:last] for first, last in pairwise(cuts)]


def _quotes(sentences: Sequence[Sentence], count: int, model: str) -> list[str]:
    texts = [sentence["text"] for sentence in sentences]
    values = scores(texts)
    chosen = choose(texts, count, _VALUES[model](sentences, values) if model in _VALUES else values)
    return [_said(sentences[at], model) for at in chosen]


def _said(sentence: Sentence, model: str) -> str:
    text = quoted(sentence["text"])
    return f"{sentence['speaker']}: {text}" if model == "conversational" and sentence.get("speaker") else text


def _conversational(sentences: Sequence[Sentence], values: list[float]) -> list[float]:
    """Double the score of the best sentence of each speaker, so that every speaker is represented."""
    best: dict[Any, int] = {}
    for at, sentence in enumerate(sentences):
        speaker = sentence.get("speaker")
        if speaker not in best or values[at] > values[best[speaker]]:
            best[speaker] = at
    return [value * 2 if at in best.values() else value for at, value in enumerate(values)]


def _catchy(sentences: Sequence[Sentence], values: list[float]) -> list[float]:
    """Raise the score of short and emotional sentences."""
    lively = []
    for sentence, value in zip(sentences, values, strict=True):
        ((label, confidence),) = judge([sentence["text"]])
        short = 1.3 if len(words_of(sentence["text"])) <= _LIVELY_WORDS else 0.8
        lively.append(value * short * (1 + confidence if label != "NEUTRAL" else 1.0))
    return lively


_VALUES: dict[str, Callable[[Sequence[Sentence], list[float]], list[float]]] = {
    "conversational": _conversational,
    "catchy": _catchy,
}


def _gist(sentences: Sequence[Sentence], model: str) -> str:
    if model == "catchy":
        phrases = key_phrases(sentences)["results"]
        return str(phrases[0]["text"]).capitalize() if phrases else gist(sentences)
    return gist(sentences)


def _headline(sentences: Sequence[Sentence], model: str) -> str:
    if model == "informative":
        return headline([sentence["text"] for sentence in sentences])
    return _quotes(sentences, 1, model)[0].rstrip(".")
