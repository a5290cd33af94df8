"""The SQLite file of a ledger: creation, upgrade, checks, names of recordings, and recovery of rows after damage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

from voxframe._files import hidden_path, open_sqlite, put_in_place
from voxframe.corpus.addresses import job_stem
from voxframe.corpus.job import JOB_COLUMNS
from voxframe.errors import CorpusError, VoxframeError

#: Increased when the tables change. A ledger of an earlier version is upgraded when it is next opened.
_VERSION = 5
#: Files that SQLite keeps beside a database.
_LOGS = ("-wal", "-shm")
#: Columns of the tables besides `jobs`. The first is the primary key; in `requests` it is all columns.
_TABLES = {
    "files": ("place", "signature", "media", "audio_duration_s"),
    "requests": ("request_id", "service", "transcript_id"),
    "about": ("transcript_id", "metadata"),
    "recordings": ("transcript_id", "recording", "source", "audio"),
    "answers": ("key", "service", "transcript_id", "request_id", "request", "content", "created", "pending_since"),
}
#: Tables that are not salvaged, because files are simply read again.
_NOT_SALVAGED = ("files",)
_SAME_AUDIO = (
    "SELECT recording FROM jobs WHERE media = ?1 AND recording IS NOT NULL AND ?1 != '' "
    "UNION ALL SELECT recording FROM recordings WHERE audio = ?1 AND ?1 != '' LIMIT 1"
)
_TAKEN = "SELECT recording FROM {} WHERE recording = ?1 OR (recording >= ?1 || '-' AND recording < ?1 || '.')"


def is_there(path: Path) -> bool:
    """Return True if there is a ledger. An empty file does not count."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def is_sound(path: Path) -> bool:
    """Return True if the ledger can be read from end to end.

    Raises:
        sqlite3.OperationalError: It is locked, or the disk fails.
    """
    if not is_there(path):
        return False
    try:
        with closing(_connect(path, "rw", pragmas=False)) as db:
            found = db.execute("PRAGMA integrity_check(1)").fetchone()
            return found == ("ok",) and bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'jobs'").fetchone())
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return False


@contextmanager
def opened(path: Path, *, writable: bool = True) -> Iterator[sqlite3.Connection]:
    """Open an existing ledger.

    Args:
        path: The file.
        writable: False in a read-only directory. The file is then opened as immutable, because SQLite could not lock
            it, unless a writer died and left a log that must be read.
    """
    died = path.with_name(f"{path.name}-wal").exists()
    database = _connect(path, "rw") if writable else _connect(path, "ro", immutable=not died)
    with closing(database) as db:
        if writable:
            _prepare(db, path)
        yield db


def make(path: Path, rows: Mapping[str, Iterable[Sequence[object]]]) -> None:
    """Create a ledger atomically, readable only by its owner. A damaged one is kept beside it."""
    hidden = hidden_path(path)
    try:
        os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with opened(hidden) as db, db:
            for table, known in rows.items():
                marks = ", ".join("?" * len(_columns(table)))
                db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", known)  # noqa: S608
            name_jobs(db)
        if is_there(path):
            path.replace(damaged_path(path))
        for suffix in _LOGS:  # of the old file: SQLite would apply them to the new one
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        put_in_place(hidden, path)
    finally:
        for suffix in ("", *_LOGS):
            hidden.with_name(hidden.name + suffix).unlink(missing_ok=True)


def damaged_path(path: Path) -> Path:
    """Return the path under which a damaged ledger is kept."""
    return path.with_name(f"{path.name}.damaged")


def salvage(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read every row of a damaged ledger that can still be read.

    Returns:
        Rows by table. Rows of `jobs` have the columns `JOB_COLUMNS`.
    """
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in ("jobs", *_TABLES):
        rows = found.setdefault(table, [])
        if not is_there(path) or table in _NOT_SALVAGED:
            continue
        with suppress(sqlite3.Error), closing(_connect(path, "rw", pragmas=False)) as db:
            present = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}  # fewer in an older ledger
            names = (name if name in present else "NULL" for name in _columns(table))
            # extend keeps the rows before the damage, too
            rows.extend(db.execute(f"SELECT {', '.join(names)} FROM {table}"))  # noqa: S608
    return found


def _connect(path: Path, mode: Literal["rw", "ro"], **options: Any) -> sqlite3.Connection:
    """Open the file, but not through a symbolic link: SQLite also writes when it reads.

    Raises:
        CorpusError: A symbolic link is in its place.
    """
    if path.is_symlink():
        raise CorpusError(
            f"the ledger {path} is a symbolic link, through which nothing is written; put the file itself in its place"
        )
    return open_sqlite(path, mode, **options)


def _columns(table: str) -> Sequence[str]:
    return JOB_COLUMNS if table == "jobs" else _TABLES[table]


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Configure a connection, and create or upgrade the tables."""
    if db.execute("PRAGMA user_version").fetchone()[0] >= _VERSION:
        return
    with suppress(OSError):  # the file belongs to another user
        path.chmod(0o600)
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE IF NOT EXISTS jobs (key PRIMARY KEY)")
        present = {row[1] for row in db.execute("PRAGMA table_info(jobs)")}
        for name in JOB_COLUMNS:
            if name not in present:
                db.execute(f"ALTER TABLE jobs ADD COLUMN {name}")
        db.execute("CREATE INDEX IF NOT EXISTS jobs_by_transcript ON jobs (transcript_id)")
        for name in ("sent_order", "answered_order"):
            db.execute(f"CREATE INDEX IF NOT EXISTS jobs_by_{name} ON jobs ({name})")
        # In a ledger of an earlier version: order these responses before all requests from now on.
        db.execute("UPDATE jobs SET answered_order = 0 WHERE transcript_id IS NOT NULL AND answered_order IS NULL")
        for table, columns in _TABLES.items():
            key = ", ".join(columns) if table == "requests" else columns[0]
            db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)}, PRIMARY KEY ({key}))")
        if not db.execute("SELECT 1 FROM pragma_table_info('answers') WHERE name = 'pending_since'").fetchone():
            db.execute("ALTER TABLE answers ADD COLUMN pending_since")
        for table, name in (
            ("jobs", "recording"),
            ("jobs", "media"),
            ("recordings", "recording"),
            ("recordings", "audio"),
        ):
            db.execute(f"CREATE INDEX IF NOT EXISTS {table}_by_{name} ON {table} ({name})")
        name_jobs(db)
        db.execute(f"PRAGMA user_version = {_VERSION}")


class NameGiver:
    """Gives names to recordings within one transaction of the ledger.

    Recordings with the same audio share a name. Another recording with a name that is taken gets `-2`, `-3` and so on.

    Args:
        db: The ledger, in a transaction that writes.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._of_audio: dict[str, str] = {}
        self._stored: dict[str, set[str]] = {}
        self._given: set[str] = set()
        self._last: dict[str, int] = {}

    def name(self, stem: str, audio: str) -> str:
        """Return the name of a recording.

        Args:
            stem: The wanted name.
            audio: Identity of the audio: recordings with the same one share a name. Empty: unknown.
        """
        if audio in self._of_audio:
            return self._of_audio[audio]
        known = self._db.execute(_SAME_AUDIO, [audio]).fetchone()
        return self.keep(known[0] if known else self._free(stem), audio)

    def keep(self, name: str, audio: str) -> str:
        """Note the name of an audio, for later names in this transaction."""
        self._given.add(name)
        if audio:
            self._of_audio[audio] = name
        return name

    def _free(self, stem: str) -> str:
        if stem not in self._stored:
            rows = [row for table in ("jobs", "recordings") for row in self._db.execute(_TAKEN.format(table), [stem])]
            self._stored[stem] = {name for (name,) in rows}
        for n in count(self._last.get(stem, 1)):
            name = stem if n == 1 else f"{stem}-{n}"
            if name not in self._stored[stem] and name not in self._given:
                self._last[stem] = n + 1
                return name
        raise AssertionError


def name_jobs(db: sqlite3.Connection) -> None:
    """Name the recordings of jobs that have no name, such as those of an older ledger, oldest first."""
    giver = NameGiver(db)
    unnamed = "SELECT key, source, media, transcript_id FROM jobs WHERE recording IS NULL ORDER BY created, rowid"
    for key, source, media, transcript_id in db.execute(unnamed).fetchall():
        name = giver.name(job_stem(source, transcript_id, key), media or "")
        db.execute("UPDATE jobs SET recording = ? WHERE key = ?", [name, key])


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Re-raise OS and SQLite errors as CorpusError, naming the corpus."""
    try:
        yield
    except VoxframeError:  # some of these are OSError too: no connection, no audio file
        raise
    except (OSError, sqlite3.Error) as e:
        if isinstance(e, sqlite3.DatabaseError) and not isinstance(e, sqlite3.OperationalError):
            raise CorpusError(
                f"the ledger of the corpus {path} is damaged ({e}). `voxframe doctor --corpus {path} --rebuild-ledger` "
                "rebuilds it from the records of submissions; Corpus.submit() and Corpus.sync() do so automatically"
            ) from None
        if getattr(e, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise CorpusError(
                f"the ledger of the corpus {path} is locked by another program; close that program, or wait until "
                "it has finished, and try again"
            ) from None
        reason = str(getattr(e, "strerror", None) or e)
        if isinstance(e, OSError) and e.errno and "Detail: [errno" in reason:  # by pyarrow, in more words
            reason = os.strerror(e.errno)
        raise CorpusError(f"cannot write to the corpus {path}: {reason}") from None
