"""Names of speakers and edits of turns in the catalog, and fingerprints of named turns. The payloads do not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import colors
from voxframe._files import file_name
from voxframe.corpus.catalog import Catalog
from voxframe.errors import OptionError
from voxframe.frames.corrected import VERSION, with_original
from voxframe.frames.turn_edits import ARGUMENTS, Edit, Was
from voxframe.schema import SCHEMA_VERSION, SPEAKER_NAME, TEXT_ORIGINAL
from voxframe.validators import shown

#: Fingerprint of a turn: its start in milliseconds, and its text as received.
Fingerprint: TypeAlias = tuple[int | None, str | None]


def fingerprints(turns: pa.Table) -> dict[int, Fingerprint]:
    """Return the fingerprint of each turn of a transcript, by `utterance_idx`."""
    turns = with_original(turns, "utterances")
    columns = (turns[name].to_pylist() for name in ("utterance_idx", "start_ms", "text", TEXT_ORIGINAL.name))
    return {n: (start, text if before is None else before) for n, start, text, before in zip(*columns, strict=True)}


def unchanged(positions: Iterable[int], made_for: Mapping[int, Fingerprint], turns: pa.Table) -> set[int]:
    """Return the positions of the turns that are unchanged."""
    now = fingerprints(turns)
    return {n for n in positions if n in now and made_for.get(n, now[n]) == now[n]}


@dataclass(frozen=True)
class SpeakerNames:
    """Names of the speakers of one transcript."""

    # Name of each speaker by label ("A"; "channel 1" if only channels are known).
    speakers: Mapping[str, str] = field(default_factory=dict)
    # Speaker of single turns by `utterance_idx`: a label or a name.
    turns: Mapping[int, str] = field(default_factory=dict)
    made: str = ""  # time of the change, UTC
    made_for: Mapping[int, Fingerprint] = field(default_factory=dict)  # fingerprints that these turns had at that time

    def still_valid(self, turns: pa.Table) -> SpeakerNames:
        """Return the names without those of turns that have changed since."""
        same = unchanged(self.turns, self.made_for, turns) if self.turns else set()
        return replace(self, turns={n: who for n, who in self.turns.items() if n in same})

    def __bool__(self) -> bool:
        return bool(self.speakers or self.turns)

    def of_turn(self, position: int) -> str:
        """Return the name of the speaker of a corrected turn."""
        return self.speakers.get(self.turns[position], self.turns[position])


class NameLog:
    """The names of speakers in the catalog, with every earlier state."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        #: The names that still apply, and what they depend on, by transcript id; see `people.py`.
        self.valid: dict[str, tuple[tuple[object, ...], SpeakerNames]] = {}

    def get(self, transcript_id: str) -> SpeakerNames:
        """Return the current names of a transcript."""
        return (self.history(transcript_id) or [SpeakerNames()])[-1]

    def history(self, transcript_id: str) -> list[SpeakerNames]:
        """Return every state of the names, the current one last."""
        rows = self._catalog.rows("SELECT state FROM names WHERE transcript_id = ? ORDER BY n", [transcript_id])
        return [state for (text,) in rows if (state := _parse(text)) is not None]

    def all(self) -> dict[str, SpeakerNames]:
        """Return the names of every transcript that has any, by transcript id."""
        rows = self._catalog.rows("SELECT transcript_id, state FROM names ORDER BY transcript_id, n")
        return {i: state for i, text in rows if (state := _parse(text)) is not None}

    def every_state(self) -> list[tuple[str, SpeakerNames]]:
        """Return every state of the names of all transcripts, with the id of the transcript, the oldest first."""
        rows = self._catalog.rows("SELECT transcript_id, state FROM names ORDER BY rowid")
        return [(i, state) for i, text in rows if (state := _parse(text)) is not None]

    def add(self, transcript_id: str, names: SpeakerNames) -> None:
        """Add a state, which is the current one."""
        state = asdict(names) | {"made_for": {str(n): list(of) for n, of in names.made_for.items()}}
        with self._catalog.writing() as tx:
            (n,) = tx.rows("SELECT coalesce(max(n), -1) + 1 FROM names WHERE transcript_id = ?", [transcript_id])[0]
            text = json.dumps(state, ensure_ascii=False)
            tx.put("names", [{"transcript_id": transcript_id, "n": n, "state": text}])
        colors.recordings.pop(transcript_id, None)

    def undo(self, transcript_id: str) -> bool:
        """Remove the current state. Return False if there is none."""
        with self._catalog.writing() as tx:
            (n,) = tx.rows("SELECT max(n) FROM names WHERE transcript_id = ?", [transcript_id])[0]
            found = n is not None and bool(tx.drop("names", transcript_id=transcript_id, n=n))
        colors.recordings.pop(transcript_id, None)
        return found


def _parse(text: str) -> SpeakerNames | None:
    """Return a stored state; None if it is of a later version, so that it does not fit."""
    try:
        state = json.loads(text)
        made_for = {int(n): (start_ms, of) for n, (start_ms, of) in state.get("made_for", {}).items()}
        turns = {int(n): who for n, who in state["turns"].items()}
        return SpeakerNames(dict(state["speakers"]), turns, state["made"], made_for)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def checked_text(value: object, description: str, longest: int) -> str | None:
    """Return a name or a corrected text with single spaces between words. None stays None."""
    if value is None:
        return None
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text or len(text) > longest or any("\ud800" <= c <= "\udfff" for c in text):
        raise OptionError(
            f"{description} must be text of 1 to {longest:,} characters, or None to remove it, got {value!r:.100}"
        )
    return text


def checked_mapping(value: object, description: str, example: str) -> dict[Any, Any]:
    """Return a mapping of names or texts as a dict."""
    if not isinstance(value, Mapping):
        raise OptionError(f"{description} must be a dict, such as {example}, got {shown(value)}")
    return dict(value)


def with_names(
    table: pa.Table, by_id: Mapping[str, SpeakerNames], turns_of: Callable[[str], pa.Table] | None = None
) -> pa.Table:
    """Return a table with the column `speaker_name` after `speaker`."""
    if "speaker" not in table.column_names or SPEAKER_NAME.name in table.column_names:
        return table
    name = table["speaker"]
    ids = pa.array(list(by_id), pa.string())
    rows = np.flatnonzero(pc.is_in(table["transcript_id"], ids)) if by_id else np.empty(0, int)
    if len(rows):
        named = _names_of(table.take(pa.array(rows)), by_id, turns_of)
        source = np.arange(len(table))
        source[rows] = len(table) + np.arange(len(rows))
        name = pa.chunked_array([*name.chunks, *named.chunks], pa.string()).take(pa.array(source))
    return table.add_column(table.column_names.index("speaker") + 1, SPEAKER_NAME.name, name)


def _names_of(
    table: pa.Table, by_id: Mapping[str, SpeakerNames], turns_of: Callable[[str], pa.Table] | None
) -> pa.ChunkedArray:
    name = table["speaker"]
    speakers = {f"{i}\0{label}": who for i, names in by_id.items() for label, who in names.speakers.items()}
    if speakers:
        name = _replaced(_key(table["transcript_id"], voices_of(table)), speakers, name)
    corrected = {f"{i}\0{position}": names.of_turn(position) for i, names in by_id.items() for position in names.turns}
    if corrected and "utterance_idx" in table.column_names:
        name = _replaced(_key(table["transcript_id"], pc.cast(table["utterance_idx"], pa.string())), corrected, name)
    elif corrected and turns_of is not None:
        here = set(table["transcript_id"].unique().to_pylist())
        for transcript_id, names in by_id.items():
            if not names.turns or transcript_id not in here:
                continue
            of_it = pc.equal(table["transcript_id"], transcript_id)
            turns = turns_of(transcript_id).filter(pc.field("utterance_idx").isin(list(names.turns)))
            for row in turns.to_pylist():
                name = pc.if_else(pc.and_(of_it, _inside(table, row)), names.of_turn(row["utterance_idx"]), name)
    return name


def _key(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*columns, "\0")


def _replaced(keys: pa.ChunkedArray, values: Mapping[str, str], otherwise: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the value of each key, or the value of `otherwise` for keys without one."""
    place = pc.index_in(keys, pa.array(list(values), pa.string()))
    return pc.coalesce(pc.take(pa.array(list(values.values()), pa.string()), place), otherwise)


def _inside(table: pa.Table, turn: Mapping[str, Any]) -> Any:
    """Return a mask of the rows that start in a turn and have its label."""
    if turn["start_ms"] is None or turn["end_ms"] is None:
        return pa.scalar(False)
    begins = pc.and_(pc.greater_equal(table["start_ms"], turn["start_ms"]), pc.less(table["start_ms"], turn["end_ms"]))
    voice = turn["speaker"] if turn["speaker"] is not None else f"channel {turn['channel']}"
    return pc.fill_null(pc.and_(begins, pc.equal(voices_of(table), voice)), False)


def voices_of(table: pa.Table) -> pa.ChunkedArray:
    """Return the label of each row: that of the speaker, otherwise "channel" and the channel's name."""
    channel = pc.binary_join_element_wise("channel", table["channel"], " ")
    return pc.coalesce(table["speaker"], channel)


class EditLog:
    """The edits of the transcripts of a corpus."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def all(self, transcript_id: str | None = None) -> dict[str, list[Edit]]:
        """Return every edit of each transcript that has any, in order."""
        edits: dict[str, list[Edit]] = {}
        for i, text in self._rows(None if transcript_id is None else [transcript_id]):
            if (edit := _parsed_edit(text)) is not None:
                edits.setdefault(i, []).append(edit)
        return edits

    def active(self, transcript_id: str) -> list[Edit]:
        """Return the edits of a transcript that were not undone."""
        return [edit for edit in self.all(transcript_id).get(transcript_id, []) if edit.undone is None]

    def hashes(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """Return a text that changes with the edits that apply, of each transcript that has any."""
        ids = None if ids is None else list(ids)
        texts: dict[str, list[str]] = {}
        for i, text in self._rows(ids if ids is not None and len(ids) < 64 else None):
            if '"undone": null' in text:
                texts.setdefault(i, []).append(text)
        edited = texts.keys() if ids is None else texts.keys() & set(ids)
        return {i: hashlib.sha256(repr((VERSION, SCHEMA_VERSION, texts[i])).encode()).hexdigest()[:32] for i in edited}

    def stamps(self) -> dict[str, str]:
        """Return the texts of `hashes` by the stem of the files of the transcript."""
        return {file_name(i): key for i, key in self.hashes().items()}

    def keep(self, transcript_id: str, edits: Sequence[Edit]) -> None:
        """Store the edits of a transcript, of which none is ever removed."""
        texts = [text for _, text in self._rows([transcript_id])]
        rows = []
        for n, edit in enumerate(edits):
            text = json.dumps(asdict(edit), ensure_ascii=False)
            if n >= len(texts) or texts[n] != text:
                rows.append({"transcript_id": transcript_id, "n": n, "edit": text})
        with self._catalog.writing() as tx:
            tx.put("edits", rows)

    def _rows(self, ids: Sequence[str] | None) -> list[tuple[str, str]]:
        if ids is None:
            return self._catalog.rows("SELECT transcript_id, edit FROM edits ORDER BY transcript_id, n")
        among = "transcript_id IN (SELECT value FROM json_each(?))"
        query = f"SELECT transcript_id, edit FROM edits WHERE {among} ORDER BY transcript_id, n"  # noqa: S608
        return self._catalog.rows(query, [json.dumps([*ids])])


def _parsed_edit(text: str) -> Edit | None:
    """Return a stored edit; None if it is of a later version, so that it does not fit."""
    try:
        row: dict[str, Any] = json.loads(text)
        edit = Edit(**{**row, "was": _was(row["was"]), "other_was": _was(row["other_was"])})
        return edit if ARGUMENTS.get(edit.action, frozenset()) <= edit.value.keys() else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _was(fields: dict[str, Any] | None) -> Was | None:
    return None if fields is None else Was(**fields)
