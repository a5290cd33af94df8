"""The layout of tables and of payloads, derived from the data dictionary.

Rows, columns and Arrow tables become the columns of a table of the dictionary. The shape of a payload is a tree of
dicts, from the paths of columns: `{"[]": item}` is an array, `{"*": value}` an object with arbitrary keys, any other
dict an object with known keys, and a leaf is the `Column` that holds the value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.errors import OptionError
from voxframe.schema import BOOL, FLOAT, INT, STRING, TABLES, WORDS, Column
from voxframe.validators import listed

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


Shape: TypeAlias = "dict[str, Any] | Column"

_STEP = re.compile(r"\[\d*\]|[^.\[\]]+")
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_PYTHON: dict[pa.DataType, Any] = {STRING: str, INT: _INT64, FLOAT: float, BOOL: bool}

#: Shape of every list of words in a payload.
WORD_LIST = {
    "[]": {(c.path or "").rpartition(".")[2]: c for c in WORDS.columns if (c.path or "").startswith("words[].")}
}


def chosen(names: Collection[str] | None, allowed: tuple[str, ...]) -> frozenset[str]:
    """Return the requested tables; all allowed ones if `names` is None."""
    if names is None:
        return frozenset(allowed)
    requested = frozenset([names] if isinstance(names, str) else names)
    if unknown := sorted(requested - set(allowed)):
        raise OptionError(f"a transcript has no table {', '.join(unknown)}; available: {listed(allowed)}")
    return requested


@lru_cache(maxsize=64)
def shape(names: frozenset[str]) -> dict[str, Any]:
    """Return the shape of the part of a payload that the named tables are built from.

    Example:
        >>> shape(frozenset({"entities"}))["entities"]["[]"]["text"].description
        'The words that name it.'
    """
    root: dict[str, Any] = {}
    columns = [column for name in sorted(names) for column in TABLES[name].columns if column.path]
    for column in sorted(columns, key=lambda c: -len(c.path or "")):  # a container before a leaf of the same path
        *parents, last = steps(column.path or "")
        node = root
        for step in parents:
            node = node.setdefault(step, {})
        node.setdefault(last, WORD_LIST if last == "words" else column)
    return root


@lru_cache(maxsize=64)
def known_fields(names: frozenset[str]) -> dict[str, Any] | None:
    """Return the shape of everything that the dictionary defines in a response of the service.

    None if no row for the response itself is requested, because its unknown fields would have no row.
    """
    every = same_response(names)
    return None if "transcripts" in every - names else shape(every)


@lru_cache(maxsize=64)
def same_response(names: frozenset[str]) -> frozenset[str]:
    """Return all tables that are built from the same response of the service as these."""
    (source,) = {TABLES[name].source for name in names}
    return frozenset(name for name, table in TABLES.items() if table.source == source)


def steps(path: str) -> list[str]:
    """Split `a.b[].c` into a, b, [], c."""
    return ["[]" if step.startswith("[") else step for step in _STEP.findall(path)]


@lru_cache(maxsize=64)
def raw_lists(names: frozenset[str]) -> dict[tuple[str, ...], Shape]:
    """Return the lists of objects that `decoder` leaves raw: the steps to each, and the shape of its items."""
    return dict(_raw_lists(shape(names), ()))


def _raw_lists(node: Shape, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Shape]]:
    if isinstance(node, Column):
        return []
    if _is_raw(node):
        return [(path, node["[]"])]
    return [found for key, child in node.items() if key not in {"[]", "*"} for found in _raw_lists(child, (*path, key))]


def _is_raw(node: dict[str, Any]) -> bool:
    """Return True for a list of objects, except utterances and sentences, because these hold raw lists of words."""
    return isinstance(node.get("[]"), dict) and "words" not in node["[]"]


@lru_cache(maxsize=64)
def skipped(names: frozenset[str]) -> list[tuple[tuple[str, ...], tuple[bytes, bytes]]]:
    """Return the path to each list or object that only other tables use, and the two bytes with which it may begin.

    The second byte is that of null. A value that begins with another byte has a wrong type. It belongs in the row of
    the response, so code that builds this row must check the first byte.
    """
    return _skipped(shape(names), known_fields(names) or {}, ())


def _skipped(
    node: Any, types: dict[str, Any], path: tuple[str, ...]
) -> list[tuple[tuple[str, ...], tuple[bytes, bytes]]]:
    paths = []
    for key, child in types.items():
        if isinstance(child, Column) or not {"[]", "*"}.isdisjoint(types):
            continue
        if key not in node:
            paths.append(((*path, key), (b"[" if "[]" in child else b"{", b"n")))
        else:
            paths += _skipped(node[key], child, (*path, key))
    return paths


@lru_cache(maxsize=64)
def decoder(names: frozenset[str], *, strict: bool = False) -> msgspec.json.Decoder[Any]:
    """Return a decoder of the part of a payload that the named tables are built from; it skips everything else.

    Objects become structs with one attribute per field, None if the field is absent. Lists of objects, which are most
    of a payload, stay raw JSON: `voxframe.frames.json_lists` reads them to columns without creating an object per
    item. `strict` refuses unknown fields outside the raw lists if a requested table has a row for them.
    """
    return msgspec.json.Decoder(_type(shape(names), "payload", known_fields(names), strict=strict))


def _type(node: Shape, name: str, known: Any, *, strict: bool) -> Any:
    """Return the type of a node of a shape.

    `known` is the same node with the fields of all tables; None if unknown fields are ignored.
    """
    if isinstance(node, Column):
        return msgspec.Raw if node.json else _PYTHON[node.type]
    if _is_raw(node):
        return msgspec.Raw
    if "[]" in node:
        return list[_value(node["[]"], name, strict=strict)]  # type: ignore[misc]
    if "*" in node:
        return dict[str, _value(node["*"], name, strict=strict)]  # type: ignore[misc]
    inner = known or {}
    types = {key: _type(child, key, inner.get(key), strict=strict) for key, child in node.items()}
    types |= {key: msgspec.Raw for key in inner if key not in node}
    fields = [(key, kind if kind is msgspec.Raw else kind | None, None) for key, kind in types.items()]
    return msgspec.defstruct(name, fields, gc=False, forbid_unknown_fields=strict and known is not None)


def _value(node: Shape, name: str, *, strict: bool) -> Any:
    """Return the type of an element: a value may be null, an object may not, so that no reader has to check for it."""
    kind = _type(node, name, node, strict=strict)
    return kind | None if isinstance(node, Column) else kind
