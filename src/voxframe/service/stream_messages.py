"""What a streaming session says, as values. Anything may come: what is unknown or broken is kept, never an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from voxframe.service.answer import parse_json
from voxframe.service.lenient import as_float, as_int, as_list, as_moment, as_text


@dataclass(frozen=True)
class StreamWord:
    """A word of a partial or final.

    Attributes:
        text: The word.
        start_ms: Where it begins, in ms from the beginning of the session.
        end_ms: Where it ends.
        confidence: 0 to 1, as the service gave it.
    """

    text: str | None
    start_ms: int | None
    end_ms: int | None
    confidence: float | None


@dataclass(frozen=True)
class Message:
    """A message of the service. This class itself stands for kinds of message that voxframe does not know.

    Attributes:
        raw: The message as it came: a JSON object; empty where it was none.
        session_id: Identifier of the session.
        idx: Its position in the session, from 0.
        offset_ms: Where in the source the session began, in ms: not 0 only after a reconnection.
    """

    raw: dict[str, Any] = field(repr=False)
    session_id: str | None = None
    idx: int = 0
    offset_ms: int = 0

    @property
    def message_type(self) -> str | None:
        """Its kind, as the service names it."""
        return as_text(self.raw.get("message_type"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message_type!r})"


class SessionBegins(Message):
    """The first message of a session."""

    @property
    def expires_at(self) -> datetime | None:
        """When the session ends at the latest."""
        return as_moment(self.raw.get("expires_at"))


class _Text(Message):
    @property
    def text(self) -> str:
        """The text."""
        return as_text(self.raw.get("text")) or ""

    @property
    def start_ms(self) -> int | None:
        """Where it begins, in ms from the beginning of the session."""
        return as_int(self.raw.get("audio_start"))

    @property
    def end_ms(self) -> int | None:
        """Where it ends, in ms from the beginning of the session."""
        return as_int(self.raw.get("audio_end"))

    @property
    def confidence(self) -> float | None:
        """0 to 1, as the service gave it."""
        return as_float(self.raw.get("confidence"))

    @property
    def created(self) -> datetime | None:
        """When the service made it, as it says."""
        return as_moment(self.raw.get("created"))

    @cached_property
    def words(self) -> list[StreamWord]:
        """Its words."""
        return [
            StreamWord(
                as_text(word.get("text")),
                as_int(word.get("start")),
                as_int(word.get("end")),
                as_float(word.get("confidence")),
            )
            for word in as_list(self.raw.get("words"))
            if isinstance(word, dict)
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r}, {self.start_ms} to {self.end_ms} ms)"


class Partial(_Text):
    """What has been understood of an utterance so far. The next partial, or the final, replaces it."""


class Final(_Text):
    """The text of an utterance, which no longer changes."""


class SessionInformation(Message):
    """What the session amounted to; sent before its end where it was asked for."""

    @property
    def audio_duration_s(self) -> float | None:
        """Audio received, in seconds."""
        return as_float(self.raw.get("audio_duration_seconds"))


class SessionTerminated(Message):
    """The last message of a session."""


@dataclass(frozen=True, repr=False)
class Gap(Message):
    """Made by voxframe, not by the service: the connection broke here, and another session goes on.

    Attributes:
        start_ms: End of what was transcribed before, in ms of the source.
        end_ms: Where the new session begins, in ms of the source. Speech between the two may be lost.
    """

    start_ms: int = 0
    end_ms: int = 0

    @property
    def ms(self) -> int:
        """How long it is, in ms."""
        return self.end_ms - self.start_ms

    def __repr__(self) -> str:
        return f"Gap({self.start_ms} to {self.end_ms} ms)"


_KINDS: dict[str, type[Message]] = {
    "SessionBegins": SessionBegins,
    "PartialTranscript": Partial,
    "FinalTranscript": Final,
    "SessionInformation": SessionInformation,
    "SessionTerminated": SessionTerminated,
}


def read(data: str | bytes, *, session_id: str | None, idx: int, offset_ms: int = 0) -> Message:
    """A message from the text of a frame.

    Args:
        data: The frame.
        session_id: The session it belongs to, unless it says so itself.
        idx: Its position in the session.
        offset_ms: Where in the source the session began.

    Example:
        >>> read('{"message_type": "FinalTranscript", "text": "Hello."}', session_id="a", idx=1).text
        'Hello.'
    """
    try:
        raw = parse_json(data.encode("utf-8", "replace") if isinstance(data, str) else data)
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        raw = {}
    kind = _KINDS.get(as_text(raw.get("message_type")) or "", Message)
    own = as_text(raw.get("session_id")) if kind is SessionBegins else None
    return kind(raw, own or session_id, idx, offset_ms)
