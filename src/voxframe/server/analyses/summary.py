"""Extractive summaries: selected sentences of the transcript, quoted. Five types, three models.

Method: the text is divided into chapters, so that every subject is covered. In each, the most representative sentences
are selected (`extract`). The models differ in the selection: `informative` takes the most representative sentences,
`conversational` at least one per speaker, with speaker labels, `catchy` prefers short and emotional ones.

Quality: of the sentences selected in the sections of eight talks, 56 percent are labelled as belonging in a summary (42
in the half used for development, 71 in the other); of first sentences 50, of random sentences 32. On three talks by
another author 59, the same as first sentences. Models and types were not evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from voxframe.server.analyses.chapters import boundaries
from voxframe.server.analyses.english_lexicon import words_of
from voxframe.server.analyses.extract import choose, gist, headline, quoted, scores
from voxframe.server.analyses.key_phrases import key_phrases
from voxframe.server.analyses.sentence_sentiment import judge
from voxframe.server.text.sentences import Sentence

_CHAPTERS = 8  # bullets at most
_PARAGRAPH = 7  # sentences at most
_SHORT = 14  # words of a lively sentence


def summary(sentences: Sequence[Sentence], options: Mapping[str, Any] | None = None) -> str:
    """Return the field `summary`.

    Args:
        sentences: Sentences of the transcript.
        options: Options of the request; `summary_type` and `summary_model` are used.
    """
    if not sentences:
        return ""
    kind = (options or {}).get("summary_type") or "bullets"
    model = (options or {}).get("summary_model") or "informative"
    if kind == "gist":
        return _gist(sentences, model)
    if kind == "headline":
        return _headline(sentences, model)
    if kind == "paragraph":
        return " ".join(_quotes(sentences, min(_PARAGRAPH, 2 + len(sentences) // 12), model))
    each = 1 if kind == "bullets" else 3
    return "\n".join(f"- {' '.join(_quotes(part, each, model))}" for part in _parts(sentences))


def _parts(sentences: Sequence[Sentence]) -> list[Sequence[Sentence]]:
    """Divide into chapters, or into equal parts if there is only one subject; at most `_CHAPTERS` parts."""
    cuts = [0, *boundaries([sentence["text"] for sentence in sentences]), len(sentences)]
    least = min(3, len(sentences) // 4) or 1
    while len(cuts) - 1 < least:  # halve the longest
        at = max(range(len(cuts) - 1), key=lambda n: cuts[n + 1] - cuts[n])
        cuts.insert(at + 1, (cuts[at] + cuts[at + 1]) // 2)
    while len(cuts) - 1 > _CHAPTERS:  # join the shortest to the one after it
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
        short = 1.3 if len(words_of(sentence["text"])) <= _SHORT else 0.8
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
