"""Redacted audio: wait for the copy of a recording in which personal information is beeped out, and download it.

An interrupted download resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from urllib.parse import parse_qs, urlsplit

from voxframe._files import put_in_place, sync
from voxframe._forwarding import forwarded
from voxframe._shared_files import file_lock
from voxframe.client import waiting
from voxframe.client.api import check_directory, transcript_path
from voxframe.client.async_bridge import check_wanted
from voxframe.client.failures import wait_after
from voxframe.client.http import Transport
from voxframe.client.progress import Progress
from voxframe.client.response import Download, HTTPResponse, ResponseLimits, TooLarge, as_path, as_text
from voxframe.errors import (
    APIError,
    BadRequestError,
    NotFoundError,
    OptionError,
    ServiceError,
    ServiceUnreachableError,
)
from voxframe.settings import is_loopback

#: Default limit of a download in GiB; ten hours of uncompressed stereo sound are 6.
MAX_GB = 20.0
_TRIES_WITHOUT_PROGRESS = 5
#: A download continues as long as at least `MIN_BYTES` arrive in `WINDOW_S` seconds.
MIN_BYTES, WINDOW_S = 64 * 1024, 60.0
#: A connection that delivers this much before it is lost is tried again.
_CHUNK_BYTES = 64 * 1024
_EXPIRED = "the URL of the file has expired. Request a new one with client.redacted_audio(id)"


@dataclass
class _Part:
    """The partial file, and the validator that tells if the rest belongs to the same version of the file."""

    path: Path
    size: int = 0
    validator: str = ""

    @property
    def _note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def recall(self) -> None:
        """Resume the file of an earlier process, if it has a validator."""
        with suppress(OSError, ValueError, AttributeError):
            self.validator = str(json.loads(self._note.read_text()).get("validator") or "")
            self.size = self.path.stat().st_size if self.validator else 0

    def begin(self, validator: str) -> None:
        """Start from the first byte."""
        self.path.write_bytes(b"")
        self.size, self.validator = 0, validator
        self._note.write_text(json.dumps({"validator": validator}))

    def finish(self, target: Path) -> None:
        """Move the complete file to its target."""
        sync(self.path)
        put_in_place(self.path, target)
        self._note.unlink(missing_ok=True)


def _download(http: Transport, url: str, target: Path, progress: Progress, max_bytes: int) -> None:
    """Download a URL to a file, which appears complete or not at all, also if several processes save it."""
    name = hashlib.sha256(urlsplit(url).path.encode()).hexdigest()[:8]
    part = _Part(target.with_name(f".{target.name}.{name}.part"))
    number = hashlib.sha256(os.fsencode(part.path.absolute())).hexdigest()[:32]
    # Not in the folder of the file, which may be on a network drive without locks.
    with file_lock(Path(gettempdir(), f"voxframe-{number}.lock")):
        part.recall()
        _complete(http, url, part, progress, max_bytes)
        part.finish(target)


def _complete(http: Transport, url: str, part: _Part, progress: Progress, max_bytes: int) -> None:
    """Request the rest of a file until it is complete."""
    failures, size = 0, part.size
    while True:
        try:
            if _more(http, url, part, progress, max_bytes):
                return
        except ServiceError as error:
            if part.size >= size + _CHUNK_BYTES:
                failures, size = 0, part.size
            wait_s = wait_after(error, failures, most=_TRIES_WITHOUT_PROGRESS)
            if wait_s is None:
                raise
            http.sleep(wait_s)
            failures += 1


def _more(http: Transport, url: str, part: _Part, progress: Progress, max_bytes: int) -> bool:
    """Request the rest of the file and append it; return True if the file is complete."""
    limits = ResponseLimits(WINDOW_S, max_bytes, renewed_by=MIN_BYTES)
    asked_from = part.size
    headers = {"Accept-Encoding": "identity"}  # a range counts bytes as they are sent
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if part.validator:
            headers["If-Range"] = part.validator
    with http.download(url, headers, limits) as response:
        if response.status == 416 and asked_from:  # nothing is left, or the file was replaced
            if _total(response) == part.size:
                return True
            part.begin("")
            return False
        if response.status >= 300:
            raise _refusal(response)
        begins = _range_start(response) if response.status == 206 else 0
        if part.size == 0 or begins != part.size:
            if begins:
                if not asked_from:  # the whole file was requested
                    raise response.unreadable(f"it begins at byte {begins} and not at 0")
                part.begin("")
                return False
            part.begin(_validator(response))
        progress.advance(part.size - progress.count)
        total = _total(response)
        if total is not None and total > max_bytes:
            raise TooLarge
        with part.path.open("ab") as file:
            for chunk in response.chunks(_CHUNK_BYTES):
                check_wanted()
                if part.size + len(chunk) > max_bytes:
                    raise TooLarge
                file.write(chunk)
                part.size += len(chunk)
                progress.advance(len(chunk))
    if total is not None and part.size < total:
        raise ServiceUnreachableError("the connection was lost before the file was complete; download it again")
    return True


def _refuse_expired(url: str) -> None:
    """Check the scheme and the expiry time of a URL before it is requested."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ServiceError("the service returned a URL that is neither http nor https; it is not fetched")
    until = parse_qs(parts.query).get("Expires", [""])[0]
    if _is_number(until) and int(until) < time.time():
        raise NotFoundError(_EXPIRED, status=410, method="GET", path=parts.path)


def _refusal(response: Download) -> APIError:
    if response.status in (400, 401, 403, 404, 410):  # responses of file storage to an expired signature
        return NotFoundError(_EXPIRED, status=response.status, method="GET", path=response.path)
    return response.error()


def _validator(response: Download) -> str:
    """Return a value that identifies this version of the file: a strong ETag, else the time of the last change."""
    tag = response.headers.get("etag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("last-modified", "")


def _range_start(response: Download) -> int:
    match = re.match(r"bytes ([0-9]{1,18})-", response.headers.get("content-range", ""))
    return int(match[1]) if match else -1


def _total(response: Download) -> int | None:
    match = re.search(r"/([0-9]{1,18})$", response.headers.get("content-range", ""))
    if match:
        return int(match[1])
    length = response.headers.get("content-length", "")
    return int(length) if _is_number(length) and response.status == 200 else None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,18}", text) is not None


@dataclass(frozen=True)
class RedactedAudio:
    """A redacted copy that is ready to download.

    Attributes:
        transcript_id: Transcript id.
        url: URL of the file, valid for a limited time. Anyone who knows it can download the file.
        status: "redacted_audio_ready", or another value of the service.
        raw: The response as received.
    """

    transcript_id: str
    url: str = field(repr=False)
    status: str | None
    raw: bytes = field(repr=False)
    _http: Transport = field(repr=False, compare=False)

    def save(
        self, path: str | os.PathLike[str] | None = None, *, progress: bool | None = None, max_gb: float = MAX_GB
    ) -> Path:
        """Download the file. An interrupted download is resumed, also by a later call.

        There is no time limit as long as at least 64 KiB arrive per minute.

        Args:
            path: File or directory. None (default): a file named after the transcript in the working directory.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.
            max_gb: Maximum size of the file in GiB.

        Returns:
            Path of the file.

        Raises:
            OptionError: The directory does not exist, or `max_gb` is not a positive number.
            NotFoundError: The URL has expired; request a new one with `Client.redacted_audio`.
            ResponseTooSlowError: Less than 64 KiB arrived in a minute. The next call resumes the download.
            ResponseTooLargeError: The file is larger than `max_gb`.
            ServiceError: The download failed.
        """
        if isinstance(max_gb, bool) or not isinstance(max_gb, int | float) or not 0 < max_gb < math.inf:
            raise OptionError(f"max_gb must be a number of gigabytes above 0, got {max_gb!r}")
        _refuse_expired(self.url)
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in self.transcript_id)
        suffix = Path(urlsplit(self.url).path).suffix.lower()
        named = f"{name}.redacted{suffix if suffix in ('.mp3', '.wav') else ''}"
        target = as_path("." if path is None else path)
        target = target / named if target.is_dir() else target
        check_directory(target)
        with Progress(f"downloading {target.name}", 0, show=progress) as bar:
            _download(self._http, self.url, target, bar, int(max_gb * 2**30))
        return target

    @forwarded(save)
    async def save_async(self, *args: Any, **options: Any) -> Path:
        """Async version of `save`."""
        return await self._http.workers.call(self.save, *args, **options)


def get(http: Transport, transcript_id: str, timeout: float | None, progress: bool | None) -> RedactedAudio:
    """Wait until the redacted audio of a transcript is ready."""
    answers: list[RedactedAudio] = []
    waiting.run(_steps(http, transcript_id, answers.append, timeout, progress), http.sleep)
    return answers[0]


async def get_async(
    http: Transport,
    transcript_id: str,
    timeout: float | None,
    progress: bool | None,
) -> RedactedAudio:
    """Async version of `get`."""
    answers: list[RedactedAudio] = []
    await waiting.run_async(_steps(http, transcript_id, answers.append, timeout, progress), http.workers)
    return answers[0]


def _steps(
    http: Transport,
    transcript_id: str,
    found: Callable[[RedactedAudio], object],
    timeout: float | None,
    progress: bool | None,
) -> waiting.Steps:
    """Poll until the redacted audio is ready, and pass it to `found`."""
    local = is_loopback(http.base_url)
    poll = waiting.PollState(timeout, local=local)
    path = f"{transcript_path(transcript_id)}/redacted-audio"
    responses: list[HTTPResponse] = []

    def ask() -> None:
        try:
            responses.append(http.request("GET", path, accept="text", attempts=1 if responses else None))
        except BadRequestError as error:
            error.add_note(
                "A job makes redacted audio if redact_pii=True and redact_pii_audio=True. The service keeps it for a "
                "limited time."
            )
            raise

    with Progress(f"redacting {transcript_id[:8]}", show=progress) as bar:
        yield ask
        while responses[-1].status == 202:
            message = f"the redacted audio of transcript {transcript_id} is not ready"
            yield poll.pause(waiting.interval(poll.waited_s, local=local), message)
            yield poll.tolerate(ask)
            bar.say("no response from the service" if poll.away else "")
    ready = responses[-1]
    url = as_text(ready.data.get("redacted_audio_url"))
    if not url:
        raise ready.unreadable()
    found(RedactedAudio(transcript_id, url, as_text(ready.data.get("status")), ready.content, http))
