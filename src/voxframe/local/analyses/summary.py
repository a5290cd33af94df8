"""Summaries: sentences of the transcript, chosen and quoted, never written anew. Five types, three models.

Method: chapters are found first, so that every subject has its say; in each the sentences are chosen that hold most
of its words (`extract`). The models differ in what they choose: `informative` the most telling sentences,
`conversational` at least one of every speaker, with their labels, `catchy` short and lively ones.

Quality: of the sentences chosen in the sections of eight talks 56 percent are labelled as belonging in a summary (42 in
the half that was looked at, 71 in the other); of the first sentences 50, of any sentences 32. On three talks of another
hand 59, as many as of the first sentences. Models and types were not judged by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from voxframe.local.analyses.chapters import boundaries
from voxframe.local.analyses.english import words_of
from voxframe.local.analyses.extract import choose, gist, headline, quoted, scores
from voxframe.local.analyses.key_phrases import key_phrases
from voxframe.local.analyses.passages import Sentence
from voxframe.local.analyses.sentiment import judge

_CHAPTERS = 8  # bullets at most
_PARAGRAPH = 7  # sentences at most
_SHORT = 14  # words of a lively sentence


def summary(sentences: Sequence[Sentence], options: Mapping[str, Any] | None = None) -> str:
    """`summary` of the wire.

    Args:
        sentences: Of the transcript.
        options: The request's options; `summary_type` and `summary_model` are read.
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
    """The chapters, or equal parts where it is one long subject; not more than there may be bullets."""
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
    """The best sentence of each speaker counts double, so that nobody is left out."""
    best: dict[Any, int] = {}
    for at, sentence in enumerate(sentences):
        speaker = sentence.get("speaker")
        if speaker not in best or values[at] > values[best[speaker]]:
            best[speaker] = at
    return [value * 2 if at in best.values() else value for at, value in enumerate(values)]


def _catchy(sentences: Sequence[Sentence], values: list[float]) -> list[float]:
    """Short sentences and feeling count more."""
    lively = []
    for sentence, value in zip(sentences, values, strict=True):
        label, confidence = judge(sentence["text"])
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
