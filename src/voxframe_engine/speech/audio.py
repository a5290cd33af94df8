"""Media files and live streams as blocks of samples, and copies of a recording with a tone over redacted spans.

Memory use does not depend on the length of the recording. Jobs decode media in a child process (`ChildAudio`), so that
a malicious file breaks only this child and not a process that lives on. If the platform has it, a server process that
has the libraries loaded forks the child in a few milliseconds. The child sends JSON and samples, never pickled objects:
it may be in the hands of the file.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray

from voxframe.options import MIN_AUDIO_MS
from voxframe_engine import JobFailed
from voxframe_engine.child_process import end_with_parent
from voxframe_engine.speech import RATE, Samples

#: Maximum length of a recording, in seconds.
MAX_SECONDS = 10 * 3600
#: Accepted sample rates, in Hz. With lower ones, a small file would expand to a very large one.
RATES = (1000, 768_000)
#: Maximum number of decoded samples of all channels together: more than ten hours of 16 channels at 48 kHz.
MAX_SAMPLES = 30_000_000_000
#: Maximum number of channels transcribed separately.
MAX_CHANNELS = 16
#: Containers with audio data. Playlists are not included: they name other files and URLs to read.
FORMATS = (
    "aac,ac3,aiff,amr,amrnb,amrwb,asf,au,avi,caf,eac3,flac,flv,g722,gsm,matroska,mov,mp3,mp4,mpeg,mpegts,ogg,"
    "rf64,sox,spdif,tta,voc,w64,wav,wv,xwma"
)
#: Containers with a reliable duration in the header; for others it is an estimate.
_RELIABLE_DURATION = ("flac", "ogg", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2")
_BLOCK = 10 * RATE
_CANCELLED = 0.05  # power of mixed channels, as a part of what it would be if they had nothing in common
_UNKNOWN_CODEC = "The codec of the audio is not supported; convert the file, for example to FLAC or MP3."
_TOO_LONG = f"Audio duration is too long: at most {MAX_SECONDS // 3600} hours can be transcribed."


class Audio:
    """A media file, read once from start to end.

    Args:
        path: The file.
        separate_channels: Keep the channels separate. Otherwise they are mixed into one.
        start_ms: Start of the part to read, in ms of the file.
        end_ms: End of the part to read. None (default): the end of the file.
        keep_rate: Keep the sample rate of the file instead of resampling to 16 kHz, and both channels of stereo.

    Attributes:
        rate: Sample rate of the blocks, in Hz.
        channels: Number of channels of the blocks.
        start: Index of the first sample of the first block, counted from the start of the file.
        part_seconds: Length of the part to read by the header of the file, which may be wrong.
        seconds: Length of the whole file, known after all blocks were read.

    Raises:
        JobFailed: The file contains no readable audio or an unknown codec, declares too long a duration, or has too
            many channels to keep separate.
    """

    def __init__(
        self,
        path: Path,
        *,
        separate_channels: bool = False,
        start_ms: int = 0,
        end_ms: int | None = None,
        keep_rate: bool = False,
    ) -> None:
        self._path = path
        self.seconds = 0.0
        try:
            self._container = av.open(str(path), options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})
        except (av.FFmpegError, OSError, ValueError) as error:
            raise JobFailed(_no_audio(path)) from error
        streams = self._container.streams.audio
        decodable = [stream for stream in streams if stream.codec_context is not None]
        if not decodable:
            self._container.close()
            raise JobFailed(_UNKNOWN_CODEC if streams else _no_audio(path))
        self._stream = decodable[0]
        self.rate = self._stream.rate if keep_rate else RATE
        self._start = start_ms * self.rate // 1000
        self._end = None if end_ms is None else end_ms * self.rate // 1000
        self.start = self._start
        self._declared_seconds = (self._container.duration or 0) / av.time_base
        if self._declared_seconds > MAX_SECONDS + 60 and self._container.format.name in _RELIABLE_DURATION:
            self._container.close()
            raise JobFailed(_TOO_LONG)
        end = np.inf if self._end is None else self._end / self.rate
        self.part_seconds = float(min(self._declared_seconds, end) - self._start / self.rate)
        self._stream.codec_context.thread_type = "NONE"  # cores are left to the decoding processes
        self.channels = self._stream.channels if separate_channels or (keep_rate and self._stream.channels == 2) else 1
        if not (self.rate and self.channels):  # a damaged header
            self._container.close()
            raise JobFailed(_no_audio(path))
        if self.channels > MAX_CHANNELS:
            self._container.close()
            raise JobFailed(
                f"The audio has {self.channels} channels; at most {MAX_CHANNELS} can be transcribed "
                "separately. Turn multichannel off to mix them."
            )

    def blocks(self) -> Iterator[Samples]:
        """Yield the samples from `start_ms` to `end_ms`, in order, in arrays of shape (channels, about 10 s).

        Raises:
            JobFailed: The file contains no audio, less than 160 ms of it, more than ten hours, or more samples than the
            limit.
        """
        with self._container:
            position, length, pieces = 0, 0, []
            for piece in self._pieces():
                position += piece.shape[1]
                if position > MAX_SECONDS * self.rate:
                    raise JobFailed(_TOO_LONG)
                first = max(0, self._start - (position - piece.shape[1]))
                last = piece.shape[1] if self._end is None else self._end - (position - piece.shape[1])
                if last <= first:
                    continue
                pieces.append(piece[:, first:last])
                length += pieces[-1].shape[1]
                if length >= _BLOCK:
                    yield np.concatenate(pieces, axis=1)
                    length, pieces = 0, []
            self.seconds = position / self.rate
            if position == 0:
                raise JobFailed(_no_audio(self._path))
            if position * 1000 < MIN_AUDIO_MS * self.rate:
                raise JobFailed("Audio duration is too short.")
            if self._start >= position:
                raise JobFailed(
                    f"audio_start_from is {self._start * 1000 // self.rate} ms, but the audio ends at "
                    f"{position * 1000 // self.rate} ms; choose an earlier time."
                )
            if pieces:
                yield np.concatenate(pieces, axis=1)

    def fraction_before(self, sample: int) -> float:
        """Return the fraction of the requested part before a sample counted from `start`, by the declared duration."""
        return fraction_of_part(sample * RATE // self.rate, self.part_seconds)

    def _pieces(self) -> Iterator[Samples]:
        """Yield all audio frames of the file at one rate. Damaged packets are skipped."""
        resampler: av.AudioResampler | None = None
        kind: object = None
        samples = 0
        for frame in self._frames():
            samples += frame.samples * frame.layout.nb_channels
            if samples > MAX_SAMPLES:
                raise JobFailed("The audio is too large when decoded; reduce its sample rate or number of channels.")
            if kind is None:
                late = self._late_by(frame)
                for at in range(0, late, _BLOCK):
                    yield np.zeros((self.channels, min(_BLOCK, late - at)), np.int16)
            if kind != (frame.format.name, frame.layout.name, frame.sample_rate):  # can change within a file
                if resampler is not None:
                    yield from self._resampled(resampler, None)
                kind = (frame.format.name, frame.layout.name, frame.sample_rate)
                low, high = RATES
                if not low <= frame.sample_rate <= high:
                    raise JobFailed(f"The sample rate is {frame.sample_rate} Hz; it must be {low} to {high} Hz.")
                # Interleaved, because the library crashes on planar audio of more than 7 channels.
                resampler = av.AudioResampler(format="s16", layout=frame.layout.name, rate=self.rate)
            assert resampler is not None
            frame.pts = None  # gaps in timestamps are not gaps in the audio
            yield from self._resampled(resampler, frame)
        if resampler is not None:
            yield from self._resampled(resampler, None)

    def _resampled(self, resampler: av.AudioResampler, frame: av.AudioFrame | None) -> Iterator[Samples]:
        try:
            frames = resampler.resample(frame)
        except av.FFmpegError as error:  # for example more than 64 channels
            raise JobFailed(
                f"The audio, of {self._stream.channels} channels at {self._stream.rate} Hz, cannot be converted."
            ) from error
        yield from map(self._rows, frames)

    def _rows(self, frame: av.AudioFrame) -> Samples:
        """Convert a 16-bit interleaved frame to one row per channel, mixed if the channels are not kept separate."""
        rows: Samples = np.asarray(frame.to_ndarray(), np.int16).reshape(-1, frame.layout.nb_channels).T
        if self.channels == len(rows):
            return rows
        if self.channels == 1:
            return _mixed(rows)
        padded = np.zeros((self.channels, rows.shape[1]), np.int16)  # the number of channels changed within the file
        padded[: len(rows)] = rows[: self.channels]
        return padded

    def _frames(self) -> Iterator[av.AudioFrame]:
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except (IndexError, av.FFmpegError):  # PyAV ends with an IndexError if a stream appeared within the file
                return
            if packet is None:
                return
            try:
                frames = packet.decode()
            except av.InvalidDataError:
                continue
            except av.FFmpegError:
                return
            yield from frames

    def _late_by(self, frame: av.AudioFrame) -> int:
        """Return the samples of silence before the audio starts, as in videos with a picture first."""
        if frame.time is None or self._container.start_time is None:
            return 0
        seconds = frame.time - self._container.start_time / av.time_base
        return int(seconds * self.rate) if 0.02 < seconds < MAX_SECONDS else 0


def fraction_of_part(sample: int, part_seconds: float) -> float:
    """Return the fraction, at most 0.99, of a part of this length before a sample at 16 kHz."""
    return min(0.99, sample / RATE / part_seconds) if part_seconds > 0 else 0.0


def _mixed(rows: Samples) -> Samples:
    """Return the mean of the channels, or the first loud one if they cancel each other out because one is inverted.

    The mean of channels that have nothing in common has their summed power divided by the square of their number.
    """
    mixed = rows.mean(axis=0, keepdims=True)
    power = np.square(rows, dtype=np.float32).mean(axis=1)
    if np.square(mixed).mean() < _CANCELLED * power.sum() / len(rows) ** 2:
        mixed = rows[[(power >= power.max() / 2).argmax()]]  # of about equal ones always the first: its sign stays
    return np.asarray(mixed, np.int16)


_MAGIC = (
    (b"%PDF", "application/pdf (PDF document)"),
    (b"PK\x03\x04", "application/zip (Zip archive)"),
    (b"\x89PNG", "image/png (PNG image)"),
    (b"\xff\xd8\xff", "image/jpeg (JPEG image)"),
    (b"GIF8", "image/gif (GIF image)"),
    (b"\x1f\x8b", "application/gzip (gzip archive)"),
)


def _no_audio(path: Path) -> str:
    return f"File does not appear to contain audio. File type is {_file_type(path)}."


def _file_type(path: Path) -> str:
    """Guess the file type from the first bytes."""
    with path.open("rb") as file:
        head = file.read(4096)
    if not head:
        return "inode/x-empty (empty)"
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if b"\x00" in head:
        return "application/octet-stream (data)"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "text/html (HTML document)"
    if start.startswith((b"{", b"[")):
        return "application/json (JSON text)"
    if start.startswith(b"<?xml"):
        return "text/xml (XML document)"
    try:
        head[:4000].decode("utf-8", "strict" if len(head) < 4000 else "ignore")
    except UnicodeDecodeError:
        return "application/octet-stream (data)"
    return "text/plain (text)"


class StreamDecoder:
    """Decodes and resamples a stream in chunks.

    Args:
        rate: Samples per second of the input.
        encoding: "pcm_s16le" or "pcm_mulaw".
    """

    def __init__(self, rate: int, encoding: str) -> None:
        self._codec = cast("av.AudioCodecContext", av.CodecContext.create(encoding, "r"))
        self._codec.sample_rate, self._codec.layout = rate, "mono"
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)

    def samples(self, data: bytes) -> Samples:
        """Return the samples of a chunk at 16 kHz. The last few are returned with the next chunk."""
        return self._joined(self._codec.decode(av.Packet(data)))

    def rest(self) -> Samples:
        """Return the samples held back at the end of the stream."""
        return self._joined([None])

    def _joined(self, frames: Sequence[av.AudioFrame | None]) -> Samples:
        pieces = [out.to_ndarray()[0] for frame in frames for out in self._resampler.resample(frame)]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)


#: Frequency of the tone, in Hz.
TONE_HZ = 1000
_LOUDNESS = 0.1  # of the tone, of full scale
_MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
_CODECS = {"mp3": "libmp3lame", "wav": "pcm_s16le"}


def redact_audio(media: Path, spans: Sequence[Sequence[int]], out: Path, quality: str = "mp3") -> None:
    """Write a copy with the sample rate of the recording if the format supports it, and at most two channels.

    Args:
        media: The recording: any container and codec with audio. Only the audio of a video is copied.
        spans: Spans to cover on all channels, as [start, end] in ms of the recording.
        out: File to write. It is replaced if it exists, and removed if writing fails.

    Raises:
        JobFailed: The recording cannot be read, or the copy cannot be written.
    """
    audio = Audio(media, keep_rate=True)
    layout = "stereo" if audio.channels == 2 else "mono"
    rate = audio.rate if quality == "wav" else next((r for r in _MP3_RATES if r >= audio.rate), _MP3_RATES[-1])
    # Copies of hours at a high rate have more than 4 GB, which a header without room for it cannot say (EBU Tech 3306).
    room = {"rf64": "auto"} if quality == "wav" else {}
    try:
        with av.open(str(out), "w", format=quality, options=room) as target:
            encoder = target.add_stream(_CODECS[quality], rate=rate, layout=layout)
            assert isinstance(encoder, av.AudioStream)
            for block in _covered(audio, spans):
                frame = av.AudioFrame.from_ndarray(block.T.reshape(1, -1), format="s16", layout=layout)
                frame.sample_rate = audio.rate
                target.mux(encoder.encode(frame))
            target.mux(encoder.encode(None))
    except JobFailed:
        out.unlink(missing_ok=True)
        raise
    except (av.FFmpegError, OSError, ValueError) as error:
        out.unlink(missing_ok=True)
        raise JobFailed(f"The redacted audio could not be written: {error}") from error


def _covered(audio: Audio, spans: Sequence[Sequence[int]]) -> Iterator[NDArray[np.int16]]:
    """Yield the blocks of the recording with the tone in the spans."""
    bounds = [(start * audio.rate // 1000, -(-end * audio.rate // 1000)) for start, end in spans]
    position = 0
    for block in audio.blocks():
        length = block.shape[1]
        block = np.array(block)
        for start, end in bounds:
            first, last = max(start - position, 0), min(end - position, length)
            if first < last:
                time = np.arange(position + first, position + last) / audio.rate
                tone = np.sin(2 * np.pi * TONE_HZ * time) * _LOUDNESS * np.iinfo(np.int16).max
                block[:, first:last] = tone.astype(np.int16)
        position += length
        yield block


class MediaProcessError(RuntimeError):
    """The process that decodes a media file ended before it was done."""


@cache
def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["voxframe_engine.speech.audio_server"])
    return context


class ChildAudio:
    """The same as `Audio`, read in a child process. It takes the same arguments, without `keep_rate`.

    Raises:
        JobFailed: As `Audio` does.
        MediaProcessError: The child process has crashed.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._pipe, sender = _context().Pipe(duplex=False)
        self._process = _context().Process(target=_send, args=(sender, path, options), daemon=True)
        self._process.start()
        sender.close()
        head = self._message()
        self.rate, self.seconds = RATE, 0.0
        self.channels, self.start = min(int(head["channels"]), MAX_CHANNELS), int(head["start"])
        self._part_seconds = float(head["part_seconds"])

    def blocks(self) -> Iterator[Samples]:
        """Yield blocks of samples as `Audio.blocks` does."""
        try:
            while data := self._bytes():
                yield np.frombuffer(data, np.int16).reshape(self.channels, -1)
            self.seconds = float(self._message()["seconds"])
        finally:
            self._end()

    def fraction_before(self, sample: int) -> float:
        """Return the fraction of the requested part before a sample, as `Audio.fraction_before` does."""
        return fraction_of_part(sample, self._part_seconds)

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._bytes())
        return message

    def _bytes(self) -> bytes:
        try:
            data: bytes = self._pipe.recv_bytes()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self._end()
            how = f"stopped by signal {-code}" if code is not None and code < 0 else f"ended with status {code}"
            raise MediaProcessError(f"the process that decodes the media was {how}") from None
        if data.startswith(b'{"failed":'):
            self._end()
            raise JobFailed(str(json.loads(data)["failed"]))
        return data

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _send(pipe: Connection, path: Path, options: dict[str, Any]) -> None:
    """Send the channels and the start of the audio, its blocks, an empty message, and its length."""
    end_with_parent(os.getppid())
    try:
        audio = Audio(path, **options)
        _send_json(pipe, channels=audio.channels, start=audio.start, part_seconds=audio.part_seconds)
        for block in audio.blocks():
            pipe.send_bytes(np.ascontiguousarray(block).tobytes())
        pipe.send_bytes(b"")
        _send_json(pipe, seconds=audio.seconds)
    except JobFailed as failure:
        _send_json(pipe, failed=failure.reason)


def _send_json(pipe: Connection, **message: object) -> None:
    pipe.send_bytes(json.dumps(message).encode())
