"""Cached responses of a service by request: exports of transcripts and language-model responses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from voxframe.corpus.job import now, parse_time
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.ledger_file import is_there

_COLUMNS = "key, service, transcript_id, request_id, request, content, created, pending_since"
_REPLACE = f"INSERT OR REPLACE INTO answers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL)"  # noqa: S608


@dataclass(frozen=True)
class CachedAnswer:
    """A cached response, or a language-model request without a response yet.

    Attributes:
        request: The request.
        content: The response as received; empty if there is none.
        created: Time when the response arrived, or when the pending request was sent, UTC.
    """

    request: Mapping[str, Any]
    content: bytes
    created: datetime


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the key of a request. The order of its fields makes no difference."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


def find(ledger: Ledger, key: str) -> CachedAnswer | None:
    """Return the cached response to a request, or None."""
    found = _read(ledger, "created", "key = ? AND content IS NOT NULL", key)
    return found[0] if found else None


def llm_responses(ledger: Ledger) -> list[CachedAnswer]:
    """Return every cached language-model response, oldest first."""
    return _read(ledger, "created", "request_id IS NOT NULL ORDER BY rowid")


def pending(ledger: Ledger, key: str | None = None) -> list[CachedAnswer]:
    """Return the language-model requests without a response, oldest first.

    Args:
        ledger: The ledger.
        key: Key of one request. None (default): all requests.
    """
    if key is None:
        return _read(ledger, "pending_since", "pending_since IS NOT NULL ORDER BY pending_since, rowid")
    return _read(ledger, "pending_since", "pending_since IS NOT NULL AND key = ?", key)


def store_export(ledger: Ledger, key: str, transcript_id: str, request: Mapping[str, Any], content: bytes) -> None:
    """Cache an export of a transcript."""
    with ledger.writing() as db:
        db.execute(_REPLACE, [key, None, transcript_id, None, json.dumps(request), content, now().isoformat()])


def store_response(
    ledger: Ledger,
    key: str,
    service: str,
    request_id: str,
    transcript_ids: Iterable[str],
    request: Mapping[str, Any],
    content: bytes,
) -> None:
    """Cache a language-model response with the ids of its transcripts. The request is no longer pending."""
    with ledger.writing() as db:
        text = json.dumps(request, default=str)
        db.execute(_REPLACE, [key, service, None, request_id, text, content, now().isoformat()])
        rows = [(request_id, service, transcript_id) for transcript_id in transcript_ids]
        db.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", rows)


def mark_pending(ledger: Ledger, key: str, service: str, request: Mapping[str, Any]) -> None:
    """Record that a request is about to be sent. An earlier response to it is kept."""
    with ledger.writing() as db:
        db.execute(
            f"INSERT INTO answers ({_COLUMNS}) VALUES (?, ?, NULL, NULL, ?, NULL, NULL, ?) "  # noqa: S608
            "ON CONFLICT (key) DO UPDATE SET pending_since = excluded.pending_since",
            [key, service, json.dumps(request, default=str), now().isoformat()],
        )


def clear_pending(ledger: Ledger, key: str) -> None:
    """Record that a request did not reach the service."""
    with ledger.writing() as db:
        db.execute("DELETE FROM answers WHERE key = ? AND content IS NULL", [key])
        db.execute("UPDATE answers SET pending_since = NULL WHERE key = ?", [key])


def _read(ledger: Ledger, time_column: str, condition: str, *values: str) -> list[CachedAnswer]:
    if not is_there(ledger.path):
        return []
    with ledger.opened() as db:
        if not db.execute("SELECT 1 FROM pragma_table_info('answers') WHERE name = 'pending_since'").fetchone():
            return []  # a ledger of an earlier version, in a directory that is read-only
        query = f"SELECT request, content, {time_column} FROM answers WHERE {condition}"  # noqa: S608
        rows = db.execute(query, values).fetchall()
    return [CachedAnswer(json.loads(request), content or b"", parse_time(moment)) for request, content, moment in rows]
