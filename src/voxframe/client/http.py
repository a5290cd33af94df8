"""The HTTP transport: connection pool, API key, timeouts, retries and error messages."""

from __future__ import annotations

import json as jsonlib
import logging
import os
import platform
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from voxframe._text import masked
from voxframe.client import failures
from voxframe.client.async_bridge import Workers, check_wanted, stop_event
from voxframe.client.failures import RetryBudget, pause
from voxframe.client.response import Download, HTTPResponse, ResponseLimits, TooLarge, TooSlow, read_content
from voxframe.errors import OptionError, ServiceError, VoxframeError
from voxframe.settings import MAX_RESPONSE_MB, RESPONSE_TIMEOUT_S, Secret, is_loopback

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
        self._limiter = ConcurrencyLimiter(urlsplit(base_url).netloc, concurrency)
        self._budget = RetryBudget()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._kept: requests.Session | None = None
        self._pid = os.getpid()

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
                    raise failures.from_response(result.error(), method, path, self.base_url)
                if result.web_page if accept == "text" else not result.whole:
                    raise failures.from_response(result.unreadable(), method, path, self.base_url)
            except ServiceError as error:
                wait_s = pause(error, attempt, tries=tries, repeatable=repeatable, budget=self._budget)
                if wait_s is None:
                    raise failures.advised(error, path, repeatable=repeatable) from error.__cause__
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
                self._limiter.slot(),
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
            raise failures.from_requests(error, "GET", path, url, self._timeouts[1], limits) from None

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
            with self._limiter.slot(), self._session(keep=repeatable) as session:
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
            raise failures.from_requests(error, method, path, self.base_url, timeouts[1], limits) from None
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
        session.trust_env = not is_loopback(self.base_url)  # a proxy cannot reach a server on this machine
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


_semaphores_lock = threading.Lock()
_semaphores: weakref.WeakValueDictionary[tuple[int, str, int], threading.Semaphore] = weakref.WeakValueDictionary()


class ConcurrencyLimiter:
    """Limits concurrent requests to a host, over all clients of this process.

    Args:
        count: Maximum number of concurrent requests. Clients of one host with the same number share the limit.
    """

    def __init__(self, host: str, count: int) -> None:
        self._host, self._count = host, count
        self._pid, self._semaphore = os.getpid(), _shared(host, count)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold one slot inside the block, after waiting for it."""
        if self._pid != os.getpid():  # slots held by threads of the parent are never released in a fork
            self._pid, self._semaphore = os.getpid(), _shared(self._host, self._count)
        with self._semaphore:
            yield


def _shared(host: str, count: int) -> threading.Semaphore:
    key = os.getpid(), host, count
    with _semaphores_lock:
        semaphore = _semaphores.get(key)
        if semaphore is None:
            semaphore = _semaphores[key] = threading.Semaphore(count)
        return semaphore


if hasattr(os, "register_at_fork"):  # another thread may hold the lock during the fork
    os.register_at_fork(
        before=_semaphores_lock.acquire,
        after_in_parent=_semaphores_lock.release,
        after_in_child=_semaphores_lock.release,
    )
