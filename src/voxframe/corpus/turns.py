"""Turns at a piece of work, over all processes and threads: a locked file each, given back however its holder ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def turn(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the only right to a piece of work, waiting for another process or thread that holds it.

    The operating system takes it back when a process ends in whatever way, so work found half-done inside belongs to
    nobody alive. The file is gone afterwards.

    Args:
        path: A file that stands for the work; made as needed.
        wait: Whether to wait; otherwise what is yielded says whether it was free.

    Yields:
        Whether the turn is held.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab") as file:
            if not _lock(file.fileno(), wait=wait):
                yield False
                return
            if not _is_still(path, file.fileno()):  # whoever held it before has removed the file meanwhile
                continue
            try:
                yield True
            finally:
                with suppress(OSError):  # Windows removes no open file; it then stays, empty
                    path.unlink()
            return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Take the exclusive lock on an open file; closing it gives the lock back."""
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True
    import msvcrt
    import time

    while True:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            if not wait:
                return False
            time.sleep(0.2)
        else:
            return True
