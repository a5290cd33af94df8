"""Fetches the media that `audio_url` names: http and https only, from public or allowed addresses, within bounds."""

from __future__ import annotations

import http.client
import os
import socket
import time
from pathlib import Path
from urllib.parse import urljoin

from voxframe.local.addresses import NotAllowedError
from voxframe.local.failed import JobFailed
from voxframe.local.pinned import connection, request_target
from voxframe.local.places import sync_folder

#: Largest file that is fetched, in bytes.
MAX_BYTES = 5 * 10**9
#: Longest time a download may take, and longest silence within it, in seconds.
MAX_SECONDS, MAX_SILENCE = 3600.0, 30.0
_REDIRECTS = 5
_CHUNK = 1 << 18


class _Refused(Exception):  # noqa: N818 - never leaves this file
    """Why the media cannot be had; goes behind the interface's own sentence."""


def fetch(url: str, target: Path, allowed_origins: frozenset[str] = frozenset(), *, max_bytes: int = MAX_BYTES) -> None:
    """Download `url` to `target`, which is there only when it is complete.

    Args:
        url: Address of the media.
        target: File to write; its folder exists.
        allowed_origins: Origins that may be fetched from wherever they resolve to, as `addresses.origin` spells them.
        max_bytes: Largest file, in bytes.

    Raises:
        JobFailed: The media cannot be had; the reason is the interface's text, and why.
    """
    part = target.with_name(target.name + ".part")
    try:
        _download(url, part, allowed_origins, max_bytes)
        part.replace(target)
        sync_folder(target.parent)
    except (_Refused, NotAllowedError) as refused:
        raise JobFailed(_sentence(url, str(refused))) from None
    except TimeoutError:
        raise JobFailed(_sentence(url, f"the server said nothing for {MAX_SILENCE:.0f} s")) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise JobFailed(_sentence(url, str(reason))) from error
    finally:
        part.unlink(missing_ok=True)


def _sentence(url: str, reason: str) -> str:
    return (
        f"Download error, unable to download {url}. Please make sure the file exists and is accessible "
        f"from the internet. ({reason})"
    )


def _download(url: str, part: Path, allowed_origins: frozenset[str], max_bytes: int) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    for _ in range(_REDIRECTS + 1):
        server = _connect(url, allowed_origins)
        try:
            # The file as it is: a compressed answer could unfold without bound.
            headers = {"User-Agent": "voxframe", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
            server.request("GET", request_target(url), headers=headers)
            answer = server.getresponse()
            if answer.status in (301, 302, 303, 307, 308):
                url = urljoin(url, answer.headers.get("Location", ""))
                continue
            if not 200 <= answer.status < 300:
                raise _Refused(f"the server answered {answer.status} {answer.reason}".rstrip())
            _save(answer, part, deadline, max_bytes)
            return
        finally:
            server.close()
    raise _Refused(f"more than {_REDIRECTS} redirects")


def _connect(url: str, allowed_origins: frozenset[str]) -> http.client.HTTPConnection:
    try:
        return connection(url, allowed_origins, MAX_SILENCE)
    except socket.gaierror:
        raise _Refused("its host is not known") from None
    except ValueError:
        raise _Refused("it leads to something that is no http or https address") from None


def _save(answer: http.client.HTTPResponse, part: Path, deadline: float, max_bytes: int) -> None:
    too_large = _Refused(f"it is larger than {max_bytes / 1e9:g} GB")
    if answer.length is not None and answer.length > max_bytes:
        raise too_large
    expected = answer.length
    size = 0
    with part.open("wb") as file:
        while chunk := answer.read1(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise too_large
            if time.monotonic() > deadline:
                raise _Refused(f"it took longer than {MAX_SECONDS / 60:.0f} minutes")
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if expected is not None and size < expected:
        raise _Refused(f"the connection ended after {size} of {expected} bytes")
