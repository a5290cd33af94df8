"""When a request is made again, and how long to wait before."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from voxframe.errors import APIError, RateLimitError, ServiceError, UnreadableAnswerError

#: Answers that another try may turn into a good one.
PASSING_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})

#: The longest a service may make a request wait by itself; past that the caller is told instead.
LONGEST_WAIT_S = 90.0


class Budget:
    """Retries allowed to all requests of a client together, so that a service in trouble is not asked ever more.

    Each retry costs one; each good answer earns a tenth back.

    Args:
        capacity: Retries allowed in a row.
    """

    def __init__(self, capacity: float = 30.0) -> None:
        self._capacity = self._left = capacity
        self._lock = threading.Lock()

    def earn(self) -> None:
        """Note a good answer."""
        with self._lock:
            self._left = min(self._capacity, self._left + 0.1)

    def spend(self) -> bool:
        """Take one retry; False where none is left."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


def backoff(attempt: int, base_s: float = 0.4, cap_s: float = 15.0) -> float:
    """Seconds to wait after `attempt` (from 0) failed: exponential with full jitter, so that clients spread out."""
    return random.uniform(0.0, min(cap_s, base_s * 2.0**attempt))  # noqa: S311 - spreads load, keeps no secret


def parse_retry_after(value: str | None) -> float | None:
    """Seconds a Retry-After header asks for, from a number or a date; None where it says nothing usable.

    Example:
        >>> parse_retry_after("7")
        7.0
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None


def pause(error: ServiceError, attempt: int, *, repeatable: bool, budget: Budget) -> float | None:
    """Seconds to wait before the request is made again; None where it must not be.

    Args:
        error: What went wrong.
        attempt: Tries before this one.
        repeatable: Whether making the request twice does no harm.
        budget: Retries left to the client.
    """
    if not repeatable and error.may_have_arrived:
        return None  # it may have been acted on: a second one could be paid for twice
    if isinstance(error, APIError) and not isinstance(error, UnreadableAnswerError):
        if error.status not in PASSING_STATUSES:
            return None
        asked = error.retry_after if isinstance(error, RateLimitError) else None
        if asked is not None:
            return asked + random.uniform(0.0, 0.25) if asked <= LONGEST_WAIT_S else None  # noqa: S311 - as above
    return backoff(attempt) if budget.spend() else None
