"""Messages of a streaming session, and the buffer that holds them.

Unknown or invalid messages are kept and never raise an error. The buffer is filled on the portal's thread, read by any
thread or event loop, and bounded.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from voxframe._text import moment_of
from voxframe.client.async_bridge import keep_loop_awake
from voxframe.client.response import as_bool, as_float, as_int, as_list, as_text, parse_json


@dataclass(frozen=True)
class StreamWord:
    """A word of a partial or final.

    Attributes:
        text: The word.
        start_ms: Start in ms from the beginning of the session.
        end_ms: End in ms from the beginning of the session.
        confidence: 0 to 1, as received.
    """

    text: str | None
    start_ms: int | None
    end_ms: int | None
    confidence: float | None


@dataclass(frozen=True)
class Message:
    """A message of the service. Messages of unknown types have this class itself.

    Attributes:
        raw: The JSON object as received; empty if the message was not a JSON object.
        session_id: Session id.
        idx: Index of the message in the session, from 0.
        offset_ms: Start of the session in the source, in ms. It is greater than 0 only after a reconnection.
    """

    raw: dict[str, Any] = field(repr=False)
    session_id: str | None = None
    idx: int = 0
    offset_ms: int = 0

    @property
    def message_type(self) -> str | None:
        """Type of the message, as named by the service."""
        return as_text(self.raw.get("message_type"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message_type!r})"


class SessionBegins(Message):
    """The first message of a session."""

    @property
    def expires_at(self) -> datetime | None:
        """Latest end of the session, UTC."""
        return moment_of(self.raw.get("expires_at"))


class _Text(Message):
    @property
    def text(self) -> str:
        """The text."""
        return as_text(self.raw.get("text")) or ""

    @property
    def start_ms(self) -> int | None:
        """Start in ms from the beginning of the session."""
        return as_int(self.raw.get("audio_start"))

    @property
    def end_ms(self) -> int | None:
        """End in ms from the beginning of the session."""
        return as_int(self.raw.get("audio_end"))

    @property
    def confidence(self) -> float | None:
        """0 to 1, as received."""
        return as_float(self.raw.get("confidence"))

    @property
    def created(self) -> datetime | None:
        """Time of creation at the service, UTC."""
        return moment_of(self.raw.get("created"))

    @cached_property
    def words(self) -> list[StreamWord]:
        """The words."""
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
    """The preliminary text of an utterance. The next partial or final replaces it."""


class Final(_Text):
    """The final text of an utterance."""

    @property
    def punctuated(self) -> bool | None:
        """True if the text has punctuation; None if the service does not report it."""
        return as_bool(self.raw.get("punctuated"))

    @property
    def text_formatted(self) -> bool | None:
        """True if capital letters and numbers are formatted; None if the service does not report it."""
        return as_bool(self.raw.get("text_formatted"))


class SessionInformation(Message):
    """Statistics of the session, sent before its end if requested."""

    @property
    def audio_duration_s(self) -> float | None:
        """Audio received, in seconds."""
        return as_float(self.raw.get("audio_duration_seconds"))


class SessionTerminated(Message):
    """The last message of a session."""


@dataclass(frozen=True, repr=False)
class Gap(Message):
    """Added by voxframe: the connection was lost here and a new session continues.

    Attributes:
        start_ms: End of the audio transcribed before, in ms of the source.
        end_ms: Start of the new session, in ms of the source. Speech between the two may be lost.
    """

    start_ms: int = 0
    end_ms: int = 0

    @property
    def ms(self) -> int:
        """Duration in ms."""
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
    """Read a message from a frame.

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
    sent_id = as_text(raw.get("session_id")) if kind is SessionBegins else None
    return kind(raw, sent_id or session_id, idx, offset_ms)


# Waits are cut into slices: Windows only delivers Ctrl-C between two waits.
_SLICE_SECONDS = 0.1


class MessageBuffer:
    """Messages in the order of arrival.

    Partials and unknown messages are limited to the newest `keep`; all others are kept as long as the session object.
    So a slow or missing reader needs little memory and never blocks the connection. It only misses old partials.
    """

    def __init__(self, keep: int = 1000) -> None:
        self._keep = keep
        self._messages: dict[int, Message] = {}
        self._discardable: deque[int] = deque()
        self._next = 0
        self._changed = threading.Condition()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()
        self.ended = False
        self.error: BaseException | None = None

    def add(self, message: Message) -> None:
        """Add a message."""
        with self._changed:
            self._messages[self._next] = message
            if type(message) in (Partial, Message):
                self._discardable.append(self._next)
                if len(self._discardable) > self._keep:
                    del self._messages[self._discardable.popleft()]
            self._next += 1
            self._notify()

    def end(self, error: BaseException | None = None) -> None:
        """Record that no more messages will arrive."""
        with self._changed:
            if not self.ended:
                self.ended, self.error = True, error
                self._notify()

    @property
    def messages(self) -> list[Message]:
        """The kept messages, in order."""
        with self._changed:
            return list(self._messages.values())

    def _notify(self) -> None:
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, set()
        for loop, future in waiting:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_wake, future)

    def _after(self, position: int) -> tuple[int, Message] | None:
        while position < self._next:
            if position in self._messages:
                return position, self._messages[position]
            position += 1
        return None


class Cursor:
    """A reader of a buffer."""

    def __init__(self, buffer: MessageBuffer) -> None:
        self._buffer = buffer
        self._position = 0

    def wait(self) -> Message | None:
        """Wait for the next message; return None at the end."""
        changed = self._buffer._changed
        with changed:
            while (message := self._take()) is None and not self._buffer.ended:
                changed.wait(_SLICE_SECONDS)
            return message

    async def wait_async(self) -> Message | None:
        """Await the next message on any loop; return None at the end."""
        loop = asyncio.get_running_loop()
        while True:
            with self._buffer._changed:
                message = self._take()
                if message is not None or self._buffer.ended:
                    return message
                future: asyncio.Future[None] = loop.create_future()
                entry = (loop, future)
                self._buffer._waiting.add(entry)
            try:
                with keep_loop_awake():
                    await future
            finally:
                with self._buffer._changed:
                    self._buffer._waiting.discard(entry)

    def _take(self) -> Message | None:
        entry = self._buffer._after(self._position)
        if entry is None:
            self._position = self._buffer._next
            return None
        self._position = entry[0] + 1
        return entry[1]


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
