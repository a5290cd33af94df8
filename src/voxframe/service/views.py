"""Sentences and paragraphs of a transcript as values. The answer is kept beside them, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from voxframe.service.lenient import as_float, as_int, as_list, as_text


@dataclass(frozen=True, slots=True)
class Word:
    """A word. Times are ms from the start of the media; confidence is the service's own, 0 to 1."""

    text: str
    start_ms: int | None
    end_ms: int | None
    confidence: float | None
    speaker: str | None
    channel: str | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence or a paragraph. Times are ms from the start of the media; confidence is the service's own, 0 to 1."""

    text: str
    start_ms: int | None
    end_ms: int | None
    confidence: float | None
    speaker: str | None
    channel: str | None
    words: tuple[Word, ...] = field(repr=False)


@dataclass(frozen=True)
class Passages(Sequence[Passage]):
    """Sentences or paragraphs of a transcript, in order.

    Attributes:
        transcript_id: Identifier of the transcript.
        confidence: Confidence of the transcript, 0 to 1.
        audio_duration_s: Duration of the media in seconds.
        items: The sentences or paragraphs.
        raw: The service's answer as it came.
    """

    transcript_id: str
    confidence: float | None
    audio_duration_s: float | None
    items: tuple[Passage, ...] = field(repr=False)
    raw: bytes = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Passage, ...]: ...
    def __getitem__(self, index: int | slice) -> Passage | tuple[Passage, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.items)


def passages(transcript_id: str, name: str, data: dict[str, Any], raw: bytes) -> Passages:
    """Sentences or paragraphs from an answer; `name` is the field they are in."""
    return Passages(
        as_text(data.get("id")) or transcript_id,
        as_float(data.get("confidence")),
        as_float(data.get("audio_duration")),
        tuple(
            Passage(
                *_common(item),
                words=tuple(Word(*_common(w)) for w in as_list(item.get("words")) if isinstance(w, dict)),
            )
            for item in as_list(data.get(name))
            if isinstance(item, dict)
        ),
        raw,
    )


def _common(item: dict[str, Any]) -> tuple[str, int | None, int | None, float | None, str | None, str | None]:
    return (
        as_text(item.get("text")) or "",
        as_int(item.get("start")),
        as_int(item.get("end")),
        as_float(item.get("confidence")),
        as_text(item.get("speaker")),
        as_text(item.get("channel")),
    )
