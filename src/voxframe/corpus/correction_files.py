"""Files of corrections, `corrections/<id>.json`: every edit of a transcript in order, also those that were undone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from voxframe.corpus.archive import Archive, view_of
from voxframe.corpus.part_reading import Located, runs_of
from voxframe.corpus.store import EXPORTS
from voxframe.corpus.transcript_files import TranscriptFiles
from voxframe.errors import CorpusError
from voxframe.frames.corrected import TURN_TABLES, Corrected, correct_tables
from voxframe.frames.turn_edits import ARGUMENTS, Edit, Was
from voxframe.schema import CORRECTED_TABLES

_AT_A_TIME = 64  # transcripts in memory


class CurrentCorrections:
    """The corrected tables of the current payloads.

    Args:
        archive: The transcripts.

    Attributes:
        files: All edits of each transcript, in order.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.files = TranscriptFiles(archive.path, "corrections", _parse)

    def active(self, transcript_id: str) -> list[Edit]:
        """Return the edits of a transcript that were not undone. Reads its file only, while `edits` lists all."""
        return _active(self.files.get(transcript_id) or [])

    def edits(self) -> dict[str, list[Edit]]:
        """Return the edits that were not undone of each transcript that has any, by transcript id."""
        return {one.transcript_id: active for one in self.files.all().values() if (active := _active(one.content))}

    def stamps(self) -> dict[str, str]:
        """Return a text that changes with the edits, by the stem of the transcript's files."""
        return {stem: one.stamp for stem, one in self.files.all().items() if _active(one.content)}

    def keep(self, transcript_id: str, edits: Sequence[Edit]) -> None:
        """Replace the edits of a transcript.

        Raises:
            CorpusError: The corpus cannot be written.
        """
        self.files.keep(transcript_id, {"edits": [asdict(edit) for edit in edits]})

    def of(self, transcript_id: str, edits: Sequence[Edit], names: Collection[str] = ()) -> Corrected:
        """Apply edits to a transcript.

        Args:
            transcript_id: Id of the transcript.
            edits: The edits.
            names: Tables to return besides those of the turns.

        Raises:
            CorpusError: The transcript is not in the corpus.
        """
        own = [*TURN_TABLES, *(name for name in names if view_of(name) == "transcript" and name not in TURN_TABLES)]
        tables = self._archive.tables(transcript_id, own)
        for view in EXPORTS:
            if view in names and self._archive.has(transcript_id, view):
                tables[view] = self._archive.table(view, transcript_id)
        return correct_tables(tables, edits)

    def table(self, name: str, transcript_id: str) -> pa.Table:
        """Return a table of a transcript, corrected."""
        made = self.tables(name, [transcript_id])
        return made[transcript_id] if transcript_id in made else self._archive.table(name, transcript_id)

    def each(self, name: str, ids: Iterable[str], columns: Sequence[str]) -> Iterator[tuple[str, pa.Table | Exception]]:
        """Yield some columns of a table of each transcript, corrected, in the order of the files.

        If the table of a transcript cannot be read, the error is yielded instead.
        """
        stored = list(dict.fromkeys([*columns, "transcript_id"]))
        for some in self._archive.batches(name, ids, _AT_A_TIME):
            try:
                table, located = self._archive.read(name, some, stored, None, self.tables(name, some))
            except CorpusError as error:
                if len(some) == 1:
                    yield some[0], error
                else:  # one of them was removed meanwhile
                    for one in some:
                        yield from self.each(name, [one], columns)
                continue
            yield from _by_transcript(table, located).items()
            yield from located.bad

    def tables(self, name: str, ids: Iterable[str]) -> dict[str, pa.Table]:
        """Return a table of each transcript with corrections, by transcript id; not of those that cannot be read."""
        if name not in CORRECTED_TABLES:
            return {}
        ids = list(ids)
        edits = {one: self.active(one) for one in ids} if len(ids) == 1 else self.edits()
        wanted = [transcript_id for transcript_id in ids if edits.get(transcript_id)]
        if name in EXPORTS and wanted:  # otherwise they are made from the corrected words
            stored = set(self._archive.select(name, None))
            wanted = [transcript_id for transcript_id in wanted if transcript_id in stored]
        if not wanted:
            return {}
        names = dict.fromkeys([*TURN_TABLES, name])
        found = {one: _by_transcript(*self._archive.read(one, wanted)) for one in names}
        return {
            i: correct_tables({one: found[one][i] for one in names}, edits[i]).tables[name]
            for i in wanted
            if all(i in tables for tables in found.values())
        }


def _active(edits: Sequence[Edit]) -> list[Edit]:
    return [edit for edit in edits if edit.undone is None]


def _by_transcript(table: pa.Table, located: Located) -> dict[str, pa.Table]:
    """Return the rows of each transcript that can be read, also of those without rows."""
    runs = runs_of(table["transcript_id"])
    return {i: table.slice(*runs.get(i, (0, 0))) for i in [*located.members, *located.loose]}


def _parse(found: dict[str, Any]) -> list[Edit]:
    """Return the edits of a file."""
    if "texts" in found:  # from a version that kept only the text of each turn
        return _of_texts(found["texts"], found.get("made_for", {}))
    edits = [Edit(**{**row, "was": _was(row["was"]), "other_was": _was(row["other_was"])}) for row in found["edits"]]
    for edit in edits:
        if missing := ARGUMENTS.get(edit.action, frozenset()) - edit.value.keys():
            raise ValueError(f"an edit {edit.action!r} has no {min(missing)!r}")
    return edits


def _was(found: dict[str, Any] | None) -> Was | None:
    return None if found is None else Was(**found)


def _of_texts(texts: dict[str, str], made_for: dict[str, list[Any]]) -> list[Edit]:
    edits = []
    for key, text in texts.items():
        was = Was(made_for[key][0], None, made_for[key][1]) if key in made_for else None
        edits.append(Edit("text", int(key), was, {"text": str(text)}))
    return edits
