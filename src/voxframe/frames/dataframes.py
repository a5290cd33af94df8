"""Conversion of Arrow tables to DataFrames with the dtypes of the data dictionary."""

from __future__ import annotations

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
from voxframe.frames.layout import TEXT, Arrays, from_table
from voxframe.schema import BOOL, CORRECTED_TABLES, FLOAT, INT, STRING, TABLES, TEXT_ORIGINAL, TIMESTAMP

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

    Returns:
        Columns of str (NaN for null; object and None with pandas 2), int64, Int64 if the column is nullable, float64
        (NaN for null), boolean and datetime64[us, UTC]. Writing to it changes neither `table` nor another DataFrame.

    Example:
        >>> to_pandas(empty_table("entities"), "entities").dtypes["start_ms"]
        Int64Dtype()
    """
    if set(table.column_names).issuperset(TABLES[name].names):
        return all_to_pandas({name: from_table(name, table)})[name]
    arrays = _one_by_one(name, table)
    return pd.DataFrame(dict(zip(table.column_names, arrays, strict=True)), index=pd.RangeIndex(table.num_rows))


def all_to_pandas(
    tables: Mapping[str, Arrays], *, recordings: Mapping[str, str] | None = None
) -> dict[str, pd.DataFrame]:
    """Like `to_pandas` for several tables, given as column arrays by table name; faster than one table at a time.

    Args:
        recordings: Names of recordings by transcript id. If given, the tables have the columns that loaders add:
            `recording`, which is the id if there is no name, and that of `with_text_original`. Adding these to the
            DataFrames would take as long as all else.
    """
    loaded = recordings is not None
    filled: dict[str, list[Any]] = {}
    groups: dict[tuple[Converter, pa.DataType], tuple[list[Values], list[tuple[list[Any], list[int]]]]] = {}
    for name, columns in tables.items():
        if not len(columns[0]):
            continue
        into = filled[name] = [None] * len(columns)
        for key, places in _converters(name):
            values, targets = groups.setdefault(key, ([], []))
            values.extend([columns[place] for place in places])
            targets.append((into, places))
    for (convert, _), (values, targets) in groups.items():
        arrays = iter(convert(values))
        for into, places in targets:
            for place in places:
                into[place] = next(arrays)
    if recordings is not None:
        for name, made in filled.items():
            if name in CORRECTED_TABLES:
                made.insert(_place_of_original(name), _nulls(len(tables[name][0])))
            made.insert(1, _names(tables[name][0], recordings))
    return {
        name: _frame(name, filled[name], len(columns[0]), loaded)
        if name in filled
        else _empty_frame(name, loaded).copy()
        for name, columns in tables.items()
    }


def _names(ids: Values, recordings: Mapping[str, str]) -> Any:
    """Return the name of the recording of each id."""
    encoded = (ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids).dictionary_encode()
    names = pa.array([recordings.get(transcript_id, transcript_id) for transcript_id in encoded.dictionary.to_pylist()])
    return text_array(pa.chunked_array([names.cast(TEXT).take(encoded.indices)]))


def with_text_original(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Add the column `text_original`, which is null, after the `text` of a table that corrections can change.

    Example:
        >>> with_text_original(to_pandas(empty_table("words"), "words"), "words").columns[3:5].to_list()
        ['text', 'text_original']
    """
    if name in CORRECTED_TABLES and TEXT_ORIGINAL.name not in frame.columns:
        frame.insert([*frame.columns].index("text") + 1, TEXT_ORIGINAL.name, _nulls(len(frame)))
    return frame


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


def text_array(values: pa.ChunkedArray) -> Any:
    """Return text as a pandas array with the dtype of text."""
    return next(iter(_strings([values])))


def concat_tables(tables: Sequence[pa.Table], name: str) -> pa.Table:
    """Concatenate tables of the same name; an empty list gives a table without rows."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables) if tables else empty_table(name)


def _nulls(count: int) -> Any:
    return text_array(pa.chunked_array([pa.nulls(count, TEXT)]))


def _place_of_original(name: str) -> int:
    return TABLES[name].names.index("text") + 1


@lru_cache(maxsize=len(TABLES))
def _converters(name: str) -> list[tuple[tuple[Converter, pa.DataType], list[int]]]:
    """Group a table's column indices by converter and type; converting a whole group costs little more than one."""
    places: dict[tuple[Converter, pa.DataType], list[int]] = {}
    for place, column in enumerate(TABLES[name].columns):
        if column.type == INT:
            convert = _nullable_integers if column.nullable else _numbers
        else:
            convert = {STRING: _strings, FLOAT: _numbers, TIMESTAMP: _times, BOOL: _booleans}[column.type]
        places.setdefault((convert, column.type), []).append(place)
    return list(places.items())


@lru_cache(maxsize=2 * len(TABLES))
def _labels(name: str, loaded: bool) -> pd.Index:
    labels = [*TABLES[name].names]
    for label, place in _added(name, loaded).items():
        labels.insert(place, label)
    return pd.Index(labels)


def _added(name: str, loaded: bool) -> dict[str, int]:
    """Return the columns that loaders add, in the order in which they do, with their places at that time."""
    original = {TEXT_ORIGINAL.name: _place_of_original(name)} if name in CORRECTED_TABLES else {}
    return {**original, "recording": 1} if loaded else {}


@lru_cache(maxsize=2 * len(TABLES))
def _empty_frame(name: str, loaded: bool) -> pd.DataFrame:
    arrays = _one_by_one(name, TABLES[name].empty)
    for place in _added(name, loaded).values():
        arrays.insert(place, _nulls(0))
    return _frame(name, arrays, 0, loaded)


def _one_by_one(name: str, table: pa.Table) -> list[Any]:
    """Return pandas arrays of some columns of a table."""
    converters = {TABLES[name].names[place]: convert for (convert, _), places in _converters(name) for place in places}
    return [next(iter(converters[c]([values]))) for c, values in zip(table.column_names, table.columns, strict=True)]


def _frame(name: str, arrays: list[Any], rows: int, loaded: bool) -> pd.DataFrame:
    # The usual constructor checks again what is already known here and takes four times as long, which is a tenth of
    # the total time from bytes to DataFrames. This one exists since pandas 3.0.
    from_blocks = getattr(getattr(pd.api, "internals", None), "create_dataframe_from_blocks", None)
    if from_blocks is None:
        return pd.DataFrame(dict(zip(_labels(name, loaded), arrays, strict=True)))
    alone, together = _blocks(name, loaded)
    blocks = [(arrays[place[0]], place) for place in alone]
    blocks += [(np.array([arrays[place] for place in places]), places) for places in together]
    frame: pd.DataFrame = from_blocks(blocks, pd.RangeIndex(rows), _labels(name, loaded).view())
    return frame


@lru_cache(maxsize=2 * len(TABLES))
def _blocks(name: str, loaded: bool) -> tuple[list[Places], list[Places]]:
    """Split column indices into those that pandas stores separately and those that share one 2-D NumPy array."""
    alone: list[Places] = []
    together: list[Places] = []
    labels = _labels(name, loaded)
    for (convert, _), places in _converters(name):
        moved = labels.get_indexer(pd.Index([TABLES[name].names[place] for place in places]))
        if convert is _numbers:
            together.append(moved)
        else:
            alone += [moved[place : place + 1] for place in range(len(places))]
    return alone + [labels.get_indexer(pd.Index([label])) for label in _added(name, loaded)], together


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
