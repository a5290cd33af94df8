"""Delivery of webhooks: a queue in the job database, and the threads that send what is due.

A process takes a notification for a limited time. If the process dies, the notification is due again after that time.
So a notification may arrive twice, but none is lost.
"""

from __future__ import annotations

import http.client
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from voxframe_server.jobs import Database
from voxframe_server.jobs.ssrf_guard import NotAllowedError, connection, origin, request_target, time_limit

_log = logging.getLogger("voxframe_server")

#: Maximum duration of an attempt in seconds.
SECONDS = 10.0
#: Number of attempts after the first one, and seconds between two attempts.
RETRIES, INTERVAL = 10, 10.0
#: Number of attempts at the same time, so that a server that hangs does not delay the others.
AT_ONCE = 32
_TICK = 1.0


@dataclass(frozen=True)
class Delivery:
    """A notification to deliver."""

    seq: int
    job: str
    event: str
    status: str
    url: str
    allowed: bool
    header: tuple[str, str] | None = field(repr=False)
    tries: int


class WebhookQueue:
    """The notifications of one data directory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, seconds: float) -> Delivery | None:
        """Take the notification that has been due for longest; it is due again after `seconds`."""
        now = time.time()
        if not self._database.rows("SELECT 1 FROM webhooks WHERE due <= ? LIMIT 1", now):
            return None
        with self._database.transaction() as run:
            row = run(
                """UPDATE webhooks SET tries = tries + 1, due = ?
                WHERE seq = (SELECT seq FROM webhooks WHERE due <= ? ORDER BY due LIMIT 1) RETURNING *""",
                (now + seconds, now),
            ).fetchone()
            if row is None:
                return None
            job = run("SELECT status, request FROM jobs WHERE id = ?", (row["job"],)).fetchone()
        request = orjson.loads(job["request"])
        name, value = request.get("webhook_auth_header_name"), row["header_value"]
        return Delivery(
            row["seq"],
            row["job"],
            row["event"],
            job["status"],
            request["webhook_url"],
            bool(row["allowed"]),
            (name, value) if name and value else None,
            row["tries"],
        )

    def record(self, delivery: Delivery, status_code: int | None, retry_s: float | None) -> None:
        """Record an attempt. It is repeated after `retry_s`; None: it was the last one, and its header is deleted."""
        due = None if retry_s is None else time.time() + retry_s
        with self._database.transaction() as run:
            run(
                """UPDATE webhooks SET due = ?, status_code = coalesce(?, status_code),
                header_value = CASE WHEN ? IS NOT NULL THEN header_value END WHERE seq = ? AND due IS NOT NULL""",
                (due, status_code, due, delivery.seq),
            )
        if due is None and delivery.header:
            self._database.wipe_soon()

    def give_back(self, taken: Iterable[int]) -> None:
        """Make notifications due immediately if their attempts were interrupted."""
        with self._database.transaction() as run:
            for seq in taken:
                run(
                    "UPDATE webhooks SET due = ?, tries = tries - 1 WHERE seq = ? AND due IS NOT NULL",
                    (time.time(), seq),
                )

    def next_due(self) -> float | None:
        """Return the seconds until the next notification is due, or None if there is none."""
        due = self._database.rows("SELECT min(due) FROM webhooks")[0][0]
        return None if due is None else max(0.0, due - time.time())


class DeliveryResult(NamedTuple):
    """Result of an attempt."""

    status_code: int | None
    reason: str

    @property
    def ok(self) -> bool:
        """True if the receiver accepted the notification."""
        return self.status_code is not None and 200 <= self.status_code < 300


def post(
    url: str,
    body: dict[str, Any],
    header: tuple[str, str] | None = None,
    allowed_origins: frozenset[str] = frozenset(),
    seconds: float = SECONDS,
) -> DeliveryResult:
    """Send a notification once, without following redirects."""
    headers = {"Content-Type": "application/json", "User-Agent": "voxframe", "Connection": "close"}
    if header:
        headers = {name: value for name, value in headers.items() if name.lower() != header[0].lower()}
        headers[header[0]] = header[1]
    try:
        server = connection(url, allowed_origins, seconds)
    except NotAllowedError as error:
        return DeliveryResult(None, str(error))
    except (OSError, ValueError) as error:
        return DeliveryResult(None, _reason(error))

    try:
        with time_limit(server, seconds) as expired:
            server.request("POST", request_target(url), orjson.dumps(body), headers)
            with server.getresponse() as response:
                status = response.status
    except (OSError, http.client.HTTPException, ValueError) as error:
        timed_out = expired.is_set() or isinstance(error, TimeoutError)
        return DeliveryResult(None, f"did not respond within {seconds:g} s" if timed_out else _reason(error))
    finally:
        server.close()
    return DeliveryResult(status, f"returned {status}")


def _reason(error: Exception) -> str:
    return f"could not be reached ({getattr(error, 'strerror', None) or type(error).__name__})"


class WebhookSender:
    """Sends notifications as they become due, in threads of its own.

    Args:
        redacted_url: Returns the URL of a transcript's redacted audio, or None if the file no longer exists.
    """

    def __init__(
        self, queue: WebhookQueue, redacted_url: Callable[[str], str | None], interval: float = INTERVAL
    ) -> None:
        self._queue = queue
        self._redacted_url = redacted_url
        self._interval = interval
        self._active: set[int] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="voxframe-webhooks", daemon=True)

    def start(self) -> None:
        """Start sending, including notifications left by an earlier process."""
        self._thread.start()

    def wake(self) -> None:
        """Check now if a notification is due."""
        self._wake.set()

    def stop(self) -> None:
        """Stop sending. Interrupted attempts are repeated after the next start."""
        with self._lock:  # from here on no thread records a result
            self._stopping = True
        self.wake()
        self._thread.join()
        self._queue.give_back(self._active)

    def _run(self) -> None:
        while not self._stopping:
            pause = _TICK
            try:
                pause = self._tick()
            except Exception:  # noqa: BLE001 - a full disk, or a lack of threads, is temporary; this thread must go on
                _log.exception("notifications could not be sent; trying again")
            self._wake.wait(pause)
            self._wake.clear()

    def _tick(self) -> float:
        """Start all deliveries that are due, and return the seconds until the next check."""
        while not self._stopping and len(self._active) < AT_ONCE:
            # Longer than an attempt takes, so that it is taken again only if this process has died.
            delivery = self._queue.take(SECONDS + self._interval + _TICK)
            if delivery is None:
                due = self._queue.next_due()
                return _TICK if due is None else min(due, _TICK)
            with self._lock:  # the thread removes what is added here only after it has the lock
                if delivery.seq in self._active:  # a name server delayed the earlier attempt
                    continue
                threading.Thread(
                    target=self._deliver, args=(delivery,), name=f"voxframe-webhook-{delivery.job}", daemon=True
                ).start()
                self._active.add(delivery.seq)
        return _TICK

    def _deliver(self, delivery: Delivery) -> None:
        try:
            body = self._body(delivery)
            allowed = frozenset({origin(delivery.url)}) if delivery.allowed else frozenset()
            result = post(delivery.url, body, delivery.header, allowed) if body else None
        except Exception:  # noqa: BLE001 - this thread has no caller; the attempt is repeated after any error
            _log.exception("job %s: its webhook could not be sent", delivery.job)
            result = DeliveryResult(None, "could not be sent")
        with self._lock:
            if self._stopping:
                return
            try:
                self._record(delivery, result)
            except sqlite3.Error:
                _log.exception("job %s: the result of its webhook could not be recorded", delivery.job)
            self._active.discard(delivery.seq)
        self.wake()

    def _body(self, delivery: Delivery) -> dict[str, Any] | None:
        if delivery.event == "transcript":
            return {"transcript_id": delivery.job, "status": delivery.status}
        url = self._redacted_url(delivery.job)
        return None if url is None else {"status": "redacted_audio_ready", "redacted_audio_url": url}

    def _record(self, delivery: Delivery, result: DeliveryResult | None) -> None:
        level, retry_s, then = logging.WARNING, None, ""
        if result is None:
            result = DeliveryResult(None, "not sent, the redacted audio no longer exists")
        elif result.ok:
            level = logging.INFO
        elif delivery.tries > RETRIES:
            then = f"; given up after {delivery.tries} attempts"
        else:
            level, retry_s, then = logging.INFO, self._interval, f"; next attempt in {self._interval:g} s"
        self._queue.record(delivery, result.status_code, retry_s)
        _log.log(level, "job %s: webhook (%s) %s%s", delivery.job, delivery.event, result.reason, then)
