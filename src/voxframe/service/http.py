"""The one transport: a pooled session with the key, timeouts, careful retries and errors that say what happened."""

from __future__ import annotations

import json as jsonlib
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter

from voxframe.errors import APIError, OptionError, ServiceError, VoxframeError
from voxframe.service import faults
from voxframe.service.answer import Answer
from voxframe.service.retry import Budget, pause
from voxframe.service.slots import Slots
from voxframe.service.threads import Workers, check_wanted, stop_event
from voxframe.settings import Secret, is_loopback

log = logging.getLogger(__name__)

_REDIRECTS = 5
#: Note of a KeyboardInterrupt that came between two requests: none that was sent may have been acted on unseen.
NOTHING_UNDER_WAY = "It came between two requests to the service; none is under way."


class Transport:
    """Requests to one service. May be used from several threads.

    Args:
        base_url: Address of the service.
        key: The API key; sent to that address only.
        connect_timeout_s: Seconds to make a connection.
        read_timeout_s: Seconds without a byte of an answer.
        attempts: Tries of a request that is safe to repeat.
        concurrency: Requests under way at once, together with other clients of the same host.

    Attributes:
        base_url: Address of the service.
        attempts: As given.
        concurrency: As given.
        workers: Threads in which requests are awaited.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret,
        *,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 60.0,
        attempts: int = 5,
        concurrency: int = 8,
    ) -> None:
        self.base_url = base_url
        self.attempts = attempts
        self._key = key
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self.concurrency = concurrency
        self.workers = Workers(concurrency)
        self._slots = Slots(urlsplit(base_url).netloc, concurrency)
        self._budget = Budget()
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
        observe: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Make a request and return a good answer.

        Args:
            method: HTTP method.
            path: Path below the base address, quoted.
            params: Query parameters; those that are None are left out.
            json: Body, sent as JSON.
            body: Makes a stream of bytes to send as the body; called once per try.
            repeatable: Whether making the request twice does no harm; default: all but POST.
            accept: What the answer should be.
            attempts: Tries, instead of the transport's own number.
            read_timeout_s: Seconds without a byte of an answer, instead of the transport's own.
            observe: Told of every answer, also of those that are errors.

        Raises:
            ServiceError: No answer, or one that is an error; `may_have_arrived` says whether asking again is safe.
            OptionError: The body is nothing JSON can hold.
        """
        if repeatable is None:
            repeatable = method != "POST"
        self._check_open()
        tries = self.attempts if attempts is None else attempts
        data = None if json is None else _encode(json)
        attempt = 0
        while True:
            try:
                answer = self._once(method, path, params, data, body, repeatable, read_timeout_s)
                if observe is not None:
                    observe(answer)
                if answer.status >= 300:
                    raise answer.error()
                if accept == "json" and not answer.whole:
                    raise answer.unreadable()
            except ServiceError as error:
                wait_s = pause(error, attempt, repeatable=repeatable, budget=self._budget)
                if wait_s is None or attempt + 1 >= tries:
                    raise
                log.info("%s; asking again in %.1f s", error, wait_s)
            else:
                self._budget.earn()
                return answer
            self.sleep(wait_s)
            attempt += 1

    @contextmanager
    def download(self, url: str, headers: Mapping[str, str]) -> Iterator[Download]:
        """Ask for a file, once. The key goes along only where the address is the service's own.

        Args:
            url: Where it is.
            headers: Headers of the request.

        Raises:
            ServiceError: No answer, or it broke off.
        """
        path = urlsplit(url).path
        try:
            with (
                self._slots.turn(),
                self._session(keep=True) as session,
                session.get(
                    url,
                    headers=dict(headers),
                    auth=self._authorise,
                    timeout=self._timeouts,
                    stream=True,
                ) as response,
            ):
                yield Download(response, path)
        except VoxframeError:
            raise
        except (requests.RequestException, ValueError) as error:
            log.debug("GET %s: %r", path, error)
            raise faults.from_requests(error, "GET", path, url, self._timeouts[1]) from None

    def sleep(self, seconds: float) -> None:
        """Wait, between requests. Ends with an error when the client is closed or nobody waits any more.

        Raises:
            KeyboardInterrupt: At once, with the note `NOTHING_UNDER_WAY`.
        """
        until = time.monotonic() + seconds
        stop = stop_event()
        try:
            if stop is None:
                self._closed.wait(seconds)
            else:
                while (left := until - time.monotonic()) > 0 and not self._closed.is_set() and not stop.is_set():
                    stop.wait(min(left, 0.2))
        except KeyboardInterrupt as stopped:
            stopped.add_note(NOTHING_UNDER_WAY)
            raise
        check_wanted()
        if self._closed.is_set():
            raise ServiceError("the client was closed while it waited; connect() again")

    def close(self) -> None:
        """Close all connections; whoever waits in a thread is woken with an error."""
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
    ) -> Answer:
        """One try: an answer of any status, or a ServiceError."""
        check_wanted()
        self._check_open()
        timeouts = (self._timeouts[0], read_timeout_s or self._timeouts[1])
        url, stream = self.base_url + path, body() if body else None
        headers = {"Content-Type": "application/json" if stream is None else "application/octet-stream"}
        try:
            with self._slots.turn(), self._session(keep=repeatable) as session:
                for _ in range(_REDIRECTS + 1):
                    with session.request(
                        method,
                        url,
                        params={k: v for k, v in (params or {}).items() if v is not None},
                        data=data if stream is None else stream,
                        headers=headers if data is not None or stream is not None else None,
                        auth=self._authorise,
                        timeout=timeouts,
                        allow_redirects=False,
                    ) as response:
                        target = self._redirect(response) if method == "GET" else None
                        if target is None:
                            return _answer(response, method, path, self._key)
                    url, params = target, None
                raise _answer(response, method, path, self._key).error()
        except VoxframeError:  # some of ours are ValueErrors too
            raise
        except (requests.RequestException, ValueError) as error:  # ValueError: a redirect to what is no address
            log.debug("%s %s: %r", method, path, error)
            raise faults.from_requests(error, method, path, self.base_url, timeouts[1]) from None
        finally:
            if stream is not None:
                stream.close()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ServiceError("the client is closed; connect() again")

    def _authorise(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the key, where the request goes to the service itself and nowhere else."""
        if _origin(request.url or "") == _origin(self.base_url):
            request.headers["Authorization"] = _Unshown(self._key.reveal())
        return request

    def _redirect(self, response: requests.Response) -> str | None:
        """Where a GET is sent on to; None where it is not, or to an address that is not to be followed."""
        if response.status_code not in (301, 302, 303, 307, 308) or "location" not in response.headers:
            return None
        target = urljoin(response.url, response.headers["location"])
        scheme = urlsplit(target).scheme
        down = urlsplit(response.url).scheme == "https" and scheme == "http"
        return target if scheme in ("http", "https") and not down else None

    @contextmanager
    def _session(self, *, keep: bool) -> Iterator[requests.Session]:
        """The session whose connections are kept, or one with a connection of its own.

        A kept connection may be closed by the service just as a request goes out on it, and then nobody knows whether
        it arrived. Requests that must not be made twice do not run into that.
        """
        if not keep:
            with self._open() as session:
                session.headers["Connection"] = "close"
                yield session
            return
        with self._lock:
            if self._kept is None or self._pid != os.getpid():  # sockets are not shared with a forked parent
                self._kept, self._pid = self._open(), os.getpid()
            kept = self._kept
        yield kept

    def _open(self) -> requests.Session:
        session = requests.Session()
        adapter = HTTPAdapter(pool_connections=4, pool_maxsize=self.concurrency)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        session.headers["User-Agent"] = f"voxframe ({platform.python_implementation()} {platform.python_version()})"
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        session.trust_env = not is_loopback(self.base_url)  # a proxy has no way to the service on this machine
        return session


class Download:
    """An answer whose body has not been read yet.

    Attributes:
        status: HTTP status code.
        headers: Headers, with lower-case names.
        path: Path of the request, without the query, which may hold a signature.
    """

    def __init__(self, response: requests.Response, path: str) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.path = path

    def chunks(self, size: int) -> Iterator[bytes]:
        """The body, in pieces of `size` bytes at most."""
        yield from self._response.iter_content(size)

    def error(self) -> APIError:
        """The error this answer stands for."""
        return Answer(self.status, self.headers, self._response.content, "GET", self.path).error()


class _Unshown(str):
    """Text that a repr of the headers that hold it does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


def _answer(response: requests.Response, method: str, path: str, key: Secret) -> Answer:
    """The answer, without the key where the service repeats it in an error."""
    content = response.content
    if response.status_code >= 400:
        content = content.replace(key.reveal().encode(), b"(key)")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, content, method, path)


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return jsonlib.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"the request cannot be written as JSON ({error}); use texts, numbers, lists and dicts"
        ) from None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
