"""A worker thread for a widget: it runs tasks in order and reports errors to the widget's error pane."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType

from voxframe.widgets.base import error_text

Task = Callable[[], None]


class Background:
    """A daemon thread that runs tasks one after another. It starts with the first task.

    Args:
        on_busy: Called with the description of the running task; with an empty text when the queue is empty.
        on_error: Called with the message of an error; with an empty text before a new task.
    """

    def __init__(self, on_busy: Callable[[str], None], on_error: Callable[[str], None]) -> None:
        self._on_busy, self._on_error = on_busy, on_error
        self._tasks: queue.Queue[tuple[str, Task, bool] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> bool:
        """True if tasks are queued behind the running one."""
        return self._tasks.qsize() > 0

    def submit(self, description: str, task: Task, *, keep_error: bool = False) -> None:
        """Queue a task.

        Args:
            description: Text to show while it runs, such as "sending".
            task: The task.
            keep_error: Leave the message of an earlier error in place, because this task continues the earlier one.
        """
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="voxframe-widget", daemon=True)
            self._thread.start()
        self._tasks.put((description, task, keep_error))

    def run_now(self, task: Task, *, keep_error: bool = False) -> None:
        """Run a task in the calling thread and report its error instead of raising it."""
        if not keep_error:
            self._on_error("")
        try:
            task()
        except Exception as e:  # noqa: BLE001  in a thread, or after a click, nobody would see it
            self._on_error(error_text(e))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all tasks are done.

        Args:
            timeout: Maximum wait in seconds. None (default): no limit.

        Raises:
            TimeoutError: Tasks remain after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self._tasks.unfinished_tasks:
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"tasks are still running after {timeout} s; wait longer or pass timeout=None")
            time.sleep(0.02)

    def close(self) -> None:
        """End the thread after the queued tasks."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (queued := self._tasks.get()) is not None:
            description, task, keep_error = queued
            self._on_busy(description)
            try:
                self.run_now(task, keep_error=keep_error)
            finally:
                if not self.waiting:
                    self._on_busy("")
                self._tasks.task_done()
        self._tasks.task_done()


class RepeatedCall:
    """A context manager that calls a function periodically, from a thread, while its block runs.

    Args:
        function: The function.
        every_s: Interval in seconds.
    """

    def __init__(self, function: Task, every_s: float) -> None:
        self._function, self._every_s, self._stopped = function, every_s, threading.Event()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._repeat, name="voxframe-tick", daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._stopped.wait(self._every_s):
            self._function()
