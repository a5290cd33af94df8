"""Rows or columns to the columns of a table of the data dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from voxframe.schema import STRING, TABLES

#: Text on its way to a table: pandas keeps it so.
TEXT = pa.large_string()

#: The columns of a table, all of them, in the dictionary's order; text may be `TEXT`. An Arrow table of them is made
#: where one is wanted: on the way to DataFrames it would be a fifteenth of all the time.
Arrays: TypeAlias = "Sequence[pa.Array | pa.ChunkedArray]"


def on_its_way(kind: pa.DataType) -> pa.DataType:
    """The type that values of a type of the dictionary have on their way to a table."""
    return TEXT if kind == STRING else kind


def from_rows(name: str, transcript_id: str | None, rows: Sequence[tuple[Any, ...]]) -> Arrays:
    """Columns of a table from its rows.

    Args:
        name: Its name.
        transcript_id: Identifier for every row.
        rows: Values of all other columns, in the dictionary's order.

    Returns:
        The columns, with the dictionary's Arrow types, but text as `TEXT`.
    """
    columns = pa.array(rows, _row_type(name)).flatten()  # one conversion; an array a column takes twice as long
    return [_repeat(transcript_id, len(rows)), *columns]


def from_columns(name: str, transcript_id: str | None, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> Arrays:
    """The same from columns by name."""
    arrays = [columns[column.name] for column in TABLES[name].columns[1:]]
    return [_repeat(transcript_id, len(arrays[0])), *arrays]


def from_table(name: str, table: pa.Table) -> Arrays:
    """The same from an Arrow table, whatever the order, widths and encodings of its columns."""
    kind = TABLES[name].arrow
    if not table.schema.equals(kind):
        table = table.select(kind.names).cast(kind)  # a file that another tool wrote
    batches = table.to_batches()
    arrays: Arrays = (batches[0] if len(batches) == 1 else table).columns  # arrays cost less than chunked ones
    return arrays


@lru_cache(maxsize=len(TABLES))
def no_rows(name: str) -> Arrays:
    """The columns of a table without rows."""
    return tuple(TABLES[name].empty.columns)


def as_table(name: str, arrays: Arrays) -> pa.Table:
    """An Arrow table with exactly the dictionary's schema."""
    kind = TABLES[name].arrow
    exact = [array.cast(STRING) if array.type == TEXT else array for array in arrays]
    return pa.Table.from_arrays(exact, schema=kind)


@lru_cache(maxsize=len(TABLES))
def _row_type(name: str) -> pa.StructType:
    return pa.struct([pa.field(column.name, on_its_way(column.type)) for column in TABLES[name].columns[1:]])


def _repeat(text: str | None, rows: int) -> pa.Array:
    return pa.nulls(rows, TEXT) if text is None else pa.repeat(pa.scalar(text, TEXT), rows)
