"""The HTTP transport: connection pool, API key and timeouts; the errors of requests, and when they are sent again."""

from __future__ import annotations

import errno
import http.client
import json as jsonlib
import logging
import os
import platform
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from voxframe._text import masked
from voxframe.client import embedded
from voxframe.client.async_bridge import LONGEST_WAIT_S, Workers, check_wanted, stop_event
from voxframe.client.response import Download, HTTPResponse, ResponseLimits, TooLarge, TooSlow, clean, read_content
from voxframe.errors import (
    OptionError,
    ResponseTooLargeError,
    ResponseTooSlowError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    VoxframeError,
)
from voxframe.settings import ENVIRONMENT, MAX_RESPONSE_MB, RESPONSE_TIMEOUT_S, Secret, is_loopback

#: Minimum seconds before a retry, even if the service announces less.
SHORTEST_WAIT_S = 0.2
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
    """
    if not error.transient or failures + 1 >= min(most, MOST_FAILURES):
        return None
    asked_s = error.retry_after or 0.0
    if asked_s:
        asked_s += random.uniform(0.0, 0.25)  # noqa: S311 - as above
    return max(SHORTEST_WAIT_S, asked_s, backoff(failures, base_s, cap_s))


def pause(error: ServiceError, attempt: int, *, tries: int, repeatable: bool, budget: RetryBudget) -> float | None:
    """Return seconds to wait before a request is sent again, or None if it must not be."""
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


log = logging.getLogger(__name__)
_requesting: ContextVar[bool] = ContextVar("voxframe_requesting", default=False)


def _mask_urls(record: logging.LogRecord) -> bool:
    """Mask signatures in the URLs that urllib3 logs about requests of voxframe."""
    if _requesting.get() and isinstance(record.args, tuple):
        record.args = tuple(masked(value) if isinstance(value, str) else value for value in record.args)
    return True


logging.getLogger("urllib3.connectionpool").addFilter(_mask_urls)

_REDIRECTS = 5
#: Errors of a request without a whole response. ValueError: an invalid URL in a redirect.
_FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, TooSlow, TooLarge, ValueError)
#: Note on a KeyboardInterrupt between two requests, when no request can have been processed without a response.
NOTHING_UNDER_WAY = "Interrupted between two requests to the service; none is in progress."


class Transport:
    """Sends requests to one service. It can be shared by threads.

    Args:
        response_timeout_s: Maximum seconds from the first to the last byte of a response.
        max_response_bytes: Maximum size of a response, as sent and as decompressed.
        concurrency: Maximum number of concurrent requests, shared with other clients of the same host.
        permit: Called before each attempt. It returns when the request may be sent.

    Attributes:
        concurrency: As given.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret,
        *,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 60.0,
        response_timeout_s: float = RESPONSE_TIMEOUT_S,
        max_response_bytes: int = MAX_RESPONSE_MB << 20,
        attempts: int = 5,
        concurrency: int = 8,
        permit: Callable[[], object] = lambda: None,
    ) -> None:
        self.base_url = base_url
        self.attempts = attempts
        self._key = key
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._response_timeout_s, self._max_response_bytes = response_timeout_s, max_response_bytes
        self.concurrency = concurrency
        self._permit = permit
        self.workers = Workers(concurrency)
        self._host = urlsplit(base_url).netloc
        _slots(os.getpid(), self._host, concurrency)  # made before several threads ask for them
        self._budget = RetryBudget()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._kept: requests.Session | None = None
        self._pid = os.getpid()

    @property
    def is_local(self) -> bool:
        """True if the service runs on this machine."""
        return is_loopback(self.base_url)

    def request(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Mapping[str, Any] | None = None,
        body: Callable[[], Any] | None = None,
        repeatable: bool | None = None,
        accept: Literal["json", "text"] = "json",
        attempts: int | None = None,
        read_timeout_s: float | None = None,
        observe: Callable[[HTTPResponse], None] | None = None,
    ) -> HTTPResponse:
        """Send a request and return a successful response.

        Args:
            body: Returns a stream of bytes to send as the body; called once per attempt.
            repeatable: True if sending the request twice is safe. None (default): all methods but POST.
            observe: Called with each response, including errors.
        """
        if repeatable is None:
            repeatable = method != "POST"
        self._check_open()
        tries = self.attempts if attempts is None else attempts
        data = None if json is None else _encode(json)
        attempt = 0
        while True:
            try:
                begun = time.monotonic()
                result = self._once(method, path, params, data, body, repeatable, read_timeout_s)
                log.debug("%s %s: %d in %.2f s", method, path, result.status, time.monotonic() - begun)
                if observe is not None:
                    observe(result)
                if result.status >= 300:
                    raise from_response(result.error(), method, path, self.base_url)
                if result.web_page if accept == "text" else not result.whole:
                    raise from_response(result.unreadable(), method, path, self.base_url)
            except ServiceError as error:
                wait_s = pause(error, attempt, tries=tries, repeatable=repeatable, budget=self._budget)
                if wait_s is None:
                    raise advised(error, path, repeatable=repeatable) from error.__cause__
                log.info("%s; trying again in %.1f s", error, wait_s)
            else:
                self._budget.earn()
                return result
            self.sleep(wait_s)
            attempt += 1

    @contextmanager
    def download(self, url: str, headers: Mapping[str, str], limits: ResponseLimits) -> Iterator[Download]:
        """Request a file once. The key is only sent if the URL is on the service itself."""
        path = urlsplit(url).path
        self._check_open()
        self._permit()
        try:
            with (
                _slots(os.getpid(), self._host, self.concurrency),
                self._session(keep=True) as session,
                session.get(
                    url,
                    headers=dict(headers),
                    auth=self._authorise,
                    timeout=self._timeouts,
                    stream=True,
                ) as response,
            ):
                yield Download(response, path, limits, lambda: self._read(response, "GET", path, limits))
        except VoxframeError:
            raise
        except _FAILURES as error:
            log.debug("GET %s: %s", path, masked(repr(error)))
            raise from_requests(error, "GET", path, url, self._timeouts[1], limits) from None

    def sleep(self, seconds: float) -> None:
        """Wait between two requests."""
        until = time.monotonic() + seconds
        stop = stop_event()
        try:
            if stop is None:
                self._closed.wait(seconds)
            else:
                while (remaining := until - time.monotonic()) > 0 and not self._closed.is_set() and not stop.is_set():
                    stop.wait(min(remaining, 0.2))
        except KeyboardInterrupt as stopped:
            stopped.add_note(NOTHING_UNDER_WAY)
            raise
        check_wanted()
        if self._closed.is_set():
            raise ServiceError("the client was closed while it waited; call connect() again")

    def close(self) -> None:
        """Close all connections. Waits in other threads end with an error."""
        self._closed.set()
        with self._lock:
            if self._kept is not None:
                self._kept.close()
            self._kept = None

    def _once(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None,
        data: bytes | None,
        body: Callable[[], Any] | None,
        repeatable: bool,
        read_timeout_s: float | None,
    ) -> HTTPResponse:
        """Make one attempt and return the response, whatever its status."""
        self._permit()
        check_wanted()
        self._check_open()
        timeouts = (self._timeouts[0], read_timeout_s or self._timeouts[1])
        limits = ResponseLimits(self._response_timeout_s, self._max_response_bytes)
        url, stream = self.base_url + path, body() if body else None
        headers = {"Content-Type": "application/json" if stream is None else "application/octet-stream"}
        try:
            with _slots(os.getpid(), self._host, self.concurrency), self._session(keep=repeatable) as session:
                for hop in range(_REDIRECTS + 1):
                    with session.request(
                        method,
                        url,
                        params=params,  # those that are None are left out
                        data=data if stream is None else stream,
                        headers=headers if data is not None or stream is not None else None,
                        auth=self._authorise,
                        timeout=timeouts,
                        allow_redirects=False,
                        stream=True,
                    ) as response:
                        target = self._redirect(response) if method == "GET" else None
                        if target is None or hop == _REDIRECTS:
                            return self._read(response, method, path, limits)
                    url, params = target, None
                raise AssertionError("the last redirect returns")
        except VoxframeError:  # some of them are ValueErrors too
            raise
        except _FAILURES as error:
            log.debug("%s %s: %s", method, path, masked(repr(error)))
            raise from_requests(error, method, path, self.base_url, timeouts[1], limits) from None
        finally:
            if stream is not None:
                stream.close()

    def _read(self, response: requests.Response, method: str, path: str, limits: ResponseLimits) -> HTTPResponse:
        """Read a response. Mask the key in one that a message may quote, in case the service repeats it there."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        answer = HTTPResponse(response.status_code, headers, read_content(response, limits), method, path)
        if answer.status < 300 and answer.whole:
            return answer
        return replace(answer, content=answer.content.replace(self._key.reveal().encode(), b"(key)"))

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ServiceError("the client is closed; call connect() again")

    def _authorise(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the key if the request goes to the service itself."""
        if _origin(request.url or "") == _origin(self.base_url):
            request.headers["Authorization"] = _Unshown(self._key.reveal())
        return request

    def _redirect(self, response: requests.Response) -> str | None:
        """Return the URL to which a GET is redirected, or None if there is no redirect or it must not be followed."""
        if response.status_code not in (301, 302, 303, 307, 308) or "location" not in response.headers:
            return None
        target = urljoin(response.url, response.headers["location"])
        scheme = urlsplit(target).scheme
        down = urlsplit(response.url).scheme == "https" and scheme == "http"
        return target if scheme in ("http", "https") and not down else None

    @contextmanager
    def _session(self, *, keep: bool) -> Iterator[requests.Session]:
        """Return the session with pooled connections, or one with a new connection.

        The service may close a pooled connection at the moment when a request is sent on it. Then the client cannot
        know if the request arrived. A new connection avoids this for requests that must not be sent twice.
        """
        token = _requesting.set(True)
        try:
            if not keep:
                with self._open() as session:
                    session.headers["Connection"] = "close"
                    yield session
                return
            with self._lock:
                # A forked process must not share sockets with its parent.
                if self._kept is None or self._pid != os.getpid():
                    self._kept, self._pid = self._open(), os.getpid()
                session = self._kept
            yield session
        finally:
            _requesting.reset(token)

    def _open(self) -> requests.Session:
        session = requests.Session()
        adapter = HTTPAdapter(pool_connections=4, pool_maxsize=self.concurrency)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        session.headers["User-Agent"] = f"voxframe ({platform.python_implementation()} {platform.python_version()})"
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        session.trust_env = not self.is_local  # a proxy cannot reach a server on this machine
        return session


class _Unshown(str):
    """A string with a hidden repr, for headers that are printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return jsonlib.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"the request cannot be written as JSON ({error}); use strings, numbers, lists and dicts"
        ) from None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


@cache
def _slots(pid: int, host: str, count: int) -> threading.Semaphore:  # noqa: ARG001 - a fork has slots of its own
    """Return the slots of concurrent requests to a host, shared by the clients of this process with the same number."""
    return threading.Semaphore(count)
