"""The ledger of a corpus: what was asked for, sent and finished at which service, so that nothing is sent twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from voxframe.corpus.turns import turn
from voxframe.options import DEFAULTS

#: What is known of a submission. planned: not sent. uploading: its audio is on its way. submitting: the service is
#: being asked for it. submitted: the service has it. completed, error: it is over. uncertain: nobody knows whether the
#: service has it.
State: TypeAlias = Literal["planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"]

#: Not sent, however far it got.
UNSENT: tuple[State, ...] = ("planned", "uploading")
#: Sent, with no answer that says what became of it.
LOST: tuple[State, ...] = ("submitting", "uncertain")


@dataclass(frozen=True)
class Job:
    """A submission; all but `media`, `address` and `metadata` are columns of the table `jobs`.

    Attributes:
        key: Hash of the media, the options and the service.
        source: File or address that was submitted.
        service: Name of the service.
        options: Its options, as JSON.
        state: What is known of it.
        media: What the media is, whatever it is called: hash of its bytes, or its address.
        transcript_id: Identifier, once the service gave one.
        attempts: How often the service was asked for it.
        error: Why it failed, or what stopped it the last time.
        audio_duration_s: Duration of the media in seconds, where it is known.
        address: What the service was given as the address of the audio; no other job has the same.
        metadata: Columns about the recording, as JSON.
        created: When it was asked for, UTC.
        sent: When the service was last asked for it, UTC.
        updated: When its state last changed, UTC.
    """

    key: str
    source: str
    service: str
    options: str
    state: State = "planned"
    media: str = ""
    transcript_id: str | None = None
    attempts: int = 0
    error: str | None = None
    audio_duration_s: float | None = None
    address: str | None = None
    metadata: str = "{}"
    created: datetime | None = None
    sent: datetime | None = None
    updated: datetime | None = None


_NAMES = tuple(f.name for f in fields(Job))
#: Raised when the tables change; those of an earlier version get what they lack when the ledger is next opened.
_VERSION = 2
_NEW_S = 30.0  # an empty file that is younger may be a ledger that another process is making
_TIMES = ("created", "sent", "updated")
_ABOUT = "SELECT transcript_id, metadata FROM about"
_ABOUT_JOBS = "SELECT transcript_id, metadata FROM jobs WHERE transcript_id IS NOT NULL"
#: What asks for no more than leaving it out: from the beginning, with however little speech.
_FROM_NOTHING = (("audio_start_from", 0), ("speech_threshold", 0))
_INSERT = f"INSERT INTO jobs ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))})"  # noqa: S608  no value in it


def new_job(source: str, media: str, options: Mapping[str, Any], service: str, **known: Any) -> Job:
    """The submission of some media with some options to a service, before anything is sent.

    The same media and the same options give the same key, whatever the file is called and however the options were
    spelled. Where notifications go makes no difference to a transcript and is neither part of the key nor kept.

    Args:
        source: Path or address.
        media: Hash of its bytes, or its address.
        options: Options as `voxframe.options.check` returns them.
        service: Name of the service.
        **known: More attributes of the job.
    """
    wanted = {k: v for k, v in options.items() if v not in (DEFAULTS.get(k), []) and not k.startswith("webhook_")}
    wanted = {k: v for k, v in wanted.items() if (k, v) not in _FROM_NOTHING}
    spelled = json.dumps(wanted, sort_keys=True, ensure_ascii=False)
    key = hashlib.sha256(json.dumps([media, spelled, service]).encode()).hexdigest()
    shown = source.encode("utf-8", "backslashreplace").decode()  # a file name need not be text
    return Job(key, shown, service, spelled, media=media, **known)


def merged(metadata: str, more: str) -> str:
    """Columns about a recording, as JSON, with more of them, which win."""
    return json.dumps({**json.loads(metadata), **json.loads(more)}, ensure_ascii=False)


def now() -> datetime:
    """The time as the ledger keeps it: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


class Ledger:
    """Submissions in an SQLite file, which several processes may use at once.

    Args:
        path: The file; made when the first submission is saved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, key: str) -> Job | None:
        """The submission with this key, if there is one."""
        return next(iter(self._read("WHERE key = ?", [key])), None)

    def jobs(self, service: str | None = None, states: Collection[State] = ()) -> list[Job]:
        """Submissions, oldest first.

        Args:
            service: Only those to this service.
            states: Only those in one of these states; none stands for all.
        """
        conditions = ["service = ?"] if service is not None else []
        values = [service] if service is not None else []
        if states:
            conditions.append(f"state IN ({_marks(states)})")
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return self._read(f"{where}ORDER BY created, rowid", [*values, *states])

    def of_transcript(self, transcript_id: str) -> list[Job]:
        """Submissions that led to a transcript."""
        return self._read("WHERE transcript_id = ?", [transcript_id])

    def save(self, job: Job, **changes: Any) -> Job:
        """Keep a submission as it is now; it is on the disk when this returns.

        Args:
            job: The submission.
            **changes: Attributes that change.
        """
        return self.save_all([replace(job, **changes)])[0]

    def save_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Keep submissions, all or none of them."""
        kept = _stamped(jobs)
        updates = ", ".join(f"{name} = excluded.{name}" for name in _NAMES if name != "key")
        with self.writing() as db:
            db.executemany(f"{_INSERT} ON CONFLICT (key) DO UPDATE SET {updates}", _rows(kept))
        return kept

    def plan(self, jobs: Iterable[Job]) -> None:
        """Keep submissions that are not here yet; of the others only where the recording is and what is known of it."""
        kept = _stamped(jobs)
        known = (
            "source = excluded.source, metadata = excluded.metadata, "
            "audio_duration_s = coalesce(audio_duration_s, excluded.audio_duration_s)"
        )
        with self.writing() as db:
            db.executemany(f"{_INSERT} ON CONFLICT (key) DO UPDATE SET {known}", _rows(kept))

    def remove(self, transcript_id: str) -> None:
        """Forget the submissions that led to a transcript."""
        if self.path.exists():
            with self.writing() as db:
                db.execute("DELETE FROM jobs WHERE transcript_id = ?", [transcript_id])
                about_it = (
                    "transcript_id = ? OR request_id IN (SELECT request_id FROM requests WHERE transcript_id = ?)"
                    " OR ? IN (SELECT value FROM json_each(request, '$.transcript_ids'))"
                )
                db.execute(f"DELETE FROM answers WHERE {about_it}", [transcript_id] * 3)  # noqa: S608
                db.execute("DELETE FROM requests WHERE transcript_id = ?", [transcript_id])
                db.execute("DELETE FROM about WHERE transcript_id = ?", [transcript_id])

    def metadata(self) -> list[tuple[str, str]]:
        """Columns about recordings: transcripts, each with some of them as JSON, the later ones to be preferred."""
        if not self.path.exists():
            return []
        with self.opened() as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()  # an older one in a directory nobody can write
            rows = db.execute(_ABOUT_JOBS if version < _VERSION else f"{_ABOUT} UNION ALL {_ABOUT_JOBS}").fetchall()
        return [(transcript_id, text or "{}") for transcript_id, text in rows]

    def set_metadata(self, rows: Mapping[str, str]) -> None:
        """Change columns about recordings, all or none; those that are not named stay.

        Args:
            rows: Columns as JSON, by transcript.
        """
        with self.writing() as db:
            db.execute("BEGIN IMMEDIATE")
            jobs = dict(db.execute(_ABOUT_JOBS).fetchall())
            others = dict(db.execute(_ABOUT).fetchall())
            for transcript_id, text in rows.items():
                of_job = transcript_id in jobs
                old = (jobs if of_job else others).get(transcript_id) or "{}"
                new = merged(old, text)
                if of_job:
                    db.execute("UPDATE jobs SET metadata = ? WHERE transcript_id = ?", [new, transcript_id])
                else:
                    db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", [transcript_id, new])

    def drop_unsent(self, key: str) -> bool:
        """Forget a submission that was not sent; whether there was one."""
        if not self.path.exists():
            return False
        with self.writing() as db:
            where = f"key = ? AND state IN ({_marks(UNSENT)})"
            dropped = db.execute(f"DELETE FROM jobs WHERE {where}", [key, *UNSENT]).rowcount  # noqa: S608  no value in it
        return bool(dropped)

    def note_request(self, request_id: str, service: str, transcript_ids: Iterable[str]) -> None:
        """Remember which transcripts a language-model answer is about."""
        with self.writing() as db:
            rows = [(request_id, service, identifier) for identifier in transcript_ids]
            db.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", rows)

    def requests(self, service: str, transcript_id: str) -> list[str]:
        """Identifiers of the language-model answers of a service that are about a transcript."""
        if not self.path.exists():
            return []
        with self.opened() as db:
            where = "service = ? AND transcript_id = ? ORDER BY rowid"
            rows = db.execute(f"SELECT request_id FROM requests WHERE {where}", [service, transcript_id])  # noqa: S608
            return [row[0] for row in rows]

    def drop_request(self, request_id: str, service: str) -> None:
        """Forget a language-model answer."""
        with self.writing() as db:
            for table in ("requests", "answers"):
                db.execute(f"DELETE FROM {table} WHERE request_id = ? AND service = ?", [request_id, service])  # noqa: S608

    def turn(self, key: str, *, wait: bool = True) -> contextlib.AbstractContextManager[bool]:
        """Hold the only right to work on a submission; see `turns.turn`."""
        return turn(self.path.parent / ".locks" / key, wait=wait)

    def files(self) -> dict[str, tuple[str, str, float | None]]:
        """Signature, hash and duration of every file that was read before, by its path or address."""
        if not self.path.exists():
            return {}
        with self.opened() as db:
            rows = db.execute("SELECT place, signature, media, audio_duration_s FROM files").fetchall()
        return {row[0]: row[1:] for row in rows}

    def file(self, place: str) -> tuple[str, str, float | None] | None:
        """The same of one file; None where it was not read before."""
        if not self.path.exists():
            return None
        with self.opened() as db:
            row = db.execute("SELECT signature, media, audio_duration_s FROM files WHERE place = ?", [place]).fetchone()
        return row and tuple(row)

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Remember files as `files` gives them; nothing where the corpus is not there yet or cannot be written."""
        if not files or not self.path.parent.is_dir() or not os.access(self.path.parent, os.W_OK):
            return
        with self.writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO files (place, signature, media, audio_duration_s) VALUES (?, ?, ?, ?)",
                [(place, *known) for place, known in files.items()],
            )

    def _read(self, condition: str, values: Iterable[object]) -> list[Job]:
        if not self.path.exists():
            return []
        with self.opened() as db:
            rows = db.execute(f"SELECT {', '.join(_NAMES)} FROM jobs {condition}", [*values]).fetchall()  # noqa: S608
        return [_job(row) for row in rows]

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The open file; all that is written inside is kept, or nothing of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.opened() as db, db:
            yield db

    @contextlib.contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """The open file, for reading."""
        _refuse_emptied(self.path)
        writable = not self.path.exists() or os.access(self.path.parent, os.W_OK)
        db = sqlite3.connect(self.path if writable else _read_only(self.path), timeout=30, uri=not writable)
        try:
            if writable:
                _prepare(db)
            yield db
        finally:
            db.close()


def _refuse_emptied(path: Path) -> None:
    """SQLite takes a file that lost all its bytes for a new database: all would be sent again, and paid for.

    Raises:
        sqlite3.DatabaseError: The file is empty, and not one that another process is just making.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        if found.st_size == 0 and time.time() - found.st_mtime > _NEW_S:
            raise sqlite3.DatabaseError("the file is empty")


def _read_only(path: Path) -> str:
    """Address of a ledger in a directory that cannot be written.

    Nobody writes there, so SQLite need not look for changes, which it could not do without writing. Only where a writer
    died it has to read what is in that one's log.
    """
    died = path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?mode=ro{'' if died else '&immutable=1'}"


def _prepare(db: sqlite3.Connection) -> None:
    """Settings of a connection, and the tables where they are missing or from an earlier version."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # what was sent must be known after a power cut, too
    db.execute("PRAGMA secure_delete = ON")  # what is forgotten is gone, not only out of sight
    if db.execute("PRAGMA user_version").fetchone()[0] >= _VERSION:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE IF NOT EXISTS jobs (key PRIMARY KEY)")
        present = {row[1] for row in db.execute("PRAGMA table_info(jobs)")}
        for name in _NAMES:
            if name not in present:
                db.execute(f"ALTER TABLE jobs ADD COLUMN {name}")
        db.execute("CREATE INDEX IF NOT EXISTS jobs_by_transcript ON jobs (transcript_id)")
        db.execute("CREATE TABLE IF NOT EXISTS files (place PRIMARY KEY, signature, media, audio_duration_s)")
        columns = "request_id, service, transcript_id"
        db.execute(f"CREATE TABLE IF NOT EXISTS requests ({columns}, PRIMARY KEY ({columns}))")
        db.execute("CREATE TABLE IF NOT EXISTS about (transcript_id PRIMARY KEY, metadata)")
        columns = "key PRIMARY KEY, service, transcript_id, request_id, request, content, created"
        db.execute(f"CREATE TABLE IF NOT EXISTS answers ({columns})")
        db.execute(f"PRAGMA user_version = {_VERSION}")


def _job(row: tuple[Any, ...]) -> Job:
    values = dict(zip(_NAMES, row, strict=True))
    for name in _TIMES:
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    values["attempts"] = values["attempts"] or 0  # these three are null in ledgers of the first version
    values["media"] = values["media"] or ""
    values["metadata"] = values["metadata"] or "{}"
    return Job(**values)


def _stamped(jobs: Iterable[Job]) -> list[Job]:
    moment = now()
    return [replace(job, created=job.created or moment, updated=moment) for job in jobs]


def _rows(jobs: Iterable[Job]) -> list[list[object]]:
    return [[_stored(getattr(job, name)) for name in _NAMES] for job in jobs]


def _stored(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
