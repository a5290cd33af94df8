"""The arguments of a streaming session, checked before anything is opened or sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from voxframe.errors import OptionError, SettingsError
from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS
from voxframe.service.pacing import LONGEST_MS, SHORTEST_MS
from voxframe.service.stream_run import Plan
from voxframe.service.stream_sources import StreamSource, open_source
from voxframe.settings import Secret

Encoding = Literal["pcm_s16le", "pcm_mulaw"]
assert get_args(Encoding) == STREAM_ENCODINGS


def make_plan(
    source: StreamSource,
    *,
    url: str,
    key: Secret | None,
    sample_rate: int | None,
    encoding: Encoding,
    word_boost: Sequence[str] | None,
    partials: bool,
    extra_session_information: bool,
    token: str | None,
    end_utterance_silence_threshold: int | None,
    realtime: bool,
    reconnect: bool,
    message_ms: int,
    keepalive_s: float,
) -> Plan:
    """What a run is to do; the arguments are those of `client.stream`.

    Raises:
        OptionError: An argument is wrong.
        AudioError: The source cannot be read.
        SettingsError: There is neither a key nor a token.
    """
    if encoding not in STREAM_ENCODINGS:
        raise OptionError(f"encoding is {encoding!r}; it must be one of {', '.join(STREAM_ENCODINGS)}")
    if sample_rate is not None:
        sample_rate = _whole("sample_rate", sample_rate, 1, None, " Hz")
    if key is None and token is None:
        raise SettingsError("a streaming session needs a key or a token; give connect(api_key=...) or token=...")
    if token is not None and reconnect:
        raise OptionError("a temporary token opens one session, so reconnect=True needs the key; leave one of them out")
    silence = None if end_utterance_silence_threshold is None else silence_ms(end_utterance_silence_threshold)
    message_ms = _whole("message_ms", message_ms, SHORTEST_MS, LONGEST_MS, " ms")
    if not isinstance(keepalive_s, int | float) or not keepalive_s > 0:
        raise OptionError(f"keepalive_s is {keepalive_s!r}; it must be a number of seconds above 0")
    boost = None if word_boost is None else _word_boost(word_boost)
    samples = open_source(source, sample_rate, encoding)  # last: it opens a file
    query = {"sample_rate": str(samples.rate), "encoding": encoding}
    query |= {"word_boost": boost} if boost is not None else {}
    query |= {"disable_partial_transcripts": "true"} if not partials else {}
    query |= {"enable_extra_session_information": "true"} if extra_session_information else {}
    return Plan(
        url=url,
        key=key if token is None else None,
        token=Secret(token) if token is not None else None,
        query=query,
        samples=samples,
        encoding=encoding,
        message_ms=message_ms,
        realtime=realtime,
        silence_ms=silence,
        reconnect=reconnect,
        keepalive_s=keepalive_s,
    )


def silence_ms(value: object) -> int:
    """A silence threshold, checked.

    Raises:
        OptionError: It is not a whole number from 0 to 20000.
    """
    return _whole("end_utterance_silence_threshold", value, *STREAM_SILENCE_MS, " ms")


def _whole(name: str, value: Any, low: int, high: int | None, unit: str) -> int:
    number = value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or number < low or (high is not None and number > high):
        allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
        raise OptionError(f"{name} is {value!r}; it must be a whole number {allowed}{unit}")
    return int(number)


def _word_boost(words: Sequence[str]) -> str:
    if isinstance(words, str | Mapping) or not all(isinstance(word, str) and word for word in words):
        raise OptionError("word_boost must be a list of words, such as ['tree survey', 'Ilse']")
    text = json.dumps(list(words), ensure_ascii=False, separators=(",", ":"))
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise OptionError(
            f"word_boost is {len(text)} characters long as JSON, and at most {STREAM_WORD_BOOST_CHARS} are taken; "
            "give fewer words"
        )
    return text
