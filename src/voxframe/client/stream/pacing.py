"""Split audio into messages and send them in real time."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Any

from voxframe.errors import OptionError

#: Audio in one message, in ms.
MIN_MESSAGE_MS, MAX_MESSAGE_MS = 100, 2000
_BYTES = {"pcm_s16le": 2, "pcm_mulaw": 1}
_SILENCE = {"pcm_s16le": b"\x00", "pcm_mulaw": b"\xff"}
# Minimum time between two messages when catching up, relative to the duration of their audio.
_CATCH_UP_PACE = 0.8
# Maximum delay that is caught up; after a longer one, the pace restarts.
_MAX_LAG_SECONDS = 60.0


class Chunker:
    """Splits bytes of any length into messages."""

    def __init__(self, rate: int, encoding: str, message_ms: int) -> None:
        self.bytes_per_second = rate * _BYTES[encoding]
        self._silence = _SILENCE[encoding]
        self._size = self._bytes(rate, message_ms, _BYTES[encoding])
        self._min_size = self._bytes(rate, MIN_MESSAGE_MS, _BYTES[encoding])
        self._buffer = bytearray()

    @staticmethod
    def _bytes(rate: int, ms: int, width: int) -> int:
        return -(-rate * ms // 1000) * width

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add bytes and return the complete messages."""
        self._buffer += chunk
        count = len(self._buffer) // self._size
        full = [bytes(self._buffer[i * self._size : (i + 1) * self._size]) for i in range(count)]
        del self._buffer[: count * self._size]
        return full

    def finish(self) -> list[bytes]:
        """Return the rest, padded with silence to the shortest message allowed."""
        tail = bytes(self._buffer)
        self._buffer.clear()
        return [tail + self._silence * max(0, self._min_size - len(tail))] if tail else []


class SourceReader:
    """Reads chunks from a source into a small queue on the portal's loop, only slightly ahead of what is sent.

    Args:
        home: Event loop of an async source; None uses the portal's.
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
        """Start reading. Must be called on the portal's loop."""
        self._loop = asyncio.get_running_loop()
        if not isinstance(self._chunks, AsyncIterable):
            threading.Thread(target=self._read, name="voxframe-stream-source", daemon=True).start()
        elif self._home is None or self._home is self._loop:
            self._task = self._loop.create_task(self._read_async())
        else:
            self._task = asyncio.run_coroutine_threadsafe(self._read_async(), self._home)

    def stop(self) -> None:
        """Stop reading. A source that blocks is abandoned when it returns."""
        self._stopped.set()
        if self._task is not None:
            self._task.cancel()

    async def get(self) -> bytes | None:
        """Return the next chunk, or None at the end."""
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
                self._put(_as_bytes(chunk))
            if chunks is not self._chunks and hasattr(
                chunks, "close"
            ):  # the iterator was created here, for example by a microphone
                chunks.close()
        except BaseException as error:  # noqa: BLE001 - shown to the user
            self.error = error
        self._put(None)

    def _put(self, chunk: bytes | None) -> None:
        if self._stopped.is_set():
            return
        put = self._queue.put(chunk)
        try:
            done = asyncio.run_coroutine_threadsafe(put, self._loop)
        except RuntimeError:  # the loop is closed because the interpreter exits
            put.close()
            self._stopped.set()
            return
        while not self._stopped.is_set():
            try:
                done.result(0.5)
            except TimeoutError:
                continue
            return
        done.cancel()  # otherwise it would wait on the loop forever

    async def _read_async(self) -> None:
        assert isinstance(self._chunks, AsyncIterable)
        try:
            async for chunk in self._chunks:
                await self._put_async(_as_bytes(chunk))
        except Exception as error:  # noqa: BLE001 - as above
            self.error = error
        await self._put_async(None)

    async def _put_async(self, chunk: bytes | None) -> None:
        if asyncio.get_running_loop() is self._loop:
            await self._queue.put(chunk)
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._queue.put(chunk), self._loop))


def _as_bytes(chunk: object) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    kind = type(chunk).__name__
    try:
        view = memoryview(chunk)  # type: ignore[arg-type]
        if view.format in ("B", "b", "c", "h", "<h"):  # other number formats would sound like noise
            return view.tobytes()
        kind += f" of {getattr(chunk, 'dtype', view.format)}"
    except TypeError:
        pass
    raise OptionError(f"the source returned a {kind}; it must return bytes: raw mono samples in the given encoding")


class MessageQueue:
    """Audio messages from a source, one at a time."""

    def __init__(self, reader: SourceReader, chunker: Chunker) -> None:
        self._reader = reader
        self._chunker = chunker
        self._ready: deque[bytes] = deque()
        self._over = False

    async def next(self) -> bytes | None:
        """Return the next message, the same one until `pop`; None at the end. Can be cancelled at any time."""
        while not self._ready and not self._over:
            chunk = await self._reader.get()
            self._over = chunk is None
            self._ready += self._chunker.finish() if chunk is None else self._chunker.feed(chunk)
        return self._ready[0] if self._ready else None

    def pop(self) -> None:
        """Remove the message that was sent."""
        self._ready.popleft()


class Pacer:
    """Computes the pause before each message, so that audio is sent in real time.

    A delay of the source or the connection is caught up at a slightly faster pace, because services refuse bursts.
    """

    def __init__(self) -> None:
        self._due: float | None = None
        self._sent_at = 0.0

    def wait_s(self, now: float, message_s: float) -> float:
        """Return the seconds to wait before a message."""
        if self._due is None or now - self._due > _MAX_LAG_SECONDS:
            self._due = self._sent_at = now
        at = max(now, self._due, self._sent_at)
        self._due += message_s
        self._sent_at = at + _CATCH_UP_PACE * message_s
        return at - now
