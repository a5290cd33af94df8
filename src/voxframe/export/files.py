"""Where an export goes: a file or a directory that is there whole or not at all, or a store that fsspec knows."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from voxframe.errors import ExportError, MissingExtraError, OptionError, VoxframeError


class Folder:
    """A directory that is being filled.

    Args:
        root: Path in the file system.
        filesystem: An fsspec file system; None is the local one.
    """

    def __init__(self, root: str, filesystem: Any = None) -> None:
        self.root = root
        self.filesystem = filesystem
        self.files: list[str] = []

    def open(self, name: str) -> IO[bytes]:
        """Open a file in it for writing.

        Args:
            name: Name, with `/` between folders.
        """
        self.files.append(name)
        path = f"{self.root}/{name}"
        if self.filesystem is not None:
            self.filesystem.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            file: IO[bytes] = self.filesystem.open(path, "wb")
            return file
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return Path(path).open("xb")

    def write(self, name: str, text: str) -> None:
        """Write a text file in it, as UTF-8."""
        with self.open(name) as file:
            file.write(text.encode("utf-8", "replace"))


def is_remote(target: str | os.PathLike[str]) -> bool:
    """Whether a target is an address such as s3://bucket/folder."""
    return "://" in os.fspath(target)


@contextmanager
def folder(target: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Folder]:
    """Fill a directory. It appears when all is written; when that fails, what was there before is as it was.

    In a store that fsspec knows nothing can be renamed at once: each file appears whole, all of them one by one.

    Args:
        target: Path or address.
        overwrite: Whether to replace what is there.

    Raises:
        ExportError: It is there already, or cannot be written.
        MissingExtraError: It is an address and fsspec, or its part for that store, is not installed.
    """
    if is_remote(target):
        with _clear_errors(target):
            filesystem, root = _store(os.fspath(target))
            if filesystem.exists(root):
                _check_free(target, overwrite=overwrite)
                filesystem.rm(root, recursive=True)
            yield Folder(root.rstrip("/"), filesystem)
        return
    path = Path(target).expanduser().absolute()
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with _clear_errors(target):
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            _check_free(target, overwrite=overwrite)
        try:
            hidden.mkdir(parents=True)
            yield Folder(str(hidden))
            _replace(hidden, path)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def file(target: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Write one file. It appears when all is written; when that fails, what was there before is as it was.

    Args:
        target: Path or address.
        overwrite: Whether to replace what is there.

    Raises:
        ExportError: It is there already, or cannot be written.
    """
    with _clear_errors(target):
        if is_remote(target):
            filesystem, path = _store(os.fspath(target))
            if filesystem.exists(path):
                _check_free(target, overwrite=overwrite)
            with filesystem.open(path, "wb") as out:
                yield out
            return
        local = Path(target).expanduser().absolute()
        if local.exists():
            _check_free(target, overwrite=overwrite)
        hidden = local.with_name(f".{local.name}.{secrets.token_hex(6)}.tmp")
        local.parent.mkdir(parents=True, exist_ok=True)
        try:
            with hidden.open("xb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            hidden.replace(local)
        finally:
            hidden.unlink(missing_ok=True)


def _replace(hidden: Path, path: Path) -> None:
    """Put a directory in the place of another; should that fail, the other comes back."""
    if not path.exists():
        hidden.rename(path)
        return
    old = path.with_name(f"{hidden.name}.old")
    path.rename(old)
    try:
        hidden.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink()


def _check_free(target: str | os.PathLike[str], *, overwrite: bool) -> None:
    if not overwrite:
        raise ExportError(
            f"{os.fspath(target)!r} is there already; name another place, or say overwrite=True (--overwrite)"
        )


def _store(address: str) -> tuple[Any, str]:
    if find_spec("fsspec") is None:
        raise MissingExtraError("remote", "Writing to a store such as s3://")
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as e:  # an unknown protocol; the library of that store is not installed
        raise OptionError(f"{address!r} cannot be written to: {e}") from None
    return filesystem, path


@contextmanager
def _clear_errors(target: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except VoxframeError:
        raise
    except Exception as e:
        if not isinstance(e, OSError) and not is_remote(target):  # a store's library has errors of its own
            raise
        raise ExportError(f"cannot write {os.fspath(target)!r}: {getattr(e, 'strerror', None) or e}") from e
