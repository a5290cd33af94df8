"""How many requests may be under way to one service at once, over all clients of this process."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_semaphores: weakref.WeakValueDictionary[tuple[int, str, int], threading.Semaphore] = weakref.WeakValueDictionary()


class Slots:
    """Turns to make a request.

    Args:
        host: Host and port of the service.
        count: Requests under way at once. Clients of one host that name the same number share it.
    """

    def __init__(self, host: str, count: int) -> None:
        self._host, self._count = host, count
        self._pid, self._semaphore = os.getpid(), _shared(host, count)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and take it."""
        if self._pid != os.getpid():  # turns that a forked parent's threads had are never given back here
            self._pid, self._semaphore = os.getpid(), _shared(self._host, self._count)
        with self._semaphore:
            yield


def _shared(host: str, count: int) -> threading.Semaphore:
    key = os.getpid(), host, count
    with _lock:
        found = _semaphores.get(key)
        if found is None:
            found = _semaphores[key] = threading.Semaphore(count)
        return found


if hasattr(os, "register_at_fork"):  # the lock may be held by another thread just then
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
