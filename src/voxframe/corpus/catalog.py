"""The catalog of a corpus, `catalog.sqlite`: what is known about its transcripts, and which files hold their rows.

This module alone opens SQLite and takes locks. What people made or paid for is written to `records/` first, see
`records.py`; everything else can be made again from the payloads. So a catalog that is missing or damaged, or of
another version, is made again when it is next opened. If the directory cannot be written, that happens in memory.
Every row has a checksum, because SQLite does not notice a flipped bit in a value.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sqlite3
import stat
import threading
import time
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from voxframe._files import hidden_path, private_folder, put_in_place
from voxframe._shared_files import file_lock, open_sqlite
from voxframe._text import quantity
from voxframe.corpus.job import JOB_COLUMNS, Job, job_of, job_stem, merged, progress, record_of
from voxframe.corpus.records import Record, Records, encoded, has_older_layout, older_rows, remove_older_layout
from voxframe.corpus.store import Store, check_writable, is_writable
from voxframe.errors import CorpusError, CorpusWarning, DamagedFileError, VoxframeError


class _Table(NamedTuple):
    """A table of the catalog: its columns, how many of the first are its key, and whether its rows are recorded."""

    columns: Sequence[str]
    keys: int = 1
    recorded: bool = False
    indexes: Sequence[str] = ()


_TABLES = {
    "jobs": _Table(JOB_COLUMNS, 1, True, ("transcript_id", "sent_order", "answered_order", "recording", "media")),
    "files": _Table(("place", "signature", "media", "audio_duration_s")),
    "requests": _Table(("request_id", "service", "transcript_id"), 3, True),
    "about": _Table(("transcript_id", "metadata"), 1, True),
    "recordings": _Table(("transcript_id", "recording", "source", "audio"), 1, False, ("recording", "audio")),
    "answers": _Table(
        ("key", "service", "transcript_id", "request_id", "request", "content", "created", "pending_since"), 1, True
    ),
    "names": _Table(("transcript_id", "n", "state"), 2, True),
    "edits": _Table(("transcript_id", "n", "edit"), 2, True),
    "people": _Table(("change", "transcript_id", "labels"), 2, True, ("transcript_id",)),
    "voices": _Table(("transcript_id", "speaker", "spans", "sound", "vector"), 2),
    "parts": _Table(("part", "stem", "kind", "schema", "transcripts", "rows")),
    "members": _Table(("kind", "transcript_id", "part", "place", "source", "stamp", "status"), 2, False, ("part",)),
    "layouts": _Table(("part", "name", "groups", "crc"), 2),
    "segments": _Table(("name", "words", "documents", "stamp")),
    "documents": _Table(("file", "segment", "place", "stamp", "content")),
    "log": _Table(("file", "bytes")),
    "state": _Table(("name", "value")),
}
#: Small tables. Their checksums are compared when a corpus is opened, those of the others by `voxframe doctor`.
_SMALL = ("about", "names", "edits", "people", "requests", "answers", "parts", "layouts", "segments", "state")
#: Tables about the files with rows, which are all made again if one row is damaged.
_OF_FILES = ("parts", "layouts", "members")
#: Tables with what people made or paid for about a transcript.
FORGOTTEN = ("jobs", "requests", "about", "recordings", "answers", "names", "edits", "people", "voices")
#: Files that SQLite keeps beside a database.
_LOGS = ("-wal", "-shm")
_WAIT_S = 120.0  # for another process that changes the corpus
_SAME_AUDIO = (
    "SELECT recording FROM jobs WHERE media = ?1 AND recording IS NOT NULL AND ?1 != '' "
    "UNION ALL SELECT recording FROM recordings WHERE audio = ?1 AND ?1 != '' LIMIT 1"
)
_TAKEN = "SELECT recording FROM {} WHERE recording = ?1 OR (recording >= ?1 || '-' AND recording < ?1 || '.')"


def _statements() -> list[str]:
    """Return the statements that create the tables."""
    statements = []
    for name, table in _TABLES.items():
        key = (
            "part INTEGER PRIMARY KEY" if name == "parts" else f"PRIMARY KEY ({', '.join(table.columns[: table.keys])})"
        )
        columns = [*(table.columns[1:] if name == "parts" else table.columns), "sum"]
        statements.append(f"CREATE TABLE {name} ({', '.join([key, *columns] if name == 'parts' else [*columns, key])})")
        statements += [f"CREATE INDEX {name}_by_{column} ON {name} ({column})" for column in table.indexes]
    return statements


#: A catalog with other tables is made again.
_VERSION = zlib.crc32("\n".join(_statements()).encode()) & 0x7FFFFFFF


def _sum_of(name: str, values: Iterable[str]) -> str:
    return f"row_sum('{name}', {', '.join(values)})"


def _upsert(name: str) -> str:
    columns, keys, *_ = _TABLES[name]
    values = [f"?{n}" for n in range(1, len(columns) + 1)]
    insert = f"INSERT INTO {name} ({', '.join(columns)}, sum) VALUES ({', '.join(values)}, {_sum_of(name, values)})"  # noqa: S608
    changes = ", ".join(f"{column} = excluded.{column}" for column in [*columns[keys:], "sum"])
    return f"{insert} ON CONFLICT ({', '.join(columns[:keys])}) DO UPDATE SET {changes}"


_UPSERT = {name: _upsert(name) for name in _TABLES}


def _with_sums(db: sqlite3.Connection) -> sqlite3.Connection:
    """Let a connection compute the checksum of a row, from the values as SQLite stores them."""
    db.create_function("row_sum", -1, lambda *row: zlib.crc32(repr(row).encode()), deterministic=True)
    return db


def _bad_rows(db: sqlite3.Connection, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the rows of each table that have a wrong checksum, by their numbers."""
    by_table = {}
    for name in names:
        differs = f"sum IS NOT {_sum_of(name, _TABLES[name].columns)}"
        try:
            bad = [row for (row,) in db.execute(f"SELECT rowid FROM {name} WHERE {differs}")]  # noqa: S608  names of ours
        except sqlite3.OperationalError as error:
            if not _is_damage(error):
                raise
            bad = []  # a text is not UTF-8
            for (row,) in db.execute(f"SELECT rowid FROM {name}").fetchall():  # noqa: S608
                try:
                    bad += [row] * db.execute(f"SELECT {differs} FROM {name} WHERE rowid = ?", [row]).fetchone()[0]  # noqa: S608
                except sqlite3.OperationalError:
                    bad.append(row)
        if bad:
            by_table[name] = bad
    return by_table


def _is_damage(error: Exception) -> bool:
    """Return True if an error means that the file is damaged, and not that it cannot be read or written now."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR


class Writing:
    """A transaction: changes of the catalog, which are recorded before they are committed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.lines: list[bytes] = []

    def put(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows, replacing those with the same key."""
        rows = list(rows)
        if _TABLES[table].recorded:
            self.lines += [encoded({"table": table, "row": dict(row)}) for row in rows]
        _put(self._db, table, rows)

    def drop(self, table: str, **key: Any) -> int:
        """Delete the rows with these values. Return their number."""
        dropped = _drop(self._db, table, key)
        if dropped and _TABLES[table].recorded:
            self.lines.append(encoded({"table": table, "gone": key}))
        return dropped

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        return self._db.execute(query, values).fetchall()

    def find(self, table: str, **key: Any) -> list[dict[str, Any]]:
        """Return the rows with these values, oldest first."""
        return _find(self._db, table, **key)


def _find(db: sqlite3.Connection, table: str, **key: Any) -> list[dict[str, Any]]:
    columns = _TABLES[table].columns
    query = f"SELECT {', '.join(columns)} FROM {table} {_where(key)} ORDER BY rowid"  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in db.execute(query, [*key.values()])]


def _put(db: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    db.executemany(_UPSERT[table], [[row.get(column) for column in _TABLES[table].columns] for row in rows])


def _drop(db: sqlite3.Connection, table: str, key: Mapping[str, Any]) -> int:
    return db.execute(f"DELETE FROM {table} {_where(key)}", [*key.values()]).rowcount  # noqa: S608


def _where(key: Mapping[str, Any]) -> str:
    return f"WHERE {' AND '.join(f'{column} IS ?' for column in key)}" if key else ""


def _apply(db: sqlite3.Connection, record: Record) -> None:
    """Repeat a change that was recorded. Unknown tables and columns, of a later version, are left out."""
    table = record["table"]
    if table not in _TABLES or not _TABLES[table].recorded:
        return
    if "row" in record:
        _put(db, table, [record["row"]])
    else:
        _drop(db, table, {column: v for column, v in record["gone"].items() if column in _TABLES[table].columns})


class CatalogError(CorpusError):
    """The catalog cannot be read or changed now: the disk is full, or another program has locked it."""


class _Session(threading.local):
    """The connection that a thread keeps; see `Catalog.session`."""

    db: sqlite3.Connection | None = None


class Catalog:
    """The catalog of one corpus. Threads and processes may share it."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root, self.path = root, root / "catalog.sqlite"
        self.records = Records(root)
        self._store = store
        self._mutex = threading.RLock()
        self._tx: tuple[sqlite3.Connection, Writing] | None = None
        self._owner: int | None = None
        self._in_memory: sqlite3.Connection | None = None
        self._session = _Session()
        self._are_locks_checked = self._are_rows_checked = self._is_unreadable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Catalog, (self.root, self._store)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Re-raise errors of SQLite and of the operating system as CorpusError, naming the corpus."""
        try:
            with clear_errors(self.root):
                yield
        except sqlite3.Error as error:
            reason = f"cannot write to the corpus {self.root}: {error}"
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                reason = (
                    f"the catalog of the corpus {self.root} is damaged ({error}). `voxframe doctor --corpus "
                    f"{self.root} --rebuild-ledger` rebuilds it from what is recorded; Corpus.submit() and "
                    "Corpus.sync() do so, too"
                )
            elif getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                writer = ""
                with contextlib.suppress(OSError, ValueError):
                    writer = f" (the last one to write was on {(self.root / '.writer').read_text()})"
                reason = (
                    f"the catalog of the corpus {self.root} is locked by another program{writer}; close that program, "
                    "or wait until it has finished, and try again"
                )
            raise CatalogError(reason) from None

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, after making a damaged catalog again: in memory if it cannot be written."""
        with self._errors():
            try:
                with self._opened() as db:
                    return db.execute(query, values).fetchall()
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not _is_damage(error) or self._is_unreadable:
                    raise
            self._end_session()
            self._is_unreadable = not is_writable(self.root)
            self.restore()
            with self._opened() as db:
                return db.execute(query, values).fetchall()

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Keep one connection for all reads and writes of this thread until the block ends. Nested calls share it."""
        if self._session.db is not None or self._owner == threading.get_ident():
            yield
            return
        with contextlib.ExitStack() as stack:
            # The first read reports damage, or makes the catalog again.
            with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError, CatalogError):
                db = stack.enter_context(self._opened())
                self._session.db = None if db is self._in_memory else db
            try:
                yield
            finally:
                self._session.db = None

    def _end_session(self) -> None:
        """Close the connection of this thread, because the file is replaced."""
        if self._session.db is not None:
            self._session.db.close()
            self._session.db = None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the catalog for reading. A missing one is made first, so that nothing is paid for twice."""
        if self._tx is not None and self._owner == threading.get_ident():
            yield self._tx[0]
            return
        if self._session.db is not None:
            yield self._session.db
            return
        with self._connection(create=False) as db:
            if is_writable(self.root) and (self._is_behind(db) or self._has_bad_rows(db)):
                with self._writing():
                    pass
            yield db

    @contextlib.contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Writing]:
        """Begin a transaction, which waits for that of another thread or process. Nested calls join it."""
        with self._errors(), self._writing(durable=durable) as (_, tx):
            yield tx

    @contextlib.contextmanager
    def _writing(self, *, durable: bool = False) -> Iterator[tuple[sqlite3.Connection, Writing]]:
        with self._mutex:
            if self._tx is not None:
                yield self._tx
                return
            check_writable(self.root)
            private_folder(self.root)
            self._check_locks()
            with self._connection(create=True) as db:
                db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")  # records are flushed already
                db.execute("BEGIN IMMEDIATE")
                try:
                    if self._is_behind(db):
                        self._replay(db)
                    if self._has_bad_rows(db):
                        self._mend(db, _SMALL)
                    self._are_rows_checked = True
                    tx = Writing(db)
                    self._tx, self._owner = (db, tx), threading.get_ident()
                    yield self._tx
                    if tx.lines:
                        file, size = self.records.append(tx.lines)
                        _put(db, "log", [{"file": file, "bytes": size}])
                    db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
                finally:
                    self._tx = self._owner = None

    def lock(self, key: str, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Return a context manager that holds a lock; see `_shared_files.file_lock`."""
        private_folder(self.root)
        return file_lock(self.root / ".locks" / key, wait=wait)

    def _check_locks(self) -> None:
        """Check once that locks exclude on this file system, and note which process of which host writes here."""
        if self._are_locks_checked:
            return
        probe = self.root / ".locks" / f"probe-{os.getpid()}-{threading.get_ident()}"
        try:
            with file_lock(probe), file_lock(probe, wait=False) as is_free:
                reason = "they do not exclude a second writer" if is_free else ""
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EFBIG):
                raise
            reason = str(error)
        if reason:
            raise CorpusError(
                f"the file system of the corpus {self.root} has no locks that work ({reason}), so nothing is written "
                "there; move the corpus to a disk of this machine"
            )
        with contextlib.suppress(OSError):
            (self.root / ".writer").write_text(f"{socket.gethostname()}, process {os.getpid()}")
        self._are_locks_checked = True

    def restore(self) -> None:
        """Mend a missing or damaged catalog. Does nothing in a directory that cannot be written."""
        if self.root.is_dir() and is_writable(self.root):
            if not self.is_sound():
                self._make_again(warn=True)
            elif self.bad_rows():
                with self._errors(), self._writing() as (db, _):
                    self._mend(db, _TABLES)

    def bad_rows(self) -> dict[str, list[int]]:
        """Return the rows of each table that have a wrong checksum, by their numbers."""
        with self._errors(), self._opened() as db:
            return _bad_rows(db, _TABLES)

    def rebuild(self) -> int:
        """Repeat what is recorded, and add the jobs in the notes of payloads. Return how many jobs differ."""
        check_writable(self.root)
        private_folder(self.root)
        if not self.is_sound():
            with self._errors(), self.lock("catalog"):
                if not self.is_sound():
                    return self._make()
        query = "SELECT key, state, transcript_id FROM jobs"
        with self._errors(), self._writing() as (db, tx):
            before = {*tx.rows(query)}
            self._mend(db, _TABLES)
            self._replay(db, whole=True)
            return len({*tx.rows(query)} - before)

    def forget(self, transcript_id: str, tables: Collection[str]) -> None:
        """Delete everything about a transcript from tables and from the records."""
        of_answers = (
            "SELECT key FROM answers WHERE transcript_id = ?1 OR request_id IN (SELECT request_id FROM requests WHERE "
            "transcript_id = ?1) OR ?1 IN (SELECT value FROM json_each(request, '$.transcript_ids'))"
        )
        with self._errors(), self._writing(durable=True) as (db, tx):
            jobs, answers = (
                {key for (key,) in tx.rows(query, [transcript_id])} if name in tables else set[str]()
                for name, query in (("jobs", "SELECT key FROM jobs WHERE transcript_id = ?1"), ("answers", of_answers))
            )
            keys = {"jobs": jobs, "answers": answers}

            def concerned(record: Record) -> bool:
                name, row = record["table"], record.get("row") or record.get("gone") or {}
                of_it = row.get("transcript_id") == transcript_id or row.get("key") in keys.get(name, ())
                return name in tables and of_it

            for name in tables:
                _drop(db, name, {"transcript_id": transcript_id})
            for name, of_table in keys.items():
                db.executemany(f"DELETE FROM {name} WHERE key = ?", [(key,) for key in of_table])  # noqa: S608
            sizes = self.records.without([transcript_id, *jobs, *answers], concerned)
            _put(db, "log", [{"file": file, "bytes": size} for file, size in sizes.items()])

    def mentions(self, transcript_id: str) -> bool:
        """Return True if there is a job, a name, an edit or anything else about a transcript."""
        names = [name for name, table in _TABLES.items() if "transcript_id" in table.columns]
        tables = (f"SELECT 1 FROM {name} WHERE transcript_id = ?1" for name in names)  # noqa: S608
        return bool(self.rows(" UNION ALL ".join(tables), [transcript_id]))

    @contextlib.contextmanager
    def _connection(self, *, create: bool) -> Iterator[sqlite3.Connection]:
        """Open the file; in memory if there is none and none can be made."""
        if self._session.db is not None:
            yield self._session.db
            return
        try:
            db = self._open()
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if create or code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN):
                raise
            db = self._open(only_read=True)  # a full disk has no room for the files of SQLite, but can be read
        if db is None and (create or (is_writable(self.root) and self._has_content())):
            self._make_again(warn=False)
            db = self._open()
        if db is not None:
            with contextlib.closing(db):
                yield db
            return
        with self._mutex:
            if self._in_memory is None:
                self._in_memory = _with_sums(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None))
                self._fill(self._in_memory)
            yield self._in_memory

    def _open(self, *, only_read: bool = False) -> sqlite3.Connection | None:
        """Open the file; None if it is missing, empty, damaged, or of another version."""
        if self._is_unreadable:
            return None
        try:
            about = self.path.lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(about.st_mode):
            is_link = stat.S_ISLNK(about.st_mode)
            reason = "a symbolic link, through which nothing is written" if is_link else "not a regular file"
            raise CorpusError(
                f"the catalog {self.path} is {reason}; put the file itself in its place, or remove it: it is made "
                "again from what is recorded"
            )
        if not about.st_size:
            return None
        writable = is_writable(self.root) and not only_read
        log = self.path.with_name(f"{self.path.name}-wal")
        died = False
        with contextlib.suppress(FileNotFoundError):  # another thread deletes it when it is done
            died = log.stat().st_size > 0
        mode: Any = "rw" if writable else "ro"
        immutable = not writable and not died
        db = None
        try:
            db = open_sqlite(self.path, mode, immutable=immutable, timeout_s=_WAIT_S, isolation_level=None)
            if db.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
                stored = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
                if self._are_rows_checked or [sql for (sql,) in db.execute(stored)] == _statements():
                    return _with_sums(db)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not _is_damage(error):
                if db is not None:
                    db.close()
                raise
        if db is not None:
            db.close()
        return None

    def is_sound(self) -> bool:
        """Return True if the catalog can be read from end to end."""
        with self._errors():
            db = self._open()
            if db is None:
                return False
            with contextlib.closing(db):
                try:
                    return bool(db.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    return False

    def _is_other_version(self) -> bool:
        """Return True if the file is empty, or its header is that of a catalog of another version."""
        with self.path.open("rb") as file:
            head = file.read(64)
        return not head or (head.startswith(b"SQLite format 3\0") and int.from_bytes(head[60:64]) != _VERSION)

    def _has_content(self) -> bool:
        return self.records.folder.is_dir() or (self.root / "raw").is_dir() or has_older_layout(self.root)

    def _make_again(self, *, warn: bool) -> None:
        with self.lock("catalog"):
            if self.is_sound():  # another process has made it in the meantime
                return
            was_there = self.path.exists()
            is_damaged = was_there and (warn or not self._is_other_version())
            jobs = self._make()
        if is_damaged or (warn and jobs):
            warnings.warn(
                f"the catalog of the corpus {self.root} was {'damaged' if is_damaged else 'missing'}. It was rebuilt "
                f"with {quantity(jobs, 'submission')}",
                CorpusWarning,
                stacklevel=5,
            )

    def _make(self) -> int:
        """Make the file from the records and the notes of payloads. The caller holds the lock."""
        self._end_session()
        hidden = hidden_path(self.path)
        try:
            if has_older_layout(self.root):
                self.records.append(
                    encoded({"table": name, "row": row}) for name, row in older_rows(self.root, _rows_of_ledger)
                )
                remove_older_layout(self.root)  # before there is a catalog: repeated later, it would undo later changes
            os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with contextlib.closing(_with_sums(open_sqlite(hidden, "rw", isolation_level=None))) as db:
                self._fill(db)
                (jobs,) = db.execute("SELECT count(*) FROM jobs").fetchone()
            for suffix in _LOGS:  # of the old file: SQLite would apply them to the new one
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            put_in_place(hidden, self.path)
        finally:
            for suffix in ("", *_LOGS):
                hidden.with_name(hidden.name + suffix).unlink(missing_ok=True)
        return int(jobs)

    def _fill(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        for statement in _statements():
            db.execute(statement)
        self._replay(db, whole=True)
        db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("COMMIT")

    def _has_bad_rows(self, db: sqlite3.Connection) -> bool:
        """Return True if a row of a small table has a wrong checksum. This is checked once."""
        if not self._are_rows_checked and db is not self._in_memory:
            if _bad_rows(db, _SMALL):
                return True
            self._are_rows_checked = True
        return False

    def _mend(self, db: sqlite3.Connection, names: Iterable[str]) -> None:
        """Replace rows that have a wrong checksum by what is recorded, and drop the others."""
        bad = _bad_rows(db, names)
        if not bad:
            return
        count, lost = sum(map(len, bad.values())), 0
        with contextlib.closing(_with_sums(sqlite3.connect(":memory:", isolation_level=None))) as fresh:
            self._fill(fresh)
            for name, rows in bad.items():
                for of_files in _OF_FILES if name in _OF_FILES else ():
                    db.execute(f"DELETE FROM {of_files}")  # noqa: S608
                db.executemany(f"DELETE FROM {name} WHERE rowid = ?", [(row,) for row in rows])  # noqa: S608
                key = _TABLES[name].columns[: _TABLES[name].keys]
                present = {tuple(row[column] for column in key) for row in _find(db, name)}
                recorded = [r for r in _find(fresh, name) if tuple(r[column] for column in key) not in present]
                _put(db, name, recorded)
                lost += max(0, len(rows) - len(recorded)) if _TABLES[name].recorded else 0
        _put(db, "state", [{"name": "version", "value": time.time_ns()}, {"name": "unsettled", "value": 1}])
        loss = f"; {lost} of them are not recorded and must be set again" if lost else ""
        warnings.warn(
            f"{quantity(count, 'row')} of the catalog {self.path} ({', '.join(bad)}) had a wrong checksum; they are "
            f"made again from what is recorded and from the payloads{loss}",
            CorpusWarning,
            stacklevel=5,
        )

    def _is_behind(self, db: sqlite3.Connection) -> bool:
        """Return True if something was recorded that the catalog lacks, because a process died, or the power went."""
        applied = dict(db.execute("SELECT file, bytes FROM log"))
        return any(size > applied.get(name, 0) for name, size in self.records.sizes().items())

    def _replay(self, db: sqlite3.Connection, *, whole: bool = False) -> None:
        """Repeat what was recorded since the last change, or all of it and the notes of payloads."""
        applied = {} if whole else dict(db.execute("SELECT file, bytes FROM log"))
        for name, size in self.records.sizes().items():
            for record in self.records.read(name, min(size, applied.get(name, 0))):
                try:
                    _apply(db, record)
                except (KeyError, TypeError, AttributeError, sqlite3.InterfaceError) as error:
                    warnings.warn(f"a record in {name} is left out ({error})", CorpusWarning, stacklevel=2)
            _put(db, "log", [{"file": name, "bytes": size}])
        if whole:
            self._add_notes(db)

    def _add_notes(self, db: sqlite3.Connection) -> None:
        """Add the jobs and the names of recordings that are stored with payloads."""
        jobs = {job.key: job for row in _find(db, "jobs") if (job := job_of(row)) is not None}
        better = dict[str, Job]()
        for job in filter(None, map(job_of, self._store.submissions())):
            old = better.get(job.key) or jobs.get(job.key)
            if old is None or progress(job) > progress(old):
                better[job.key] = job if old is None else replace(job, metadata=merged(job.metadata, old.metadata))
        _put(db, "jobs", map(record_of, better.values()))
        named = {row["transcript_id"] for row in _find(db, "recordings")}
        _put(db, "recordings", (row for row in self._store.recordings() if row.get("transcript_id") not in named))
        giver = NameGiver(Writing(db))
        for row in sorted(_find(db, "jobs", recording=None), key=lambda row: row["created"] or ""):
            stem = job_stem(row["source"], row["transcript_id"], row["key"])
            _put(db, "jobs", [{**row, "recording": giver.name(stem, row["media"] or "")}])


def _rows_of_ledger(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of the database of the older layout. One that is locked raises the error of SQLite."""
    try:
        with contextlib.closing(open_sqlite(path, "rw", pragmas=False)) as db:
            for table in ("jobs", "requests", "about", "answers"):
                columns = _TABLES[table].columns
                present = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
                if present:
                    names = ", ".join(name if name in present else "NULL" for name in columns)
                    for row in db.execute(f"SELECT {names} FROM {table}"):  # noqa: S608  names of ours
                        yield table, dict(zip(columns, row, strict=True))
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise DamagedFileError(str(error)) from None


class NameGiver:
    """Gives names to recordings within one transaction. One audio has one name."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx
        self._of_audio: dict[str, str] = {}
        self._stored: dict[str, set[str]] = {}
        self._given: set[str] = set()
        self._last: dict[str, int] = {}

    def name(self, stem: str, audio: str) -> str:
        """Return the name of a recording: that of the same audio, otherwise the stem, numbered if it is taken."""
        if audio in self._of_audio:
            return self._of_audio[audio]
        rows = self._tx.rows(_SAME_AUDIO, [audio])
        return self.keep(rows[0][0] if rows else self._free(stem), audio)

    def keep(self, name: str, audio: str) -> str:
        """Note the name of an audio, for later names in this transaction."""
        self._given.add(name)
        if audio:
            self._of_audio[audio] = name
        return name

    def _free(self, stem: str) -> str:
        if stem not in self._stored:
            rows = [row for table in ("jobs", "recordings") for row in self._tx.rows(_TAKEN.format(table), [stem])]
            self._stored[stem] = {name for (name,) in rows}
        for n in count(self._last.get(stem, 1)):
            name = stem if n == 1 else f"{stem}-{n}"
            if name not in self._stored[stem] and name not in self._given:
                self._last[stem] = n + 1
                return name
        raise AssertionError


@contextlib.contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Re-raise errors of the operating system as CorpusError, naming the corpus."""
    try:
        yield
    except VoxframeError:  # some of these are OSError too: no connection, no audio file
        raise
    except OSError as e:
        reason = str(e.strerror or e)
        if e.errno and "Detail: [errno" in reason:  # by pyarrow, in more words
            reason = os.strerror(e.errno)
        raise CorpusError(f"cannot write to the corpus {path}: {reason}") from None
