"""The streaming interface of the embedded server, and the records between its processes.

A session has a process of its own (`stream_worker`), which detects speech and writes the messages of the API. The
server passes its decoding requests to the processes that all sessions share (`decode_pool`), and returns their results.
A record has a kind, a length, and data of that length.
"""

from __future__ import annotations

import struct
from asyncio import StreamReader
from collections.abc import Iterator
from typing import BinaryIO

#: Records to the process of a session: audio; end of the current utterance; silence that ends an utterance (ms, as
#: digits); end of the session; result of a request (JSON: its number, and its words or null if it was cancelled).
AUDIO, END_UTTERANCE, SILENCE, TERMINATE, WORDS = b"A", b"E", b"S", b"T", b"W"
#: Records from it: ready; message to the client (JSON); decoding request (see `pack_request`); all messages were sent.
READY, MESSAGE, DECODE, DONE = b"R", b"M", b"D", b"X"
#: Priorities of requests. Finals come first, because clients wait for them after the speaker has stopped.
FINAL, FIRST_PARTIAL, PARTIAL = range(3)
_HEADER = struct.Struct("<cI")
_REQUEST = struct.Struct("<IB")


def pack(kind: bytes, data: bytes = b"") -> bytes:
    """Return a record."""
    return _HEADER.pack(kind, len(data)) + data


def unpack(source: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a stream until it ends. An incomplete record is ignored."""
    while len(header := source.read(_HEADER.size)) == _HEADER.size:
        kind, length = _HEADER.unpack(header)
        data = source.read(length)
        if len(data) < length:
            return
        yield kind, data


async def read_record(source: StreamReader) -> tuple[bytes, bytes]:
    """Return the next record of a stream.

    Raises:
        asyncio.IncompleteReadError: The stream has ended.
    """
    kind, length = _HEADER.unpack(await source.readexactly(_HEADER.size))
    return kind, await source.readexactly(length)


def pack_request(number: int, priority: int, samples: bytes) -> bytes:
    """Return the data of a decoding request: its number, its priority, and samples (int16, 16 kHz)."""
    return _REQUEST.pack(number, priority) + samples


def unpack_request(data: bytes) -> tuple[int, int, bytes]:
    """Return number, priority and samples of a decoding request."""
    number, priority = _REQUEST.unpack_from(data)
    return number, priority, data[_REQUEST.size :]
