"""Arrow tables to DataFrames with the dtypes of the data dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from voxframe.schema import TABLES, Column

_STRING = pd.StringDtype("pyarrow", na_value=np.nan)  # pandas 3's str, also on pandas 2.3


def dtype(column: Column) -> Any:
    """The pandas dtype of a column of the dictionary."""
    if pa.types.is_string(column.type):
        return _STRING
    if pa.types.is_int64(column.type):
        return pd.Int64Dtype() if column.nullable else np.dtype("int64")
    if pa.types.is_float64(column.type):
        return np.dtype("float64")
    if pa.types.is_boolean(column.type):
        return pd.BooleanDtype()
    if pa.types.is_timestamp(column.type):
        return np.dtype("datetime64[us]")
    return pd.ArrowDtype(column.type)


def to_pandas(table: pa.Table, name: str) -> pd.DataFrame:
    """A DataFrame with exactly the dtypes of the data dictionary.

    Args:
        table: An Arrow table with the dictionary's columns.
        name: Name of the table.

    Returns:
        str (NaN where null), int64, Int64 where nulls may occur, float64 (NaN where null), boolean, datetime64[us], and
        pyarrow lists.

    Example:
        >>> to_pandas(empty_table("entities"), "entities").dtypes["start_ms"]
        Int64Dtype()
    """
    columns = {c.name: _array(table.column(c.name), dtype(c)) for c in TABLES[name].columns}
    return pd.DataFrame(columns, copy=False)


def _array(values: pa.ChunkedArray, kind: Any) -> Any:
    if isinstance(kind, np.dtype):
        return values.to_numpy()
    return kind.__from_arrow__(values)


def empty_table(name: str) -> pa.Table:
    """A table of the dictionary without rows."""
    return TABLES[name].arrow.empty_table()


def concat_tables(tables: Sequence[pa.Table], name: str) -> pa.Table:
    """Tables of one kind, one after another; without rows where there are none."""
    return pa.concat_tables(tables) if tables else empty_table(name)
