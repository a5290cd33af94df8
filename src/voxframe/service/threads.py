"""Blocking work awaited from any event loop: a few daemon threads, told when nobody waits for them any more."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from voxframe.errors import ServiceError
from voxframe.service.heartbeat import beating

P = ParamSpec("P")
T = TypeVar("T")

#: Set where the work of this context is no longer wanted.
_stop: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("voxframe_stop", default=None)

_IDLE_S = 5.0


def stop_event() -> threading.Event | None:
    """What tells the work of this context to stop; None where it is not awaited."""
    return _stop.get()


@contextmanager
def stopped_by(stop: threading.Event) -> Iterator[None]:
    """Let the requests of this context end at their next step once `stop` is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def check_wanted() -> None:
    """Raise where whoever awaited this work has gone.

    Raises:
        ServiceError: Nobody waits for it.
    """
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise ServiceError("the wait was cancelled")


class Workers:
    """At most `count` daemon threads, started when needed and ended when idle.

    They are no threads of asyncio's own pool: the user's tasks may fill that one, and it keeps the interpreter from
    ending while a request hangs.

    Args:
        count: The most threads at once.
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
        """Run `work` in a thread and await it. Cancelling the wait tells it to stop at its next step."""
        stop = threading.Event()
        context = contextvars.copy_context()
        context.run(_stop.set, stop)
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(context.run(work, *args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the caller waits for it
                future.set_exception(error)

        self._put(run)
        try:
            with beating():
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
