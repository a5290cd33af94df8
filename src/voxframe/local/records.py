"""What the process of a streaming session is told: records of a kind, a length, and that many bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

#: Kinds of record: audio; end the utterance under way; silence (ms, as digits) that ends one; end the session (when its
#: audio would all have been spoken, as digits, in seconds of `time.monotonic`, which processes share).
AUDIO, END_UTTERANCE, SILENCE, TERMINATE = b"A", b"E", b"S", b"T"
_HEADER = struct.Struct("<cI")


def pack(kind: bytes, data: bytes = b"") -> bytes:
    """A record."""
    return _HEADER.pack(kind, len(data)) + data


def unpack(source: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """The records of a stream, until it ends; one that was cut off is none."""
    while len(header := source.read(_HEADER.size)) == _HEADER.size:
        kind, length = _HEADER.unpack(header)
        data = source.read(length)
        if len(data) < length:
            return
        yield kind, data
