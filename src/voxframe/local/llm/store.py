"""Answers that were given, kept until they are purged. What they were made from is never kept."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import orjson

from voxframe.local.database import Database
from voxframe.local.jobs import now

_SCHEMA = "CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, created TEXT NOT NULL, answer TEXT NOT NULL)"
_VERSION = 1


class Responses:
    """The answers of one data directory. Safe in threads, and beside other processes on the same file.

    Args:
        path: The SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA, _VERSION)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep an answer; return it with the identifier it can be asked for by."""
        whole = {"request_id": str(uuid.uuid4()), **answer}
        with self._database.transaction() as run:
            run("INSERT INTO responses VALUES (?, ?, ?)", (whole["request_id"], now(), orjson.dumps(whole).decode()))
        return whole

    def get(self, request_id: str) -> bytes | None:
        """The answer of that identifier as it was given, if it is there."""
        rows = self._database.rows("SELECT answer FROM responses WHERE id = ?", request_id)
        return rows[0]["answer"].encode() if rows else None

    def purge(self, request_id: str) -> bool | None:
        """Delete an answer.

        Returns:
            Whether no trace of it is left on disk; None where there was none.
        """
        with self._database.transaction() as run:
            row = run("DELETE FROM responses WHERE id = ? RETURNING id", (request_id,)).fetchone()
        return self._database.wipe() if row else None
