"""Targets of an export: files and directories that are written completely or not at all, and remote stores (fsspec)."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from voxframe._files import hidden_path, in_threads, put_in_place, sync
from voxframe.errors import ExportError, MissingExtraError, OptionError, VoxframeError
from voxframe.validators import shown

#: Partition value of nulls, as in Hive, Spark, DuckDB, Polars and pyarrow.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
#: Names of the data card and of the hashes of all files. In some formats they begin with `_`.
CARDS, CROISSANT, CHECKSUMS = ("README.md", "README.txt"), "croissant.json", "SHA256SUMS"
#: Text of every data card, by which a directory or file that voxframe wrote is recognised.
CARD_MARK = " by voxframe "
#: Key of the data card in the metadata of a Parquet file that is a data set of its own.
CARD_KEY = b"voxframe.data_card"
_NAMED = 3  # files in a message
_LEFTOVER_AGE_S = 86_400.0  # without a change in any of its files
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


class Folder:
    """A directory that an export writes to."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: list[str] = []
        self._checksums: dict[str, str] = {}

    def open(self, name: str) -> IO[bytes]:
        """Open a file in the directory for writing."""
        self.files.append(name)
        path = Path(self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")

    def write(self, name: str, text: str) -> None:
        """Write a text file in the directory, as UTF-8."""
        with self.open(name) as file:
            file.write(text.encode("utf-8", "replace"))

    def checksum(self, name: str) -> str:
        """Return the SHA-256 of a file that is complete."""
        if name not in self._checksums:
            with Path(self.root, name).open("rb") as file:
                self._checksums[name] = _digest(file)
        return self._checksums[name]


def partition_folder(column: str, value: str | None) -> str:
    """Return the name of the folder for a value of a column to partition by; an empty text counts as null.

    Only the characters that Spark escapes are escaped. Spark decodes one escape to one character, so that it would
    misread other letters, of which pyarrow escapes every byte. See `ExternalCatalogUtils.charToEscape` in
    https://github.com/apache/spark.

    Example:
        >>> partition_folder("speaker", "Zoë 1/2")
        'speaker=Zoë 1%2F2'
    """
    parts = (_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", part) for part in (column, value or NULL_PARTITION))
    return "=".join(parts)


def check_target(target: object) -> None:
    """Check that a path or URL was given."""
    path = os.fspath(target) if isinstance(target, str | os.PathLike) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise OptionError(f"a path or URL is needed, such as 'calls' or 's3://bucket/calls', got {shown(target)}")
    try:
        Path(path).expanduser()
    except RuntimeError:
        raise OptionError(f"the home directory in {path!r} is unknown; pass the whole path") from None


def store_settings(settings: Mapping[str, Any] | None, values: type = object) -> dict[str, Any]:
    """Return the settings of a remote store as a dict. Errors show none of them, because some are secret.

    Args:
        values: Type of each value. Default: any.
    """
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        kind = type(settings).__name__
        raise OptionError(f'settings of a store are a dict such as {{"region": "eu-west-1"}}, not of type {kind}')
    for name, value in settings.items():
        if not isinstance(name, str):
            raise OptionError(f"names of settings of a store are text, not {type(name).__name__}")
        if not isinstance(value, values):
            raise OptionError(f"the setting {name} of a store must be {values.__name__}, got {type(value).__name__}")
    return dict(settings)


def is_remote(target: str | os.PathLike[str]) -> bool:
    """Return True if the target is a URL such as s3://bucket/folder."""
    return "://" in os.fspath(target)


@contextmanager
def folder(target: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Folder]:
    """Write a directory. It appears when all files are written; if that fails, existing files stay unchanged.

    For a remote store, the files are first written to a temporary directory of this machine. A store cannot rename a
    directory atomically: after all files are written, they are uploaded one after the other.

    Args:
        overwrite: Replace an existing directory, if voxframe wrote every file in it and none was edited since. Files in
            a remote store are not compared, because that would download all of them.
    """
    with _clear_errors(target):
        if is_remote(target):
            with _staged_folder(os.fspath(target), overwrite=overwrite) as into:
                yield into
            return
        path = Path(os.path.realpath(Path(target).expanduser()))
        hidden = hidden_path(path)

        def check() -> None:
            if path.exists() and not (path.is_dir() and not any(path.iterdir())):
                _check_free(target, overwrite=overwrite)
                foreign = (entry for entry in path.rglob("*") if entry.is_symlink() or not entry.is_dir())
                _check_written(
                    target,
                    (entry.relative_to(path).as_posix() for entry in foreign),
                    lambda name: (path / name).open("rb"),
                    is_file=not path.is_dir(),
                    compare=True,
                )

        check()
        _sweep(path)
        try:
            hidden.mkdir(parents=True)
            yield Folder(str(hidden))
            check()  # files may have come since
            _replace(hidden, path)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def _staged_folder(target: str, *, overwrite: bool) -> Iterator[Folder]:
    """Write a directory of a remote store; see `folder`."""
    filesystem, root = _store(target)
    root = root.rstrip("/")

    def exists() -> bool:
        if not filesystem.exists(root):
            return False
        _check_free(target, overwrite=overwrite)
        is_file = filesystem.isfile(root)
        names = [] if is_file else filesystem.find(root)
        _check_written(
            target,
            [name.removeprefix(root).lstrip("/") for name in names],
            lambda name: filesystem.open(f"{root}/{name}", "rb"),
            is_file=is_file,
            compare=False,
        )
        return True

    exists()
    with TemporaryDirectory(prefix="voxframe-") as temporary:
        into = Folder(temporary)
        yield into
        if exists():  # files may have come since
            filesystem.rm(root, recursive=True)
        # The hashes and the card are the last two. They go first: with them, an interrupted upload can be repeated.
        for names in (into.files[-2:], into.files[:-2]):
            for parent in {f"{root}/{name}".rpartition("/")[0] for name in names}:
                filesystem.makedirs(parent, exist_ok=True)
            filesystem.put([f"{temporary}/{name}" for name in names], [f"{root}/{name}" for name in names])


@contextmanager
def file(target: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Write one file. It appears when it is complete; if that fails, an existing file stays unchanged.

    For a remote store, it is first written to a temporary directory of this machine.
    """
    with _clear_errors(target):
        if is_remote(target):
            filesystem, path = _store(os.fspath(target))
            if filesystem.exists(path):
                _check_free(target, overwrite=overwrite)
            with TemporaryDirectory(prefix="voxframe-") as temporary:
                staged = Path(temporary, "file")
                with staged.open("xb") as out:
                    yield out
                filesystem.put_file(str(staged), path)
            return
        local = Path(target).expanduser().absolute()
        if local.exists():
            _check_free(target, overwrite=overwrite)
        _sweep(local)
        hidden = hidden_path(local)
        local.parent.mkdir(parents=True, exist_ok=True)
        try:
            with hidden.open("xb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            put_in_place(hidden, local)
        finally:
            hidden.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Delete what exports to this target left behind when they were killed. A running export is younger."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.tmp(\.old)?")
    with suppress(OSError):
        for leftover in [entry for entry in path.parent.iterdir() if name.fullmatch(entry.name)]:
            newest = max(entry.lstat().st_mtime for entry in (leftover, *leftover.rglob("*")))
            is_needed = leftover.suffix == ".old" and not path.exists()  # killed before the new one was in its place
            if time.time() - newest > _LEFTOVER_AGE_S and not is_needed:
                if leftover.is_dir():
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    leftover.unlink()


def _replace(hidden: Path, path: Path) -> None:
    """Move a directory to `path`, replacing an existing one. If that fails, the existing one is restored."""
    if not path.exists():
        hidden.rename(path)
        return
    # A power cut leaves the new files or the old ones, these perhaps under their hidden name.
    in_threads(sync, [*hidden.rglob("*"), hidden])
    old = path.with_name(f"{hidden.name}.old")
    try:
        path.rename(old)
        hidden.rename(path)
    except BaseException:  # also KeyboardInterrupt
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    try:
        sync(path.parent)
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _check_free(target: str | os.PathLike[str], *, overwrite: bool) -> None:
    if not overwrite:
        raise ExportError(f"{os.fspath(target)!r} already exists; choose another target, or pass overwrite=True")


def _check_written(
    target: str | os.PathLike[str],
    names: Iterable[str],
    open_file: Callable[[str], IO[bytes]],
    *,
    is_file: bool,
    compare: bool,
) -> None:
    """Check that voxframe wrote every file of an existing directory, so that replacing it deletes nothing else.

    Args:
        compare: Also check that no file was edited since.
    """
    place = os.fspath(target)
    if is_file:
        raise ExportError(f"{place!r} is a file, and a directory is to be written; choose another target")
    listed, here = _listed(open_file), list(names)
    other = next((name for name in here if name not in listed and not _has_card(name, open_file)), None)
    if other is not None:
        raise ExportError(
            f"{place!r} is not replaced, because voxframe did not write {other!r} in it; choose another target, or "
            "move your own files to another folder"
        )
    edited = [name for name in here if compare and listed.get(name) and _digest(open_file(name)) != listed[name]]
    if edited:
        tail = f" and {len(edited) - _NAMED} more" if len(edited) > _NAMED else ""
        raise ExportError(
            f"{place!r} is not replaced, because {', '.join(map(repr, edited[:_NAMED]))}{tail} changed since voxframe "
            "wrote it; to keep the changes, choose another target or move these files to another folder, otherwise "
            "delete the directory and export again"
        )


def _listed(open_file: Callable[[str], IO[bytes]]) -> dict[str, str]:
    """Return the SHA-256 of the files that an export into a directory wrote, empty if it is not known, by name."""
    for prefix in ("", "_"):
        with suppress(OSError):
            with open_file(f"{prefix}{CHECKSUMS}") as file:
                lines = file.read().decode("utf-8", "replace").splitlines()
            for card in CARDS:
                with suppress(OSError), open_file(f"{prefix}{card}") as file:
                    if CARD_MARK.encode() in file.read():
                        digests = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
                        return {f"{prefix}{card}": "", f"{prefix}{CHECKSUMS}": ""} | digests
    return {}


def _digest(file: Any) -> str:  # a file with `readinto`, which `IO` does not declare
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _has_card(name: str, open_file: Callable[[str], IO[bytes]]) -> bool:
    """Return True if a file is Parquet with a data card of voxframe in its metadata."""
    if not name.endswith(".parquet"):
        return False
    with suppress(OSError, pa.ArrowException), open_file(name) as file:
        return CARD_KEY in (pq.read_schema(file).metadata or {})
    return False


def _store(address: str) -> tuple[Any, str]:
    if find_spec("fsspec") is None:
        raise MissingExtraError("remote", "Writing to a store such as s3://")
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as e:  # unknown protocol, or its library is not installed
        raise OptionError(f"{address!r} is not a store that can be written: {e}") from None
    return filesystem, path


@contextmanager
def _clear_errors(target: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except VoxframeError:
        raise
    except Exception as e:
        if not isinstance(e, OSError) and not is_remote(target):  # libraries of remote stores raise their own errors
            raise
        raise ExportError(f"cannot write {os.fspath(target)!r}: {getattr(e, 'strerror', None) or e}") from e
