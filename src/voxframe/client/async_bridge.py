"""Bridges between event loops and blocking code, which never change the user's loop.

`Workers` runs blocking calls for any event loop, in daemon threads that stop when the caller is cancelled. The portal,
a daemon thread with an event loop, runs coroutines that wait on sockets: in a script, a notebook cell, any thread, or
under another loop implementation.

A wait for a job is written once as a generator of steps: seconds to pause, and requests to send. `run` performs the
steps one after the other; `run_async` does the same without blocking the event loop.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import os
import queue
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeAlias, TypeVar

from voxframe.errors import ServiceError, ServiceTimeoutError, VoxframeError
from voxframe.validators import checked_timeout

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
    """Check that the caller still awaits this work."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise ServiceError("the wait was cancelled")


class Workers:
    """A pool of at most `count` daemon threads, started when needed and ended when idle.

    It is separate from the default pool of asyncio. User tasks may fill that one, and it keeps the interpreter from
    exiting while a request hangs.
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


Make = Callable[[], Coroutine[Any, Any, T]]

# Maximum seconds an interrupted call waits for the cleanup of its coroutine.
_CLEANUP_SECONDS = 5.0
# Waits are cut into slices: Windows only delivers Ctrl-C between two waits, and a dead loop must be noticed.
_SLICE_SECONDS = 0.1


class Portal:
    """An event loop in a daemon thread, started when needed and restarted in a forked process."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop, self._thread = _started()
            return self._loop

    @property
    def inside(self) -> bool:
        """True if the caller is on the portal's loop."""
        return threading.current_thread() is self._thread

    def run(self, make: Make[T], timeout: float | None = None) -> T:
        """Run a coroutine on the portal's loop and wait for it.

        An interrupt (Ctrl-C, "interrupt kernel") or the timeout cancels the coroutine and waits for its cleanup.
        """
        loop = self.loop
        if self.inside:
            raise ServiceError(
                "a synchronous call was made on voxframe's own event loop, where it would block itself; "
                "await its async version, or call it from another thread"
            )
        begun, ended = threading.Event(), threading.Event()

        async def work() -> T:
            begun.set()
            try:
                return await make()
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(work(), loop)
        try:
            return self._wait(future, timeout)
        except BaseException:
            if future.cancel() and begun.is_set():
                ended.wait(_CLEANUP_SECONDS)
            raise

    async def call(self, make: Make[T]) -> T:
        """Run a coroutine on the portal loop and await it on another. Cancelling the wait cancels the coroutine."""
        loop = self.loop
        if asyncio.get_running_loop() is loop:
            return await make()
        with keep_loop_awake():
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))

    def close(self) -> None:
        """Stop the loop and its thread, and cancel running coroutines. The next call starts another loop."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():
                thread.join(_CLEANUP_SECONDS)

    def _wait(self, future: concurrent.futures.Future[T], timeout: float | None) -> T:
        thread = self._thread
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return future.result(_SLICE_SECONDS)
            except TimeoutError:
                if future.done():  # the coroutine's own
                    raise
            if until is not None and time.monotonic() >= until:
                raise ServiceTimeoutError(f"the call took longer than {timeout:g} s")
            if thread is None or not thread.is_alive():
                raise ServiceError("voxframe's event loop ended during a call; repeat the call")


def _started() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    def main() -> None:
        asyncio.set_event_loop(loop)
        loop.call_soon(ready.set)
        try:
            loop.run_forever()
            while tasks := asyncio.all_tasks(loop):  # ending tasks and other threads may start more
                for task in tasks:
                    task.cancel()
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(asyncio.sleep(0))  # aborted transports close their sockets in the next iteration
        finally:
            loop.close()

    thread = threading.Thread(target=main, name="voxframe-portal", daemon=True)
    thread.start()
    ready.wait()
    return loop, thread


#: The one portal of this process.
PORTAL = Portal()
atexit.register(PORTAL.close)
if hasattr(os, "register_at_fork"):  # a forked process has no such thread, and the lock may be held
    os.register_at_fork(after_in_child=PORTAL._reset)


def allow_nested_loops() -> None:
    """Allow `asyncio.run` and `loop.run_until_complete` in cells although the kernel's loop is running.

    voxframe itself never needs or does this. It changes asyncio for the whole process, with nest-asyncio (nest-asyncio2
    from Python 3.12 on).

    Raises:
        VoxframeError: The running loop cannot be nested, for example that of uvloop.

    Example:
        >>> voxframe.allow_nested_loops()  # doctest: +SKIP
        >>> asyncio.run(client.transcribe_async("talk.wav"))  # doctest: +SKIP
    """
    with suppress(RuntimeError):  # no running loop
        # Checked first, because nest-asyncio fails after it has changed asyncio.
        if not isinstance(loop := asyncio.get_running_loop(), asyncio.BaseEventLoop):
            raise VoxframeError(
                f"this event loop cannot be nested ({type(loop).__module__}); await the coroutine in the cell "
                "instead of asyncio.run"
            )
    if sys.version_info >= (3, 12):
        import nest_asyncio2 as nest
    else:
        import nest_asyncio as nest
    nest.apply()


Steps: TypeAlias = "Generator[float | Callable[[], object], None, None]"

#: Maximum seconds that a service can make a request wait.
LONGEST_WAIT_S = 90.0
#: Seconds without a response after which a wait ends; the job continues during an outage.
OUTAGE_S = 120.0
LOCAL_OUTAGE_S = 10.0


def run(steps: Steps, sleep: Callable[[float], None]) -> None:
    """Perform the steps of a wait."""
    try:
        for step in steps:
            if callable(step):
                step()
            else:
                sleep(step)
    finally:
        steps.close()


async def run_async(steps: Steps, workers: Workers) -> None:
    """Perform the steps of a wait on an event loop, with requests sent in threads."""
    try:
        with keep_loop_awake():
            for step in steps:
                await (workers.call(step) if callable(step) else asyncio.sleep(step))
    finally:
        steps.close()


def interval(waited_s: float, audio_s: float | None = None, *, local: bool = False, first: bool = False) -> float:
    """Return seconds until the next request about a job.

    The interval is a tenth of the time waited so far, or a hundredth of the audio duration if that is longer. So long
    recordings are polled rarely, and a result is late by at most a tenth. The limits are 1 to 15 seconds, or 1 to 1.5
    for a server on this machine, which is first polled after half a second.
    """
    if local and first:
        return 0.5
    proposed_s = max(0.1 * waited_s, 0.01 * (audio_s or 0.0))
    return min(1.4 if local else 13.5, max(1.1, proposed_s)) * random.uniform(1.0, 1.1)  # noqa: S311 - not a secret


class PollState:
    """Time spent in a wait, and the tolerance for a service that does not respond."""

    def __init__(self, timeout_s: float | None, *, local: bool) -> None:
        self._started = time.monotonic()
        self._timeout_s = checked_timeout(timeout_s)
        self._local, self._outage_s = local, LOCAL_OUTAGE_S if local else OUTAGE_S
        self._away_since: float | None = None
        self._asked_s = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds waited so far."""
        return time.monotonic() - self._started

    @property
    def away(self) -> bool:
        """True if the service did not respond to the last request."""
        return self._away_since is not None

    def pause(self, what: str, *, audio_s: float | None = None, first: bool = False, least_s: float = 0.0) -> float:
        """Return seconds to pause now; more than `interval` if the service requests more. `what` is for the error."""
        wanted_s = interval(self.waited_s, audio_s, local=self._local, first=first)
        wanted_s = max(wanted_s, least_s, min(self._asked_s, LONGEST_WAIT_S))
        self._asked_s = 0.0
        if self._timeout_s is None:
            return wanted_s
        remaining_s = self._timeout_s - self.waited_s
        if remaining_s <= 0:
            raise ServiceTimeoutError(f"{what} after {self._timeout_s:g} s")
        return min(wanted_s, remaining_s)

    def tolerate(self, ask: Callable[[], object]) -> Callable[[], None]:
        """Return `ask` as a step that tolerates outages."""

        def step() -> None:
            try:
                ask()
                self._away_since = None
            except ServiceError as error:
                if not error.transient:
                    raise
                now = time.monotonic()
                self._away_since = self._away_since or now
                if now - self._away_since > self._outage_s:
                    raise
                self._asked_s = error.retry_after or 0.0

        return step
