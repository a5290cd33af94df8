"""Upload a recording: accepted kinds of media, and a stream of their bytes with progress."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeAlias

from voxframe.client.async_bridge import check_wanted
from voxframe.client.failures import wait_after
from voxframe.client.http import Transport
from voxframe.client.progress import Progress
from voxframe.client.response import as_path, as_text
from voxframe.errors import (
    AudioError,
    AudioNotFoundError,
    OptionError,
    ServiceError,
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
