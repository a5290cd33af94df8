"""Lists of objects, the bulk of a payload: from raw JSON to Arrow columns, all lists of a payload in one reading."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import arro3.core
import arro3.io
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.frames.arrays import on_its_way
from voxframe.frames.shape import Shape, raw_lists, steps
from voxframe.schema import FLOAT, INT, TABLES, Column

#: Raw JSON of a list; None where the field is absent.
RawList: TypeAlias = msgspec.Raw | None
Way: TypeAlias = tuple[str, ...]
Columns: TypeAlias = "dict[str, pa.Array | pa.ChunkedArray]"

_BATCH = 64  # objects arro3 makes room for at a time; with its default it spends longer on that than on reading
_EXACT = 2**53  # floats hold every integer below


class Refused(Exception):  # noqa: N818 - never leaves this package: the tolerant way takes over
    """The fast way cannot promise the right value."""


def read_lists(objects: Sequence[Sequence[RawList]], names: frozenset[str], *, clean: bool) -> dict[Way, pa.ListArray]:
    """Raw lists as Arrow lists of structs, not checked yet: `columns` does it.

    Args:
        objects: Of each object that has lists, their raw JSON, in the order of `raw_lists(names)`.
        names: The tables that the lists are for.
        clean: Whether the lists come from the tolerant way.

    Returns:
        By the way to it in an object, an array with one list an object; a list that is absent is null.

    Raises:
        Refused: A value needs the tolerant way.
    """
    keys, wire = _wire(names, clean)
    pieces: list[Any] = []
    for lists in objects:
        pieces.append(b'{"":0')  # so that every list can follow a comma
        for key, raw in zip(keys, lists, strict=True):
            if raw is not None:
                pieces += (key, raw)
        pieces.append(b"}\n")
    try:
        table = pa.table(arro3.io.read_json(io.BytesIO(b"".join(pieces)), wire, batch_size=_BATCH))
    except pa.ArrowInvalid:
        raise Refused from None
    found = [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in table.columns]  # combining copies
    return dict(zip(raw_lists(names), found, strict=True))


@lru_cache(maxsize=64)
def _wire(names: frozenset[str], clean: bool) -> tuple[list[bytes], arro3.core.Schema]:
    """What stands before each list in the JSON that is read, and the schema to read it with."""
    lists = {".".join(way): item for way, item in raw_lists(names).items()}
    schema = pa.schema([(key, pa.list_(_arrow(item, clean=clean))) for key, item in lists.items()])
    return [b',"%b":' % key.encode() for key in lists], arro3.core.Schema.from_arrow(schema)


def _arrow(node: Shape, *, clean: bool) -> pa.DataType:
    # In an integer column arro3 cuts 42.5 to 42; read as a float, the fraction shows. What the tolerant way wrote has
    # integers only, and they may be beyond what floats hold.
    if isinstance(node, Column):
        return FLOAT if node.type == INT and not clean else on_its_way(node.type)
    if "[]" in node:
        return pa.list_(_arrow(node["[]"], clean=clean))
    return pa.struct([(key, _arrow(child, clean=clean)) for key, child in node.items()])


@dataclass(frozen=True)
class _Plan:
    """How a table is made from a list.

    Attributes:
        root: The way to the list.
        inner: Steps from an item to a list within it, and so on.
        positions: Columns for the position in each of these lists.
        leaves: Each column from the wire, at which of these lists it is, and the way to it from an item.
    """

    root: Way
    inner: tuple[str, ...]
    positions: tuple[str, ...]
    leaves: tuple[tuple[Column, int, Way], ...]


@lru_cache(maxsize=len(TABLES))
def _plan(name: str) -> _Plan:
    table = TABLES[name]
    paths = {column: steps(column.path) for column in table.columns if column.path and "[]" in column.path}
    deepest = max(paths.values(), key=lambda path: path.count("[]"))
    levels = _split(deepest)[:-1]
    leaves = [(column, path.count("[]") - 1, tuple(_split(path)[-1])) for column, path in paths.items()]
    positions = [column.name for column in table.columns if column.type == INT and not column.nullable]
    return _Plan(tuple(levels[0]), tuple(level[0] for level in levels[1:]), tuple(positions), tuple(leaves))


def _split(path: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for step in path:
        if step == "[]":
            parts.append([])
        else:
            parts[-1].append(step)
    return parts


def columns(names: Iterable[str], lists: Mapping[Way, pa.ListArray]) -> dict[str, Columns]:
    """Columns that come from lists, and positions, of some tables by name.

    Args:
        names: The tables.
        lists: Lists by the way to them, as `read_lists` gave them.

    Raises:
        Refused: A value needs the tolerant way.
    """
    made = {name: _columns(_plan(name), lists) for name in names}
    # All numbers of a kind at once cost little more than those of one column.
    _refuse_infinite([made[name][column] for name, column in _floats(made, FLOAT)])
    places = _floats(made, INT)
    whole = _integers([made[name][column] for name, column in places])
    start = 0
    for name, column in places:
        rows = len(made[name][column])
        made[name][column] = whole.slice(start, rows)
        start += rows
    return made


def _floats(made: Mapping[str, Columns], kind: pa.DataType) -> list[tuple[str, str]]:
    """Table and name of the columns of a kind that were read as floats."""
    columns = [(name, column) for name in made for column, _, _ in _plan(name).leaves if column.type == kind]
    return [(name, column.name) for name, column in columns if made[name][column.name].type == FLOAT]


def _columns(plan: _Plan, lists: Mapping[Way, pa.ListArray]) -> Columns:
    items = _items(lists[plan.root])
    position = [np.arange(len(items))]
    made = {column.name: _pick(items, way) for column, depth, way in plan.leaves if depth == 0}
    for depth, step in enumerate(plan.inner, 1):
        inner = items.field(step)
        parents = pc.list_parent_indices(inner)
        items = _items(inner)
        of = parents.to_numpy()
        position = [p[of] for p in position] + [np.arange(len(of)) - np.searchsorted(of, of)]
        made = {key: values.take(parents) for key, values in made.items()}
        made |= {column.name: _pick(items, way) for column, at, way in plan.leaves if at == depth}
    return made | {key: pa.array(values) for key, values in zip(plan.positions, position, strict=True)}


def _items(lists: pa.ListArray) -> pa.StructArray:
    items = lists.flatten()
    if items.null_count:
        raise Refused  # the tolerant way keeps the place of a null with an object without fields
    return items


def _pick(items: pa.StructArray, way: Way) -> pa.Array:
    values = items
    for step in way:
        values = values.field(step)
    return values


def _integers(columns: Sequence[pa.Array]) -> pa.ChunkedArray:
    numbers = pa.chunked_array(columns, FLOAT)
    try:
        whole = numbers.cast(INT)
    except pa.ArrowInvalid:  # a fraction would be cut
        raise Refused from None
    bounds = pc.min_max(whole).as_py()
    if bounds["min"] is not None and not -_EXACT < bounds["min"] <= bounds["max"] < _EXACT:
        raise Refused
    return whole


def _refuse_infinite(columns: Sequence[pa.Array]) -> None:
    if pc.all(pc.is_finite(pa.chunked_array(columns, FLOAT))).as_py() is False:  # "inf", "nan" and 1e400 were taken
        raise Refused
