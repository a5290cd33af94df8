import itertools
import threading
import time

import pytest

from voxframe.client import http
from voxframe.corpus.batch import worker_pool
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, Stopped, run_in_threads
from voxframe.errors import BadRequestError, RateLimitError, ServiceError, ServiceUnreachableError


def limited(retry_after: float | None = None) -> RateLimitError:
    error = RateLimitError("too many", status=429, method="POST", path="/")
    error.retry_after = retry_after
    return error


def test_concurrency_is_limited() -> None:
    """Never more requests at once than allowed, however many threads ask."""
    stop = threading.Event()
    turns, inside, most = AdaptiveThrottle(3, stop), [0], [0]
    lock, three = threading.Lock(), threading.Barrier(3, timeout=20)

    def work(_: int) -> None:
        with turns.turn():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            three.wait()  # as many as are allowed get here at once
            time.sleep(0.005)
            with lock:
                inside[0] -= 1

    run_in_threads(range(30), work, threads=8, stop=stop)
    assert most == [3]


def test_the_limit_follows_the_service() -> None:
    """A 429 halves the limit, and successes raise it again."""
    turns = AdaptiveThrottle(8, threading.Event())
    limits = []
    for _ in range(4):
        turns.back_off(limited(0.0))
        limits.append(turns.limit)
    assert limits == [4, 2, 1, 1]
    for _ in range(100):
        turns.record_success()
    assert turns.limit == 8


def test_retry_after_pauses_all_threads() -> None:
    """Retry-After applies to every request, not only to the refused one."""
    turns = AdaptiveThrottle(4, threading.Event())
    begun = time.monotonic()
    refused = threading.Thread(target=turns.back_off, args=(limited(0.5),))
    refused.start()
    while turns.limit == 4:  # the refusal halves it, and the pause begins
        time.sleep(0.01)
    with turns.turn():
        assert time.monotonic() - begun >= 0.5
    refused.join()


def test_permanent_errors_are_raised() -> None:
    """A permanent error is raised without a pause."""
    with pytest.raises(BadRequestError):
        AdaptiveThrottle(1, threading.Event()).back_off(BadRequestError("no", status=400, method="POST", path="/"))
    with pytest.raises(ServiceError, match="closed"):
        AdaptiveThrottle(1, threading.Event()).back_off(ServiceError("the client is closed"))


def test_only_pauses_count_towards_giving_up(monkeypatch) -> None:
    """Hours between two failures are not an outage; that many seconds of pauses are."""
    clock = [0.0]
    monkeypatch.setattr(worker_pool.time, "monotonic", lambda: clock[0])
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr(http, "backoff", lambda *_, **__: 10.0)
    turns = AdaptiveThrottle(1, stop)
    turns.record_success()
    away = ServiceUnreachableError("no connection")
    for _ in range(int(worker_pool.PATIENCE_S / 10)):
        turns.back_off(away)
        clock[0] += 36_000  # the lid is closed overnight
    with pytest.raises(ServiceUnreachableError):
        turns.back_off(away)


def test_a_wrong_url_is_reported_soon(monkeypatch) -> None:
    """Before the first success, less time is spent on retries."""
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: time.sleep(0))
    monkeypatch.setattr(http, "backoff", lambda *_, **__: worker_pool.FIRST_PATIENCE_S + 1)
    with pytest.raises(ServiceUnreachableError):
        AdaptiveThrottle(1, stop).back_off(ServiceUnreachableError("no connection"))


def test_retry_after_zero_ends(monkeypatch) -> None:
    """Endless 429 with "Retry-After: 0" leads to growing pauses, and finally to the error itself."""
    clock = [0.0]
    monkeypatch.setattr(worker_pool.time, "monotonic", lambda: clock[0])
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    turns = AdaptiveThrottle(1, stop)
    turns.record_success()
    tries = []

    def refuse() -> None:
        tries.append(clock[0])
        raise limited(0.0)

    with pytest.raises(RateLimitError):
        turns.retry(refuse)
    assert len(tries) <= http.MOST_FAILURES
    assert sum(moment < 20 for moment in tries) < 15
    assert min(after - before for before, after in itertools.pairwise(tries)) >= http.SHORTEST_WAIT_S


def test_an_error_stops_all_threads() -> None:
    """The first error is raised, and no further item is started."""
    stop = threading.Event()
    begun = []

    def work(n: int) -> None:
        begun.append(n)
        if n == 3:
            raise ValueError("three")
        if stop.wait(0.01):
            raise Stopped

    with pytest.raises(ValueError, match="three"):
        run_in_threads(range(1000), work, threads=4, stop=stop)
    assert len(begun) < 30


def test_all_items_are_done_and_counted() -> None:
    """Every item is handled once, and `done` is called after each in the calling thread."""
    seen, counted = [], []
    here = threading.current_thread()
    run_in_threads(
        range(50),
        seen.append,
        threads=4,
        stop=threading.Event(),
        done=lambda: counted.append(threading.current_thread() is here),
    )
    assert sorted(seen) == list(range(50))
    assert counted == [True] * 50
    run_in_threads([], seen.append, threads=4, stop=threading.Event())


def test_a_caller_that_fails_stops_the_threads() -> None:
    """An error after an item, such as a progress bar that cannot be shown, leaves no thread that goes on working."""
    stop, begun = threading.Event(), []

    def work(item: int) -> None:
        begun.append(item)
        stop.wait(0.05)

    def show() -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_in_threads(range(1000), work, threads=2, stop=stop, done=show)
    assert stop.is_set()
    count = len(begun)
    time.sleep(0.2)
    assert len(begun) == count < 100
