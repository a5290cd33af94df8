"""Conversion of language-model responses to the table `responses`, and of streaming messages to `stream` tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import orjson
import pyarrow as pa

from voxframe._text import moment_of
from voxframe.errors import PayloadError, PayloadWarning, caller
from voxframe.frames.json_lists import Misfit, elements, extra_text, json_text, unknown, unknown_of_item, whole_pairs
from voxframe.frames.layout import shape
from voxframe.frames.payloads import encode, parse, repair_payload
from voxframe.schema import RESPONSES, STREAM, STREAM_WORDS, Table

_COLUMNS = {column.name: column for column in RESPONSES.columns}
_USAGE = {name: _COLUMNS[name] for name in ("input_tokens", "output_tokens")}
_RESPONSE = {"request_id": _COLUMNS["request_id"], "response": _COLUMNS["response"], "usage": _USAGE}
_REPLY = {"question": _COLUMNS["prompt"], "answer": _COLUMNS["response"]}


@runtime_checkable
class ResponseWithRequest(Protocol):
    """A response that also holds its request."""

    raw: bytes
    task: str | None
    prompt: str | None
    transcript_ids: tuple[str, ...]
    created: datetime


#: One response, as an object, a dict or JSON.
ResponseSource: TypeAlias = "ResponseWithRequest | Mapping[str, Any] | bytes | str"

#: One response or several.
Responses: TypeAlias = "ResponseSource | Iterable[ResponseSource]"


def response_table(source: Responses) -> pa.Table:
    """Return the `responses` table: one row per response, or one row per question for question-answer.

    Args:
        source: Responses. Bare JSON of the service does not include the request, so those columns are null.

    Example:
        >>> table = response_table({"request_id": "r", "response": "Rain.", "usage": {"output_tokens": 2}})
        >>> table.select(["response", "output_tokens"]).to_pylist()
        [{'response': 'Rain.', 'output_tokens': 2}]
    """
    items: Iterable[object] = [source]
    if isinstance(source, Iterable) and not isinstance(source, ResponseWithRequest | Mapping | bytes | str):
        items = source
    return pa.Table.from_pylist([row for item in items for row in _rows(item)], RESPONSES.arrow)


def _rows(item: object) -> list[dict[str, Any]]:
    response = dict(_response(item.raw if isinstance(item, ResponseWithRequest) else item))
    request: dict[str, Any] = {"task": None, "prompt": None, "transcript_ids": None, "created": None}
    if isinstance(item, ResponseWithRequest):
        ids = json_text(list(item.transcript_ids))
        request = {"task": item.task, "prompt": item.prompt, "transcript_ids": ids, "created": item.created}
    usage = dict(response["usage"]) if isinstance(response.get("usage"), Mapping) else {}
    counts = {name: _count(usage.get(name)) for name in _USAGE}
    if usage:
        odd = {name: Misfit(usage[name]) for name in _USAGE if counts[name] is None and usage.get(name) is not None}
        response["usage"] = usage | odd
    response_row = {"request_id": _text(response.get("request_id")), **counts, **request}
    answers = response["response"]
    extra_fields = unknown(response, _RESPONSE)
    if not isinstance(answers, list) or not answers:  # an empty list gets a row too, for the fields of the response
        text = None if answers == [] else _text(answers)
        return [response_row | {"answer_idx": 0, "response": text, "extra": extra_text(extra_fields)}]
    return [
        response_row
        | _reply(idx, reply)
        | {"extra": extra_text((extra_fields if idx == 0 else {}) | unknown(reply, _REPLY))}
        for idx, reply in enumerate(answers)
    ]


def _reply(idx: int, reply: Any) -> dict[str, Any]:
    if isinstance(reply, Mapping):
        return {"answer_idx": idx, "response": _text(reply.get("answer")), "prompt": _text(reply.get("question"))}
    warnings.warn(
        f"response[{idx}] of a language model is {_text(reply)}, not an object with question and answer; it was "
        "kept as the answer",
        PayloadWarning,
        stacklevel=caller(),
    )
    return {"answer_idx": idx, "response": _text(reply)}


def _response(item: object) -> Mapping[str, Any]:
    response: Any = item
    if isinstance(item, bytes | str):
        with suppress(PayloadError):
            response = parse(_bytes(item))
    if not isinstance(response, Mapping) or "response" not in response:
        raise PayloadError(
            f"this {type(item).__name__} is not a language model response: it has no field 'response'. Pass the return "
            "value of client.summarize, ask, task, action_items or llm_response, or its JSON"
        )
    return response


def _bytes(item: bytes | str) -> bytes:
    """Return JSON as bytes. Unpaired surrogates become invalid UTF-8, which `parse` replaces."""
    return item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item


def _text(value: object) -> str | None:
    return value if value is None else whole_pairs(value if isinstance(value, str) else json_text(value))


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_count else None  # type: ignore[return-value]


@runtime_checkable
class Received(Protocol):
    """A message as stored in a session."""

    @property
    def raw(self) -> Mapping[str, Any]:
        """The message as received; empty for an entry that voxframe added."""

    @property
    def session_id(self) -> str | None:
        """The session's id; None before the session begins."""

    @property
    def idx(self) -> int:
        """The message's index in the session."""


@runtime_checkable
class Session(Protocol):
    """A streaming session, open or closed."""

    @property
    def messages(self) -> Iterable[Received]:
        """The messages received so far."""


#: A session, or messages of any number of sessions in order, as objects, dicts or JSON.
Messages: TypeAlias = "Session | Iterable[Received | Mapping[str, Any] | bytes | str]"

_SHAPE = shape(frozenset({"stream", "stream_words"}))
_WIRE = {column.name: column.path or "" for column in STREAM.columns}


def stream_table(source: Messages) -> pa.Table:
    """Return the `stream` table: one row per message.

    Args:
        source: A session, open or closed, or messages. Bare JSON messages belong to the session of the latest
            SessionBegins before them.

    Example:
        >>> table = stream_table([{"message_type": "FinalTranscript", "text": "Hello.", "audio_start": 0}])
        >>> table.select(["message_idx", "text", "start_ms"]).to_pylist()
        [{'message_idx': 0, 'text': 'Hello.', 'start_ms': 0}]
    """
    rows = []
    for session_id, idx, message, decoded in _each(source):
        row = {name: message.get(path) for name, path in _WIRE.items()}
        created = moment_of(row["created"])
        extra = unknown(decoded, _SHAPE)
        if row["created"] is not None and created is None:
            extra["created"] = row["created"]
        row |= {"session_id": session_id, "message_idx": idx, "created": created, "extra": extra_text(extra)}
        rows.append(row)
    return _table(STREAM, rows)


def stream_word_table(source: Messages, *, finals_only: bool = False) -> pa.Table:
    """Return the `stream_words` table: one row per word of each message."""
    rows = [
        {
            "session_id": session_id,
            "message_idx": message_idx,
            "word_idx": word_idx,
            "text": word.get("text"),
            "start_ms": word.get("start"),
            "end_ms": word.get("end"),
            "confidence": word.get("confidence"),
            "extra": extra_text(unknown_of_item("words", other, _SHAPE["words"]["[]"])),
        }
        for session_id, message_idx, message, decoded in _each(source)
        if not finals_only or message.get("message_type") == "FinalTranscript"
        for word_idx, (word, other) in enumerate(
            zip(message.get("words") or (), elements(decoded.get("words")), strict=True)
        )
    ]
    return _table(STREAM_WORDS, rows)


def _each(source: Messages) -> Iterator[tuple[str | None, int, dict[str, Any], dict[str, Any]]]:
    """Yield session id, index, repaired values and original object of each message."""
    if isinstance(source, Session):
        source = source.messages
    elif isinstance(source, Mapping | bytes | str) or not isinstance(source, Iterable):
        raise PayloadError(
            f"cannot read messages from {type(source).__name__}; pass a session, or an iterable of its messages"
        )
    session_id: str | None = None
    following = 0
    for item in source:
        if isinstance(item, Received):
            if item.raw:  # entries that voxframe added, such as gaps, are not messages
                yield item.session_id, item.idx, *_plain(encode(item.raw))
            continue
        message, decoded = _plain(_bytes(item) if isinstance(item, bytes | str) else encode(item))
        if message.get("message_type") == "SessionBegins":
            session_id, following = message.get("session_id"), 0
        yield session_id, following, message, decoded
        following += 1


def _plain(raw: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    clean, decoded = repair_payload(raw, _SHAPE)
    return orjson.loads(clean), decoded


def _table(kind: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, kind.arrow)
