"""The rate limit of the language-model endpoints: read from headers, and kept to by waiting."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from voxframe.service.answer import Answer
from voxframe.service.lenient import as_float, as_int
from voxframe.service.progress import Progress

log = logging.getLogger(__name__)

_WINDOW_S = 60.0
#: A service that names a longer time is not waited for longer than this.
_LONGEST_WAIT_S = 90.0


@dataclass(frozen=True)
class RateLimit:
    """The rate limit as the service last told it.

    Attributes:
        limit: Requests allowed in a window of 60 s.
        remaining: Requests left in the present window.
        reset_s: Seconds until they are all there again.
    """

    limit: int | None
    remaining: int
    reset_s: float


class Quota:
    """Requests left in the present window, shared by all threads of a client.

    Args:
        sleep: How to wait.
    """

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._lock = threading.Lock()
        self._limit: int | None = None
        self._remaining: int | None = None
        self._reset_at = 0.0
        self._under_way = 0

    @property
    def state(self) -> RateLimit | None:
        """What is known now; None before the first answer with such headers, and where there is no limit."""
        with self._lock:
            if self._remaining is None:
                return None
            reset_s = max(0.0, self._reset_at - time.monotonic())
            left = self._remaining if reset_s or self._limit is None else self._limit
            return RateLimit(self._limit, left, reset_s)

    @contextmanager
    def turn(self, *, show: bool | None = None) -> Iterator[None]:
        """Wait until a request is left, and take it.

        Args:
            show: Whether to show the wait; None shows it where somebody looks.
        """
        self._wait(show)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _wait(self, show: bool | None) -> None:
        with Progress("waiting for the service's rate limit", show=show) as progress:
            while True:
                with self._lock:
                    left_s = self._reset_at - time.monotonic()
                    if self._remaining is None or left_s <= 0 or self._remaining > self._under_way:
                        if self._remaining is not None and left_s <= 0:  # a new window
                            self._remaining, self._reset_at = self._limit, time.monotonic() + _WINDOW_S
                        self._under_way += 1
                        return
                log.info("no language-model request is left for %.0f s; waiting", left_s)
                progress.say(f"{left_s:.0f} s left")
                self._sleep(min(left_s + 0.05, 1.0))

    def note(self, answer: Answer) -> None:
        """Read what an answer says about the limit. One without such headers says nothing."""
        remaining = as_int(answer.headers.get("x-ratelimit-remaining"))
        reset_s = as_float(answer.headers.get("x-ratelimit-reset"))
        if answer.status == 429:
            remaining, reset_s = 0, answer.retry_after_s
        if remaining is None or reset_s is None:
            return
        with self._lock:
            self._limit = as_int(answer.headers.get("x-ratelimit-limit")) or self._limit
            self._remaining = max(0, remaining)
            self._reset_at = time.monotonic() + min(max(0.0, reset_s), _LONGEST_WAIT_S)
