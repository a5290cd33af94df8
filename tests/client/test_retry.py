from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from voxframe.client.http import (
    LONGEST_WAIT_S,
    MOST_FAILURES,
    SHORTEST_WAIT_S,
    RetryBudget,
    backoff,
    pause,
    wait_after,
)
from voxframe.client.response import parse_retry_after
from voxframe.errors import RateLimitError, ServerError, ServiceUnreachableError


def server_error(status=503):
    return ServerError("away", status=status, method="GET", path="/x")


def limited(seconds):
    error = RateLimitError("slow", status=429, method="GET", path="/x")
    error.retry_after = seconds
    return error


def test_backoff_grows_with_full_jitter():
    """The backoff is random between 0 and a limit that doubles up to a maximum."""
    for attempt, limit in ((0, 0.4), (1, 0.8), (4, 6.4), (20, 15.0)):
        waits = [backoff(attempt) for _ in range(500)]
        assert 0 <= min(waits) < 0.15 * limit
        assert 0.85 * limit < max(waits) <= limit


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("-3", 0.0), ("soon", None), ("", None), (None, None),
                           ("nan", None), ("inf", None)]
)  # fmt: skip
def test_retry_after_in_seconds(value, seconds):
    """A number is read as seconds, and invalid text as None."""
    assert parse_retry_after(value) == seconds


def test_retry_after_as_a_date():
    """A date is read as seconds from now, and a past date as 0."""
    now = datetime.now(UTC)
    assert parse_retry_after(format_datetime(now + timedelta(seconds=30), usegmt=True)) == pytest.approx(30, abs=2)
    assert parse_retry_after(format_datetime(now - timedelta(hours=1), usegmt=True)) == 0


@pytest.mark.parametrize(
    "value",
    ["Mon, 99999999999999999999 Nov 1994 08:49:37 GMT", "Mon, 01 Jan 0000 00:00:00 GMT", "1e999", "-inf", "\u0660",
     "\x00", "Fri, 31 Dec 9999 23:59:59 -2359", "9" * 5000],
)  # fmt: skip
def test_any_retry_after_is_finite_or_none(value):
    """Any header value gives None or a finite wait of at least 0 seconds."""
    seconds = parse_retry_after(value)
    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize("asked", [None, 0.0, 1e-9])
def test_there_is_a_minimum_wait(asked):
    """A service that requests no wait is not called in a tight loop."""
    waits = [wait_after(limited(asked), 0) for _ in range(200)]
    assert min(waits) >= SHORTEST_WAIT_S > 0


def test_waits_grow_although_the_service_requests_none():
    """The backoff grows although each refusal requests no wait."""
    assert max(wait_after(limited(0.0), 6) for _ in range(100)) > 5


def test_failures_in_a_row_are_limited():
    """Retries end after the maximum number of failures in a row."""
    assert wait_after(limited(0.0), MOST_FAILURES - 2) is not None
    assert wait_after(limited(0.0), MOST_FAILURES - 1) is None
    assert wait_after(limited(0.0), MOST_FAILURES + 5, most=10_000) is None


def test_a_possibly_delivered_post_is_not_retried():
    """A POST is only retried if the service cannot have processed it."""
    unsent = ServiceUnreachableError("refused")
    unsent.possibly_delivered = False
    cut = ServiceUnreachableError("reset")
    budget = RetryBudget()
    assert pause(cut, 0, tries=5, repeatable=False, budget=budget) is None
    assert pause(server_error(), 0, tries=5, repeatable=False, budget=budget) is None
    assert pause(unsent, 0, tries=5, repeatable=False, budget=budget) is not None
    assert pause(limited(2), 0, tries=5, repeatable=False, budget=budget) == pytest.approx(2.1, abs=0.2)
    assert pause(cut, 0, tries=5, repeatable=True, budget=budget) is not None


def test_a_long_wait_is_an_error():
    """A requested wait beyond the maximum raises the error instead."""
    assert pause(limited(LONGEST_WAIT_S + 1), 0, tries=5, repeatable=True, budget=RetryBudget()) is None


def test_permanent_statuses_are_not_retried():
    """A 503 is retried, and a 501 is not."""
    assert pause(server_error(501), 0, tries=5, repeatable=True, budget=RetryBudget()) is None
    assert pause(server_error(503), 0, tries=5, repeatable=True, budget=RetryBudget()) is not None


def test_the_retry_budget():
    """Thirty retries in a row use up the budget; ten successes earn one more."""
    budget = RetryBudget()
    assert sum(pause(server_error(), 0, tries=5, repeatable=True, budget=budget) is not None for _ in range(100)) == 30
    for _ in range(11):  # one more than ten, since tenths add up to a little less than one
        budget.earn()
    assert budget.spend()
    assert not budget.spend()
