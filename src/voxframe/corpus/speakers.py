"""Names and people of speakers, set by hand or found by their voices, beside the labels of the service."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from voxframe import models, voices
from voxframe._arrow import TEXT
from voxframe._files import stamp
from voxframe.analysis.rows import speaker_labels
from voxframe.corpus.archive import Archive, in_session
from voxframe.corpus.edits import Corrections
from voxframe.corpus.ledger import Ids, SpeakerNames, fingerprints
from voxframe.corpus.people import (
    Assignment,
    all_people,
    assign_people,
    original_turns,
    people_table,
    turns_to_name,
    undo_people,
    valid_names,
    voices_of,
)
from voxframe.errors import AudioError, AudioNotFoundError, CorpusWarning, OptionError
from voxframe.formats import SUFFIXES
from voxframe.frames import to_pandas
from voxframe.options import MAX_SPEAKERS
from voxframe.validators import Boolean, Integer, Number, checked, checked_mapping, checked_text, speaker_label
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
        rows = to_pandas(archive.current(name, transcript_id), name)
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


_NAME = ("the name of a speaker", 200)  # description and maximum number of characters


class Speakers:
    """Names of the speakers of a corpus, as `corpus.speakers`."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def __repr__(self) -> str:
        return f"Speakers({str(self._archive.path)!r})"

    @in_session
    def set(
        self,
        transcript_id: str,
        names: Mapping[str, str | None] | None = None,
        *,
        turns: Mapping[int, str | None] | None = None,
    ) -> pd.DataFrame:
        """Name the speakers of a transcript. Tables show the names as `speaker_name`; `speaker` keeps the labels.

        Two labels with the same name count as one speaker. Names set before are kept unless they are set again.
        `undo` reverts the change.

        Args:
            transcript_id: Id of the transcript, or the name of its recording.
            names: Name by label, `{"A": "Ada", "B": "Ben"}`; None removes a name. If only channels are known, the
                label is "channel 1".
            turns: Speaker of single turns by `utterance_idx`, also of those that `corpus.corrections` has split off: a
                label of the transcript or any other name; None removes the correction.

        Returns:
            The names of this transcript, as `get` returns them.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            OptionError: There is no such label or turn, a name is not text, or neither names nor turns were given.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> turns = [{"speaker": s, "text": "Hi.", "start": 0, "end": 90, "words": []} for s in "ABA"]
            >>> corpus.raw.put("t1", json.dumps({"id": "t1", "utterances": turns}).encode())
            >>> _ = corpus.speakers.set("t1", {"A": "Ada"}, turns={2: "B"})
            >>> corpus.table("utterances")["speaker_name"].to_list()
            ['Ada', 'B', 'B']
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        if names is None and turns is None:
            raise OptionError('there is nothing to set; give names, such as {"A": "Ada"}, or turns, such as {2: "A"}')
        new_names, new_turns = self._checked(
            transcript_id,
            checked_mapping({} if names is None else names, "the names of speakers", '{"A": "Ada"}'),
            checked_mapping({} if turns is None else turns, "the speakers of turns", '{2: "A"}'),
        )
        with self._archive.kept(transcript_id):
            now = self._archive.names.get(transcript_id)
            speakers = {k: v for k, v in {**now.speakers, **new_names}.items() if v is not None}
            corrected = {k: v for k, v in {**now.turns, **new_turns}.items() if v is not None}
            there = fingerprints(original_turns(self._archive, transcript_id)) if new_turns else {}
            made_for = {**now.made_for, **{k: there[k] for k in new_turns if k in there}}
            made_for = {k: fingerprint for k, fingerprint in made_for.items() if k in corrected}
            if (speakers, corrected, made_for) != (now.speakers, now.turns, now.made_for):
                time = datetime.now(UTC).isoformat(timespec="seconds")
                self._archive.names.add(transcript_id, SpeakerNames(speakers, corrected, time, made_for))
        return self.get(transcript_id)

    def assign(
        self,
        people: Assignment = None,
        *,
        by: Literal["name", "metadata", "voice"] | None = None,
        ids: Ids | None = None,
        audio: AudioFiles = None,
        threshold: float | None = None,
        keep_vectors: bool = False,
    ) -> pd.DataFrame:
        """State which people the speakers of recordings are, as one change, which `undo()` reverts.

        A label such as "A" is another speaker in each recording; a person is the same in all. `by="person"` groups by
        people, and `metadata="person"` adds the column to a table. The assignment is made once: repeat it for
        transcripts that are added later.

        `by="voice"` compares voices in the recordings. Speakers of different recordings become one person if all their
        pairs have at least the threshold. A new person gets the name of one of the speakers, else "Person 1" and so on.
        People who were assigned before are kept, and new recordings join them. Transcripts from any service or file
        will do, if their words or turns have speakers and times. A recording whose sound is missing or cannot be read
        is left out with a warning.

        Voice vectors are personal data: a vector tells whether somebody speaks in another recording. They are stored
        only with `keep_vectors`; then later calls do not need the sound. They stay in the catalog of the corpus, no
        export has them, and `forget_vectors` deletes them, as does `corpus.forget` with their transcript.

        Args:
            people: With `by="name"`, the person of each name, `{"Ada": "Ada Lovelace"}`, or None: each name is a
                person. With `by="metadata"`, the metadata column with the person of each label,
                `{"A": "agent", "B": "customer"}`. Otherwise a DataFrame or a rule. The DataFrame has the columns
                transcript_id or recording, speaker (the label) and person (null removes it). The rule is a function. It
                takes a row of `table` with the metadata as a dict, and returns a person, or None for no change.
                Metadata columns with the name of a column of `table` are left out.
            by: "name", "metadata" or "voice".
            ids: Only speakers of these transcripts. None (default): of all.
            audio: With `by="voice"`, media files by id or name of the recording. None (default): those that the corpus
                knows as the `source` of the recordings.
            threshold: With `by="voice"`, lowest score of two speakers who are one person: the cosine similarity of
                their voices, from -1 to 1. None (default): 0.5.
            keep_vectors: With `by="voice"`, store the voice vectors in the corpus.

        Returns:
            The speakers and people, as `table` returns them. With `by="voice"`, one row per pair of speakers of
            different recordings, most similar first: `transcript_id`, `recording`, `speaker`, `other_transcript_id`,
            `other_recording`, `other_speaker` str, `score` float64 (-1 to 1), `person` str (null if they are not one
            person). A speaker with less than 0.25 s alone has no pairs.

        Raises:
            OptionError: The people are not stated in one of these ways, or there is no such label or metadata column.
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.
            AudioNotFoundError: None of the media files is on this machine.
            MissingExtraError: The extra `local` is not installed.
            ModelError: The models cannot be downloaded.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> turns = [{"speaker": "A", "text": "Hi.", "start": 0, "end": 90, "words": []}]
            >>> for name in ("t1", "t2"):
            ...     corpus.raw.put(name, json.dumps({"id": name, "utterances": turns}).encode())
            ...     _ = corpus.speakers.set(name, {"A": "Ada"})
            >>> corpus.speakers.assign(by="name")[["transcript_id", "speaker", "person"]].to_numpy().tolist()
            [['t1', 'A', 'Ada'], ['t2', 'A', 'Ada']]
        """
        if by == "voice":
            if people is not None:
                raise OptionError('by="voice" takes no people; it gives new people the names of their speakers')
            keep = checked("keep_vectors", keep_vectors, Boolean())
            return _match_voices(self._archive, ids, audio, threshold, keep)
        if audio is not None or threshold is not None or keep_vectors:
            raise OptionError('audio, threshold and keep_vectors are for by="voice"')
        assign_people(self._archive, people, by, ids)
        return self.table(ids)

    def detect(self, ids: Ids, *, audio: AudioFiles = None, speakers: int | None = None) -> pd.DataFrame:
        """Tell the speakers of transcripts apart by voice, for those that have no speakers or wrong ones.

        Every word gets a label, "A" for the speaker of the first word. Turns overlap if two speak at once and the
        transcript has words of both; the words of such a turn are in `utterance_words`, and their `utterance_idx` in
        `words` is null. This is a correction: every read shows it, the payload stays as it is, and
        `corpus.corrections.undo` takes it back. Transcripts from any service or file will do, if their words have
        times. Nothing is stored about the voices.

        A transcript whose sound cannot be read, or has no voice at most of its words, is left as it is, with a warning;
        if there is no other, this is an error. An interrupted call can be repeated: recordings that are done are not
        heard again.

        Args:
            ids: Id or ids of transcripts, or names of recordings.
            audio: The media file; for several recordings, a file by id or name. None (default): the file that the
                corpus knows as the recording's `source`.
            speakers: Number of speakers, if it is known. None (default): it is estimated.

        Returns:
            The speakers of these recordings, as `table` returns them.

        Raises:
            AudioNotFoundError: A media file is not on this machine.
            AudioError: A media file has no readable audio, or no voice at most of the words.
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.
            OptionError: An argument is invalid.
            MissingExtraError: The extra `local` is not installed.
            ModelError: The models cannot be downloaded.

        Example:
            >>> corpus.speakers.detect("call", audio="call.mp3")  # doctest: +SKIP
        """
        return self.table(detect_speakers(self._archive, Corrections(self._archive).relabel, ids, audio, speakers))

    def forget_vectors(self, ids: Ids | None = None) -> int:
        """Delete the voice vectors that `assign(by="voice", keep_vectors=True)` stored; people stay as they are.

        Args:
            ids: Id or ids of transcripts, or names of recordings. None (default): all.

        Returns:
            The number of vectors.

        Raises:
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.

        Example:
            >>> import tempfile, voxframe
            >>> voxframe.Corpus(tempfile.mkdtemp()).speakers.forget_vectors()
            0
        """
        with self._archive.catalog.writing() as tx:
            stored = [i for (i,) in tx.rows("SELECT DISTINCT transcript_id FROM voices")]
            selected = stored if ids is None else self._archive.known(ids)
            return sum(tx.drop("voices", transcript_id=i) for i in selected)

    def table(self, ids: Ids | None = None) -> pd.DataFrame:
        """Return the speakers of all recordings with their people and talk time.

        Args:
            ids: Ids or recordings. None (default): all.

        Returns:
            One row per transcript and label: `transcript_id`, `recording`, `speaker` (the label), `speaker_name` (null
            if it has none), `person` (null if it has none) str, `talk_s` float64 (s), `turns` int64.

        Raises:
            CorpusError: A transcript is not in the corpus.
        """
        return people_table(self._archive, ids)

    def undo(self, transcript_id: str | None = None) -> pd.DataFrame:
        """Revert the last change that `set` made to a transcript; call it again for the change before.

        Args:
            transcript_id: Id of the transcript, or the name of its recording. None (default): revert the last change
                that `assign` made.

        Returns:
            The names of this transcript, as `get` returns them; without a transcript, the result of `table`.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            OptionError: There is no change to revert.
        """
        if transcript_id is None:
            undo_people(self._archive)
            return self.table()
        transcript_id = self._archive.recordings.id(transcript_id)
        if not self._archive.has(transcript_id):
            raise self._archive.missing(transcript_id)
        with self._archive.kept(transcript_id):
            if not self._archive.names.undo(transcript_id):
                raise OptionError(f"the speakers of {transcript_id!r} have no names, so there is no change to undo")
        return self.get(transcript_id)

    def get(self, ids: str | Iterable[str] | None = None) -> pd.DataFrame:
        """Return the names of speakers.

        Args:
            ids: Id or ids. None (default): all transcripts with names.

        Returns:
            One row per name: `transcript_id`, `speaker` (the label; null for a single turn), `speaker_name` str,
            `utterance_idx` Int64 (the turn; null if the name is for the label).
        """
        self._archive.report_missing()
        names_of = valid_names(self._archive)
        rows: list[tuple[str, str | None, str, int | None]] = []
        for transcript_id in sorted(names_of) if ids is None else self._archive.known(ids):
            names = names_of.get(transcript_id, SpeakerNames())
            rows += [(transcript_id, label, name, None) for label, name in names.speakers.items()]
            rows += [(transcript_id, None, names.of_turn(position), position) for position in sorted(names.turns)]
        dtypes = {"transcript_id": TEXT, "speaker": TEXT, "speaker_name": TEXT, "utterance_idx": pd.Int64Dtype()}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def _checked(
        self, transcript_id: str, names: Mapping[str, str | None], turns: Mapping[int, str | None]
    ) -> tuple[dict[str, str | None], dict[int, str | None]]:
        """Validate names and turns, and return them in the form that is stored."""
        labels = self._labels(transcript_id)
        names = {speaker_label(label): name for label, name in names.items()}
        positions = turns_to_name(self._archive, transcript_id)["utterance_idx"].to_pylist() if turns else []
        if unknown := [label for label in names if label not in labels]:
            raise OptionError(
                f"{transcript_id!r} has no speaker {unknown[0]!r}; it has {', '.join(labels) or 'no speakers'}"
            )
        gone = self._archive.names.get(transcript_id).turns.keys()  # may be removed
        if missing := [n for n, who in turns.items() if n not in positions and not (who is None and n in gone)]:
            there = f"0 to {len(positions) - 1}" if positions else "no turns"
            raise OptionError(f"{transcript_id!r} has no turn {missing[0]!r}; it has {there}")
        return (
            {label: checked_text(name, *_NAME) for label, name in names.items()},
            {int(position): checked_text(speaker_label(name), *_NAME) for position, name in turns.items()},
        )

    def _labels(self, transcript_id: str) -> list[str]:
        labels: dict[str, None] = {}
        for name in ("utterances", "words", "sentiments"):
            table, located = self._archive.read(name, [transcript_id], ["speaker", "channel"])
            for _, error in located.bad:
                raise error
            labels |= dict.fromkeys(voice for voice in voices_of(table).unique().to_pylist() if voice)
        return list(labels)


def _match_voices(
    archive: Archive, ids: Ids | None, audio: AudioFiles, threshold: float | None, keep: bool
) -> pd.DataFrame:
    """Assign people to speakers of different recordings by voice, as one change, and return the pairs of speakers."""
    threshold = THRESHOLD if threshold is None else checked("threshold", threshold, Number(-1, 1))
    speakers = people_table(archive, ids)
    vectors = voice_vectors(archive, speakers, audio, keep)
    heard = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    speakers, vectors = speakers.iloc[heard].reset_index(drop=True), vectors[heard]
    matched = people_by_voice(
        speakers, vectors, threshold, {who for of in all_people(archive).values() for who in of.values()}
    )
    assign_people(archive, speakers.assign(person=matched)[matched.notna()], None, ids)
    return voice_pairs(speakers.assign(person=matched.fillna(speakers["person"])), vectors)
