"""A file from the service to disk: in pieces, with progress, going on where it broke off."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from voxframe.errors import (
    APIError,
    NotFoundError,
    ServerError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
)
from voxframe.service.http import Download, Transport
from voxframe.service.progress import Progress
from voxframe.service.retry import backoff
from voxframe.service.threads import check_wanted

_TRIES_WITHOUT_PROGRESS = 5
#: What a cut connection loses at most of what came.
_CHUNK_BYTES = 64 * 1024


@dataclass
class _Part:
    """The beginning of a file, and what says whether it belongs to the same file as the rest."""

    path: Path
    size: int = 0
    validator: str = ""

    @property
    def _note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def recall(self) -> None:
        """Take up what an earlier process left, where the rest can be checked to belong to it."""
        with suppress(OSError, ValueError, AttributeError):
            self.validator = str(json.loads(self._note.read_text()).get("validator") or "")
            self.size = self.path.stat().st_size if self.validator else 0

    def begin(self, validator: str) -> None:
        """Start anew."""
        self.path.write_bytes(b"")
        self.size, self.validator = 0, validator
        self._note.write_text(json.dumps({"validator": validator}))

    def finish(self, target: Path) -> None:
        """Put the whole file in its place."""
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())
        self.path.replace(target)
        self._note.unlink(missing_ok=True)


def download(http: Transport, url: str, target: Path, progress: Progress) -> None:
    """Write what is at an address to a file. The file appears whole or not at all.

    Args:
        http: How requests are made. The key goes along only where the address is the service's own.
        url: A time-limited address.
        target: The file.
        progress: Told of every piece.

    Raises:
        NotFoundError: The address has expired, or there is nothing.
        ServiceError: It could not be fetched.
    """
    name = hashlib.sha256(urlsplit(url).path.encode()).hexdigest()[:8]
    part = _Part(target.with_name(f".{target.name}.{name}.part"))
    part.recall()
    failures = 0
    while True:
        before = part.size
        try:
            if _more(http, url, part, progress):
                part.finish(target)
                return
        except (ServiceUnreachableError, ServiceTimeoutError, ServerError):
            failures = 1 if part.size > before else failures + 1
            if failures >= _TRIES_WITHOUT_PROGRESS:
                raise
            http.sleep(backoff(failures))


def _more(http: Transport, url: str, part: _Part, progress: Progress) -> bool:
    """Ask for the rest of the file and append it; True where it is complete."""
    headers = {"Accept-Encoding": "identity"}  # a range counts bytes as they are sent
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if part.validator:
            headers["If-Range"] = part.validator
    with http.download(url, headers) as answer:
        if answer.status == 416:  # nothing is left, or it is another file than before
            if _total(answer) == part.size > 0:
                return True
            part.begin("")
            return False
        if answer.status >= 300:
            raise _refusal(answer)
        begins = _range_start(answer) if answer.status == 206 else 0
        if part.size == 0 or begins != part.size:
            if begins:
                part.begin("")
                return False
            part.begin(_validator(answer))
        progress.advance(part.size - progress.count)
        total = _total(answer)
        with part.path.open("ab") as file:
            for chunk in answer.chunks(_CHUNK_BYTES):
                check_wanted()
                file.write(chunk)
                part.size += len(chunk)
                progress.advance(len(chunk))
    if total is not None and part.size < total:
        raise ServiceUnreachableError("the connection was cut before the whole file came; ask for it again")
    return True


def refuse_expired(url: str) -> None:
    """Raise where the address says of itself that its time is over.

    Raises:
        NotFoundError: It has expired.
        ServiceError: It is no web address.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ServiceError("the service gave an address that is neither http nor https; it is not fetched")
    until = parse_qs(parts.query).get("Expires", [""])[0]
    if until.isdigit() and int(until) < time.time():
        raise NotFoundError(_EXPIRED, status=410, method="GET", path=parts.path)


_EXPIRED = "the address of the file has expired. Ask for a new one with client.redacted_audio(id)"


def _refusal(answer: Download) -> APIError:
    if answer.status in (400, 401, 403, 404, 410):  # what storage says of a signature whose time is over
        return NotFoundError(_EXPIRED, status=answer.status, method="GET", path=answer.path)
    return answer.error()


def _validator(answer: Download) -> str:
    """What tells this file from another at the same address: a strong tag, else the time it was changed."""
    tag = answer.headers.get("etag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("last-modified", "")


def _range_start(answer: Download) -> int:
    found = re.match(r"bytes (\d+)-", answer.headers.get("content-range", ""))
    return int(found[1]) if found else -1


def _total(answer: Download) -> int | None:
    found = re.search(r"/(\d+)$", answer.headers.get("content-range", ""))
    if found:
        return int(found[1])
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdigit() and answer.status == 200 else None
