"""Messages of streaming sessions to the tables `stream` and `stream_words`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import orjson
import pyarrow as pa

from voxframe.errors import PayloadError
from voxframe.frames.shape import shape
from voxframe.frames.tolerant import put_right
from voxframe.schema import STREAM, STREAM_WORDS, Table


@runtime_checkable
class Received(Protocol):
    """A message as a session holds it."""

    @property
    def raw(self) -> Mapping[str, Any]:
        """The message as it came; empty where the service sent none."""

    @property
    def session_id(self) -> str | None:
        """Its session."""

    @property
    def idx(self) -> int:
        """Its position in the session."""


@runtime_checkable
class Session(Protocol):
    """A session, running or over."""

    @property
    def messages(self) -> Iterable[Received]:
        """Its messages so far."""


#: A session; or messages of any number of sessions, in their order, as objects, dicts or JSON.
Messages: TypeAlias = "Session | Iterable[Received | Mapping[str, Any] | bytes | str]"

_SHAPE = shape(frozenset({"stream", "stream_words"}))
_WIRE = {column.name: column.path or "" for column in STREAM.columns}


def stream_table(source: Messages) -> pa.Table:
    """The `stream` table: a row per message.

    Args:
        source: A session, also while it runs, or messages. Messages that are bare JSON belong to the session whose
            SessionBegins came last before them.

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: A message is no JSON object, or the source holds no messages.

    Example:
        >>> table = stream_table([{"message_type": "FinalTranscript", "text": "Hello.", "audio_start": 0}])
        >>> table.select(["message_idx", "text", "start_ms"]).to_pylist()
        [{'message_idx': 0, 'text': 'Hello.', 'start_ms': 0}]
    """
    rows = []
    for session_id, idx, message in _each(source):
        row = {name: message.get(path) for name, path in _WIRE.items()}
        rows.append(row | {"session_id": session_id, "message_idx": idx, "created": _moment(row["created"])})
    return _table(STREAM, rows)


def stream_word_table(source: Messages, *, finals_only: bool = False) -> pa.Table:
    """The `stream_words` table: a row per word of each message.

    Args:
        source: As for `stream_table`.
        finals_only: Leave out the words of partials, which come again in the finals.

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: A message is no JSON object, or the source holds no messages.
    """
    rows = [
        {
            "session_id": session_id,
            "message_idx": message_idx,
            "word_idx": word_idx,
            "text": word.get("text"),
            "start_ms": word.get("start"),
            "end_ms": word.get("end"),
            "confidence": word.get("confidence"),
        }
        for session_id, message_idx, message in _each(source)
        if not finals_only or message.get("message_type") == "FinalTranscript"
        for word_idx, word in enumerate(message.get("words") or ())
    ]
    return _table(STREAM_WORDS, rows)


def _each(source: Messages) -> Iterator[tuple[str | None, int, dict[str, Any]]]:
    """Session, position and values of each message, put right where it needs to be."""
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
            if item.raw:  # what voxframe notes itself, such as a gap, is no message of the service
                yield item.session_id, item.idx, _plain(_encode(item.raw))
            continue
        message = _plain(item.encode() if isinstance(item, str) else item if isinstance(item, bytes) else _encode(item))
        if message.get("message_type") == "SessionBegins":
            session_id, following = message.get("session_id"), 0
        yield session_id, following, message
        following += 1


def _encode(raw: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(raw)
    except TypeError:  # integers past 64 bits, lone surrogates
        return json.dumps(dict(raw)).encode()


def _plain(raw: bytes) -> dict[str, Any]:
    values: dict[str, Any] = orjson.loads(put_right(raw, _SHAPE))
    return values


def _moment(text: str | None) -> datetime | None:
    """A time as the service writes it, in UTC where it names a zone."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _table(kind: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, kind.arrow)
