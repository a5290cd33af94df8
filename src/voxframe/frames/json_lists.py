"""Lists of objects, the bulk of a payload: parsed from raw JSON to Arrow columns, all lists of a payload at once."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import arro3.core
import arro3.io
import msgspec
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.frames.columns import TEXT, parse_type
from voxframe.frames.extra import (
    FastPathUnsupported,
    Misfit,
    decoded,
    elements,
    elements_of,
    field,
    texts,
    unknown_of_item,
    unknown_texts,
)
from voxframe.frames.json_schema import Shape, raw_lists, same_response, steps
from voxframe.schema import EXTRA, FLOAT, INT, TABLES, Column

#: Raw JSON of a list; None where the field is absent.
RawList: TypeAlias = msgspec.Raw | None
FieldPath: TypeAlias = tuple[str, ...]
Ints: TypeAlias = npt.NDArray[np.int64]
Columns: TypeAlias = "dict[str, pa.Array | pa.ChunkedArray]"

#: Name of the column with the position of the payload, if several were read together.
PAYLOAD = "payload"

_BATCH = 64  # objects for which arro3 allocates at a time; with its default it spends longer allocating than reading
_EXACT = 2**53  # floats represent every smaller integer exactly


class Lists(NamedTuple):
    """Lists of objects as they were read.

    Attributes:
        arrays: A list of structs for each object that can have such a list; null if it is absent.
        items: All elements decoded, with their unknown fields; None if `extra` has these.
        exact: True if these were decoded without loss.
        extra: The column `extra` of the elements; None if `items` has the fields. With nested lists it has only nulls.
        counts: Number of elements of each payload. None (default): all elements are of one payload.
    """

    arrays: pa.ListArray
    items: Sequence[Any] | None
    exact: bool
    extra: pa.Array | None = None
    counts: Ints | None = None


def read_lists(
    objects: Sequence[Sequence[RawList]], names: frozenset[str], whole: Sequence[Sequence[Any]] | None
) -> dict[FieldPath, Lists]:
    """Parse raw lists to Arrow lists of structs; `columns` checks the values later.

    Args:
        objects: For each object that has lists, their raw JSON, in the order of `raw_lists(names)`.
        whole: The same lists decoded with all their fields, if the raw ones come from the tolerant path;
            None otherwise.
    """
    arrays = _native(objects, names) if whole is None else _repaired(objects, names)
    by_path = {}
    raw_of: Mapping[FieldPath, Any] = raw_lists(same_response(names))
    for place, (path, array) in enumerate(zip(raw_lists(names), arrays, strict=True)):
        items: list[Any] | None = None
        extra = None
        if whole is not None:
            items = [item for lists in whole for item in elements(lists[place])]
        else:
            raws: list[Any] = [lists[place] for lists in objects if lists[place] is not None]
            extra = unknown_texts(raws, elements_of(array), raw_of[path])
            if extra is None:
                items = [element for raw in raws for element in elements(decoded(raw))]
        by_path[path] = Lists(array, items, whole is not None, extra)
    return by_path


def _native(objects: Sequence[Sequence[RawList]], names: frozenset[str]) -> list[pa.ListArray]:
    keys, wire = _wire(names)
    pieces: list[Any] = []
    for lists in objects:
        pieces.append(b'{"":0')  # a first member, so that every list can follow a comma
        for key, raw in zip(keys, lists, strict=True):
            if raw is not None:
                pieces += (key, raw)
        pieces.append(b"}\n")
    text = b"".join(pieces)
    if _has_nul(text):
        raise FastPathUnsupported
    try:
        table = pa.table(arro3.io.read_json(io.BytesIO(text), wire, batch_size=_BATCH))
    except (pa.ArrowException, OSError):  # pyarrow raises both
        raise FastPathUnsupported from None
    return [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in table.columns]  # combining copies


def _has_nul(text: bytes) -> bool:
    """Return True if JSON has a NUL character, raw or as an escape.

    arro3 quotes a value of the wrong type in its error. An error text with a NUL ends the process: it passes through
    the Arrow C stream interface as a C string, and Rust panics outside any handler. The search for a backslash comes
    first, because it takes 1/30 of the time; `rfind` takes half the time of `in`.
    """
    return b"\0" in text or (b"\\" in text and text.rfind(b"\\u0000") >= 0)


def _repaired(objects: Sequence[Sequence[RawList]], names: frozenset[str]) -> list[pa.ListArray]:
    """Convert lists that the tolerant path wrote. They are rare, so pyarrow builds them from Python objects."""
    columns: list[list[Any]] = [
        [None if raw is None else orjson.loads(bytes(raw)) for raw in column] for column in zip(*objects, strict=True)
    ]
    types = [pa.list_(_arrow(item, exact=True)) for item in raw_lists(names).values()]
    return [pa.array(column, kind) for column, kind in zip(columns or [[] for _ in types], types, strict=True)]


@lru_cache(maxsize=64)
def _wire(names: frozenset[str]) -> tuple[list[bytes], arro3.core.Schema]:
    """Return the JSON that precedes each list in the text to parse, and the schema to parse it with."""
    lists = {".".join(path): item for path, item in raw_lists(names).items()}
    schema = pa.schema([(key, pa.list_(_arrow(item, exact=False))) for key, item in lists.items()])
    return [b',"%b":' % key.encode() for key in lists], arro3.core.Schema.from_arrow(schema)


def _arrow(node: Shape, *, exact: bool) -> pa.DataType:
    # arro3 truncates 42.5 to 42 in an integer column; reading it as a float keeps the fraction, to be refused later.
    # The tolerant path writes integers only, and a float may not represent them exactly.
    if isinstance(node, Column):
        return FLOAT if node.type == INT and not exact else parse_type(node.type)
    if "[]" in node:
        return pa.list_(_arrow(node["[]"], exact=exact))
    return pa.struct([(key, _arrow(child, exact=exact)) for key, child in node.items()])


@dataclass(frozen=True)
class _Plan:
    """Plan to build a table from a list.

    Attributes:
        positions: Columns for the index in each of these lists.
        shape: Shape of an item.
    """

    root: FieldPath
    inner: tuple[str, ...]
    positions: tuple[str, ...]
    leaves: tuple[tuple[Column, int, FieldPath], ...]
    shape: Shape

    @property
    def outer(self) -> bool:
        """Return True if rows combine values of an item with those of a nested list, so that every item needs a row."""
        return any(depth == 0 for _, depth, _ in self.leaves)


@lru_cache(maxsize=len(TABLES))
def _plan(name: str) -> _Plan:
    table = TABLES[name]
    paths = {column: steps(column.path) for column in table.columns if column.path and "[]" in column.path}
    deepest = max(paths.values(), key=lambda path: path.count("[]"))
    levels = _split(deepest)[:-1]
    leaves = [(column, path.count("[]") - 1, tuple(_split(path)[-1])) for column, path in paths.items()]
    positions = [column.name for column in table.columns if column.type == INT and not column.nullable]
    root = tuple(levels[0])
    inner = tuple(level[0] for level in levels[1:])
    return _Plan(root, inner, tuple(positions), tuple(leaves), raw_lists(same_response(frozenset({name})))[root])


def _split(path: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for step in path:
        if step == "[]":
            parts.append([])
        else:
            parts[-1].append(step)
    return parts


def columns(names: Iterable[str], lists: Mapping[FieldPath, Lists]) -> dict[str, Columns]:
    """Build the list-based columns and the index columns of some tables, by table name."""
    arrays = {name: _columns(_plan(name), lists) for name in names}
    # Converting all numbers of one type at once costs little more than one column.
    _refuse_infinite([arrays[name][column] for name, column in _floats(arrays, FLOAT)])
    places = _floats(arrays, INT)
    integers = _integers([arrays[name][column] for name, column in places])
    start = 0
    for name, column in places:
        rows = len(arrays[name][column])
        arrays[name][column] = integers.slice(start, rows)
        start += rows
    return arrays


def _floats(arrays: Mapping[str, Columns], kind: pa.DataType) -> list[tuple[str, str]]:
    """Return table and column name of the columns of a type that were read as floats."""
    columns = [(name, column) for name in arrays for column, _, _ in _plan(name).leaves if column.type == kind]
    return [(name, column.name) for name, column in columns if arrays[name][column.name].type == FLOAT]


def _columns(plan: _Plan, lists: Mapping[FieldPath, Lists]) -> Columns:
    json_list = lists[plan.root]
    items = _items(json_list.arrays)
    position, names = [np.arange(len(items))], plan.positions
    if json_list.counts is not None:
        of = np.repeat(np.arange(len(json_list.counts)), json_list.counts)
        position, names = [of, position[0] - (np.cumsum(json_list.counts) - json_list.counts)[of]], (PAYLOAD, *names)
    picked = {column.name: _pick(items, path) for column, depth, path in plan.leaves if depth == 0}
    for depth, step in enumerate(plan.inner, 1):
        inner = items.field(step)
        parents = pc.list_parent_indices(inner)
        items = _items(inner)
        if plan.outer:
            parents, items = _one_at_least(parents, items, len(inner))
        of = parents.to_numpy()
        position = [p[of] for p in position] + [np.arange(len(of)) - np.searchsorted(of, of)]
        picked = {key: values.take(parents) for key, values in picked.items()}
        picked |= {column.name: _pick(items, path) for column, at, path in plan.leaves if at == depth}
    picked[EXTRA.name] = _extra(plan, json_list, len(items))
    return picked | {key: pa.array(values) for key, values in zip(names, position, strict=True)}


def _one_at_least(parents: pa.Array, items: pa.StructArray, count: int) -> tuple[pa.Array, pa.StructArray]:
    """Return the items of nested lists and the outer item of each; an outer item without nested items gets a null."""
    of = parents.to_numpy()
    missing = np.flatnonzero(np.bincount(of, minlength=count) == 0)
    if not len(missing):
        return parents, items
    at = np.insert(np.arange(len(of)), np.searchsorted(of, missing), -1)
    of = np.insert(of, np.searchsorted(of, missing), missing)
    return pa.array(of), items.take(pa.array(at, mask=at < 0))


def _extra(plan: _Plan, lists: Lists, count: int) -> pa.Array:
    """Return the unknown fields of each of `count` rows.

    If a row also holds values of the outer item, the fields of the nested item are under the name of its list.
    """
    if lists.extra is not None:
        return lists.extra if not plan.inner else pa.nulls(count, TEXT)
    shape: Any = plan.shape
    outer = plan.outer
    rows = [(item, unknown_of_item(plan.root[-1], item, shape)) for item in lists.items or ()]
    for step in plan.inner:
        shape = shape[step]["[]"]
        rows = [
            (
                inner,
                of_outer | (extras if isinstance(inner, Misfit) else {step: extras} if extras else {})
                if outer
                else extras,
            )
            for item, of_outer in rows
            for inner in elements(field(item, step)) or ([None] if outer else [])
            for extras in [unknown_of_item(step, inner, shape)]
        ]
    return texts([fields for _, fields in rows], exact=lists.exact)


def _items(lists: pa.ListArray) -> pa.StructArray:
    items = elements_of(lists)
    if items.null_count:
        raise FastPathUnsupported  # the tolerant path replaces a null with an object without fields
    return items


def _pick(items: pa.StructArray, path: FieldPath) -> pa.Array:
    values = items
    for step in path:
        if values.null_count:  # `field` is faster, but returns arbitrary values below a null
            values = pc.call_function("struct_field", [values], pc.StructFieldOptions([step]))
        else:
            values = values.field(step)
    return values


def _integers(columns: Sequence[pa.Array]) -> pa.ChunkedArray:
    numbers = pa.chunked_array(columns, FLOAT)
    try:
        cast = numbers.cast(INT)
    except pa.ArrowInvalid:  # a fraction would be lost
        raise FastPathUnsupported from None
    bounds = pc.min_max(cast).as_py()
    if bounds["min"] is not None and not -_EXACT < bounds["min"] <= bounds["max"] < _EXACT:
        raise FastPathUnsupported
    return cast


def _refuse_infinite(columns: Sequence[pa.Array]) -> None:
    if pc.all(pc.is_finite(pa.chunked_array(columns, FLOAT))).as_py() is False:  # "inf", "nan" or 1e400 was accepted
        raise FastPathUnsupported
