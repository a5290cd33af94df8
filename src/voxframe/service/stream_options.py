"""The arguments of a streaming session, checked before anything is opened or sent."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, get_args

from voxframe.errors import OptionError, SettingsError
from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS
from voxframe.service.lenient import is_unicode
from voxframe.service.pacing import LONGEST_MS, SHORTEST_MS
from voxframe.service.stream_messages import Final, Partial
from voxframe.service.stream_run import Plan
from voxframe.service.stream_sources import StreamSource, open_source
from voxframe.settings import Secret

Encoding = Literal["pcm_s16le", "pcm_mulaw"]
assert get_args(Encoding) == STREAM_ENCODINGS


class StreamOptions(TypedDict, total=False):
    """Options of a streaming session, as keyword arguments.

    Attributes:
        sample_rate: Samples a second to send, in Hz. Raw samples need it; audio files have their own, or 16000.
        encoding: Of the samples to send: "pcm_s16le" (the default) or "pcm_mulaw". Audio files are converted to it; raw
            samples must be in it already.
        word_boost: Words to expect, together at most 2500 characters.
        partials: Whether partials are wanted (default: they are).
        extra_session_information: Whether the session should say at its end how much audio it was.
        token: A temporary token, from `client.token()`, to use instead of the key.
        end_utterance_silence_threshold: Silence that ends an utterance, in ms, from 0 to 20000.
        realtime: Whether to send audio at the pace it was spoken (the default). False sends as fast as the service
            takes it; not every service allows that.
        reconnect: Whether to open another session where one is cut, instead of raising. A `Gap` among the messages says
            what may be lost.
        on_partial: Called with each partial, in a thread of the session's own.
        on_final: Called with each final, in the same thread.
        message_ms: Audio in one message, from 100 to 2000 ms (default 200).
        keepalive_s: Seconds between signs of life (default 10); after twice as long without one, or six times where
            realtime is False, the connection counts as cut.
        keep_partials: Partials and unknown messages to hold at most (default 1000); finals are all held.
    """

    sample_rate: int | None
    encoding: Encoding
    word_boost: Sequence[str] | None
    partials: bool
    extra_session_information: bool
    token: str | None
    end_utterance_silence_threshold: int | None
    realtime: bool
    reconnect: bool
    on_partial: Callable[[Partial], object] | None
    on_final: Callable[[Final], object] | None
    message_ms: int
    keepalive_s: float
    keep_partials: int


_DEFAULTS: StreamOptions = {
    "sample_rate": None,
    "encoding": "pcm_s16le",
    "word_boost": None,
    "partials": True,
    "extra_session_information": False,
    "token": None,
    "end_utterance_silence_threshold": None,
    "realtime": True,
    "reconnect": False,
    "on_partial": None,
    "on_final": None,
    "message_ms": 200,
    "keepalive_s": 10.0,
    "keep_partials": 1000,
}


def check(options: StreamOptions) -> StreamOptions:
    """All options, with their defaults.

    Raises:
        OptionError: One is unknown, or its value is wrong.
    """
    for name in options:
        if name not in _DEFAULTS:
            near = difflib.get_close_matches(name, _DEFAULTS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_DEFAULTS)}"
            raise OptionError(f"a streaming session has no option {name!r}; {hint}")
    full: StreamOptions = {**_DEFAULTS, **options}
    if full["encoding"] not in STREAM_ENCODINGS:
        raise OptionError(f"encoding is {full['encoding']!r}; it must be one of {', '.join(STREAM_ENCODINGS)}")
    if full["sample_rate"] is not None:
        full["sample_rate"] = _whole("sample_rate", full["sample_rate"], 1, None, " Hz")
    for name in ("partials", "extra_session_information", "realtime", "reconnect"):
        if not isinstance(options.get(name, True), bool):
            raise OptionError(f"{name} is {options[name]!r}; it must be True or False")  # type: ignore[literal-required]
    for name in ("on_partial", "on_final"):
        if options.get(name) is not None and not callable(options[name]):  # type: ignore[literal-required]
            raise OptionError(f"{name} is {options[name]!r}; it must be a function of one message")  # type: ignore[literal-required]
    if full["end_utterance_silence_threshold"] is not None:
        full["end_utterance_silence_threshold"] = silence_ms(full["end_utterance_silence_threshold"])
    full["message_ms"] = _whole("message_ms", full["message_ms"], SHORTEST_MS, LONGEST_MS, " ms")
    full["keep_partials"] = _whole("keep_partials", full["keep_partials"], 0, None)
    if not isinstance(full["keepalive_s"], int | float) or not full["keepalive_s"] > 0:
        raise OptionError(f"keepalive_s is {full['keepalive_s']!r}; it must be a number of seconds above 0")
    if full["token"] is not None and not isinstance(full["token"], str):
        raise OptionError(f"token is a {type(full['token']).__name__}; give the text that client.token() returned")
    if full["token"] is not None and full["reconnect"]:
        raise OptionError("a temporary token opens one session, so reconnect=True needs the key; leave one of them out")
    return full


def make_plan(source: StreamSource, url: str, key: Secret | None, options: StreamOptions) -> Plan:
    """What a run is to do.

    Args:
        source: The audio.
        url: Streaming address.
        key: The API key, where there is one.
        options: As `check` returns them.

    Raises:
        OptionError: The source is none, or the word boost is wrong.
        AudioError: The source cannot be read.
        SettingsError: There is neither a key nor a token.
    """
    token, boost = options["token"], options["word_boost"]
    if key is None and token is None:
        raise SettingsError("a streaming session needs a key or a token; give connect(api_key=...) or token=...")
    words = None if boost is None else _word_boost(boost)
    samples = open_source(source, options["sample_rate"], options["encoding"])  # last: it opens a file
    query = {"sample_rate": str(samples.rate), "encoding": options["encoding"]}
    query |= {"word_boost": words} if words is not None else {}
    query |= {"disable_partial_transcripts": "true"} if not options["partials"] else {}
    query |= {"enable_extra_session_information": "true"} if options["extra_session_information"] else {}
    return Plan(
        url=url,
        key=key if token is None else None,
        token=Secret(token) if token is not None else None,
        query=query,
        samples=samples,
        encoding=options["encoding"],
        message_ms=options["message_ms"],
        realtime=options["realtime"],
        silence_ms=options["end_utterance_silence_threshold"],
        reconnect=options["reconnect"],
        keepalive_s=options["keepalive_s"],
    )


def silence_ms(value: object) -> int:
    """A silence threshold, checked.

    Raises:
        OptionError: It is not a whole number from 0 to 20000.
    """
    return _whole("end_utterance_silence_threshold", value, *STREAM_SILENCE_MS, " ms")


def _whole(name: str, value: Any, low: int, high: int | None, unit: str = "") -> int:
    number = value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or number < low or (high is not None and number > high):
        allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
        raise OptionError(f"{name} is {value!r}; it must be a whole number {allowed}{unit}")
    return int(number)


def _word_boost(words: Sequence[str]) -> str:
    listed = isinstance(words, Iterable) and not isinstance(words, str | Mapping)
    if not listed or not all(isinstance(word, str) and word and is_unicode(word) for word in words):
        raise OptionError("word_boost must be a list of words, such as ['tree survey', 'Ilse']")
    text = json.dumps(list(words), ensure_ascii=False, separators=(",", ":"))
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise OptionError(
            f"word_boost is {len(text)} characters long as JSON, and at most {STREAM_WORD_BOOST_CHARS} are taken; "
            "give fewer words"
        )
    return text
