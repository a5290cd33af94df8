"""`speaker_labels`: who says each word, told apart by how the voices sound.

Words in a row become pieces of speech; pieces are merged while one Gaussian describes two of them nearly as well as
two would (the Bayesian information criterion); the voices found that way are then heard again word by word, changes of
speaker being cheap in pauses and dear within a run of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe.local.voice import FRAME_MS, WIDTH
from voxframe.local.words import Word
from voxframe.options import MAX_SPEAKERS

Array = NDArray[np.float64]

_PAUSE_MS = 150  # ends a piece
_LONGEST_MS = 2500  # of a piece
_SHORTEST_FRAMES = 60  # a shorter piece says too little about a voice to found one
_MOST_PIECES = 400  # compared with each other; of a long recording, evenly chosen ones
_PENALTY = 3.0  # how much worse one voice may describe two pieces than two voices do
_ROUNDS = 6  # of hearing again
_CHANGE = 60.0  # log probability a change of speaker costs within a run of words...
_CHANGE_IN_PAUSE = 15.0  # ...and in a pause
_FRAME_WEIGHT = 0.3  # neighbouring frames are alike: each counts for less than one


class Voices(NamedTuple):
    """Voice features of a stretch of sound.

    Attributes:
        start_ms: Where it begins, in milliseconds of the file.
        frames: As `voice.voice_features` gives them.
    """

    start_ms: int
    frames: NDArray[np.float16]


def label_speakers(words: Sequence[Word], voices: Sequence[Voices], expected: int | None = None) -> None:
    """Set the `speaker` of each word, in place: "A" for who is heard first, then "B", ...

    Args:
        words: Words of one channel (or of all channels mixed), in order.
        voices: Features of the stretches of sound they were heard in, in order.
        expected: How many speakers there are; without it, as many as the voices seem to be, at most ten.
    """
    if not words:
        return
    frames = _frames_of(words, voices)
    found = _told_apart(_pieces(words, frames), expected)
    order: dict[int, str] = {}
    for word, voice in zip(words, _heard_again(words, frames, found), strict=True):
        word.speaker = order.setdefault(voice, chr(ord("A") + len(order)))


def _frames_of(words: Sequence[Word], voices: Sequence[Voices]) -> list[Array]:
    """Feature rows of each word."""
    starts = np.array([stretch.start_ms for stretch in voices])
    rows = []
    for word in words:
        at = int(np.searchsorted(starts, word.start, "right")) - 1
        begin = (word.start - voices[at].start_ms) // FRAME_MS
        end = (word.end - voices[at].start_ms) // FRAME_MS
        rows.append(voices[at].frames[begin:end].astype(np.float64))
    return rows


def _pieces(words: Sequence[Word], frames: Sequence[Array]) -> list[Array]:
    """Feature rows of words that follow each other closely, and so are most likely one person's."""
    pieces: list[list[Array]] = []
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
    """A Gaussian over feature rows, kept as sums so that two can be merged."""

    def __init__(self, count: float, total: Array, squares: Array) -> None:
        self.count, self.total, self.squares = count, total, squares
        self.mean = total / max(count, 1.0)
        # A little of a round covariance, as if some frames more had been heard: few rows must not look certain.
        spread = squares - np.outer(self.mean, total) + 10.0 * np.eye(WIDTH)
        self.covariance = spread / (max(count, 1.0) + 10.0)
        self.cost = 0.5 * count * float(np.linalg.slogdet(self.covariance)[1])

    @classmethod
    def of(cls, rows: Array) -> _Voice:
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)

    def __add__(self, other: _Voice) -> _Voice:
        return _Voice(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def log_likelihood(self, rows: Array) -> Array:
        away = np.linalg.solve(np.linalg.cholesky(self.covariance), (rows - self.mean).T)
        return np.asarray(-0.5 * (np.sum(away**2, axis=0) + np.linalg.slogdet(self.covariance)[1]))


def _told_apart(pieces: Sequence[Array], expected: int | None) -> list[_Voice]:
    """Voices: pieces merged, the most alike first, until as many are left as expected, or none are alike."""
    voices = [_Voice.of(rows) for rows in pieces]
    parameters = WIDTH + WIDTH * (WIDTH + 1) / 2

    def worse(a: _Voice, b: _Voice) -> float:
        """How much worse one voice describes the two, beyond what its being simpler is worth."""
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


def _heard_again(words: Sequence[Word], frames: Sequence[Array], voices: list[_Voice]) -> list[int]:
    """Voice of each word, by the likeliest path; voices are measured anew from their words, and so on."""
    path: list[int] = []
    lengths = np.array([len(rows) for rows in frames])
    rows = np.concatenate(frames)
    ends = np.cumsum(lengths)
    pauses = [after.start - before.end for before, after in pairwise(words)]
    changes = np.array([_CHANGE_IN_PAUSE if pause >= _PAUSE_MS else _CHANGE for pause in pauses])
    for _ in range(_ROUNDS):
        scores = np.stack([_FRAME_WEIGHT * voice.log_likelihood(rows) for voice in voices], axis=1)
        running = np.vstack([np.zeros(len(voices)), np.cumsum(scores, axis=0)])
        now = _best_path(running[ends] - running[ends - lengths], changes)
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
    """Viterbi: the voice of each word.

    Args:
        scores: Log probability of each word by each voice, shape (words, voices).
        changes: What a change of voice costs before each word but the first.
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
