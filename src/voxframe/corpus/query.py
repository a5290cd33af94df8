"""Reads of tables over many transcripts, as DataFrames, datasets or the result of a DuckDB query."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from voxframe.corpus import reading
from voxframe.corpus.archive import Archive
from voxframe.corpus.metadata import Metadata, Wanted, is_named, with_metadata
from voxframe.corpus.part import Part
from voxframe.corpus.part_files import FORMAT
from voxframe.corpus.part_reading import Located
from voxframe.corpus.reading import Where
from voxframe.corpus.recordings import in_where
from voxframe.corpus.speakers import CurrentNames
from voxframe.corpus.store import EXPORTS
from voxframe.errors import CorpusError, CorpusWarning, DamagedFileError, MissingExtraError, OptionError, PayloadError
from voxframe.frames import joined, suited
from voxframe.frames.repair import caller
from voxframe.schema import CORPUS_TABLES, SPEAKER_NAME, TABLES, TRANSCRIPT_TABLES

if TYPE_CHECKING:
    import duckdb
    import polars as pl


_SHOWN = 5  # transcripts named in one warning
_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_AT_A_TIME = 64  # transcripts in memory if rows are chosen by the names of speakers, or the first rows are read
_IN_CATEGORIES = 32  # transcripts in memory without categories
#: Columns from which names of speakers are derived.
_NAMING = ("transcript_id", "speaker", "channel", "utterance_idx", "start_ms")


class Query:
    """Reads tables over many transcripts.

    Args:
        archive: The transcripts.
        metadata: Columns about the recordings, which can be joined to every table.
        names: Names of speakers, which are added to every table with speakers.
    """

    def __init__(self, archive: Archive, metadata: Metadata, names: CurrentNames) -> None:
        self._archive, self._metadata, self._names = archive, metadata, names

    def tables(self, transcript_id: str) -> dict[str, pd.DataFrame]:
        """Return every table of one transcript by name."""
        transcript_id = self._archive.recordings.id(transcript_id)
        found = self._archive.tables(transcript_id)
        for view in EXPORTS:
            if self._archive.has(transcript_id, view):
                try:
                    found[view] = self._archive.table(view, transcript_id)
                except (PayloadError, DamagedFileError) as error:
                    warnings.warn(
                        f"the {view} of {transcript_id!r} cannot be read and are left out: {error}",
                        CorpusWarning,
                        stacklevel=caller(),
                    )
        return reading.to_frames({name: self.complete(name, table) for name, table in found.items()})

    def complete(self, name: str, table: pa.Table) -> pa.Table:
        """Return a stored table with the columns that a corpus adds when it is read."""
        return self._archive.recordings.add_to(self._names.add_to(table), name)

    def table(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
        limit: int | None = None,
        category: bool = False,
    ) -> pd.DataFrame:
        """Return one table over many transcripts."""
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise OptionError(f"limit must be an integer of at least 0, or None, got {limit!r}")
        where = in_where(where, self._archive.recordings.id)
        if not is_named(name, columns, where, metadata):
            return self._frame(name, self._select(name, ids), columns, where, limit, category, asked=ids is not None)
        wanted = self._select(name, ids)
        return with_metadata(
            lambda some, columns, where: self._frame(
                name, some, columns, where, limit, category, asked=ids is not None
            ),
            name,
            self._metadata.to_arrow(wanted),
            columns=columns,
            where=where,
            metadata=metadata,
        )

    def _frame(
        self,
        name: str,
        ids: Sequence[str],
        columns: Sequence[str] | None,
        where: Where | None,
        limit: int | None,
        category: bool,
        *,
        asked: bool,
    ) -> pd.DataFrame:
        if category and limit is None and len(ids) > _IN_CATEGORIES:
            read = range(0, len(ids), _IN_CATEGORIES)
            some = (self.arrow(name, ids[at : at + _IN_CATEGORIES], columns, where) for at in read)
            return joined([suited(reading.to_frame(name, table), category=True) for table in some])
        if limit is None or len(ids) <= _AT_A_TIME:
            table = self.arrow(name, ids, columns, where, asked=asked)
        else:  # the first rows are often in the first transcripts
            table = self.arrow(name, ids[:0], columns, where)
            for at in range(0, len(ids), _AT_A_TIME):
                table = pa.concat_tables([table, self.arrow(name, ids[at : at + _AT_A_TIME], columns, where)])
                if table.num_rows >= limit:
                    break
        return reading.to_frame(name, table.slice(0, limit))

    def arrow(
        self,
        name: str,
        ids: Sequence[str],
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        asked: bool = False,
    ) -> pa.Table:
        """Return rows of one table in the order of `ids`, with names of speakers and recordings.

        Args:
            name: Name of the table.
            ids: Ids of the transcripts.
            columns: Columns to read. None (default): all.
            where: Rows to read. None (default): all.
            asked: True if the caller named the transcripts: then it is an error if none can be read.

        Raises:
            CorpusError: A transcript is not in the corpus, a column does not exist, or a condition is invalid.
            PayloadError: None of the requested transcripts can be read.

        Warns:
            CorpusWarning: Some transcripts cannot be read.
        """
        chosen, condition = reading.checked_columns(name, columns), reading.checked(name, where)
        if (allowed := reading.ids_of(where)) is not None:
            ids = [transcript_id for transcript_id in ids if transcript_id in allowed]
        added = [column for column in CORPUS_TABLES[name].names if column not in TABLES[name].names]
        if condition is not None and any(column in str(condition) for column in added):
            return self._by_name(name, ids, chosen, condition, asked)
        if not added or (chosen is not None and not set(added) & set(chosen)):
            return self._read(name, ids, chosen, condition, asked)
        stored = chosen and [c for c in TABLES[name].names if c in chosen or c in _NAMING]
        table = self.complete(name, self._read(name, ids, stored, condition, asked))
        return table if chosen is None else table.select(chosen)

    def _read(
        self, name: str, ids: Sequence[str], columns: Sequence[str] | None, where: pc.Expression | None, asked: bool
    ) -> pa.Table:
        table, located = self._archive.read(name, ids, columns, where)
        _report(located, len(ids), asked=asked)
        return table

    def _by_name(
        self, name: str, ids: Sequence[str], columns: Sequence[str] | None, where: pc.Expression, asked: bool
    ) -> pa.Table:
        """Return the rows that are chosen by a name of a speaker or a recording, which are not stored in the table."""
        tables = [CORPUS_TABLES[name].empty]
        for at in range(0, len(ids), _AT_A_TIME):
            whole = self._read(name, ids[at : at + _AT_A_TIME], None, None, asked)
            tables.append(self.complete(name, whole).cast(CORPUS_TABLES[name].arrow).filter(where))
        table = pa.concat_tables(tables)
        return table if columns is None else table.select(columns)

    def readable(self, name: str) -> list[str]:
        """Return the transcripts with this table that can be read. A warning names the others."""
        ids = self._select(name, None)
        located = self._archive.locate(name, ids)
        _report(located, len(ids), asked=False)
        bad = {transcript_id for transcript_id, _ in located.bad}
        return [transcript_id for transcript_id in ids if transcript_id not in bad]

    def rows(self, name: str, ids: str | Iterable[str] | None = None) -> dict[str, int]:
        """Return the number of rows of each transcript that has any, in the order of the files. Reads no rows."""
        wanted = self._select(name, ids)
        located = self._archive.locate(name, wanted)
        _report(located, len(wanted), asked=ids is not None)
        return located.rows(name)

    def scan(self, name: str, ids: str | Iterable[str] | None = None, *, verify: bool = False) -> ds.Dataset:
        """Return one table over many transcripts as a pyarrow dataset.

        Args:
            name: Name of the table.
            ids: Id or ids. None (default): every transcript that has the table.
            verify: Read every file to its end first, and rebuild damaged parts.
        """
        wanted = self._select(name, ids)
        located = self._archive.locate(name, wanted, verify=verify)
        _report(located, len(wanted), asked=ids is not None)
        schema = TABLES[name].arrow
        places: dict[Part, set[int]] = {}
        for member in located.members.values():
            places.setdefault(member.part, set()).add(member.place)
        fragments = []
        for part, of_part in places.items():
            if (layout := part.files.get(name)) is not None:
                groups = [n for n, group in enumerate(layout.groups) if not of_part.isdisjoint(group.members)]
                path = str(self._archive.parts.path(name, part))
                fragments.append(FORMAT.make_fragment(path, _LOCAL, row_groups=groups))
        children: list[ds.Dataset] = []
        if fragments:
            children.append(ds.FileSystemDataset(fragments, schema, FORMAT, _LOCAL))
        if located.loose:
            children.append(ds.dataset(pa.concat_tables(table.cast(schema) for table in located.loose.values())))
        whole = ds.dataset(children) if len(children) > 1 else (children or [ds.dataset(schema.empty_table())])[0]
        return whole if ids is None or not children else whole.filter(pc.field("transcript_id").isin(wanted))

    def to_polars(self, name: str, ids: str | Iterable[str] | None = None) -> pl.LazyFrame:
        """Return one table over many transcripts as a Polars LazyFrame."""
        return reading.lazy_frame(name, *self._with_names(name, ids))

    def sql(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] | None,
        others: Mapping[str, Callable[[], object]],
    ) -> pd.DataFrame:
        """Run a DuckDB query.

        Args:
            query: The query.
            parameters: Values of its placeholders.
            others: Functions that return further tables, by table name.
        """
        tables = [*TRANSCRIPT_TABLES, *EXPORTS]
        others = {"metadata": self._metadata.to_arrow, **others}
        try:
            return _run_sql(query, parameters, tables, self._with_names, others)
        except _DamageError:
            return _run_sql(query, parameters, tables, partial(self._with_names, verify=True), others)

    def _with_names(
        self, name: str, ids: str | Iterable[str] | None = None, *, verify: bool = False
    ) -> tuple[ds.Dataset, pa.Table | None]:
        """Return a table as stored, and the columns that a corpus adds, with its key.

        Of the names of speakers, only those that differ from their labels.
        """
        data = self.scan(name, ids, verify=verify)
        if name == "transcripts":
            return data, self._archive.recordings.table(self._select(name, ids))
        if SPEAKER_NAME not in CORPUS_TABLES[name].columns:
            return data, None
        key, given = list(TABLES[name].key), self._names.all()
        some = [transcript_id for transcript_id in self._select(name, ids) if transcript_id in given]
        named = self.arrow(name, some, [*key, "speaker", SPEAKER_NAME.name])
        differs = pc.fill_null(pc.not_equal(named["speaker"], named[SPEAKER_NAME.name]), True)
        return data, named.filter(differs).select([*key, SPEAKER_NAME.name])

    def _select(self, name: str, ids: str | Iterable[str] | None) -> list[str]:
        self._archive.report_missing()
        return self._archive.select(name, None if ids is None else self._archive.recordings.ids(ids))


_LOCAL: Any = fs.LocalFileSystem()


def _report(located: Located, wanted: int, *, asked: bool) -> None:
    """Warn about transcripts that cannot be read, or raise the error of the first if none can be."""
    bad = located.bad
    if bad and asked and not located.members and not located.loose:
        transcript_id, error = bad[0]
        raise type(error)(f"{transcript_id!r}: {error}")
    if bad:
        shown = "; ".join(f"{transcript_id!r}: {error}" for transcript_id, error in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        warnings.warn(
            f"{len(bad)} of {wanted} transcripts cannot be read and are left out: {shown}{more}",
            CorpusWarning,
            stacklevel=caller(),
        )


class _DamageError(Exception):
    """A file has damage that its footer does not show."""


def _run_sql(
    query: str,
    parameters: Sequence[object] | Mapping[str, object] | None,
    tables: Sequence[str],
    scan: Callable[[str], tuple[ds.Dataset, pa.Table | None]],
    others: Mapping[str, Callable[[], object]],
) -> pd.DataFrame:
    """Run a query. Only tables with a name that occurs in it are opened.

    Args:
        query: DuckDB SQL.
        parameters: Values of the placeholders: a sequence for `?`, a mapping for `$name`.
        tables: Names of the tables stored as files.
        scan: Returns such a table as a dataset, and the columns to join to it: see `Query`.
        others: Functions that return the other tables, by name.

    Raises:
        _DamageError: A file that the query reads is damaged.
        CorpusError: The query failed.
        MissingExtraError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtraError("sql", "Corpus.sql") from None
    if _SHOW_TABLES.fullmatch(query):  # tables are only registered if the query names them, so DuckDB knows none
        return pd.DataFrame({"name": pd.array(sorted([*tables, *others]), reading.TEXT)})
    # A query must not use the network, so extensions are not downloaded.
    config: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": False, "TimeZone": "UTC"}
    with duckdb.connect(config=config) as database:
        try:
            named = set(re.findall(r"\w+", query.lower()))
            for name in tables:
                if name in named:
                    _register(database, name, *scan(name))
            for name, make in others.items():
                if name in named:
                    database.register(name, make())
            given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters or ())
            relation = database.sql(query, params=given or None)
            if relation is None:
                raise CorpusError("the statement returned no rows; Corpus.sql runs queries only")
            found: pa.Table = relation.to_arrow_table()
        except duckdb.Error as e:
            if "IOError" in str(e):  # pyarrow's error for a damaged page
                raise _DamageError from None
            known = ""
            if isinstance(e, duckdb.CatalogException):
                known = f"\nThe tables are {', '.join([*tables, *others])}; Corpus.sql('show tables') lists them"
            raise CorpusError(f"the query failed: {e}{known}") from None
    frame: pd.DataFrame = found.to_pandas(types_mapper=reading.DTYPES.get)
    return frame


def _register(database: duckdb.DuckDBPyConnection, name: str, data: ds.Dataset, more: pa.Table | None) -> None:
    """Register a table of the corpus with DuckDB, with the columns that a corpus adds."""
    if more is None:
        database.register(name, data)
        return
    key = TABLES[name].key
    added = {column: f"n.{column}" for column in more.column_names if column not in key}
    if SPEAKER_NAME.name in added:
        added[SPEAKER_NAME.name] = f"coalesce(n.{SPEAKER_NAME.name}, t.speaker)"
    columns = [f"{added.get(column, f't.{column}')} as {column}" for column in CORPUS_TABLES[name].names]
    database.register(f"_{name}", data)
    database.register(f"_{name}_added", more)
    join = f"left join _{name}_added n using ({', '.join(key)})"
    database.execute(f"create temp view {name} as select {', '.join(columns)} from _{name} t {join}")  # noqa: S608
