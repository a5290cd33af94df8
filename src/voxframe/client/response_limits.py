"""Limits on the time and size of a response, including its headers.

`requests` only limits the time between two bytes. A server that sends a byte now and then would block forever, and one
that sends bytes without end would fill the memory. This module checks each read from the socket, so the limits also
hold for headers, chunk sizes and trailers.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.poolmanager import PoolManager

from voxframe.client.async_bridge import check_wanted
from voxframe.client.response import HTTPResponse
from voxframe.errors import APIError, UnreadableAnswerError

_CHUNK_BYTES = 64 * 1024
#: Limits for reading the body of an error response, whose status is enough.
_ERROR_BYTES, _ERROR_SECONDS = 1 << 20, 10.0


class TooSlow(TimeoutError):  # noqa: N818 - internal; becomes a ResponseTooSlowError that names the request
    """The time for a response is over."""


class TooLarge(Exception):  # noqa: N818 - internal; becomes a ResponseTooLargeError that names the request
    """A response has more bytes than allowed."""


class ResponseLimits:
    """Limits of one response and of the redirects that lead to it.

    The time starts with the first byte; until then the read timeout applies.

    Args:
        seconds: Maximum seconds from the first to the last byte.
        most_bytes: Maximum number of bytes, as sent and as decompressed.
        renewed_by: Number of bytes that restarts the time, for a download of unknown length; None never restarts it.

    Attributes:
        received: Bytes received so far.
        awaited: True if a request was sent, so that a response is awaited.
        restarts: True if the next response restarts the time, as after the response of a proxy.
    """

    def __init__(self, seconds: float, most_bytes: int, *, renewed_by: int | None = None) -> None:
        self.seconds, self.most_bytes, self.renewed_by = seconds, most_bytes, renewed_by
        self.received = 0
        self.awaited = False
        self.restarts = True
        self._renewed_at = 0
        self._until: float | None = None

    def start(self) -> None:
        """Record that a response is awaited."""
        self.awaited = True
        if self.restarts:
            self._until = None

    def left_s(self) -> float | None:
        """Return the seconds left, or None before the first byte.

        Raises:
            TooSlow: No time is left.
        """
        if self._until is None:
            return None
        left = self._until - time.monotonic()
        if left <= 0:
            raise TooSlow
        return left

    def add(self, count: int) -> None:
        """Record received bytes.

        Raises:
            TooLarge: There are more than allowed.
        """
        self.received += count
        if self.received > self.most_bytes:
            raise TooLarge
        renewed = self.renewed_by is not None and self.received - self._renewed_at >= self.renewed_by
        if self._until is None or renewed:
            self._until, self._renewed_at = time.monotonic() + self.seconds, self.received

    def end_within(self, seconds: float) -> None:
        """Leave at most this many seconds for the rest."""
        until = time.monotonic() + seconds
        self._until = until if self._until is None else min(self._until, until)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the limits to responses awaited inside the block."""
        token = _limits.set(self)
        try:
            yield
        finally:
            _limits.reset(token)


_limits: ContextVar[ResponseLimits | None] = ContextVar("voxframe_response_limits", default=None)


def is_limited() -> bool:
    """Return True in the context of a request of voxframe, see `ResponseLimits.applied`."""
    return _limits.get() is not None


class LimitedAdapter(HTTPAdapter):
    """A `requests` adapter that applies the `ResponseLimits` of the context, with or without a proxy."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Create connection pools with limited responses."""
        super().init_poolmanager(*args, **kwargs)
        _limit(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> PoolManager:
        """Return the pools of a proxy, with limited responses."""
        exists = proxy in self.proxy_manager
        manager: PoolManager = super().proxy_manager_for(proxy, **kwargs)
        if not exists:
            _limit(manager)
        return manager


class _LimitedSocket(io.RawIOBase):
    """Reads from a socket within the limits."""

    def __init__(self, file: io.RawIOBase, sock: socket.socket, limits: ResponseLimits) -> None:
        self._file, self._sock, self._limits = file, sock, limits
        self._idle_s = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._limits.left_s()
        last = left_s is not None and (self._idle_s is None or left_s < self._idle_s)
        if last:
            self._sock.settimeout(left_s)
        try:
            count = self._file.readinto(buffer)
        except TimeoutError:
            if last:
                raise TooSlow from None
            raise
        finally:
            if last:  # the next request on this connection has its own timeout
                self._sock.settimeout(self._idle_s)
        if count:
            self._limits.add(count)
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _LimitedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        limits = _limits.get()
        if limits is not None:
            limits.start()
            self.fp = io.BufferedReader(_LimitedSocket(self.fp.detach(), sock, limits))


def _limit(manager: PoolManager) -> None:
    """Make the pools of a manager use connections with limited responses."""
    manager.pool_classes_by_scheme = {
        scheme: _limited_pool(pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }


def _limited_pool(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    connection = type("LimitedConnection", (pool.ConnectionCls,), {"response_class": _LimitedResponse})
    return type("LimitedPool", (pool,), {"ConnectionCls": connection})


def read_content(response: requests.Response, limits: ResponseLimits) -> bytes:
    """Read a body. For an error, the part that arrives soon is enough."""
    is_error = response.status_code >= 300
    if is_error:
        limits.end_within(_ERROR_SECONDS)
    most_bytes = _ERROR_BYTES if is_error else limits.most_bytes
    content = bytearray()  # not a list of chunks, because each may be a single byte
    try:
        for chunk in response.iter_content(_CHUNK_BYTES):
            check_wanted()
            content += chunk
            if len(content) > most_bytes:
                break
    except (requests.RequestException, TooLarge):
        if not is_error:
            raise
    if len(content) > most_bytes and not is_error:
        raise TooLarge
    return bytes(content)


class Download:
    """A response with an unread body.

    Args:
        response: The response.
        path: As below.
        read: Reads the body of an error response.

    Attributes:
        status: HTTP status code.
        headers: Headers, with lower-case names.
        path: Path of the request, without the query, which may contain a signature.
    """

    def __init__(self, response: requests.Response, path: str, read: Callable[[], HTTPResponse]) -> None:
        self._response, self._read = response, read
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.path = path

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the body in chunks of at most `size` bytes."""
        yield from self._response.iter_content(size)

    def unreadable(self, reason: str) -> UnreadableAnswerError:
        """Return the error for a file that cannot be used."""
        return UnreadableAnswerError(
            f"the file cannot be read: {reason}. Download it again", status=self.status, method="GET", path=self.path
        )

    def error(self) -> APIError:
        """Return the error for this response."""
        return self._read().error()
