"""SQLite databases of the embedded server, safe across threads, processes, kills and power failures.

Requests never wait for maintenance. A thread with its own connection removes deleted data from the disk and moves the
write-ahead log into the file. It stops whenever another user needs the file.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from voxframe._shared_files import open_sqlite

_log = logging.getLogger("voxframe_server")

#: Longest wait for another writer, in seconds: for a thread of this process, and then for another process.
BUSY_SECONDS = 2.5
_OPENING_SECONDS = 30.0
_EVERY_SECONDS = 30.0  # between two checkpoints of the write-ahead log
_AGAIN_SECONDS = 1.0  # until interrupted maintenance is repeated


class DatabaseBusyError(sqlite3.OperationalError):
    """The file was locked for too long by another thread or process. Nothing was changed; try again."""


class UnusableDatabaseError(sqlite3.DatabaseError):
    """The file is locked, damaged or of another version. The message names it and the next step."""


class Database:
    """An SQLite file.

    Args:
        schema: Statements that create missing tables, separated by `;` at the end of a line.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self._path = path
        self._writing = threading.Lock()
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        self._writer_waits = False
        try:
            self.connection = self._open(_OPENING_SECONDS)
            self._create(schema, version)
        except DatabaseBusyError as error:
            raise UnusableDatabaseError(f"{path} is locked by another program; close it and start again") from error
        except sqlite3.Error as error:
            raise UnusableDatabaseError(
                f"{path} cannot be used: {error}. Rename the file to start without its content, or choose another "
                "directory with --data-dir or VOXFRAME_DATA_DIR"
            ) from error
        self.connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
        self._wiping = threading.Lock()
        self._unwiped = threading.Event()
        self._wake = threading.Event()
        self._maintenance = threading.Thread(target=self._maintain, name="voxframe-database", daemon=True)
        self._maintenance.start()
        self.wipe_soon()  # an earlier process may have been killed before it could

    def _create(self, schema: str, version: int) -> None:
        with self.transaction() as run:
            stored = run("PRAGMA user_version").fetchone()[0]
            if stored not in (0, version):
                age = "an older" if stored < version else "a newer"
                raise sqlite3.DatabaseError(
                    f"it was written by {age} voxframe (its tables have version {stored}, this one needs {version})"
                )
            for statement in (*schema.split(";\n"), f"PRAGMA user_version = {version}"):
                run(statement)

    def _open(self, busy_seconds: float) -> sqlite3.Connection:
        connection = open_sqlite(self._path, timeout_s=busy_seconds, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        # temp_store: VACUUM must not copy data to a file elsewhere. wal_autocheckpoint: commits would wait for it.
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def close(self) -> None:
        """Finish the maintenance if no other process uses the file, then close it."""
        self._closed = True
        self._wake.set()
        self._maintenance.join()
        if self._unwiped.is_set():
            self.wipe()
        with self._writing:
            self.connection.close()
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Run statements in a durable transaction. Yields the function that runs a statement."""
        if not self._writing.acquire(timeout=BUSY_SECONDS):
            raise DatabaseBusyError("another thread holds the database")
        try:
            self._writer_waits = True
            try:
                with _busy_errors():
                    self.connection.execute("BEGIN IMMEDIATE")
            finally:
                self._writer_waits = False
            try:
                yield self.connection.execute
            except BaseException:
                with suppress(sqlite3.OperationalError):  # a full disk has ended it already
                    self.connection.execute("ROLLBACK")
                raise
            try:
                self.connection.execute("COMMIT")
            except sqlite3.Error:
                with suppress(sqlite3.OperationalError):
                    self.connection.execute("ROLLBACK")
                raise
        finally:
            self._writing.release()

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return the rows of a query. Reading does not wait for writers."""
        with _busy_errors():
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._open(BUSY_SECONDS)
            try:
                return connection.execute(query, values).fetchall()
            finally:
                self._idle.append(connection)

    def wipe_soon(self) -> None:
        """Remove deleted data from the disk in the background, as soon as no other user is in the way."""
        self._unwiped.set()
        self._wake.set()

    def wipe(self) -> bool:
        """Remove deleted data from the disk now, from the free pages of the file and from its log.

        The file is rewritten, because secure_delete alone is not enough: it overwrites a deleted row, but not copies
        left behind when pages were rearranged (seen in 6 of 20 attempts with rows of mixed length).

        Returns:
            True on success; False if another process or thread uses the file, even for reading.
        """
        with self._wiping:
            connection = self._open(0.0)
            try:
                self._unwiped.clear()  # later deletions set it again
                # Only if the log can be emptied, because VACUUM writes to it and the data would stay there.
                done = _empty_log(connection) and self._vacuum(connection) and _empty_log(connection)
            except sqlite3.OperationalError:
                done = False
            finally:
                connection.close()
            if not done:
                self._unwiped.set()
        return done

    def _vacuum(self, connection: sqlite3.Connection) -> bool:
        # Interrupted as soon as a writer waits; it is repeated later.
        connection.set_progress_handler(lambda: self._writer_waits, 1000)
        connection.execute("VACUUM")
        return True

    def _maintain(self) -> None:
        pause = _EVERY_SECONDS
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._closed:
                return
            try:
                if self._unwiped.is_set():
                    pause = _EVERY_SECONDS if self.wipe() else _AGAIN_SECONDS
                    continue
                pause = _EVERY_SECONDS
                with closing(self._open(0.0)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            except sqlite3.Error:  # a full disk is temporary
                _log.exception("maintenance of %s failed; trying again", self._path.name)
                pause = _AGAIN_SECONDS


@contextmanager
def _busy_errors() -> Iterator[None]:
    """Re-raise the errors of a locked file as DatabaseBusyError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise DatabaseBusyError(str(error)) from error
        raise


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the file and empty it. Return False if another user is in the way."""
    # PASSIVE does most of the work without blocking; TRUNCATE, which blocks writers, then has little left to do.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not busy
