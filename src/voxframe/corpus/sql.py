"""SQL over the tables of a corpus, answered by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from voxframe.corpus.reading import DTYPES
from voxframe.errors import CorpusError, MissingExtraError


def answer(
    query: str,
    parameters: Sequence[object] | None,
    tables: Iterable[str],
    scan: Callable[[str], ds.Dataset],
    others: Mapping[str, Callable[[], object]],
) -> pd.DataFrame:
    """Answer a query.

    Only tables whose names occur in it are looked at.

    Args:
        query: SQL of DuckDB.
        parameters: Values for its question marks.
        tables: Names of the tables there are.
        scan: Gives a table as a data set.
        others: Give tables that are not files, by their names.

    Raises:
        CorpusError: The query cannot be answered.
        MissingExtraError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtraError("sql", "Corpus.sql") from None
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
            relation = database.sql(query, params=None if parameters is None else list(parameters))
            if relation is None:
                raise CorpusError("the query gives no rows; Corpus.sql answers queries, it changes nothing")
            found: pa.Table = relation.to_arrow_table()
        except duckdb.Error as e:
            raise CorpusError(f"the query cannot be answered: {e}") from None
    frame: pd.DataFrame = found.to_pandas(types_mapper=DTYPES.get)
    return frame
