"""What may be streamed, as raw samples of one channel: files, bytes, iterators, a microphone."""

from __future__ import annotations

import os
import wave
from collections.abc import AsyncIterable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, cast, runtime_checkable

from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError, OptionError
from voxframe.service.lenient import as_path

#: A path; bytes, or a file opened for reading bytes, holding an audio file or raw samples; or chunks of raw samples.
StreamSource: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | Iterable[bytes] | AsyncIterable[bytes]"
)

#: Rate of the samples of a file that says no other, in Hz.
DEFAULT_RATE = 16_000
_READ_BYTES = 32_768
# How files of audio begin. Raw samples may begin so too, but hardly ever do.
_CONTAINERS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3")


@runtime_checkable
class RatedSource(Protocol):
    """A source of chunks that knows its sample rate, such as a microphone."""

    @property
    def sample_rate(self) -> int:
        """Samples a second."""


@dataclass(frozen=True)
class Samples:
    """Raw samples, ready to be sent.

    Attributes:
        rate: Samples a second.
        chunks: The bytes, in pieces of any length. An asynchronous iterable is the user's own.
    """

    rate: int
    chunks: Iterable[bytes] | AsyncIterable[bytes]


def open_source(source: StreamSource, sample_rate: int | None, encoding: str) -> Samples:
    """Open a source.

    Args:
        source: See `StreamSource`. Chunks, and bytes or files that are no audio file, are taken to be mono samples in
            `encoding` already; audio files are decoded and converted.
        sample_rate: Samples a second to send; None: what a file or microphone says.
        encoding: "pcm_s16le" or "pcm_mulaw".

    Raises:
        AudioError: A file does not exist or holds no audio.
        OptionError: It is no source, or raw samples come without a sample rate.
        MissingExtraError: Decoding or resampling needs the extra `local`.
    """
    if isinstance(source, str | os.PathLike):
        return _file(_path(source), sample_rate, encoding)
    if hasattr(source, "dtype"):
        source = _array(source)
    if isinstance(source, bytes | bytearray | memoryview):
        data = memoryview(source).cast("B")
        if bytes(data[:4]).startswith(_CONTAINERS):
            return _file(BytesIO(data), sample_rate, encoding)
        return Samples(_required(sample_rate), _slices(data))
    if hasattr(source, "read"):
        return _open_file(cast("IO[bytes]", source), sample_rate, encoding)
    if isinstance(source, AsyncIterable | Iterable):
        if encoding == "pcm_mulaw" and isinstance(source, RatedSource):
            raise OptionError("a microphone gives linear samples; leave encoding at 'pcm_s16le'")
        own = int(source.sample_rate) if isinstance(source, RatedSource) else None
        if own is not None and sample_rate not in (None, own):
            raise OptionError(f"sample_rate is {sample_rate}, but the source records at {own} Hz; leave it out")
        return Samples(own or _required(sample_rate), cast("Iterable[bytes] | AsyncIterable[bytes]", source))
    raise OptionError(
        f"cannot stream a {type(source).__name__}; give a path, bytes, a file opened with open(path, 'rb'), an "
        "iterator of bytes, or voxframe.microphone()"
    )


def _array(samples: Any) -> bytes:
    """The bytes of an array of samples, where they are what the wire takes."""
    if str(samples.dtype) not in ("int16", "uint8") or getattr(samples, "ndim", 1) != 1:
        raise OptionError(
            f"the samples are {samples.dtype} of shape {getattr(samples, 'shape', '?')}; give a one-dimensional array "
            "of int16 (pcm_s16le) or uint8 (pcm_mulaw), such as (mono * 32767).astype('int16')"
        )
    return bytes(samples.tobytes())


def _slices(data: memoryview) -> Iterator[bytes]:
    for start in range(0, len(data), _READ_BYTES):
        yield bytes(data[start : start + _READ_BYTES])


def _required(sample_rate: int | None) -> int:
    if sample_rate is None:
        raise OptionError("raw samples do not say their rate; give sample_rate in Hz, such as sample_rate=16000")
    return sample_rate


def _path(source: str | os.PathLike[str]) -> Path:
    if isinstance(source, str) and "://" in source:
        raise OptionError("streaming sends audio from here and fetches no addresses; give the path of a file")
    path = as_path(source)
    if os.path.isdir(path):  # noqa: PTH112 - a name no file can have is none, not an error
        raise AudioError(f"{path} is a directory; give one audio file")
    if not os.path.exists(path):  # noqa: PTH110 - as above
        raise AudioNotFoundError(f"there is no audio file {str(path)!r}. Check the path")
    return path


def _open_file(file: IO[bytes], sample_rate: int | None, encoding: str) -> Samples:
    first = file.read(4)
    if not isinstance(first, bytes):
        raise OptionError("the file gives text; open it for bytes: open(path, 'rb')")
    if not first.startswith(_CONTAINERS):
        return Samples(_required(sample_rate), _pieces(file, first))
    try:
        file.seek(-len(first), os.SEEK_CUR)
    except (AttributeError, OSError, ValueError):
        raise OptionError(
            "an audio file that comes through a pipe cannot be streamed; save it first, or pipe raw samples"
        ) from None
    return _file(file, sample_rate, encoding)


def _pieces(file: IO[bytes], first: bytes) -> Iterator[bytes]:
    yield first
    # read1 gives what is there; read would wait for a whole piece from a pipe that is live.
    read = getattr(file, "read1", file.read)
    while piece := read(_READ_BYTES):
        yield piece


def _file(file: Path | IO[bytes] | BytesIO, sample_rate: int | None, encoding: str) -> Samples:
    """An audio file: a plain wav as it is, anything else decoded."""
    reader = _plain_wav(file)
    if reader is not None and sample_rate in (None, reader.getframerate()):
        rate, chunks = reader.getframerate(), _frames(reader)
    else:
        if reader is not None:
            reader.close()
        rate, chunks = sample_rate or DEFAULT_RATE, _decoded(file, sample_rate or DEFAULT_RATE)
    return Samples(rate, _to_mulaw(chunks) if encoding == "pcm_mulaw" else chunks)


def _plain_wav(file: Path | IO[bytes]) -> wave.Wave_read | None:
    """A reader where the file is a wav of one 16-bit channel; the file is then read from its samples on."""
    start = None if isinstance(file, Path) else file.tell()
    try:
        reader = wave.open(str(file) if isinstance(file, Path) else file, "rb")  # noqa: SIM115 - given back open
    except (wave.Error, EOFError):
        reader = None
    except OSError as error:
        raise AudioError(f"{str(file)!r} cannot be read: {error.strerror or error}. Check its permissions") from None
    if reader is not None and reader.getnchannels() == 1 and reader.getsampwidth() == 2:
        return reader
    if start is not None and not isinstance(file, Path):
        file.seek(start)
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
        raise AudioError(f"{name!r} holds no audio that can be read; give a recording, such as a wav or mp3") from None
    if not container.streams.audio:
        container.close()
        raise AudioError(f"{name!r} has no sound in it; give a recording, such as a wav or mp3")
    return _resampled(container, rate)


def _resampled(container: Any, rate: int) -> Iterator[bytes]:
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
    with container:
        packets = container.demux(container.streams.audio[0])
        for packet in packets:
            try:
                frames = packet.decode()
            except av.FFmpegError:  # what is damaged is left out
                continue
            for frame in frames:
                frame.pts = None
                for out in resampler.resample(frame):
                    yield out.to_ndarray().tobytes()
        for out in resampler.resample(None):
            yield out.to_ndarray().tobytes()


def _to_mulaw(chunks: Iterable[bytes]) -> Iterator[bytes]:
    import numpy as np

    from voxframe.service.mulaw import encode

    for chunk in chunks:
        yield encode(np.frombuffer(chunk, "<i2"))
