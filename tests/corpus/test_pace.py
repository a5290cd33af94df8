import threading
import time

import pytest

from voxframe.corpus import pace
from voxframe.corpus.crew import work_through
from voxframe.corpus.pace import Pace, Stopped
from voxframe.errors import BadRequestError, RateLimitError, ServiceError, ServiceUnreachableError


def limited(retry_after: float | None = None) -> RateLimitError:
    error = RateLimitError("too many", status=429, method="POST", path="/")
    error.retry_after = retry_after
    return error


def test_turns_are_bounded() -> None:
    """Never more at once than allowed, whatever number of threads ask."""
    stop = threading.Event()
    turns, inside, most = Pace(3, stop), [0], [0]
    lock = threading.Lock()

    def work(_: int) -> None:
        with turns.turn():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.005)
            with lock:
                inside[0] -= 1

    work_through(range(30), work, threads=8, stop=stop)
    assert most == [3]


def test_too_many_requests_halve_the_turns_and_good_answers_bring_them_back() -> None:
    """The limit follows what the service bears."""
    turns = Pace(8, threading.Event())
    limits = []
    for _ in range(4):
        turns.wait_out(limited(0.0))
        limits.append(turns.limit)
    assert limits == [4, 2, 1, 1]
    for _ in range(100):
        turns.good()
    assert turns.limit == 8


def test_a_pause_is_as_long_as_the_service_asks_for_and_holds_for_all() -> None:
    """Retry-After counts for every turn, not only for the one that was refused."""
    turns = Pace(4, threading.Event())
    begun = time.monotonic()
    refused = threading.Thread(target=turns.wait_out, args=(limited(0.5),))
    refused.start()
    time.sleep(0.1)
    with turns.turn():
        assert time.monotonic() - begun >= 0.5
    refused.join()


def test_what_does_not_pass_is_not_waited_for() -> None:
    """A refusal is the caller's own."""
    with pytest.raises(BadRequestError):
        Pace(1, threading.Event()).wait_out(BadRequestError("no", status=400, method="POST", path="/"))
    with pytest.raises(ServiceError, match="closed"):
        Pace(1, threading.Event()).wait_out(ServiceError("the client is closed"))


def test_a_machine_that_sleeps_loses_no_patience(monkeypatch) -> None:
    """Hours that pass between two failures are no outage; so many seconds of pauses are one."""
    clock = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock[0])
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr(pace, "backoff", lambda *_, **__: 10.0)
    turns = Pace(1, stop)
    turns.good()
    away = ServiceUnreachableError("no connection")
    for _ in range(int(pace.PATIENCE_S / 10)):
        turns.wait_out(away)
        clock[0] += 36_000  # the lid is closed overnight
    with pytest.raises(ServiceUnreachableError):
        turns.wait_out(away)


def test_before_the_first_good_answer_there_is_less_patience(monkeypatch) -> None:
    """A wrong address is told soon."""
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: time.sleep(0))
    monkeypatch.setattr(pace, "backoff", lambda *_, **__: pace.FIRST_PATIENCE_S + 1)
    with pytest.raises(ServiceUnreachableError):
        Pace(1, stop).wait_out(ServiceUnreachableError("no connection"))


def test_an_error_ends_the_work_of_all() -> None:
    """The first error is raised, and nothing new is begun after it."""
    stop = threading.Event()
    begun = []

    def work(n: int) -> None:
        begun.append(n)
        if n == 3:
            raise ValueError("three")
        if stop.wait(0.01):
            raise Stopped

    with pytest.raises(ValueError, match="three"):
        work_through(range(1000), work, threads=4, stop=stop)
    assert len(begun) < 30


def test_all_items_are_done_and_counted() -> None:
    """Every item once; `done` is called after each in the calling thread."""
    seen, counted = [], []
    here = threading.current_thread()
    work_through(
        range(50),
        seen.append,
        threads=4,
        stop=threading.Event(),
        done=lambda: counted.append(threading.current_thread() is here),
    )
    assert sorted(seen) == list(range(50))
    assert counted == [True] * 50
    work_through([], seen.append, threads=4, stop=threading.Event())
