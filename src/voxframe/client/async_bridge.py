"""Run blocking calls from any event loop in a few daemon threads that stop when the caller is cancelled."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from voxframe.errors import ServiceError

P = ParamSpec("P")
T = TypeVar("T")

#: Event that is set when the caller of this context was cancelled.
_stop: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("voxframe_stop", default=None)

_IDLE_S = 5.0


def stop_event() -> threading.Event | None:
    """Return the event that stops the work of this context, or None if the work is not awaited."""
    return _stop.get()


@contextmanager
def stopped_by(stop: threading.Event) -> Iterator[None]:
    """Make the requests of this context end at their next step once `stop` is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def check_wanted() -> None:
    """Check that the caller still awaits this work.

    Raises:
        ServiceError: The wait was cancelled.
    """
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise ServiceError("the wait was cancelled")


class Workers:
    """A pool of at most `count` daemon threads, started when needed and ended when idle.

    It is separate from the default pool of asyncio. User tasks may fill that one, and it keeps the interpreter from
    exiting while a request hangs.

    Args:
        count: Maximum number of threads.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = self._idle = 0

    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread and await it. If the wait is cancelled, the work stops at its next step."""
        stop = threading.Event()
        context = contextvars.copy_context()
        context.run(_stop.set, stop)
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(context.run(work, *args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - passed on to the caller
                future.set_exception(error)

        self._put(run)
        try:
            with keep_loop_awake():
                return await asyncio.wrap_future(future)
        finally:
            stop.set()

    def _put(self, run: Callable[[], None]) -> None:
        if self._pid != os.getpid():  # a forked child has none of the threads
            self._reset()
        with self._lock:
            self._queue.put(run)
            if self._queue.qsize() > self._idle and self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._work, name="voxframe-request", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            try:
                run = self._queue.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    self._idle -= 1
                    if self._queue.empty():
                        self._threads -= 1
                        return
                continue
            with self._lock:
                self._idle -= 1
            run()


_BEAT_S = 0.1

_waits: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()


@contextmanager
def keep_loop_awake() -> Iterator[None]:
    """Wake the running loop ten times per second inside the block.

    A Jupyter kernel handles an interrupt by cancelling the awaited task from a signal handler. That does not wake a
    loop that sleeps in its selector: the cell would end with the next timer, or never. One timer per loop serves any
    number of waits.
    """
    loop = asyncio.get_running_loop()
    if loop not in _waits:  # present while a timer is pending
        _waits[loop] = 0
        loop.call_later(_BEAT_S, _beat, loop)
    _waits[loop] += 1
    try:
        yield
    finally:
        _waits[loop] -= 1


def _beat(loop: asyncio.AbstractEventLoop) -> None:
    if _waits.get(loop, 0) > 0:
        loop.call_later(_BEAT_S, _beat, loop)
    else:
        _waits.pop(loop, None)
