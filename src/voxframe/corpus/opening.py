"""Safe reading of files in the directory of a corpus, which another program may have put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import msgspec

from voxframe.errors import DamagedFileError

#: Maximum size of a file that is read as a whole, and of a payload after decompression.
MAX_BYTES = 512 << 20
_MAX_DEPTH = 200


def read_file(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise DamagedFileError(f"{path} is not a regular file; remove it")
            if about.st_size > limit:
                raise DamagedFileError(f"{path} has {about.st_size:,} bytes, and at most {limit:,} are read; remove it")
            return file.read(limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, DamagedFileError):
            raise
        raise DamagedFileError(
            f"{path} cannot be read ({error.strerror or error}); check its permissions, or remove it"
        ) from None


def read_json(path: Path, kind: Any = Any, limit: int = MAX_BYTES) -> Any:
    """Return the content of a JSON file, checked against a type."""
    data = read_file(path, limit)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged ({error}); remove it") from None
