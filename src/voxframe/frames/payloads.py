"""Payloads in bytes and objects: where each one is, its kind, and the repair of one that the fast path refused.

Bytes hold one response, a list of responses, or JSON lines. Each response may be in an envelope such as `{"id",
"type", "transcript": {...}}`. Both the loaders and `Corpus.add` read them here. The repair, value by value, is the
tolerant path: it writes a payload as valid JSON.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec
import orjson

from voxframe.errors import PayloadError, PayloadWarning, caller
from voxframe.frames.json_lists import Misfit, is_nothing, json_text, whole_pairs
from voxframe.frames.layout import Shape, shape
from voxframe.schema import BOOL, FLOAT, INT, TRANSCRIPT_TABLES, Column

#: First bytes of files that are not JSON, what the files are, and what to do with them.
_KINDS: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(beginning, re.DOTALL), kind, advice)
    for beginning, kind, advice in (
        (
            rb"ID3|\xff[\xe2\xe3\xf0-\xf5\xf8-\xfd]|R(IFF|F64)....WAVE|FORM....AIF|fLaC|OggS|....ftyp|\x1aE\xdf\xa3",
            "audio or video",
            "transcribe it with client.transcribe or `voxframe transcribe`",
        ),
        (rb"%PDF", "a PDF document", "save its text as a .txt file"),
        (
            rb"PK\x03\x04",
            "a zip archive or an Office document",
            "pass the files in the archive, or save the text of the document as a .txt file",
        ),
        (rb"\x89PNG|\xff\xd8\xff|GIF8", "an image", "pass a transcript"),
        (
            rb"\x1f\x8b|\x28\xb5\x2f\xfd",
            "compressed with gzip or zstd",
            "decompress it, or give it as a file whose name ends in .gz or .zst",
        ),
    )
)


def not_json(raw: bytes, text: str, error: ValueError) -> PayloadError:
    """Return the error for bytes that are not JSON."""
    for beginning, kind, advice in _KINDS:
        if beginning.match(raw):
            return PayloadError(f"the payload is {kind}, not a transcript; {advice}")
    return _unreadable(_reason(text, error))


def not_an_object(document: Any) -> PayloadError:
    """Return the error for JSON that is not an object."""
    return PayloadError(
        f"a payload must be a JSON object, not {kind_of(document)}; pass one transcript, or fetch it again"
    )


def too_deep() -> PayloadError:
    """Return the error for a payload nested too deeply for the Python stack."""
    return _unreadable("the payload is nested too deeply")


def kind_of(value: Any) -> str:
    """Return a description of a JSON value.

    Example:
        >>> kind_of([1, 2]), kind_of("a"), kind_of(None)
        ('a list of 2', 'a string', 'null')
    """
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _unreadable(reason: str) -> PayloadError:
    return PayloadError(
        f"{reason}; fetch it again, or pass the response of the service unchanged or a file in one of the formats of "
        "voxframe.formats.FORMATS"
    )


def _reason(text: str, error: ValueError) -> str:
    start = text.lstrip()[:500]
    if not start:
        return "the payload is empty"
    if start.startswith("<"):
        return "the payload is a web page or XML, not JSON"
    if start[0] not in "{[":
        return f"the payload is not JSON: it begins with {start[:20]!r}"
    if not isinstance(error, json.JSONDecodeError):
        return f"the payload is not JSON ({error})"
    if error.msg == "Extra data":
        return f"the payload has extra data after its end (character {error.pos} of {len(text)})"
    if not text.rstrip().endswith(("}", "]")):
        return f"the payload is truncated after {len(text)} characters"
    return f"the payload is not JSON ({error.msg} at character {error.pos} of {len(text)})"


#: Path to a value: the steps to it, innermost first, as nested pairs. It is formatted only for a warning.
Place: TypeAlias = "tuple[Place, str | int] | None"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLS = {"true": True, "false": False}
_SHOWN = 5  # problems listed in one warning


def repair_payload(raw: bytes, shape: Shape) -> tuple[bytes, dict[str, Any]]:
    """Repair a payload to JSON with the shape and types of the data dictionary.

    Safe conversions are made silently: 42.0 and "42" to 42, 7 to "7" for a text field, "true" to true, `{}` to an empty
    list, NaN to null. Other values become null, with one warning that lists their paths: 42.5 or 2**64 for an integer,
    a list for a text. If a name occurs twice, the last value is kept. Numbers beyond the range of floats are read as
    text.

    Returns:
        UTF-8 JSON that the strict decoder of the same shape reads, and the payload with all its original fields, each
        value that became null in a `Misfit`.
    """
    repair = _Repair()
    document = parse(bytes(raw), repair)
    if not isinstance(document, dict):
        raise not_an_object(document)
    try:
        clean = repair.convert(document, shape, None)
    except RecursionError:  # json.dumps uses more stack per level than json.loads
        raise too_deep() from None
    repair.warn(document.get("id"))
    return orjson.dumps(clean), document


def parse(raw: bytes, repair: _Repair | None = None) -> Any:
    """Decode JSON in any Unicode encoding; NaN, control characters and invalid bytes are accepted."""
    text = _text(raw, repair or _Repair())
    try:
        return json.loads(text, strict=False, parse_int=_whole_number, parse_float=_float, parse_constant=_constant)
    except RecursionError:
        raise too_deep() from None
    except ValueError as e:
        raise not_json(raw, text, e) from None


class _Repair:
    """One pass over a document; collects the problems it finds."""

    def __init__(self) -> None:
        self.problems: list[tuple[Place, str]] = []

    def convert(self, value: Any, shape: Shape, place: Place) -> Any:
        if value is None:
            return None
        if isinstance(shape, Column):
            return self._leaf(value, shape, place)
        if "[]" in shape:
            if isinstance(value, list):
                item = shape["[]"]
                return [self._element(value, i, item, (place, i)) for i in range(len(value))]
            return self._misfit(value, "a list", place)
        if not isinstance(value, dict):
            return self._misfit(value, "an object", place)
        if "*" in shape:
            return {self._string(k, place): self._element(value, k, shape["*"], (place, k)) for k in value}
        return {k: self._member(value, k, child, (place, k)) for k, child in shape.items() if k in value}

    def _member(self, of: Any, key: str | int, shape: Shape, place: Place) -> Any:
        """Convert a member of an object or list; if it does not fit, put a `Misfit` in its place and return None."""
        converted = self.convert(of[key], shape, place)
        if not isinstance(converted, Misfit):
            return converted
        of[key] = converted
        return None

    def _element(self, of: Any, key: str | int, shape: Shape, place: Place) -> Any:
        """Convert an element of a list; a null object or list becomes an empty one, so that indices stay the same."""
        converted = self._member(of, key, shape, place)
        if converted is None and isinstance(shape, dict):
            if of[key] in ([], ""):  # fine as a missing field, wrong as a list element
                of[key] = self._wrong(of[key], "a list" if "[]" in shape else "an object", place)
            return [] if "[]" in shape else {}
        return converted

    def _leaf(self, value: Any, column: Column, place: Place) -> Any:
        if column.json:
            return orjson.Fragment(json_text(value))
        if column.type is INT:
            return self._integer(value, place)
        if column.type is FLOAT:
            number = _number(value)
            return self._misfit(value, "a number", place) if number is None else number
        if column.type is BOOL:
            return self._boolean(value, place)
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return json.dumps(value)
        return self._misfit(value, "text", place)

    def _integer(self, value: Any, place: Place) -> Any:
        if type(value) is int and -(2**63) <= value < 2**63:
            return value
        number = _number(value)
        if number is None or not number.is_integer():
            return self._misfit(value, "an integer", place)
        exact = int(value) if isinstance(value, int) or str(value).strip().lstrip("+-").isdecimal() else int(number)
        return exact if -(2**63) <= exact < 2**63 else self._misfit(value, "an integer of 64 bits", place)

    def _boolean(self, value: Any, place: Place) -> Any:
        word = value.strip().lower() if isinstance(value, str) else None
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
        return _BOOLS[word] if word in _BOOLS else self._misfit(value, "true or false", place)

    def _string(self, value: str, place: Place) -> str:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            self.problems.append((place, "an unpaired surrogate was replaced by U+FFFD"))
            return whole_pairs(value)
        return value

    def _misfit(self, value: Any, kind: str, place: Place) -> Any:
        """Return a value that does not fit as a `Misfit`, with a warning; None if it stands for an absent value."""
        return None if is_nothing(value) else self._wrong(value, kind, place)

    def _wrong(self, value: Any, kind: str, place: Place) -> Misfit:
        self.problems.append((place, f"{_brief(value)} is not {kind} and was read as null"))
        return Misfit(value)

    def warn(self, identifier: Any) -> None:
        if self.problems:
            which = f"the payload of {identifier!r}" if isinstance(identifier, str) else "a payload"
            problems = "; ".join(f"{_path(place)}: {problem}" for place, problem in self.problems[:_SHOWN])
            remainder = f"; and {len(self.problems) - _SHOWN} more" if len(self.problems) > _SHOWN else ""
            warnings.warn(f"{which} has invalid values: {problems}{remainder}", PayloadWarning, stacklevel=caller())


def _text(raw: bytes, repair: _Repair) -> str:
    encoding = json.detect_encoding(raw)  # with or without a byte order mark
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as e:
        name = encoding.upper().removesuffix("-SIG")
        repair.problems.append(
            (None, f"bytes that are not valid {name} (the first is byte {e.start}) were replaced by U+FFFD")
        )
        return raw.decode(encoding, "replace")


def _whole_number(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # Python refuses integers of thousands of digits
        return digits


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _constant(name: str) -> float | str:
    return math.nan if name == "NaN" else name


def _number(value: Any) -> float | None:
    """Return a value as a finite float, or None if it is not a number."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _path(place: Place) -> str:
    """Format a path for people: `words[3].start`."""
    steps = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".") or "the whole payload"


def _brief(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return kind_of(value)
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


Kind: TypeAlias = Literal["transcript", "sentences", "paragraphs"]
#: The JSON of each field of an object; None for a value that is not an object.
Members: TypeAlias = "dict[str, bytes] | None"

#: Responses that are neither a transcript nor an export, with how to read them, by a field that identifies them.
_OTHERS = {
    "matches": "a word search result; read it with load_word_matches",
    "transcripts": "a page of the transcript list; pass the ids in it, with client=...",
    "response": "a language model response; read it with load_responses",
    "message_type": "a streaming message; read it with load_stream",
    "transcript_id": "a webhook notification; pass its transcript_id, with client=...",
}
_EXPORTS: tuple[Kind, ...] = ("sentences", "paragraphs")
#: A finished transcript has at least one of these fields.
_CONTENT = frozenset({"words", "text", "utterances", "audio_url"})
_KNOWN = frozenset(shape(frozenset(TRANSCRIPT_TABLES))) - {"id"}
_ENVELOPES = 3  # maximum nesting of envelopes


@dataclass(frozen=True)
class Head:
    """The fields of a payload that identify it."""

    kind: Kind
    id: str | None
    status: str | None
    fields: frozenset[str]
    audio_url: str | None = None


def payloads(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each payload in some bytes, without its envelope, and its location.

    Yields:
        The location ("" for a single payload, "[2]" in a list, ":3" for the third line) and the payload's bytes,
        unchanged. Unreadable payloads are yielded too.

    Example:
        >>> list(payloads(b'[{"data": {"id": "a", "words": []}}]'))
        [('[0]', b'{"id": "a", "words": []}')]
    """
    for place, payload, _ in members_of_payloads(raw):
        yield place, payload


def members_of_payloads(raw: bytes) -> Iterator[tuple[str, bytes, Members]]:
    """Like `payloads`, but also yield the JSON of each field of the payload, for `head`; None if it is not an object.

    Finding the fields takes a fifth of the time of decoding the payload.
    """
    text = raw
    if json.detect_encoding(raw) != "utf-8":
        text = raw.decode(json.detect_encoding(raw), "replace").encode("utf-8", "replace")
    if text.lstrip()[:1] == b"[":
        items = _items(text)
        if not items:
            raise PayloadError("the list of payloads is empty; pass at least one transcript")
        for n, item in enumerate(items):
            yield f"[{n}]", *_opened(item)
    elif lines := _lines(text):
        for n, line in lines:
            yield f":{n}", *_opened(line)
    else:
        inner, members = _opened(text)
        yield "", raw if inner is text else inner, members


def head(raw: bytes) -> Head:
    """Return the kind, id, status and field names of a payload."""
    return head_of(raw, _members(raw))


def head_of(raw: bytes, fields: Members) -> Head:
    """Like `head`, for a payload and the fields that `members_of_payloads` found in it."""
    if fields is None:
        document = parse(raw)  # raises the error if it is not JSON
        raise too_deep() if isinstance(document, dict) else not_an_object(document)
    names = frozenset(fields)
    transcript_id, status, audio_url = (_scalar(fields.get(name)) for name in ("id", "status", "audio_url"))
    return Head(_kind(names), transcript_id, status, names, audio_url)


def encode(document: Mapping[str, Any]) -> bytes:
    """Encode an object as JSON; NumPy values and decimals become numbers, missing values of pandas become null.

    Example:
        >>> encode({"confidence": Decimal("0.5")})
        b'{"confidence":0.5}'
    """
    try:
        return orjson.dumps(document, _plain, orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # integers beyond 64 bits, lone surrogates, keys that are not str
        try:
            return json.dumps(dict(document), default=_plain).encode()
        except (TypeError, ValueError, RecursionError) as e:
            raise PayloadError(
                f"the dict cannot be encoded as JSON ({e}); pass the response of the service unchanged"
            ) from None


def _plain(value: Any) -> Any:
    """Convert a value to one that JSON can represent."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, pandas Series
        return value.tolist()
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()  # NaT is not equal to itself
    if type(value).__name__ == "NAType":
        return None
    raise TypeError(f"JSON cannot represent a value of type {type(value).__name__}")


def with_fields(raw: bytes, fields: bytes | msgspec.Raw) -> bytes:
    """Return a payload with other values of some fields. All others stay as they are.

    Args:
        fields: The fields as a JSON object. With `redact_pii`, unknown fields of the payload are left out, because they
            may hold the text without redaction.

    Example:
        >>> with_fields(b'{"id": "a", "entities": null}', b'{"entities": []}')
        b'{"id":"a","entities":[]}'
    """
    _, members = _opened(raw)
    new = msgspec.json.decode(fields, type=dict[str, msgspec.Raw])
    if bytes(new.get("redact_pii", msgspec.Raw(b"null"))) == b"true":
        members = {name: value for name, value in (members or {}).items() if name in {"id", *_KNOWN}}
    return msgspec.json.encode({name: msgspec.Raw(value) for name, value in (members or {}).items()} | new)


def _kind(fields: frozenset[str]) -> Kind:
    if not fields & _CONTENT:
        for export in _EXPORTS:
            if export in fields and "status" not in fields:
                return export
        if other := next((name for name in _OTHERS if name in fields), None):
            raise PayloadError(f"this payload is not a transcript but {_OTHERS[other]}")
        if not fields & _KNOWN:
            names = ", ".join(map(repr, sorted(fields)[:5])) or "none"
            raise PayloadError(
                f"this payload is not a transcript: it has no field such as words, text or status (its fields: "
                f"{names:.200}); pass the response of the service unchanged, or a transcript in one of the formats of "
                "voxframe.formats.FORMATS"
            )
    return "transcript"


def _items(text: bytes) -> list[bytes]:
    try:
        return [bytes(item) for item in msgspec.json.decode(text, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [json.dumps(item).encode() for item in parse(text)]


def _lines(text: bytes) -> list[tuple[int, bytes]]:
    """Return the number and bytes of each line of JSON lines; an empty list if the text is not JSON lines.

    JSON lines have at least two lines, and the first is an object.
    """
    if b"\n" not in text and b"\r" not in text:  # much faster than splitting
        return []
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    return lines if len(lines) > 1 and _members(lines[0][1]) is not None else []


def _opened(raw: bytes, depth: int = _ENVELOPES) -> tuple[bytes, Members]:
    """Return the only transcript or export inside an object that is neither, otherwise `raw`; and its fields."""
    fields = _members(raw)
    if not _is_envelope(fields) or not depth:
        return raw, fields
    objects = [value for name, value in (fields or {}).items() if name not in _KNOWN and value[:1] == b"{"]
    opened = [_opened(value, depth - 1) for value in objects]
    payloads = [pair for pair in opened if pair[1] is not None and not _is_envelope(pair[1])]
    return payloads[0] if len(payloads) == 1 else (raw, fields)


def _is_envelope(fields: Members) -> bool:
    """Return True if the fields of an object are neither those of a transcript nor those of an export."""
    return fields is not None and not fields.keys() & (_CONTENT | {*_EXPORTS})


def _members(raw: bytes) -> Members:
    """Return the JSON of each field of an object; None if it is not an object."""
    try:
        members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _tolerant_members(raw)
    return {name: bytes(value) for name, value in members.items()}


def _tolerant_members(raw: bytes) -> Members:
    try:
        members = parse(raw)
        return (
            {name: json.dumps(value).encode() for name, value in members.items()} if isinstance(members, dict) else None
        )
    except (PayloadError, RecursionError):
        return None


def _scalar(raw: bytes | None) -> str | None:
    """Return a JSON string or integer as text; None for any other value."""
    value = None if raw is None or raw[:1] in (b"{", b"[") else parse(raw)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)
