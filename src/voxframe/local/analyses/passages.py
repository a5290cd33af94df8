"""Sentences and passages: what the analyses look at, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from voxframe.local import sentences as boundaries

WireWord = dict[str, Any]
#: As in the sentences export: text, start, end, words, speaker, and channel where there are any.
Sentence = dict[str, Any]

_PASSAGE_MS = 30_000


def sentences_of(words: Sequence[WireWord]) -> list[Sentence]:
    """The sentences of a transcript, in order of their beginning."""
    return [_sentence(group) for group in boundaries.sentences(words)]


def passages(sentences: Sequence[Sentence]) -> Iterator[tuple[int, int]]:
    """Runs of whole sentences of about half a minute: index of the first and of the last."""
    first = 0
    for at, sentence in enumerate(sentences):
        if at > first and sentence["end"] - sentences[first]["start"] > _PASSAGE_MS:
            yield first, at - 1
            first = at
    if sentences:
        yield first, len(sentences) - 1


def joined(sentences: Sequence[Sentence]) -> str:
    """Their text."""
    return " ".join(sentence["text"] for sentence in sentences)


def spanned(sentences: Sequence[Sentence]) -> dict[str, int]:
    """From where to where they are said, as in the wire's `timestamp`."""
    return {"start": sentences[0]["start"], "end": max(sentence["end"] for sentence in sentences)}


def _sentence(words: Sequence[WireWord]) -> Sentence:
    voices = {word.get("speaker") for word in words}
    sentence = {
        "text": " ".join(word["text"] for word in words),
        "start": words[0]["start"],
        "end": max(word["end"] for word in words),
        "words": list(words),
        "speaker": voices.pop() if len(voices) == 1 else None,
    }
    channel = words[0].get("channel")
    return sentence if channel is None else {**sentence, "channel": channel}
