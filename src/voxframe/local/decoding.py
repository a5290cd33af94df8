"""The part of a job that worker processes do. It imports little, for every worker holds what it imports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxframe.local import engines
from voxframe.local.engines import Engine, Heard, Wanted
from voxframe.local.samples import Samples
from voxframe.local.voice import voice_features


class Decoded(NamedTuple):
    """What was heard in a stretch of speech.

    Attributes:
        words: The words, with times from the beginning of the stretch.
        voice: Voice features, where they were wanted.
    """

    words: list[Heard]
    voice: NDArray[np.float16] | None


_engines: dict[str, Engine] = {}  # of this process: the one of the job at hand


def decode(job: str, engine: str, wanted: Wanted, samples: Samples, voices: bool) -> Decoded:
    """The words of a stretch, and its voice features. A job that is new to the process gets a new engine."""
    if job not in _engines:
        _engines.clear()  # before the new one is made: two would not fit the memory of a worker
        _engines[job] = engines.find(engine)(wanted)
    return Decoded(_engines[job].transcribe(samples), voice_features(samples) if voices else None)
