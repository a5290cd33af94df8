"""Split bytes and objects into payloads, and detect the kind of each.

Bytes hold one response, a list of responses, or JSON lines. Each response may be in an envelope such as `{"id",
"type", "transcript": {...}}`. Both the loaders and `Corpus.add` read them here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec
import orjson

from voxframe.errors import PayloadError
from voxframe.frames.json_schema import shape
from voxframe.frames.repair import not_an_object, parse, too_deep
from voxframe.schema import TRANSCRIPT_TABLES

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
