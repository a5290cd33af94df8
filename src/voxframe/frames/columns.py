"""Conversion of rows, columns and Arrow tables to the columns of a table of the data dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from voxframe.schema import STRING, TABLES

#: Intermediate type of text, and the type that pandas stores.
TEXT = pa.large_string()
_EXACT = pc.CastOptions.safe(STRING)  # `array.cast` creates options each time, which takes longer than the cast

#: All columns of a table, in the dictionary's order; text may be `TEXT`. An Arrow table is built only on request:
#: building one on the way to a DataFrame would take a fifteenth of the total time.
Arrays: TypeAlias = "Sequence[pa.Array | pa.ChunkedArray]"


def parse_type(kind: pa.DataType) -> pa.DataType:
    """Return the intermediate type for a type of the dictionary: large strings for text, otherwise the same type."""
    return TEXT if kind == STRING else kind


def from_rows(name: str, transcript_id: str | pa.Array | None, rows: Sequence[tuple[Any, ...]]) -> Arrays:
    """Build the columns of a table from its rows."""
    columns = pa.array(rows, _row_type(name)).flatten()  # one conversion; one per column takes twice as long
    return [_repeat(transcript_id, len(rows)), *columns]


def from_columns(
    name: str, transcript_id: str | pa.Array | None, columns: Mapping[str, pa.Array | pa.ChunkedArray]
) -> Arrays:
    """Build the columns of a table from its columns by name, all but `transcript_id`; see `from_rows`."""
    arrays = [columns[column.name] for column in TABLES[name].columns[1:]]
    return [_repeat(transcript_id, len(arrays[0])), *arrays]


def from_table(name: str, table: pa.Table) -> Arrays:
    """Build the columns of a table from an Arrow table with any column order, integer widths and encodings."""
    kind = TABLES[name].arrow
    if not table.schema.equals(kind):
        table = table.select(kind.names).cast(kind)  # another tool wrote the file
    columns: list[pa.ChunkedArray] = table.columns
    if all(column.num_chunks == 1 for column in columns):
        return [column.chunk(0) for column in columns]  # arrays cost less than chunked ones
    return columns


@lru_cache(maxsize=len(TABLES))
def no_rows(name: str) -> Arrays:
    """Return the columns of a table without rows."""
    return tuple(TABLES[name].empty.columns)


def as_table(name: str, arrays: Arrays) -> pa.Table:
    """Return an Arrow table with exactly the dictionary's schema."""
    kind = TABLES[name].arrow
    exact = [pc.call_function("cast", [array], _EXACT) if array.type == TEXT else array for array in arrays]
    return pa.Table.from_arrays(exact, schema=kind)


def uncast_table(name: str, arrays: Arrays) -> pa.Table:
    """Return an Arrow table with the dictionary's schema, except that text is `TEXT`.

    Tables of many transcripts are put together before they are cast: casting each takes longer.
    """
    return pa.Table.from_arrays([*arrays], schema=_uncast_schema(name))


@lru_cache(maxsize=len(TABLES))
def _uncast_schema(name: str) -> pa.Schema:
    return pa.schema([pa.field(column.name, parse_type(column.type)) for column in TABLES[name].columns])


@lru_cache(maxsize=len(TABLES))
def _row_type(name: str) -> pa.StructType:
    return pa.struct([pa.field(column.name, parse_type(column.type)) for column in TABLES[name].columns[1:]])


def _repeat(text: str | pa.Array | None, rows: int) -> pa.Array:
    if isinstance(text, pa.Array):
        return text
    return pa.nulls(rows, TEXT) if text is None else pa.repeat(pa.scalar(text, TEXT), rows)
