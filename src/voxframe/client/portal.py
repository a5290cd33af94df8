"""The portal: a daemon thread with an event loop for everything that waits on sockets.

Synchronous and asynchronous callers run the same coroutines on it, in a script, a notebook cell, any thread, or under
another loop implementation. The user's event loop is never changed.
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

from voxframe.client.async_bridge import keep_loop_awake
from voxframe.errors import ServiceError, ServiceTimeoutError, VoxframeError

T = TypeVar("T")
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

        Args:
            make: Returns the coroutine.
            timeout: Maximum seconds to wait; None has no limit.

        Raises:
            ServiceError: It was called on the portal's loop, which would be a deadlock.
            ServiceTimeoutError: It took longer than `timeout`.
        """
        loop = self.loop
        if self.inside:
            raise ServiceError(
                "a synchronous call was made on voxframe's own event loop, where it would block itself; "
                "await its async version, or call it from another thread"
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


class _Begun(Generic[T]):
    """A coroutine started from another thread."""

    def __init__(self, make: Make[T]) -> None:
        self._make = make
        self._task: asyncio.Task[T] | None = None
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.ended = threading.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # call_soon_threadsafe runs this in a copy of the caller's context; so does the task.
            self._task = loop.create_task(self._make())
        except BaseException as error:  # noqa: BLE001 - passed on to the caller
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
            while left := asyncio.all_tasks(loop):  # ending tasks and other threads may start more
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
