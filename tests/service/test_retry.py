from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from voxframe.errors import RateLimitError, ServerError, ServiceUnreachableError
from voxframe.service.retry import LONGEST_WAIT_S, Budget, backoff, parse_retry_after, pause


def server_error(status=503):
    return ServerError("away", status=status, method="GET", path="/x")


def limited(seconds):
    error = RateLimitError("slow", status=429, method="GET", path="/x")
    error.retry_after = seconds
    return error


def test_backoff_grows_and_is_spread_over_its_whole_range():
    """Full jitter: anywhere from nothing to a limit that doubles, up to a cap."""
    for attempt, limit in ((0, 0.4), (1, 0.8), (4, 6.4), (20, 15.0)):
        waits = [backoff(attempt) for _ in range(500)]
        assert 0 <= min(waits) < 0.15 * limit
        assert 0.85 * limit < max(waits) <= limit


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("-3", 0.0), ("soon", None), ("", None), (None, None),
                           ("nan", None), ("inf", None)]
)  # fmt: skip
def test_retry_after_in_seconds(value, seconds):
    """Seconds are taken, nonsense says nothing."""
    assert parse_retry_after(value) == seconds


def test_retry_after_as_a_date():
    """A date is seconds from now; a past one is no wait."""
    now = datetime.now(UTC)
    assert parse_retry_after(format_datetime(now + timedelta(seconds=30), usegmt=True)) == pytest.approx(30, abs=2)
    assert parse_retry_after(format_datetime(now - timedelta(hours=1), usegmt=True)) == 0


def test_what_may_have_arrived_is_not_made_again():
    """A request that costs is repeated only where it cannot have been acted on."""
    unsent = ServiceUnreachableError("refused")
    unsent.may_have_arrived = False
    cut = ServiceUnreachableError("reset")
    budget = Budget()
    assert pause(cut, 0, repeatable=False, budget=budget) is None
    assert pause(server_error(), 0, repeatable=False, budget=budget) is None
    assert pause(unsent, 0, repeatable=False, budget=budget) is not None
    assert pause(limited(2), 0, repeatable=False, budget=budget) == pytest.approx(2.1, abs=0.2)
    assert pause(cut, 0, repeatable=True, budget=budget) is not None


def test_a_service_may_not_make_a_request_wait_for_ever():
    """Past a bound the caller is told instead of waiting."""
    assert pause(limited(LONGEST_WAIT_S + 1), 0, repeatable=True, budget=Budget()) is None


def test_statuses_that_stay_wrong_are_not_tried_again():
    """501 does not become better by asking again; 503 may."""
    assert pause(server_error(501), 0, repeatable=True, budget=Budget()) is None
    assert pause(server_error(503), 0, repeatable=True, budget=Budget()) is not None


def test_the_budget_runs_out_and_is_earned_back_slowly():
    """A service in trouble is not asked ever more: thirty retries in a row, then one per ten good answers."""
    budget = Budget()
    assert sum(pause(server_error(), 0, repeatable=True, budget=budget) is not None for _ in range(100)) == 30
    for _ in range(11):  # one more than ten, since tenths add up to a little less than one
        budget.earn()
    assert budget.spend()
    assert not budget.spend()
