"""Voices of stored transcripts: `detect` and `assign(by="voice")` of `corpus.speakers`."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from voxframe import models, voices
from voxframe._arrow import TEXT
from voxframe._files import stamp
from voxframe.analysis.rows import speaker_labels
from voxframe.corpus.archive import Archive
from voxframe.corpus.reading import Ids, to_frame
from voxframe.errors import AudioError, AudioNotFoundError, CorpusWarning, OptionError
from voxframe.formats import SUFFIXES
from voxframe.options import MAX_SPEAKERS
from voxframe.validators import Integer, checked
from voxframe.voices import diarization
from voxframe.voices.diarization import SIZE

#: A media file, or one per recording.
AudioFiles: TypeAlias = str | PathLike[str] | Mapping[str, str | PathLike[str]] | None
Times: TypeAlias = tuple[int | None, int | None]
Relabel: TypeAlias = Callable[..., pd.DataFrame]  # that of `Corrections`

#: Score above which `assign(by="voice")` makes two speakers one person.
THRESHOLD = 0.5
_STORED = ("transcript_id", "speaker", "spans", "sound", "vector")
_LEAST_HEARD = 0.2  # of the words of a transcript; in its own recording, a voice is heard at nearly all
_PAUSE_MS = 500  # a longer pause between words of a speaker is not theirs
_FAR = 3.0  # distance of speakers who cannot be one person; that of any two vectors is at most 2


def detect_speakers(archive: Archive, relabel: Relabel, ids: Ids, audio: AudioFiles, speakers: int | None) -> list[str]:
    """Give the words of transcripts new speakers, and return the ids of the transcripts."""
    if speakers is not None:
        speakers = checked("speakers", speakers, Integer(1, MAX_SPEAKERS))
    selected = archive.recordings.ids(ids)
    for transcript_id in selected:
        archive.status(transcript_id)  # raises an error if it is not in the corpus
    files, missing = _files(archive, selected, audio)
    if missing:
        raise next(iter(missing.values()))
    diarize = diarization.find()
    if diarize is diarization.diarize:
        models.ensure(models.VOICES)
    errors: list[AudioError] = []
    for transcript_id in tqdm(selected, desc="speakers", unit="recording", delay=1, disable=len(selected) == 1):
        words = archive.current("words", transcript_id).select(["start_ms", "end_ms"]).to_pydict()
        times = list(zip(words["start_ms"], words["end_ms"], strict=True))
        source = hashlib.sha256(repr((stamp(files[transcript_id].stat()), speakers, times)).encode()).hexdigest()
        if source == _last_source(archive, transcript_id):
            continue
        try:
            heard = _heard(diarize, files[transcript_id], speakers, times, transcript_id)
        except AudioError as error:
            errors.append(error)
            continue
        spans = diarization.spans_of(times, heard)
        labels = diarization.labels_of(spans, heard.spans)
        relabel(transcript_id, labels, turns=diarization.turns_of(labels, spans), source=source)
    if errors and len(errors) == len(selected):
        raise errors[0]
    for left_out in errors:
        warnings.warn(f"{left_out}; its speakers are left as they are", CorpusWarning, stacklevel=4)
    return selected


def _last_source(archive: Archive, transcript_id: str) -> str | None:
    """Return what the current speakers of a transcript were made from, if they were detected."""
    edits = [edit for edit in archive.edits.active(transcript_id) if edit.action == "speakers"]
    return edits[-1].value.get("source") if edits else None


def _heard(
    diarize: diarization.Diarizer, file: Path, speakers: int | None, times: Sequence[Times], transcript_id: str
) -> diarization.Diarization:
    """Return who speaks when in a file. It must have a voice at the words of the transcript."""
    heard = diarize(voices.read_audio(file), speakers)
    if (share := diarization.share_heard(times, heard.spans)) < _LEAST_HEARD:
        raise AudioError(
            f"{file} has a voice at {share:.0%} of the words of {transcript_id!r}: it is silent or another recording, "
            "or the words have no times; give its own sound in audio="
        )
    return heard


def _files(
    archive: Archive, ids: Sequence[str], audio: AudioFiles
) -> tuple[dict[str, Path], dict[str, AudioNotFoundError]]:
    """Return the media file of each transcript, and an error for each whose file is not on this machine."""
    if audio is not None and not isinstance(audio, Mapping):
        if len(ids) != 1:
            raise OptionError(f'audio is one file for {len(ids)} recordings; give {{"recording": "file.mp3", ...}}')
        audio = {ids[0]: audio}
    stated = {archive.recordings.id(name): path for name, path in (audio or {}).items()}
    for named in stated:
        archive.status(named)  # raises an error if it is not in the corpus
    sources = dict(zip(ids, archive.recordings.table(ids)["source"].to_pylist(), strict=True))
    files, missing = {}, {}
    for transcript_id in ids:
        path = stated.get(transcript_id) or sources[transcript_id]
        if path and Path(path).suffix.lower() not in SUFFIXES and Path(path).expanduser().is_file():
            files[transcript_id] = Path(path).expanduser()
        else:
            missing[transcript_id] = AudioNotFoundError(
                f"the audio of {transcript_id!r} is not on this machine ({path or 'its source is unknown'}); "
                f'give audio={{"{transcript_id}": "file.mp3"}}'
            )
    return files, missing


def people_by_voice(
    speakers: pd.DataFrame, vectors: NDArray[np.float32], threshold: float, used_names: Iterable[str] = ()
) -> pd.Series[Any]:
    """Return the person of each speaker who is one with a speaker of another recording; null for others.

    Complete linkage: all speakers of a new person are at least as similar as the threshold. Speakers of one recording
    and of different people are never one.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    people: pd.Series[Any] = pd.Series(None, speakers.index, dtype=TEXT, name="person")
    if len(speakers) < 2:
        return people
    recording, person = speakers["transcript_id"].to_numpy(object), speakers["person"].fillna("").to_numpy(object)
    distance = 1 - vectors.astype(float) @ vectors.T
    named = person != ""
    distance[recording[:, None] == recording] = _FAR
    distance[named[:, None] & named] = _FAR
    distance[named & (person[:, None] == person)] = 0
    groups = fcluster(linkage(squareform(distance, checks=False), "complete"), 1 - threshold, "distance")
    used = {*person, *used_names}
    for _, group in speakers.groupby(groups, sort=False):
        if len(group) > 1:
            names = (name for name in group["speaker_name"].dropna() if name not in used)
            numbered = (f"Person {n}" for n in count(1) if f"Person {n}" not in used)
            name = next(iter(group["person"].dropna()), None) or next(names, None) or next(numbered)
            people[group.index] = name
            used.add(name)
    return people


def voice_vectors(archive: Archive, speakers: pd.DataFrame, audio: AudioFiles, keep: bool) -> NDArray[np.float32]:
    """Return the voice vector of each row of speakers, shape (rows, 192).

    It is NaN for a speaker who is hardly heard, and for those of a recording whose sound cannot be read.
    """
    vectors = np.full((len(speakers), SIZE), np.nan, np.float32)
    by_recording = {str(i): rows for i, rows in speakers.groupby("transcript_id", sort=False).indices.items()}
    labels = {i: speakers["speaker"].iloc[rows].tolist() for i, rows in by_recording.items()}
    spans = {i: _spans(archive, i, of) for i, of in labels.items()}
    digests = {i: hashlib.sha256(repr((labels[i], of)).encode()).hexdigest() for i, of in spans.items()}
    files, missing = _files(archive, list(by_recording), audio)
    sounds = {i: stamp(path.stat()) for i, path in files.items()}
    computed = archive.catalog.rows("SELECT transcript_id, speaker, spans, sound, vector FROM voices")
    stored = {row[:2]: row[2:] for row in computed}
    keys = list(zip(speakers["transcript_id"], speakers["speaker"], strict=True))
    pending = dict.fromkeys(by_recording, False)
    for row, (i, speaker) in enumerate(keys):
        of_spans, sound, vector = stored.get((i, speaker), ("", "", b""))
        if of_spans == digests[i] and sound == sounds.get(i, sound):  # without a file, that which was there counts
            vectors[row] = np.frombuffer(vector, "<f4")
        else:
            pending[i] = True

    errors: list[AudioError] = [missing[i] for i in missing if pending[i]]
    unheard = [i for i in files if pending[i]]
    if unheard:
        models.ensure(models.VOICES)
    for transcript_id in tqdm(unheard, desc="voices", unit="recording", delay=1):
        rows = by_recording[transcript_id]
        try:
            sound = voices.read_audio(files[transcript_id], progress=False)
            vectors[rows] = diarization.speaker_vectors(sound, spans[transcript_id], len(rows))
        except AudioError as error:
            errors.append(error)
            continue
        if keep and archive.has(transcript_id):
            key = digests[transcript_id], sounds[transcript_id]
            values = ((*keys[row], *key, vectors[row].astype("<f4").tobytes()) for row in rows)
            with archive.catalog.writing() as tx:
                tx.put("voices", [dict(zip(_STORED, row, strict=True)) for row in values])
    if errors and len(errors) == len(by_recording):
        raise errors[0]
    for left_out in errors:
        warnings.warn(f"{left_out}; its voices are not compared", CorpusWarning, stacklevel=4)
    return vectors


def voice_pairs(speakers: pd.DataFrame, vectors: NDArray[np.float32]) -> pd.DataFrame:
    """Return one row per pair of speakers of different recordings, most similar first."""
    first, second = np.triu_indices(len(speakers), 1)
    pairs = pd.concat(
        [
            speakers[["transcript_id", "recording", "speaker"]].iloc[first].reset_index(drop=True),
            speakers[["transcript_id", "recording", "speaker"]]
            .iloc[second]
            .reset_index(drop=True)
            .add_prefix("other_"),
        ],
        axis=1,
    )
    person, other = (speakers["person"].iloc[side].reset_index(drop=True) for side in (first, second))
    pairs["score"] = np.clip(vectors.astype(float) @ vectors.T, -1, 1)[first, second]
    pairs["person"] = person.where((person == other).fillna(False))
    pairs = pairs[pairs["transcript_id"] != pairs["other_transcript_id"]]
    return pairs.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _spans(archive: Archive, transcript_id: str, labels: Sequence[str]) -> list[diarization.Span]:
    """Return when the labels of a transcript speak: by the words that have times, else by the turns."""
    for name in ("words", "utterances"):
        rows = to_frame(name, archive.current(name, transcript_id))
        rows = rows.assign(speaker=speaker_labels(rows))
        rows = (
            rows[rows["speaker"].isin(labels)]
            .dropna(subset=["start_ms", "end_ms"])
            .sort_values("start_ms", kind="stable")
        )
        if len(rows):
            break
    spans: list[diarization.Span] = []
    for label, start, end in zip(rows["speaker"], rows["start_ms"], rows["end_ms"], strict=True):
        speaker = labels.index(label)
        if spans and spans[-1].speaker == speaker and start - spans[-1].end_ms <= _PAUSE_MS:
            spans[-1] = spans[-1]._replace(end_ms=max(int(end), spans[-1].end_ms))
        else:
            spans.append(diarization.Span(int(start), max(int(start), int(end)), speaker))
    return spans
