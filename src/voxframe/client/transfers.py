"""Media on their way: upload a recording, and download its copy in which personal information is beeped out.

An interrupted download resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from voxframe._files import put_in_place, sync
from voxframe._forwarding import forwarded
from voxframe._progress import Progress
from voxframe._shared_files import file_lock
from voxframe.client.api import check_directory, transcript_path
from voxframe.client.async_bridge import PollState, Steps, check_wanted, run, run_async
from voxframe.client.http import Transport, wait_after
from voxframe.client.response import Download, HTTPResponse, ResponseLimits, TooLarge, as_path, as_text
from voxframe.errors import (
    APIError,
    AudioError,
    AudioNotFoundError,
    BadRequestError,
    NotFoundError,
    OptionError,
    ServiceError,
    ServiceUnreachableError,
)
from voxframe.options import check_address

#: Audio or video: a path, bytes, or a binary file.
Media: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"

CHUNK_BYTES = 256 * 1024
_TRIES = 3


class UploadSource:
    """A recording to upload.

    Attributes:
        repeatable: True if it can be sent again from the start.
    """

    def __init__(self, media: Media) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._data = memoryview(b"")
        self._start = 0
        self._first = b""
        self.path: str | None = None
        self.size: int | None
        self.repeatable = True
        if isinstance(media, bytes | bytearray | memoryview):
            view = memoryview(media)
            self.label, self._data = "audio", (view if view.c_contiguous else memoryview(view.tobytes())).cast("B")
            self.size = len(self._data)
        elif remote_url(media) is not None:
            raise OptionError("only local recordings are uploaded; give the URL to submit() or transcribe() instead")
        elif isinstance(media, str | os.PathLike):
            self._path, self.path = as_path(media), os.fspath(media)
            self.label, self.size = self._path.name, _readable_size(self._path)
        elif hasattr(media, "read"):
            self._file, self.label = media, Path(str(getattr(media, "name", "audio"))).name
            self._measure_file()
        else:
            raise OptionError(
                "audio must be a path, bytes, a file opened with open(path, 'rb'), or an http or https URL, "
                f"got {type(media).__name__}"
            )
        if self.size == 0:
            raise AudioError(f"{self.label} is empty: there is no audio to send")

    def _measure_file(self) -> None:
        file = self._file
        assert file is not None
        try:
            self._start = file.tell()
            self.size = file.seek(0, io.SEEK_END) - self._start
            file.seek(self._start)
        except (AttributeError, OSError, ValueError):  # a pipe or a socket, of unknown size
            self.repeatable, self.size = False, None
        try:
            first = file.read(1 if self.repeatable else CHUNK_BYTES)
        except (OSError, ValueError) as error:  # ValueError: it is closed
            raise AudioError(
                f"{self.label} cannot be read: {error}. Open it with open(path, 'rb'), and close it after the upload"
            ) from None
        if not isinstance(first, bytes | bytearray):
            raise OptionError(f"{self.label} is a text file; open it in binary mode: open(path, 'rb')")
        if self.repeatable:
            file.seek(self._start)
        else:
            self._first = bytes(first)
            self.size = None if first else 0

    def stream(self, progress: Progress) -> UploadBody:
        """Return its bytes from the start; reading them advances `progress`."""
        if self._path is not None:
            try:
                return UploadBody(self._path.open("rb"), self.size, progress, self.label, own=True)
            except OSError as error:
                raise _unreadable(self._path, error) from None
        if self._file is None:
            return UploadBody(io.BytesIO(self._data), self.size, progress, self.label)
        if self.repeatable:
            self._file.seek(self._start)
        return UploadBody(self._file, self.size, progress, self.label, first=self._first)


class UploadBody:
    """The body of an upload request.

    If the size is known, `requests` sends it as Content-Length; otherwise it sends chunks.
    """

    def __init__(
        self,
        file: IO[bytes],
        size: int | None,
        progress: Progress,
        label: str,
        *,
        first: bytes = b"",
        own: bool = False,
    ) -> None:
        self._file, self._progress, self._label, self._first, self._own = file, progress, label, first, own
        self._left = size
        if size is not None:
            self.len = size  # read by requests; unlike `__len__`, it may be missing

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._own:
            self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read(CHUNK_BYTES):
            yield chunk

    def read(self, count: int = -1) -> bytes:
        """Return at most `count` bytes, and never more than the announced size."""
        check_wanted()
        if count < 0:
            count = CHUNK_BYTES if self._left is None else self._left
        if self._left is not None:
            count = min(count, self._left)
        if count == 0:
            return b""
        try:
            chunk = self._first or self._file.read(count)
        except (OSError, ValueError) as error:  # ValueError: it was closed
            reason = getattr(error, "strerror", None) or error
            raise AudioError(f"{self._label} can no longer be read ({reason}); upload it again") from None
        self._first = b""
        if self._left is not None:
            self._left -= len(chunk)
            if not chunk:
                raise AudioError(f"{self._label} became shorter during the upload; upload it again when it is complete")
        self._progress.advance(len(chunk))
        return chunk


def upload(http: Transport, recording: UploadSource, progress: bool | None) -> str:
    """Upload a recording with a progress bar and return its URL at the service."""
    with Progress(f"uploading {recording.label}", recording.size or 0, show=progress) as bar:
        return send(http, recording, bar)


def send(http: Transport, recording: UploadSource, progress: Progress) -> str:
    """Send a recording and return its URL at the service.

    An upload is free and can be repeated. A service that refuses an upload early closes the connection, so the client
    never reads why. A small request after such a failure raises an error with the reason, for example an invalid key.
    """
    sent, failures = progress.count, 0

    def body() -> UploadBody:
        progress.advance(sent - progress.count)
        return recording.stream(progress)

    while True:
        try:
            response = http.request("POST", "/v2/upload", body=body, attempts=None if recording.repeatable else 1)
        except ServiceError as error:
            if error.transient:
                http.request("GET", "/v2/transcript", params={"limit": 1})
            wait_s = wait_after(error, failures, most=_TRIES if recording.repeatable else 1)
            if wait_s is None:
                raise
            http.sleep(wait_s)
            failures += 1
        else:
            url = as_text(response.data.get("upload_url"))
            if not url:
                raise response.unreadable()
            return url


def remote_url(audio: object) -> str | None:
    """Return `audio` if it is an http or https URL, and None if it is a path or media."""
    if not isinstance(audio, str):
        return None
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", audio)
    if scheme is None:
        return None
    if scheme[1].lower() not in ("http", "https"):
        raise OptionError(
            f"the service does not fetch {scheme[1]}:// URLs; give an http or https URL, or the path of a file"
        )
    return check_address(audio)


def _readable_size(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size
    except IsADirectoryError:
        raise AudioError(f"{path} is a directory; give one audio file, or submit the files in it one by one") from None
    except FileNotFoundError:
        parent = path.absolute().parent
        hint = f"the directory {parent} does not exist" if not parent.exists() else f"there is no such file in {parent}"
        raise AudioNotFoundError(f"there is no audio file {str(path)!r}: {hint}. Check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError | ValueError) -> AudioError:
    reason = getattr(error, "strerror", None) or str(error)
    return AudioError(f"{str(path)!r} cannot be read: {reason}. Check its permissions")


#: Default limit of a download in GiB; ten hours of uncompressed stereo sound are 6.
MAX_GB = 20.0
_TRIES_WITHOUT_PROGRESS = 5
#: A download continues as long as at least `MIN_BYTES` arrive in `WINDOW_S` seconds.
MIN_BYTES, WINDOW_S = 64 * 1024, 60.0
#: A connection that delivers this much before it is lost is tried again.
_PART_BYTES = 64 * 1024
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
            if part.size >= size + _PART_BYTES:
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
            for chunk in response.chunks(_PART_BYTES):
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


def redacted_audio(http: Transport, transcript_id: str, timeout: float | None, progress: bool | None) -> RedactedAudio:
    """Wait until the redacted audio of a transcript is ready."""
    answers: list[RedactedAudio] = []
    run(_steps(http, transcript_id, answers.append, timeout, progress), http.sleep)
    return answers[0]


async def redacted_audio_async(
    http: Transport,
    transcript_id: str,
    timeout: float | None,
    progress: bool | None,
) -> RedactedAudio:
    """Async version of `redacted_audio`."""
    answers: list[RedactedAudio] = []
    await run_async(_steps(http, transcript_id, answers.append, timeout, progress), http.workers)
    return answers[0]


def _steps(
    http: Transport,
    transcript_id: str,
    found: Callable[[RedactedAudio], object],
    timeout: float | None,
    progress: bool | None,
) -> Steps:
    """Poll until the redacted audio is ready, and pass it to `found`."""
    poll = PollState(timeout, local=http.is_local)
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
            yield poll.pause(f"the redacted audio of transcript {transcript_id} is not ready")
            yield poll.tolerate(ask)
            bar.say("no response from the service" if poll.away else "")
    ready = responses[-1]
    url = as_text(ready.data.get("redacted_audio_url"))
    if not url:
        raise ready.unreadable()
    found(RedactedAudio(transcript_id, url, as_text(ready.data.get("status")), ready.content, http))
