"""Files of corrections, `corrections/<id>.json`: every edit of a transcript in order, also those that were undone.

Correcting a table takes much longer than reading it, so the first read keeps the result in
`corrections/tables/<id>.<table>.arrow`. The file starts with a hash of the table, the edits and the payloads; the table
follows in Arrow's file format. If the hash does not match, the table is made again. The files can always be deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from voxframe._files import write_atomic
from voxframe.corpus.archive import Archive, view_of
from voxframe.corpus.part_reading import Located, runs_of
from voxframe.corpus.store import EXPORTS, corrected_table, folder
from voxframe.corpus.transcript_files import TranscriptFiles
from voxframe.errors import CorpusError
from voxframe.frames.corrected import TURN_TABLES, VERSION, Corrected, correct_tables
from voxframe.frames.turn_edits import ARGUMENTS, Edit, Was
from voxframe.schema import CORRECTED_TABLES, SCHEMA_VERSION, TEXT_ORIGINAL

_AT_A_TIME = 64  # transcripts in memory
_HASH = 32  # bytes at the start of a file with a corrected table


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
        return correct_tables(self.sources(transcript_id, names), edits)

    def sources(self, transcript_id: str, names: Collection[str] = ()) -> dict[str, pa.Table]:
        """Return the tables of a transcript that edits are applied to: those of the turns, and those in `names`."""
        own = [*TURN_TABLES, *(name for name in names if view_of(name) == "transcript" and name not in TURN_TABLES)]
        tables = self._archive.tables(transcript_id, own)
        for view in EXPORTS:
            if view in names and self._archive.has(transcript_id, view):
                tables[view] = self._archive.table(view, transcript_id)
        return tables

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

    def tables(self, name: str, ids: Iterable[str], columns: Collection[str] | None = None) -> dict[str, pa.Table]:
        """Return a table of each transcript in which corrections change it, by transcript id.

        Transcripts that cannot be read are left out.

        Args:
            name: Name of the table.
            ids: Ids of the transcripts.
            columns: Columns that are needed; there may be others in the tables. None (default): all.
        """
        if name not in CORRECTED_TABLES or (name == "transcripts" and columns is not None and "text" not in columns):
            return {}
        ids = list(ids)
        edits = {one: self.active(one) for one in ids} if len(ids) == 1 else self.edits()
        wanted = [transcript_id for transcript_id in ids if edits.get(transcript_id)]
        if name in EXPORTS and wanted:  # otherwise they are made from the corrected words
            stored = set(self._archive.select(name, None))
            wanted = [transcript_id for transcript_id in wanted if transcript_id in stored]
        if not wanted:
            return {}
        found: dict[str, pa.Table] = {}
        for i, part in self._archive.locate(name, wanted).members.items():
            if (table := self._kept(name, i, _key(part.source(i), edits[i]))) is not None:
                found[i] = _some(table, columns)
        for some in self._archive.batches(name, [i for i in wanted if i not in found], _AT_A_TIME):
            found |= {i: _some(table, columns) for i, table in self._correct(name, some, edits).items()}
        return found

    def _correct(self, name: str, ids: Sequence[str], edits: Mapping[str, Sequence[Edit]]) -> dict[str, pa.Table]:
        """Correct a table of each transcript, and keep the results."""
        read = {one: self._archive.read(one, ids) for one in dict.fromkeys([*TURN_TABLES, name])}
        rows = {one: _by_transcript(*found) for one, found in read.items()}
        found, changed = dict[str, pa.Table](), list[str]()
        keys: dict[str, bytes] = {}
        for i in (i for i in ids if all(i in tables for tables in rows.values())):
            sources = {one: located.members[i].source(i) for one, (_, located) in read.items() if i in located.members}
            if len({source.split()[-1] for source in sources.values()}) > 1:  # that of an export ends with the words'
                changed.append(i)  # its payload was replaced between two reads
                continue
            found[i] = correct_tables({one: tables[i] for one, tables in rows.items()}, edits[i]).tables[name]
            if len(sources) == len(read):
                keys[i] = _key(sources[name], edits[i])
        # Under the lock no transcript is removed. A corpus on a read-only or full disk can still be read.
        with contextlib.suppress(OSError, CorpusError), self._archive.parts.writing():
            for place in ("corrections", "corrections/tables"):
                folder(self._archive.path / place)
            for i in (i for i in keys if self._archive.has(i)):
                content, path = _to_arrow(found[i]), corrected_table(self._archive.path, name, i)
                write_atomic(path, _hash(content, keys[i]) + content, durable=False)  # the hash finds an incomplete one
        return found | self._correct(name, changed, edits) if changed else found

    def _kept(self, name: str, transcript_id: str, key: bytes) -> pa.Table | None:
        """Return a corrected table that was kept; None if there is none or its key is another one."""
        try:
            content = memoryview(corrected_table(self._archive.path, name, transcript_id).read_bytes())
        except OSError:
            return None
        if content[:_HASH] != _hash(content[_HASH:], key):
            return None
        return pa.ipc.open_file(pa.py_buffer(content[_HASH:])).read_all()


def _key(source: str, edits: Sequence[Edit]) -> bytes:
    """Return a hash of what a corrected table is made from."""
    return hashlib.blake2b(repr((VERSION, SCHEMA_VERSION, source, edits)).encode(), digest_size=_HASH).digest()


def _hash(content: bytes | memoryview, key: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_HASH, key=key).digest()


def _to_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        file.write_table(table.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _some(table: pa.Table, columns: Collection[str] | None) -> pa.Table:
    """Return the columns of a corrected table that are needed, so that the others take no memory."""
    if columns is None:
        return table
    return table.select([one for one in table.column_names if one in columns or one == TEXT_ORIGINAL.name])


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
