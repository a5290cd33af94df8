"""Conversion of Arrow tables to DataFrames with the dtypes of the data dictionary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import union_categoricals

from voxframe import accessor as _accessor  # noqa: F401  importing it adds df.vox
from voxframe._arrow import TEXT as STR
from voxframe._arrow import TEXT_DTYPE
from voxframe.frames.layout import TEXT, Arrays
from voxframe.schema import (
    BOOL,
    CORPUS_TABLES,
    CORRECTED_TABLES,
    FLOAT,
    INT,
    RECORDING,
    SPEAKER_NAME,
    STRING,
    TABLES,
    TEXT_ORIGINAL,
    TIMESTAMP,
)

Values: TypeAlias = "pa.Array | pa.ChunkedArray"
Places: TypeAlias = npt.NDArray[np.intp]
#: Converts columns of one type to the same number of pandas arrays.
Converter: TypeAlias = Callable[[Sequence[Values]], Iterable[Any]]

_UTC: Any = pd.DatetimeTZDtype("us", "UTC")
_LARGE = pc.CastOptions.safe(TEXT)
_CHUNK = 65_536  # nulls

#: Text columns with few different values, which take less memory as `category`.
CATEGORIES = frozenset(
    "transcript_id recording speaker speaker_name channel label level_1 level_2 level_3 level_4 sentiment status "
    "entity_type text_original timing extra".split()
)


def to_pandas(table: pa.Table, name: str) -> pd.DataFrame:
    """Return a DataFrame with exactly the dtypes of the data dictionary.

    Args:
        table: Any columns of the table, also those that a corpus adds; with any integer widths and encodings.

    Returns:
        Columns of str (NaN for null; object and None with pandas 2), int64, Int64 if the column is nullable, float64
        (NaN for null), boolean and datetime64[us, UTC]. Writing to it changes neither `table` nor another DataFrame.

    Example:
        >>> to_pandas(empty_table("entities"), "entities").dtypes["start_ms"]
        Int64Dtype()
    """
    names = TABLES[name].names
    return all_to_pandas({name: table.select(names) if {*names} == {*table.column_names} else table})[name]


def all_to_pandas(
    tables: Mapping[str, pa.Table | Arrays], *, recordings: Mapping[str, str] | None = None
) -> dict[str, pd.DataFrame]:
    """Like `to_pandas` for several tables, faster than one at a time.

    Args:
        tables: Arrow tables, or arrays of all columns of the dictionary, by table name.
        recordings: Names of recordings by transcript id. If given, arrays get the columns that loaders add:
            `recording`, which is the id if there is no name, and `text_original`.
    """
    groups: dict[tuple[Converter, pa.DataType], list[tuple[str, str, Values]]] = {}
    frames_by_name: dict[str, Any] = {}
    labels: dict[str, tuple[str, ...]] = {}
    copies: list[tuple[str, str, str]] = []
    for name, table in tables.items():
        if isinstance(table, pa.Table):
            columns = dict(zip(table.column_names, table.columns, strict=True))
        else:
            columns = dict(zip(TABLES[name].names, table, strict=True))
            if recordings is not None:
                columns = _of_loaders(name, columns, recordings)
        labels[name] = tuple(columns)
        if not columns:
            frames_by_name[name] = pd.DataFrame(index=pd.RangeIndex(len(table)))
            continue
        if not len(columns[labels[name][0]]):
            frames_by_name[name] = _empty_frame(name, labels[name]).copy()
            continue
        kinds = _kinds(name)
        for label, values in columns.items():
            same = _SAME.get(label, "")
            if same in columns and isinstance(values, pa.ChunkedArray) and values.equals(columns[same]):
                copies.append((name, label, same))
                continue
            convert, dtype = kinds[label]
            if values.type != dtype and not (dtype == STRING and values.type == TEXT):
                values = values.cast(dtype)  # another tool wrote the file
            groups.setdefault((convert, values.type), []).append((name, label, values))
    arrays: dict[str, dict[str, Any]] = {name: {} for name in labels}
    for (convert, _), places in groups.items():
        for (name, label, _), array in zip(places, convert([values for *_, values in places]), strict=True):
            arrays[name][label] = array
    for name, label, same in copies:
        arrays[name][label] = arrays[name][same].copy()  # text of Arrow takes no memory
    for name, by_label in arrays.items():
        if by_label:
            frames_by_name[name] = _frame(name, labels[name], by_label)
    return {name: frames_by_name[name] for name in tables}


#: Columns that a corpus adds, and the columns whose values they have where nothing has a name.
_SAME = {SPEAKER_NAME.name: "speaker", RECORDING.name: "transcript_id"}


def _of_loaders(name: str, columns: dict[str, Values], recordings: Mapping[str, str]) -> dict[str, Values]:
    """Return the columns of a table with those that loaders add."""
    added: dict[str, Values] = {}
    for label, values in columns.items():
        added[label] = values
        if label == "transcript_id":
            added[RECORDING.name] = _names(values, recordings)
        elif label == "text" and name in CORRECTED_TABLES:
            added[TEXT_ORIGINAL.name] = pa.nulls(len(values), TEXT)
    return added


def _names(ids: Values, recordings: Mapping[str, str]) -> Values:
    """Return the name of the recording of each id."""
    if not len(ids):  # most tables of a transcript have no rows
        return pa.nulls(0, TEXT)
    encoded = (ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids).dictionary_encode()
    names = pa.array([recordings.get(transcript_id, transcript_id) for transcript_id in encoded.dictionary.to_pylist()])
    return names.cast(TEXT).take(encoded.indices)


def suited(frame: pd.DataFrame, *, category: bool = False, timedeltas: bool = False) -> pd.DataFrame:
    """Return a table with other dtypes on request.

    Example:
        >>> frame = suited(pd.DataFrame({"speaker": ["A"], "start_ms": [1500], "end_ms": [1800]}), timedeltas=True)
        >>> frame["start"].dt.total_seconds().to_list(), suited(frame, category=True)["speaker"].dtype.name
        ([1.5], 'category')
    """
    if category:
        frame = frame.astype({name: "category" for name in frame.columns if name in CATEGORIES})
    if timedeltas and {"start_ms", "end_ms"} <= set(frame.columns):
        frame = frame.copy(deep=False)
        place = list(frame.columns).index("end_ms") + 1
        for name in ("end", "start"):
            frame.insert(place, name, pd.to_timedelta(frame[f"{name}_ms"], unit="ms").astype("timedelta64[ms]"))
    return frame


def joined(parts: list[pd.DataFrame], ids: Sequence[str]) -> pd.DataFrame:
    """Return the rows of several parts of a table, with the categories of all. Empties the list, to save memory.

    Args:
        parts: DataFrames with `transcript_id` as `category`. The rows of a transcript are together in one of them.
    """
    columns, runs = list(parts[0].columns), _runs(parts, ids)
    arrays = [{name: frame[name].array for name in columns} for frame in parts]
    parts.clear()
    by_column: dict[str, Any] = {}
    for name in columns:
        values = [row.pop(name) for row in arrays]
        if isinstance(values[0], pd.Categorical):
            by_column[name] = union_categoricals(values, sort_categories=True)
        else:
            by_column[name] = _concatenated(values)
        if runs:
            by_column[name] = _concatenated([by_column[name][run] for run in runs])
    return pd.DataFrame(by_column, copy=False)


def _runs(parts: Sequence[pd.DataFrame], ids: Sequence[str]) -> list[slice]:
    """Return the rows of each transcript, in the order of `ids`. Empty if this is the order of the parts already."""
    slices: dict[str, slice] = {}
    first = 0
    for frame in parts:
        array: Any = frame["transcript_id"].array
        starts = np.flatnonzero(np.diff(array.codes, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(array)], strict=False):  # there may be no rows
            slices[array[start]] = slice(first + start, first + stop)
        first += len(array)
    runs = [slices[transcript_id] for transcript_id in ids if transcript_id in slices]
    return [] if runs == sorted(runs, key=lambda run: run.start) else runs


def _concatenated(arrays: Sequence[Any]) -> Any:
    """Return the values of pandas arrays of one dtype. A Series for each of thousands would take most of the time."""
    return type(arrays[0])._concat_same_type(arrays)


def empty_table(name: str) -> pa.Table:
    """Return a table of the dictionary without rows."""
    return TABLES[name].empty


def concat_tables(tables: Sequence[pa.Table], name: str) -> pa.Table:
    """Concatenate tables of the same name; an empty list gives a table without rows."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables) if tables else empty_table(name)


@lru_cache(maxsize=len(TABLES))
def _kinds(name: str) -> Mapping[str, tuple[Converter, pa.DataType]]:
    """Return how each column of a table is converted, and its type. Further columns are text."""
    kinds: dict[str, tuple[Converter, pa.DataType]] = defaultdict(lambda: (_strings, STRING))
    for column in CORPUS_TABLES[name].columns:
        is_plain = column.type == INT and not column.nullable
        kinds[column.name] = _numbers if is_plain else _CONVERTERS[column.type], column.type
    return kinds


@lru_cache(maxsize=4 * len(TABLES))
def _empty_frame(name: str, labels: tuple[str, ...]) -> pd.DataFrame:
    arrays = {}
    for label in labels:
        convert, dtype = _kinds(name)[label]
        arrays[label] = next(iter(convert([pa.array([], dtype)])))
    return pd.DataFrame(arrays, index=pd.RangeIndex(0))


def _frame(name: str, labels: tuple[str, ...], arrays: Mapping[str, Any]) -> pd.DataFrame:
    # The usual constructor checks again what is already known here and takes four times as long, which is a tenth of
    # the total time from bytes to DataFrames. This one exists since pandas 3.0.
    from_blocks = getattr(getattr(pd.api, "internals", None), "create_dataframe_from_blocks", None)
    if from_blocks is None:
        return pd.DataFrame({label: arrays[label] for label in labels})
    index, alone, together = _blocks(name, labels)
    blocks = [(arrays[labels[place[0]]], place) for place in alone]
    blocks += [(np.array([arrays[labels[place]] for place in places]), places) for places in together]
    frame: pd.DataFrame = from_blocks(blocks, pd.RangeIndex(len(arrays[labels[0]])), index.view())
    return frame


@lru_cache(maxsize=4 * len(TABLES))
def _blocks(name: str, labels: tuple[str, ...]) -> tuple[pd.Index, list[Places], list[Places]]:
    """Split columns into those that pandas stores separately and those that share one 2-D NumPy array."""
    alone: list[Places] = []
    together: dict[pa.DataType, list[int]] = {}
    for place, label in enumerate(labels):
        convert, dtype = _kinds(name)[label]
        if convert is _numbers:
            together.setdefault(dtype, []).append(place)
        else:
            alone.append(np.array([place], np.intp))
    return pd.Index(labels), alone, [np.array(places, np.intp) for places in together.values()]


def _strings(columns: Sequence[Values]) -> Iterable[Any]:
    if TEXT_DTYPE == STR and sum(map(len, columns)) > _CHUNK:
        return [STR.__from_arrow__(_with_shared_nulls(column)) for column in columns]
    text = _together(columns)
    if TEXT_DTYPE != STR:
        return _apart(text.to_numpy(), columns)
    if text.type != TEXT:
        text = pc.call_function("cast", [text], _LARGE)
    return _apart(STR.__from_arrow__(text), columns)


def _with_shared_nulls(text: Values) -> Values:
    """Return large strings in which all chunks of nulls share one short array: a null would take 8 bytes otherwise."""
    chunks: list[pa.Array] = text.chunks if text.null_count and isinstance(text, pa.ChunkedArray) else [text]
    if not any(len(chunk) and chunk.null_count == len(chunk) for chunk in chunks):
        return text if text.type == TEXT else pc.call_function("cast", [text], _LARGE)
    nulls, shared = pa.nulls(_CHUNK, TEXT), list[pa.Array]()
    for chunk in chunks:
        if chunk.null_count == len(chunk):
            shared += [nulls.slice(0, min(_CHUNK, len(chunk) - at)) for at in range(0, len(chunk), _CHUNK)]
        else:
            shared.append(chunk if chunk.type == TEXT else pc.call_function("cast", [chunk], _LARGE))
    return pa.chunked_array(shared, TEXT)


def _numbers(columns: Sequence[Values]) -> Iterable[Any]:
    return _apart(_together(columns).to_numpy(), columns)  # building the block copies them


def _times(columns: Sequence[Values]) -> Iterable[Any]:
    return [_UTC.__from_arrow__(column) for column in columns]


def _nullable_integers(columns: Sequence[Values]) -> Iterable[Any]:
    return map(pd.arrays.IntegerArray, *_masked(columns, 0))


def _booleans(columns: Sequence[Values]) -> Iterable[Any]:
    return map(pd.arrays.BooleanArray, *_masked(columns, False))


def _masked(columns: Sequence[Values], blank: int | bool) -> tuple[Iterable[Any], Iterable[Any]]:
    """Return the values and null mask of each column."""
    together = _together(columns)
    if not together.null_count:
        return _copies(together.to_numpy(), columns), [np.zeros(len(column), bool) for column in columns]
    return (
        _copies(together.fill_null(blank).to_numpy(), columns),
        _copies(together.is_null().to_numpy(), columns),
    )


def _together(columns: Sequence[Values]) -> pa.ChunkedArray:
    if all(isinstance(column, pa.Array) for column in columns):
        return pa.chunked_array(columns, columns[0].type)
    chunks = [column.chunks if isinstance(column, pa.ChunkedArray) else [column] for column in columns]
    return pa.chunked_array([chunk for part in chunks for chunk in part], columns[0].type)


def _apart(values: Any, columns: Sequence[Values]) -> Iterator[Any]:
    """Split one array into consecutive parts with the lengths of the columns."""
    start = 0
    for column in columns:
        stop = start + len(column)
        yield values[start:stop]
        start = stop


def _copies(values: Any, columns: Sequence[Values]) -> Iterator[Any]:
    """Like `_apart`, but copies each part, so that keeping one table does not keep the memory of all the others."""
    return (part.copy() for part in _apart(values, columns))


#: Conversion of each type of column; integers without nulls are plain numbers.
_CONVERTERS: Mapping[pa.DataType, Converter] = {
    STRING: _strings,
    FLOAT: _numbers,
    INT: _nullable_integers,
    BOOL: _booleans,
    TIMESTAMP: _times,
}
