"""Names of speakers that apply to the current payloads, as the column `speaker_name`.

A name of a single turn applies as long as the turn keeps its start and text in the payload. That of a turn that a
correction has split off applies as long as this turn exists.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from voxframe.corpus.annotations import Fingerprint, SpeakerNames, with_names
from voxframe.corpus.archive import Archive


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
