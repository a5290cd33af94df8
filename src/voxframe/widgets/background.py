"""Work that a widget does beside the kernel, one thing after the other; what goes wrong is told in its pane."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType

from voxframe.errors import VoxframeError

Work = Callable[[], None]


def in_words(error: Exception) -> str:
    """What went wrong, for the pane of a widget."""
    if isinstance(error, VoxframeError | OSError):
        return "\n".join([str(error), *getattr(error, "__notes__", [])])
    return f"voxframe failed here ({type(error).__name__}); that is a fault of voxframe, please report it"


class Background:
    """A thread that takes work one after the other, started when there is some.

    Args:
        busy: Is told what is being done, in words; an empty text when nothing is.
        tell: Is told in words what went wrong; an empty text when something new begins.
    """

    def __init__(self, busy: Callable[[str], None], tell: Callable[[str], None]) -> None:
        self._busy, self._tell = busy, tell
        self._tasks: queue.Queue[tuple[str, Work, bool] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> bool:
        """Whether there is more to do after what is being done."""
        return self._tasks.qsize() > 0

    def do(self, what: str, work: Work, *, after: bool = False) -> None:
        """Do something when it is its turn.

        Args:
            what: What it is, in words.
            work: It.
            after: Whether it goes on with what was done before it: what went wrong there stays told.
        """
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="voxframe-widget", daemon=True)
            self._thread.start()
        self._tasks.put((what, work, after))

    def guarded(self, work: Work, *, after: bool = False) -> None:
        """Do something now, and tell what goes wrong."""
        if not after:
            self._tell("")
        try:
            work()
        except Exception as e:  # noqa: BLE001  in a thread, or from a click, nobody else would tell
            self._tell(in_words(e))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until there is nothing to do.

        Raises:
            TimeoutError: There still is after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self._tasks.unfinished_tasks:
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"still busy after {timeout} s")
            time.sleep(0.02)

    def close(self) -> None:
        """End the thread when it has done what it has to."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._busy(task[0])
            try:
                self.guarded(task[1], after=task[2])
            finally:
                if not self.waiting:
                    self._busy("")
                self._tasks.task_done()
        self._tasks.task_done()


class Ticking:
    """Calls something again and again while a block runs.

    Args:
        call: What to call, from a thread.
        every_s: How often, in seconds.
    """

    def __init__(self, call: Work, every_s: float) -> None:
        self._call, self._every_s, self._over = call, every_s, threading.Event()

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._tick, name="voxframe-tick", daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _tick(self) -> None:
        while not self._over.wait(self._every_s):
            self._call()
