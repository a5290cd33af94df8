"""Sound to words: stretches of speech, decoded on several cores at once, given back in order."""

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

from voxframe.local.audio import Audio
from voxframe.local.decoding import Decoded, decode
from voxframe.local.engines import NOTHING, Wanted
from voxframe.local.failed import JobCancelled
from voxframe.local.samples import RATE, Samples
from voxframe.local.segments import Segmenter, Stretch

_AHEAD = 2 * (os.cpu_count() or 1)  # stretches under way at most: memory stays bounded, cores stay busy
_LOOK_UP_S = 0.2  # how often a wait looks whether it was cancelled


class Listened(NamedTuple):
    """A stretch of speech and what was heard in it.

    Attributes:
        channel: Channel, from 0.
        stretch: Where it was.
        heard: Its words and voice.
    """

    channel: int
    stretch: Stretch
    heard: Decoded


def new_pool(workers: int | None = None) -> Executor:
    """Processes that decode speech, one a core unless told otherwise. One pool serves any number of jobs."""
    return ProcessPoolExecutor(workers or os.cpu_count() or 1, mp_context=multiprocessing.get_context("spawn"))


def listen(
    audio: Audio,
    engine: str,
    wanted: Wanted = NOTHING,
    *,
    voices: bool,
    pool: Executor | None,
    cancelled: Callable[[], bool],
) -> Iterator[Listened]:
    """Decode the speech of a recording.

    Args:
        audio: The recording.
        engine: Name of the engine.
        wanted: What it is to use and to expect.
        voices: Whether voice features are wanted too.
        pool: Where to decode (see `new_pool`); None decodes in this process.
        cancelled: Asked now and then; True ends the work.

    Yields:
        What was heard, by the time at which each stretch was complete.

    Raises:
        JobCancelled: `cancelled` said True.
    """
    job = uuid4().hex
    under_way: deque[tuple[int, Stretch, Future[Decoded]]] = deque()

    def oldest() -> Listened:
        channel, stretch, future = under_way.popleft()
        while True:
            try:
                return Listened(channel, stretch, future.result(_LOOK_UP_S))
            except StillRunning:
                if cancelled():
                    raise JobCancelled("the job was stopped") from None

    try:
        for channel, stretch in _stretches(audio):
            if cancelled():
                raise JobCancelled("the job was stopped")
            if pool is None:
                yield Listened(channel, stretch, decode(job, engine, wanted, stretch.samples, voices))
                continue
            under_way.append((channel, stretch, pool.submit(decode, job, engine, wanted, stretch.samples, voices)))
            if len(under_way) > _AHEAD:
                yield oldest()
        while under_way:
            yield oldest()
    finally:
        for _, _, future in under_way:
            future.cancel()


def first_speech(audio: Audio, seconds: float = 30.0) -> Samples:
    """The first so many seconds of speech, on whichever channel, one stretch after another."""
    found: list[Samples] = []
    for _, stretch in _stretches(audio):
        found.append(stretch.samples)
        if sum(map(len, found)) >= seconds * RATE:
            break
    return np.concatenate(found)[: round(seconds * RATE)] if found else np.zeros(0, np.int16)


def speech_fraction(audio: Audio) -> float:
    """How much of a recording is speech, from 0 to 1; where channels are apart, on any of them."""
    segmenters = [Segmenter() for _ in range(audio.channels)]
    for block in audio.blocks():
        for segmenter, samples in zip(segmenters, block, strict=True):
            for _ in segmenter.feed(samples):
                pass
    return min(1.0, sum(segmenter.speech / max(segmenter.frames, 1) for segmenter in segmenters))


def _stretches(audio: Audio) -> Iterator[tuple[int, Stretch]]:
    segmenters = [Segmenter() for _ in range(audio.channels)]
    for block in audio.blocks():
        for channel, samples in enumerate(block):
            yield from ((channel, stretch) for stretch in segmenters[channel].feed(samples))
    for channel, segmenter in enumerate(segmenters):
        yield from ((channel, stretch) for stretch in segmenter.finish())
