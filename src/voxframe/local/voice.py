"""How a voice sounds: mel-frequency cepstra of 16 kHz samples, a row every 10 ms."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from voxframe.local.samples import RATE, Samples

FRAME_MS = 10
#: Numbers in a row.
WIDTH = 20

_HOP = RATE * FRAME_MS // 1000
_LENGTH = 25 * RATE // 1000
_FFT = 512
_BANDS = 32
_LOWEST_HZ, _HIGHEST_HZ = 80.0, 7600.0


def voice_features(samples: Samples) -> NDArray[np.float16]:
    """Cepstra 1 to 20 of each frame; loudness (cepstrum 0) says nothing about who speaks.

    Args:
        samples: Mono, 16 kHz.

    Returns:
        Shape (frames, 20); row n is about the 25 ms from 10 n ms on. No rows where there are less than 25 ms.
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
    """Triangular mel bands, shape (bins, bands), and the cosine transform, shape (bands, WIDTH)."""
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
