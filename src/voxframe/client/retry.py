"""Decide if a failed request is sent again, and how long to wait before."""

from __future__ import annotations

import math
import random
import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from voxframe.errors import ServiceError

#: Minimum seconds before a retry, even if the service announces less.
SHORTEST_WAIT_S = 0.2
#: Maximum seconds that a service can make a request wait; beyond that the error is raised.
LONGEST_WAIT_S = 90.0
#: Maximum number of failures in a row, however short the pauses were.
MOST_FAILURES = 100


class RetryBudget:
    """A limit on the retries of all requests of a client, so that a service in trouble is not overloaded.

    Each retry costs one; each success returns a tenth.

    Args:
        capacity: Maximum number of retries in a row.
    """

    def __init__(self, capacity: float = 30.0) -> None:
        self._capacity = self._left = capacity
        self._lock = threading.Lock()

    def earn(self) -> None:
        """Record a successful request."""
        with self._lock:
            self._left = min(self._capacity, self._left + 0.1)

    def spend(self) -> bool:
        """Take one retry; return False if none is left."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


def backoff(failures: int, base_s: float = 0.4, cap_s: float = 15.0) -> float:
    """Return a random wait in seconds. Its maximum doubles with each failure, and randomness spreads clients out."""
    limit_s = min(cap_s, base_s * 2.0 ** min(failures, 60))
    return random.uniform(0.0, limit_s)  # noqa: S311 - not a secret


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds in a Retry-After header, given as a number or a date; None if it is unusable.

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
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def wait_after(
    error: ServiceError, failures: int, *, most: int = MOST_FAILURES, base_s: float = 0.4, cap_s: float = 15.0
) -> float | None:
    """Return seconds to wait before the next attempt, or None if there should be none.

    The wait is the longer of the backoff and what the service requests, and at least `SHORTEST_WAIT_S`. So a service
    that requests 0 seconds or an invalid time is not called in a tight loop.

    Args:
        error: The error.
        failures: Failures in a row before this one.
        most: Number of failures in a row after which to give up.
        base_s: Maximum backoff after the first failure in seconds; it doubles with each further one.
        cap_s: Maximum backoff in seconds.
    """
    if not error.transient or failures + 1 >= min(most, MOST_FAILURES):
        return None
    asked_s = error.retry_after or 0.0
    if asked_s:
        asked_s += random.uniform(0.0, 0.25)  # noqa: S311 - as above
    return max(SHORTEST_WAIT_S, asked_s, backoff(failures, base_s, cap_s))


def pause(error: ServiceError, attempt: int, *, tries: int, repeatable: bool, budget: RetryBudget) -> float | None:
    """Return seconds to wait before a request is sent again, or None if it must not be.

    Args:
        error: The error.
        attempt: Attempts before this one.
        tries: Maximum number of attempts.
        repeatable: True if sending the request twice is safe.
        budget: Retry budget of the client; only retries without a time announced by the service use it.
    """
    if not repeatable and error.possibly_delivered:
        return None  # the service may have processed it, and a second one could be charged again
    wait_s = wait_after(error, attempt, most=tries)
    if wait_s is None or (error.retry_after or 0.0) > LONGEST_WAIT_S:
        return None
    return wait_s if error.retry_after or budget.spend() else None
