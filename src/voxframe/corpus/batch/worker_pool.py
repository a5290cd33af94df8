"""Run a function on many items in a few threads, with a throttle that adapts to the service."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from voxframe.client.http import wait_after
from voxframe.errors import (
    APIError,
    AuthenticationError,
    RateLimitError,
    ResponseTooLargeError,
    ResponseTooSlowError,
    ServiceError,
    UnreadableAnswerError,
)

T = TypeVar("T")

#: Seconds that running work, such as a request that is paid for, may take to finish after Ctrl-C.
GRACE_S = 10.0
#: Seconds of consecutive pauses without a success after which a batch gives up.
PATIENCE_S = 900.0
#: The same before the first success: the URL may be wrong.
FIRST_PATIENCE_S = 15.0
#: Attempts at a response that is cut short or not JSON. After these, the error concerns this job only.
MAX_UNREADABLE = 3


#: Errors about one response. They say nothing about the other jobs of the service.
UNUSABLE = (ResponseTooLargeError, ResponseTooSlowError, UnreadableAnswerError)


def is_of_one_job(error: ServiceError) -> bool:
    """Return True if a request about one job failed for a reason that does not concern the other jobs."""
    if isinstance(error, UNUSABLE):
        return True
    return isinstance(error, APIError) and not isinstance(error, AuthenticationError) and not error.transient


class Stopped(Exception):  # noqa: N818 - not an error: Ctrl-C was pressed, or another thread failed
    """The batch is being stopped."""


class AdaptiveThrottle:
    """Limits concurrent requests of all threads of a batch.

    The limit is halved when the service responds "too many requests", and grows by one per round of successes. Only
    seconds actually spent pausing count towards giving up, so a suspended machine loses no patience.
    """

    def __init__(self, most: int, stop: threading.Event) -> None:
        self._most, self._stop = most, stop
        self._patience_s = FIRST_PATIENCE_S
        self._limit = float(most)
        self._active = 0
        self._until = 0.0  # no turn begins before this time
        self._paused_s = 0.0
        self._failures = 0
        self._change = threading.Condition()

    @property
    def limit(self) -> int:
        """Current maximum of concurrent requests."""
        return max(1, int(self._limit))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a request may begin, and hold its place until the block ends."""
        with self._change:
            while self._active >= self.limit or time.monotonic() < self._until:
                self._check()
                self._change.wait(0.05)
            self._check()
            self._active += 1
        try:
            yield
        finally:
            with self._change:
                self._active -= 1
                self._change.notify_all()

    def record_success(self) -> None:
        """Record a successful response."""
        with self._change:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)
            self._paused_s, self._failures, self._patience_s = 0.0, 0, PATIENCE_S

    def back_off(self, error: ServiceError) -> None:
        """Pause all threads after a transient error. Call it only if repeating the request is safe."""
        if not error.transient:
            raise error
        with self._change:
            moment = time.monotonic()
            if moment >= self._until:  # the first thread to fail; others failing at the same time share the pause
                wait_s = wait_after(error, self._failures, base_s=0.5, cap_s=30.0)
                if wait_s is None or self._paused_s + wait_s > self._patience_s:
                    raise error
                self._paused_s += wait_s
                self._failures += 1
                self._until = moment + wait_s
                if isinstance(error, RateLimitError):
                    self._limit = max(1.0, self._limit / 2)
            until = self._until + random.uniform(0.0, 0.1)  # noqa: S311 - spreads load, keeps no secret
        while (remaining_s := until - time.monotonic()) > 0:
            if self._stop.wait(min(remaining_s, 0.2)):
                break
        self._check()

    def retry(self, work: Callable[[], T]) -> T:
        """Call a function that is safe to repeat until it succeeds."""
        unreadable = 0
        while True:
            try:
                done = work()
            except ServiceError as error:
                self._check()
                unreadable += isinstance(error, UnreadableAnswerError)
                if unreadable == MAX_UNREADABLE:
                    raise
                self.back_off(error)
            else:
                self.record_success()
                return done

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped


def run_in_threads(
    items: Iterable[T],
    work: Callable[[T], None],
    *,
    threads: int,
    stop: threading.Event,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Call `work` with every item."""
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    count = 0
    for item in items:
        waiting.put(item)
        count += 1
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    workers = [
        threading.Thread(target=_run, args=(waiting, work, stop, ended), name="voxframe-batch", daemon=True)
        for _ in range(min(threads, count))
    ]
    error: BaseException | None = None
    try:
        for thread in workers:
            thread.start()
        for _ in range(count):
            outcome = _next(ended, workers)
            if outcome is not None:
                stop.set()
                error = outcome
                break
            done()
    except BaseException:  # Ctrl-C, or `done` failed
        stop.set()
        _join(workers)
        raise
    _join(workers)
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
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            stop.set()
            ended.put(error)
        else:
            ended.put(None)


def _next(ended: queue.SimpleQueue[BaseException | None], workers: list[threading.Thread]) -> BaseException | None:
    """Return the result of the next item. Waits in slices, because Ctrl-C interrupts no wait on some systems."""
    while True:
        try:
            return ended.get(timeout=0.1)
        except queue.Empty:
            if not any(thread.is_alive() for thread in workers) and ended.empty():
                return Stopped()


def _first(error: BaseException, ended: queue.SimpleQueue[BaseException | None]) -> BaseException:
    """Return the error that stopped the other threads, which only raise `Stopped`."""
    while isinstance(error, Stopped) and not ended.empty():
        error = ended.get() or error
    return error


def _join(workers: list[threading.Thread]) -> None:
    until = time.monotonic() + GRACE_S
    for thread in workers:
        if thread.is_alive():  # an error may come before all have started
            thread.join(max(0.0, until - time.monotonic()))
