"""Rows of transcripts: read from parts, in the order of the transcripts, or as DuckDB views with all columns.

`Corpus.sql` and `Corpus.to_polars` read these views, and DuckDB takes only the columns and rows from the files that a
query needs. All queries of a process use one database, in a transaction that is rolled back.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from voxframe._files import in_threads
from voxframe.corpus.tables import Member, NewMember, PartReplacedError, RowGroup, Tables, stored_schema
from voxframe.errors import CorpusError, MissingExtraError, OptionError
from voxframe.schema import CORPUS_TABLES, DERIVED, RECORDING_COLUMNS, SPEAKER_NAME, TABLES, TEXT_ORIGINAL
from voxframe.validators import Boolean, checked, listed, shown

if TYPE_CHECKING:
    import duckdb
    import polars as pl


Ints: TypeAlias = npt.NDArray[Any]

#: Verify the checksum of every page that is read: a flipped bit is an error, never a wrong value.
FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
#: Errors of pyarrow for a damaged page.
DAMAGE = (pa.ArrowException, OSError)
LOCAL: Any = fs.LocalFileSystem()
#: Columns that only rows with edits have.
_ADDED = (TEXT_ORIGINAL.name, DERIVED.name)
#: At least this many pieces of tables, with fewer rows than this on average, are copied if values have fewer bytes.
_MANY, _ROWS, _BYTES = 64, 512, 4096
_MOST = 1 << 30  # bytes of a column that is copied: positions in a chunk of text have 32 bits


@dataclass(frozen=True)
class Located:
    """The places of the rows of transcripts."""

    members: dict[str, Member] = field(default_factory=dict)  # those in parts
    loose: dict[str, NewMember] = field(default_factory=dict)  # those whose rows could not be written
    bad: list[tuple[str, Exception]] = field(default_factory=list)  # those that cannot be read, with the error

    def has(self, transcript_id: str) -> bool:
        """Return True if a transcript can be read."""
        return transcript_id in self.members or transcript_id in self.loose

    def source(self, transcript_id: str) -> str | None:
        """Return the hash of what the rows of a transcript are made from; None if it has no place."""
        place = self.members.get(transcript_id) or self.loose.get(transcript_id)
        return None if place is None else place.source

    def parts(self) -> dict[int, dict[int, str]]:
        """Return the transcripts of each part, by their positions in it."""
        places: dict[int, dict[int, str]] = {}
        for transcript_id, member in self.members.items():
            if transcript_id not in self.loose:
                places.setdefault(member.part, {})[member.place] = transcript_id
        return places

    def rows(self, tables: Tables, name: str) -> dict[str, int]:
        """Return the number of rows of each transcript that has any in a table, in the order of the files."""
        places = self.parts()
        counts = {i: count for i, new in self.loose.items() if (count := new.tables[name].num_rows)}
        for part in sorted(places):
            ids = places[part]
            for group in tables.groups(part, name):
                counts |= {ids[n]: rows for n, rows in zip(group.members, group.rows, strict=True) if n in ids}
        return counts

    def datasets(self, tables: Tables, name: str) -> list[ds.Dataset]:
        """Return the rows as datasets, to be read later: of files as sent, of files in `current/`, and in memory."""
        places, scans = self.parts(), list[ds.Dataset]()
        for is_current in (False, True):
            parts = {part: ids for part, ids in places.items() if tables.is_current(part, name) == is_current}
            fragments, is_exact = [], True
            for part, ids in parts.items():
                layout = tables.groups(part, name)
                if groups := groups_with(layout, ids):
                    fragment = FORMAT.make_fragment(str(tables.path(part, name)), LOCAL, row_groups=groups)
                    try:
                        fragment.ensure_complete_metadata()
                    except FileNotFoundError:
                        raise PartReplacedError from None
                    fragments.append(fragment)
                    is_exact = is_exact and all(ids.keys() >= {*layout[group].members} for group in groups)
            if fragments:
                schema = stored_schema(name, current=True) if is_current else TABLES[name].arrow
                rows: ds.Dataset = ds.FileSystemDataset(fragments, schema, FORMAT, LOCAL)
                selected = [transcript_id for ids in parts.values() for transcript_id in ids.values()]
                scans.append(rows if is_exact else rows.filter(pc.field("transcript_id").isin(selected)))
        loose = [
            _exact(new.tables[name], TABLES[name].arrow) for new in self.loose.values() if new.tables[name].num_rows
        ]
        if loose:
            scans.append(ds.dataset(pa.concat_tables(loose, promote_options="default")))
        return scans


def assemble(
    tables: Tables,
    name: str,
    ids: Sequence[str],
    located: Located,
    columns: Sequence[str] | None = None,
    choose: Callable[[pa.Table], pa.Table] | None = None,
) -> pa.Table:
    """Return the rows of transcripts in the order of `ids`. `choose` selects rows of a file, and may add columns."""
    stored = TABLES[name].arrow if columns is None else pa.schema([TABLES[name].arrow.field(c) for c in columns])
    places = located.parts()
    groups = {part: groups_with(tables.groups(part, name), of_part) for part, of_part in places.items()}

    def chosen(rows: pa.Table) -> pa.Table:
        rows = _exact(rows, stored)
        return rows if choose is None else choose(rows)

    def read(part: int) -> tuple[pa.Table, dict[str, tuple[int, int]]]:
        rows = chosen(tables.read(part, name, groups[part], _stored(tables, part, name, columns)))
        if choose is not None:
            return rows, runs_of(rows["transcript_id"])
        # If no rows are left out, their numbers are those of the layout, and `transcript_id` need not be read.
        layout = [tables.groups(part, name)[group] for group in groups[part]]
        counts = [count for group in layout for count in group.rows]
        starts = accumulate(counts, initial=0)
        members = [place for group in layout for place in group.members]
        runs = zip(members, starts, counts, strict=False)  # the last start is the end
        return rows, {places[part][n]: (start, count) for n, start, count in runs if n in places[part]}

    # Arrow decodes the columns of a file on several cores, but a long text is nearly all of its table.
    parts = [part for part in places if groups[part]]
    of_parts = in_threads(read, parts, pa.cpu_count())
    wholes, runs = [rows for rows, _ in of_parts], [runs for _, runs in of_parts]
    numbers = {part: number for number, part in enumerate(parts)}
    of, starts, counts = np.zeros((3, len(ids)), np.int64)  # of each transcript: which whole, and which of its rows
    for n, transcript_id in enumerate(ids):
        if (new := located.loose.get(transcript_id)) is not None:
            wholes.append(chosen(new.tables[name]))
            of[n], counts[n] = len(wholes) - 1, wholes[-1].num_rows
        elif (member := located.members.get(transcript_id)) is not None and member.part in numbers:
            of[n] = numbers[member.part]
            starts[n], counts[n] = runs[of[n]].get(transcript_id, (0, 0))
    return in_order(wholes, of, starts, counts) if counts.any() else chosen(stored.empty_table())


def _stored(tables: Tables, part: int, name: str, columns: Sequence[str] | None) -> list[str] | None:
    """Return the columns to read of a part: those of edits, too, if it has any."""
    if columns is None or not tables.is_current(part, name):
        return None if columns is None else list(columns)
    added = [c for c in _ADDED if c in tables.columns(name) and c not in columns]
    return [*columns, *added]


def groups_with(layout: Sequence[RowGroup], places: Collection[int]) -> list[int]:
    """Return the row groups with rows of some transcripts."""
    members = frozenset(places)
    return [n for n, group in enumerate(layout) if not members.isdisjoint(group.members)]


def in_order(wholes: Sequence[pa.Table], of: Ints, starts: Ints, counts: Ints) -> pa.Table:
    """Return runs of rows of several tables as one table."""
    filled = np.flatnonzero(counts)
    firsts = np.cumsum([0, *(table.num_rows for table in wholes)])
    starts, ends = firsts[of[filled]] + starts[filled], firsts[of[filled]] + starts[filled] + counts[filled]
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
    for number, start, remaining in zip(numbers.tolist(), starts.tolist(), counts.tolist(), strict=True):
        while remaining:
            size = min(remaining, lasts[number] - start)
            yield chunks[number].slice(start - lasts[number] + len(chunks[number]), size)
            number, start, remaining = number + 1, start + size, remaining - size


def _exact(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema, and those that only tables in memory have."""
    if table.schema.equals(schema):
        return table
    for added in (column for column in table.schema if column.name in _ADDED and column.name not in schema.names):
        schema = schema.append(added)
    return table.select(schema.names).cast(schema)


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


_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
#: Columns that are joined to the stored ones.
_JOINED = (SPEAKER_NAME.name, *RECORDING_COLUMNS)


class View(NamedTuple):
    """The rows of a table, and what is joined to them."""

    rows: Sequence[ds.Dataset]  # datasets with the current rows of transcripts
    recordings: pa.Table  # `transcript_id`, `recording` and `source`
    # Names of speakers, with the key of the table. A null name means the label.
    speakers: pa.Table | None


class DamageError(Exception):
    """A file has damage that its footer does not show."""


def lazy_frame(name: str, view: View) -> pl.LazyFrame:
    """Return a table as a Polars LazyFrame, which is read when it is collected."""
    try:
        import polars as pl  # noqa: F401  DuckDB imports it
    except ModuleNotFoundError:
        raise MissingExtraError("polars", "Corpus.to_polars") from None
    database = _database(os.getpid(), external=False).cursor()
    _create(database, name, view)
    frame: pl.LazyFrame = database.table(name).pl(lazy=True)
    return frame


def run_sql(
    query: str,
    parameters: Sequence[object] | Mapping[str, object] | None,
    tables: Sequence[str],
    view_of: Callable[[str], View],
    further: Mapping[str, Callable[[], object]],
    *,
    external: bool,
    timeout_s: float | None,
) -> pa.Table:
    """Run a query over those tables whose names occur in it. `further` are functions that return further tables."""
    if not isinstance(query, str):
        raise OptionError(f"a query is text, such as 'show tables', got {shown(query)}")
    values = _placeholders(parameters)
    if _SHOW_TABLES.fullmatch(query):  # views are only created if the query names them, so DuckDB knows none
        return pa.table({"name": sorted([*tables, *further])})
    import duckdb

    with _transaction(external=checked("external", external, Boolean())) as database:
        try:
            words = set(re.findall(r"\w+", query.lower()))
            for name in words.intersection(tables):
                _create(database, name, view_of(name))
            for name in words.intersection(further):
                database.register(name, further[name]())
            if any(part.type == duckdb.StatementType.TRANSACTION for part in duckdb.extract_statements(query)):
                raise CorpusError("the query ends its transaction; leave out begin, commit and rollback")
            with _interrupted(database, timeout_s):
                relation = database.sql(query, params=values or None)
                if relation is None:
                    raise CorpusError("the statement returned no rows; Corpus.sql runs queries only")
                rows: pa.Table = relation.to_arrow_table()
        except duckdb.InterruptException:
            raise CorpusError(
                f"the query was stopped at its limit of {timeout_s:g} seconds; select fewer rows before joins and "
                "aggregates (where, or a subquery with limit)"
            ) from None
        except duckdb.Error as e:
            if re.search(r"failed(\(\))?: IOError", str(e)):  # pyarrow's error for a damaged page
                raise DamageError from None
            advice = ""
            if isinstance(e, duckdb.PermissionException) or "external access" in str(e):
                advice = "\nA query reads only the corpus. external=True allows files and the network, too"
            if isinstance(e, duckdb.CatalogException):
                advice = f"\nThe tables are {listed([*tables, *further])}; Corpus.sql('show tables') lists them"
            raise CorpusError(f"the query failed: {e}{advice}") from None
    return rows.rename_columns(_unique(rows.column_names))


@cache
def _database(_process: int, *, external: bool) -> duckdb.DuckDBPyConnection:
    """Return the database of a process. Without `external`, queries reach no files, no network and no variables."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": False}
    if not external:
        config |= {"enable_external_access": False, "python_enable_replacements": False}
    database = duckdb.connect(config=config)
    database.execute("SET TimeZone = 'UTC'")  # not in config, which is read before its extension is loaded
    if not external:
        database.execute("SET lock_configuration = true")
    return database


@contextlib.contextmanager
def _transaction(*, external: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection whose changes are rolled back."""
    import duckdb

    with _database(os.getpid(), external=external).cursor() as database:
        database.begin()
        try:
            yield database
        finally:
            with contextlib.suppress(duckdb.Error):  # the query has ended the transaction
                database.rollback()


@contextlib.contextmanager
def _interrupted(database: duckdb.DuckDBPyConnection, timeout_s: float | None) -> Iterator[None]:
    """Interrupt the query of a connection when its time is over."""
    if timeout_s is None:
        yield
        return
    timer = threading.Timer(timeout_s, database.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _create(database: duckdb.DuckDBPyConnection, name: str, view: View) -> None:
    """Create the view of a table."""
    table = CORPUS_TABLES[name]
    stored = [column for column in table.names if column not in _JOINED]
    selected = []
    for n, rows in enumerate([table.empty.select(stored), *view.rows]):
        database.register(f"_{name}_{n}", rows)
        selected.append(f"select * from _{name}_{n}")  # noqa: S608  names of ours
    values = {column: f"t.{column}" for column in stored}
    if DERIVED.name in values:
        values[DERIVED.name] = f"coalesce(t.{DERIVED.name}, false)"
    database.register(f"_{name}_recordings", view.recordings)
    join = f"left join _{name}_recordings r using (transcript_id)"
    values |= {column: f"r.{column}" for column in RECORDING_COLUMNS}
    if view.speakers is not None:
        database.register(f"_{name}_speakers", view.speakers)
        join += f" left join _{name}_speakers n using ({', '.join(TABLES[name].key)})"
        values[SPEAKER_NAME.name] = f"coalesce(n.{SPEAKER_NAME.name}, t.speaker)"
    columns = ", ".join(f"{values[column]} as {column}" for column in table.names)
    source = " union all by name ".join(selected)
    database.execute(f"create temp view {name} as select {columns} from ({source}) t {join}")  # noqa: S608


def _placeholders(parameters: object) -> dict[Any, Any] | list[Any]:
    """Return the values of the placeholders of a query."""

    def plain(value: Any) -> Any:
        return value.item() if isinstance(value, np.number | np.bool_ | np.str_) else value  # DuckDB knows no NumPy

    if isinstance(parameters, Mapping):
        return {name: plain(value) for name, value in parameters.items()}
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Iterable | None):
        raise OptionError(
            "parameters must be a list of values for ?, or a dict for $name, got "
            f"{shown(parameters)}; put one value in a list"
        )
    return [] if parameters is None else [plain(value) for value in parameters]


def _unique(names: Sequence[str]) -> list[str]:
    """Return names with a number after those that an earlier column has, as `DuckDBPyRelation.df` does."""
    unique: list[str] = []
    for name in names:
        numbered = (f"{name}_{n}" for n in itertools.count(1))
        unique.append(next(new for new in itertools.chain([name], numbered) if new not in unique))
    return unique
