"""Files that several processes use at once: locks, and SQLite databases."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal


@contextlib.contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock that excludes all other threads and processes. The operating system releases it if the holder dies.

    Args:
        wait: Wait until the lock is free. False: yield False if it is held elsewhere.
    """
    lock = acquire_lock(path, wait=wait)
    if lock is None:
        yield False
        return
    try:
        yield True
    finally:
        release_lock(lock)


def acquire_lock(path: Path, *, wait: bool = True) -> Any:
    """Return a held lock, to be passed to `release_lock`; None if it is held elsewhere and `wait` is False."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    # Not thread-local: the thread that releases a lock need not be the one that acquired it.
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        return None
    return lock


def release_lock(lock: Any) -> None:
    """Remove the file of a held lock and release the lock."""
    # Removed while the lock is held: a waiting process notices that the file it opened is gone, and opens a new one.
    with contextlib.suppress(OSError):  # Windows does not remove an open file; it stays, empty
        Path(lock.lock_file).unlink()
    lock.release()


def open_sqlite(
    path: Path,
    mode: Literal["rwc", "rw", "ro"] = "rwc",
    *,
    immutable: bool = False,
    pragmas: bool = True,
    timeout_s: float = 30.0,
    **options: Any,
) -> sqlite3.Connection:
    """Open a database that survives power cuts and leaves no deleted text in the file.

    Args:
        immutable: The file cannot change, so SQLite takes no locks. For read-only folders.
        pragmas: Use a write-ahead log, full synchronization and secure deletion; never done in mode "ro".
    """
    # A URI, because SQLite would parse a plain path that begins with "file:" as one.
    uri = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}"
    connection: sqlite3.Connection = sqlite3.connect(uri, timeout=timeout_s, uri=True, **options)
    if pragmas and mode != "ro":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
    return connection
