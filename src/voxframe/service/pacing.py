"""Audio messages: raw samples cut to the length the interface asks for, given out at the pace they were spoken."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Any

from voxframe.errors import OptionError

#: Audio in one message, in ms.
SHORTEST_MS, LONGEST_MS = 100, 2000
_BYTES = {"pcm_s16le": 2, "pcm_mulaw": 1}
_SILENCE = {"pcm_s16le": b"\x00", "pcm_mulaw": b"\xff"}
# Least time between two messages, as a part of the audio in them.
_CATCHING_UP = 0.8
# What is later than this is not caught up with; the clock starts anew.
_LATE_SECONDS = 60.0


class Cutter:
    """Cuts bytes of any length to messages.

    Args:
        rate: Samples a second.
        encoding: "pcm_s16le" or "pcm_mulaw".
        message_ms: Audio in one message.
    """

    def __init__(self, rate: int, encoding: str, message_ms: int) -> None:
        self.bytes_per_second = rate * _BYTES[encoding]
        self._silence = _SILENCE[encoding]
        self._size = self._bytes(rate, message_ms, _BYTES[encoding])
        self._least = self._bytes(rate, SHORTEST_MS, _BYTES[encoding])
        self._held = bytearray()

    @staticmethod
    def _bytes(rate: int, ms: int, width: int) -> int:
        return -(-rate * ms // 1000) * width

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk; give the messages that are full."""
        self._held += chunk
        count = len(self._held) // self._size
        full = [bytes(self._held[i * self._size : (i + 1) * self._size]) for i in range(count)]
        del self._held[: count * self._size]
        return full

    def finish(self) -> list[bytes]:
        """What is left, filled up with silence to the shortest message there may be."""
        rest = bytes(self._held)
        self._held.clear()
        return [rest + self._silence * max(0, self._least - len(rest))] if rest else []


class Pump:
    """Takes chunks from a source into a small queue of the portal's loop: never far ahead of what is sent.

    Args:
        chunks: The source. A synchronous one is read in a thread of its own; an asynchronous one on `home`.
        home: The loop an asynchronous source belongs to; None: the portal's.

    Attributes:
        error: What the source raised, once it has ended.
    """

    def __init__(self, chunks: Iterable[bytes] | AsyncIterable[bytes], home: asyncio.AbstractEventLoop | None) -> None:
        self._chunks = chunks
        self._home = home
        self._loop: asyncio.AbstractEventLoop
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(4)
        self._stopped = threading.Event()
        self._over = False
        self._task: Any = None
        self.error: BaseException | None = None

    def start(self) -> None:
        """Begin to read. Called on the portal's loop."""
        self._loop = asyncio.get_running_loop()
        if not isinstance(self._chunks, AsyncIterable):
            threading.Thread(target=self._read, name="voxframe-stream-source", daemon=True).start()
        elif self._home is None or self._home is self._loop:
            self._task = self._loop.create_task(self._read_async())
        else:
            self._task = asyncio.run_coroutine_threadsafe(self._read_async(), self._home)

    def stop(self) -> None:
        """Read no more. A source that is waiting for audio is left behind when that comes."""
        self._stopped.set()
        if self._task is not None:
            self._task.cancel()

    async def get(self) -> bytes | None:
        """The next chunk; None at the end."""
        return None if self._over else self._note(await self._queue.get())

    def _note(self, chunk: bytes | None) -> bytes | None:
        self._over = chunk is None
        return chunk

    def _read(self) -> None:
        assert not isinstance(self._chunks, AsyncIterable)
        try:
            chunks = iter(self._chunks)
            for chunk in chunks:
                if self._stopped.is_set():
                    break
                self._put(_checked(chunk))
            if chunks is not self._chunks and hasattr(chunks, "close"):  # begun here, ended here: a microphone
                chunks.close()
        except BaseException as error:  # noqa: BLE001 - whatever a source raises is the user's to see
            self.error = error
        self._put(None)

    def _put(self, chunk: bytes | None) -> None:
        if self._stopped.is_set():
            return
        put = self._queue.put(chunk)
        try:
            done = asyncio.run_coroutine_threadsafe(put, self._loop)
        except RuntimeError:  # the loop is closed: the interpreter is about to end
            put.close()
            self._stopped.set()
            return
        while not self._stopped.is_set():
            try:
                done.result(0.5)
            except TimeoutError:
                continue
            return
        done.cancel()  # nobody takes it any more; left alone it would wait on the loop for ever

    async def _read_async(self) -> None:
        assert isinstance(self._chunks, AsyncIterable)
        try:
            async for chunk in self._chunks:
                await self._put_async(_checked(chunk))
        except Exception as error:  # noqa: BLE001 - as above
            self.error = error
        await self._put_async(None)

    async def _put_async(self, chunk: bytes | None) -> None:
        if asyncio.get_running_loop() is self._loop:
            await self._queue.put(chunk)
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._queue.put(chunk), self._loop))


def _checked(chunk: object) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    given = type(chunk).__name__
    try:
        view = memoryview(chunk)  # type: ignore[arg-type]
        if view.format in ("B", "b", "c", "h", "<h"):  # numbers of another kind would be heard as noise
            return view.tobytes()
        given += f" of {getattr(chunk, 'dtype', view.format)}"
    except TypeError:
        pass
    raise OptionError(f"the source gave a {given}; it must give bytes: raw mono samples in the encoding named")


class Feed:
    """Audio messages from a source, one at a time.

    Args:
        pump: The source.
        cutter: Cuts its chunks.
    """

    def __init__(self, pump: Pump, cutter: Cutter) -> None:
        self._pump = pump
        self._cutter = cutter
        self._ready: deque[bytes] = deque()
        self._over = False

    async def next(self) -> bytes | None:
        """The message to send next, the same one until it is `sent`; None at the end. May be cancelled at any time."""
        while not self._ready and not self._over:
            chunk = await self._pump.get()
            self._over = chunk is None
            self._ready += self._cutter.finish() if chunk is None else self._cutter.feed(chunk)
        return self._ready[0] if self._ready else None

    def sent(self) -> None:
        """Say that it was sent."""
        self._ready.popleft()


class Clock:
    """Says how long to wait before the next message, so that audio goes out as fast as it was spoken.

    What is late, because the source or the connection stalled, is caught up with at a slightly faster pace: a service
    refuses audio that comes in a burst.
    """

    def __init__(self) -> None:
        self._due: float | None = None
        self._last = 0.0

    def wait_s(self, now: float, message_s: float) -> float:
        """Seconds to wait before a message.

        Args:
            now: The time.
            message_s: Audio in the message, in seconds.
        """
        if self._due is None or now - self._due > _LATE_SECONDS:
            self._due = self._last = now
        at = max(now, self._due, self._last)
        self._due += message_s
        self._last = at + _CATCHING_UP * message_s
        return at - now
