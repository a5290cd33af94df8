"""Tells users' servers that a transcript has ended or its redacted audio is ready, beside all other work."""

from __future__ import annotations

import http.client
import logging
import socket
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from voxframe.local import pinned
from voxframe.local.addresses import NotAllowedError, origin
from voxframe.local.deliveries import Deliveries, Delivery

_log = logging.getLogger("voxframe.local")

#: A try that takes longer has failed, in seconds.
SECONDS = 10.0
#: Tries after the first one, and seconds between two.
RETRIES, INTERVAL = 10, 10.0
#: Tries at once: servers that hang do not hold up the others.
AT_ONCE = 32
_TICK = 1.0


class Outcome(NamedTuple):
    """What came of a try.

    Attributes:
        status_code: What the server answered; None where it did not.
        reason: The same in words, without the address.
    """

    status_code: int | None
    reason: str

    @property
    def told(self) -> bool:
        """Whether the server has taken it."""
        return self.status_code is not None and 200 <= self.status_code < 300


def post(
    url: str,
    body: dict[str, Any],
    header: tuple[str, str] | None = None,
    allowed_origins: frozenset[str] = frozenset(),
    seconds: float = SECONDS,
) -> Outcome:
    """Send a notification once. Redirects are not followed: they are an answer like any other.

    Args:
        url: Where to.
        body: What to say.
        header: Name and value of a header that the receiver wants to see.
        allowed_origins: Origins, as `addresses.origin` spells them, that may resolve to anything.
        seconds: Longest time until the answer.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "voxframe", "Connection": "close"}
    if header:
        headers = {name: value for name, value in headers.items() if name.lower() != header[0].lower()}
        headers[header[0]] = header[1]
    late = threading.Event()
    try:
        server = pinned.connection(url, allowed_origins, seconds)
    except NotAllowedError as error:
        return Outcome(None, str(error))
    except (OSError, ValueError) as error:
        return Outcome(None, _words(error))

    def end() -> None:
        late.set()
        if server.sock is not None:
            with suppress(OSError):  # not the method of an encrypted socket, which two threads may not use
                socket.socket.shutdown(server.sock, socket.SHUT_RDWR)

    # The socket's own limit counts from byte to byte; a server could answer a byte at a time for ever.
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        server.request("POST", pinned.request_target(url), orjson.dumps(body), headers)
        status = server.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        too_late = late.is_set() or isinstance(error, TimeoutError)
        return Outcome(None, f"did not answer within {seconds:g} s" if too_late else _words(error))
    finally:
        timer.cancel()
        server.close()
    return Outcome(status, f"answered {status}")


def _words(error: Exception) -> str:
    return f"could not be reached ({getattr(error, 'strerror', None) or type(error).__name__})"


class Courier:
    """Delivers notifications as they become due, in threads of its own.

    Args:
        deliveries: The notifications.
        redacted_url: Gives the address of a transcript's redacted audio; None where there is none any more.
        interval: Seconds between two tries.
    """

    def __init__(
        self, deliveries: Deliveries, redacted_url: Callable[[str], str | None], interval: float = INTERVAL
    ) -> None:
        self._deliveries = deliveries
        self._redacted_url = redacted_url
        self._interval = interval
        self._under_way: set[int] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="voxframe-webhooks", daemon=True)

    def start(self) -> None:
        """Begin, with what an earlier process has left."""
        self._thread.start()

    def wake(self) -> None:
        """Say that something may be due."""
        self._wake.set()

    def stop(self) -> None:
        """End. What is under way is left for the next start."""
        with self._lock:  # from here on no thread notes anything
            self._stopping = True
        self.wake()
        self._thread.join()
        self._deliveries.give_back(self._under_way)

    def _run(self) -> None:
        while not self._stopping:
            pause = _TICK
            try:
                pause = self._tick()
            except sqlite3.Error:  # a full disk or a locked database passes
                _log.exception("notifications could not be read; trying again")
            self._wake.wait(pause)
            self._wake.clear()

    def _tick(self) -> float:
        """Take all that is due; return the seconds until more may be."""
        while not self._stopping and len(self._under_way) < AT_ONCE:
            # Longer than a try takes: it is taken again only when this process is gone.
            delivery = self._deliveries.take(SECONDS + self._interval + _TICK)
            if delivery is None:
                due = self._deliveries.next_due()
                return _TICK if due is None else min(due, _TICK)
            with self._lock:
                if delivery.seq in self._under_way:  # a name server that kept it waiting for longer still
                    continue
                self._under_way.add(delivery.seq)
            threading.Thread(
                target=self._deliver, args=(delivery,), name=f"voxframe-webhook-{delivery.job}", daemon=True
            ).start()
        return _TICK

    def _deliver(self, delivery: Delivery) -> None:
        try:
            body = self._body(delivery)
            allowed = frozenset({origin(delivery.url)}) if delivery.allowed else frozenset()
            outcome = post(delivery.url, body, delivery.header, allowed) if body else None
        except Exception:  # noqa: BLE001 - whatever it is, it is tried again, and this thread has nobody to tell
            _log.exception("job %s: its webhook could not be tried", delivery.job)
            outcome = Outcome(None, "could not be tried")
        with self._lock:
            if self._stopping:
                return
            try:
                self._settle(delivery, outcome)
            except sqlite3.Error:
                _log.exception("job %s: what its webhook answered could not be noted", delivery.job)
            self._under_way.discard(delivery.seq)
        self.wake()

    def _body(self, delivery: Delivery) -> dict[str, Any] | None:
        if delivery.event == "transcript":
            return {"transcript_id": delivery.job, "status": delivery.status}
        url = self._redacted_url(delivery.job)
        return None if url is None else {"status": "redacted_audio_ready", "redacted_audio_url": url}

    def _settle(self, delivery: Delivery, outcome: Outcome | None) -> None:
        job, event = delivery.job, delivery.event
        if outcome is None:
            self._deliveries.done(delivery, None)
            _log.warning("job %s: there is no redacted audio to tell of", job)
        elif outcome.told:
            self._deliveries.done(delivery, outcome.status_code)
            _log.info("job %s: webhook (%s) %s", job, event, outcome.reason)
        elif delivery.tries > RETRIES:
            self._deliveries.done(delivery, outcome.status_code)
            _log.warning("job %s: webhook (%s) %s; given up after %d tries", job, event, outcome.reason, delivery.tries)
        else:
            self._deliveries.again(delivery, outcome.status_code, self._interval)
            _log.info("job %s: webhook (%s) %s; again in %g s", job, event, outcome.reason, self._interval)
