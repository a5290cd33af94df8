"""An HTTP response of the service: its bytes, its JSON values, converted leniently, and the error for its status.

Its time and size are limited whenever a part of its body arrives: `requests` only limits the time between two bytes, so
a server that sends a byte now and then would block a client for long, and one that sends bytes without end would fill
the memory. Of the headers, the standard library takes 100 lines of 64 KiB, each byte within the read timeout.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import requests
import urllib3

from voxframe._text import masked
from voxframe.client.async_bridge import check_wanted
from voxframe.errors import (
    APIError,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    OptionError,
    RateLimitError,
    ServerError,
    UnreadableAnswerError,
)

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")


@dataclass(frozen=True)
class HTTPResponse:
    """A response of the service."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    method: str
    path: str

    @property
    def request_id(self) -> str | None:
        """Request id assigned by the service, or None."""
        request_id = next((self.headers[name] for name in _REQUEST_ID_HEADERS if self.headers.get(name)), None)
        return clean(request_id, 100) if request_id else None

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait before a retry. After a 429 without Retry-After: the end of the rate-limit window."""
        seconds = parse_retry_after(self.headers.get("retry-after"))
        if seconds is None and self.status == 429:
            return parse_retry_after(self.headers.get("x-ratelimit-reset"))
        return seconds

    @property
    def whole(self) -> bool:
        """True if the body looks like a complete JSON object or array."""
        body = self.content.removeprefix(b"\xef\xbb\xbf").strip()
        return (body[:1] + body[-1:]) in (b"{}", b"[]")

    @property
    def web_page(self) -> bool:
        """True if the body looks like HTML, such as a sign-in page."""
        return re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|html)\b", self.content, re.IGNORECASE) is not None

    @cached_property
    def data(self) -> dict[str, Any]:
        """The JSON object in the body."""
        try:
            data = parse_json(self.content)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise self.unreadable()
        return data

    def unreadable(self) -> UnreadableAnswerError:
        """Return the error for a body that does not match the API."""
        return UnreadableAnswerError(
            f"the response of the service cannot be read: {_describe(self, 'it lacks a field that it must have')}. "
            "Check that base_url is the URL of the API",
            **self._where,
        )

    @property
    def _where(self) -> dict[str, Any]:
        return {"status": self.status, "method": self.method, "path": self.path, "request_id": self.request_id}

    def error(self) -> APIError:
        """Return the error for the status of this response."""
        error = self._error()
        if error.transient:
            error.retry_after = self.retry_after_s
        return error

    def _error(self) -> APIError:
        words = self._words()
        if self.status in (401, 403):
            return AuthenticationError(
                f"{words}. Check the key: connect(api_key=...) or the variable VOXFRAME_API_KEY", **self._where
            )
        if self.status == 404 or (self.status == 400 and re.search(r"\bnot found\b", words, re.IGNORECASE)):
            return NotFoundError(f"{words}. Check the id, and that it was made with this key", **self._where)
        if self.status == 429:
            seconds = self.retry_after_s
            advice = f"Try again in {seconds:.0f} s" if seconds else "Try again later"
            return RateLimitError(f"{words}. {advice}", **self._where)
        if self.status >= 500:
            return ServerError(f"{words}. The service has a problem", **self._where)
        if 300 <= self.status < 400:
            target = clean(self.headers.get("location", "nowhere").partition("?")[0], 200)
            return APIError(
                f"the service redirects to {target}, and a {self.method} request is not sent twice. "
                "Set base_url to the URL it redirects to",
                **self._where,
            )
        if self.status == 408:  # also of a gateway; the slow service behind it may have processed the request
            slow = BadRequestError(words, **self._where)
            slow.possibly_delivered = True
            return slow
        if self.status == 413:
            return BadRequestError(f"{words}. The file is too large for the service", **self._where)
        return BadRequestError(words, **self._where)

    def _words(self) -> str:
        """Return the error message of the service, or a description of the response."""
        try:
            data = parse_json(self.content)
        except ValueError:
            data = None
        message = data.get("error") if isinstance(data, dict) else None
        if isinstance(message, str) and message.strip():
            return clean(message).rstrip(".")
        return f"{_MEANINGS.get(self.status, 'the request failed')}; {_describe(self, 'it has no error message')}"


_MEANINGS = {
    400: "invalid request",
    401: "missing or invalid key",
    403: "not allowed",
    404: "no such resource",
    405: "the service does not support this",
    408: "the request took too long",
    413: "too large",
    425: "too early",
    429: "too many requests",
    500: "internal server error",
    502: "bad gateway",
    503: "service unavailable",
    504: "gateway timeout",
}


def _describe(answer: HTTPResponse, if_json: str) -> str:
    """Return why the body of a response cannot be used; `if_json` if it is JSON."""
    body = answer.content.strip()
    if not body:
        return "it has no body"
    if body[:1] == b"<":
        title = re.search(rb"<title[^>]*>(.*?)</title", body[:20_000], re.IGNORECASE | re.DOTALL)
        named = f" titled {clean(title[1].decode('utf-8', 'replace'), 100)!r}" if title else ""
        return f"it is a web page{named}, not JSON"
    if body[:1] in b"{[":
        return f"its JSON is incomplete or invalid after {len(body)} bytes" if not _is_json(body) else if_json
    return f"it reads {clean(body[:400].decode('utf-8', 'replace'), 120)!r}"


def _is_json(body: bytes) -> bool:
    try:
        parse_json(body)
    except ValueError:
        return False
    return True


def clean(text: str, limit: int = 500) -> str:
    """Return text of the service on one line without control characters, for messages and terminals.

    Secrets in URLs are masked before a long text is cut, because a part of a URL may not be recognized.
    """
    text = masked(" ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return text if len(text) <= limit else text[: limit - 3] + "..."


def parse_json(content: bytes) -> Any:
    """Parse JSON bytes, tolerating a BOM, NaN and invalid UTF-8."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            return json.loads(content.decode("utf-8-sig", "replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def as_int(value: object) -> int | None:
    """Return a whole number, also from 42.0 or "42"; None for anything else."""
    number = as_float(value)
    return int(value) if isinstance(value, int) and number is not None else None if number is None else int(number)


def as_float(value: object) -> float | None:
    """Return a finite number, also from "0.5"; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_bool(value: object) -> bool | None:
    """Return True or False, also from "true" or "False"; None for anything else."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def as_text(value: object) -> str | None:
    """Return text, also from a number such as the speaker label 1; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_path(value: str | os.PathLike[str]) -> Path:
    """Return a path with `~` expanded, if the home directory is known."""
    if not isinstance(value, str | os.PathLike):
        raise OptionError(f"the path must be a str or a Path, got {type(value).__name__}")
    if not os.fspath(value):
        raise OptionError("the path is empty; give the path of a file")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return Path(value)


def is_unicode(text: str) -> bool:
    """Return True if the text can be encoded; half a surrogate pair cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def as_dict(value: object) -> dict[str, Any]:
    """Return the dict, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return the list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds in a Retry-After header, given as a number or a date; None if it is unusable.

    Example:
        >>> parse_retry_after("7")
        7.0
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


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
