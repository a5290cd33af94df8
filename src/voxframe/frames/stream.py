"""Conversion of streaming messages to the tables `stream` and `stream_words`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import orjson
import pyarrow as pa

from voxframe.errors import PayloadError
from voxframe.frames.extra import elements, extra_text, unknown, unknown_of_item
from voxframe.frames.json_schema import shape
from voxframe.frames.payloads import encode
from voxframe.frames.repair import repair_payload
from voxframe.schema import STREAM, STREAM_WORDS, Table


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

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: A message is not a JSON object, or the source holds no messages.

    Example:
        >>> table = stream_table([{"message_type": "FinalTranscript", "text": "Hello.", "audio_start": 0}])
        >>> table.select(["message_idx", "text", "start_ms"]).to_pylist()
        [{'message_idx': 0, 'text': 'Hello.', 'start_ms': 0}]
    """
    rows = []
    for session_id, idx, message, whole in _each(source):
        row = {name: message.get(path) for name, path in _WIRE.items()}
        created = _moment(row["created"])
        extra = unknown(whole, _SHAPE)
        if row["created"] is not None and created is None:
            extra["created"] = row["created"]
        row |= {"session_id": session_id, "message_idx": idx, "created": created, "extra": extra_text(extra)}
        rows.append(row)
    return _table(STREAM, rows)


def stream_word_table(source: Messages, *, finals_only: bool = False) -> pa.Table:
    """Return the `stream_words` table: one row per word of each message.

    Args:
        source: Like `source` of `stream_table`.
        finals_only: Leave out the words of partial transcripts, which the final ones repeat.

    Returns:
        A table with exactly the Arrow schema of the data dictionary.

    Raises:
        PayloadError: A message is not a JSON object, or the source holds no messages.
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
            "extra": extra_text(unknown_of_item("words", other, _SHAPE["words"]["[]"])),
        }
        for session_id, message_idx, message, whole in _each(source)
        if not finals_only or message.get("message_type") == "FinalTranscript"
        for word_idx, (word, other) in enumerate(
            zip(message.get("words") or (), elements(whole.get("words")), strict=True)
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
        message, whole = _plain(
            item.encode() if isinstance(item, str) else item if isinstance(item, bytes) else encode(item)
        )
        if message.get("message_type") == "SessionBegins":
            session_id, following = message.get("session_id"), 0
        yield session_id, following, message, whole
        following += 1


def _plain(raw: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    clean, whole = repair_payload(raw, _SHAPE)
    return orjson.loads(clean), whole


def _moment(text: str | None) -> datetime | None:
    """Parse ISO 8601 text, as UTC if it has no offset; None if it is not a time."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _table(kind: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, kind.arrow)
