"""SQL over the tables of a corpus, answered by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from voxframe.corpus.reading import DTYPES, TEXT
from voxframe.errors import CorpusError, MissingExtraError

_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)


class DamageError(Exception):
    """A file of one of these tables is damaged, which its footer does not show.

    Args:
        tables: Names of the tables.
    """

    def __init__(self, tables: set[str]) -> None:
        super().__init__(tables)
        self.tables = tables


def answer(
    query: str,
    parameters: Sequence[object] | Mapping[str, object] | None,
    tables: Sequence[str],
    scan: Callable[[str], ds.Dataset],
    others: Mapping[str, Callable[[], object]],
) -> pd.DataFrame:
    """Answer a query.

    Only tables whose names occur in it are looked at.

    Args:
        query: SQL of DuckDB.
        parameters: Values for its question marks, or by name for its `$name`.
        tables: Names of the tables there are.
        scan: Gives a table as a data set.
        others: Give tables that are not files, by their names.

    Raises:
        DamageError: A file that it reads is damaged.
        CorpusError: The query cannot be answered.
        MissingExtraError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtraError("sql", "Corpus.sql") from None
    if _SHOW_TABLES.fullmatch(query):  # no table is looked at before it is named, so DuckDB would know of none
        return pd.DataFrame({"name": pd.array(sorted([*tables, *others]), TEXT)})
    # Nothing is ever fetched for a query: extensions are not downloaded.
    config: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": False}
    with duckdb.connect(config=config) as database:
        try:
            named = set(re.findall(r"\w+", query.lower()))
            for name in tables:
                if name in named:
                    database.register(name, scan(name))
            for name, make in others.items():
                if name in named:
                    database.register(name, make())
            given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters or ())
            relation = database.sql(query, params=given or None)
            if relation is None:
                raise CorpusError("the query gives no rows; Corpus.sql answers queries, it changes nothing")
            found: pa.Table = relation.to_arrow_table()
        except duckdb.Error as e:
            if "IOError" in str(e):  # what pyarrow says of a page that it cannot read
                raise DamageError(named & set(tables)) from None
            known = ""
            if isinstance(e, duckdb.CatalogException):
                known = f"\nTables are {', '.join([*tables, *others])}; Corpus.sql('show tables') lists them"
            raise CorpusError(f"the query cannot be answered: {e}{known}") from None
    frame: pd.DataFrame = found.to_pandas(types_mapper=DTYPES.get)
    return frame
