"""A copy of a recording with a tone over what nobody should hear, as mp3 or wav, as long as the recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from voxframe.local.audio import Audio
from voxframe.local.failed import JobFailed

#: Frequency of the tone, in Hz.
TONE_HZ = 1000
_LOUDNESS = 0.1  # of the tone, of full scale
_MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
_CODECS = {"mp3": "libmp3lame", "wav": "pcm_s16le"}


def redact_audio(media: Path, spans: Sequence[Sequence[int]], out: Path, quality: str = "mp3") -> None:
    """Write the copy, with the recording's sample rate where the format has it, and at most two channels.

    Args:
        media: The recording; any container and codec that carries audio. Of a video only the sound is copied.
        spans: Stretches to cover, [start, end] in milliseconds of the recording. All channels are covered.
        out: Where to write. An existing file is replaced; none is left where this fails.
        quality: `mp3` or `wav`.

    Raises:
        JobFailed: The recording cannot be read, or the copy cannot be written.
    """
    audio = Audio(media, as_recorded=True)
    layout = "stereo" if audio.channels == 2 else "mono"
    rate = audio.rate if quality == "wav" else next((r for r in _MP3_RATES if r >= audio.rate), _MP3_RATES[-1])
    try:
        with av.open(str(out), "w", format=quality) as target:
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
    """The blocks of the recording, with the tone over the stretches."""
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
