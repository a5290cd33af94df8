"""Media files as blocks of samples, one row a channel, in memory that does not grow with the recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np

from voxframe.local.failed import JobFailed
from voxframe.local.samples import RATE, Samples
from voxframe.options import MIN_AUDIO_MS

#: Longest recording that is taken, in seconds.
MAX_SECONDS = 10 * 3600
#: Sample rates that are taken, in Hz. From less, a small file would become a very large one.
RATES = (1000, 768_000)
#: Most samples that are decoded, of all channels together: ten hours of 16 channels at 48 kHz, and some.
MAX_SAMPLES = 30_000_000_000
#: Most channels that are transcribed apart.
MAX_CHANNELS = 16
#: Containers that hold audio themselves. Playlists are not among them: they name other files and addresses to read.
FORMATS = (
    "aac,ac3,aiff,amr,amrnb,amrwb,asf,au,avi,caf,eac3,flac,flv,g722,gsm,matroska,mov,mp3,mp4,mpeg,mpegts,ogg,"
    "rf64,sox,spdif,tta,voc,w64,wav,wv,xwma"
)
#: Containers whose word for how long they are is good; others estimate it.
_TELL_LENGTH = ("flac", "ogg", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2")
_BLOCK = 10 * RATE
_TOO_LONG = f"Audio duration is too long: at most {MAX_SECONDS // 3600} hours can be transcribed."


class Audio:
    """A media file, read once from beginning to end.

    Args:
        path: The file.
        apart: Keep the channels apart; otherwise they are mixed to one.
        start_ms: Where to begin, in milliseconds of the file.
        end_ms: Where to stop, or None for the end of the file.
        as_recorded: Keep the sample rate of the file, which otherwise becomes 16 kHz, and of two channels both.

    Attributes:
        rate: Samples a second of each block.
        channels: Channels of each block.
        start: First sample of the first block, counted from the beginning of the file.
        seconds: Length of the whole file; known once all blocks are read.

    Raises:
        JobFailed: The file holds no audio that can be read, says that it is too long, or has too many channels to keep
            apart.
    """

    def __init__(
        self,
        path: Path,
        *,
        apart: bool = False,
        start_ms: int = 0,
        end_ms: int | None = None,
        as_recorded: bool = False,
    ) -> None:
        self._path = path
        self.seconds = 0.0
        try:
            self._container = av.open(str(path), options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})
        except (av.FFmpegError, OSError, ValueError) as error:
            raise JobFailed(_no_audio(path)) from error
        if not self._container.streams.audio:
            self._container.close()
            raise JobFailed(_no_audio(path))
        self._stream = self._container.streams.audio[0]
        self.rate = self._stream.rate if as_recorded else RATE
        self._start = start_ms * self.rate // 1000
        self._end = None if end_ms is None else end_ms * self.rate // 1000
        self.start = self._start
        self._seconds_said = (self._container.duration or 0) / av.time_base
        if self._seconds_said > MAX_SECONDS + 60 and self._container.format.name in _TELL_LENGTH:
            self._container.close()
            raise JobFailed(_TOO_LONG)
        self._stream.codec_context.thread_type = "NONE"  # the workers have the cores
        self.channels = self._stream.channels if apart or (as_recorded and self._stream.channels == 2) else 1
        if self.channels > MAX_CHANNELS:
            self._container.close()
            raise JobFailed(
                f"The audio has {self.channels} channels; at most {MAX_CHANNELS} can be transcribed apart. "
                "Leave multichannel off to have them mixed."
            )

    def blocks(self) -> Iterator[Samples]:
        """The samples from `start_ms` to `end_ms`, in order, shape (channels, at most 10 s).

        Raises:
            JobFailed: The file turns out to hold no audio, less than 160 ms of it, more than ten hours, or more samples
                than are decoded.
        """
        with self._container:
            position, held, wanted = 0, 0, []
            for piece in self._pieces():
                position += piece.shape[1]
                if position > MAX_SECONDS * self.rate:
                    raise JobFailed(_TOO_LONG)
                first = max(0, self._start - (position - piece.shape[1]))
                last = piece.shape[1] if self._end is None else self._end - (position - piece.shape[1])
                if last <= first:
                    continue
                wanted.append(piece[:, first:last])
                held += wanted[-1].shape[1]
                if held >= _BLOCK:
                    yield np.concatenate(wanted, axis=1)
                    held, wanted = 0, []
            self.seconds = position / self.rate
            if position == 0:
                raise JobFailed(_no_audio(self._path))
            if position * 1000 < MIN_AUDIO_MS * self.rate:
                raise JobFailed("Audio duration is too short.")
            if self._start >= position:
                raise JobFailed(
                    f"audio_start_from is {self._start * 1000 // self.rate} ms, but the audio ends at "
                    f"{position * 1000 // self.rate} ms; choose a place before that."
                )
            if wanted:
                yield np.concatenate(wanted, axis=1)

    def share_before(self, sample: int) -> float:
        """How much of what was asked for lies before a sample counted from `start`, as far as the file says."""
        seconds = min(self._seconds_said, self._end / self.rate if self._end else np.inf) - self._start / self.rate
        return min(0.99, sample / self.rate / seconds) if seconds > 0 else 0.0

    def _pieces(self) -> Iterator[Samples]:
        """Everything in the file, frame by frame, at one rate; what is damaged is left out."""
        resampler: av.AudioResampler | None = None
        kind: object = None
        samples = 0
        for frame in self._frames():
            samples += frame.samples * frame.layout.nb_channels
            if samples > MAX_SAMPLES:
                raise JobFailed("The audio is too large once decoded; a lower rate or fewer channels will do.")
            if kind is None:
                late = self._late_by(frame)
                for at in range(0, late, _BLOCK):
                    yield np.zeros((self.channels, min(_BLOCK, late - at)), np.int16)
            if kind != (frame.format.name, frame.layout.name, frame.sample_rate):  # it may change within a file
                if resampler is not None:
                    yield from map(self._rows, resampler.resample(None))
                kind = (frame.format.name, frame.layout.name, frame.sample_rate)
                low, high = RATES
                if not low <= frame.sample_rate <= high:
                    raise JobFailed(f"The audio has {frame.sample_rate} samples a second, not {low} to {high}.")
                # Interleaved: with a plane for each of more than 7 channels the library crashes.
                resampler = av.AudioResampler(format="s16", layout=frame.layout.name, rate=self.rate)
            assert resampler is not None
            frame.pts = None  # gaps in the time stamps are not gaps in the sound
            yield from map(self._rows, resampler.resample(frame))
        if resampler is not None:
            yield from map(self._rows, resampler.resample(None))

    def _rows(self, frame: av.AudioFrame) -> Samples:
        """Samples of a 16-bit interleaved frame, a row for each channel that is wanted."""
        rows: Samples = np.asarray(frame.to_ndarray(), np.int16).reshape(-1, frame.layout.nb_channels).T
        if self.channels == len(rows):
            return rows
        if self.channels == 1:
            return np.asarray(rows.mean(axis=0, keepdims=True), np.int16)
        wanted = np.zeros((self.channels, rows.shape[1]), np.int16)  # the number of channels changed within the file
        wanted[: len(rows)] = rows[: self.channels]
        return wanted

    def _frames(self) -> Iterator[av.AudioFrame]:
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets)
                frames = packet.decode()
            except StopIteration:
                return
            except av.InvalidDataError:
                continue
            except av.FFmpegError:
                return
            yield from frames

    def _late_by(self, frame: av.AudioFrame) -> int:
        """Samples of silence before the sound begins, as in videos whose picture comes first."""
        if frame.time is None or self._container.start_time is None:
            return 0
        seconds = frame.time - self._container.start_time / av.time_base
        return int(seconds * self.rate) if 0.02 < seconds < MAX_SECONDS else 0


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
    """What the file seems to be, from its first bytes."""
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
