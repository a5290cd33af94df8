"""Arrow tables to DataFrames with the dtypes of the data dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe import accessor as _accessor  # noqa: F401  importing it adds df.vox
from voxframe.frames.arrays import TEXT, Arrays, from_table
from voxframe.schema import BOOL, FLOAT, INT, STRING, TABLES, TIMESTAMP

Values: TypeAlias = "pa.Array | pa.ChunkedArray"
Places: TypeAlias = npt.NDArray[np.intp]
#: Columns of one kind to as many arrays for pandas.
Way: TypeAlias = Callable[[Sequence[Values]], Iterable[Any]]

_STR: Any = pd.StringDtype("pyarrow", na_value=np.nan)  # pandas 3's str, on pandas 2.3 too
_LARGE = pc.CastOptions.safe(TEXT)


def to_pandas(table: pa.Table, name: str) -> pd.DataFrame:
    """A DataFrame with exactly the dtypes of the data dictionary.

    Args:
        table: An Arrow table with the columns of the dictionary, or some of them.
        name: Name of the table.

    Returns:
        Columns of str (NaN where null), int64, Int64 where nulls may occur, float64 (NaN where null), boolean,
        datetime64[us] and pyarrow lists. Writing to it changes neither `table` nor another DataFrame.

    Example:
        >>> to_pandas(empty_table("entities"), "entities").dtypes["start_ms"]
        Int64Dtype()
    """
    if set(table.column_names).issuperset(TABLES[name].names):
        return all_to_pandas({name: from_table(name, table)})[name]
    arrays = _one_by_one(name, table)
    return pd.DataFrame(dict(zip(table.column_names, arrays, strict=True)), index=pd.RangeIndex(table.num_rows))


def all_to_pandas(tables: Mapping[str, Arrays]) -> dict[str, pd.DataFrame]:
    """The same for several tables, given as their columns by name, in less time than one by one."""
    filled: dict[str, list[Any]] = {}
    groups: dict[tuple[Way, pa.DataType], tuple[list[Values], list[tuple[list[Any], list[int]]]]] = {}
    for name, columns in tables.items():
        if not len(columns[0]):
            continue
        into = filled[name] = [None] * len(columns)
        for key, places in _ways(name):
            values, wanted = groups.setdefault(key, ([], []))
            values.extend([columns[place] for place in places])
            wanted.append((into, places))
    for (way, _), (values, wanted) in groups.items():
        arrays = iter(way(values))
        for into, places in wanted:
            for place in places:
                into[place] = next(arrays)
    return {
        name: _frame(name, filled[name], len(columns[0])) if name in filled else _empty_frame(name).copy()
        for name, columns in tables.items()
    }


def empty_table(name: str) -> pa.Table:
    """A table of the dictionary without rows."""
    return TABLES[name].empty


def concat_tables(tables: Sequence[pa.Table], name: str) -> pa.Table:
    """Tables of one kind, one after another; a table without rows where there are none."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables) if tables else empty_table(name)


@lru_cache(maxsize=len(TABLES))
def _ways(name: str) -> list[tuple[tuple[Way, pa.DataType], list[int]]]:
    """Positions of a table's columns by the way they are converted: all of a kind at once cost little more than one."""
    places: dict[tuple[Way, pa.DataType], list[int]] = {}
    for place, column in enumerate(TABLES[name].columns):
        if column.type == INT:
            way = _nullable_integers if column.nullable else _numbers
        else:
            way = {STRING: _strings, FLOAT: _numbers, TIMESTAMP: _times, BOOL: _booleans}.get(column.type, _lists)
        places.setdefault((way, column.type), []).append(place)
    return list(places.items())


@lru_cache(maxsize=len(TABLES))
def _labels(name: str) -> pd.Index:
    return pd.Index(TABLES[name].names)


@lru_cache(maxsize=len(TABLES))
def _empty_frame(name: str) -> pd.DataFrame:
    return _frame(name, _one_by_one(name, TABLES[name].empty), 0)


def _one_by_one(name: str, table: pa.Table) -> list[Any]:
    """Arrays for pandas of some columns of a table."""
    ways = {TABLES[name].names[place]: way for (way, _), places in _ways(name) for place in places}
    return [next(iter(ways[c]([values]))) for c, values in zip(table.column_names, table.columns, strict=True)]


def _frame(name: str, arrays: list[Any], rows: int) -> pd.DataFrame:
    # The usual constructor examines again what is known here, and takes four times as long: a tenth of all the time
    # from bytes to DataFrames. pandas has this one since 3.0.
    from_blocks = getattr(getattr(pd.api, "internals", None), "create_dataframe_from_blocks", None)
    if from_blocks is None:
        return pd.DataFrame(dict(zip(_labels(name), arrays, strict=True)))
    alone, together = _blocks(name)
    blocks = [(arrays[place[0]], place) for place in alone]
    blocks += [(np.array([arrays[place] for place in places]), places) for places in together]
    frame: pd.DataFrame = from_blocks(blocks, pd.RangeIndex(rows), _labels(name).view())
    return frame


@lru_cache(maxsize=len(TABLES))
def _blocks(name: str) -> tuple[list[Places], list[Places]]:
    """Places of the columns that pandas keeps each for itself, and of those that are rows of one array of NumPy."""
    alone: list[Places] = []
    together: list[Places] = []
    for (way, _), places in _ways(name):
        if way in (_numbers, _times):
            together.append(np.array(places))
        else:
            alone += [np.array([place]) for place in places]
    return alone, together


def _strings(columns: Sequence[Values]) -> Iterable[Any]:
    text = _together(columns)
    if text.type != TEXT:
        text = pc.call_function("cast", [text], _LARGE)
    return _apart(_STR.__from_arrow__(text), columns)


def _numbers(columns: Sequence[Values]) -> Iterable[Any]:
    return _apart(_together(columns).to_numpy(), columns)  # what they are put into copies them


def _times(columns: Sequence[Values]) -> Iterable[Any]:
    return [column.to_numpy(zero_copy_only=False).astype("datetime64[us]") for column in columns]


def _nullable_integers(columns: Sequence[Values]) -> Iterable[Any]:
    return map(pd.arrays.IntegerArray, *_masked(columns, 0))


def _booleans(columns: Sequence[Values]) -> Iterable[Any]:
    return map(pd.arrays.BooleanArray, *_masked(columns, False))


def _masked(columns: Sequence[Values], blank: int | bool) -> tuple[Iterable[Any], Iterable[Any]]:
    """Values and null mask of each column."""
    together = _together(columns)
    if not together.null_count:
        return _copies(together.to_numpy(), columns), [np.zeros(len(column), bool) for column in columns]
    return (
        _copies(together.fill_null(blank).to_numpy(), columns),
        _copies(together.is_null().to_numpy(), columns),
    )


def _lists(columns: Sequence[Values]) -> Iterable[Any]:
    return [pd.arrays.ArrowExtensionArray(column) for column in columns]


def _together(columns: Sequence[Values]) -> pa.ChunkedArray:
    if all(isinstance(column, pa.Array) for column in columns):
        return pa.chunked_array(columns, columns[0].type)
    chunks = [column.chunks if isinstance(column, pa.ChunkedArray) else [column] for column in columns]
    return pa.chunked_array([chunk for part in chunks for chunk in part], columns[0].type)


def _apart(values: Any, columns: Sequence[Values]) -> Iterator[Any]:
    """One array a column from an array of all columns."""
    start = 0
    for column in columns:
        stop = start + len(column)
        yield values[start:stop]
        start = stop


def _copies(values: Any, columns: Sequence[Values]) -> Iterator[Any]:
    """The same as copies, so that a table that is kept does not hold on to all the others."""
    return (part.copy() for part in _apart(values, columns))
