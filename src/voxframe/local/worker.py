"""A job, start to finish: a media file and options in, the result fields of the wire out."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

from voxframe.local import engines
from voxframe.local.audio import RATE, Audio, Samples
from voxframe.local.engines import Engine, Heard
from voxframe.local.failed import JobCancelled, JobFailed
from voxframe.local.segments import Segmenter, Stretch

__all__ = ["JobCancelled", "JobFailed", "new_pool", "run_job"]

_AHEAD = 4  # stretches waiting for a core, at most: bounds memory, keeps the cores busy


def new_pool(workers: int | None = None) -> Executor:
    """Processes that decode speech, one a core unless told otherwise. One pool serves any number of jobs."""
    return ProcessPoolExecutor(workers or os.cpu_count() or 1, mp_context=multiprocessing.get_context("spawn"))


_current: tuple[str, Engine] | None = None


def _decode(job: str, engine: str, samples: Samples) -> list[Heard]:
    """In a worker process: the words of a stretch. A job that is new to the process gets a new engine."""
    global _current
    if _current is None or _current[0] != job:
        _current = None  # the old one goes before the new one comes: two would not fit the worker's memory
        _current = (job, engines.find(engine)())
    return _current[1].transcribe(samples)


def run_job(
    media: Path,
    options: Mapping[str, Any],
    *,
    progress: Callable[[float], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    pool: Executor | None = None,
    engine: str = engines.DEFAULT,
) -> dict[str, Any]:
    """Transcribe a file.

    Args:
        media: The file; any container and codec that carries audio.
        options: Create fields of the interface; the ones that are missing or None take their defaults.
        progress: Told how much is done, from 0 to 1, as stretches of speech finish.
        cancelled: Asked between stretches; when it says True the job stops.
        pool: Where speech is decoded (see `new_pool`); without one, in this process.
        engine: Name of the speech engine.

    Returns:
        Result fields of the wire: text, words, utterances, confidence, audio_duration, audio_channels, ...

    Raises:
        JobFailed: The job cannot be done; its reason is the text for `error`.
        JobCancelled: `cancelled` said so.
    """
    audio = Audio(media)
    job = uuid4().hex
    words: list[dict[str, Any]] = []
    for stretch, heard in _decoded(audio, job, engine, pool, cancelled):
        at = (audio.start + stretch.start) * 1000 // RATE
        words += [
            {
                "text": w.text,
                "start": at + w.start_ms,
                "end": at + w.end_ms,
                "confidence": round(w.confidence, 5),
                "speaker": None,
            }
            for w in heard
            if not w.filler
        ]
    progress(1.0)
    return {
        "text": " ".join(word["text"] for word in words),
        "words": words,
        "utterances": None,
        "confidence": sum(w["confidence"] for w in words) / len(words) if words else 0.0,
        "audio_duration": round(audio.seconds),
        "language_code": options.get("language_code") or "en_us",
        "language_model": engines.find(engine).model,
        "acoustic_model": engines.find(engine).model,
    }


def _decoded(
    audio: Audio, job: str, engine: str, pool: Executor | None, cancelled: Callable[[], bool]
) -> Iterator[tuple[Stretch, list[Heard]]]:
    """Stretches of speech with their words, in order; a few are under way at a time."""
    under_way: deque[tuple[Stretch, Future[list[Heard]]]] = deque()
    segmenter = Segmenter()

    def stretches() -> Iterator[Stretch]:
        for block in audio.blocks():
            yield from segmenter.feed(block[0])
        yield from segmenter.finish()

    try:
        for stretch in stretches():
            if cancelled():
                raise JobCancelled("the job was stopped")
            if pool is None:
                yield stretch, _decode(job, engine, stretch.samples)
                continue
            under_way.append((stretch, pool.submit(_decode, job, engine, stretch.samples)))
            if len(under_way) > _AHEAD:
                first, future = under_way.popleft()
                yield first, future.result()
        while under_way:
            first, future = under_way.popleft()
            yield first, future.result()
    finally:
        for _, future in under_way:
            future.cancel()
