"""Unknown fields in lists of objects, found without decoding the objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.frames.columns import TEXT
from voxframe.frames.extra import FastPathUnsupported, may_be_inexact
from voxframe.schema import Column

Ints: TypeAlias = npt.NDArray[Any]

_NAMES = 8  # unknown names that are looked for; a payload with more is decoded as a whole
_WINDOW = 16  # bytes compared of a name and its quotes


def unknown_texts(
    raws: Sequence[bytes | msgspec.Raw], items: pa.StructArray, shape: Mapping[str, Any]
) -> pa.Array | None:
    """Return the unknown fields of the objects in lists, as values of the column `extra`.

    Each field has a colon. If there are no more colons than values that were read, no field was left out; this takes a
    hundredth of the time of decoding. Otherwise, keys that are not known are found, and a decoder reads these fields
    only, which takes a fifth of the time.

    Args:
        raws: Raw lists of objects.
        items: The values that were read of all these objects.
        shape: Known fields of an object.

    Returns:
        None if it is uncertain whether all fields were found: the objects have to be decoded.

    Raises:
        FastPathUnsupported: A value needs the tolerant path.
    """
    text = b"".join([b" " * _WINDOW, *raws])
    colons = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(":"))
    values = _values(items)
    none = pa.nulls(len(items), TEXT)
    if len(colons) == values:
        return none
    keys = _keys(text, colons)
    if keys == values:
        return none
    if not all(isinstance(column, Column) for column in shape.values()):  # a name may occur at two levels
        return None
    names = _unknown_names(text, colons, shape)
    if not names:
        return none if keys == values + _nulls(text, items) else None
    try:
        lists = _decoder(tuple(sorted(names))).decode(b"[%b]" % b",".join(raws))
    except msgspec.MsgspecError:
        return None
    objects = [one for objects in lists if objects for one in objects]
    keys, values = _keys(text, colons), _values(items)
    columns = []
    for place, name in enumerate(sorted(names)):
        column = [*map(attrgetter(f"f{place}"), objects)]
        present = [raw for raw in column if raw is not None]
        members, inner = _members(name, present)
        keys -= len(present) + inner
        if len(present) < len(column):
            absent = np.array([raw is None for raw in column])
            members = members.take(pa.array(np.cumsum(~absent) - 1, mask=absent))
        columns.append(members)
    if len(objects) != len(items) or (keys != values and keys != values + _nulls(text, items)):
        return None
    rows = columns[0]
    if len(columns) > 1:
        lines = zip(*(column.to_pylist() for column in columns), strict=True)
        rows = pa.array([",".join(filter(None, line)) or None for line in lines], TEXT)
    return pc.binary_join_element_wise(pa.scalar("{", TEXT), rows, pa.scalar("}", TEXT), pa.scalar("", TEXT))


def _members(name: str, raws: Sequence[msgspec.Raw]) -> tuple[pa.Array, int]:
    """Return a member of objects as JSON, `"name":value`, for each value; and the number of keys inside the values.

    Raises:
        FastPathUnsupported: A value needs the tolerant path.
    """
    joined = b"[%b]" % b",".join(raws)
    try:
        values = orjson.loads(joined)
        text = orjson.dumps(values)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # orjson reads deeper nesting than it writes
        raise FastPathUnsupported from None
    kinds = {*map(type, values)}
    inner = 0
    if kinds & {dict, list}:
        inner = _keys(joined, np.flatnonzero(np.frombuffer(joined, np.uint8) == ord(":")))
    if kinds & {float, dict, list} and may_be_inexact(text.decode()):
        raise FastPathUnsupported
    before = orjson.dumps(name) + b":"
    if text.count(b",") >= len(values):  # commas inside values
        return pa.array([before + orjson.dumps(value) for value in values], pa.large_binary()).cast(TEXT), inner
    lines = before + text[1:-1].replace(b",", b"\n" + before)
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    offsets = np.concatenate([[0], ends - np.arange(len(ends)), [len(lines) - len(ends)]]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(lines.replace(b"\n", b""))]
    return pa.Array.from_buffers(TEXT, len(values), buffers), inner


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    fields = [(f"f{place}", msgspec.Raw | None, None) for place in range(len(names))]
    renamed: Mapping[str, str] = {f"f{place}": name for place, name in enumerate(names)}
    item = msgspec.defstruct("Unknown", [(name, msgspec.Raw, None) for name, _, _ in fields], rename=renamed, gc=False)
    return msgspec.json.Decoder(list[list[item] | None])  # type: ignore[valid-type]


def _unknown_names(text: bytes, colons: Ints, known: Collection[str]) -> list[str]:
    """Return the names of keys that are not known; an empty list if this is uncertain or there are too many.

    Only the last bytes of a name are compared, so that a name with the same end may be missed. The caller counts keys.
    """
    ends = colons[np.frombuffer(text, np.uint8)[colons - 1] == ord('"')] - 1
    windows = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))
    high, low = windows[ends - 7], windows[ends - 15]
    left = np.ones(len(ends), bool)
    for name in known:
        left &= ~_ends_with(high, low, name.encode())
    names: list[str] = []
    while left.any():
        end = int(ends[np.argmax(left)])
        key = text[text.rfind(b'"', 0, end) + 1 : end]
        if b"\\" in key or len(names) == _NAMES:
            return []
        names.append(key.decode())
        left &= ~_ends_with(high, low, key)
    return names


def _ends_with(high: Ints, low: Ints, name: bytes) -> npt.NDArray[np.bool_]:
    """Compare the last 16 bytes before each colon, as two integers, with a name in quotes."""
    quoted = b'"%b"' % name
    equal = _equal(high, quoted[-8:])
    return equal & _equal(low, quoted[-_WINDOW:-8]) if len(quoted) > 8 else equal


def _equal(windows: Ints, end: bytes) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (windows >> np.uint64(8 * (8 - len(end)))) == np.uint64(
        int.from_bytes(end, "little")
    )
    return found


def _keys(text: bytes, colons: Ints) -> int:
    """Count the keys: a colon after a key follows a quote or blank, those inside strings rarely do."""
    before = np.frombuffer(text, np.uint8)[colons - 1]
    return int(np.count_nonzero((before == ord('"')) | (before <= ord(" "))))


def _values(items: pa.StructArray) -> int:
    """Count the field values that are not null."""
    count = 0
    for place, kind in enumerate(items.type):
        values = items.field(place)
        count += len(values) - values.null_count
        if pa.types.is_struct(kind.type):
            count += _values(values)
        elif pa.types.is_list(kind.type):
            count += _values(values.flatten())
    return count


def _nulls(text: bytes, items: pa.StructArray) -> int:
    """Count the known fields that are null rather than absent, in objects whose fields are scalars."""
    count = 0
    for place, kind in enumerate(items.type):
        if items.field(place).null_count:
            key = b'"%b":' % kind.name.encode()
            count += text.count(key) - text.count(b"\\" + key) - (len(items) - items.field(place).null_count)
    return count
