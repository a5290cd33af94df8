"""Rows or columns to Arrow tables of the data dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from voxframe.schema import TABLES


def from_rows(name: str, transcript_id: str | None, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """A table of the data dictionary from its rows.

    Args:
        name: Its name.
        transcript_id: Identifier for every row.
        rows: Values of all other columns, in the dictionary's order.

    Returns:
        A table with exactly the dictionary's Arrow schema.
    """
    columns = pa.array(rows, _row_type(name)).flatten()  # one conversion; an array a column takes twice as long
    return pa.Table.from_arrays([_repeat(transcript_id, len(rows)), *columns], schema=TABLES[name].arrow)


def from_columns(name: str, transcript_id: str | None, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """The same from columns by name."""
    kind = TABLES[name]
    arrays = [columns[column.name] for column in kind.columns[1:]]
    return pa.Table.from_arrays([_repeat(transcript_id, len(arrays[0])), *arrays], schema=kind.arrow)


@lru_cache(maxsize=len(TABLES))
def _row_type(name: str) -> pa.StructType:
    return pa.struct([pa.field(column.name, column.type) for column in TABLES[name].columns[1:]])


def _repeat(text: str | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.string()) if text is None else pa.repeat(pa.scalar(text, pa.string()), rows)
