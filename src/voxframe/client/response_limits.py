"""Limits on the time and size of a response, checked whenever a part of its body arrives.

`requests` only limits the time between two bytes, so a server that sends a byte now and then would block a client for
long, and one that sends bytes without end would fill the memory. Of the headers, the standard library takes 100 lines
of 64 KiB, each byte within the read timeout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import requests
import urllib3

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
    """Limits of the body of one response.

    Args:
        renewed_by: Number of bytes that restarts the time, for a download of unknown length; None never restarts it.
    """

    def __init__(self, seconds: float, most_bytes: int, *, renewed_by: int | None = None) -> None:
        self.seconds, self.most_bytes, self.renewed_by = seconds, most_bytes, renewed_by
        self.received = 0

    def chunks(self, response: requests.Response, size: int) -> Iterator[bytes]:
        """Yield the body of a response as it arrives, in chunks of at most `size` bytes."""
        until, renewed_at = time.monotonic() + self.seconds, 0
        while chunk := response.raw.read1(size, decode_content=True):
            check_wanted()
            self.received += len(chunk)
            if self.received > self.most_bytes:
                raise TooLarge
            now = time.monotonic()
            if now > until:
                raise TooSlow
            if self.renewed_by is not None and self.received - renewed_at >= self.renewed_by:
                until, renewed_at = now + self.seconds, self.received
            yield chunk


def read_content(response: requests.Response, limits: ResponseLimits) -> bytes:
    """Read a body. For an error, the part that arrives soon is enough."""
    content = bytearray()  # not a list of chunks, because each may be a single byte
    if response.status_code < 300:
        for chunk in limits.chunks(response, _CHUNK_BYTES):
            content += chunk
        return bytes(content)
    few = ResponseLimits(min(limits.seconds, _ERROR_SECONDS), _ERROR_BYTES)
    try:
        for chunk in few.chunks(response, _CHUNK_BYTES):
            content += chunk
    except (urllib3.exceptions.HTTPError, TooSlow, TooLarge):
        pass
    return bytes(content)


class Download:
    """A response with an unread body."""

    def __init__(
        self, response: requests.Response, path: str, limits: ResponseLimits, read: Callable[[], HTTPResponse]
    ) -> None:
        self._response, self._limits, self._read = response, limits, read
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.path = path

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the body in chunks of at most `size` bytes."""
        return self._limits.chunks(self._response, size)

    def unreadable(self, reason: str) -> UnreadableAnswerError:
        """Return the error for a file that cannot be used."""
        return UnreadableAnswerError(
            f"the file cannot be read: {reason}. Download it again", status=self.status, method="GET", path=self.path
        )

    def error(self) -> APIError:
        """Return the error for this response."""
        return self._read().error()
