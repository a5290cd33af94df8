"""The streaming interface of the embedded server, and the records between its processes.

A session has a process of its own (`stream_worker`), which detects speech and writes the messages of the API. The
server passes its decoding requests to the processes that all sessions share (`decode_pool`), and returns their results.
A record has a kind, a length, and data of that length. The parameters in the URL of a session and its text messages are
validated here too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import struct
import time
from asyncio import StreamReader
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import orjson

from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS

#: Records to the process of a session: audio; end of the current utterance; silence that ends an utterance (ms, as
#: digits); end of the session; result of a request (JSON: its number, and its words or null if it was cancelled).
AUDIO, END_UTTERANCE, SILENCE, TERMINATE, WORDS = b"A", b"E", b"S", b"T", b"W"
#: Records from it: ready; message to the client (JSON); decoding request (see `pack_request`); all messages were sent.
READY, MESSAGE, DECODE, DONE = b"R", b"M", b"D", b"X"
#: Priorities of requests. Finals come first, because clients wait for them after the speaker has stopped.
FINAL, FIRST_PARTIAL, PARTIAL = range(3)
_RATES = (8000, 48_000)
_MESSAGE_MS = (100, 2000)
_MAX_TOKENS = 10_000
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
    """Return the next record of a stream."""
    kind, length = _HEADER.unpack(await source.readexactly(_HEADER.size))
    return kind, await source.readexactly(length)


def pack_request(number: int, priority: int, samples: bytes) -> bytes:
    """Return the data of a decoding request: its number, its priority, and samples (int16, 16 kHz)."""
    return _REQUEST.pack(number, priority) + samples


def unpack_request(data: bytes) -> tuple[int, int, bytes]:
    """Return number, priority and samples of a decoding request."""
    number, priority = _REQUEST.unpack_from(data)
    return number, priority, data[_REQUEST.size :]


class SessionRefusedError(Exception):
    """The session ends with an error message and a close code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class TokenStore:
    """The valid tokens, in memory only. Tokens of an earlier start of the server are invalid."""

    def __init__(self, max_tokens: int = _MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._expiry: dict[bytes, float] = {}

    def issue(self, seconds: float) -> str | None:
        """Return a new token that is valid for `seconds`, or None if there are too many tokens."""
        now = time.monotonic()
        if len(self._expiry) >= self._max_tokens:
            self._expiry = {token: expiry for token, expiry in self._expiry.items() if expiry > now}
            if len(self._expiry) >= self._max_tokens:
                return None
        token = secrets.token_hex(32)
        self._expiry[_digest(token)] = now + seconds
        return token

    def take(self, token: str) -> float | None:
        """Use up a token."""
        # Looked up by its digest, so that the duration reveals nothing about the token.
        expiry = self._expiry.pop(_digest(token), None)
        return expiry if expiry is not None and time.monotonic() < expiry else None

    def give_back(self, token: str, expiry: float) -> None:
        """Make a token valid again because its session did not start."""
        self._expiry[_digest(token)] = expiry


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True)
class StreamParameters:
    """Parameters of a connection."""

    rate: int
    encoding: str
    partials: bool
    information: bool
    boost: list[str]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> StreamParameters:
        """Return the parameters in a query string."""
        rate = query.get("sample_rate", "")
        low, high = _RATES
        if not rate.isascii() or not rate.isdecimal() or len(rate) > 9 or not low <= int(rate) <= high:
            raise SessionRefusedError(4000, f"Sample rate must be a whole number from {low} to {high}")
        encoding = query.get("encoding") or "pcm_s16le"
        if encoding not in STREAM_ENCODINGS:
            raise SessionRefusedError(4101, f"Invalid encoding: it is one of {', '.join(STREAM_ENCODINGS)}")
        return cls(
            int(rate),
            encoding,
            not _flag(query.get("disable_partial_transcripts")),
            _flag(query.get("enable_extra_session_information")),
            _word_boost(query.get("word_boost") or "[]"),
        )

    def seconds(self, audio: bytes) -> float:
        """Return the duration of an audio message in seconds."""
        width = 1 if self.encoding == "pcm_mulaw" else 2
        if len(audio) % width:
            raise SessionRefusedError(
                4034, f"Could not decode the audio: {len(audio)} bytes are not a whole number of samples"
            )
        seconds = len(audio) / (self.rate * width)
        shortest, longest = _MESSAGE_MS
        # The limits are rounded to whole samples.
        if (seconds + 1 / self.rate) * 1000 < shortest:
            raise SessionRefusedError(
                4032, f"Audio duration is too short: {seconds * 1000:.0f} ms; a message has at least {shortest}"
            )
        if (seconds - 1 / self.rate) * 1000 > longest:
            raise SessionRefusedError(
                4033, f"Audio duration is too long: {seconds * 1000:.0f} ms; a message has at most {longest}"
            )
        return seconds


def record_of(text: str) -> tuple[bytes, bytes]:
    """Return the record for a text message, as its kind and data."""
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise SessionRefusedError(4100, "Endpoint received invalid JSON") from None
    low, high = STREAM_SILENCE_MS
    if isinstance(message, dict):
        if isinstance(audio := message.get("audio_data"), str):
            try:
                return AUDIO, base64.b64decode(audio, validate=True)
            except ValueError:  # binascii.Error, or letters beyond ASCII
                raise SessionRefusedError(4034, "Could not decode the audio: audio_data is not base64") from None
        if message.get("terminate_session") is True:
            return TERMINATE, b""
        if message.get("force_end_utterance") is True:
            return END_UTTERANCE, b""
        silence = message.get("end_utterance_silence_threshold")
        if isinstance(silence, float) and silence.is_integer():
            silence = int(silence)
        if isinstance(silence, int) and not isinstance(silence, bool) and low <= silence <= high:
            return SILENCE, str(silence).encode()
    raise SessionRefusedError(
        4101,
        "Endpoint received a message with an invalid schema: it takes audio, terminate_session, "
        f"force_end_utterance, and end_utterance_silence_threshold from {low} to {high}",
    )


def _flag(text: str | None) -> bool:
    return (text or "").lower() in ("true", "1")


def _word_boost(text: str) -> list[str]:
    try:
        words = json.loads(text)
        orjson.dumps(words)  # refuses unpaired surrogates, which json reads
    except (ValueError, TypeError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise SessionRefusedError(4104, "Could not parse word boost parameter: it is a JSON array of strings")
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise SessionRefusedError(4104, f"Word boost may have at most {STREAM_WORD_BOOST_CHARS} characters")
    return words
