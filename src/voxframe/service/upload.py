"""Audio on its way to the service: what may be given, and a stream of its bytes with progress."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeAlias

from voxframe.errors import (
    AudioError,
    AudioNotFoundError,
    OptionError,
    ServerError,
    ServiceTimeoutError,
    ServiceUnreachableError,
)
from voxframe.options import check_address
from voxframe.service.http import Transport
from voxframe.service.lenient import as_path, as_text
from voxframe.service.progress import Progress
from voxframe.service.threads import check_wanted

#: Audio or video: a path, its bytes, or a file opened for reading bytes.
Media: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"

CHUNK_BYTES = 256 * 1024
_TRIES = 3


class Recording:
    """A recording that can be sent.

    Args:
        media: Path, bytes or binary file.

    Attributes:
        label: What to call it.
        size: Its bytes; None where they cannot be counted beforehand.
        repeatable: Whether it can be sent from the start once more.

    Raises:
        AudioError: It does not exist, is a directory, is empty or cannot be read.
        OptionError: It is none of the above.
    """

    def __init__(self, media: Media) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._data = memoryview(b"")
        self._start = 0
        self._first = b""
        self.size: int | None
        self.repeatable = True
        if isinstance(media, bytes | bytearray | memoryview):
            self.label, self._data = "audio", memoryview(media).cast("B")
            self.size = len(self._data)
        elif isinstance(media, str | os.PathLike):
            self._path = as_path(media)
            self.label, self.size = self._path.name, _readable_size(self._path)
        elif hasattr(media, "read"):
            self._file, self.label = media, Path(str(getattr(media, "name", "audio"))).name
            self._measure_file()
        else:
            raise OptionError(
                f"audio is a {type(media).__name__}; give a path, bytes, a file opened with open(path, 'rb'), or an "
                "http or https address"
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
        except (AttributeError, OSError, ValueError):  # a pipe or a socket: only what it gives tells its size
            self.repeatable, self.size = False, None
        first = file.read(1 if self.repeatable else CHUNK_BYTES)
        if not isinstance(first, bytes | bytearray):
            raise OptionError(f"{self.label} gives text; open it for bytes: open(path, 'rb')")
        if self.repeatable:
            file.seek(self._start)
        else:
            self._first = bytes(first)
            self.size = None if first else 0

    def stream(self, progress: Progress) -> Stream:
        """Its bytes from the start, counted on `progress`."""
        if self._path is not None:
            try:
                return Stream(self._path.open("rb"), self.size, progress, self.label, own=True)
            except OSError as error:
                raise _unreadable(self._path, error) from None
        if self._file is None:
            return Stream(io.BytesIO(self._data), self.size, progress, self.label)
        if self.repeatable:
            self._file.seek(self._start)
        return Stream(self._file, self.size, progress, self.label, first=self._first)


class Stream:
    """Bytes for the body of a request.

    It has a length where that is known, which makes `requests` send it whole instead of in chunks of unknown number.
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
            self.len = size  # where requests looks for the length; `__len__` could not say "unknown"

    def close(self) -> None:
        """Close the file, where it was opened for this."""
        if self._own:
            self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read(CHUNK_BYTES):
            yield chunk

    def read(self, count: int = -1) -> bytes:
        """At most `count` bytes; at most as many as were promised in all.

        Raises:
            AudioError: The file ended early or can no longer be read.
            ServiceError: Nobody waits for the upload any more.
        """
        check_wanted()
        if count < 0:
            count = CHUNK_BYTES if self._left is None else self._left
        if self._left is not None:
            count = min(count, self._left)
        if count == 0:
            return b""
        try:
            chunk = self._first or self._file.read(count)
        except OSError as error:
            raise AudioError(
                f"{self._label} can no longer be read ({error.strerror or error}); upload it again"
            ) from None
        self._first = b""
        if self._left is not None:
            self._left -= len(chunk)
            if not chunk:
                raise AudioError(f"{self._label} became shorter while it was sent; upload it again when it is complete")
        self._progress.advance(len(chunk))
        return chunk


def send(http: Transport, recording: Recording, progress: Progress) -> str:
    """Send a recording and return its address at the service.

    An upload costs nothing and may be sent again. A service that refuses one early cuts the connection, and then nobody
    reads why; so it is asked something small in between, which fails with the reason where that is the key.

    Raises:
        AudioError: It can no longer be read.
        ServiceError: It could not be sent.
    """
    for left in range(_TRIES - 1 if recording.repeatable else 0, -1, -1):
        sent = progress.count
        try:
            answer = http.request("POST", "/v2/upload", body=lambda: recording.stream(progress))
        except (ServiceUnreachableError, ServiceTimeoutError, ServerError):
            http.request("GET", "/v2/transcript", params={"limit": 1})
            if not left:
                raise
            progress.advance(sent - progress.count)
        else:
            address = as_text(answer.data.get("upload_url"))
            if not address:
                raise answer.unreadable()
            return address
    raise AssertionError("the last try returns or raises")


def web_address(audio: object) -> str | None:
    """The address, where `audio` is one; None where it is audio itself or a path.

    Raises:
        OptionError: It is an address of another kind than http or https.
    """
    if not isinstance(audio, str):
        return None
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", audio)
    if scheme is None:
        return None
    if scheme[1].lower() not in ("http", "https"):
        raise OptionError(
            f"the service does not fetch {scheme[1]}:// addresses; give an http or https address, or the path of a file"
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
        hint = f"the directory {parent} does not exist" if not parent.exists() else f"nothing of that name in {parent}"
        raise AudioNotFoundError(f"there is no audio file {str(path)!r}: {hint}. Check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError | ValueError) -> AudioError:
    reason = getattr(error, "strerror", None) or str(error)
    return AudioError(f"{str(path)!r} cannot be read: {reason}. Check its permissions")
