"""Map errors of requests and urllib3 to voxframe errors."""

from __future__ import annotations

import errno
import http.client
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from voxframe.client import embedded
from voxframe.client.response import clean
from voxframe.client.response_limits import ResponseLimits, TooLarge, TooSlow
from voxframe.errors import (
    ResponseTooLargeError,
    ResponseTooSlowError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    VoxframeError,
)
from voxframe.settings import ENVIRONMENT

#: Reason and advice if the embedded server that this process started is no longer running.
EMBEDDED_ENDED = "the embedded server has ended"
CONNECT_AGAIN = "Call connect() to restart the server; jobs in progress resume"


def from_requests(
    error: requests.RequestException | TooLarge | ValueError,
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
    host = urlsplit(base_url).netloc
    request = f"({method} {path})"
    exceeded = next((cause for cause in causes if isinstance(cause, TooSlow | TooLarge)), None)
    if exceeded is not None:
        return _over_limit(limits, host, request, slow=isinstance(exceeded, TooSlow))
    if isinstance(error, requests.exceptions.SSLError):
        reason = next((getattr(c, "verify_message", "") for c in causes if getattr(c, "verify_message", "")), "")
        return _unsent(
            f"no secure connection to {host}: {reason or 'the handshake failed'} {request}. Check base_url and "
            "the machine's certificates"
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
        ended = ServiceUnreachableError(f"no connection to {host}: {EMBEDDED_ENDED} {request}. {CONNECT_AGAIN}")
        ended.possibly_delivered = not any(isinstance(c, urllib3.exceptions.NewConnectionError) for c in causes)
        return ended
    if any(isinstance(c, urllib3.exceptions.NewConnectionError) for c in causes):
        refused = any(getattr(c, "errno", None) == errno.ECONNREFUSED for c in causes)
        reason = "connection refused" if refused else "the network is unreachable"
        return _unsent(f"no connection to {host}: {reason} {request}. Check base_url and that the service is running")
    if isinstance(error, requests.Timeout) or any(isinstance(c, TimeoutError) for c in causes):
        return ServiceTimeoutError(f"no response from {host} within {read_timeout_s:g} s {request}")
    garbage = next((reason for cause in causes if (reason := _not_http(cause))), None)
    if garbage is not None:
        return ServiceUnreachableError(f"the response of {host} is not valid HTTP: {garbage} {request}. Check base_url")
    if isinstance(
        error,
        requests.ConnectionError | requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError,
    ):
        return ServiceUnreachableError(f"the connection to {host} was lost before the response was complete {request}")
    if not isinstance(error, requests.RequestException):
        return ServiceError(
            f"the redirect of {host} cannot be followed: {clean(str(error), 100)} {request}. Check base_url"
        )
    return ServiceError(f"the request to {host} failed: {type(error).__name__} {request}")


def advised(error: ServiceError, path: str, *, repeatable: bool) -> ServiceError:
    """Add to the message of an error if its request can be sent again, and return the error.

    Args:
        error: The error, after the last attempt.
        path: Path of the request.
        repeatable: True if sending the request twice is safe.
    """
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
    if isinstance(cause, urllib3.exceptions.InvalidChunkLength):
        return "its chunks are broken" if cause.length else None
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
            f"the response of {host} was not complete {limits.seconds:g} s after its first byte; {limits.received:,} "
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
    """Yield the error and all errors that it wraps as cause, context or argument."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
