"""Tables of a corpus as DuckDB views: the rows of files, with the columns that a corpus adds to them.

`Corpus.sql` and `Corpus.to_polars` read these views, and DuckDB takes only the columns and rows from the files that a
query needs. All queries of a process use one database, in a transaction that is rolled back.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from voxframe._arrow import DTYPES, TEXT
from voxframe.errors import CorpusError, MissingExtraError, OptionError
from voxframe.schema import CORPUS_TABLES, DERIVED, RECORDING_COLUMNS, SPEAKER_NAME, TABLES
from voxframe.validators import Boolean, checked, listed, shown

if TYPE_CHECKING:
    import duckdb
    import polars as pl

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
) -> pd.DataFrame:
    """Run a query over those tables whose names occur in it. `further` are functions that return further tables."""
    if not isinstance(query, str):
        raise OptionError(f"a query is text, such as 'show tables', got {shown(query)}")
    values = _placeholders(parameters)
    if _SHOW_TABLES.fullmatch(query):  # views are only created if the query names them, so DuckDB knows none
        return pd.DataFrame({"name": pd.array(sorted([*tables, *further]), TEXT)})
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
    frame: pd.DataFrame = rows.rename_columns(_unique(rows.column_names)).to_pandas(types_mapper=DTYPES.get)
    return frame


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
