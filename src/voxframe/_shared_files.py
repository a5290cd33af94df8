"""Files that several processes use at once: locks, SQLite databases, and the record of the server that commands share.

The record is only valid while its server holds a lock, which the operating system releases if the server dies. So that
of a killed server is never used, and the API key never goes to another program on the same port.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from voxframe._files import hidden_path


@contextlib.contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock that excludes other threads and processes; without `wait`, yield False if it is held elsewhere."""
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
    """Open a database that survives power cuts and leaves no deleted text; an `immutable` one takes no locks."""
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


#: Variables that change the results of the server. The file holds only a hash of their values.
_CHOICES = (
    "VOXFRAME_ENGINE VOXFRAME_MODEL VOXFRAME_MODEL_NANO VOXFRAME_MODEL_CACHE VOXFRAME_LLM_URL VOXFRAME_LLM_MODEL "
    "VOXFRAME_LLM_KEY VOXFRAME_LLM_WINDOW VOXFRAME_WRITER"
).split()


@dataclass(frozen=True)
class ServerRecord:
    """A running shared server.

    Attributes:
        choices: Hash of the settings that it was started with, see `choices_of`.
    """

    base_url: str
    pid: int
    version: str
    choices: str
    host: str
    started: float


class ServerFile:
    """The record of the shared server of a data directory, readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "shared.json"
        self.key_file = folder / "key"
        self._held: Any = None

    def starting(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the lock for looking up, starting and ending the server, so that two commands start only one."""
        return file_lock(self._path.with_name("shared.starting.lock"), wait=wait)

    def record(self) -> ServerRecord | None:
        """Return the running server, or None. Call this only while `starting` is held."""
        record = self._written()
        if (
            record is None or record.host != platform.node()
        ):  # a home directory on a network: its URL leads nowhere here
            return None
        return None if self.has_ended() else record

    def has_ended(self) -> bool:
        """Return True if no process is the running server. Call this only while `starting` is held."""
        with file_lock(self._running, wait=False) as ended:
            return ended

    def is_running(self, base_url: str) -> bool:
        """Return True if the server with this URL is running, or if a command is just looking it up."""
        with self.starting(wait=False) as held:
            record = self.record() if held else None
        return not held or (record is not None and record.base_url == base_url)

    def hold(self) -> bool:
        """Mark this process as the running server until it ends. Return False if another one is."""
        self._held = acquire_lock(self._running, wait=False)
        return self._held is not None

    def publish(self, base_url: str, choices: str) -> None:
        """Write the record of this process."""
        record = ServerRecord(base_url, os.getpid(), version("voxframe"), choices, platform.node(), time.time())
        hidden = hidden_path(self._path)
        with os.fdopen(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            json.dump(asdict(record), file)
        hidden.replace(self._path)

    def withdraw(self) -> None:
        """Remove the record if it is of this process."""
        if self.is_of(os.getpid()):
            self._path.unlink(missing_ok=True)

    def is_of(self, pid: int) -> bool:
        """Return True if the record is of a process, so that commands can find it."""
        record = self._written()
        return record is not None and record.pid == pid

    def _written(self) -> ServerRecord | None:
        """Return the record in the file. None if there is none, or if it is damaged or of another version."""
        try:
            return ServerRecord(**json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def _running(self) -> Path:
        return self._path.with_name("shared.running.lock")


def choices_of(environment: Mapping[str, str], llm_prefix: str) -> str:
    """Return a hash of everything that must be equal for a command to use a running server."""
    values = [version("voxframe"), llm_prefix, *(environment.get(name, "").strip() for name in _CHOICES)]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
