"""Speaker diarization (`speaker_labels`): assign each word to a speaker by voice.

Voice features are mel-frequency cepstral coefficients, one row every 10 ms, computed where speech is decoded.
Consecutive words form segments. Segments are merged while one Gaussian describes two of them nearly as well as two
Gaussians (Bayesian information criterion; Chen and Gopalakrishnan 1998). Each word is then reassigned by Viterbi
decoding, with a low cost of changing the speaker in a pause and a high one between adjacent words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe.options import MAX_SPEAKERS
from voxframe_engine.speech import RATE, Samples
from voxframe_engine.text import Word

Array = NDArray[np.float64]
Features = NDArray[np.float16]

FRAME_MS = 10
#: Coefficients per row.
WIDTH = 20

_HOP = RATE * FRAME_MS // 1000
_LENGTH = 25 * RATE // 1000
_FFT = 512
_BANDS = 32
_LOWEST_HZ, _HIGHEST_HZ = 80.0, 7600.0

_PAUSE_MS = 150  # ends a segment
_LONGEST_MS = 2500  # of a segment
_SHORTEST_FRAMES = 60  # shorter segments contain too little evidence to start a voice
_MOST_PIECES = 400  # segments compared; for a long recording, an even sample
_PENALTY = 3.0  # weight of the BIC penalty
_ROUNDS = 6  # maximum number of reassignments
_CHANGE = 60.0  # cost in log probability of a change of speaker between adjacent words
_CHANGE_IN_PAUSE = 15.0  # the same in a pause
_FRAME_WEIGHT = 0.3  # adjacent frames are correlated, so each counts less than one
_CHUNK = 100_000  # rows at a time


class VoiceFeatures(NamedTuple):
    """Voice features of a stretch of audio.

    Attributes:
        start_ms: Start time in the file, in ms.
        frames: Features as returned by `voice_features`.
    """

    start_ms: int
    frames: Features


def voice_features(samples: Samples) -> Features:
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


def label_speakers(words: Sequence[Word], voices: Sequence[VoiceFeatures], expected: int | None = None) -> None:
    """Set the `speaker` of each word in place: "A" for the first speaker heard, then "B", and so on.

    Args:
        words: Words of one channel, or of all channels mixed, in order.
        voices: Features of the stretches of audio in which they were recognized, in order.
        expected: Number of speakers. None estimates it, up to ten.
    """
    if not words:
        return
    frames = _frames_of(words, voices)
    found = _cluster(_pieces(words, frames), expected)
    order: dict[int, str] = {}
    for word, voice in zip(words, _assign(words, frames, found), strict=True):
        word.speaker = order.setdefault(voice, chr(ord("A") + len(order)))


def _frames_of(words: Sequence[Word], voices: Sequence[VoiceFeatures]) -> list[Features]:
    """Return the feature rows of each word."""
    starts = np.array([stretch.start_ms for stretch in voices])
    rows = []
    for word in words:
        at = int(np.searchsorted(starts, word.start, "right")) - 1
        begin = (word.start - voices[at].start_ms) // FRAME_MS
        end = (word.end - voices[at].start_ms) // FRAME_MS
        rows.append(voices[at].frames[begin:end])
    return rows


def _pieces(words: Sequence[Word], frames: Sequence[Features]) -> list[Features]:
    """Return the feature rows of segments: words that follow each other closely, most likely by one speaker."""
    pieces: list[list[Features]] = []
    begun = last = -_LONGEST_MS
    for word, rows in zip(words, frames, strict=True):
        if word.start - last >= _PAUSE_MS or word.end - begun > _LONGEST_MS:
            pieces.append([])
            begun = word.start
        pieces[-1].append(rows)
        last = word.end
    whole = [np.concatenate(piece) for piece in pieces]
    enough = [piece for piece in whole if len(piece) >= _SHORTEST_FRAMES] or [np.concatenate(whole)]
    return [enough[i] for i in np.unique(np.linspace(0, len(enough) - 1, _MOST_PIECES).astype(int))]


class _Voice:
    """A Gaussian over feature rows, stored as sums so that two can be merged."""

    def __init__(self, count: float, total: Array, squares: Array) -> None:
        self.count, self.total, self.squares = count, total, squares
        self.mean = total / max(count, 1.0)
        # Regularization: a few extra frames with unit covariance, so that few rows do not look certain.
        spread = squares - np.outer(self.mean, total) + 10.0 * np.eye(WIDTH)
        self.covariance = spread / (max(count, 1.0) + 10.0)
        self.cost = 0.5 * count * float(np.linalg.slogdet(self.covariance)[1])

    @classmethod
    def of(cls, rows: Features) -> _Voice:
        total, squares = np.zeros(WIDTH), np.zeros((WIDTH, WIDTH))
        for part in _parts(rows):
            total += part.sum(axis=0)
            squares += part.T @ part
        return cls(len(rows), total, squares)

    def __add__(self, other: _Voice) -> _Voice:
        return _Voice(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def log_likelihood(self, rows: Features) -> Array:
        whiten, volume = np.linalg.inv(np.linalg.cholesky(self.covariance)), np.linalg.slogdet(self.covariance)[1]
        away = [np.sum(((part - self.mean) @ whiten.T) ** 2, axis=1) for part in _parts(rows)]
        return np.asarray(-0.5 * (np.concatenate([np.zeros(0), *away]) + volume))


def _parts(rows: Features) -> Iterator[Array]:
    """Yield the rows in float64, a part at a time, to limit memory."""
    for at in range(0, len(rows), _CHUNK):
        yield rows[at : at + _CHUNK].astype(np.float64)


def _cluster(pieces: Sequence[Features], expected: int | None) -> list[_Voice]:
    """Merge the most similar voices until the expected number is left, or until none are similar."""
    voices = [_Voice.of(rows) for rows in pieces]
    parameters = WIDTH + WIDTH * (WIDTH + 1) / 2

    def worse(a: _Voice, b: _Voice) -> float:
        """Return the loss of likelihood if one Gaussian replaces two, minus the penalty for the extra parameters."""
        return (a + b).cost - a.cost - b.cost - _PENALTY * 0.5 * parameters * float(np.log(a.count + b.count))

    count = len(voices)
    apart = np.full((count, count), np.inf)
    for i in range(count):
        for j in range(i + 1, count):
            apart[i, j] = apart[j, i] = worse(voices[i], voices[j])
    alive = list(range(count))
    while len(alive) > 1:
        i, j = divmod(int(np.argmin(apart)), count)
        enough = len(alive) <= expected if expected else apart[i, j] > 0 and len(alive) <= MAX_SPEAKERS
        if enough:
            break
        voices[i] += voices[j]
        alive.remove(j)
        apart[j, :] = apart[:, j] = np.inf
        for other in alive:
            if other != i:
                apart[i, other] = apart[other, i] = worse(voices[i], voices[other])
    return [voices[i] for i in alive]


def _assign(words: Sequence[Word], frames: Sequence[Features], voices: list[_Voice]) -> list[int]:
    """Assign a voice to each word by the most likely path, re-estimate the voices, and repeat."""
    path: list[int] = []
    lengths = np.array([len(rows) for rows in frames])
    rows = np.concatenate(frames)
    ends = np.cumsum(lengths)
    pauses = [after.start - before.end for before, after in pairwise(words)]
    changes = np.array([_CHANGE_IN_PAUSE if pause >= _PAUSE_MS else _CHANGE for pause in pauses])
    for _ in range(_ROUNDS):
        scores = []
        for voice in voices:
            running = np.r_[0.0, np.cumsum(_FRAME_WEIGHT * voice.log_likelihood(rows))]
            scores.append(running[ends] - running[ends - lengths])
        now = _best_path(np.stack(scores, axis=1), changes)
        if now == path:
            break
        path = now
        owner = np.repeat(path, lengths)
        voices = [
            _Voice.of(rows[owner == i]) if np.count_nonzero(owner == i) > WIDTH else voice
            for i, voice in enumerate(voices)
        ]
    return path


def _best_path(scores: Array, changes: Array) -> list[int]:
    """Return the most likely voice of each word (Viterbi).

    Args:
        scores: Log probability of each word for each voice, shape (words, voices).
        changes: Cost of a change of voice before each word but the first.
    """
    best = scores[0]
    came = []
    for score, change in zip(scores[1:], changes, strict=True):
        top = int(np.argmax(best))
        stay = best >= best[top] - change
        came.append(np.where(stay, np.arange(len(best)), top))
        best = np.where(stay, best, best[top] - change) + score
    path = [int(np.argmax(best))]
    for back in reversed(came):
        path.append(int(back[path[-1]]))
    return path[::-1]
