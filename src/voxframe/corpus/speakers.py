"""Names of speakers: the column `speaker_name` beside the labels of the service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import pandas as pd

from voxframe._arrow import TEXT
from voxframe.corpus.annotations import SpeakerNames, checked_mapping, checked_text, fingerprints, voices_of
from voxframe.corpus.archive import Archive, in_session
from voxframe.corpus.detection import (
    THRESHOLD,
    AudioFiles,
    detect_speakers,
    people_by_voice,
    voice_pairs,
    voice_vectors,
)
from voxframe.corpus.edits import Corrections
from voxframe.corpus.names import original_turns, turns_to_name, valid_names
from voxframe.corpus.people import Assignment, all_people, assign_people, people_table, undo_people
from voxframe.corpus.reading import Ids
from voxframe.errors import OptionError
from voxframe.validators import Boolean, Number, checked, speaker_label

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
