"""Jobs of the embedded server. This module keeps them in SQLite, with uploads and the process that runs each job.

The end of a job and its notification are recorded in one transaction (see `webhook_delivery`).

A job is `queued`, `processing`, `completed` or `error`. The server process that works on a job is its holder; a queued
job has a holder while its media is downloaded. When a holder dies, another process releases its jobs, which are queued
again.

The database is safe across threads, processes, kills and power failures. Requests never wait for its maintenance. A
thread with its own connection removes deleted data from the disk and moves the write-ahead log into the file. It stops
whenever another user needs the file.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

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


#: Statements that create missing tables and indexes.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'error')),
    created TEXT NOT NULL,
    completed TEXT,
    request TEXT NOT NULL,
    media TEXT,
    error TEXT,
    holder TEXT,
    crashes INTEGER NOT NULL DEFAULT 0,
    throttled INTEGER,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS jobs_status ON jobs (status);
CREATE INDEX IF NOT EXISTS jobs_day ON jobs (substr(created, 1, 10));
CREATE INDEX IF NOT EXISTS jobs_throttled ON jobs (throttled) WHERE throttled = 1;
CREATE TABLE IF NOT EXISTS uploads (id TEXT PRIMARY KEY, owner TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS webhooks (
    seq INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('transcript', 'redacted_audio')),
    allowed INTEGER NOT NULL,
    header_value TEXT,
    tries INTEGER NOT NULL DEFAULT 0,
    due REAL,
    status_code INTEGER,
    UNIQUE (job, event)
);
CREATE INDEX IF NOT EXISTS webhooks_due ON webhooks (due);
"""


#: Version of the tables.
_VERSION = 2

#: Stage of a job: download of its media, or transcription, which needs a core.
Stage = Literal["fetch", "speech"]
_WAITING = {"fetch": "media IS NULL", "speech": "media IS NOT NULL"}

#: Rows of jobs with the status of the last response to their notification.
_JOB_ROWS = """(SELECT jobs.*, webhooks.status_code AS webhook_status_code
    FROM jobs LEFT JOIN webhooks ON webhooks.job = jobs.id AND webhooks.event = 'transcript')"""


@dataclass(frozen=True)
class JobRecord:
    """A row of the jobs table.

    Attributes:
        seq: Position in the order of creation.
        request: Known fields of the request; for a deleted job, the fields that were kept.
        throttled: True while it waits for other jobs, False once it no longer does, None if it never did.
    """

    seq: int
    id: str
    status: str
    created: str
    completed: str | None
    request: dict[str, Any]
    media: str | None
    error: str | None
    holder: str | None
    crashes: int
    throttled: bool | None
    deleted: bool
    webhook_status_code: int | None = None


@dataclass(frozen=True)
class Webhook:
    """Notification settings of a job. The URL is in the request.

    Attributes:
        allowed: True if the origin of the URL was allowed explicitly.
    """

    events: tuple[str, ...]
    allowed: bool
    header_value: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class JobPage:
    """A page of jobs, newest first."""

    jobs: list[JobRecord]
    total: int
    older: bool
    newer: bool


def now() -> str:
    """Return the current time in the format of the API: UTC, ISO without time zone, microseconds."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _job(row: sqlite3.Row) -> JobRecord:
    fields = dict(row)
    fields["request"] = orjson.loads(fields["request"])
    fields["throttled"] = None if fields["throttled"] is None else bool(fields["throttled"])
    fields["deleted"] = bool(fields["deleted"])
    return JobRecord(**fields)


class JobStore:
    """The jobs of one data directory. Safe to use from several threads and processes."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path, _SCHEMA, _VERSION)
        self._transaction, self._rows = self.database.transaction, self.database.rows

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    # Used by the endpoints

    def add_upload(self, upload_id: str, owner: str) -> None:
        """Record a completed upload."""
        with self._transaction() as run:
            run("INSERT INTO uploads VALUES (?, ?, ?)", (upload_id, owner, now()))

    def add(
        self,
        request: dict[str, Any],
        upload: str | None,
        owner: str,
        folder: Callable[[str], Path],
        webhook: Webhook | None = None,
    ) -> JobRecord:
        """Queue a job and create its folder. Its media is `upload` if `owner` created that, else it is downloaded."""
        job_id = str(uuid.uuid4())
        folder(job_id).mkdir(mode=0o700)
        with self._transaction() as run:
            mine = upload and run("SELECT 1 FROM uploads WHERE id = ? AND owner = ?", (upload, owner)).fetchone()
            media = f"uploads/{upload}" if mine else None
            row = run(
                "INSERT INTO jobs (id, status, created, request, media) VALUES (?, 'queued', ?, ?, ?) RETURNING *",
                (job_id, now(), orjson.dumps(request).decode(), media),
            ).fetchone()
            if webhook is not None:
                for event in webhook.events:
                    run(
                        "INSERT INTO webhooks (job, event, allowed, header_value) VALUES (?, ?, ?, ?)",
                        (job_id, event, webhook.allowed, webhook.header_value),
                    )
        return _job(row)

    def get(self, job_id: str) -> JobRecord | None:
        """Return a job, or None if the id is unknown."""
        rows = self._rows(f"SELECT * FROM {_JOB_ROWS} WHERE id = ?", job_id)  # noqa: S608 - a fixed piece
        return _job(rows[0]) if rows else None

    def page(
        self,
        limit: int,
        *,
        status: str | None = None,
        created_on: str | None = None,
        throttled_only: bool = False,
        before: int | None = None,
        after: int | None = None,
    ) -> JobPage:
        """Return a page of jobs between two positions, newest first. With `after` only, it is the next newer page."""
        filters = "1"
        values: list[object] = []
        if status is not None:
            filters, values = "status = ?", [status]
        if created_on is not None:
            filters, values = f"{filters} AND substr(created, 1, 10) = ?", [*values, created_on]
        if throttled_only:
            filters += " AND throttled = 1"
        bounds, edges = "1", []
        if before is not None:
            bounds, edges = "seq < ?", [before]
        if after is not None:
            bounds, edges = f"{bounds} AND seq > ?", [*edges, after]
        upward = after is not None and before is None
        selected = f"SELECT * FROM {_JOB_ROWS} WHERE {filters} AND {bounds}"  # noqa: S608 - fixed pieces
        order = "ASC" if upward else "DESC"
        rows = self._rows(f"{selected} ORDER BY seq {order} LIMIT ?", *values, *edges, limit)
        jobs = sorted((_job(row) for row in rows), key=lambda job: -job.seq)
        (total,) = self._rows(f"SELECT count(*) FROM jobs WHERE {filters}", *values)[0]  # noqa: S608 - fixed pieces

        def any_beyond(sign: str, seq: int) -> bool:
            return bool(self._rows(f"SELECT 1 FROM jobs WHERE {filters} AND seq {sign} ? LIMIT 1", *values, seq))  # noqa: S608 - fixed pieces

        older = bool(jobs) and any_beyond("<", jobs[-1].seq)
        newer = bool(jobs) and any_beyond(">", jobs[0].seq)
        return JobPage(jobs, total, older, newer)

    def delete(self, job_id: str, kept: dict[str, Any]) -> list[str]:
        """Delete the contents of a job. An unfinished job becomes an error, so that clients stop waiting."""
        with self._transaction() as run:
            media = run("SELECT media FROM jobs WHERE id = ? AND NOT deleted", (job_id,)).fetchone()
            run(
                """UPDATE jobs SET deleted = 1, request = ?, media = NULL, holder = NULL, throttled = NULL,
                error = CASE WHEN status IN ('queued', 'processing') THEN 'Deleted by user.' END,
                status = CASE WHEN status = 'completed' THEN 'completed' ELSE 'error' END
                WHERE id = ? AND NOT deleted""",
                (orjson.dumps(kept).decode(), job_id),
            )
            run("DELETE FROM webhooks WHERE job = ?", (job_id,))
            unused = []
            if media and media[0] and not run("SELECT 1 FROM jobs WHERE media = ?", (media[0],)).fetchone():
                unused = [media[0]]
                run("DELETE FROM uploads WHERE 'uploads/' || id = ?", (media[0],))
        self.database.wipe_soon()
        return unused

    def deleted(self) -> list[str]:
        """Return the ids of deleted jobs."""
        return [row[0] for row in self._rows("SELECT id FROM jobs WHERE deleted")]

    def has_upload(self, upload_id: str) -> bool:
        """Return True if an upload is recorded."""
        return bool(self._rows("SELECT 1 FROM uploads WHERE id = ?", upload_id))

    def drop_media(self, media: str, folder: str) -> bool:
        """Remove the record of a media file, unless an unfinished job needs it."""
        with self._transaction() as run:
            needed = "SELECT 1 FROM jobs WHERE status IN ('queued', 'processing') AND (media = ? OR id = ?)"
            if run(needed, (media, folder)).fetchone():
                return False
            run("DELETE FROM uploads WHERE 'uploads/' || id = ?", (media,))
            run("UPDATE jobs SET media = NULL WHERE media = ?", (media,))
        return True

    # Used by the scheduler

    def claim(self, stage: Stage, holder: str, limit: int) -> JobRecord | None:
        """Take the oldest job that waits for `stage`, unless `limit` jobs of any process are in that stage."""
        status = "processing" if stage == "speech" else "queued"
        waiting = f"status = 'queued' AND holder IS NULL AND {_WAITING[stage]}"
        if not self._rows(f"SELECT 1 FROM jobs WHERE {waiting} LIMIT 1"):  # noqa: S608 - fixed pieces
            return None  # the common case, without a write transaction
        with self._transaction() as run:
            at_it = run("SELECT count(*) FROM jobs WHERE status = ? AND holder IS NOT NULL", (status,)).fetchone()[0]
            if at_it >= limit:
                run(f"UPDATE jobs SET throttled = 1 WHERE {waiting} AND throttled IS NOT 1")  # noqa: S608 - fixed pieces
                return None
            row = run(
                f"""UPDATE jobs SET status = ?, holder = ?, throttled = CASE WHEN throttled IS NOT NULL THEN 0 END
                WHERE seq = (SELECT min(seq) FROM jobs WHERE {waiting}) RETURNING *""",  # noqa: S608 - fixed pieces
                (status, holder),
            ).fetchone()
        return _job(row) if row else None

    def _if_held(self, job_id: str, holder: str, change: str, *values: object, ended: bool = False) -> bool:
        with self._transaction() as run:
            query = f"UPDATE jobs SET {change} WHERE id = ? AND holder = ? RETURNING status"  # noqa: S608 - fixed pieces
            row = run(query, (*values, job_id, holder)).fetchone()
            if row and ended:
                if row["status"] == "error":
                    run("DELETE FROM webhooks WHERE job = ? AND event = 'redacted_audio'", (job_id,))
                run("UPDATE webhooks SET due = ? WHERE job = ?", (time.time(), job_id))
            return row is not None

    def fetched(self, job_id: str, holder: str, media: str) -> bool:
        """Record that the media is downloaded. Return False if the job is no longer held because it was deleted."""
        return self._if_held(job_id, holder, "media = ?, holder = NULL", media)

    def complete(self, job_id: str, holder: str) -> bool:
        """Record that the result is stored. Return False if the job is no longer held."""
        return self._if_held(job_id, holder, "status = 'completed', completed = ?, holder = NULL", now(), ended=True)

    def fail(self, job_id: str, holder: str, reason: str) -> bool:
        """Record the reason of a failure. Return False if the job is no longer held."""
        return self._if_held(job_id, holder, "status = 'error', error = ?, holder = NULL", reason, ended=True)

    def crashed(self, job_id: str, holder: str) -> bool:
        """Queue a job again after its worker process crashed. Return False if the job is no longer held."""
        return self._if_held(job_id, holder, "status = 'queued', holder = NULL, crashes = crashes + 1")

    def ahead(self, job: JobRecord) -> int:
        """Return the number of unfinished jobs created before a job."""
        query = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing') AND seq < ?"
        count: int = self._rows(query, job.seq)[0][0]
        return count

    def processing(self) -> int:
        """Return the number of jobs in transcription, in all processes."""
        count: int = self._rows("SELECT count(*) FROM jobs WHERE status = 'processing'")[0][0]
        return count

    def unfinished(self) -> bool:
        """Return True if a job waits or is in progress, in any process."""
        return bool(self._rows("SELECT 1 FROM jobs WHERE status IN ('queued', 'processing') LIMIT 1"))

    def held(self, holder: str) -> set[str]:
        """Return the ids of the jobs held by a process."""
        return {row[0] for row in self._rows("SELECT id FROM jobs WHERE holder = ?", holder)}

    def holders(self) -> set[str]:
        """Return the processes that hold jobs, alive or dead."""
        return {row[0] for row in self._rows("SELECT DISTINCT holder FROM jobs WHERE holder IS NOT NULL")}

    def release(self, holder: str) -> int:
        """Queue all jobs of a process again and return their number."""
        with self._transaction() as run:
            query = "UPDATE jobs SET status = 'queued', holder = NULL WHERE holder = ? RETURNING seq"
            return len(run(query, (holder,)).fetchall())
