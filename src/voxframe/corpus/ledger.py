"""The ledger of a corpus: every job with its state, so that nothing is submitted or paid for twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from voxframe._files import file_lock, private_folder
from voxframe._text import quantity
from voxframe.corpus import ledger_file
from voxframe.corpus.addresses import job_stem
from voxframe.corpus.job import (
    JOB_COLUMNS,
    PENDING,
    RECORDED,
    Job,
    JobRecords,
    State,
    job_of,
    merged,
    now,
    parse_row,
    progress,
    record_of,
    stored,
)
from voxframe.corpus.store import check_writable, is_writable
from voxframe.errors import CorpusWarning

#: First version of the ledger with metadata for transcripts that were not submitted from this corpus.
_WITH_ABOUT = 2
#: First version of the ledger with names of recordings.
_WITH_RECORDINGS = 5
_RECORDINGS = (
    "SELECT transcript_id, recording, source FROM recordings "
    "UNION ALL SELECT transcript_id, recording, source FROM jobs WHERE transcript_id IS NOT NULL"
)
_RECORD = ("transcript_id", "recording", "source", "audio")
_ABOUT = "SELECT transcript_id, metadata FROM about"
_ABOUT_JOBS = "SELECT transcript_id, metadata FROM jobs WHERE transcript_id IS NOT NULL"
#: Conditions for the rows about a transcript, by table, in the order in which they can be deleted.
_ABOUT_IT = {
    "jobs": "transcript_id = ?1",
    "answers": "transcript_id = ?1 OR request_id IN (SELECT request_id FROM requests WHERE transcript_id = ?1) "
    "OR ?1 IN (SELECT value FROM json_each(request, '$.transcript_ids'))",
    "requests": "transcript_id = ?1",
    "about": "transcript_id = ?1",
    "recordings": "transcript_id = ?1",
}
_INSERT = f"INSERT INTO jobs ({', '.join(JOB_COLUMNS)}) VALUES ({', '.join('?' * len(JOB_COLUMNS))})"  # noqa: S608  no value in it
_UPSERT = f"{_INSERT} ON CONFLICT (key) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in JOB_COLUMNS if name != "key"
)

#: `Ledger.name_recordings`.
Naming: TypeAlias = Callable[[Mapping[str, tuple[str, str | None, str]]], dict[str, dict[str, str | None]]]


class Ledger:
    """Jobs in an SQLite file that several processes can use at the same time.

    A job that the service has or may have is also recorded in the folder `.submissions` beside the file. The record is
    deleted when the payload is stored, because the payload then holds a copy of it.

    Args:
        path: The file. It is created when the first job is saved.
        archived_records: Returns the records that are stored with payloads.
        archived_recordings: Returns the recordings that are stored with payloads, as `name_recordings` returns them.
    """

    def __init__(
        self,
        path: Path,
        archived_records: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
        archived_recordings: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
    ) -> None:
        self.path = path
        self._records = JobRecords(path.parent / ".submissions")
        self._archived_records = archived_records
        self._archived_recordings = archived_recordings

    def find(self, key: str) -> Job | None:
        """Return the job with this key, or None."""
        return next(iter(self._read("WHERE key = ?", [key])), None)

    def jobs(self, service: str | None = None, states: Collection[State] = ()) -> list[Job]:
        """Return jobs, oldest first.

        Args:
            service: Return only jobs of this service. None (default): of all services.
            states: Return only jobs in these states. Empty (default): in any state.
        """
        conditions = ["service = ?"] if service is not None else []
        values = [service] if service is not None else []
        if states:
            conditions.append(f"state IN ({_marks(states)})")
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return self._read(f"{where}ORDER BY created, rowid", [*values, *states])

    def of_transcript(self, transcript_id: str) -> list[Job]:
        """Return the jobs that produced a transcript."""
        return self._read("WHERE transcript_id = ?", [transcript_id])

    def save(self, job: Job, **changes: Any) -> Job:
        """Save a job. It is on disk when this returns.

        Args:
            job: The job.
            **changes: Attributes to change first.
        """
        return self.save_all([replace(job, **changes)])[0]

    def save_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Save jobs in one transaction."""
        with self.writing() as db:
            db.execute("BEGIN IMMEDIATE")
            kept = self._keep(db, jobs)
        for job in kept:
            if job.state not in RECORDED:
                self._records.drop(job.key)
        return kept

    def _keep(self, db: sqlite3.Connection, jobs: Iterable[Job]) -> list[Job]:
        """Write jobs, their records first: a sent job must be known even if the ledger is lost."""
        kept = _ordered(db, _named(db, _stamped(jobs)))
        for job in kept:
            if job.state in RECORDED:
                self._records.write(job.key, record_of(job))
        db.executemany(_UPSERT, _rows(kept))
        return kept

    def claim(self, job: Job, transcript_id: str) -> Job | None:
        """Assign a transcript of the service's list to a job, unless another job owns it.

        Args:
            job: The job.
            transcript_id: The transcript id.

        Returns:
            The updated job. None if the transcript belongs to another job.
        """
        with self.writing() as db:
            db.execute("BEGIN IMMEDIATE")
            others = "service = ? AND transcript_id = ? AND key != ?"
            values = [job.service, transcript_id, job.key]
            if db.execute(f"SELECT 1 FROM jobs WHERE {others}", values).fetchone():  # noqa: S608  no value in it
                return None
            return self._keep(db, [replace(job, state="submitted", transcript_id=transcript_id, error=None)])[0]

    def plan(self, jobs: Iterable[Job]) -> None:
        """Add jobs. For known jobs, update only the source, the metadata, the name and a missing duration."""
        known = (
            "source = excluded.source, metadata = excluded.metadata, recording = excluded.recording, "
            "audio_duration_s = coalesce(audio_duration_s, excluded.audio_duration_s)"
        )
        with self.writing() as db:
            db.execute("BEGIN IMMEDIATE")
            kept = _named(db, _stamped(jobs))
            db.executemany(f"{_INSERT} ON CONFLICT (key) DO UPDATE SET {known}", _rows(kept))

    def has(self, transcript_id: str) -> bool:
        """Return True if there is a job that produced a transcript, or anything else about it."""
        if not self.path.exists():
            return False
        with self.opened() as db:
            tables = (f"SELECT 1 FROM {table} WHERE {about_it}" for table, about_it in _ABOUT_IT.items())  # noqa: S608
            return db.execute(" UNION ALL ".join(tables), [transcript_id]).fetchone() is not None

    def drop_jobs(self, transcript_id: str) -> None:
        """Delete the jobs that produced a transcript, so that it is not fetched again. Name and metadata are kept."""
        if jobs := self.of_transcript(transcript_id):
            for job in jobs:  # first: a ledger that is made from the records would have the job again
                self._records.drop(job.key)
            of_jobs = "FROM jobs WHERE transcript_id = ?"
            with self.writing() as db:
                for into in (
                    "recordings SELECT transcript_id, recording, source, media",
                    "about SELECT transcript_id, metadata",
                ):
                    db.execute(f"INSERT OR IGNORE INTO {into} {of_jobs}", [transcript_id])
                db.execute(f"DELETE {of_jobs}", [transcript_id])

    def remove(self, transcript_id: str) -> None:
        """Delete the jobs that produced a transcript, and everything else about it."""
        self.drop_jobs(transcript_id)
        if self.path.exists():
            with self.writing() as db:
                for table, about_it in _ABOUT_IT.items():
                    db.execute(f"DELETE FROM {table} WHERE {about_it}", [transcript_id])  # noqa: S608

    def metadata(self) -> list[tuple[str, str]]:
        """Return transcript ids, each with metadata columns as JSON. Later rows take precedence."""
        if not self.path.exists():
            return []
        with self.opened() as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()  # older if the directory is read-only
            rows = db.execute(_ABOUT_JOBS if version < _WITH_ABOUT else f"{_ABOUT} UNION ALL {_ABOUT_JOBS}").fetchall()
        return [(transcript_id, text or "{}") for transcript_id, text in rows]

    def recordings(self, ids: Collection[str] | None = None) -> tuple[dict[str, str], dict[str, str | None]]:
        """Return the names and the sources of the recordings of transcripts, by transcript id.

        Those without a name are missing.

        Args:
            ids: Ids of transcripts. None (default): all.
        """
        folder = self.path.parent
        if not ledger_file.is_there(self.path) and not ((folder / "raw").is_dir() and is_writable(folder)):
            return {}, {}
        with self.opened() as db:  # rebuilds a missing ledger from the payloads
            if db.execute("PRAGMA user_version").fetchone()[0] < _WITH_RECORDINGS:  # and the directory is read-only
                return {}, {}
            where, values = "", []
            if ids is not None:
                where, values = " WHERE transcript_id IN (SELECT value FROM json_each(?))", [json.dumps(list(ids))]
            rows = db.execute(f"SELECT * FROM ({_RECORDINGS}){where}", values)  # noqa: S608  no value in it
            names, sources = dict[str, str](), dict[str, str | None]()  # a tuple each would take time to collect
            for transcript_id, recording, source in rows:
                names[transcript_id], sources[transcript_id] = recording, source
            return names, sources

    def with_recording(self, recording: str) -> list[str]:
        """Return the ids of the transcripts of the recordings with a name, oldest first."""
        return list(dict.fromkeys(self._of_recordings("transcript_id", "WHERE recording = ?", recording)))

    def shared_recordings(self) -> set[str]:
        """Return the names of the recordings that have several transcripts."""
        return set(self._of_recordings("recording", "GROUP BY recording HAVING count(DISTINCT transcript_id) > 1"))

    def _of_recordings(self, column: str, chosen: str, *values: str) -> list[str]:
        """Return a column of the recordings of transcripts that an SQL clause chooses."""
        if not ledger_file.is_there(self.path):
            return []
        with self.opened() as db:
            if db.execute("PRAGMA user_version").fetchone()[0] < _WITH_RECORDINGS:
                return []
            rows = db.execute(f"SELECT {column} FROM ({_RECORDINGS}) {chosen}", values)  # noqa: S608  no value in it
            return [row[0] for row in rows]

    def name_recordings(self, wanted: Mapping[str, tuple[str, str | None, str]]) -> dict[str, dict[str, str | None]]:
        """Name the recordings of transcripts that were not submitted from here. Known ones keep their names.

        Args:
            wanted: Wanted name, source and identity of the audio (empty if unknown), by transcript id.

        Returns:
            The record of each recording by transcript id: `transcript_id`, `recording`, `source` and `audio`. Those of
            submitted recordings are missing: their jobs hold them.
        """
        with self.naming() as name:
            return name(wanted)

    @contextlib.contextmanager
    def naming(self) -> Iterator[Naming]:
        """Yield `name_recordings` for many calls by one thread: opening and closing the file takes ten times as long.

        The file is opened again if it was replaced in the meantime.
        """
        with contextlib.ExitStack() as opened:
            db: sqlite3.Connection | None = None
            at: tuple[int, int] | None = None

            def name(wanted: Mapping[str, tuple[str, str | None, str]]) -> dict[str, dict[str, str | None]]:
                nonlocal db, at
                check_writable(self.path.parent)
                if db is None or at != self._place():
                    opened.close()
                    private_folder(self.path.parent)
                    db = opened.enter_context(self.opened())
                    at = self._place()
                with db:
                    return _name_recordings(db, wanted)

            yield name

    def _place(self) -> tuple[int, int] | None:
        """Return what differs between the file and one that replaces it; None if there is no file."""
        with contextlib.suppress(FileNotFoundError):
            found = self.path.stat()
            return found.st_dev, found.st_ino
        return None

    def set_metadata(self, rows: Mapping[str, str], is_stored: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Update metadata columns in one transaction. Other columns keep their values.

        Args:
            rows: Columns as JSON, by transcript id.
            is_stored: Returns True if a transcript is in the corpus. The default takes it for granted.

        Returns:
            Ids of transcripts that are not stored and have no job. If there are any, nothing was changed.
        """
        with self.writing() as db:
            db.execute("BEGIN IMMEDIATE")  # `remove` waits, so that nothing is left of a transcript that is deleted
            jobs = dict(db.execute(_ABOUT_JOBS).fetchall())
            if unknown := [i for i in rows if i not in jobs and not is_stored(i)]:
                return unknown
            others = dict(db.execute(_ABOUT).fetchall())
            for transcript_id, text in rows.items():
                of_job = transcript_id in jobs
                old = (jobs if of_job else others).get(transcript_id) or "{}"
                new = merged(old, text)
                if of_job:
                    db.execute("UPDATE jobs SET metadata = ? WHERE transcript_id = ?", [new, transcript_id])
                else:
                    db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", [transcript_id, new])
        return []

    def drop_unreadable(self, keys: Iterable[str]) -> None:
        """Delete jobs of recordings that could not be read before and can be read now."""
        with self.writing() as db:
            db.executemany("DELETE FROM jobs WHERE key = ? AND attempts = 0", [(key,) for key in keys])

    def drop_names(self, ids: Iterable[str]) -> None:
        """Delete the names of recordings whose transcripts were not stored after all."""
        with self.writing() as db:
            db.executemany("DELETE FROM recordings WHERE transcript_id = ?", [(one,) for one in ids])

    def drop_pending(self, key: str) -> bool:
        """Delete a job that was not sent. Return True if there was one."""
        if not self.path.exists():
            return False
        with self.writing() as db:
            where = f"key = ? AND state IN ({_marks(PENDING)})"
            dropped = db.execute(f"DELETE FROM jobs WHERE {where}", [key, *PENDING]).rowcount  # noqa: S608  no value in it
        return bool(dropped)

    def note_request(self, request_id: str, service: str, transcript_ids: Iterable[str]) -> None:
        """Record which transcripts a language-model response is about."""
        with self.writing() as db:
            rows = [(request_id, service, identifier) for identifier in transcript_ids]
            db.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", rows)

    def requests(self, service: str, transcript_id: str) -> list[str]:
        """Return the request ids of a service's language-model responses about a transcript."""
        if not self.path.exists():
            return []
        with self.opened() as db:
            where = "service = ? AND transcript_id = ? ORDER BY rowid"
            rows = db.execute(f"SELECT request_id FROM requests WHERE {where}", [service, transcript_id])  # noqa: S608
            return [row[0] for row in rows]

    def drop_request(self, request_id: str, service: str) -> None:
        """Delete a language-model response."""
        with self.writing() as db:
            known = [request_id, service]
            db.execute("DELETE FROM requests WHERE request_id = ? AND service = ?", known)
            of_answer = "request_id = ? AND service = ?"
            db.execute(f"DELETE FROM answers WHERE {of_answer} AND pending_since IS NULL", known)  # noqa: S608
            db.execute(f"UPDATE answers SET request_id = NULL, content = NULL WHERE {of_answer}", known)  # noqa: S608

    def lock(self, key: str, *, wait: bool = True) -> contextlib.AbstractContextManager[bool]:
        """Return a context manager that holds the lock of a job; see `_files.file_lock`.

        Args:
            key: Key of the job.
            wait: Wait for the lock if another process holds it.
        """
        private_folder(self.path.parent)
        return file_lock(self.path.parent / ".locks" / key, wait=wait)

    def files(self) -> dict[str, tuple[str, str, float | None]]:
        """Return signature, hash and duration of every file read before, by path or URL."""
        if not self.path.exists():
            return {}
        with self.opened() as db:
            rows = db.execute("SELECT place, signature, media, audio_duration_s FROM files").fetchall()
        return {row[0]: row[1:] for row in rows}

    def file(self, place: str) -> tuple[str, str, float | None] | None:
        """Return signature, hash and duration of one file. None if it was not read before."""
        if not self.path.exists():
            return None
        with self.opened() as db:
            row = db.execute("SELECT signature, media, audio_duration_s FROM files WHERE place = ?", [place]).fetchone()
        return row and tuple(row)

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Remember files in the form that `files` returns. Does nothing in a missing or read-only corpus."""
        if not files or not self.path.parent.is_dir() or not is_writable(self.path.parent):
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
            return _jobs(db, condition, values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction."""
        check_writable(self.path.parent)
        private_folder(self.path.parent)
        with self.opened() as db, db:
            yield db

    @contextlib.contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file. A missing or empty one is rebuilt first, so that no job is paid for twice."""
        writable = is_writable(self.path.parent)
        if writable and not ledger_file.is_there(self.path):
            self.rebuild()
        with ledger_file.opened(self.path, writable=writable) as db:
            yield db

    def restore(self) -> None:
        """Rebuild the ledger if it is missing or damaged. Does nothing in a read-only directory.

        Warns:
            CorpusWarning: Jobs were restored, or the ledger was damaged.
        """
        folder = self.path.parent
        if not folder.is_dir() or not is_writable(folder) or ledger_file.is_sound(self.path):
            return
        with self.lock("ledger"):
            if ledger_file.is_sound(self.path):  # another process has made it in the meantime
                return
            was_there = self.path.exists()
            count = self._make()
        if count or was_there:
            found = f"damaged; it is kept as {ledger_file.damaged_path(self.path)}" if was_there else "missing"
            warnings.warn(
                f"the ledger of the corpus {folder} was {found}. It was rebuilt with {quantity(count, 'submission')}",
                CorpusWarning,
                stacklevel=4,
            )

    def rebuild(self) -> int:
        """Rebuild the ledger from the recorded jobs and the readable rows of a damaged ledger.

        If the ledger is sound, only update jobs with a more recent record, for example after a backup was restored.

        Returns:
            Number of restored jobs.
        """
        check_writable(self.path.parent)
        private_folder(self.path.parent)
        with self.lock("ledger"):
            if not ledger_file.is_sound(self.path):
                return self._make()
            with self.writing() as db:
                db.execute("BEGIN IMMEDIATE")  # no other process changes or deletes a job until this is done
                better = _better(self.recorded(), {job.key: job for job in _jobs(db)})
                db.executemany(_UPSERT, _rows(better))
                db.executemany("INSERT OR IGNORE INTO recordings VALUES (?, ?, ?, ?)", self._recorded_names())
                ledger_file.name_jobs(db)
            return len(better)

    def _make(self) -> int:
        """Make the ledger from the recorded jobs and the readable rows of a damaged ledger. The caller holds the lock.

        Returns:
            Number of jobs.
        """
        found = ledger_file.salvage(self.path)
        rows = (dict(zip(JOB_COLUMNS, row, strict=True)) for row in found["jobs"])
        known = {job.key: job for row in rows if (job := job_of(row)) is not None}
        known |= {job.key: job for job in _better(self.recorded(), known)}
        names = [*self._recorded_names(), *found["recordings"]]
        ledger_file.make(self.path, {**found, "jobs": _rows(known.values()), "recordings": names})
        return len(known)

    def recorded(self) -> list[Job]:
        """Return the jobs that are recorded outside the ledger, each in its most advanced state."""
        found: dict[str, Job] = {}
        for record in (*self._archived_records(), *self._records.all()):
            job = job_of(record)
            if job is not None and (job.key not in found or progress(job) > progress(found[job.key])):
                found[job.key] = job
        return list(found.values())

    def _recorded_names(self) -> list[tuple[str | None, ...]]:
        """Return the rows of `recordings` that are stored with payloads."""
        return [tuple(record.get(name) for name in _RECORD) for record in self._archived_recordings()]


def _jobs(db: sqlite3.Connection, condition: str = "", values: Iterable[object] = ()) -> list[Job]:
    rows = db.execute(f"SELECT {', '.join(JOB_COLUMNS)} FROM jobs {condition}", [*values])  # noqa: S608  no value in it
    return [parse_row(row) for row in rows]


def _better(recorded: Iterable[Job], known: Mapping[str, Job]) -> list[Job]:
    """Return the recorded jobs that are missing from `known` or more advanced than in it."""
    better = []
    for job in recorded:
        old = known.get(job.key)
        if old is None:
            better.append(job)
        elif progress(job) > progress(old):
            better.append(replace(job, metadata=merged(job.metadata, old.metadata)))
    return better


def _stamped(jobs: Iterable[Job]) -> list[Job]:
    moment = now()
    return [replace(job, created=job.created or moment, updated=moment) for job in jobs]


def _named(db: sqlite3.Connection, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs with the names of their recordings. A known job keeps its name, unless it is given another one."""
    giver, named = ledger_file.NameGiver(db), []
    for job in jobs:
        name = job.recording
        if name is None:
            known = db.execute("SELECT recording FROM jobs WHERE key = ?", [job.key]).fetchone()
            name = known and known[0]
        if name is None:
            name = giver.name(job_stem(job.source, job.transcript_id, job.key), job.media)
        named.append(replace(job, recording=giver.keep(name, job.media)))
    return named


def _ordered(db: sqlite3.Connection, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs with their position among requests and responses, if they are being sent or have a new response."""
    last = db.execute("SELECT (SELECT max(sent_order) FROM jobs), (SELECT max(answered_order) FROM jobs)").fetchone()
    place = max((known for known in last if known is not None), default=0)
    kept = []
    for job in jobs:
        place += 1
        if job.state == "submitting":
            kept.append(replace(job, sent_order=place, sent_clock_s=time.monotonic(), answered_order=None))
        elif job.transcript_id is not None and job.answered_order is None:
            kept.append(replace(job, answered_order=place))
        else:
            kept.append(job)
    return kept


def _rows(jobs: Iterable[Job]) -> list[list[object]]:
    return [[stored(getattr(job, name)) for name in JOB_COLUMNS] for job in jobs]


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _name_recordings(
    db: sqlite3.Connection, wanted: Mapping[str, tuple[str, str | None, str]]
) -> dict[str, dict[str, str | None]]:
    """Name recordings in one transaction: see `Ledger.name_recordings`."""
    db.execute("BEGIN IMMEDIATE")
    known = json.dumps(list(wanted))
    of_jobs = "SELECT transcript_id FROM jobs WHERE transcript_id IN (SELECT value FROM json_each(?))"
    submitted = {row[0] for row in db.execute(of_jobs, [known])}
    old_names = "SELECT * FROM recordings WHERE transcript_id IN (SELECT value FROM json_each(?))"
    found = {row[0]: dict(zip(_RECORD, row, strict=True)) for row in db.execute(old_names, [known])}
    giver = ledger_file.NameGiver(db)
    for transcript_id, (stem, source, audio) in wanted.items():
        if transcript_id not in submitted and transcript_id not in found:
            row = (transcript_id, giver.name(stem, audio), source, audio)
            db.execute("INSERT INTO recordings VALUES (?, ?, ?, ?)", row)
            found[transcript_id] = dict(zip(_RECORD, row, strict=True))
    return found
