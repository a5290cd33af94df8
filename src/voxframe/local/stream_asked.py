"""What a streaming client asks for: the parameters of its connection, and its messages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from voxframe.local import records
from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS

_RATES = (8000, 48_000)
_MESSAGE_MS = (100, 2000)


class RefusedError(Exception):
    """The session ends with an error message and a close code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Asked:
    """The parameters of a connection.

    Attributes:
        rate: Samples a second.
        encoding: "pcm_s16le" or "pcm_mulaw".
        partials: Whether partials are wanted.
        information: Whether the message about the session is.
        boost: Words to listen for.
    """

    rate: int
    encoding: str
    partials: bool
    information: bool
    boost: list[str]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """What a query says.

        Raises:
            RefusedError: It holds a value that is not allowed.
        """
        rate = query.get("sample_rate", "")
        low, high = _RATES
        if not rate.isascii() or not rate.isdecimal() or len(rate) > 9 or not low <= int(rate) <= high:
            raise RefusedError(4000, f"Sample rate must be a whole number from {low} to {high}")
        encoding = query.get("encoding") or "pcm_s16le"
        if encoding not in STREAM_ENCODINGS:
            raise RefusedError(4101, f"Invalid encoding: it is one of {', '.join(STREAM_ENCODINGS)}")
        return cls(
            int(rate),
            encoding,
            not _flag(query.get("disable_partial_transcripts")),
            _flag(query.get("enable_extra_session_information")),
            _word_boost(query.get("word_boost") or "[]"),
        )

    def seconds(self, audio: bytes) -> float:
        """How long a message of audio lasts.

        Raises:
            RefusedError: It is none that is taken.
        """
        width = 1 if self.encoding == "pcm_mulaw" else 2
        if len(audio) % width:
            raise RefusedError(4034, f"Could not decode the audio: {len(audio)} bytes are no whole number of samples")
        seconds = len(audio) / (self.rate * width)
        shortest, longest = _MESSAGE_MS
        # A message may be off by the part of a sample that a whole number of samples leaves.
        if (seconds + 1 / self.rate) * 1000 < shortest:
            raise RefusedError(4032, f"Audio duration is too short: {seconds * 1000:.0f} ms, of at least {shortest}")
        if (seconds - 1 / self.rate) * 1000 > longest:
            raise RefusedError(4033, f"Audio duration is too long: {seconds * 1000:.0f} ms, of at most {longest}")
        return seconds


def record_of(text: str) -> tuple[bytes, bytes]:
    """Kind (see `records`) and content of a text message.

    Raises:
        RefusedError: It is none of the interface.
    """
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise RefusedError(4100, "Endpoint received invalid JSON") from None
    low, high = STREAM_SILENCE_MS
    if isinstance(message, dict):
        if isinstance(audio := message.get("audio_data"), str):
            try:
                return records.AUDIO, base64.b64decode(audio, validate=True)
            except binascii.Error:
                raise RefusedError(4034, "Could not decode the audio: audio_data is not base64") from None
        if message.get("terminate_session") is True:
            return records.TERMINATE, b""
        if message.get("force_end_utterance") is True:
            return records.END_UTTERANCE, b""
        silence = message.get("end_utterance_silence_threshold")
        if isinstance(silence, float) and silence.is_integer():
            silence = int(silence)
        if isinstance(silence, int) and not isinstance(silence, bool) and low <= silence <= high:
            return records.SILENCE, str(silence).encode()
    raise RefusedError(
        4101,
        "Endpoint received a message with an invalid schema: it takes audio, terminate_session, "
        f"force_end_utterance, and end_utterance_silence_threshold from {low} to {high}",
    )


def _flag(text: str | None) -> bool:
    return (text or "").lower() in ("true", "1")


def _word_boost(text: str) -> list[str]:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RefusedError(4104, "Could not parse word boost parameter: it is a JSON array of strings")
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise RefusedError(4104, f"Word boost may have at most {STREAM_WORD_BOOST_CHARS} characters")
    return words
