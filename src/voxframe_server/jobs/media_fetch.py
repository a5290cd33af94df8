"""Download of the media at `audio_url`, by http or https, from public or allowed addresses, with limits."""

from __future__ import annotations

import http.client
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

from voxframe._files import put_in_place
from voxframe._text import one_line
from voxframe_engine.errors import JobFailed
from voxframe_server.data_dir import is_disk_full, upload_id
from voxframe_server.jobs.ssrf_guard import NotAllowedError, connection, request_target, time_limit

#: Maximum size of a media file in bytes.
MAX_BYTES = 5 * 10**9
#: Maximum duration of a download, headers included, and of a pause within it, in seconds.
MAX_SECONDS, MAX_SILENCE = 3600.0, 30.0
_REDIRECTS = 5
_CHUNK = 1 << 18
_REPORT_SECONDS = 1.0
_NO_UPLOAD = "this server has no such upload: it was deleted, or another key created it; upload the file again"


class _Refused(Exception):  # noqa: N818 - never leaves this file
    """A download that was refused or failed; the message is appended to the API's error text."""


def fetch(
    url: str,
    target: Path,
    allowed_origins: frozenset[str] = frozenset(),
    *,
    max_bytes: int = MAX_BYTES,
    progress: Callable[[int, int | None], None] = lambda _size, _total: None,
) -> None:
    """Download `url` to `target`, which exists only when the download is complete.

    Args:
        progress: Called about once a second with the number of bytes received, and the total number if known.
    """
    part = target.with_name(target.name + ".part")
    try:
        _download(url, part, allowed_origins, max_bytes, progress)
        put_in_place(part, target)
    except (_Refused, NotAllowedError) as refused:
        is_upload = isinstance(refused, NotAllowedError) and upload_id(url) is not None
        raise JobFailed(_error_text(url, _NO_UPLOAD if is_upload else str(refused))) from None
    except TimeoutError:
        raise JobFailed(_error_text(url, f"the server sent nothing for {MAX_SILENCE:.0f} s")) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if is_disk_full(error):
            raise  # not a fault of the remote server
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise JobFailed(_error_text(url, str(reason))) from error
    finally:
        part.unlink(missing_ok=True)


def _error_text(url: str, reason: str) -> str:
    return (
        f"Download error, unable to download {url}. Please make sure the file exists and is accessible "
        f"from the internet. ({reason})"
    )


def _download(
    url: str, part: Path, allowed_origins: frozenset[str], max_bytes: int, progress: Callable[[int, int | None], None]
) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    for _ in range(_REDIRECTS + 1):
        server = _connect(url, allowed_origins)
        try:
            # Uncompressed, because a compressed response could expand without limit.
            headers = {"User-Agent": "voxframe", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
            with _response(server, request_target(url), headers, deadline) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                if not 200 <= response.status < 300:
                    raise _Refused(one_line(f"the server returned {response.status} {response.reason}"))
                _save(response, part, deadline, max_bytes, progress)
                return
        finally:
            server.close()
    raise _Refused(f"more than {_REDIRECTS} redirects")


def _connect(url: str, allowed_origins: frozenset[str]) -> http.client.HTTPConnection:
    try:
        return connection(url, allowed_origins, MAX_SILENCE)
    except (socket.gaierror, UnicodeError):  # UnicodeError: no host can have this name
        raise _Refused("its host is unknown") from None
    except ValueError:
        raise _Refused("it redirects to a URL that is not http or https, or has an invalid port") from None


def _response(
    server: http.client.HTTPConnection, target: str, headers: dict[str, str], deadline: float
) -> http.client.HTTPResponse:
    """Send the request and return the response, if its headers arrive before the deadline."""
    response = None
    with time_limit(server, max(0.0, deadline - time.monotonic())) as expired:
        try:
            server.request("GET", target, headers=headers)
            response = server.getresponse()
        except (OSError, http.client.HTTPException):
            if not expired.is_set():
                raise
    if response is None or expired.is_set():  # also without an error: http.client accepts truncated headers
        if response is not None:
            response.close()
        raise _Refused(f"its headers took longer than {MAX_SECONDS / 60:.0f} minutes")
    return response


def _save(
    response: http.client.HTTPResponse,
    part: Path,
    deadline: float,
    max_bytes: int,
    progress: Callable[[int, int | None], None],
) -> None:
    too_large = _Refused(f"it is larger than {max_bytes / 1e9:g} GB")
    if response.length is not None and response.length > max_bytes:
        raise too_large
    expected = response.length
    size, reported = 0, float("-inf")
    with part.open("wb") as file:
        while chunk := response.read1(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise too_large
            now = time.monotonic()
            if now > deadline:
                of = f" of {expected}" if expected is not None else ""
                raise _Refused(
                    f"it took longer than {MAX_SECONDS / 60:.0f} minutes; {size}{of} bytes arrived in that time"
                )
            file.write(chunk)
            if now >= reported + _REPORT_SECONDS:
                reported = now
                progress(size, expected)
        file.flush()
        os.fsync(file.fileno())
    if expected is not None and size < expected:
        raise _Refused(f"the connection ended after {size} of {expected} bytes")
