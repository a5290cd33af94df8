"""The portal: one daemon thread with one event loop, for everything that waits on sockets.

Synchronous and asynchronous callers reach the same coroutines through it, whether or not a loop of their own runs: in a
script, a notebook cell, any thread, under another loop implementation. The user's loop is never touched.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from voxframe.errors import ServiceError, ServiceTimeoutError, VoxframeError
from voxframe.service.heartbeat import beating

T = TypeVar("T")
Make = Callable[[], Coroutine[Any, Any, T]]

# How long an interrupted call waits for the coroutine's own cleanup before the interrupt goes on, in seconds.
_CLEANUP_SECONDS = 5.0
# A wait is cut into slices: Windows delivers Ctrl-C only between two waits, and a loop that has died is noticed.
_SLICE_SECONDS = 0.1


class Portal:
    """A loop in a daemon thread, started when it is first needed, and once more in a forked child."""

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
        """Whether the caller is on the portal's own loop."""
        return threading.current_thread() is self._thread

    def run(self, make: Make[T], timeout: float | None = None) -> T:
        """Run a coroutine on the portal's loop and wait for it.

        An interrupt (Ctrl-C, "interrupt kernel") or the timeout cancels the coroutine and lets it clean up first.

        Args:
            make: Makes the coroutine.
            timeout: Seconds to wait; None waits for as long as it takes.

        Raises:
            ServiceError: Called from the portal's own loop, where it would wait for itself.
            ServiceTimeoutError: It took longer than `timeout`.
        """
        loop = self.loop
        if self.inside:
            raise ServiceError(
                "a synchronous call was made on voxframe's own event loop, where it would wait for itself; "
                "await its asynchronous twin there, or call it from another thread"
            )
        begun = _Begun(make)
        try:
            loop.call_soon_threadsafe(begun.start, loop)
            return self._wait(begun.future, timeout)
        except BaseException:
            if not begun.future.done():
                loop.call_soon_threadsafe(begun.cancel)
                begun.ended.wait(_CLEANUP_SECONDS)
            raise

    async def call(self, make: Make[T]) -> T:
        """Run a coroutine on the portal's loop and await it from any other loop. Cancelling the wait cancels it."""
        loop = self.loop
        if asyncio.get_running_loop() is loop:
            return await make()
        with beating():
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))

    def close(self) -> None:
        """Stop the loop and end its thread; what still runs on it is cancelled. The next call starts another."""
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
                raise ServiceTimeoutError(f"no end after {timeout:g} s, and no longer was to be waited")
            if thread is None or not thread.is_alive():
                raise ServiceError("voxframe's event loop ended while a call was waiting on it; call again")


class _Begun(Generic[T]):
    """A coroutine on its way through the portal."""

    def __init__(self, make: Make[T]) -> None:
        self._make = make
        self._task: asyncio.Task[T] | None = None
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.ended = threading.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # call_soon_threadsafe runs this in a copy of the caller's context; so does the task.
            self._task = loop.create_task(self._make())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller waits for it
            self.future.set_exception(error)
            self.ended.set()
        else:
            self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        self.ended.set()
        if task.cancelled():
            self.future.cancel()
        elif (error := task.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())


def _started() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    def main() -> None:
        asyncio.set_event_loop(loop)
        loop.call_soon(ready.set)
        try:
            loop.run_forever()
            while left := asyncio.all_tasks(loop):  # those that end may begin others, and so may other threads
                for task in left:
                    task.cancel()
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            loop.close()

    thread = threading.Thread(target=main, name="voxframe-portal", daemon=True)
    thread.start()
    ready.wait()
    return loop, thread


#: The one portal of this process.
PORTAL = Portal()
atexit.register(PORTAL.close)
if hasattr(os, "register_at_fork"):  # in a child the thread is gone, and its lock may have been held
    os.register_at_fork(after_in_child=PORTAL._reset)


def allow_nested_loops() -> None:
    """Let cells call `asyncio.run` and `loop.run_until_complete` although the kernel's loop already runs.

    voxframe itself never needs this and never does it by itself. It changes asyncio for the whole process, with
    nest-asyncio (from Python 3.12 on with nest-asyncio2, since the former hangs a kernel there).

    Raises:
        VoxframeError: The running loop cannot be nested (uvloop's cannot).

    Example:
        >>> voxframe.allow_nested_loops()  # doctest: +SKIP
        >>> asyncio.run(client.transcribe_async("talk.wav"))  # doctest: +SKIP
    """
    with suppress(RuntimeError):  # no loop runs: there is nothing that could not be nested
        # Asked first: nest-asyncio finds out after it has changed asyncio already.
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
