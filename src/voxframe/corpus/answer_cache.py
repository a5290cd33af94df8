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


@dataclass(frozen=True)
class CachedAnswer:
    """A cached response, or a language-model request without a response yet."""

    request: Mapping[str, Any]
    content: bytes  # the response as received; empty if there is none
    created: datetime  # time when the response arrived, or when the pending request was sent, UTC


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the key of a request. The order of its fields makes no difference."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


def find(ledger: Ledger, key: str) -> CachedAnswer | None:
    """Return the cached response to a request, or None."""
    answers = _read(ledger, "created", "key = ? AND content IS NOT NULL", key)
    return answers[0] if answers else None


def llm_responses(ledger: Ledger) -> list[CachedAnswer]:
    """Return every cached language-model response, oldest first."""
    return _read(ledger, "created", "request_id IS NOT NULL ORDER BY rowid")


def pending(ledger: Ledger, key: str | None = None) -> list[CachedAnswer]:
    """Return the language-model requests without a response, oldest first."""
    if key is None:
        return _read(ledger, "pending_since", "pending_since IS NOT NULL ORDER BY pending_since, rowid")
    return _read(ledger, "pending_since", "pending_since IS NOT NULL AND key = ?", key)


def store_export(ledger: Ledger, key: str, transcript_id: str, request: Mapping[str, Any], content: bytes) -> None:
    """Cache an export of a transcript."""
    _put(ledger, key, transcript_id=transcript_id, request=request, content=content)


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
    with ledger.catalog.writing():
        _put(ledger, key, service=service, request_id=request_id, request=request, content=content)
        ledger.note_request(request_id, service, transcript_ids)


def mark_pending(ledger: Ledger, key: str, service: str, request: Mapping[str, Any]) -> None:
    """Record that a request is about to be sent. An earlier response to it is kept."""
    with ledger.catalog.writing() as tx:
        moment = now().isoformat()
        new = {"key": key, "service": service, "request": json.dumps(request, default=str)}
        rows = tx.find("answers", key=key) or [new]
        tx.put("answers", [{**row, "pending_since": moment} for row in rows])


def clear_pending(ledger: Ledger, key: str) -> None:
    """Record that a request did not reach the service."""
    with ledger.catalog.writing() as tx:
        tx.drop("answers", key=key, content=None)
        tx.put("answers", [{**row, "pending_since": None} for row in tx.find("answers", key=key)])


def _put(ledger: Ledger, key: str, *, request: Mapping[str, Any], **row: Any) -> None:
    with ledger.catalog.writing() as tx:
        note = json.dumps(request, default=str)
        tx.put("answers", [{"key": key, "request": note, "created": now().isoformat(), **row}])


def _read(ledger: Ledger, time_column: str, condition: str, *values: str) -> list[CachedAnswer]:
    query = f"SELECT request, content, {time_column} FROM answers WHERE {condition}"  # noqa: S608  no value in it
    rows = ledger.catalog.rows(query, values)
    return [CachedAnswer(json.loads(request), content or b"", parse_time(moment)) for request, content, moment in rows]
