"""What went wrong on the way to the service, as voxframe's errors."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from voxframe.errors import ServiceError, ServiceTimeoutError, ServiceUnreachableError, VoxframeError
from voxframe.service import embedded
from voxframe.service.answer import clean

#: What to say where the embedded service that this process started is there no more.
EMBEDDED_ENDED = "the embedded service has ended"
CONNECT_AGAIN = "Call connect() again: it starts it anew, and jobs that were under way go on"


def from_requests(
    error: requests.RequestException | ValueError, method: str, path: str, base_url: str, read_timeout_s: float
) -> VoxframeError:
    """The error for a request that got no answer.

    `may_have_arrived` is False only where no connection was made, so nothing can have been acted on.
    """
    causes = list(_chain(error))
    ours = next((cause for cause in causes if isinstance(cause, VoxframeError)), None)
    if ours is not None:  # raised while the body was read, such as a file that changed under the upload
        return ours
    host = urlsplit(base_url).netloc
    where = f"({method} {path})"
    if isinstance(error, requests.exceptions.SSLError):
        reason = next((getattr(c, "verify_message", "") for c in causes if getattr(c, "verify_message", "")), "")
        return _unsent(
            f"no secure connection to {host}: {reason or 'the handshake failed'} {where}. Check base_url and "
            "the machine's certificates"
        )
    if isinstance(
        error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema
    ):
        return _unsent(f"{base_url} cannot be used as an address {where}. Check base_url")
    if any(isinstance(c, urllib3.exceptions.NameResolutionError | socket.gaierror) for c in causes):
        return _unsent(f"the host {host} is not known {where}. Check base_url and the network")
    if isinstance(error, requests.ConnectTimeout):
        return _unsent(f"no connection to {host}: it did not answer in time {where}. Check base_url and the network")
    if isinstance(error, requests.exceptions.ProxyError):
        return _unsent(
            f"no connection to {host} through the proxy that is configured {where}. Check HTTPS_PROXY and NO_PROXY"
        )
    if isinstance(error, requests.ConnectionError) and embedded.has_ended(base_url):
        ended = ServiceUnreachableError(f"no connection to {host}: {EMBEDDED_ENDED} {where}. {CONNECT_AGAIN}")
        ended.may_have_arrived = not any(isinstance(c, urllib3.exceptions.NewConnectionError) for c in causes)
        return ended
    if any(isinstance(c, urllib3.exceptions.NewConnectionError) for c in causes):
        refused = any(getattr(c, "errno", None) == errno.ECONNREFUSED for c in causes)
        reason = "connection refused" if refused else "the network gives no way there"
        return _unsent(f"no connection to {host}: {reason} {where}. Check base_url and that the service runs")
    if isinstance(error, requests.Timeout) or any(isinstance(c, TimeoutError) for c in causes):
        return ServiceTimeoutError(f"no answer from {host} within {read_timeout_s:g} s {where}. Try again later")
    if isinstance(
        error,
        requests.ConnectionError | requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError,
    ):
        return ServiceUnreachableError(
            f"the connection to {host} was cut before the whole answer came {where}. Try again"
        )
    if not isinstance(error, requests.RequestException):
        return ServiceError(
            f"the answer of {host} cannot be followed: {clean(str(error), 100)} {where}. Check base_url"
        )
    return ServiceError(f"the request to {host} failed: {type(error).__name__} {where}")


def _unsent(message: str) -> ServiceUnreachableError:
    error = ServiceUnreachableError(message)
    error.may_have_arrived = False
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it wraps, by cause, by context, or as an argument."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
