"""Values that no other column has: found in a payload and written as JSON to the column `extra`.

These are the fields that the data dictionary does not define, and values that do not fit the type of their column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import orjson
import pyarrow as pa

from voxframe.frames.columns import TEXT
from voxframe.frames.json_schema import Shape
from voxframe.schema import Column

#: An exponent in JSON written by orjson. Integers beyond 64 bits get one too, because orjson reads them as floats.
_EXPONENT = re.compile(r"(?:^|[\[:,])-?\d(?:\.\d+)?e\+?\d")


class FastPathUnsupported(Exception):  # noqa: N818 - never leaves this package: the tolerant path takes over
    """The fast path cannot guarantee the right value; the tolerant path must read the payload."""


class Misfit:
    """A value that does not fit its column; it stands in the payload in place of the value."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Rest(NamedTuple):
    """A payload as plain Python objects, to look up what no column has.

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

    Args:
        value: A decoded object; any other value has no fields.
        shape: The known fields.

    Example:
        >>> from voxframe.frames.json_schema import shape
        >>> topic = shape(frozenset({"topics"}))["iab_categories_result"]["results"]["[]"]
        >>> unknown({"text": "Rain.", "mood": "wet", "timestamp": {"start": 1, "zone": "UTC"}}, topic)
        {'mood': 'wet', 'timestamp': {'zone': 'UTC'}}
    """
    if not isinstance(value, dict) or isinstance(shape, Column):
        return {}
    found = {}
    for name, child in value.items():
        known = shape.get(name)
        if known is None:
            found[name] = child
        elif isinstance(child, Misfit):
            found[name] = child.value
        elif isinstance(known, dict):
            if not isinstance(child, list if "[]" in known else dict):
                if not is_nothing(child):
                    found[name] = child
            elif known.keys().isdisjoint(("[]", "*")) and (inner := unknown(child, known)):
                found[name] = inner
    return found


def unknown_of_item(name: str, item: Any, shape: Shape) -> dict[str, Any]:
    """Return the fields of an element of a list or map that no column has; see `unknown`.

    Args:
        name: Name of the list or map. An element that does not fit is returned under this name.
        item: The element.
        shape: Its known fields.
    """
    return {name: item.value} if isinstance(item, Misfit) else unknown(item, shape)


def is_nothing(value: Any) -> bool:
    """Return True for a value that stands for an absent one: None, {}, [], "" or NaN."""
    return value is None or value in ({}, [], "") or value != value


def json_text(value: Any, *, exact: bool = True) -> str:
    """Encode any decoded value as JSON; NaN and infinity become null, unpaired surrogates U+FFFD.

    Args:
        value: The value.
        exact: False if orjson decoded the value, because it may lose digits of large integers.

    Raises:
        FastPathUnsupported: An integer may have lost digits.
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


def extra_text(found: Mapping[str, Any], *, exact: bool = True) -> str | None:
    """Return the value of a column `extra`: JSON with sorted names, or None if there are no unknown fields."""
    return json_text(dict(sorted(found.items())), exact=exact) if found else None


def decoded(raw: bytes | msgspec.Raw) -> Any:
    """Decode a part of a payload for the fast path.

    Raises:
        FastPathUnsupported: orjson cannot read it.
    """
    try:
        return orjson.loads(bytes(raw))
    except orjson.JSONDecodeError:
        raise FastPathUnsupported from None


def elements(value: Any) -> Sequence[Any]:
    """Return the elements of a list; any other value has none."""
    return value if isinstance(value, list) else ()


def field(value: Any, name: str) -> Any:
    """Return a field of an object; None if it is absent or the value is not an object."""
    return value.get(name) if isinstance(value, dict) else None


def without_lists(raw: bytes, doc: Any) -> Any:
    """Decode a payload to plain Python objects, with an empty list in place of everything that `doc` left raw.

    Args:
        raw: The payload.
        doc: The result of `voxframe.frames.json_schema.decoder` for these bytes.

    Raises:
        FastPathUnsupported: orjson cannot read it.
    """
    base = _address(raw)
    kept, end = [], 0
    for part in _raw_parts(doc):
        start = _address(part) - base
        kept.append(raw[end:start])
        end = start + len(memoryview(part))
    return decoded(b"[]".join([*kept, raw[end:]]))


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


def texts(found: Sequence[Mapping[str, Any]], *, exact: bool = True) -> pa.Array:
    """Return a column `extra` as an Arrow array."""
    made = [extra_text(one) for one in found]
    if not exact and may_be_inexact("\n".join(filter(None, made))):  # one search is faster than one per text
        raise FastPathUnsupported
    return pa.array(made, TEXT)
