"""Safe reading of files in the directory of a corpus, which another program may have put there."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import zstandard

from voxframe._text import quantity
from voxframe.errors import DamagedFileError

#: Maximum size of a file that is read as a whole, and of a payload after decompression.
MAX_BYTES = 512 << 20
_FED = 4096  # bytes, which zstd can expand to 128 MB


@contextlib.contextmanager
def opened(path: Path, limit: int = MAX_BYTES) -> Iterator[IO[bytes]]:
    """Open a regular file for reading. A missing one raises FileNotFoundError, any other problem DamagedFileError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            os.close(descriptor)
            raise DamagedFileError(f"{path} is not a regular file; remove it")
        with os.fdopen(descriptor, "rb") as file:
            if about.st_size > limit:
                raise DamagedFileError(f"{path} has {about.st_size:,} bytes, and at most {limit:,} are read; remove it")
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error.strerror or error}); check its permissions, or remove it"
        ) from None


def read_file(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file; see `opened`."""
    with opened(path, limit) as file:
        return file.read(limit + 1)


def read_json(path: Path, kind: Any = Any, limit: int = MAX_BYTES) -> Any:
    """Return the content of a JSON file, checked against a type."""
    data = read_file(path, limit)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged ({error}); remove it") from None


def decompress(data: bytes, limit: int = MAX_BYTES) -> bytes:
    """Return the content of the first zstd frame of `data`, even if its header does not state the size."""
    size = zstandard.frame_content_size(data)
    if size > limit:
        raise _too_large(limit)
    if size >= 0:
        return zstandard.ZstdDecompressor().decompress(data)
    stream, parts, total = zstandard.ZstdDecompressor().decompressobj(), list[bytes](), 0
    for at in range(0, len(data), _FED):
        parts.append(stream.decompress(data[at : at + _FED]))
        total += len(parts[-1])
        if total > limit:
            raise _too_large(limit)
        if stream.eof:
            return b"".join(parts)
    raise zstandard.ZstdError("the file ends early")


def _too_large(limit: int) -> zstandard.ZstdError:
    return zstandard.ZstdError(f"it expands to more than {quantity(limit, 'byte')}")
