"""Reads of the rows of transcripts from parts, in the order of the transcripts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxframe._files import in_threads
from voxframe.corpus.part import Member, Part, PartDamagedError
from voxframe.corpus.part_files import TableLayout
from voxframe.corpus.parts import Parts
from voxframe.schema import DERIVED, TABLES, TEXT_ORIGINAL

#: Errors of pyarrow for a damaged page.
DAMAGE = (pa.ArrowException, OSError)
#: Columns that only tables in memory have.
_ADDED = (TEXT_ORIGINAL.name, DERIVED.name)
#: At least this many pieces of tables, with fewer rows than this on average, are copied if values have fewer bytes.
_MANY, _ROWS, _BYTES = 64, 512, 4096
_MOST = 1 << 30  # bytes of a column that is copied: positions in a chunk of text have 32 bits


@dataclass(frozen=True)
class Located:
    """The rows of transcripts.

    Attributes:
        members: Places in parts, by transcript id.
        loose: Tables in memory by transcript id: corrected ones, and all if the disk cannot be written.
        bad: Ids of transcripts that cannot be read, with the error.
    """

    members: dict[str, Member] = field(default_factory=dict)
    loose: dict[str, pa.Table] = field(default_factory=dict)
    bad: list[tuple[str, Exception]] = field(default_factory=list)

    def rows(self, name: str) -> dict[str, int]:
        """Return the number of rows of each transcript that has any in a table, in the order of the files."""
        here: dict[Part, dict[int, str]] = {}
        for transcript_id, member in self.members.items():
            here.setdefault(member.part, {})[member.place] = transcript_id
        found = {i: table.num_rows for i, table in self.loose.items() if table.num_rows}
        for part, ids in here.items():
            layout = part.files.get(name)
            for group in layout.groups if layout else ():
                found |= {ids[n]: rows for n, rows in zip(group.members, group.rows, strict=True) if n in ids}
        return found


def rows_of(parts: Parts, member: Member, name: str) -> pa.Table:
    """Return the rows of one transcript."""
    layout = member.part.files.get(name)
    for number, group in enumerate(layout.groups if layout else ()):
        if member.place in group.members:
            at = group.members.index(member.place)
            whole = read_groups(parts, member.part, name, [number], None, None)
            return whole.slice(sum(group.rows[:at]), group.rows[at])
    return TABLES[name].empty


def assemble(
    parts: Parts,
    name: str,
    ids: Sequence[str],
    located: Located,
    columns: Sequence[str] | None,
    where: pc.Expression | None,
) -> pa.Table:
    """Return the rows of transcripts in the order of `ids`.

    If a table in memory has a column that is not stored, it comes last and is null in the other rows.
    """
    schema = TABLES[name].arrow if columns is None else pa.schema([TABLES[name].arrow.field(c) for c in columns])
    wanted: dict[Part, dict[int, str]] = {}
    for transcript_id, member in located.members.items():
        wanted.setdefault(member.part, {})[member.place] = transcript_id
    found: dict[str, tuple[pa.Table, int, int]] = {}
    groups = {part: _groups_with(part.files.get(name), places) for part, places in wanted.items()}
    some = columns if where is None or columns is None or "transcript_id" in columns else [*columns, "transcript_id"]

    def read(part: Part) -> dict[str, tuple[pa.Table, int, int]]:
        whole, start = read_groups(parts, part, name, groups[part], some, where), 0
        exact = _exact(whole if columns is None else whole.select(columns), schema)
        if where is not None:
            return {transcript_id: (exact, *run) for transcript_id, run in runs_of(whole["transcript_id"]).items()}
        here = {}
        for group in groups[part]:
            for place, rows in zip(*part.files[name].groups[group], strict=True):
                if place in wanted[part]:
                    here[wanted[part][place]] = exact, start, rows
                start += rows
        return here

    # Arrow decodes the columns of a file on several cores, but a long text is nearly all of its table.
    for here in in_threads(read, [part for part in wanted if groups[part]], pa.cpu_count()):
        found |= here
    for transcript_id, table in located.loose.items():
        rows = table if where is None else table.filter(where)
        found[transcript_id] = _exact(rows, schema), 0, rows.num_rows
    pieces: list[tuple[pa.Table, int, int]] = []
    for transcript_id in ids:
        piece = found.get(transcript_id)
        if piece is None:
            continue
        if pieces and pieces[-1][0] is piece[0] and pieces[-1][1] + pieces[-1][2] == piece[1]:
            pieces[-1] = piece[0], pieces[-1][1], pieces[-1][2] + piece[2]
        else:
            pieces.append(piece)
    return in_order(pieces, schema)


def _groups_with(layout: TableLayout | None, places: Collection[int]) -> list[int]:
    """Return the row groups with rows of some transcripts."""
    wanted = frozenset(places)
    return [n for n, group in enumerate(layout.groups if layout else ()) if not wanted.isdisjoint(group.members)]


def in_order(pieces: Sequence[tuple[pa.Table, int, int]], schema: pa.Schema) -> pa.Table:
    """Return pieces of tables, given as table, start and number of rows, as one table. `schema` is that of no pieces.

    Ids in order are often in short pieces, from many parts. A chunk costs as much time as copying hundreds of short
    values, so these are copied to one chunk for each column. Long texts are not copied.
    """
    if not pieces:
        return schema.empty_table()
    if len(pieces) < _MANY or sum(rows for _, _, rows in pieces) >= len(pieces) * _ROWS:
        return pa.concat_tables([whole.slice(start, rows) for whole, start, rows in pieces], promote_options="default")
    wholes = {id(whole): whole for whole, _, _ in pieces}
    firsts = dict(zip(wholes, np.cumsum([0, *(whole.num_rows for whole in wholes.values())]), strict=False))
    together = pa.concat_tables(wholes.values(), promote_options="default")
    starts = np.array([firsts[id(whole)] + start for whole, start, _ in pieces])
    counts = np.array([rows for _, _, rows in pieces])
    rows = np.arange(counts.sum()) + np.repeat(starts - (counts.cumsum() - counts), counts)
    columns = []
    for column in together.columns:
        if column.nbytes <= min(_BYTES * len(column), _MOST):
            columns.append(column.take(rows))
        else:
            runs = (column.slice(*run).chunks for run in zip(starts.tolist(), counts.tolist(), strict=True))
            columns.append(pa.chunked_array(chain.from_iterable(runs), column.type))
    return pa.Table.from_arrays(columns, schema=together.schema)


def _exact(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema, and those that only tables in memory have."""
    if table.schema.equals(schema):
        return table
    for added in (one for one in table.schema if one.name in _ADDED):
        schema = schema.append(added)
    return table.select(schema.names).cast(schema)


def read_groups(
    parts: Parts,
    part: Part,
    name: str,
    groups: Sequence[int],
    columns: Sequence[str] | None,
    where: pc.Expression | None,
) -> pa.Table:
    """Return rows of some row groups of a part.

    Raises:
        PartReplacedError: Another process has changed the part.
        PartDamagedError: A file of the part is missing or damaged.
    """
    with parts.open(name, part) as file:
        try:
            return file.read(groups, columns, where).replace_schema_metadata(None)
        except DAMAGE as error:
            raise damage_of(error, part, parts.path(name, part)) from None


def damage_of(error: Exception, part: Part, path: Path) -> PartDamagedError:
    """Return an error of pyarrow as an error about a file of a part."""
    if isinstance(error, PartDamagedError):
        return error
    return PartDamagedError(part, path, str(error).splitlines()[0])


def runs_of(ids: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Return the start and the number of rows of each transcript. The rows of a transcript are together."""
    codes = pc.dictionary_encode(ids).combine_chunks() if len(ids) else None
    if codes is None:
        return {}
    numbers = codes.indices.to_numpy()
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    stops = np.r_[starts[1:], len(numbers)]
    names = codes.dictionary.to_pylist()
    return {names[numbers[start]]: (int(start), int(stop - start)) for start, stop in zip(starts, stops, strict=True)}
