"""The part of a corpus that knows who its speakers are: the column `speaker_name` beside the labels as they came."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.corpus.disk import clear_errors
from voxframe.corpus.marks import Mark, marks
from voxframe.corpus.name_files import NameFiles, Names
from voxframe.corpus.reading import identifiers
from voxframe.corpus.store import Store, View
from voxframe.errors import OptionError
from voxframe.schema import SPEAKER_NAME

_LONGEST = 200  # characters of a name
_TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)
_RACY_NS = 2_000_000_000  # a folder changed so short a time ago may change once more and keep its time of change


class _Known(NamedTuple):
    """Names of a transcript that were looked at, when, with which payload, and those that hold."""

    names: Names
    settled: int
    content: str
    holding: Names


class SpeakerNames(ABC):
    """Names of the speakers of a corpus; `Corpus` is one of these."""

    path: Path
    _names: NameFiles
    _store: Store

    @abstractmethod
    def arrow(self, name: str, transcript_id: str) -> pa.Table:
        """One table of one transcript as Arrow."""

    @abstractmethod
    def content(self, transcript_id: str, view: View) -> str | None:
        """Hash of all that the tables of an answer are made from; None where it is not here."""

    @abstractmethod
    def put_again(self, transcript_id: str, view: View = "transcript") -> None:
        """Make the tables of a payload that is here again."""

    @abstractmethod
    def has_export(self, transcript_id: str, view: View) -> bool:
        """Whether the export of a transcript is here."""

    @abstractmethod
    def ids(self) -> list[str]:
        """Identifiers of all transcripts here, sorted."""

    def name_speakers(
        self,
        transcript_id: str,
        names: Mapping[str, str | None] | None = None,
        *,
        turns: Mapping[int, str | None] | None = None,
    ) -> pd.DataFrame:
        """Say who the speakers of a transcript are. Tables show it as `speaker_name`; `speaker` stays as it came.

        Two labels with the same name are one speaker from then on. Names given before stay where they are not given
        again. `undo_names` takes a change back.

        Args:
            transcript_id: Identifier of the transcript.
            names: Name by label, `{"A": "Ada", "B": "Ben"}`; None as a name takes it away. Where only channels are
                known, the label is "channel 1".
            turns: Who speaks in single turns, by their `utterance_idx`: a label of the transcript, which then goes by
                its name, or any other name; None takes the correction away.

        Returns:
            As `speaker_names` of this transcript.

        Raises:
            CorpusError: It is not here, or the corpus cannot be written.
            OptionError: There is no such label or turn, or a name is no text.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> turns = [{"speaker": s, "text": "Hi.", "start": 0, "end": 90, "words": []} for s in "ABA"]
            >>> _ = corpus.put("t1", json.dumps({"id": "t1", "utterances": turns}).encode())
            >>> _ = corpus.name_speakers("t1", {"A": "Ada"}, turns={2: "B"})
            >>> corpus.table("utterances")["speaker_name"].to_list()
            ['Ada', 'B', 'B']
        """
        new_names, new_turns = self._checked(transcript_id, names or {}, turns or {})
        with clear_errors(self.path), self._names.turn(transcript_id):
            history = self._names.history(transcript_id)
            now = history[-1] if history else Names()
            speakers = {k: v for k, v in {**now.speakers, **new_names}.items() if v is not None}
            corrected = {k: v for k, v in {**now.turns, **new_turns}.items() if v is not None}
            there = marks(self.arrow("utterances", transcript_id))
            made_for = {**now.made_for, **{k: there[k] for k in new_turns if k in there}}
            made_for = {k: mark for k, mark in made_for.items() if k in corrected}
            if (speakers, corrected, made_for) != (now.speakers, now.turns, now.made_for):
                made = datetime.now(UTC).isoformat(timespec="seconds")
                self._names.keep(transcript_id, [*history, Names(speakers, corrected, made, made_for)])
        self._make_again(transcript_id)
        return self.speaker_names(transcript_id)

    def undo_names(self, transcript_id: str) -> pd.DataFrame:
        """Take back the last change that `name_speakers` made to a transcript; again for the one before it.

        Returns:
            As `speaker_names` of this transcript.

        Raises:
            CorpusError: It is not here, or the corpus cannot be written.
            OptionError: There is nothing to take back.
        """
        self.arrow("transcripts", transcript_id)  # says where it is not here
        with clear_errors(self.path), self._names.turn(transcript_id):
            history = self._names.history(transcript_id)
            if not history:
                raise OptionError(f"the speakers of {transcript_id!r} have no names; there is nothing to take back")
            self._names.keep(transcript_id, history[:-1])
        self._make_again(transcript_id)
        return self.speaker_names(transcript_id)

    def speaker_names(self, ids: str | Iterable[str] | None = None) -> pd.DataFrame:
        """The names that were given.

        Args:
            ids: Identifier or identifiers; None is all that have names.

        Returns:
            One row a name: `transcript_id`, `speaker` (the label; null for a single turn), `speaker_name` str,
            `utterance_idx` Int64 (the turn, null for all of the label).
        """
        given = self._names_now()
        wanted = sorted(given) if ids is None else identifiers(ids)
        rows: list[tuple[str, str | None, str, int | None]] = []
        for transcript_id in wanted:
            names = given.get(transcript_id, Names())
            rows += [(transcript_id, label, name, None) for label, name in names.speakers.items()]
            rows += [(transcript_id, None, names.of_turn(position), position) for position in sorted(names.turns)]
        dtypes = {"transcript_id": _TEXT, "speaker": _TEXT, "speaker_name": _TEXT, "utterance_idx": pd.Int64Dtype()}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def _checked(
        self, transcript_id: str, names: Mapping[str, str | None], turns: Mapping[int, str | None]
    ) -> tuple[dict[str, str | None], dict[int, str | None]]:
        """Names and corrections as they are kept."""
        labels = self._labels(transcript_id)
        positions = self.arrow("utterances", transcript_id)["utterance_idx"].to_pylist()
        if unknown := [label for label in names if label not in labels]:
            raise OptionError(
                f"{transcript_id!r} has no speaker {unknown[0]!r}; it has {', '.join(labels) or 'no speakers'}"
            )
        gone = self._names.all().get(transcript_id, Names()).turns.keys()  # may be taken away
        if missing := [n for n, who in turns.items() if n not in positions and not (who is None and n in gone)]:
            there = f"0 to {len(positions) - 1}" if positions else "no turns"
            raise OptionError(f"{transcript_id!r} has no turn {missing[0]!r}; it has {there}")
        return (
            {label: _checked_name(name) for label, name in names.items()},
            {int(position): _checked_name(name) for position, name in turns.items()},
        )

    def _names_now(self) -> dict[str, Names]:
        """Names of every transcript that has some, by its identifier; of turns, of those that are what they were."""
        changed = self._store.changed_ns()
        settled = changed if time.time_ns() - changed > _RACY_NS else -1
        return {
            transcript_id: self._holding(transcript_id, names, settled) if names.turns else names
            for transcript_id, names in self._names.all().items()
        }

    def _holding(self, transcript_id: str, names: Names, settled: int) -> Names:
        """Names without those of turns that are other ones by now.

        Args:
            transcript_id: Identifier of the transcript.
            names: All its names.
            settled: When a payload was last replaced; -1 where that may be happening.
        """
        known = self._known_names.get(transcript_id)
        if known is not None and known.names is names and known.settled == settled != -1:
            return known.holding
        content = self.content(transcript_id, "transcript")
        if content is None:
            return names
        same = known is not None and known.content == content  # which tells names apart, too
        holding = known.holding if known and same else names.holding(self.arrow("utterances", transcript_id))
        self._known_names[transcript_id] = _Known(names, settled, content, holding)
        return holding

    @cached_property
    def _known_names(self) -> dict[str, _Known]:
        return {}

    def _stale_names(self, transcript_id: str) -> list[tuple[int, str, Mark]]:
        names = self._names.of(transcript_id)[0]
        if not names.turns:
            return []
        same = names.holding(self.arrow("utterances", transcript_id)).turns
        return [
            (n, names.of_turn(n), names.made_for.get(n, (None, None))) for n in sorted(names.turns) if n not in same
        ]

    def _labels(self, transcript_id: str) -> list[str]:
        found: dict[str, None] = {}
        for name in ("utterances", "words", "sentiments"):
            found |= dict.fromkeys(v for v in _voices(self.arrow(name, transcript_id)).unique().to_pylist() if v)
        return list(found)

    def _make_again(self, transcript_id: str) -> None:
        self.put_again(transcript_id)
        for view in ("sentences", "paragraphs"):
            if self.has_export(transcript_id, view):
                self.put_again(transcript_id, view)


def with_names(table: pa.Table, given: Mapping[str, Names], turns: pa.Table | None = None) -> pa.Table:
    """A table with `speaker_name` behind `speaker`.

    Args:
        table: The table; one without `speaker`, or with names, stays as it is.
        given: Names of speakers, by transcript.
        turns: The utterances of the only transcript, for a table that does not say which turn a row belongs to; a row
            that begins in a turn of the same label belongs to it.
    """
    if "speaker" not in table.column_names or SPEAKER_NAME.name in table.column_names:
        return table
    name = table["speaker"]
    speakers = {f"{i}\0{label}": name for i, names in given.items() for label, name in names.speakers.items()}
    if speakers:
        name = _replaced(_key(table["transcript_id"], _voices(table)), speakers, name)
    corrected = {f"{i}\0{position}": names.of_turn(position) for i, names in given.items() for position in names.turns}
    if corrected and "utterance_idx" in table.column_names:
        name = _replaced(_key(table["transcript_id"], pc.cast(table["utterance_idx"], pa.string())), corrected, name)
    elif corrected and turns is not None:
        (names,) = given.values()
        for row in turns.filter(pc.field("utterance_idx").isin(list(names.turns))).to_pylist():
            name = pc.if_else(_inside(table, row), names.of_turn(row["utterance_idx"]), name)
    return table.add_column(table.column_names.index("speaker") + 1, SPEAKER_NAME.name, name)


def _key(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*columns, "\0")


def _replaced(keys: pa.ChunkedArray, values: Mapping[str, str], otherwise: pa.ChunkedArray) -> pa.ChunkedArray:
    """The value of each key, where it has one."""
    place = pc.index_in(keys, pa.array(list(values), pa.string()))
    return pc.coalesce(pc.take(pa.array(list(values.values()), pa.string()), place), otherwise)


def _inside(table: pa.Table, turn: Mapping[str, Any]) -> Any:
    """Which rows of a table begin in a turn and have its label."""
    if turn["start_ms"] is None or turn["end_ms"] is None:
        return pa.scalar(False)
    begins = pc.and_(pc.greater_equal(table["start_ms"], turn["start_ms"]), pc.less(table["start_ms"], turn["end_ms"]))
    voice = turn["speaker"] if turn["speaker"] is not None else f"channel {turn['channel']}"
    return pc.fill_null(pc.and_(begins, pc.equal(_voices(table), voice)), False)


def _voices(table: pa.Table) -> pa.ChunkedArray:
    """Label of each row: the speaker's, else "channel" and its name."""
    channel = pc.binary_join_element_wise("channel", table["channel"], " ")
    return pc.coalesce(table["speaker"], channel)


def _checked_name(name: object) -> str | None:
    if name is None:
        return None
    given = " ".join(name.split()) if isinstance(name, str) else ""
    if not given or len(given) > _LONGEST or any("\ud800" <= c <= "\udfff" for c in given):
        raise OptionError(f"a speaker's name is a text of 1 to {_LONGEST} characters, not {name!r:.100}")
    return given
