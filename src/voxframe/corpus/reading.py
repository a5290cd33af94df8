"""Reading a table over many transcripts: columns and rows are chosen by Arrow, before they take any memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import and_, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from voxframe import frames
from voxframe.errors import CorpusError, MissingExtraError
from voxframe.schema import CORPUS_TABLES, SPEAKER_NAME

if TYPE_CHECKING:
    import polars as pl

#: Rows to read: an expression of pyarrow, or conditions as `pandas.read_parquet(filters=...)` takes them:
#: (column, operator, value) triples that must all hold, or a list of such lists of which one must.
Where: TypeAlias = "pc.Expression | Sequence[tuple[str, str, Any]] | Sequence[Sequence[tuple[str, str, Any]]]"

#: Where one transcript's rows are: a file, a table in memory where the disk cannot be written, None for no rows.
Part: TypeAlias = "Path | pa.Table | None"


#: Transcripts: an identifier or a handle, several, or a table with a column `transcript_id`.
Ids: TypeAlias = "str | Iterable[str] | pd.DataFrame"

#: The dtype of text in voxframe's tables.
TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)

#: Arrow types whose dtype is not the one pyarrow would take.
DTYPES: dict[pa.DataType, Any] = {
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.int64(): pd.Int64Dtype(),
    pa.int32(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}

#: What verifies the checksum of every page it reads: a flipped bit is an error, never a wrong value.
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


def identifiers(ids: Ids) -> list[str]:
    """Identifiers as a list, each once, in their order.

    Raises:
        CorpusError: One is no identifier.
    """
    if isinstance(ids, pd.DataFrame):
        if "transcript_id" not in ids.columns:
            raise CorpusError("a table of transcripts has a column transcript_id; this one has not")
        ids = ids["transcript_id"]
    several = ids if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [ids]
    wanted: list[Any] = list(dict.fromkeys(getattr(one, "id", one) for one in several))
    if odd := [one for one in wanted if not isinstance(one, str)]:
        raise CorpusError(
            f"{odd[0]!r} is no identifier of a transcript; leave it out (a job that is not sent has none: "
            "jobs()['transcript_id'].dropna())"
        )
    return wanted


def dataset(name: str, parts: Iterable[Part]) -> ds.Dataset:
    """Parts of one table as one data set, in their order.

    Args:
        name: Name of the table.
        parts: Where the rows of each transcript are.

    Returns:
        A data set with the schema of a corpus (`voxframe.schema.CORPUS_TABLES`), from which nothing was read yet.
    """
    schema = CORPUS_TABLES[name].arrow
    children: list[ds.Dataset] = []
    for _, run in groupby((part for part in parts if part is not None), type):
        files, loose = [], []
        for part in run:
            if isinstance(part, Path):
                files.append(str(part))
            else:
                loose.append(part.cast(schema))
        children.append(ds.dataset(files, schema=schema, format=_FORMAT) if files else ds.dataset(loose))
    if len(children) == 1:
        return children[0]
    return ds.dataset(children) if children else ds.dataset(schema.empty_table())


def read(name: str, data: ds.Dataset, columns: Sequence[str] | None, where: Where | None) -> pd.DataFrame:
    """Rows of a data set as a DataFrame.

    Args:
        name: Name of the table.
        data: The data set.
        columns: Columns to read, in the order wanted; None reads all.
        where: Rows to read; None reads all.

    Raises:
        CorpusError: There is no such column, or a condition does not fit the column's type.
    """
    if isinstance(columns, str):
        columns = [columns]
    for column in columns or ():
        check_column(name, column)
    try:
        table = data.to_table(columns=None if columns is None else list(columns), filter=expression(name, where))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        if where is None:
            raise
        raise CorpusError(
            f"where={where!r} cannot be answered ({str(e).splitlines()[0]}); "
            f"voxframe.describe({name!r}) says what type each column has"
        ) from None
    frame = to_frames({name: table})[name] if columns is None else _some_columns(table, name)
    return frame if columns is None else frame[list(columns)]


def to_frames(tables: Mapping[str, pa.Table]) -> dict[str, pd.DataFrame]:
    """Tables of a corpus by name as DataFrames: the dictionary's columns and dtypes, and `speaker_name`."""
    found = frames.all_to_pandas({name: frames.from_table(name, table) for name, table in tables.items()})
    for name, table in tables.items():
        _add_names(found[name], table)
    return found


def _some_columns(table: pa.Table, name: str) -> pd.DataFrame:
    own = [column for column in table.column_names if column != SPEAKER_NAME.name]
    frame = frames.to_pandas(table.select(own), name)
    _add_names(frame, table)
    return frame


def _add_names(frame: pd.DataFrame, table: pa.Table) -> None:
    """Put `speaker_name`, which is in the dictionary only in a corpus, where it stands in the table."""
    if table.num_columns == frame.shape[1]:
        return  # asking for the names takes longer
    if SPEAKER_NAME.name not in table.column_names or SPEAKER_NAME.name in frame:
        return
    place = table.column_names.index(SPEAKER_NAME.name)
    text = table.select([SPEAKER_NAME.name]).to_pandas(types_mapper=DTYPES.get)
    frame.insert(place, SPEAKER_NAME.name, text[SPEAKER_NAME.name].array)


def expression(name: str, where: Where | None) -> pc.Expression | None:
    """Conditions as an expression of pyarrow.

    Raises:
        CorpusError: They are no conditions, or name a column that the table has not.
    """
    if where is None or isinstance(where, pc.Expression):
        return where
    conditions = list(where)
    if conditions and isinstance(conditions[0], str):
        conditions = [tuple(conditions)]  # one condition, not in a list
    for condition in conditions:
        for triple in [condition] if isinstance(condition, tuple) else condition:
            if not (isinstance(triple, tuple) and len(triple) == 3 and isinstance(triple[0], str)):
                raise CorpusError(
                    f"where takes (column, operator, value) triples such as ('speaker', '==', 'A'), or an expression "
                    f"of pyarrow, not {triple!r}"
                )
            check_column(name, triple[0])
    if not conditions:
        return None
    clauses = conditions if not isinstance(conditions[0], tuple) else [conditions]
    try:
        return reduce(or_, (all_of(clause) for clause in clauses))
    except (ValueError, TypeError) as e:
        raise CorpusError(f"where={where!r}: {e}; an operator is one of ==, !=, <, >, <=, >=, in, not in") from None


def all_of(conditions: Sequence[tuple[str, str, Any]]) -> pc.Expression:
    """Conditions that must all hold as an expression of pyarrow. What equals None, NaN, NA or NaT is null.

    Raises:
        ValueError: One has no operator that there is, or looks for a value in a text instead of a list.
    """
    return reduce(and_, (_condition(*one) for one in conditions))


def _condition(column: str, operator: str, value: Any) -> pc.Expression:
    value = [_plain(one) for one in value] if isinstance(value, list | tuple | set) else _plain(value)
    if value is None and operator in ("=", "==", "!="):
        null = pc.field(column).is_null()
        return ~null if operator == "!=" else null
    if operator in ("in", "not in") and isinstance(value, str):
        raise ValueError(f"({column!r}, {operator!r}, {value!r}) needs a list of values, such as [{value!r}]")
    return pq.filters_to_expression([(column, operator, value)])


def _plain(value: Any) -> Any:
    """None for what pandas shows in the place of a null."""
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value


def check_column(name: str, column: str) -> None:
    """Check that a table has a column.

    Raises:
        CorpusError: It has not.
    """
    names = CORPUS_TABLES[name].names
    if column not in names:
        raise CorpusError(f"the table {name!r} has no column {column!r}; it has {', '.join(names)}")


def lazy_frame(data: ds.Dataset) -> pl.LazyFrame:
    """A data set for Polars, read when collected.

    Raises:
        MissingExtraError: Polars is not installed.
    """
    try:
        import polars as pl
    except ModuleNotFoundError:
        raise MissingExtraError("polars", "Corpus.to_polars") from None
    return pl.scan_pyarrow_dataset(data)
