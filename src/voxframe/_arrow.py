"""DataFrames of other libraries as arguments: the one place where they become pandas DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

#: The dtype of text of voxframe's tables with pandas 3.
TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)
#: The default text dtype of pandas: str since pandas 3. Earlier versions read str from Parquet files as object.
TEXT_DTYPE: Any = TEXT if pd.Series([""]).dtype == TEXT else np.dtype(object)
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
#: Pandas dtypes of the Arrow types that pyarrow would convert to other dtypes.
DTYPES: dict[pa.DataType, Any] = {
    **(dict.fromkeys(_TEXTS, TEXT) if TEXT_DTYPE == TEXT else {}),
    pa.int64(): pd.Int64Dtype(),
    pa.int32(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def as_pandas(value: Any) -> Any:
    """Return a DataFrame of another library as a pandas DataFrame, and anything else as it is.

    Every object with columns and `__arrow_c_stream__` (the Arrow PyCapsule interface) is taken: a DataFrame of Polars,
    a table or reader of pyarrow, a relation of DuckDB. A LazyFrame is collected. A reader can be read once.

    Example:
        >>> as_pandas(pa.table({"start_ms": [120, None]})).dtypes["start_ms"], as_pandas("a path")
        (Int64Dtype(), 'a path')
    """
    if isinstance(value, pd.DataFrame | str | bytes):
        return value
    if hasattr(value, "collect_schema") and hasattr(value, "collect"):
        value = value.collect()
    # A column of Polars or pyarrow has the interface as well, and is no table.
    if hasattr(value, "__arrow_c_stream__") and (hasattr(value, "columns") or hasattr(value, "schema")):
        return pa.table(value).to_pandas(types_mapper=DTYPES.get)
    if isinstance(value, Mapping):
        tables = {name: as_pandas(item) for name, item in value.items()}
        return tables if any(tables[name] is not item for name, item in value.items()) else value
    return value


def takes_frames(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let a function take DataFrames of other libraries wherever it takes one of pandas."""

    @wraps(function)
    def converted(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        named: Any = {name: as_pandas(value) for name, value in options.items()}
        return function(*map(as_pandas, args), **named)

    return converted
