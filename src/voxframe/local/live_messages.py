"""Partials and finals, as the interface has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from voxframe.local.capitals import add_capitals
from voxframe.local.disfluencies import without_filled_pauses
from voxframe.local.engines import Heard
from voxframe.local.punctuation import add_mark, find_sentence_ends, sentences_of
from voxframe.local.samples import RATE
from voxframe.local.segments import Stretch
from voxframe.local.words import Word
from voxframe.local.written import finish, take_marks


def partial(first: int, last: int, words: Sequence[Word]) -> dict[str, Any]:
    """What has been heard of an utterance so far, from one sample of the session to another."""
    return _message("PartialTranscript", first, last, words)


def final(first: int, last: int, words: Sequence[Word], *, written: bool) -> dict[str, Any]:
    """What was heard of an utterance; `written`: its words are as people write them already."""
    shaped = _shaped(words, written=written)
    return _message("FinalTranscript", first, last, shaped) | {"punctuated": True, "text_formatted": True}


def timed(stretch: Stretch, heard: Sequence[Heard]) -> list[Word]:
    """Words of a stretch, with times from the beginning of the session."""
    at = stretch.start * 1000 // RATE
    return [Word(word.text, at + word.start_ms, at + word.end_ms, word.confidence) for word in heard]


def _shaped(words: Sequence[Word], *, written: bool) -> list[Word]:
    if not words:
        return []
    if written:
        shaped = without_filled_pauses(take_marks(words))
        finish(shaped, punctuate=True, format_text=True)
        return shaped
    find_sentence_ends(words)
    shaped = without_filled_pauses(words)
    for sentence in sentences_of(shaped):
        add_capitals(sentence)
        add_mark(sentence)
    return shaped


def _message(kind: str, first: int, last: int, words: Sequence[Word]) -> dict[str, Any]:
    confidences = [word.confidence for word in words]
    return {
        "message_type": kind,
        "audio_start": first * 1000 // RATE,
        "audio_end": last * 1000 // RATE,
        "confidence": round(sum(confidences) / len(confidences), 5) if confidences else 0.0,
        "text": " ".join(word.text for word in words),
        "words": [
            {"start": word.start, "end": word.end, "confidence": round(word.confidence, 5), "text": word.text}
            for word in words
        ],
        "created": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
    }
