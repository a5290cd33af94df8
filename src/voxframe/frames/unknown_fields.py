"""Unknown fields in lists of objects, found without decoding the objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voxframe.frames.columns import TEXT
from voxframe.frames.extra import FastPathUnsupported
from voxframe.schema import Column

Ints: TypeAlias = npt.NDArray[Any]

_NAMES = 8  # unknown names that are looked for; a payload with more is decoded as a whole
_BEGINNING = 5000  # bytes in which the names are looked for first
_WINDOW = 16  # bytes compared of a name and its quotes
_ENCODER = msgspec.json.Encoder()
_EXPONENT = re.compile(rb"[:\[,]-?\d(?:\.\d+)?e\d")


def unknown_texts(
    raws: Sequence[bytes | msgspec.Raw], items: pa.StructArray, shape: Mapping[str, Any]
) -> pa.Array | None:
    """Return the unknown fields of the objects in lists, as values of the column `extra`.

    Each field has a colon. If there are no more colons than values that were read, no field was left out; this takes a
    hundredth of the time of decoding. Otherwise, the names that are not known are searched for, and a decoder reads
    only the fields with these names. An unknown field in every word takes a quarter of the time of decoding.

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
    values = _values(items)
    none = pa.nulls(len(items), TEXT)
    if np.count_nonzero(np.frombuffer(text, np.uint8) == ord(":")) == values:
        return none
    keys = _keys(text)
    if keys == values:
        return none
    if not all(isinstance(column, Column) for column in shape.values()):
        # A name may occur at two levels. Such lists are a small part of a payload and are decoded as a whole. Unknown
        # fields in all labels of an hour take half the time of decoding the payload, almost all of it per label.
        return None
    for part in text[:_BEGINNING], text:  # most often, the first objects have all names
        names = _unknown_names(part, shape)
        if not names and part is not text:
            continue
        lines = _lines(names, raws) if names else b""
        if lines is None:
            return None
        rows = _split(lines) if names else none
        left = keys - _keys(lines)
        if len(rows) == len(items) and (left == values or left == values + _nulls(text, items)):
            return rows
    return None


def _lines(names: Collection[str], raws: Sequence[bytes | msgspec.Raw]) -> bytes | None:
    """Return an object with only the named fields for each object in the lists, as JSON lines; None if unreadable.

    Raises:
        FastPathUnsupported: A number may be written in another way than by the tolerant path.
    """
    try:
        lists = _decoder(tuple(sorted(names))).decode(b"[%b]" % b",".join(raws))
        lines = _ENCODER.encode_lines([item for items in lists if items for item in items])
    except (ValueError, RecursionError):  # msgspec's errors, and its refusal of a name with control characters
        return None
    if _may_have_exponents(lines):
        raise FastPathUnsupported
    return lines


def _split(lines: bytes) -> pa.Array:
    """Return the lines as an array of text; a line without fields is null."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int64)
    filled = np.packbits(np.diff(offsets) > len("{}"), bitorder="little")
    buffers = [filled, offsets, lines.replace(b"\n", b"")]
    return pa.Array.from_buffers(TEXT, len(ends), [pa.py_buffer(buffer) for buffer in buffers])


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    fields = [(f"f{place}", Any, msgspec.UNSET) for place in range(len(names))]
    renamed: Mapping[str, str] = {f"f{place}": name for place, name in enumerate(names)}
    item = msgspec.defstruct("Unknown", fields, rename=renamed, gc=False)
    return msgspec.json.Decoder(list[list[item] | None])  # type: ignore[valid-type]


def _may_have_exponents(lines: bytes) -> bool:
    """Return True if JSON may have a number such as 1e16, which orjson writes as 1e+16."""
    text = np.frombuffer(lines, np.uint8)
    places = np.flatnonzero(text == ord("e"))
    digits = (text - ord("0") < 10 for text in (text[places - 1], text[places + 1]))  # no line begins or ends with e
    return bool(np.any(np.logical_and(*digits))) and _EXPONENT.search(lines) is not None


def _unknown_names(text: bytes, known: Collection[str]) -> list[str]:
    """Return the names of keys that are not known; an empty list if this is uncertain or there are too many.

    Only the last bytes of a name are compared, so that a name with the same end may be missed. The caller counts keys.
    """
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((characters[:-1] == ord('"')) & (characters[1:] == ord(":")))
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


def _keys(text: bytes) -> int:
    """Count the keys: a colon after a key follows a quote or blank, those inside strings rarely do."""
    characters = np.frombuffer(text, np.uint8)
    before = characters[:-1]
    return int(np.count_nonzero((characters[1:] == ord(":")) & ((before == ord('"')) | (before <= ord(" ")))))


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
