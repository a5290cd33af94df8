"""Jobs and uploads in SQLite: what was asked for, where it stands, and which service process works on it.

With the end of a job, and as surely, the notification that its user wanted becomes due (see `deliveries`).

A job is `queued`, `processing`, `completed` or `error`. The service process that works on it is its holder; work on a
queued job is the download of its media. When a holder dies, whoever notices releases its jobs; they are queued again.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from voxframe.local.database import Database

STATUSES = ("queued", "processing", "completed", "error")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'error')),
    created TEXT NOT NULL,
    completed TEXT,
    asked TEXT NOT NULL,
    media TEXT,
    error TEXT,
    holder TEXT,
    crashes INTEGER NOT NULL DEFAULT 0,
    throttled INTEGER,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS jobs_status ON jobs (status);
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

_VERSION = 1  # of the tables above

#: What a job waits for: its media, or a core.
Stage = Literal["fetch", "speech"]
_WAITING = {"fetch": "media IS NULL", "speech": "media IS NOT NULL"}

#: A row of jobs, and what its webhook was answered.
_JOBS = """(SELECT jobs.*, webhooks.status_code AS webhook_status_code
    FROM jobs LEFT JOIN webhooks ON webhooks.job = jobs.id AND webhooks.event = 'transcript')"""


@dataclass(frozen=True)
class Job:
    """One row of the table of jobs.

    Attributes:
        seq: Place in the order of creation.
        id: Identifier of the transcript.
        status: queued, processing, completed or error.
        created: When it was asked for, ISO, UTC.
        completed: When it was completed.
        asked: The request as it came, known fields only; of a deleted job, what is still said of it.
        media: Path of the media in the data directory, or None while it is not there.
        error: Why it failed.
        holder: The service process that works on it.
        crashes: How many of its worker processes have crashed.
        throttled: True while it waits for others, False when it no longer does, None if it never did.
        deleted: Whether its user deleted it.
        webhook_status_code: What its user's server answered last when it was notified.
    """

    seq: int
    id: str
    status: str
    created: str
    completed: str | None
    asked: dict[str, Any]
    media: str | None
    error: str | None
    holder: str | None
    crashes: int
    throttled: bool | None
    deleted: bool
    webhook_status_code: int | None = None


@dataclass(frozen=True)
class Webhook:
    """How the end of a job is to be told to its user. The address is in the request.

    Attributes:
        events: What is to be told: "transcript", "redacted_audio".
        allowed: Whether the address was allowed by name, wherever it resolves to.
        header_value: Value of the header that the user wants to see. It is forgotten when it is no longer needed.
    """

    events: tuple[str, ...]
    allowed: bool
    header_value: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Page:
    """Jobs, newest first. `total` counts all that match; `older` and `newer` say whether more are that way."""

    jobs: list[Job]
    total: int
    older: bool
    newer: bool


def now() -> str:
    """The time as the interface writes it: UTC, ISO without zone, microseconds."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _job(row: sqlite3.Row) -> Job:
    fields = dict(row)
    fields["asked"] = orjson.loads(fields["asked"])
    fields["throttled"] = None if fields["throttled"] is None else bool(fields["throttled"])
    fields["deleted"] = bool(fields["deleted"])
    return Job(**fields)


class Jobs:
    """The jobs of one data directory. Safe in threads, and beside other processes on the same file.

    Args:
        path: The SQLite file.

    Attributes:
        database: The open file, for what else is kept in it.
    """

    def __init__(self, path: Path) -> None:
        self.database = Database(path, _SCHEMA, _VERSION)
        self._transaction, self._rows = self.database.transaction, self.database.rows

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    # What clients ask for

    def add_upload(self, upload_id: str, owner: str) -> None:
        """Note an upload that is on disk."""
        with self._transaction() as run:
            run("INSERT INTO uploads VALUES (?, ?, ?)", (upload_id, owner, now()))

    def add(
        self,
        asked: dict[str, Any],
        upload: str | None,
        owner: str,
        folder: Callable[[str], Path],
        webhook: Webhook | None = None,
    ) -> Job:
        """Queue a job and make its folder. Its media is `upload` if `owner` made that, else it is to be fetched."""
        job_id = str(uuid.uuid4())
        folder(job_id).mkdir(mode=0o700)
        with self._transaction() as run:
            mine = upload and run("SELECT 1 FROM uploads WHERE id = ? AND owner = ?", (upload, owner)).fetchone()
            media = f"uploads/{upload}" if mine else None
            row = run(
                "INSERT INTO jobs (id, status, created, asked, media) VALUES (?, 'queued', ?, ?, ?) RETURNING *",
                (job_id, now(), orjson.dumps(asked).decode(), media),
            ).fetchone()
            if webhook is not None:
                for event in webhook.events:
                    run(
                        "INSERT INTO webhooks (job, event, allowed, header_value) VALUES (?, ?, ?, ?)",
                        (job_id, event, webhook.allowed, webhook.header_value),
                    )
        return _job(row)

    def get(self, job_id: str) -> Job | None:
        """The job of that id, if there is one."""
        rows = self._rows(f"SELECT * FROM {_JOBS} WHERE id = ?", job_id)  # noqa: S608 - a fixed piece
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
    ) -> Page:
        """List jobs, newest first, between two places in the order; a page after a place is the one next to it."""
        filters, values = "1", []
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
        rows = self._rows(
            f"SELECT * FROM {_JOBS} WHERE {filters} AND {bounds} ORDER BY seq {'ASC' if upward else 'DESC'} LIMIT ?",  # noqa: S608 - fixed pieces
            *values,
            *edges,
            limit,
        )
        jobs = sorted((_job(row) for row in rows), key=lambda job: -job.seq)
        total = self._rows(f"SELECT count(*) FROM jobs WHERE {filters}", *values)[0][0]  # noqa: S608 - fixed pieces

        def any_beyond(sign: str, seq: int) -> bool:
            return bool(self._rows(f"SELECT 1 FROM jobs WHERE {filters} AND seq {sign} ? LIMIT 1", *values, seq))  # noqa: S608 - fixed pieces

        older = bool(jobs) and any_beyond("<", jobs[-1].seq)
        newer = bool(jobs) and any_beyond(">", jobs[0].seq)
        return Page(jobs, total, older, newer)

    def delete(self, job_id: str, kept: dict[str, Any]) -> list[str]:
        """Empty a job; one that is not finished becomes an error, so that nobody waits for it.

        Args:
            job_id: The job.
            kept: Fields that are still said of it.

        Returns:
            Paths in the data directory of media that no job needs any more.
        """
        with self._transaction() as run:
            media = run("SELECT media FROM jobs WHERE id = ? AND NOT deleted", (job_id,)).fetchone()
            run(
                """UPDATE jobs SET deleted = 1, asked = ?, media = NULL, holder = NULL, throttled = NULL,
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
        self.database.wipe()
        return unused

    def deleted(self) -> list[str]:
        """Ids of the jobs that were deleted."""
        return [row[0] for row in self._rows("SELECT id FROM jobs WHERE deleted")]

    def has_upload(self, upload_id: str) -> bool:
        """Whether an upload of that id is known."""
        return bool(self._rows("SELECT 1 FROM uploads WHERE id = ?", upload_id))

    def drop_media(self, media: str, folder: str) -> bool:
        """Forget a file of media, unless a job that is not finished needs it.

        Args:
            media: Its path in the data directory.
            folder: Name of its folder, which may be a job's.

        Returns:
            Whether no job needs it: the file may go.
        """
        with self._transaction() as run:
            needed = "SELECT 1 FROM jobs WHERE status IN ('queued', 'processing') AND (media = ? OR id = ?)"
            if run(needed, (media, folder)).fetchone():
                return False
            run("DELETE FROM uploads WHERE 'uploads/' || id = ?", (media,))
            run("UPDATE jobs SET media = NULL WHERE media = ?", (media,))
        return True

    # What the service works on

    def claim(self, stage: Stage, holder: str, limit: int) -> Job | None:
        """Take the oldest job that waits for `stage`, unless `limit` jobs are at it already, in whatever process."""
        status = "processing" if stage == "speech" else "queued"
        with self._transaction() as run:
            at_it = run("SELECT count(*) FROM jobs WHERE status = ? AND holder IS NOT NULL", (status,)).fetchone()[0]
            waiting = f"status = 'queued' AND holder IS NULL AND {_WAITING[stage]}"
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
        """Note that the media is there. False where the job is no longer held (it was deleted)."""
        return self._if_held(job_id, holder, "media = ?, holder = NULL", media)

    def complete(self, job_id: str, holder: str) -> bool:
        """Note that the result is on disk. False where the job is no longer held."""
        return self._if_held(job_id, holder, "status = 'completed', completed = ?, holder = NULL", now(), ended=True)

    def fail(self, job_id: str, holder: str, reason: str) -> bool:
        """Note why the job failed. False where the job is no longer held."""
        return self._if_held(job_id, holder, "status = 'error', error = ?, holder = NULL", reason, ended=True)

    def crashed(self, job_id: str, holder: str) -> bool:
        """Queue a job again whose worker process crashed."""
        return self._if_held(job_id, holder, "status = 'queued', holder = NULL, crashes = crashes + 1")

    def ahead(self, job: Job) -> int:
        """How many jobs that are not finished were asked for before this one."""
        query = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing') AND seq < ?"
        count: int = self._rows(query, job.seq)[0][0]
        return count

    def processing(self) -> int:
        """How many jobs are being transcribed, in whatever process."""
        count: int = self._rows("SELECT count(*) FROM jobs WHERE status = 'processing'")[0][0]
        return count

    def held(self, holder: str) -> set[str]:
        """Ids of the jobs a process works on."""
        return {row[0] for row in self._rows("SELECT id FROM jobs WHERE holder = ?", holder)}

    def holders(self) -> set[str]:
        """The processes that work on jobs, or did when they died."""
        return {row[0] for row in self._rows("SELECT DISTINCT holder FROM jobs WHERE holder IS NOT NULL")}

    def release(self, holder: str) -> int:
        """Queue all jobs of a process again and return how many there were."""
        with self._transaction() as run:
            query = "UPDATE jobs SET status = 'queued', holder = NULL WHERE holder = ? RETURNING seq"
            return len(run(query, (holder,)).fetchall())
