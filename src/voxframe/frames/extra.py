"""Values that no other column has: found in a payload and written as JSON to the column `extra`.

These are the fields that the data dictionary does not define, and values that do not fit the type of their column. In
lists of objects, most of them are found without decoding the objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from voxframe.frames.columns import TEXT
from voxframe.frames.json_schema import Shape
from voxframe.schema import Column

Ints: TypeAlias = npt.NDArray[Any]

#: An exponent in JSON written by orjson. Integers beyond 64 bits get one too, because orjson reads them as floats.
_EXPONENT = re.compile(r"(?:^|[\[:,])-?\d(?:\.\d+)?e\+?\d")
#: The same in JSON written by msgspec, which writes no sign.
_PLAIN_EXPONENT = re.compile(rb"[:\[,]-?\d(?:\.\d+)?e\d")
#: Escapes of a blank, a quote or a colon. Rewriting JSON with these changes the count of `_keys`.
_ESCAPED_KEY_END = re.compile(rb"\\u00(?:2[02]|3[aA])")

_NAMES = 8  # unknown names that are looked for; a payload with more is decoded as a whole
_BEGINNING = 5000  # bytes in which the names are looked for first
_WINDOW = 16  # bytes compared of a name and its quotes
_ENCODER = msgspec.json.Encoder()


class FastPathUnsupported(Exception):  # noqa: N818 - never leaves this package: the tolerant path takes over
    """The fast path cannot guarantee the right value; the tolerant path must read the payload."""


class Misfit:
    """A value that does not fit its column; it stands in the payload in place of the value."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Rest(NamedTuple):
    """A payload as plain Python objects, to look up values that no column has.

    Attributes:
        values: The payload; None if it has no unknown fields outside lists of objects.
        whole: True if it comes from the tolerant path: it has all lists, integers of any size, and a `Misfit` for each
            value that does not fit. False: an empty list replaces each list of objects.
    """

    values: Any
    whole: bool


def unknown(value: Any, shape: Shape) -> dict[str, Any]:
    """Return the fields of an object that no column has, including those of nested objects.

    These are fields that the shape does not define, and values that do not fit it. Fields of a nested object are under
    the name of that object. Elements of lists are left out: they have rows of their own, each with its own `extra`.

    Example:
        >>> from voxframe.frames.json_schema import shape
        >>> topic = shape(frozenset({"topics"}))["iab_categories_result"]["results"]["[]"]
        >>> unknown({"text": "Rain.", "mood": "wet", "timestamp": {"start": 1, "zone": "UTC"}}, topic)
        {'mood': 'wet', 'timestamp': {'zone': 'UTC'}}
    """
    if not isinstance(value, dict) or isinstance(shape, Column):
        return {}
    fields = {}
    for name, child in value.items():
        of_name = shape.get(name)
        if of_name is None:
            fields[name] = child
        elif isinstance(child, Misfit):
            fields[name] = child.value
        elif isinstance(of_name, dict):
            if not isinstance(child, list if "[]" in of_name else dict):
                if not is_nothing(child):
                    fields[name] = child
            elif of_name.keys().isdisjoint(("[]", "*")) and (inner := unknown(child, of_name)):
                fields[name] = inner
    return fields


def unknown_of_item(name: str, item: Any, shape: Shape) -> dict[str, Any]:
    """Return the fields of an element of a list or map that no column has; see `unknown`.

    Args:
        name: Name of the list or map. An element that does not fit is returned under this name.
    """
    return {name: item.value} if isinstance(item, Misfit) else unknown(item, shape)


def is_nothing(value: Any) -> bool:
    """Return True for a value that stands for an absent one: None, {}, [], "" or NaN."""
    return value is None or value in ({}, [], "") or value != value


def json_text(value: Any, *, exact: bool = True) -> str:
    """Encode any decoded value as JSON; NaN and infinity become null, unpaired surrogates U+FFFD.

    Args:
        exact: False if orjson decoded the value, because it may lose digits of large integers.
    """
    try:
        text = orjson.dumps(value, _original).decode()
    except TypeError:  # integers beyond 64 bits, unpaired surrogates
        plain = json.loads(json.dumps(value, default=_original), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if not exact and may_be_inexact(text):
        raise FastPathUnsupported
    return text


def may_be_inexact(text: str) -> bool:
    """Return True if JSON that orjson read and wrote has a number that may have lost digits."""
    return "e" in text and _EXPONENT.search(text) is not None


def _original(value: Any) -> Any:
    if isinstance(value, Misfit):
        return value.value
    raise TypeError


def extra_text(fields: Mapping[str, Any], *, exact: bool = True) -> str | None:
    """Return the value of a column `extra`: JSON with sorted names, or None if there are no unknown fields."""
    return json_text(dict(sorted(fields.items())), exact=exact) if fields else None


def decoded(raw: bytes | msgspec.Raw) -> Any:
    """Decode a part of a payload for the fast path."""
    try:
        return orjson.loads(bytes(raw))
    except orjson.JSONDecodeError:
        raise FastPathUnsupported from None


def elements(value: Any) -> Sequence[Any]:
    """Return the elements of a list; any other value has none."""
    return value if isinstance(value, list) else ()


def elements_of(lists: pa.ListArray) -> pa.StructArray:
    """Return the elements of all lists; `flatten` takes five times as long."""
    values, bounds = lists.values, lists.offsets
    is_complete = not lists.null_count and bounds[0].as_py() == 0 and bounds[-1].as_py() == len(values)
    return values if is_complete else lists.flatten()


def field(value: Any, name: str) -> Any:
    """Return a field of an object; None if it is absent or the value is not an object."""
    return value.get(name) if isinstance(value, dict) else None


def without_lists(raw: bytes, doc: Any) -> Any:
    """Decode a payload to plain Python objects, with an empty list in place of everything that `doc` left raw."""
    base = _address(raw)
    parts, end = [], 0
    for part in _raw_parts(doc):
        start = _address(part) - base
        parts.append(raw[end:start])
        end = start + len(memoryview(part))
    return decoded(b"[]".join([*parts, raw[end:]]))


def _raw_parts(doc: Any) -> list[msgspec.Raw]:
    """Return all raw parts of a decoded payload, in the order of its bytes."""
    return sorted(_each_raw(doc), key=_address)


def _each_raw(value: Any) -> Iterator[msgspec.Raw]:
    if isinstance(value, msgspec.Raw):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _each_raw(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from _each_raw(item)


def _address(part: bytes | msgspec.Raw) -> int:
    address: int = np.frombuffer(part, np.uint8).ctypes.data if memoryview(part) else 0
    return address


def texts(rows: Sequence[Mapping[str, Any]], *, exact: bool = True) -> pa.Array:
    """Return a column `extra` as an Arrow array."""
    encoded = [extra_text(value) for value in rows]
    if not exact and may_be_inexact("\n".join(filter(None, encoded))):  # value search is faster than value per text
        raise FastPathUnsupported
    return pa.array(encoded, TEXT)


def unknown_texts(
    raws: Sequence[bytes | msgspec.Raw], items: pa.StructArray, shape: Mapping[str, Any]
) -> pa.Array | None:
    """Return the unknown fields of the objects in lists, as values of the column `extra`.

    Each field has a colon. If there are no more colons than values that were read, no field was left out; this takes a
    hundredth of the time of decoding. Otherwise, the names that are not known are searched for, and a decoder reads
    only the fields with these names. An unknown field in every word takes a quarter of the time of decoding.

    Returns:
        None if it is uncertain whether all fields were found: the objects have to be decoded.
    """
    text = b"".join([b" " * _WINDOW, *raws])
    values = _values(items)
    nulls = pa.nulls(len(items), TEXT)
    if np.count_nonzero(np.frombuffer(text, np.uint8) == ord(":")) == values:
        return nulls
    keys = _keys(text)
    if keys == values:
        return nulls
    if not all(isinstance(column, Column) for column in shape.values()):
        # A name may occur at two levels. Such lists are a small part of a payload and are decoded as a whole. Unknown
        # fields in all labels of an hour take half the time of decoding the payload, almost all of it per label.
        return None
    if b"\\u00" in text and _ESCAPED_KEY_END.search(text):  # `in` is faster, and often enough
        return None
    for part in text[:_BEGINNING], text:  # most often, the first objects have all names
        names = _unknown_names(part, shape)
        if not names and part is not text:
            continue
        lines = _lines(names, raws) if names else b""
        if lines is None:
            return None
        rows = _split(lines) if names else nulls
        missing = keys - _keys(lines)
        if len(rows) == len(items) and (missing == values or missing == values + _nulls(text, lines, items)):
            return rows
    return None


def _lines(names: Collection[str], raws: Sequence[bytes | msgspec.Raw]) -> bytes | None:
    """Return an object with only the named fields for each object in the lists, as JSON lines; None if unreadable."""
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
    return bool(np.any(np.logical_and(*digits))) and _PLAIN_EXPONENT.search(lines) is not None


def _unknown_names(text: bytes, allowed: Collection[str]) -> list[str]:
    """Return the names of keys that are not known; an empty list if this is uncertain or there are too many.

    Only the last bytes of a name are compared, so that a name with the same end may be missed. The caller counts keys.
    """
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((characters[:-1] == ord('"')) & (characters[1:] == ord(":")))
    windows = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))
    high, low = windows[ends - 7], windows[ends - 15]
    unmatched = np.ones(len(ends), bool)
    for name in allowed:
        unmatched &= ~_ends_with(high, low, name.encode())
    names: list[str] = []
    while unmatched.any():
        end = int(ends[np.argmax(unmatched)])
        key = text[text.rfind(b'"', 0, end) + 1 : end]
        if b"\\" in key or len(names) == _NAMES:
            return []
        names.append(key.decode())
        unmatched &= ~_ends_with(high, low, key)
    return names


def _ends_with(high: Ints, low: Ints, name: bytes) -> npt.NDArray[np.bool_]:
    """Compare the last 16 bytes before each colon, as two integers, with a name in quotes."""
    quoted = b'"%b"' % name
    equal = _equal(high, quoted[-8:])
    return equal & _equal(low, quoted[-_WINDOW:-8]) if len(quoted) > 8 else equal


def _equal(windows: Ints, end: bytes) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = (windows >> np.uint64(8 * (8 - len(end)))) == np.uint64(
        int.from_bytes(end, "little")
    )
    return equal


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
            count += _values(elements_of(values))
    return count


def _nulls(text: bytes, lines: bytes, items: pa.StructArray) -> int:
    """Count the known fields that are null rather than absent, in objects whose fields are scalars."""
    count = 0
    for place, kind in enumerate(items.type):
        if items.field(place).null_count:
            key = b'"%b":' % kind.name.encode()
            count_of, nested = (part.count(key) - part.count(b"\\" + key) for part in (text, lines))
            count += count_of - nested - (len(items) - items.field(place).null_count)
    return count
