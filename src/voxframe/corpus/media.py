"""Recordings of a batch: what the sources stand for, and the hash and duration of files on disk or in a store."""

from __future__ import annotations

import glob
import hashlib
import os
import threading
import time
import wave
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote

import pandas as pd

from voxframe._arrow import takes_frames
from voxframe._text import storable
from voxframe.corpus.job import EXTENSIONS, canonical, checked_name, is_address, is_remote
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.metadata import check_columns
from voxframe.corpus.store import RACY_NS
from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError, OptionError
from voxframe.options import check_address
from voxframe.validators import shown

T = TypeVar("T")

#: One source: the path of a file or folder, a pattern (`*`, `?`, `[]`, `**`), or a URL.
OneSource: TypeAlias = "str | os.PathLike[str]"
#: One source, an iterable of sources, or a DataFrame with a column of them.
Recordings: TypeAlias = "OneSource | Iterable[OneSource] | pd.DataFrame"
#: Allowed names of the column of sources in a DataFrame.
SOURCE_COLUMNS = ("audio", "path", "url", "source", "file", "audio_url")
_MAGIC = frozenset("*?[")
#: Playlists could name other files and URLs to read, so PyAV does not open them.
_LOCAL = {"protocol_whitelist": "file"}

_CHUNK_BYTES = 1 << 20
#: A file whose inode changed less than this long ago may change again within the same tick of the kernel's clock.
_TICK_NS = 20_000_000
#: Maximum seconds between writes of file hashes to the ledger, in case the process ends.
_WRITE_S = 3.0


@dataclass(frozen=True)
class Media:
    """Identity of a recording."""

    identity: str  # "sha256:" and the hash of the bytes, or the URL
    signature: str  # changes when the file changes; empty for a URL
    audio_duration_s: float | None = None  # duration in seconds, if known


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
    """Cache of file hashes that reads the ledger once and writes to it in batches. Thread-safe."""

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
    """Return the identity of a recording."""
    if is_address(source):
        return Media(canonical(check_address(source)), "")
    before = signature(source)
    place = file_place(source)
    stored = files.file(place)
    if stored is not None and stored[0] != before:
        stored = None
    if stored is not None and (stored[2] is not None or not measure):
        return Media(stored[1], before, stored[2])
    if stored is not None:
        identity = stored[1]
    else:
        with opened(source) as file:
            identity = reading(source, lambda: _hash(file))
    media = Media(identity, before, duration_s(source) if measure else None)
    if _is_settled(before) and (stored is None or media.audio_duration_s is not None):
        files.keep_files({place: (before, identity, media.audio_duration_s)})
    return media


def opened(source: str) -> IO[bytes]:
    """Open a file for reading."""
    return reading(source, lambda: _open(source))


def signature(source: str) -> str:
    """Return a text that changes when a file changes."""
    if is_remote(source):
        system, path = filesystem(source)
        return str(reading(source, lambda: system.ukey(path)))
    status = reading(source, lambda: Path(source).stat())
    if Path(source).is_dir():
        raise AudioError(f"{source!r} is a directory; pass one recording in it")
    if not Path(source).is_file():
        raise AudioError(f"{source!r} is a pipe or a device; save the recording to a file first")
    if status.st_size == 0:
        raise AudioError(f"{source!r} is empty; there is no audio to send")
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {status.st_ctime_ns}"


def duration_s(source: str) -> float | None:
    """Return the duration in seconds from the header of a file. None if unknown, or if PyAV is not installed."""
    if is_remote(source):
        return None
    if source.lower().endswith(".wav"):
        try:
            with wave.open(source, "rb") as sound:
                frame_bytes = sound.getnchannels() * sound.getsampwidth()
                # A program that writes to a pipe does not know the length, and enters the largest one.
                frames = min(sound.getnframes(), Path(source).stat().st_size // frame_bytes)
                return frames / sound.getframerate()
        except (wave.Error, EOFError, ZeroDivisionError, OSError):
            pass  # not plain PCM
    if find_spec("av") is None:
        return None
    import av

    try:
        with av.open(source, options=_LOCAL) as container:
            return None if container.duration is None else container.duration / av.time_base
    except (av.FFmpegError, OSError, ValueError):
        return None


def has_sound(source: str) -> bool:
    """Return whether PyAV finds a track of sound in a local file."""
    import av

    try:
        with av.open(source, options=_LOCAL) as container:
            return bool(container.streams.audio)
    except (av.FFmpegError, OSError, ValueError):
        return False


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
    """Return the file system of a URL such as s3://bucket/folder, and the path in it."""
    system_and_path: tuple[Any, str] = reading(source, lambda: _fsspec().url_to_fs(source))
    return system_and_path


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
        if not isinstance(e, OSError | ImportError | ValueError | RuntimeError) and not is_remote(source):
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
    return now_ns - int(parts[1]) > RACY_NS and now_ns - int(parts[3]) > _TICK_NS


@dataclass(frozen=True)
class Recording:
    """One recording of a batch."""

    source: str  # path or URL
    metadata: Mapping[str, Any] = field(default_factory=dict)  # columns about it, by name
    name: str | None = None  # its name, if the user gave one


def one_source(audio: object) -> str:
    """Return the path or URL of one recording as text."""
    source = os.fspath(audio) if isinstance(audio, str | os.PathLike) else None
    if not isinstance(source, str) or not source:
        raise OptionError(
            f"audio must be the path or URL of one recording, got {shown(audio)}; Corpus.submit takes several"
        )
    return source


@takes_frames
def expand(sources: Recordings) -> list[Recording]:
    """Return every recording that the sources stand for, in order. Files of a folder or pattern are sorted."""
    if isinstance(sources, pd.DataFrame):
        return list(_of_frame(sources))
    several = [sources] if isinstance(sources, str | os.PathLike) else sources
    if isinstance(several, bytes | Mapping) or not isinstance(several, Iterable):
        raise _not_sources(sources)
    return [Recording(path) for source in several for path in _paths(source)]


def _of_frame(df: pd.DataFrame) -> Iterator[Recording]:
    named = [name for name in SOURCE_COLUMNS if name in df.columns]
    if len(named) != 1:
        present = f"it has {' and '.join(named)}" if named else f"it has {', '.join(map(str, df.columns)) or 'none'}"
        signs = [sign for sign in ";\t" if any(sign in str(name) for name in df.columns)]
        advice = f"Read the file with pandas.read_csv(path, sep={signs[0]!r})" if signs else "Rename the column"
        raise OptionError(
            f"a DataFrame of recordings must have one column of paths or URLs, named {', '.join(SOURCE_COLUMNS[:-1])} "
            f"or {SOURCE_COLUMNS[-1]}; {present}. {advice}"
        )
    check_columns(df.columns.drop("recording", errors="ignore"), named[0])
    about = [name for name in df.columns if name not in (named[0], "recording")]
    names = list(df["recording"]) if "recording" in df.columns else [None] * len(df)
    for row, source in enumerate(df[named[0]]):
        if not isinstance(source, str | os.PathLike):
            raise OptionError(f"row {row} of the column {named[0]!r} must be a path or a URL, got {source!r}")
        metadata = {name: df[name].iloc[row] for name in about}
        recording = checked_name(names[row])
        for path in _paths(source):
            yield Recording(path, metadata, recording)


def _paths(source: object) -> list[str]:
    if not isinstance(source, str | os.PathLike):
        raise _not_sources(source)
    text = os.fspath(source)
    if not isinstance(text, str) or not text:
        raise _not_sources(source)
    if is_address(text):
        return [text]
    if text.lower().startswith("file://"):
        text = text[7:] if Path(text[7:]).exists() else unquote(text[7:])
    if is_remote(text):
        return reading(text, lambda: _in_store(text))
    return reading(text, lambda: _on_disk(text))


def _on_disk(text: str) -> list[str]:
    """Return the files that a path stands for: one file, those of a folder, or those that match a pattern."""
    path = Path(text).expanduser()
    if path.is_dir():
        return _found(_media(map(str, path.rglob("*"))), text)
    if _MAGIC.isdisjoint(text) or path.exists():
        return [str(path)]
    matched = sorted(place for place in glob.glob(str(path), recursive=True) if Path(place).is_file())  # noqa: PTH207
    return _found(matched if path.suffix else _media(matched), text)


def _in_store(address: str) -> list[str]:
    """Return the files that a URL in a store stands for: one file, those of a folder, or those that match a pattern."""
    system, path = filesystem(address)
    if not _MAGIC.isdisjoint(path):
        matched = [str(place) for place, info in system.glob(path, detail=True).items() if info["type"] == "file"]
        paths = sorted(matched) if Path(path).suffix else _media(matched, local=False)
    elif system.isdir(path):
        paths = _media(map(str, system.find(path)), local=False)
    else:
        return [address]
    return _found([system.unstrip_protocol(name) for name in paths], address)


def _media(paths: Iterable[str], *, local: bool = True) -> list[str]:
    """Return the sorted paths of recordings that are not hidden."""
    return sorted(
        path
        for path in paths
        if Path(path).suffix.lower() in EXTENSIONS
        and not Path(path).name.startswith(".")
        and (not local or Path(path).is_file())
    )


def _found(paths: list[str], text: str) -> list[str]:
    if not paths:
        raise AudioNotFoundError(
            f"{text!r} matches no recording; check the path. Recordings in a folder are found by their extension, such "
            "as .mp3; a pattern such as 'calls/**/*.mp3' finds any file"
        )
    return paths


def _not_sources(value: object) -> OptionError:
    return OptionError(f"recordings must be paths, folders, patterns, URLs or a DataFrame, got {value!r:.100}")
