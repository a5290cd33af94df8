"""Names of speakers, as the column `speaker_name`, and people across transcripts, as the column `person`.

A name of a single turn applies as long as the turn keeps its start and text in the payload. That of a turn that a
correction has split off applies as long as this turn exists. The catalog holds every change, so that changes can be
undone; no transcript is changed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import analysis
from voxframe._arrow import DTYPES, TEXT, takes_frames
from voxframe.analysis.rows import as_a_part, speaker_labels
from voxframe.corpus.archive import Archive
from voxframe.corpus.conditions import PERSON
from voxframe.corpus.ledger import Fingerprint, Ids, SpeakerNames
from voxframe.corpus.metadata import metadata_table
from voxframe.errors import CorpusError, OptionError
from voxframe.frames import to_pandas
from voxframe.schema import SPEAKER_NAME
from voxframe.validators import checked_text, shown


def valid_names(archive: Archive) -> dict[str, SpeakerNames]:
    """Return the names of each transcript that has any, by transcript id."""
    return {i: _still_valid(archive, i, names) for i, names in archive.names.all().items()}


def add_names(archive: Archive, table: pa.Table) -> pa.Table:
    """Return a table with the column `speaker_name`, if it has `speaker`."""
    if "speaker" not in table.column_names:
        return table
    ids = table.slice(0, 1)["transcript_id"].to_pylist() if "transcript_id" in table.column_names else []
    if ids and table["transcript_id"][-1].as_py() == ids[0]:  # rows of one transcript: do not read those of the others
        names = archive.names.get(ids[0])
        by_id = {ids[0]: _still_valid(archive, ids[0], names)} if names else {}
    else:
        by_id = valid_names(archive)
    return with_names(table, by_id, partial(archive.current, "utterances"))


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


def turns_to_name(archive: Archive, transcript_id: str) -> pa.Table:
    """Return the turns as the service sent them, and after them those that corrections have split off."""
    turns = original_turns(archive, transcript_id)
    now = archive.current("utterances", transcript_id).select(turns.column_names)
    split_off = pc.invert(pc.is_in(now["utterance_idx"], turns["utterance_idx"].combine_chunks()))
    return pa.concat_tables([turns, now.filter(split_off).cast(turns.schema)])


def original_turns(archive: Archive, transcript_id: str) -> pa.Table:
    """Return the turns whose start and text tell whether a name still applies."""
    if any(edit.action == "speakers" for edit in archive.edits.active(transcript_id)):
        return archive.current("utterances", transcript_id)
    return archive.table("utterances", transcript_id)


def stale_names(archive: Archive, transcript_id: str) -> list[tuple[int, str, Fingerprint]]:
    """Return the turns with a name that no longer applies: index, name and fingerprint."""
    names = archive.names.get(transcript_id)
    valid = _still_valid(archive, transcript_id, names).turns
    return [(n, names.of_turn(n), names.made_for.get(n, (None, None))) for n in sorted(names.turns) if n not in valid]


def _still_valid(archive: Archive, transcript_id: str, names: SpeakerNames) -> SpeakerNames:
    """Return the names without those of turns that have changed."""
    source = archive.source_hash(transcript_id) if names.turns else None
    if source is None:
        return names
    key = (names, source, archive.edits.hashes([transcript_id]).get(transcript_id))
    cached = archive.names.valid.get(transcript_id)
    if cached is None or cached[0] != key:
        cached = archive.names.valid[transcript_id] = key, names.still_valid(turns_to_name(archive, transcript_id))
    return cached[1]


#: Person of each label, by transcript id and label. None removes a person.
Assigned: TypeAlias = dict[str, dict[str, str | None]]
#: Names of people by name of a speaker, metadata columns by label, a table of people, or a function of a row.
Assignment: TypeAlias = "Mapping[str, str] | pd.DataFrame | Callable[[dict[str, Any]], str | None] | None"

#: Columns that determine the person of a row.
_OF_ROWS = ("transcript_id", "speaker", "channel", "utterance_idx")
_PERSON = ("the name of a person", 200)  # description and maximum number of characters
_AT_A_TIME = 64  # transcripts in memory


@takes_frames
def assign_people(
    archive: Archive, people: Assignment, by: Literal["name", "metadata"] | None, ids: Ids | None
) -> None:
    """Assign people to labels, as one change."""
    if by not in (None, "name", "metadata"):
        raise OptionError(f"by must be 'name', 'metadata', 'voice' or None, got {shown(by)}")
    table = people_table(archive, ids)
    if by == "name":
        assigned = _by_name(table, people)
    elif by == "metadata":
        assigned = _by_metadata(archive, table, people)
    elif isinstance(people, pd.DataFrame):
        assigned = _by_table(archive, table, people)
    elif callable(people):
        about = _about(archive, table).set_index("transcript_id")
        about = table.join(about.drop(columns=about.columns.intersection(table.columns)), on="transcript_id")
        rows: list[dict[str, Any]] = about.astype(object).where(about.notna(), None).to_dict("records")  # type: ignore[assignment]
        assigned = [(row["transcript_id"], row["speaker"], people(row)) for row in rows]
        assigned = [row for row in assigned if row[2] is not None]
    else:
        raise OptionError(
            'people are assigned with by="name", by="voice", by="metadata" and {label: column}, a DataFrame with '
            "the columns transcript_id, speaker and person, or a function of a row"
        )
    existing, change = all_people(archive), Assigned()
    for transcript_id, label, person in assigned:
        name = checked_text(person, *_PERSON)
        if existing.get(transcript_id, {}).get(label) != name:
            change.setdefault(transcript_id, {})[label] = name
    with archive.catalog.writing() as tx:
        (n,) = tx.rows("SELECT coalesce(max(change), -1) + 1 FROM people")[0]
        # `forget` removes the payload first and people later, so nothing is left of what is deleted meanwhile
        here = {transcript_id: of for transcript_id, of in change.items() if archive.has(transcript_id)}
        rows = [{"change": n, "transcript_id": i, "labels": json.dumps(of)} for i, of in here.items()]
        tx.put("people", rows)


def undo_people(archive: Archive) -> None:
    """Revert the last change."""
    with archive.catalog.writing() as tx:
        (n,) = tx.rows("SELECT max(change) FROM people")[0]
        if n is None:
            raise OptionError("no people were assigned, so there is no change to undo")
        tx.drop("people", change=n)


def all_people(archive: Archive) -> dict[str, dict[str, str]]:
    """Return the person of each label that has one, by transcript id and label."""
    people: dict[str, dict[str, str]] = {}
    for transcript_id, text in archive.catalog.rows("SELECT transcript_id, labels FROM people ORDER BY change"):
        of_transcript = people.setdefault(transcript_id, {})
        with contextlib.suppress(ValueError, AttributeError):  # of a later version
            for label, person in json.loads(text).items():
                of_transcript.pop(label, None)
                if person is not None:
                    of_transcript[label] = person
    return people


def seen_together(archive: Archive) -> list[tuple[str | None, dict[str, str]]]:
    """Return the names by label of each recording, the oldest first, people, then the labels of each recording.

    A name of turns stands for itself. Labels are read from the tables, in the order of ids.
    """
    together: list[tuple[str | None, dict[str, str]]] = []
    with contextlib.suppress(OSError, CorpusError):  # a plot does not need the corpus
        for transcript_id, names in archive.names.every_state():
            together.append((transcript_id, {name: name for name in names.turns.values()} | dict(names.speakers)))
        for (text,) in archive.catalog.rows("SELECT labels FROM people ORDER BY change, transcript_id"):
            with contextlib.suppress(ValueError, AttributeError):  # of a later version
                people = json.loads(text)
                together.append((None, {label: person for label, person in people.items() if person is not None}))
        labels: dict[str, dict[str, str]] = {}
        for transcript_id, label in archive.stored_labels():
            labels.setdefault(transcript_id, {})[label] = label
        together.extend(labels.items())
    return together


def people_of_rows(archive: Archive, rows: pd.DataFrame) -> pd.Series[Any]:
    """Return the person of each row; null if its label has none."""
    label = speaker_labels(rows).astype(object)
    if "utterance_idx" in rows.columns:
        turns = {(i, n): who for i, names in valid_names(archive).items() for n, who in names.turns.items()}
        if turns:
            keys = pd.MultiIndex.from_arrays([rows["transcript_id"], rows["utterance_idx"]])
            corrected = pd.Series(keys.map(turns), index=rows.index, dtype=object)
            label = corrected.where(corrected.notna(), label)
    people = [(i, who, person) for i, of in all_people(archive).items() for who, person in of.items()]
    table = pd.DataFrame(people, columns=["transcript_id", "label", "person"]).astype(object)
    pairs = pd.DataFrame({"transcript_id": rows["transcript_id"].astype(object), "label": label})
    of_rows = pairs.merge(table, how="left", on=["transcript_id", "label"])["person"]
    return pd.Series(of_rows.astype(TEXT).array, index=rows.index, name="person")


def add_people(archive: Archive, rows: pa.Table) -> pa.Table:
    """Return rows of a table with speakers, with the column `person`."""
    keys = rows.select([name for name in _OF_ROWS if name in rows.column_names])
    people = people_of_rows(archive, keys.to_pandas(types_mapper=DTYPES.get)) if all_people(archive) else None
    values = pa.nulls(len(rows), PERSON.type) if people is None else pa.array(people, PERSON.type, from_pandas=True)
    return rows.append_column(PERSON, values)


def named_rows(archive: Archive, rows: pa.Table) -> pa.Table:
    """Return rows of words or sentences with the columns `speaker_name` and `person`."""
    return add_people(archive, with_names(rows, valid_names(archive)))


def people_table(archive: Archive, ids: Ids | None = None) -> pd.DataFrame:
    """Return one row per transcript and label."""
    archive.report_missing()
    selected = archive.ids() if ids is None else archive.recordings.ids(ids)
    batches = [*archive.batches("utterances", selected, _AT_A_TIME)] or [[]]
    table = pd.concat([_talk_time(archive, batch) for batch in batches], ignore_index=True)
    place = {transcript_id: n for n, transcript_id in enumerate(selected)}
    table = table.sort_values("transcript_id", key=lambda ids: ids.map(place), kind="stable", ignore_index=True)
    names, people = valid_names(archive), all_people(archive)
    keys = list(zip(table["transcript_id"], table["speaker"], strict=True))
    recordings = archive.recordings.names(table["transcript_id"].unique().tolist())
    columns: dict[str, list[str | None]] = {
        "recording": [recordings[i] for i, _ in keys],
        "speaker_name": [names[i].speakers.get(label) if i in names else None for i, label in keys],
        "person": [people.get(i, {}).get(label) for i, label in keys],
    }
    table = table.assign(**{name: pd.array(values, dtype=TEXT) for name, values in columns.items()})
    return table[["transcript_id", "recording", "speaker", "speaker_name", "person", "talk_s", "turns"]]


def _talk_time(archive: Archive, ids: Sequence[str]) -> pd.DataFrame:
    """Return the talk time of the labels of transcripts: of turns, else of words."""
    turns = _rows(archive, "utterances", ids)
    spoken = {*turns["transcript_id"]}
    words = _rows(archive, "words", [i for i in ids if i not in spoken])
    with as_a_part():
        talk = [analysis.talk_time(rows) for rows in (turns, words) if len(rows)] or [analysis.talk_time(turns)]
    table = pd.concat(talk, ignore_index=True)
    return table.loc[table["speaker"].notna(), ["transcript_id", "speaker", "talk_s", "turns"]]


def _rows(archive: Archive, name: str, ids: Sequence[str]) -> pd.DataFrame:
    """Return rows of transcripts as they are now, without names of speakers."""
    return to_pandas(archive.read(name, ids)[0], name)


def _about(archive: Archive, table: pd.DataFrame) -> pd.DataFrame:
    """Return the metadata of the transcripts of a table."""
    about = metadata_table(archive, table["transcript_id"].unique())
    frame: pd.DataFrame = about.to_pandas(types_mapper=DTYPES.get)
    return frame


def _by_metadata(archive: Archive, table: pd.DataFrame, columns: Assignment) -> list[tuple[str, str, str | None]]:
    about = _about(archive, table)
    if not isinstance(columns, Mapping) or not columns:
        raise OptionError('by="metadata" needs the metadata column of each label, such as {"A": "agent"}')
    if unknown := [column for column in columns.values() if column not in about.columns]:
        available = ", ".join(about.columns.drop("transcript_id"))
        raise OptionError(f"there is no metadata column {unknown[0]!r}; the columns are: {available}")
    people: dict[str, Any] = {row["transcript_id"]: row for row in about.to_dict("records")}
    return [
        (i, label, str(person))
        for i, label in zip(table["transcript_id"], table["speaker"], strict=True)
        if label in columns and pd.notna(person := people[i][columns[label]])
    ]


def _by_table(archive: Archive, table: pd.DataFrame, people: pd.DataFrame) -> list[tuple[str, str, str | None]]:
    key = "transcript_id" if "transcript_id" in people.columns else "recording"
    if not {key, "speaker", "person"} <= {*people.columns}:
        raise OptionError("a table of people needs the columns transcript_id or recording, speaker and person")
    pairs = {*zip(table["transcript_id"], table["speaker"], strict=True)}
    assigned = []
    for recording, label, person in zip(people[key], people["speaker"], people["person"], strict=True):
        transcript_id = archive.recordings.id(recording)
        if (transcript_id, label) not in pairs:
            labels = ", ".join(table.loc[table["transcript_id"] == transcript_id, "speaker"]) or "no speakers"
            raise OptionError(f"{recording!r} has no speaker {label!r}; it has {labels}")
        assigned.append((transcript_id, label, None if pd.isna(person) else person))
    return assigned


def _by_name(table: pd.DataFrame, people: Assignment) -> list[tuple[str, str, str | None]]:
    if people is not None and not isinstance(people, Mapping):
        raise OptionError(
            'by="name" takes a dict with the person of each name, such as {"Ada": "Ada Lovelace"}, or None, got '
            f"{shown(people)}"
        )
    named = table.dropna(subset="speaker_name")
    rows = zip(named["transcript_id"], named["speaker"], named["speaker_name"], strict=True)
    return [
        (i, who, name if people is None else people[name]) for i, who, name in rows if people is None or name in people
    ]
