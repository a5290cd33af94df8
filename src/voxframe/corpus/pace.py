"""How fast a batch goes: fewer requests at once after "too many requests", pauses while the service is away."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from voxframe.errors import (
    APIError,
    RateLimitError,
    ServerError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    UnreadableAnswerError,
)
from voxframe.service.retry import PASSING_STATUSES, backoff

T = TypeVar("T")

#: So many seconds of pauses in a row, with no good answer between them, and a batch gives up for now.
PATIENCE_S = 900.0
#: The same before the first good answer: the address may be wrong.
FIRST_PATIENCE_S = 15.0

_PASSING = (ServiceUnreachableError, ServiceTimeoutError, ServerError, UnreadableAnswerError)


class Stopped(Exception):  # noqa: N818 - no failure: somebody pressed Ctrl-C, or another part failed
    """The work is not wanted any more."""


class Pace:
    """Turns at the service, shared by all threads of a batch.

    The number of turns at once is halved when the service says "too many requests", and grows again by one for each
    round of good answers. Pauses are counted in seconds really paused, so a machine that sleeps loses no patience.

    Args:
        most: Turns at once, at most.
        stop: Set where the work is not wanted any more.
    """

    def __init__(self, most: int, stop: threading.Event) -> None:
        self._most, self._stop = most, stop
        self._patience_s = FIRST_PATIENCE_S
        self._limit = float(most)
        self._active = 0
        self._until = 0.0  # nobody begins before
        self._paused_s = 0.0
        self._failures = 0
        self._change = threading.Condition()

    @property
    def limit(self) -> int:
        """Turns at once, as things are."""
        return max(1, int(self._limit))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and take it.

        Raises:
            Stopped: The work is not wanted any more.
        """
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

    def good(self) -> None:
        """Note a good answer."""
        with self._change:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)
            self._paused_s, self._failures, self._patience_s = 0.0, 0, PATIENCE_S

    def wait_out(self, error: ServiceError) -> None:
        """Pause after a failure that passes; all other turns pause too.

        Call it only where asking again is safe.

        Args:
            error: What went wrong.

        Raises:
            ServiceError: `error` itself, where it does not pass or has lasted too long.
            Stopped: The work is not wanted any more.
        """
        if not passes(error):
            raise error
        with self._change:
            moment = time.monotonic()
            if moment >= self._until:  # the first to meet it; others of the same moment share the pause
                asked = error.retry_after if isinstance(error, RateLimitError) else None
                wait_s = backoff(self._failures, base_s=0.5, cap_s=30.0) if asked is None else asked
                self._paused_s += wait_s
                if self._paused_s > self._patience_s:
                    raise error
                self._failures += 1
                self._until = moment + wait_s
                if isinstance(error, RateLimitError):
                    self._limit = max(1.0, self._limit / 2)
            until = self._until + random.uniform(0.0, 0.1)  # noqa: S311 - spreads load, keeps no secret
        while (left := until - time.monotonic()) > 0:
            if self._stop.wait(min(left, 0.2)):
                break
        self._check()

    def patiently(self, work: Callable[[], T]) -> T:
        """Do what may be done twice until it succeeds.

        Raises:
            ServiceError: It fails for good, or has failed for too long.
            Stopped: The work is not wanted any more.
        """
        while True:
            try:
                done = work()
            except ServiceError as error:
                self._check()
                self.wait_out(error)
            else:
                self.good()
                return done

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped


def passes(error: ServiceError) -> bool:
    """Whether another try may succeed where this one failed."""
    return isinstance(error, _PASSING) or (isinstance(error, APIError) and error.status in PASSING_STATUSES)
