"""Files on disk: safe names, atomic writes, and the sample recordings."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 8

# Lower case only: on a case-insensitive file system `a1` and `A1` would be the same file. A leading underscore or dash
# is not allowed because dataset readers skip `_x` as hidden, and shells parse `-x` as an option.
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)")  # Windows opens a device with any extension


def file_name(transcript_id: str) -> str:
    """Return the stem of the files of a transcript. Ids come from a service, so they are never used as paths.

    A plain id (lower-case letters, digits, `_`, `-`, at most 128 characters) is its own name. Any other id becomes a
    readable prefix, `~` and a hash; the files themselves contain the id.

    Example:
        >>> file_name("7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0")
        '7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0'
        >>> file_name("../../etc/passwd")
        'etc_passwd~3754d6cb3a38e1185e5b'
    """
    if _PLAIN.fullmatch(transcript_id) and not _DEVICES.fullmatch(transcript_id):
        return transcript_id
    digest = hashlib.sha256(transcript_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    readable = re.sub(r"[^A-Za-z0-9-]+", "_", transcript_id)[:40].strip("_-") or "id"
    return f"{readable}~{digest}"


def readable_name(name: str) -> str:
    """Return a file name that resembles a name given by a user and is safe on every file system.

    Different names may have the same file name.

    Example:
        >>> readable_name("Call 7: part 2"), readable_name("../a")
        ('Call 7_ part 2', '__a')
    """
    safe = re.sub(r'[<>:"/\\|?*\x00-\x1f\x7f]', "_", name.encode("utf-8", "replace").decode()).strip(". ")[:100]
    return (
        f"_{safe}"
        if not safe or name.startswith((".", "~")) or _DEVICES.fullmatch(safe.lower().partition(".")[0])
        else safe
    )


def file_stems(names: Mapping[str, str]) -> dict[str, str]:
    """Return a unique file name without suffix for each transcript: its recording, and the id if others have the name.

    Example:
        >>> file_stems({"a1": "Call", "b2": "call", "c3": "c3", "d4": "Call-a1"})
        {'a1': 'Call-a1', 'b2': 'call-b2', 'c3': 'c3', 'd4': 'Call-a1-d4'}
    """
    stems = {i: file_name(i) if name == i else readable_name(name) for i, name in names.items()}
    with_id = set[str]()
    while True:
        found = {i: f"{stem}-{file_name(i)}" if i in with_id else stem for i, stem in stems.items()}
        spelled = Counter(stem.casefold() for stem in found.values())  # a file system may ignore case
        shared = {i for i, stem in found.items() if spelled[stem.casefold()] > 1} - with_id
        if not shared:
            return found
        with_id |= shared  # a name with an id can be the name of another recording


def is_plain(name: str) -> bool:
    """Return True if a file name made by `file_name` is the id itself."""
    return "~" not in name


def private_folder(path: Path) -> None:
    """Create a folder that only its owner can enter; an existing folder keeps its permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)


def stamp(stat: os.stat_result) -> str:
    """Return a text that changes if a file is replaced. Text, because the garbage collector need not traverse it."""
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def hidden_path(path: Path) -> Path:
    """Return a new name for a temporary file beside `path`: hidden, unique, ending in `.tmp`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


def write_atomic(path: Path, content: bytes | Callable[[IO[bytes]], object], *, durable: bool = True) -> None:
    """Create or replace a file in one step: readers see either the old file or the complete new one.

    Args:
        durable: Flush the file and the rename to the disk before returning. Without it, a power cut may undo the write.
    """
    hidden = hidden_path(path)
    try:
        with hidden.open("xb") as file:
            file.write(content) if isinstance(content, bytes) else content(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        put_in_place(hidden, path, durable=durable)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def put_in_place(complete: Path, path: Path, *, durable: bool = True) -> None:
    """Rename a complete file to its final path, replacing an existing file."""
    complete.replace(path)
    if durable:
        sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    if path.is_dir() and os.name != "posix":  # Windows cannot open a folder, and journals its renames
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def in_threads(work: Callable[[T], R], items: Iterable[T], threads: int = _THREADS) -> list[R]:
    """Call a function once for each item, in several threads. The default number suits work that waits for the disk.

    After an error or Ctrl-C, it is not called for the items that no thread has begun. If no thread can be started,
    because there are too many or the interpreter is shutting down, it is called in this thread.
    """
    waiting = deque(enumerate(items))
    count, results = len(waiting), dict[int, R]()

    def run() -> None:
        while True:
            try:
                place, item = waiting.popleft()
            except IndexError:
                return
            try:
                results[place] = work(item)
            except BaseException:
                waiting.clear()
                raise

    with ThreadPoolExecutor(threads) as pool:
        running = []
        with contextlib.suppress(RuntimeError):
            for _ in range(min(threads, count)):
                running.append(pool.submit(run))  # noqa: PERF401  an error keeps those that were started
        try:
            if not running:
                run()
            for future in running:
                future.result()
        except BaseException:
            waiting.clear()
            raise
    return [results[place] for place in range(count)]


#: An installed package contains the recordings; a checkout has them in `data/`, beside `src/`.
_SAMPLE_FOLDERS = (Path(__file__).parent / "data", Path(__file__).parents[2] / "data")


def sample(name: str = "interview") -> Path:
    """Return the path of a recording that is installed with voxframe.

    Args:
        name: "interview" (two speakers, about 2 min). A checkout of the project also has "panel" (four speakers) and
            "call" (stereo, one speaker per channel).

    Returns:
        Path of a FLAC file.

    Raises:
        ValueError: The sample does not exist in this installation.

    Example:
        >>> sample("interview").name
        'interview.flac'
    """
    for folder in _SAMPLE_FOLDERS:
        path = folder / f"{name}.flac"
        if path.is_file() and path.parent == folder:
            return path
    here = sorted({path.stem for folder in _SAMPLE_FOLDERS for path in folder.glob("*.flac")})
    raise ValueError(f"there is no sample {name!r}; available: {', '.join(here) or 'none, so reinstall voxframe'}")
