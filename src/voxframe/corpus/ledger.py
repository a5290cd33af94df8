"""The ledger of a corpus: what was sent to which service, and what became of it, so that nothing is sent twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from voxframe.options import DEFAULTS
from voxframe.schema import JOBS


@dataclass(frozen=True)
class Job:
    """A row of the table `jobs`: one submission.

    Attributes:
        key: Hash of the media, the options and the service.
        source: File or address that was submitted.
        service: Name of the service.
        options: Its options, as JSON.
        state: uploading, submitting, submitted, completed, error or uncertain.
        transcript_id: Identifier, once the service gave one.
        error: Why it failed.
        created: When it was asked for, UTC.
        updated: When its state last changed, UTC.
    """

    key: str
    source: str
    service: str
    options: str
    state: str
    transcript_id: str | None = None
    error: str | None = None
    created: datetime | None = None
    updated: datetime | None = None


_NAMES = ", ".join(f.name for f in fields(Job))


def new_job(audio: str | os.PathLike[str], options: Mapping[str, Any], service: str) -> Job:
    """The submission of some media with some options to a service, before anything is sent.

    The same content and the same options give the same key, whatever the file is called and however the options were
    spelled. Where notifications go makes no difference to a transcript and is neither part of the key nor kept.

    Args:
        audio: Path of a local file, or an address.
        options: Options as `voxframe.options.check` returns them.
        service: Name of the service.

    Raises:
        OSError: The file cannot be read.
    """
    wanted = {k: v for k, v in options.items() if DEFAULTS.get(k) != v and not k.startswith("webhook_")}
    spelled = json.dumps(wanted, sort_keys=True, ensure_ascii=False)
    source = os.fspath(audio)
    media = source if is_address(source) else "sha256:" + _file_hash(Path(source))
    key = hashlib.sha256(json.dumps([media, spelled, service]).encode()).hexdigest()
    shown = source.encode("utf-8", "backslashreplace").decode()  # a file name need not be text
    return Job(key, shown, service, spelled, "uploading")


def is_address(source: str) -> bool:
    """Whether a source is an http or https address, not a file."""
    return source.lower().startswith(("http://", "https://"))


class Ledger:
    """Submissions in an SQLite file, which several processes may use at once.

    Args:
        path: The file; made when the first submission is saved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, key: str) -> Job | None:
        """The submission with this key, if there is one."""
        return next(iter(self._read("WHERE key = ?", key)), None)

    def save(self, job: Job, **changes: Any) -> Job:
        """Keep a submission as it is now; it is on the disk when this returns.

        Args:
            job: The submission.
            **changes: Attributes that change.
        """
        now = datetime.now(UTC).replace(tzinfo=None)
        job = replace(job, **changes, created=job.created or now, updated=now)
        values = [value.isoformat() if isinstance(value, datetime) else value for value in astuple(job)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            marks = ", ".join("?" * len(values))
            db.execute(f"INSERT OR REPLACE INTO jobs ({_NAMES}) VALUES ({marks})", values)  # noqa: S608  no value in it
        return job

    def table(self) -> pa.Table:
        """All submissions as the table `jobs`, oldest first."""
        rows = [asdict(job) for job in self._read("ORDER BY created")]
        return pa.Table.from_pylist(rows, schema=JOBS.arrow)

    @contextlib.contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """Hold the only right to work on a submission, waiting for another process or thread that holds it.

        The operating system takes it back when a process ends in whatever way, so a submission found half-done inside
        belongs to nobody alive.
        """
        folder = self.path.parent / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / key).open("ab") as file:
            _lock(file.fileno())
            yield

    def _read(self, condition: str, *values: str) -> list[Job]:
        if not self.path.exists():
            return []
        with self._open() as db:
            rows = db.execute(f"SELECT {_NAMES} FROM jobs {condition}", values).fetchall()  # noqa: S608  no value in it
        return [Job(*row[:-2], *map(datetime.fromisoformat, row[-2:])) for row in rows]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=30)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")  # what was sent must be known after a power cut, too
            db.execute(f"CREATE TABLE IF NOT EXISTS jobs ({_NAMES}, PRIMARY KEY (key))")
            with db:
                yield db
        finally:
            db.close()


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lock(descriptor: int) -> None:
    """Wait for the exclusive lock on an open file; closing it gives the lock back."""
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
    else:
        import msvcrt
        import time

        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            except OSError:
                time.sleep(0.2)
            else:
                return
