"""Recognition of one stretch of speech in a worker process: its words and its voice features.

Voice features are mel-frequency cepstral coefficients, one row every 10 ms. The file imports few modules to keep the
workers small.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe.server.speech import RATE, Samples, engines
from voxframe.server.speech.engines import Engine, EngineOptions, RecognizedWord


class Decoded(NamedTuple):
    """Recognition result of a stretch of speech.

    Attributes:
        words: The words, with times relative to the stretch.
        voice: Voice features, if they were requested.
    """

    words: list[RecognizedWord]
    voice: NDArray[np.float16] | None


_engines: dict[str, Engine] = {}  # holds only the engine of the current job of this process


def decode(job: str, engine: str, options: EngineOptions, samples: Samples, voices: bool) -> Decoded:
    """Recognize a stretch and compute its voice features. Each job gets a new engine in each process."""
    if job not in _engines:
        _engines.clear()  # before the new one is made: two would not fit the memory of a worker
        _engines[job] = engines.find(engine)(options)
    return Decoded(_engines[job].transcribe(samples), voice_features(samples) if voices else None)


def detect_language(engine: str, model: str | None, samples: Samples) -> tuple[str, float]:
    """Return the language of speech and the engine's confidence in it."""
    _engines.clear()
    found: Any = engines.find(engine)(EngineOptions(model))
    language, confidence = found.detect(samples)
    return language, confidence


FRAME_MS = 10
#: Coefficients per row.
WIDTH = 20

_HOP = RATE * FRAME_MS // 1000
_LENGTH = 25 * RATE // 1000
_FFT = 512
_BANDS = 32
_LOWEST_HZ, _HIGHEST_HZ = 80.0, 7600.0


def voice_features(samples: Samples) -> NDArray[np.float16]:
    """Compute cepstral coefficients 1 to 20 of each frame. Coefficient 0, the loudness, does not identify a speaker.

    Args:
        samples: Mono, 16 kHz.

    Returns:
        Array of shape (frames, 20). Row n covers the 25 ms from 10 n ms. No rows for less than 25 ms of audio.
    """
    count = max(0, 1 + (len(samples) - _LENGTH) // _HOP)
    if count == 0:
        return np.zeros((0, WIDTH), np.float16)
    sound = samples.astype(np.float32)
    sound[1:] -= np.float32(0.97) * samples[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(sound, _LENGTH)[::_HOP]
    power = np.abs(np.fft.rfft(frames * np.hamming(_LENGTH).astype(np.float32), _FFT)) ** 2
    bands, cosines = _tables()
    return np.asarray(np.log(power @ bands + 1.0) @ cosines, np.float16)


@cache
def _tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return triangular mel filters, shape (bins, bands), and the cosine transform, shape (bands, WIDTH)."""
    edges = _hertz(np.linspace(_mel(_LOWEST_HZ), _mel(_HIGHEST_HZ), _BANDS + 2))
    bins = np.arange(_FFT // 2 + 1)[:, None] * RATE / _FFT
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    bands = np.clip(np.minimum(rising, falling), 0, None)
    place = np.arange(_BANDS)[:, None] + 0.5
    cosines = np.cos(np.pi / _BANDS * place * np.arange(1, WIDTH + 1)) * np.sqrt(2 / _BANDS)
    return bands, cosines


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(700 * (10 ** (mel / 2595) - 1))
