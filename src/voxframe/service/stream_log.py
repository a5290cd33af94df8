"""The messages of a session, written by the portal's thread and read by any thread or loop, in bounded memory."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from voxframe.service.heartbeat import beating
from voxframe.service.stream_messages import Message, Partial

# Waiting in slices: Windows delivers Ctrl-C only between two waits.
_SLICE_SECONDS = 0.1


class MessageLog:
    """Messages in the order they came.

    Of what the next message replaces or what voxframe does not know, the newest `keep` are held; all others are held
    until the session object goes. So a reader that is slow, or not there, costs no memory and never stalls the
    connection: it misses old partials, nothing else.

    Args:
        keep: Partials and unknown messages held at most.

    Attributes:
        ended: Whether no more messages will come.
        error: Why the session did not end well, or None.
    """

    def __init__(self, keep: int = 1000) -> None:
        self._keep = keep
        self._held: dict[int, Message] = {}
        self._passing: deque[int] = deque()
        self._next = 0
        self._changed = threading.Condition()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()
        self.ended = False
        self.error: BaseException | None = None

    def add(self, message: Message) -> None:
        """Write a message."""
        with self._changed:
            self._held[self._next] = message
            if type(message) in (Partial, Message):
                self._passing.append(self._next)
                if len(self._passing) > self._keep:
                    del self._held[self._passing.popleft()]
            self._next += 1
            self._tell()

    def end(self, error: BaseException | None = None) -> None:
        """Say that no more will come."""
        with self._changed:
            if not self.ended:
                self.ended, self.error = True, error
                self._tell()

    @property
    def messages(self) -> list[Message]:
        """Those held, in order."""
        with self._changed:
            return list(self._held.values())

    def _tell(self) -> None:
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, set()
        for loop, future in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)

    def _after(self, position: int) -> tuple[int, Message] | None:
        while position < self._next:
            if position in self._held:
                return position, self._held[position]
            position += 1
        return None


class Cursor:
    """A reader of a log.

    Args:
        log: The log.
    """

    def __init__(self, log: MessageLog) -> None:
        self._log = log
        self._position = 0

    def wait(self) -> Message | None:
        """The next message, waited for; None at the end."""
        changed = self._log._changed
        with changed:
            while (found := self._take()) is None and not self._log.ended:
                changed.wait(_SLICE_SECONDS)
            return found

    async def wait_async(self) -> Message | None:
        """The next message, awaited on any loop; None at the end."""
        loop = asyncio.get_running_loop()
        while True:
            with self._log._changed:
                found = self._take()
                if found is not None or self._log.ended:
                    return found
                future: asyncio.Future[None] = loop.create_future()
                entry = (loop, future)
                self._log._waiting.add(entry)
            try:
                with beating():
                    await future
            finally:
                with self._log._changed:
                    self._log._waiting.discard(entry)

    def _take(self) -> Message | None:
        found = self._log._after(self._position)
        if found is None:
            self._position = self._log._next
            return None
        self._position = found[0] + 1
        return found[1]


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
