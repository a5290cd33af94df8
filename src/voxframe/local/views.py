"""Sentences and paragraphs of a finished transcript, as the interface exports them."""

from __future__ import annotations

from typing import Any

from voxframe.local import sentences as boundaries


def sentences(transcript: dict[str, Any]) -> dict[str, Any]:
    """The sentences export of a transcript object."""
    return _export(transcript, "sentences", boundaries.sentences(transcript["words"] or []))


def paragraphs(transcript: dict[str, Any]) -> dict[str, Any]:
    """The paragraphs export of a transcript object."""
    return _export(transcript, "paragraphs", boundaries.paragraphs(transcript["words"] or []))


def _export(transcript: dict[str, Any], name: str, groups: list[list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        name: [_group(words) for words in groups],
        "id": transcript["id"],
        "confidence": transcript["confidence"],
        "audio_duration": transcript["audio_duration"],
    }


def _group(words: list[dict[str, Any]]) -> dict[str, Any]:
    group = {
        "text": " ".join(word["text"] for word in words),
        "start": words[0]["start"],
        "end": max(word["end"] for word in words),
        "confidence": sum(word["confidence"] for word in words) / len(words),
        "words": words,
        "speaker": _shared(words, "speaker"),
    }
    channel = _shared(words, "channel")
    return group if channel is None else {**group, "channel": channel}


def _shared(words: list[dict[str, Any]], name: str) -> Any:
    """The value that all words have, or None."""
    values = {word.get(name) for word in words}
    return values.pop() if len(values) == 1 else None
