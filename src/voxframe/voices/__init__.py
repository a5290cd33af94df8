"""Voices in sound: who speaks when, and a vector per voice.

Two small published networks, run by onnxruntime on one core, tell up to ten speakers apart, also where two speak at
once. They were measured on meetings and mixes of readers; README has the error rates, and what fails.

    import voxframe

    turns = voxframe.voices.diarize("meeting.mp3")     # a DataFrame: speaker, start_ms, end_ms

Voice vectors are personal data: a vector tells whether somebody speaks in another recording. `diarize` keeps none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["diarize", "read_audio"]


def diarize(path: str | os.PathLike[str], *, speakers: int | None = None, progress: bool | None = None) -> pd.DataFrame:
    """Return who speaks when in a media file.

    It takes 0.05 s of processor time per second of sound, and memory for a few seconds of sound only. The models (34
    MB, in a download of 81 MB) are downloaded the first time.

    Args:
        path: Media file with any number of channels, which are mixed.
        speakers: Number of speakers, if it is known: exactly that many are told apart, if they are there.
        progress: Show a progress bar. None (default): only in a terminal or a notebook, after one second.

    Returns:
        Columns `speaker` str ("A" for the one who speaks first, then "B", ...), `start_ms` and `end_ms` int64; one row
        per turn, ordered by start. Turns of different speakers overlap if they speak at once.

    Raises:
        AudioNotFoundError: There is no such file.
        AudioError: The file has no readable audio.
        OptionError: `speakers` is not from 1 to 10.
        MissingExtraError: The extra `local` is not installed.
        ModelError: The models cannot be downloaded.

    Example:
        >>> diarize("data/panel.flac", speakers=4)["speaker"].unique().tolist()  # doctest: +SKIP
        ['A', 'B', 'C', 'D']
    """
    import pandas as pd

    from voxframe import models
    from voxframe.options import MAX_SPEAKERS
    from voxframe.validators import Integer, checked
    from voxframe.voices import diarization

    if speakers is not None:
        speakers = checked("speakers", speakers, Integer(1, MAX_SPEAKERS))
    find = diarization.find()
    if find is diarization.diarize:
        models.ensure(models.VOICES)
    spans = find(read_audio(path, progress=progress), speakers).spans
    rows = [(diarization.label(span.speaker), span.start_ms, span.end_ms) for span in spans]
    types = {"speaker": "str", "start_ms": "int64", "end_ms": "int64"}
    return pd.DataFrame(rows, columns=[*types]).astype(types)


def read_audio(path: str | os.PathLike[str], *, progress: bool | None = None) -> Iterator[NDArray[np.int16]]:
    """Yield the sound of a media file, mono, 16 kHz, about 10 s at a time.

    Raises:
        AudioNotFoundError: There is no such file.
        AudioError: The file has no readable audio.
        MissingExtraError: The extra `local` is not installed.
    """
    from importlib.util import find_spec

    from tqdm.auto import tqdm

    from voxframe._progress import DELAY_S, is_interactive
    from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError

    if find_spec("av") is None:
        raise MissingExtraError("local", "Reading a media file")
    from voxframe_engine import JobFailed
    from voxframe_engine.speech.audio import Audio

    file = Path(path).expanduser()
    if not file.is_file():
        raise AudioNotFoundError(f"there is no file {file}")
    try:
        audio = Audio(file)
        shown = is_interactive() if progress is None else progress
        with tqdm(desc=f"speakers of {file.name}", unit="s", delay=DELAY_S, leave=False, disable=not shown) as bar:
            seconds = 0.0
            for block in audio.blocks():
                yield block[0]
                seconds += block.shape[1] / audio.rate
                bar.total = bar.total or round(seconds / max(audio.fraction_before(round(seconds * audio.rate)), 1e-3))
                bar.update(round(seconds) - bar.n)
    except JobFailed as error:
        raise AudioError(f"{file}: {error.reason}") from error
