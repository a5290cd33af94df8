"""Reads of the rows of transcripts from parts, in the order of the transcripts."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from voxframe._files import in_threads, stamp
from voxframe.corpus.part import Part, PartDamagedError, PartReplacedError
from voxframe.corpus.part_files import FORMAT, OpenTable, TableLayout
from voxframe.corpus.parts import Parts
from voxframe.schema import DERIVED, TABLES, TEXT_ORIGINAL

Ints: TypeAlias = npt.NDArray[Any]

#: Errors of pyarrow for a damaged page.
DAMAGE = (pa.ArrowException, OSError)
LOCAL: Any = fs.LocalFileSystem()
#: Columns that only tables in memory have.
_ADDED = (TEXT_ORIGINAL.name, DERIVED.name)
#: At least this many pieces of tables, with fewer rows than this on average, are copied if values have fewer bytes.
_MANY, _ROWS, _BYTES = 64, 512, 4096
_MOST = 1 << 30  # bytes of a column that is copied: positions in a chunk of text have 32 bits


@dataclass(frozen=True)
class Located:
    """The rows of transcripts.

    Attributes:
        members: The part of each transcript, by id.
        loose: Tables in memory by transcript id: corrected ones, and all if the disk cannot be written.
        bad: Ids of transcripts that cannot be read, with the error.
    """

    members: dict[str, Part] = field(default_factory=dict)
    loose: dict[str, pa.Table] = field(default_factory=dict)
    bad: list[tuple[str, Exception]] = field(default_factory=list)

    def rows(self, name: str) -> dict[str, int]:
        """Return the number of rows of each transcript that has any in a table, in the order of the files."""
        here: dict[Part, dict[int, str]] = {}
        for transcript_id, part in self.members.items():
            here.setdefault(part, {})[part.places[transcript_id]] = transcript_id
        found = {i: table.num_rows for i, table in self.loose.items() if table.num_rows}
        for part, ids in here.items():
            layout = part.files.get(name)
            for group in layout.groups if layout else ():
                found |= {ids[n]: rows for n, rows in zip(group.members, group.rows, strict=True) if n in ids}
        return found


def rows_of(parts: Parts, part: Part, transcript_id: str, name: str) -> pa.Table:
    """Return the rows of one transcript."""
    layout, place = part.files.get(name), part.places[transcript_id]
    for number, group in enumerate(layout.groups if layout else ()):
        if place in group.members:
            at = group.members.index(place)
            whole = read_groups(parts, part, name, [number], None, None)
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
    wanted: dict[Part, tuple[list[int], list[int]]] = {}  # places in the part, and in `ids`
    wholes: list[pa.Table] = []
    of, starts, counts = np.zeros((3, len(ids)), np.int64)  # of each transcript: which whole, and which of its rows
    for n, transcript_id in enumerate(ids):
        if (table := located.loose.get(transcript_id)) is not None:
            rows = table if where is None else table.filter(where)
            of[n], counts[n] = len(wholes), rows.num_rows
            wholes.append(_exact(rows, schema))
        elif (part := located.members.get(transcript_id)) is not None:
            places, numbers = wanted.setdefault(part, ([], []))
            places.append(part.places[transcript_id])
            numbers.append(n)
    groups = {part: _groups_with(part.files.get(name), places) for part, (places, _) in wanted.items()}
    some = columns if where is None or columns is None or "transcript_id" in columns else [*columns, "transcript_id"]

    def read(part: Part) -> tuple[pa.Table, Ints, Ints]:
        """Return rows of a part, and the first row and the number of rows of each of its transcripts."""
        whole = read_groups(parts, part, name, groups[part], some, where)
        first, rows = np.zeros((2, len(part.statuses)), np.int64)
        if where is not None:
            for transcript_id, run in runs_of(whole["transcript_id"]).items():
                first[part.places[transcript_id]], rows[part.places[transcript_id]] = run
        else:
            layout = [part.files[name].groups[group] for group in groups[part]]
            members = [place for group in layout for place in group.members]
            rows[members] = [count for group in layout for count in group.rows]
            first[members] = np.cumsum(rows[members]) - rows[members]
        return _exact(whole if columns is None else whole.select(columns), schema), first, rows

    # Arrow decodes the columns of a file on several cores, but a long text is nearly all of its table.
    read_parts = [part for part in wanted if groups[part]]
    for part, (whole, first, rows) in zip(read_parts, in_threads(read, read_parts, pa.cpu_count()), strict=True):
        places, numbers = wanted[part]
        of[numbers], starts[numbers], counts[numbers] = len(wholes), first[places], rows[places]
        wholes.append(whole)
    return in_order(wholes, of, starts, counts, schema)


def lazy_rows(parts: Parts, name: str, members: Mapping[str, Part]) -> list[ds.Fragment]:
    """Return the row groups with rows of transcripts, to be read later.

    Their footers are read now. A reader with this footer still finds its pages in a file to which rows were added. If
    rows were removed or the file is gone, it raises an error.

    Args:
        parts: The parts of the corpus.
        name: Name of the table.
        members: The part of each transcript, by id.

    Raises:
        PartReplacedError: Another process has changed a part.
        PartDamagedError: A file of a part is missing or damaged.
    """
    places: dict[Part, set[int]] = {}
    for transcript_id, part in members.items():
        places.setdefault(part, set()).add(part.places[transcript_id])
    groups = {part: found for part, some in places.items() if (found := _groups_with(part.files.get(name), some))}
    return in_threads(lambda part: _with_footer(parts, part, name, groups[part]), groups, pa.cpu_count())


def _with_footer(parts: Parts, part: Part, name: str, groups: Sequence[int]) -> ds.Fragment:
    path = parts.path(name, part)
    fragment = FORMAT.make_fragment(str(path), LOCAL, row_groups=groups)
    with contextlib.suppress(OSError, ValueError):  # a `pa.ArrowInvalid` is a ValueError
        before = stamp(path.stat())
        with OpenTable(path, part.files[name]):
            fragment.ensure_complete_metadata()
        if stamp(path.stat()) == before:  # else the footer may be another one than the description's
            return fragment
    with parts.open(name, part), contextlib.suppress(OSError), parts.writing():
        pass  # the change of a process that died is completed, so that the file has its name
    raise PartReplacedError


def _groups_with(layout: TableLayout | None, places: Collection[int]) -> list[int]:
    """Return the row groups with rows of some transcripts."""
    wanted = frozenset(places)
    return [n for n, group in enumerate(layout.groups if layout else ()) if not wanted.isdisjoint(group.members)]


def in_order(wholes: Sequence[pa.Table], of: Ints, starts: Ints, counts: Ints, schema: pa.Schema) -> pa.Table:
    """Return runs of rows of several tables as one table.

    Ids in order are often in short runs, from many parts. A chunk costs as much time as copying hundreds of short
    values, so these are copied to one chunk for each column. Long texts are not copied.

    Args:
        wholes: The tables.
        of: For each run, the position of its table.
        starts: Its first row in it.
        counts: Its number of rows; there may be none.
        schema: Schema of no runs.
    """
    some = np.flatnonzero(counts)
    if not len(some):
        return schema.empty_table()
    firsts = np.cumsum([0, *(whole.num_rows for whole in wholes)])
    starts, ends = firsts[of[some]] + starts[some], firsts[of[some]] + starts[some] + counts[some]
    new = np.flatnonzero(np.r_[True, starts[1:] != ends[:-1]])  # else it continues the run before
    starts, counts = starts[new], ends[np.r_[new[1:] - 1, -1]] - starts[new]
    together = pa.concat_tables(wholes, promote_options="default")
    if len(starts) < _MANY or counts.sum() >= len(starts) * _ROWS:
        runs = zip(starts.tolist(), counts.tolist(), strict=True)
        return pa.concat_tables([together.slice(*run) for run in runs])
    rows = np.arange(counts.sum()) + np.repeat(starts - (counts.cumsum() - counts), counts)
    columns = []
    for column in together.columns:
        if column.nbytes <= min(_BYTES * len(column), _MOST):
            columns.append(column.take(pa.array(rows)))
        else:
            columns.append(pa.chunked_array(_slices(column, starts, counts), column.type))
    return pa.Table.from_arrays(columns, schema=together.schema)


def _slices(column: pa.ChunkedArray, starts: Ints, counts: Ints) -> Iterator[pa.Array]:
    """Yield runs of rows, each of which may be in several chunks."""
    chunks = column.chunks
    ends = np.cumsum([len(chunk) for chunk in chunks])
    numbers = np.searchsorted(ends, starts, "right")
    lasts = ends.tolist()
    for number, start, left in zip(numbers.tolist(), starts.tolist(), counts.tolist(), strict=True):
        while left:
            size = min(left, lasts[number] - start)
            yield chunks[number].slice(start - lasts[number] + len(chunks[number]), size)
            number, start, left = number + 1, start + size, left - size


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
