"""Failed requests: their voxframe errors, and when they are sent again."""

from __future__ import annotations

import errno
import http.client
import random
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from voxframe.client import embedded
from voxframe.client.response import ResponseLimits, TooLarge, TooSlow, clean
from voxframe.errors import (
    ResponseTooLargeError,
    ResponseTooSlowError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    VoxframeError,
)
from voxframe.settings import ENVIRONMENT

#: Minimum seconds before a retry, even if the service announces less.
SHORTEST_WAIT_S = 0.2
#: Maximum seconds that a service can make a request wait; beyond that the error is raised.
LONGEST_WAIT_S = 90.0
#: Maximum number of failures in a row, however short the pauses were.
MOST_FAILURES = 100


class RetryBudget:
    """A limit on the retries of all requests of a client, so that a service in trouble is not overloaded.

    Each retry costs one; each success returns a tenth.
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


def wait_after(
    error: ServiceError, failures: int, *, most: int = MOST_FAILURES, base_s: float = 0.4, cap_s: float = 15.0
) -> float | None:
    """Return seconds to wait before the next attempt, or None if there should be none.

    The wait is the longer of the backoff and what the service requests, and at least `SHORTEST_WAIT_S`. So a service
    that requests 0 seconds or an invalid time is not called in a tight loop.

    Args:
        base_s: Maximum backoff after the first failure in seconds; it doubles with each further one.
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
        budget: Retry budget of the client; only retries without a time announced by the service use it.
    """
    if not repeatable and error.possibly_delivered:
        return None  # the service may have processed it, and a second one could be charged again
    wait_s = wait_after(error, attempt, most=tries)
    if wait_s is None or (error.retry_after or 0.0) > LONGEST_WAIT_S:
        return None
    return wait_s if error.retry_after or budget.spend() else None


#: Reason and advice if the embedded server that this process started is no longer running.
EMBEDDED_ENDED = "the embedded server has ended"
CONNECT_AGAIN = "Call connect() to restart the server; jobs in progress resume"


def from_response(error: ServiceError, method: str, path: str, base_url: str) -> ServiceError:
    """Return the voxframe error for an error response or an unreadable one.

    If the embedded server of this URL has ended, another program has its port now, such as the embedded server of
    another process. Then the error says that the server has ended, because the response is about something else.
    """
    if not embedded.has_ended(base_url):
        return error
    return _embedded_ended(method, path, base_url, possibly_delivered=error.possibly_delivered)


def _embedded_ended(method: str, path: str, base_url: str, *, possibly_delivered: bool) -> ServiceUnreachableError:
    host = urlsplit(base_url).netloc
    error = ServiceUnreachableError(f"no connection to {host}: {EMBEDDED_ENDED} ({method} {path}). {CONNECT_AGAIN}")
    error.possibly_delivered = possibly_delivered
    return error


def from_requests(
    error: Exception,
    method: str,
    path: str,
    base_url: str,
    read_timeout_s: float,
    limits: ResponseLimits,
) -> VoxframeError:
    """Return the voxframe error for a request without a response.

    `possibly_delivered` is False only if no connection was made, so that the service cannot have processed the request.
    """
    causes = list(_chain(error))
    ours = next((cause for cause in causes if isinstance(cause, VoxframeError)), None)
    if ours is not None:  # raised while the body was read, such as a file that changed during the upload
        return ours
    host = urlsplit(base_url).netloc.rpartition("@")[2]
    request = f"({method} {path})"
    exceeded = next((cause for cause in causes if isinstance(cause, TooSlow | TooLarge)), None)
    if exceeded is not None:
        return _over_limit(limits, host, request, slow=isinstance(exceeded, TooSlow))
    if isinstance(error, requests.exceptions.SSLError):
        reason = next((getattr(c, "verify_message", "") for c in causes if getattr(c, "verify_message", "")), "")
        if not reason:  # it may have failed before or after the request was sent
            return ServiceUnreachableError(
                f"the secure connection to {host} failed before the response was complete {request}. Check base_url"
            )
        return _unsent(
            f"no secure connection to {host}: {reason} {request}. Check base_url and the machine's certificates"
        )
    if isinstance(
        error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema
    ):
        return _unsent(f"{base_url} is not a usable URL {request}. Check base_url")
    if any(isinstance(c, urllib3.exceptions.NameResolutionError | socket.gaierror) for c in causes):
        return _unsent(f"the host {host} cannot be found {request}. Check base_url and the network")
    if isinstance(error, requests.ConnectTimeout):
        return _unsent(f"no connection to {host}: it did not respond in time {request}. Check base_url and the network")
    if isinstance(error, requests.exceptions.ProxyError):
        return _unsent(
            f"no connection to {host} through the configured proxy {request}. Check HTTPS_PROXY and NO_PROXY"
        )
    if isinstance(error, requests.ConnectionError) and embedded.has_ended(base_url):
        connected = not any(isinstance(c, urllib3.exceptions.NewConnectionError) for c in causes)
        return _embedded_ended(method, path, base_url, possibly_delivered=connected)
    if any(isinstance(c, urllib3.exceptions.NewConnectionError) for c in causes):
        refused = any(getattr(c, "errno", None) == errno.ECONNREFUSED for c in causes)
        reason = "connection refused" if refused else "the network is unreachable"
        return _unsent(f"no connection to {host}: {reason} {request}. Check base_url and that the service is running")
    if isinstance(error, requests.Timeout) or any(
        isinstance(c, TimeoutError | urllib3.exceptions.TimeoutError) for c in causes
    ):
        return ServiceTimeoutError(f"no response from {host} within {read_timeout_s:g} s {request}")
    garbage = next((reason for cause in causes if (reason := _not_http(cause))), None)
    if garbage is not None:
        return ServiceUnreachableError(f"the response of {host} is not valid HTTP: {garbage} {request}. Check base_url")
    if isinstance(error, requests.ConnectionError | urllib3.exceptions.HTTPError):
        return ServiceUnreachableError(f"the connection to {host} was lost before the response was complete {request}")
    if not isinstance(error, requests.RequestException):
        return ServiceError(
            f"the redirect of {host} cannot be followed: {clean(str(error), 100)} {request}. Check base_url"
        )
    return ServiceError(f"the request to {host} failed: {type(error).__name__} {request}")


def advised(error: ServiceError, path: str, *, repeatable: bool) -> ServiceError:
    """Add to the message of an error if its request can be sent again, and return the error."""
    if not error.possibly_delivered:
        return error
    is_free = repeatable or path == "/v2/upload"
    if not is_free:
        check = "see client.list() before you" if path == "/v2/transcript" else "it may be charged twice if you"
        error.args = (f"{error}. The service may have processed this request: {check} send it again",)
    elif error.transient:
        error.args = (f"{error}. Try again later",)
    return error


def _not_http(cause: BaseException) -> str | None:
    """Return how a response violates HTTP, or None if it was cut short or the error is another one."""
    if isinstance(cause, urllib3.exceptions.DecodeError):
        return "its compressed body is broken"
    if isinstance(cause, http.client.RemoteDisconnected | http.client.IncompleteRead):
        return None
    if isinstance(cause, http.client.HTTPException):
        return clean(f"{type(cause).__name__} {cause}", 100)
    return None


def _over_limit(limits: ResponseLimits, host: str, request: str, *, slow: bool) -> ServiceError:
    """Return the error for a response that exceeded its limits."""
    if limits.renewed_by is not None:
        if slow:
            return ResponseTooSlowError(
                f"the download from {host} received less than {limits.renewed_by:,} bytes in {limits.seconds:g} s "
                f"{request}. Check the network and call save() again to resume it"
            )
        return ResponseTooLargeError(
            f"the file at {host} is larger than {limits.most_bytes:,} bytes {request}. If that is right, allow more "
            "with save(max_gb=...)"
        )
    if slow:
        return ResponseTooSlowError(
            f"the response of {host} was not complete {limits.seconds:g} s after its headers; {limits.received:,} "
            f"bytes had arrived {request}. Check the network, or allow more time with connect(timeout=...) or "
            f"{ENVIRONMENT['timeout']}"
        )
    return ResponseTooLargeError(
        f"the response of {host} is larger than {limits.most_bytes:,} bytes {request}. Check base_url; if the size is "
        f"right, allow more with connect(max_response_mb=...) or {ENVIRONMENT['max_response_mb']}"
    )


def _unsent(message: str) -> ServiceUnreachableError:
    error = ServiceUnreachableError(message)
    error.possibly_delivered = False
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and all errors that it wraps as cause, reason or argument.

    Its `__context__` is left out: that may be an error which the caller of voxframe handles at the moment.
    """
    ids: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        link = waiting.pop()
        if not isinstance(link, BaseException) or id(link) in ids:
            continue
        ids.add(id(link))
        yield link
        waiting += [link.__cause__, getattr(link, "reason", None), *link.args]
