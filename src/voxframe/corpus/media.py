"""The media of a submission: what it is whatever its name, how long it lasts, and its bytes when they are sent."""

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

from voxframe.corpus.addresses import canonical, is_address, is_remote
from voxframe.corpus.ledger import Ledger
from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError
from voxframe.options import check_address

T = TypeVar("T")

_CHUNK_BYTES = 1 << 20
#: A file that was changed so short a time ago may change once more without its time of change showing it.
_RACY_NS = 2_000_000_000
#: Files that were read are remembered on the disk after so many seconds at the latest, should the process end.
_WRITE_S = 3.0


@dataclass(frozen=True)
class Media:
    """What a recording is.

    Attributes:
        identity: "sha256:" and the hash of its bytes, or its address.
        signature: What changes when the file does; empty for an address.
        audio_duration_s: Duration in seconds, where it is known.
    """

    identity: str
    signature: str
    audio_duration_s: float | None = None


class Files(Protocol):
    """What is remembered of files that were read, as far as `identify` needs it; a ledger is one."""

    def file(self, place: str) -> tuple[str, str, float | None] | None:
        """Signature, hash and duration in seconds of a file; None where it was not read before."""

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Remember files, by their path or address."""


class ManyFiles:
    """The same for many files: read from the ledger once, written to it in batches. Used from several threads.

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
        """Signature, hash and duration in seconds of a file; None where it was not read before."""
        return self._known.get(place)

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Remember files, by their path or address."""
        with self._lock:
            self._new |= files
            late = time.monotonic() - self._written > _WRITE_S
        if late:
            self.write()

    def write(self) -> None:
        """Put what is new into the ledger."""
        with self._lock:
            new, self._new = self._new, {}
            self._written = time.monotonic()
        self._ledger.keep_files(new)


def identify(source: str, files: Files, *, measure: bool = False) -> Media:
    """Find out what a recording is.

    A file is read from end to end the first time, and not again until its size or its time of change differ.

    Args:
        source: Path or address.
        files: Files that were read before.
        measure: Whether to find its duration, too.

    Raises:
        AudioError: It cannot be read.
        OptionError: It is no address that a service could fetch.
        MissingExtraError: It is in a store that needs one.
    """
    if is_address(source):
        return Media(canonical(check_address(source)), "")
    before = signature(source)
    place = source if is_remote(source) else str(Path(source).absolute())
    place = place.encode("utf-8", "backslashreplace").decode()
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
    """The bytes of a file, opened for reading.

    Raises:
        AudioError: It cannot be read.
        MissingExtraError: It is in a store that needs one.
    """
    return reading(source, lambda: _open(source))


def signature(source: str) -> str:
    """What changes when a file does.

    Raises:
        AudioError: There is no such file, or it is a directory, a pipe or empty.
    """
    if is_remote(source):
        system, path = filesystem(source)
        return str(reading(source, lambda: system.ukey(path)))
    found = reading(source, lambda: Path(source).stat())
    if Path(source).is_dir():
        raise AudioError(f"{source!r} is a directory; name one recording in it")
    if not Path(source).is_file():
        raise AudioError(f"{source!r} is no file but a pipe or a device; save the recording to a file first")
    if found.st_size == 0:
        raise AudioError(f"{source!r} is empty: there is no audio to send")
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def duration_s(source: str) -> float | None:
    """Duration of a file in seconds, from its header; None where it does not say, or PyAV is not installed."""
    if is_remote(source):
        return None
    if source.lower().endswith(".wav"):
        try:
            with wave.open(source, "rb") as sound:
                return sound.getnframes() / sound.getframerate()
        except (wave.Error, EOFError, ZeroDivisionError, OSError):
            pass  # another kind of WAV than plain PCM
    if find_spec("av") is None:
        return None
    import av

    try:
        # Playlists, which name other files and addresses to read, are not opened.
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
    """File system of an address such as s3://bucket/folder, and the path in it.

    Raises:
        AudioError: It cannot be reached.
        MissingExtraError: It needs one.
    """
    found: tuple[Any, str] = reading(source, lambda: _fsspec().url_to_fs(source))
    return found


def reading(source: str, work: Callable[[], T]) -> T:
    """The outcome of `work`, with errors that name the recording."""
    try:
        return work()
    except (AudioError, MissingExtraError):
        raise
    except FileNotFoundError:
        raise AudioNotFoundError(f"there is no file {source!r}; check its path") from None
    except IsADirectoryError:
        raise AudioError(f"{source!r} is a directory; name one recording in it") from None
    except Exception as e:
        if not isinstance(e, OSError | ImportError | ValueError) and not is_remote(source):
            raise  # of a store anything may come: it is not known, its library is missing or has errors of its own
        raise AudioError(f"{source!r} cannot be read: {getattr(e, 'strerror', None) or e}") from e


def _hash(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _is_settled(before: str) -> bool:
    """Whether a file, by its signature, was last changed long enough ago."""
    parts = before.split()
    return len(parts) != 3 or time.time_ns() - int(parts[1]) > _RACY_NS
