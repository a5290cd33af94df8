"""Which service processes on a data directory are alive: each holds a lock, which the system drops when it ends."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Instance:
    """This process among those that share a data directory.

    Args:
        folder: Folder of the lock files.

    Attributes:
        name: A name no other process ever has.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Who looks for dead processes may hold or remove the file between our open and our lock: take another name.
        while True:
            self.name = uuid.uuid4().hex
            self._path = folder / f"{self.name}.lock"
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            if _lock(self._descriptor) and self._path.exists():
                return
            os.close(self._descriptor)

    def is_dead(self, name: str) -> bool:
        """Whether the process `name` has ended. Its lock file is removed then."""
        if name == self.name:
            return False
        path = self._folder / f"{name}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            if not _lock(descriptor):
                return False
            path.unlink(missing_ok=True)
            return True
        finally:
            os.close(descriptor)

    def sweep(self) -> None:
        """Remove the lock files of processes that have ended."""
        for path in self._folder.glob("*.lock"):
            self.is_dead(path.stem)

    def close(self) -> None:
        """Say that this process is done."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
