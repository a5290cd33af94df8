"""Speakers of stored transcripts by voice, for `corpus.speakers.detect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import pandas as pd
from tqdm.auto import tqdm

from voxframe import models, voices
from voxframe.corpus.archive import Archive
from voxframe.corpus.reading import Ids
from voxframe.errors import AudioNotFoundError, OptionError
from voxframe.options import MAX_SPEAKERS
from voxframe.validators import Integer, checked
from voxframe.voices import diarization

#: A media file, or one per recording.
AudioFiles: TypeAlias = str | PathLike[str] | Mapping[str, str | PathLike[str]] | None
Relabel: TypeAlias = Callable[[str, Sequence[str | None]], pd.DataFrame]


def detect_speakers(archive: Archive, relabel: Relabel, ids: Ids, audio: AudioFiles, speakers: int | None) -> list[str]:
    """Give the words of transcripts new speakers, and return the ids of the transcripts."""
    if speakers is not None:
        speakers = checked("speakers", speakers, Integer(1, MAX_SPEAKERS))
    found = archive.recordings.ids(ids)
    files = _files(archive, found, audio)
    diarize = diarization.find()
    if diarize is diarization.diarize:
        models.ensure(models.VOICES)
    for transcript_id in tqdm(found, desc="speakers", unit="recording", delay=1, disable=len(found) == 1):
        words = archive.current("words", transcript_id).select(["start_ms", "end_ms"]).to_pydict()
        spans = diarize(voices.read_audio(files[transcript_id]), speakers).spans
        times = list(zip(words["start_ms"], words["end_ms"], strict=True))
        relabel(transcript_id, diarization.labels_of(times, spans))
    return found


def _files(archive: Archive, ids: Sequence[str], audio: AudioFiles) -> dict[str, Path]:
    """Return the media file of each transcript."""
    if audio is not None and not isinstance(audio, Mapping):
        if len(ids) != 1:
            raise OptionError(f'audio is one file for {len(ids)} recordings; give {{"recording": "file.mp3", ...}}')
        audio = {ids[0]: audio}
    stated = {archive.recordings.id(name): path for name, path in (audio or {}).items()}
    sources = dict(zip(ids, archive.recordings.table(ids)["source"].to_pylist(), strict=True))
    files = {}
    for transcript_id in ids:
        path = stated.get(transcript_id) or sources[transcript_id]
        if not path or not Path(path).expanduser().is_file():
            raise AudioNotFoundError(
                f"the audio of {transcript_id!r} is not on this machine ({path or 'its source is unknown'}); "
                f'give audio={{"{transcript_id}": "file.mp3"}}'
            )
        files[transcript_id] = Path(path).expanduser()
    return files
