"""Voice activity detection: stretches of speech, and the utterances of a live stream.

A stretch is cut at a pause, or at the quietest point if it is long. An utterance ends with the silence after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe_engine.speech import RATE, Samples

FRAME = 512  # samples, as the model takes them
_CONTEXT = 64  # samples before each frame
_ON, _OFF = 0.5, 0.35  # a stretch starts at the first probability of speech, and may end below the second
_PAUSE = round(0.25 * RATE / FRAME)  # frames without speech that end a stretch
_PAD = round(0.25 * RATE / FRAME)  # frames kept before and after
_QUIET = 5  # frames to average in the search for the quietest point


@cache
def _silero() -> Any:
    """Return the session of the model that faster-whisper includes, with one thread."""
    from faster_whisper.vad import get_vad_model

    return get_vad_model().session


class _SpeechDetector:
    """Returns the probability of speech in frames of one channel as they arrive."""

    def __init__(self) -> None:
        self._state = [np.zeros((1, 1, 128), np.float32)] * 2
        self._context = np.zeros(_CONTEXT, np.float32)

    def __call__(self, frames: Samples) -> NDArray[np.float32]:
        """Return one probability for each of the 512 samples."""
        sound = np.concatenate([self._context, frames.astype(np.float32) / 32768])
        self._context = sound[-_CONTEXT:]
        rows = np.lib.stride_tricks.sliding_window_view(sound, FRAME + _CONTEXT)[::FRAME]
        names = dict(zip(("input", "h", "c"), (np.ascontiguousarray(rows), *self._state), strict=True))
        chances, *self._state = _silero().run(None, names)
        return np.ravel(chances)


class StretchLimits(NamedTuple):
    """Lengths of stretches of speech, in seconds.

    Attributes:
        enough_s: After this length, a pause of 0.25 s ends a stretch.
        longest_s: Maximum length. A stretch without such a pause is cut at its quietest point.
        pause_s: Pause that ends a shorter stretch. Shorter pauses stay as they are: a model hears in them
            where sentences end (F1 of full stops in `data/` 0.84, with 0.25 s 0.77).
    """

    enough_s: float = 10.0
    longest_s: float = 28.0
    pause_s: float = 1.0


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
        self._vad = _SpeechDetector()
        self._samples = np.zeros(0, np.int16)  # from frame _first on
        self._chances: list[float] = []  # probability of speech in each frame from frame _first on
        self._first = 0
        self._begun: int | None = None  # first frame of the current stretch
        self._last = 0  # last frame with speech
        self._free = 0  # first frame that belongs to no earlier stretch
        self.frames = 0
        self.speech = 0

    @property
    def speaking(self) -> Stretch | None:
        """The stretch in progress, up to the latest sample."""
        if self._begun is None:
            return None
        return Stretch(self._begun * FRAME, self._samples[(self._begun - self._first) * FRAME :])

    @property
    def silent_frames(self) -> int:
        """The number of frames since the last one with speech."""
        return self.frames - 1 - self._last

    def feed(self, samples: Samples) -> Iterator[Stretch]:
        """Add samples and yield the stretches that are complete."""
        self._samples = np.concatenate([self._samples, samples])
        begin = len(self._chances) * FRAME
        frames = self._samples[begin : len(self._samples) // FRAME * FRAME]
        for chance in self._vad(frames) if len(frames) else ():
            yield from self._step(float(chance))

    def finish(self) -> Iterator[Stretch]:
        """End the recording and yield the last stretch, if any."""
        rest = len(self._samples) - len(self._chances) * FRAME
        if rest:
            length = len(self._samples)
            tail = np.zeros(FRAME, np.int16)
            tail[:rest] = self._samples[length - rest :]
            yield from self._step(float(self._vad(tail)[0]))
        yield from self.cut()

    def cut(self, pad: int | None = None) -> Iterator[Stretch]:
        """Yield the stretch in progress, with at most `pad` frames after its speech."""
        if self._begun is not None:
            yield self._cut(self.frames if pad is None else min(self._last + 1 + pad, self.frames))

    def _step(self, chance: float) -> Iterator[Stretch]:
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
        smooth = np.convolve(score, np.ones(_QUIET) / _QUIET, mode="valid")
        return low + int(np.argmin(smooth)) + _QUIET // 2


class Window(NamedTuple):
    """Stretches of speech on one channel that are decoded together, with the long pauses between them shortened.

    Attributes:
        stretches: The stretches, in order.
    """

    stretches: tuple[Stretch, ...]

    @property
    def samples(self) -> Samples:
        """The sound of all stretches."""
        return np.concatenate([stretch.samples for stretch in self.stretches])

    def span_ms(self, start_ms: int, end_ms: int) -> tuple[int, int]:
        """Return the time in the recording of a word with this time in the window.

        The word lies in one stretch: that of its middle.
        """
        middle, before = (start_ms + end_ms) * RATE // 2000, 0
        for stretch in self.stretches:
            if middle < before + len(stretch.samples):
                break
            before += len(stretch.samples)
        else:
            before -= len(stretch.samples)
        shift = (stretch.start - before) * 1000 // RATE
        first, last = stretch.start * 1000 // RATE, stretch.end * 1000 // RATE
        return max(start_ms + shift, first), min(end_ms + shift, last)


class WindowPacker:
    """Packs stretches of speech into windows of nearly 30 s, cut at long pauses.

    A model that hears more of what is said together makes fewer errors, and each window costs at least 10 s of
    encoding.
    """

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []

    def feed(self, stretch: Stretch) -> Iterator[Window]:
        """Add a stretch and yield the window that it completes, if any."""
        self._stretches.append(stretch)
        while len(self._stretches) > 1 and sum(len(each.samples) for each in self._stretches) > _FULL:
            cut = _best_cut(self._stretches)
            yield Window(tuple(self._stretches[:cut]))
            del self._stretches[:cut]

    def finish(self) -> Iterator[Window]:
        """Yield the last window, if any."""
        if self._stretches:
            yield Window(tuple(self._stretches))


_FULL = round(29.0 * RATE)  # samples of a window: 30 s is what the model hears


def _best_cut(stretches: Sequence[Stretch]) -> int:
    """Return the index of the stretch after the longest pause that leaves a window of 14 to 29 s."""
    lengths = np.cumsum([len(stretch.samples) for stretch in stretches])[:-1]
    pauses = [after.start - before.end for before, after in pairwise(stretches)]
    fitting = [at for at, length in enumerate(lengths) if _FULL / 2 <= length <= _FULL]
    last = max(int(np.searchsorted(lengths, _FULL, side="right")) - 1, 0)
    return 1 + max(fitting, key=lambda at: (pauses[at], at), default=last)


_LONGEST_UTTERANCE = 20 * RATE  # samples after which an utterance ends with its stretch, so that finals come in time
_PROBABLE_END = math.ceil(0.32 * RATE / FRAME)  # frames of silence after which speech has probably ended
# Short, because every partial decodes its stretch from the start.
_STRETCHES = StretchLimits(enough_s=6.0, longest_s=12.0, pause_s=1.2)


class UtteranceDetector:
    """Finds utterances while their samples arrive.

    An utterance is one or more stretches. Each stretch can be decoded as soon as it is complete, so that only the last
    one is left at the end of a long utterance.

    Args:
        silence_ms: Silence in ms that ends an utterance. It may be changed at any time.

    Attributes:
        segmenter: Finds the stretches, and has the one in progress.
    """

    def __init__(self, silence_ms: int) -> None:
        self.silence_ms = silence_ms
        self.segmenter = Segmenter(_STRETCHES)
        self._begun: int | None = None  # first sample of the utterance under way

    @property
    def paused(self) -> Stretch | None:
        """The stretch in progress as it will be if its speech has ended. None until 320 ms without speech."""
        stretch, silent = self.segmenter.speaking, self.segmenter.silent_frames
        if stretch is None or silent < _PROBABLE_END:
            return None
        last = (self.segmenter.frames - silent + _PAD) * FRAME
        return Stretch(stretch.start, stretch.samples[: last - stretch.start])

    def feed(self, samples: Samples) -> Iterator[Stretch | None]:
        """Add samples; yield each completed stretch, and None when an utterance has ended."""
        for start in range(0, len(samples), FRAME):
            yield from self._note(self.segmenter.feed(samples[start : start + FRAME]))
            silent = self.segmenter.silent_frames * FRAME * 1000 // RATE
            if silent >= max(self.silence_ms, 1) and (self._begun is not None or self.segmenter.speaking is not None):
                yield from self._note(self.segmenter.cut(_PAD))
                yield from self._end()

    def end(self) -> Iterator[Stretch | None]:
        """End the utterance in progress, if any."""
        yield from self._note(self.segmenter.cut())
        yield from self._end()

    def finish(self) -> Iterator[Stretch | None]:
        """End the stream."""
        yield from self._note(self.segmenter.finish())
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
