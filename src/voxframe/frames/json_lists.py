"""Lists of objects, the bulk of a payload: parsed from raw JSON to Arrow columns, all lists of a payload at once.

Values that no other column has are written as JSON to the column `extra`. These are the fields that the data
dictionary does not define, and values that do not fit the type of their column. In lists of objects, most of them are
found without decoding the objects.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

from voxframe.frames.layout import TEXT, Shape, parse_type, raw_lists, same_response, steps
from voxframe.schema import EXTRA, FLOAT, INT, TABLES, Column

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
        >>> from voxframe.frames.layout import shape
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
    """Return the fields of an element of a list or map that no column has; all, under the name, if it does not fit."""
    return {name: item.value} if isinstance(item, Misfit) else unknown(item, shape)


def is_nothing(value: Any) -> bool:
    """Return True for a value that stands for an absent one: None, {}, [], "" or NaN."""
    return value is None or value in ({}, [], "") or value != value


def json_text(value: Any, *, exact: bool = True) -> str:
    """Encode any decoded value as JSON; NaN and infinity become null, unpaired surrogates U+FFFD.

    `exact` is False if orjson decoded the value, because it may lose digits of large integers.
    """
    try:
        text = orjson.dumps(value, _original).decode()
    except TypeError:  # integers beyond 64 bits, unpaired surrogates
        plain = json.loads(json.dumps(value, default=_original), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return whole_pairs(text)
    if not exact and may_be_inexact(text):
        raise FastPathUnsupported
    return text


def whole_pairs(text: str) -> str:
    """Return a text with each unpaired surrogate replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
        rows = _lines_as_text(lines) if names else nulls
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


def _lines_as_text(lines: bytes) -> pa.Array:
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


def _ends_with(high: npt.NDArray[Any], low: npt.NDArray[Any], name: bytes) -> npt.NDArray[np.bool_]:
    """Compare the last 16 bytes before each colon, as two integers, with a name in quotes."""
    quoted = b'"%b"' % name
    equal = _equal(high, quoted[-8:])
    return equal & _equal(low, quoted[-_WINDOW:-8]) if len(quoted) > 8 else equal


def _equal(windows: npt.NDArray[Any], end: bytes) -> npt.NDArray[np.bool_]:
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
