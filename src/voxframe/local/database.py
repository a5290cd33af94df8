"""SQLite as this service uses it: safe in threads, beside other processes, and against kills and power cuts."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Database:
    """One SQLite file.

    Args:
        path: The file; made where it is not there.
        schema: Statements that make its tables where they are not there, separated by semicolons.
        version: Of these tables.

    Raises:
        sqlite3.DatabaseError: The file is of another version, or no database.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self._lock = threading.Lock()
        # Absolute: what begins with "file:" is an address to SQLite.
        self.connection = sqlite3.connect(path.absolute(), timeout=30, isolation_level=None, check_same_thread=False)
        self.connection.row_factory = sqlite3.Row
        # temp_store: what VACUUM copies must not pass through a file elsewhere.
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
            self.connection.execute(f"PRAGMA {pragma}")
        with self.transaction() as run:
            found = run("PRAGMA user_version").fetchone()[0]
            if found not in (0, version):
                raise sqlite3.DatabaseError(f"its tables have version {found}, this voxframe knows version {version}")
            for statement in (*schema.split(";"), f"PRAGMA user_version = {version}"):
                run(statement)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """All or nothing, and on disk once it is over. Gives the function that runs a statement."""
        with self._lock:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection.execute
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """The rows of a query."""
        with self._lock:
            return self.connection.execute(query, values).fetchall()

    def wipe(self) -> bool:
        """Take what was deleted off the disk too: out of the file's free places and out of its log.

        The file is written anew, for secure_delete alone is not enough: it blanks the place a row had, but not copies
        that were left behind when pages were rearranged (seen in 6 of 20 tries with rows of mixed length).

        Returns:
            Whether that is done; False where another process would not let go of the file for half a minute.
        """
        with self._lock:
            try:
                self.connection.execute("VACUUM")
            except sqlite3.OperationalError:
                return False
            busy: int = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not busy
