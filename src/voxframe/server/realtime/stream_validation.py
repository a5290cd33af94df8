"""Validation of streaming connections: the parameters of the URL, and text messages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS
from voxframe.server import realtime

_RATES = (8000, 48_000)
_MESSAGE_MS = (100, 2000)


class SessionRefusedError(Exception):
    """The session ends with an error message and a close code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class StreamParameters:
    """Parameters of a connection.

    Attributes:
        rate: Samples per second.
        encoding: "pcm_s16le" or "pcm_mulaw".
        partials: True if partials are requested.
        information: True if the message about the session is requested.
        boost: Words to boost.
    """

    rate: int
    encoding: str
    partials: bool
    information: bool
    boost: list[str]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> StreamParameters:
        """Return the parameters in a query string.

        Raises:
            SessionRefusedError: A value is invalid.
        """
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
        """Return the duration of an audio message in seconds.

        Raises:
            SessionRefusedError: The message is too short, too long or malformed.
        """
        width = 1 if self.encoding == "pcm_mulaw" else 2
        if len(audio) % width:
            raise SessionRefusedError(
                4034, f"Could not decode the audio: {len(audio)} bytes are no whole number of samples"
            )
        seconds = len(audio) / (self.rate * width)
        shortest, longest = _MESSAGE_MS
        # The limits are rounded to whole samples.
        if (seconds + 1 / self.rate) * 1000 < shortest:
            raise SessionRefusedError(
                4032, f"Audio duration is too short: {seconds * 1000:.0f} ms, of at least {shortest}"
            )
        if (seconds - 1 / self.rate) * 1000 > longest:
            raise SessionRefusedError(
                4033, f"Audio duration is too long: {seconds * 1000:.0f} ms, of at most {longest}"
            )
        return seconds


def record_of(text: str) -> tuple[bytes, bytes]:
    """Return the kind (see the package) and content of a text message.

    Raises:
        SessionRefusedError: The message is invalid.
    """
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise SessionRefusedError(4100, "Endpoint received invalid JSON") from None
    low, high = STREAM_SILENCE_MS
    if isinstance(message, dict):
        if isinstance(audio := message.get("audio_data"), str):
            try:
                return realtime.AUDIO, base64.b64decode(audio, validate=True)
            except binascii.Error:
                raise SessionRefusedError(4034, "Could not decode the audio: audio_data is not base64") from None
        if message.get("terminate_session") is True:
            return realtime.TERMINATE, b""
        if message.get("force_end_utterance") is True:
            return realtime.END_UTTERANCE, b""
        silence = message.get("end_utterance_silence_threshold")
        if isinstance(silence, float) and silence.is_integer():
            silence = int(silence)
        if isinstance(silence, int) and not isinstance(silence, bool) and low <= silence <= high:
            return realtime.SILENCE, str(silence).encode()
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
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise SessionRefusedError(4104, "Could not parse word boost parameter: it is a JSON array of strings")
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise SessionRefusedError(4104, f"Word boost may have at most {STREAM_WORD_BOOST_CHARS} characters")
    return words
