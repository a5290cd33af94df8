"""DuckDB SQL queries over the tables of a corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from voxframe.corpus.reading import DTYPES, TEXT
from voxframe.errors import CorpusError, MissingExtraError
from voxframe.schema import CORPUS_TABLES, TABLES

if TYPE_CHECKING:
    import duckdb

_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)


class DamageError(Exception):
    """A table's file has damage that its footer does not show.

    Args:
        tables: Names of the tables of the query.
    """

    def __init__(self, tables: set[str]) -> None:
        super().__init__(tables)
        self.tables = tables


def answer(
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
        scan: Returns such a table as a dataset, and the names of its speakers that differ from their labels.
        others: Functions that return the other tables, by name.

    Raises:
        DamageError: A file that the query reads is damaged.
        CorpusError: The query failed.
        MissingExtraError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtraError("sql", "Corpus.sql") from None
    if _SHOW_TABLES.fullmatch(query):  # tables are only registered if the query names them, so DuckDB knows none
        return pd.DataFrame({"name": pd.array(sorted([*tables, *others]), TEXT)})
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
                raise CorpusError("the query gives no rows; Corpus.sql answers queries, it changes nothing")
            found: pa.Table = relation.to_arrow_table()
        except duckdb.Error as e:
            if "IOError" in str(e):  # pyarrow's error for a damaged page
                raise DamageError(named & set(tables)) from None
            known = ""
            if isinstance(e, duckdb.CatalogException):
                known = f"\nTables are {', '.join([*tables, *others])}; Corpus.sql('show tables') lists them"
            raise CorpusError(f"the query cannot be answered: {e}{known}") from None
    frame: pd.DataFrame = found.to_pandas(types_mapper=DTYPES.get)
    return frame


def _register(database: duckdb.DuckDBPyConnection, name: str, data: ds.Dataset, names: pa.Table | None) -> None:
    """Make a table of the corpus known to DuckDB, with the column `speaker_name` if it has speakers."""
    if names is None:
        database.register(name, data)
        return
    database.register(f"_{name}", data)
    columns = [f"t.{column}" for column in CORPUS_TABLES[name].names]
    place = columns.index("t.speaker_name")
    join = ""
    columns[place] = "t.speaker as speaker_name"
    if names.num_rows:
        database.register(f"_{name}_names", names)
        columns[place] = "coalesce(n.speaker_name, t.speaker) as speaker_name"
        join = f" left join _{name}_names n using ({', '.join(TABLES[name].key)})"
    database.execute(f"create temp view {name} as select {', '.join(columns)} from _{name} t{join}")  # noqa: S608
