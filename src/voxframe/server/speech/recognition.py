"""Recognition of a recording: stretches of speech are decoded in several processes and returned in order."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from voxframe.server.jobs import JobCancelled
from voxframe.server.jobs.child_process import end_with_parent
from voxframe.server.speech import RATE, Samples
from voxframe.server.speech.audio import Audio
from voxframe.server.speech.decoding import Decoded, decode
from voxframe.server.speech.engines import DEFAULT_OPTIONS, EngineOptions, StretchLimits, stretch_limits
from voxframe.server.speech.vad import Segmenter, Stretch

_AHEAD = 2 * (os.cpu_count() or 1)  # maximum number of stretches in progress; bounds memory and keeps all cores busy
_LOOK_UP_S = 0.2  # interval between checks for cancellation


class RecognizedStretch(NamedTuple):
    """A stretch of speech and its recognition result.

    Attributes:
        channel: Channel number, from 0.
        stretch: The stretch.
        result: Its words and voice features.
    """

    channel: int
    stretch: Stretch
    result: Decoded


def new_pool(workers: int | None = None) -> Executor:
    """Create a pool of decoding processes, one per core by default. It can serve any number of jobs."""
    return ProcessPoolExecutor(
        workers or os.cpu_count() or 1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=end_with_parent,
        initargs=(os.getpid(),),
    )


def recognize(
    audio: Audio,
    engine: str,
    options: EngineOptions = DEFAULT_OPTIONS,
    *,
    voices: bool,
    pool: Executor | None,
    cancelled: Callable[[], bool],
) -> Iterator[RecognizedStretch]:
    """Recognize the speech of a recording.

    Args:
        audio: The recording.
        engine: Name of the engine.
        options: Options for the engine.
        voices: Compute voice features too.
        pool: Pool to decode in (see `new_pool`). None decodes in this process.
        cancelled: Called regularly; the work ends if it returns True.

    Yields:
        Results, ordered by the time at which each stretch was complete.

    Raises:
        JobCancelled: `cancelled` returned True.
    """
    job = uuid4().hex
    pending: deque[tuple[int, Stretch, Future[Decoded]]] = deque()

    def oldest() -> RecognizedStretch:
        channel, stretch, future = pending.popleft()
        while True:
            try:
                return RecognizedStretch(channel, stretch, future.result(_LOOK_UP_S))
            except StillRunning:
                if cancelled():
                    raise JobCancelled("the job was stopped") from None

    try:
        for channel, stretch in _stretches(audio, stretch_limits(engine)):
            if cancelled():
                raise JobCancelled("the job was stopped")
            if pool is None:
                yield RecognizedStretch(channel, stretch, decode(job, engine, options, stretch.samples, voices))
                continue
            pending.append((channel, stretch, pool.submit(decode, job, engine, options, stretch.samples, voices)))
            if len(pending) > _AHEAD:
                yield oldest()
        while pending:
            yield oldest()
    finally:
        for _, _, future in pending:
            future.cancel()


def first_speech(audio: Audio, seconds: float = 30.0) -> Samples:
    """Return the first `seconds` of speech of all channels, with silence removed."""
    found: list[Samples] = []
    for _, stretch in _stretches(audio, StretchLimits()):
        found.append(stretch.samples)
        if sum(map(len, found)) >= seconds * RATE:
            break
    return np.concatenate(found)[: round(seconds * RATE)] if found else np.zeros(0, np.int16)


def speech_fraction(audio: Audio) -> float:
    """Return the fraction of a recording that is speech, 0 to 1. Speech on any of several channels counts."""
    segmenters = [Segmenter() for _ in range(audio.channels)]
    for block in audio.blocks():
        for segmenter, samples in zip(segmenters, block, strict=True):
            for _ in segmenter.feed(samples):
                pass
    return min(1.0, sum(segmenter.speech / max(segmenter.frames, 1) for segmenter in segmenters))


def _stretches(audio: Audio, limits: StretchLimits) -> Iterator[tuple[int, Stretch]]:
    segmenters = [Segmenter(limits) for _ in range(audio.channels)]
    for block in audio.blocks():
        for channel, samples in enumerate(block):
            yield from ((channel, stretch) for stretch in segmenters[channel].feed(samples))
    for channel, segmenter in enumerate(segmenters):
        yield from ((channel, stretch) for stretch in segmenter.finish())
