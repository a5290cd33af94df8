"""Options of a streaming session, checked before anything is opened or sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast, get_args

from voxframe.client.stream.audio import MAX_MESSAGE_MS, MIN_MESSAGE_MS, Samples, StreamSource, open_source
from voxframe.client.stream.messages import Final, Partial
from voxframe.errors import OptionError, SettingsError
from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS
from voxframe.settings import Secret
from voxframe.validators import (
    Boolean,
    Choice,
    Integer,
    ListOf,
    Number,
    Text,
    ValueType,
    checked,
    nearest,
    shown,
)

Encoding = Literal["pcm_s16le", "pcm_mulaw"]
assert get_args(Encoding) == STREAM_ENCODINGS


class StreamOptions(TypedDict, total=False):
    """Options of a streaming session, as keyword arguments.

    Attributes:
        sample_rate: Samples per second to send, in Hz. Required for raw samples; the default for audio files is their
            own rate, or 16000 if they are decoded.
        encoding: Encoding to send: "pcm_s16le" (default) or "pcm_mulaw". Audio files are converted to it; raw samples
            must have it already.
        word_boost: Expected words, at most 2500 characters in total.
        partials: Receive partials (default True).
        extra_session_information: Receive the duration of the audio at the end of the session (default False).
        token: A temporary token from `client.token()`, to use instead of the key.
        end_utterance_silence_threshold: Silence that ends an utterance, in ms, from 0 to 20000.
        realtime: Send audio in real time (default True). False sends as fast as the service accepts it, which not every
            service allows.
        reconnect: Open a new session if the connection is lost, instead of raising an error (default False). A `Gap`
            among the messages marks audio that may be lost.
        on_partial: Called with each partial, in a thread of the session.
        on_final: Called with each final, in the same thread.
        message_ms: Duration of an audio message, from 100 to 2000 ms (default 200).
        keepalive_s: Seconds between two pings, up to 3600 (default 10). The connection counts as lost after twice as
            long without any bytes, or six times if `realtime` is False.
        keep_partials: Maximum number of partials and unknown messages to keep (default 1000); all finals are kept.
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


_SILENCE = Integer(*STREAM_SILENCE_MS, "ms")
#: Default and type of each option; those without a type are checked apart.
_OPTIONS: dict[str, tuple[Any, ValueType | None]] = {
    "sample_rate": (None, Integer(1, unit="Hz")),
    "encoding": ("pcm_s16le", Choice(STREAM_ENCODINGS)),
    "word_boost": (None, ListOf(Text(), "words")),
    "partials": (True, Boolean()),
    "extra_session_information": (False, Boolean()),
    "token": (None, None),
    "end_utterance_silence_threshold": (None, _SILENCE),
    "realtime": (True, Boolean()),
    "reconnect": (False, Boolean()),
    "on_partial": (None, None),
    "on_final": (None, None),
    "message_ms": (200, Integer(MIN_MESSAGE_MS, MAX_MESSAGE_MS, "ms")),
    "keepalive_s": (10.0, Number(0.01, 3600, "seconds")),
    "keep_partials": (1000, Integer(0)),
}


def check(options: StreamOptions) -> StreamOptions:
    """Return all options, completed with defaults. None uses the default too."""
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        near = nearest(unknown[0], list(_OPTIONS))
        raise OptionError(
            f"a streaming session has no option {unknown[0]!r}{near}; the options are {', '.join(_OPTIONS)}"
        )
    values = {name: default for name, (default, _) in _OPTIONS.items()}
    for name, value in options.items():
        if value is not None:
            kind = _OPTIONS[name][1]
            values[name] = value if kind is None else checked(name, value, kind)
    for name in ("on_partial", "on_final"):
        if values[name] is not None and not callable(values[name]):
            raise OptionError(f"{name} must be a function of one message, got {shown(values[name])}")
    if values["token"] is not None:
        _check_token(values["token"])
    full = cast("StreamOptions", values)
    if full["token"] is not None and full["reconnect"]:
        raise OptionError(
            "a temporary token opens one session only, so reconnect=True needs the key; leave one of them out"
        )
    return full


def _check_token(token: object) -> None:
    if not isinstance(token, str):
        raise OptionError(f"token must be the text returned by client.token(), got {type(token).__name__}")
    try:
        Secret(token)
    except SettingsError:
        raise OptionError(
            "token is empty or has characters that no token has (not shown here); pass it as client.token() returned it"
        ) from None


_LAST_MESSAGE_SECONDS = 60.0  # without a message, once the session was told to end


@dataclass(frozen=True)
class StreamPlan:
    """A checked streaming session, ready to be opened.

    Attributes:
        silence_ms: Silence that ends an utterance in ms; None uses the default of the service.
    """

    url: str
    key: Secret | None = field(repr=False)
    token: Secret | None = field(repr=False)
    query: Mapping[str, str] = field(repr=False)
    samples: Samples = field(repr=False)
    encoding: str
    message_ms: int
    realtime: bool
    silence_ms: int | None
    reconnect: bool
    keepalive_s: float

    @property
    def keepalive_timeout_s(self) -> float:
        """Seconds without any bytes after which the connection counts as lost.

        It is longer if audio is sent faster than real time, because the service may process it before it reads on.
        """
        return self.keepalive_s * (2 if self.realtime else 6)

    @property
    def end_timeout_s(self) -> float:
        """Maximum seconds between two messages once the session was told to end; much audio may still be in process."""
        return _LAST_MESSAGE_SECONDS * (1 if self.realtime else 5)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that must be masked in messages."""
        return tuple(secret.reveal() for secret in (self.key, self.token) if secret is not None)


def make_plan(source: StreamSource, url: str, key: Secret | None, options: StreamOptions) -> StreamPlan:
    """Return the plan of a session."""
    token, boost = options["token"], options["word_boost"]
    if key is None and token is None:
        raise SettingsError("a streaming session needs a key or a token; give connect(api_key=...) or token=...")
    words = None if boost is None else _word_boost(boost)
    samples = open_source(source, options["sample_rate"], options["encoding"])  # last: it opens a file
    query = {"sample_rate": str(samples.rate), "encoding": options["encoding"]}
    query |= {"word_boost": words} if words is not None else {}
    query |= {"disable_partial_transcripts": "true"} if not options["partials"] else {}
    query |= {"enable_extra_session_information": "true"} if options["extra_session_information"] else {}
    return StreamPlan(
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
    """Check a silence threshold and return it as an int."""
    return cast("int", checked("end_utterance_silence_threshold", value, _SILENCE))


def _word_boost(words: Sequence[str]) -> str:
    text = json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise OptionError(
            f"word_boost is {len(text)} characters long as JSON, and at most {STREAM_WORD_BOOST_CHARS} are allowed; "
            "give fewer words"
        )
    return text
