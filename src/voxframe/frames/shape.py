"""The shape of a payload, worked out from the wire paths in the data dictionary, so that it is written down once.

A shape is a tree of dicts. `{"[]": item}` is an array, `{"*": value}` an object with names of the service's choice, any
other dict an object with known names, and a leaf is the `Column` that holds the value.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import msgspec
import pyarrow as pa

from voxframe.errors import OptionError
from voxframe.schema import BOOL, FLOAT, INT, STRING, STRINGS, TABLES, WORDS, Column

Shape: TypeAlias = "dict[str, Any] | Column"

_STEP = re.compile(r"\[\d*\]|[^.\[\]]+")
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_PYTHON: dict[pa.DataType, Any] = {STRING: str, INT: _INT64, FLOAT: float, BOOL: bool, STRINGS: str}

#: Shape of a list of words, wherever it stands.
WORD_LIST = {
    "[]": {(c.path or "").rpartition(".")[2]: c for c in WORDS.columns if (c.path or "").startswith("words[].")}
}


def chosen(names: Collection[str] | None, allowed: tuple[str, ...]) -> frozenset[str]:
    """The tables that are asked for: all where none is named.

    Raises:
        OptionError: A name is not among the allowed.
    """
    if names is None:
        return frozenset(allowed)
    wanted = frozenset([names] if isinstance(names, str) else names)
    if unknown := sorted(wanted - set(allowed)):
        raise OptionError(f"no table {', '.join(unknown)} is made from a transcript; there are {', '.join(allowed)}")
    return wanted


@lru_cache(maxsize=64)
def shape(names: frozenset[str]) -> dict[str, Any]:
    """Shape of the part of a payload that the named tables are made from.

    Args:
        names: Tables, all made from the same answer of the service.

    Returns:
        The tree. Paths of other tables are absent, so that a reader can skip them.

    Example:
        >>> shape(frozenset({"entities"}))["entities"]["[]"]["text"].description
        'The words that name it.'
    """
    root: dict[str, Any] = {}
    columns = [column for name in sorted(names) for column in TABLES[name].columns if column.path]
    for column in sorted(columns, key=lambda c: -len(c.path or "")):  # a container before a leaf of the same path
        *way, last = steps(column.path or "")
        node = root
        for step in way:
            node = node.setdefault(step, {})
        leaf = WORD_LIST if last == "words" else {"[]": column} if column.type == STRINGS else column
        node.setdefault(last, leaf)
    return root


def steps(path: str) -> list[str]:
    """`a.b[].c` as a, b, [], c."""
    return ["[]" if step.startswith("[") else step for step in _STEP.findall(path)]


@lru_cache(maxsize=64)
def raw_lists(names: frozenset[str]) -> dict[tuple[str, ...], Shape]:
    """Lists of objects that `decoder` leaves raw: the steps to each, and the shape of its items."""
    return dict(_raw_lists(shape(names), ()))


def _raw_lists(node: Shape, way: tuple[str, ...]) -> list[tuple[tuple[str, ...], Shape]]:
    if isinstance(node, Column):
        return []
    if _is_raw(node):
        return [(way, node["[]"])]
    return [found for key, child in node.items() if key not in {"[]", "*"} for found in _raw_lists(child, (*way, key))]


def _is_raw(node: dict[str, Any]) -> bool:
    """Whether a node is a list of objects, but for turns and sentences: these have lists of words, raw themselves."""
    return isinstance(node.get("[]"), dict) and "words" not in node["[]"]


@lru_cache(maxsize=64)
def decoder(names: frozenset[str]) -> msgspec.json.Decoder[Any]:
    """Strict decoder of the part of a payload that the named tables are made from; everything else is skipped.

    Objects become structs with an attribute per field, None where it is absent. Lists of objects, which are most of a
    payload, stay raw JSON: `voxframe.frames.lists` reads them to columns without an object per item.
    """
    return msgspec.json.Decoder(_type(shape(names), "payload"))


def _type(node: Shape, name: str) -> Any:
    if isinstance(node, Column):
        return msgspec.Raw if node.json else _PYTHON[node.type]
    if _is_raw(node):
        return msgspec.Raw
    if "[]" in node:
        return list[_value(node["[]"], name)]  # type: ignore[misc]
    if "*" in node:
        return dict[str, _value(node["*"], name)]  # type: ignore[misc]
    types = {key: _type(child, key) for key, child in node.items()}
    fields = [(key, kind if kind is msgspec.Raw else kind | None, None) for key, kind in types.items()]
    return msgspec.defstruct(name, fields, gc=False)


def _value(node: Shape, name: str) -> Any:
    """Type of an element. A value may be null; an object may not, else every reader had to ask."""
    kind = _type(node, name)
    return kind | None if isinstance(node, Column) else kind
