"""The same work on many items in a few threads, stopped cleanly by Ctrl-C."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from voxframe.corpus.pace import Stopped

T = TypeVar("T")

#: What is under way when Ctrl-C comes, such as a request that is paid for, has so many seconds to end.
GRACE_S = 10.0


def work_through(
    items: Iterable[T],
    work: Callable[[T], None],
    *,
    threads: int,
    stop: threading.Event,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Do `work` on every item.

    The threads are daemons: none keeps the interpreter from ending. An error of one ends all at their next step.

    Args:
        items: What to work on.
        work: Called with each item, in one of the threads.
        threads: How many threads.
        stop: Set when the work should end; set here on Ctrl-C and on an error.
        done: Called after each item, in the calling thread.

    Raises:
        Exception: The first that `work` raised.
        KeyboardInterrupt: What was under way has ended, or had its time.
    """
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    count = 0
    for item in items:
        waiting.put(item)
        count += 1
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    crew = [
        threading.Thread(target=_run, args=(waiting, work, stop, ended), name="voxframe-batch", daemon=True)
        for _ in range(min(threads, count))
    ]
    for thread in crew:
        thread.start()
    error: BaseException | None = None
    try:
        for _ in range(count):
            found = _next(ended, crew)
            if found is not None:
                stop.set()
                error = found
                break
            done()
    except KeyboardInterrupt:
        stop.set()
        _join(crew)
        raise
    _join(crew)
    if error is not None:
        raise _first(error, ended)


def _run(
    waiting: queue.SimpleQueue[T],
    work: Callable[[T], None],
    stop: threading.Event,
    ended: queue.SimpleQueue[BaseException | None],
) -> None:
    while not stop.is_set():
        try:
            item = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            work(item)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is told
            stop.set()
            ended.put(error)
        else:
            ended.put(None)


def _next(ended: queue.SimpleQueue[BaseException | None], crew: list[threading.Thread]) -> BaseException | None:
    """What came of the next item; waits in slices, between which Ctrl-C is heard everywhere."""
    while True:
        try:
            return ended.get(timeout=0.1)
        except queue.Empty:
            if not any(thread.is_alive() for thread in crew) and ended.empty():
                return Stopped()


def _first(error: BaseException, ended: queue.SimpleQueue[BaseException | None]) -> BaseException:
    """The error that stopped the others, which only say that they were stopped."""
    while isinstance(error, Stopped) and not ended.empty():
        error = ended.get() or error
    return error


def _join(crew: list[threading.Thread]) -> None:
    until = time.monotonic() + GRACE_S
    for thread in crew:
        thread.join(max(0.0, until - time.monotonic()))
