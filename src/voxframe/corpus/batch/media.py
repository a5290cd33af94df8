"""Media files: content hash, duration and reading, from disk or from a store that fsspec supports."""

from __future__ import annotations

import hashlib
import threading
import time
import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from voxframe._text import storable
from voxframe.corpus.addresses import canonical, is_address, is_remote
from voxframe.corpus.ledger import Ledger
from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError
from voxframe.options import check_address

T = TypeVar("T")

_CHUNK_BYTES = 1 << 20
#: A file whose inode changed less than this long ago may change again within the same tick of the kernel's clock.
_TICK_NS = 20_000_000
#: A file that changed less than this long ago may change again without a new modification time.
_RACY_NS = 2_000_000_000
#: Maximum seconds between writes of file hashes to the ledger, in case the process ends.
_WRITE_S = 3.0


@dataclass(frozen=True)
class Media:
    """Identity of a recording.

    Attributes:
        identity: "sha256:" and the hash of the bytes, or the URL.
        signature: Text that changes when the file changes. Empty for a URL.
        audio_duration_s: Duration in seconds, if known.
    """

    identity: str
    signature: str
    audio_duration_s: float | None = None


#: Prefix of the identity of an unreadable file, followed by its path.
UNREADABLE = "unreadable:"


def unreadable(source: str) -> str:
    """Return the identity of a recording that cannot be read: its path, because its bytes are unknown."""
    return UNREADABLE + file_place(source)


class Files(Protocol):
    """Cache of file hashes, as `identify` needs it. A ledger is one."""

    def file(self, place: str) -> tuple[str, str, float | None] | None:
        """Return signature, hash and duration in seconds of a file. None if it was not read before."""

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Add files by path or URL."""


class ManyFiles:
    """Cache of file hashes that reads the ledger once and writes to it in batches. Thread-safe.

    Args:
        ledger: The ledger.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known = ledger.files()
        self._new: dict[str, tuple[str, str, float | None]] = {}
        self._written = time.monotonic()
        self._lock = threading.Lock()

    def file(self, place: str) -> tuple[str, str, float | None] | None:
        """Return signature, hash and duration in seconds of a file. None if it was not read before."""
        return self._known.get(place)

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Add files by path or URL."""
        with self._lock:
            self._new |= files
            late = time.monotonic() - self._written > _WRITE_S
        if late:
            self.write()

    def write(self) -> None:
        """Write new entries to the ledger."""
        with self._lock:
            new, self._new = self._new, {}
            self._written = time.monotonic()
        self._ledger.keep_files(new)


def identify(source: str, files: Files, *, measure: bool = False) -> Media:
    """Return the identity of a recording.

    A file is hashed once, and again only if its size or times change. The ctime is one of them, because no program can
    set it back.

    Args:
        source: Path or URL.
        files: Cache of file hashes.
        measure: Determine the duration, too.

    Raises:
        AudioError: The file cannot be read.
        OptionError: The URL cannot be fetched by a service.
        MissingExtraError: The store needs an extra that is not installed.
    """
    if is_address(source):
        return Media(canonical(check_address(source)), "")
    before = signature(source)
    place = file_place(source)
    known = files.file(place)
    if known is not None and known[0] != before:
        known = None
    if known is not None and (known[2] is not None or not measure):
        return Media(known[1], before, known[2])
    if known is not None:
        identity = known[1]
    else:
        with opened(source) as file:
            identity = reading(source, lambda: _hash(file))
    found = Media(identity, before, duration_s(source) if measure else None)
    if _is_settled(before) and (known is None or found.audio_duration_s is not None):
        files.keep_files({place: (before, identity, found.audio_duration_s)})
    return found


def opened(source: str) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        AudioError: The file cannot be read.
        MissingExtraError: The store needs an extra that is not installed.
    """
    return reading(source, lambda: _open(source))


def signature(source: str) -> str:
    """Return a text that changes when a file changes.

    Raises:
        AudioError: The file does not exist, is empty, or is a directory or a pipe.
    """
    if is_remote(source):
        system, path = filesystem(source)
        return str(reading(source, lambda: system.ukey(path)))
    found = reading(source, lambda: Path(source).stat())
    if Path(source).is_dir():
        raise AudioError(f"{source!r} is a directory; pass one recording in it")
    if not Path(source).is_file():
        raise AudioError(f"{source!r} is a pipe or a device; save the recording to a file first")
    if found.st_size == 0:
        raise AudioError(f"{source!r} is empty; there is no audio to send")
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino} {found.st_ctime_ns}"


def duration_s(source: str) -> float | None:
    """Return the duration in seconds from the header of a file. None if unknown, or if PyAV is not installed."""
    if is_remote(source):
        return None
    if source.lower().endswith(".wav"):
        try:
            with wave.open(source, "rb") as sound:
                return sound.getnframes() / sound.getframerate()
        except (wave.Error, EOFError, ZeroDivisionError, OSError):
            pass  # not plain PCM
    if find_spec("av") is None:
        return None
    import av

    try:
        # Playlists could name other files and URLs to read, so they are not opened.
        with av.open(source, options={"protocol_whitelist": "file"}) as container:
            return None if container.duration is None else container.duration / av.time_base
    except (av.FFmpegError, OSError, ValueError):
        return None


def _open(source: str) -> Any:
    if is_remote(source):
        return _fsspec().open(source, "rb").open()
    return Path(source).open("rb")


def _fsspec() -> Any:
    if find_spec("fsspec") is None:
        raise MissingExtraError("remote", "Reading recordings from a store such as s3://")
    import fsspec.core

    return fsspec.core


def filesystem(source: str) -> tuple[Any, str]:
    """Return the file system of a URL such as s3://bucket/folder, and the path in it.

    Raises:
        AudioError: It cannot be reached.
        MissingExtraError: The store needs an extra that is not installed.
    """
    found: tuple[Any, str] = reading(source, lambda: _fsspec().url_to_fs(source))
    return found


def reading(source: str, work: Callable[[], T]) -> T:
    """Call `work` and re-raise its errors with the name of the recording."""
    try:
        return work()
    except (AudioError, MissingExtraError):
        raise
    except FileNotFoundError:
        raise AudioNotFoundError(f"there is no file {source!r}; check its path") from None
    except IsADirectoryError:
        raise AudioError(f"{source!r} is a directory; pass one recording in it") from None
    except Exception as e:
        if not isinstance(e, OSError | ImportError | ValueError) and not is_remote(source):
            raise  # stores raise errors of their own libraries
        raise AudioError(f"{source!r} cannot be read: {getattr(e, 'strerror', None) or e}") from e


def file_place(source: str) -> str:
    """Return the key of a file in the cache of hashes: its URL or absolute path."""
    return storable(source if is_remote(source) else str(Path(source).absolute()))


def _hash(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _is_settled(before: str) -> bool:
    """Return True if a file, by its signature, last changed long enough ago."""
    parts = before.split()
    if len(parts) != 4:
        return True
    now_ns = time.time_ns()
    return now_ns - int(parts[1]) > _RACY_NS and now_ns - int(parts[3]) > _TICK_NS
