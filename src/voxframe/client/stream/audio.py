"""Audio of a streaming session: mono samples of files, bytes, iterators and microphones, in messages and in pace."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import wave
from collections import deque
from collections.abc import AsyncIterable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

from voxframe.client.response import as_path
from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError, OptionError
from voxframe.validators import Integer, checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: A path; bytes or a binary file with an audio file or raw samples; or an iterable of raw samples.
StreamSource: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | Iterable[bytes] | AsyncIterable[bytes]"
)

#: Default sample rate of audio files that are decoded, in Hz.
DEFAULT_RATE = 16_000
_READ_BYTES = 32_768
_MULAW_BIAS, _MULAW_LOUDEST = 132, 32635
# First bytes of audio files. Raw samples hardly ever begin with them.
_CONTAINERS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3")


@runtime_checkable
class RatedSource(Protocol):
    """A source of chunks with a known sample rate, such as a microphone."""

    @property
    def sample_rate(self) -> int:
        """Samples per second."""


@dataclass(frozen=True)
class Samples:
    """Raw samples to send.

    Attributes:
        chunks: Bytes in chunks of any length. An async iterable belongs to the user's loop.
    """

    rate: int
    chunks: Iterable[bytes] | AsyncIterable[bytes]


def open_source(source: StreamSource, sample_rate: int | None, encoding: str) -> Samples:
    """Open a source. Audio files are decoded and converted; other bytes must be mono samples in `encoding` already."""
    if isinstance(source, str | os.PathLike):
        return _file(_path(source), sample_rate, encoding)
    if hasattr(source, "dtype"):
        source = _array(source, encoding)
    if isinstance(source, bytes | bytearray | memoryview):
        data = memoryview(source).cast("B")
        if bytes(data[:4]).startswith(_CONTAINERS):
            return _file(BytesIO(data), sample_rate, encoding)
        return Samples(_required(sample_rate), _slices(data))
    if hasattr(source, "read"):
        return _open_file(cast("IO[bytes]", source), sample_rate, encoding)
    if isinstance(source, AsyncIterable | Iterable):
        if encoding == "pcm_mulaw" and isinstance(source, RatedSource):
            raise OptionError("a microphone records linear samples; leave encoding at 'pcm_s16le'")
        source_rate = int(source.sample_rate) if isinstance(source, RatedSource) else None
        if source_rate is not None and sample_rate not in (None, source_rate):
            raise OptionError(f"sample_rate is {sample_rate}, but the source records at {source_rate} Hz; leave it out")
        return Samples(source_rate or _required(sample_rate), cast("Iterable[bytes] | AsyncIterable[bytes]", source))
    raise OptionError(
        "the source must be a path, bytes, a file opened with open(path, 'rb'), an iterator of bytes, or "
        f"voxframe.microphone(), got {type(source).__name__}"
    )


def _array(samples: Any, encoding: str) -> bytes:
    """Return the bytes of an array of samples after checking that its dtype and shape fit the encoding."""
    dtype = "uint8" if encoding == "pcm_mulaw" else "int16"
    if str(samples.dtype) != dtype or getattr(samples, "ndim", 1) != 1:
        raise OptionError(
            f"the samples are {samples.dtype} of shape {getattr(samples, 'shape', '?')}; {encoding} needs a "
            f"one-dimensional array of {dtype}. pcm_s16le takes (mono * 32767).astype('int16')"
        )
    return bytes(samples.tobytes())


def _slices(data: memoryview) -> Iterator[bytes]:
    for start in range(0, len(data), _READ_BYTES):
        yield bytes(data[start : start + _READ_BYTES])


def _required(sample_rate: int | None) -> int:
    if sample_rate is None:
        raise OptionError("raw samples have no sample rate; give it in Hz, such as sample_rate=16000")
    return sample_rate


def _path(source: str | os.PathLike[str]) -> Path:
    if isinstance(source, str) and "://" in source:
        raise OptionError("streaming sends local audio and cannot fetch a URL; give the path of a file")
    path = as_path(source)
    if os.path.isdir(path):  # noqa: PTH112 - False instead of an error for invalid names
        raise AudioError(f"{path} is a directory; give one audio file")
    if not os.path.exists(path):  # noqa: PTH110 - as above
        raise AudioNotFoundError(f"there is no audio file {str(path)!r}. Check the path")
    return path


def _open_file(file: IO[bytes], sample_rate: int | None, encoding: str) -> Samples:
    first = file.read(4)
    if not isinstance(first, bytes):
        raise OptionError("the file is a text file; open it in binary mode: open(path, 'rb')")
    if not first.startswith(_CONTAINERS):
        return Samples(_required(sample_rate), _pieces(file, first))
    try:
        file.seek(-len(first), os.SEEK_CUR)
    except (AttributeError, OSError, ValueError):
        raise OptionError("an audio file cannot be streamed from a pipe; save it first, or pipe raw samples") from None
    return _file(file, sample_rate, encoding)


def _pieces(file: IO[bytes], first: bytes) -> Iterator[bytes]:
    yield first
    # read1 returns available bytes; read would wait for a full block from a live pipe.
    read = getattr(file, "read1", file.read)
    while piece := read(_READ_BYTES):
        yield piece


def _file(file: Path | IO[bytes] | BytesIO, sample_rate: int | None, encoding: str) -> Samples:
    """Return the samples of an audio file: of a plain WAV file as they are, of others decoded."""
    start = None if isinstance(file, Path) else file.tell()
    reader = _plain_wav(file)
    if reader is not None and sample_rate in (None, reader.getframerate()):
        rate, chunks = reader.getframerate(), _frames(reader)
    else:
        if reader is not None:
            reader.close()
        if start is not None and not isinstance(file, Path):
            file.seek(start)  # after the header that was read
        rate, chunks = sample_rate or DEFAULT_RATE, _decoded(file, sample_rate or DEFAULT_RATE)
    return Samples(rate, _to_mulaw(chunks) if encoding == "pcm_mulaw" else chunks)


def _plain_wav(file: Path | IO[bytes]) -> wave.Wave_read | None:
    """Return a reader if the file is a mono 16-bit WAV file, else None."""
    try:
        reader = wave.open(str(file) if isinstance(file, Path) else file, "rb")  # noqa: SIM115 - returned open
    except (wave.Error, EOFError):
        reader = None
    except OSError as error:
        raise AudioError(f"{str(file)!r} cannot be read: {error.strerror or error}. Check its permissions") from None
    if reader is not None and reader.getnchannels() == 1 and reader.getsampwidth() == 2:
        return reader
    return None


def _frames(reader: wave.Wave_read) -> Iterator[bytes]:
    with reader:
        while piece := reader.readframes(_READ_BYTES // 2):
            yield piece


def _decoded(file: Path | IO[bytes], rate: int) -> Iterator[bytes]:
    try:
        import av
    except ModuleNotFoundError as error:
        raise MissingExtraError("local", "Streaming anything but a mono 16-bit wav at its own rate") from error
    name = str(file) if isinstance(file, Path) else "the file"
    try:
        container = av.open(str(file) if isinstance(file, Path) else file, options={"protocol_whitelist": "file"})
    except (av.FFmpegError, OSError, ValueError):
        raise AudioError(f"{name!r} has no readable audio; give a recording, such as a wav or mp3") from None
    if not container.streams.audio:
        container.close()
        raise AudioError(f"{name!r} has no audio track; give a recording, such as a wav or mp3")
    return _resampled(container, rate)


def _resampled(container: Any, rate: int) -> Iterator[bytes]:
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
    with container:
        packets = container.demux(container.streams.audio[0])
        for packet in packets:
            try:
                frames = packet.decode()
            except av.FFmpegError:  # skip damaged packets
                continue
            for frame in frames:
                frame.pts = None
                for out in resampler.resample(frame):
                    yield out.to_ndarray().tobytes()
        for out in resampler.resample(None):
            yield out.to_ndarray().tobytes()


def _to_mulaw(chunks: Iterable[bytes]) -> Iterator[bytes]:
    import numpy as np

    for chunk in chunks:
        even = len(chunk) // 2 * 2  # a file that was cut off may end with half a sample
        yield encode_mulaw(np.frombuffer(chunk[:even], "<i2"))


def encode_mulaw(samples: NDArray[np.int16]) -> bytes:
    """Encode samples as mu-law (ITU-T G.711), one byte per sample.

    Example:
        >>> import numpy as np
        >>> encode_mulaw(np.array([0, 32767, -32768], np.int16)).hex()
        'ff8000'
    """
    import numpy as np

    linear = samples.astype(np.int32)
    magnitude = np.minimum(np.abs(linear), _MULAW_LOUDEST) + _MULAW_BIAS
    exponent = np.frexp(magnitude.astype(np.float64))[1].astype(np.int32) - 8
    mantissa = (magnitude >> (exponent + 3)) & 0x0F
    sign = np.where(linear < 0, 0x80, 0)
    return bytes((~(sign | (exponent << 4) | mantissa) & 0xFF).astype(np.uint8).tobytes())


_BLOCK_MS = 100
_MAX_BUFFER_SECONDS = 60  # of unread sound; after that the oldest is dropped


class Microphone:
    """Sound of a microphone as 16-bit mono samples. Created by `voxframe.microphone`.

    Recording starts when the object is iterated and stops when the iteration ends, which a session does by itself.

    Attributes:
        sample_rate: Samples per second.
        dropped_ms: Sound lost because it was not read in time, in ms.
    """

    def __init__(self, sample_rate: int, device: int | str | None) -> None:
        self.sample_rate = sample_rate
        self._device = device
        self.dropped_ms = 0

    def __iter__(self) -> Iterator[bytes]:
        blocks: queue.Queue[bytes] = queue.Queue(_MAX_BUFFER_SECONDS * 1000 // _BLOCK_MS)

        def take(data: Any, *_: object) -> None:
            if blocks.full():
                blocks.get_nowait()
                self.dropped_ms += _BLOCK_MS
            blocks.put_nowait(bytes(data))

        sounddevice = _sounddevice()
        try:
            recording = sounddevice.RawInputStream(
                samplerate=self.sample_rate,
                blocksize=self.sample_rate * _BLOCK_MS // 1000,
                device=self._device,
                channels=1,
                dtype="int16",
                callback=take,
            )
        except (sounddevice.PortAudioError, ValueError) as error:
            which = "the default microphone" if self._device is None else f"the microphone {self._device!r}"
            raise AudioError(
                f"{which} cannot be used at {self.sample_rate} Hz ({error}); `python -m sounddevice` lists the devices"
            ) from error
        with recording:
            while True:
                yield blocks.get()

    def __repr__(self) -> str:
        return f"Microphone({self.sample_rate} Hz)"


def microphone(sample_rate: int = 16_000, device: int | str | None = None) -> Microphone:
    """Return a microphone to pass to `client.stream`.

    Args:
        sample_rate: Samples per second (Hz).
        device: Number or name of the device, as listed by `python -m sounddevice`. None (default): the system default.

    Raises:
        MissingExtraError: The extra `mic` is not installed.
        AudioError: The sound library of the system is missing.
        OptionError: The sample rate is not a positive whole number.

    Example:
        >>> with client.stream(voxframe.microphone()) as session:          # doctest: +SKIP
        ...     for message in session:
        ...         print(message)
    """
    rate = checked("sample_rate", sample_rate, Integer(1, unit="Hz"))
    _sounddevice()
    return Microphone(rate, device)


def _sounddevice() -> Any:
    try:
        import sounddevice
    except ModuleNotFoundError as error:
        raise MissingExtraError("mic", "Recording from a microphone") from error
    except OSError as error:  # the Linux wheels do not include PortAudio
        raise AudioError(
            f"the sound library of the system cannot be loaded ({error}); on Debian: apt install libportaudio2"
        ) from error
    return sounddevice


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

    `home` is the event loop of an async source; None uses the portal's.
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
