"""Answers that are kept by what was asked: views of a transcript, and what a language model wrote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from voxframe.corpus.ledger import Ledger, now

_ASKED = "asked "  # before the key of a question whose answer has not come


@dataclass(frozen=True)
class Kept:
    """An answer.

    Attributes:
        request: What was asked.
        content: The answer, byte for byte.
        created: When it came, UTC, without a zone.
    """

    request: Mapping[str, Any]
    content: bytes
    created: datetime


def key_of(request: Mapping[str, Any]) -> str:
    """The same for the same request, whatever the order of its parts."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


def find(ledger: Ledger, key: str) -> Kept | None:
    """The answer to a request, if it is kept."""
    found = _read(ledger, "WHERE key = ?", key)
    return found[0] if found else None


def of_models(ledger: Ledger) -> list[Kept]:
    """Every answer of a language model, oldest first."""
    return _read(ledger, "WHERE request_id IS NOT NULL ORDER BY rowid")


def keep_view(ledger: Ledger, key: str, transcript_id: str, request: Mapping[str, Any], content: bytes) -> None:
    """Keep a view of a transcript."""
    with ledger.writing() as db:
        row = (key, None, transcript_id, None, json.dumps(request), content, now().isoformat())
        db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def keep_answer(
    ledger: Ledger,
    key: str,
    service: str,
    request_id: str,
    transcript_ids: Iterable[str],
    request: Mapping[str, Any],
    content: bytes,
) -> None:
    """Keep what a language model wrote, and which transcripts it is about."""
    with ledger.writing() as db:
        row = (key, service, None, request_id, json.dumps(request, default=str), content, now().isoformat())
        db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("DELETE FROM answers WHERE key = ?", [_ASKED + key])
        rows = [(request_id, service, identifier) for identifier in transcript_ids]
        db.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", rows)


def note_asked(ledger: Ledger, key: str, service: str, request: Mapping[str, Any]) -> None:
    """Note that a language model is about to be asked; `keep_answer` and `forget_asked` take the note away."""
    with ledger.writing() as db:
        row = (_ASKED + key, service, None, None, json.dumps(request, default=str), None, now().isoformat())
        db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def forget_asked(ledger: Ledger, key: str) -> None:
    """The language model was not asked after all."""
    with ledger.writing() as db:
        db.execute("DELETE FROM answers WHERE key = ?", [_ASKED + key])


def asked(ledger: Ledger, key: str = "") -> list[Kept]:
    """What a language model was asked, with no answer that came: with this key, or all. Their content is empty."""
    return _read(ledger, "WHERE key GLOB ? ORDER BY rowid", f"{_ASKED}{key or '*'}")


def _read(ledger: Ledger, condition: str, *values: str) -> list[Kept]:
    if not ledger.path.exists():
        return []
    with ledger.opened() as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone():
            return []  # an older ledger in a directory that cannot be written
        rows = db.execute(f"SELECT request, content, created FROM answers {condition}", values).fetchall()  # noqa: S608
    return [
        Kept(json.loads(request), content or b"", datetime.fromisoformat(created)) for request, content, created in rows
    ]
