"""Payload files, plain or compressed, with a limit on their decompressed size."""

from __future__ import annotations

from typing import IO

import pyarrow as pa

from voxframe.errors import PayloadError

#: Maximum size after decompression. A ten-hour transcript with every analysis takes 25 MB.
MAX_BYTES = 512 * 1024 * 1024

_PACKED = {".gz": "gzip", ".zst": "zstd"}
#: Suffixes of payload files.
SUFFIXES = tuple(f"{plain}{packed}" for plain in (".json", ".jsonl", ".ndjson") for packed in ("", *_PACKED))


class UnreadableFileError(PayloadError):
    """A payload file is damaged, encrypted or too large."""


def is_payload_file(name: str) -> bool:
    """Return True if a file name has the suffix of a payload file."""
    return name.lower().endswith(SUFFIXES)


def contents(file: IO[bytes], name: str) -> bytes:
    """Return the content of a payload file, decompressed if its name ends in .gz or .zst.

    Args:
        file: The open file.
        name: Its name.

    Raises:
        UnreadableFileError: The file is damaged or too large.
    """
    packing = next((kind for suffix, kind in _PACKED.items() if name.lower().endswith(suffix)), None)
    try:
        stream = file if packing is None else pa.CompressedInputStream(pa.PythonFile(file, "r"), packing)
        data: bytes = stream.read(MAX_BYTES + 1)
    except (pa.ArrowException, OSError) as error:  # pyarrow uses both
        if packing is None:
            raise
        raise UnreadableFileError(f"{name!r} is no complete {packing} file ({str(error).splitlines()[0]})") from None
    if len(data) > MAX_BYTES:
        raise UnreadableFileError(f"{name!r} is larger than {MAX_BYTES // 1024**2} MB unpacked")
    return data
