"""Everything voxframe raises, in one tree.

    VoxframeError
    ├── SettingsError(ValueError)          a setting is missing or cannot be used
    ├── OptionError(ValueError)            an option or argument is wrong; nothing was sent
    ├── AudioError(OSError)                audio that cannot be read or sent; nothing was sent
    │   └── AudioNotFoundError(FileNotFoundError)
    ├── MissingExtraError(ImportError)     an optional part is not installed
    ├── PayloadError(ValueError)           service data that cannot be read at all
    ├── CorpusError                        a corpus directory cannot be used
    │   └── LostAnswerError                a language model was asked, and its answer was lost
    ├── ExportError(OSError)               an export that cannot be written
    ├── TranscriptError                    a transcript whose status is "error" (raise_for_status)
    └── ServiceError                       the service, or the way to it
        ├── ServiceUnreachableError(ConnectionError)
        ├── ServiceTimeoutError(TimeoutError)
        ├── StreamError                    a streaming session that did not end well: code, session_id
        │   ├── BadSampleRateError         4000
        │   ├── StreamAuthenticationError  4001
        │   ├── SessionNotFoundError       4004
        │   ├── SessionExpiredError        4008
        │   ├── SessionClosedError         4010
        │   ├── AudioTooFastError          4029
        │   ├── SessionIdleError           4031
        │   ├── AudioTooShortError         4032
        │   ├── AudioTooLongError          4033
        │   ├── AudioUnreadableError       4034
        │   ├── InvalidJSONError           4100
        │   ├── InvalidMessageError        4101
        │   ├── TooManyStreamsError        4102
        │   ├── BadWordBoostError          4104
        │   ├── StreamUnavailableError     1013
        │   └── StreamCutError(ConnectionError)  the connection broke, or went silent
        └── APIError                       an HTTP answer of no use: status, method, path, request_id
            ├── BadRequestError            400, and other refusals
            ├── AuthenticationError        401, 403
            ├── NotFoundError(LookupError) 404
            ├── RateLimitError             429, with retry_after
            ├── ServerError                500 and above
            └── UnreadableAnswerError      2xx, but cut short or not what the interface says

    PayloadWarning(UserWarning)            service data was read, but a value in it made no sense and became null
    CorpusWarning(UserWarning)             a file of a corpus was damaged, and made again

Each message says what was given, what is allowed and what to do next, and none holds a key.
"""

from __future__ import annotations


class VoxframeError(Exception):
    """Base of every error voxframe raises on purpose. Its kinds go through pickle whole, as from a worker process."""

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[VoxframeError], args: tuple[object, ...], state: dict[str, object]) -> VoxframeError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class SettingsError(VoxframeError, ValueError):
    """A setting is missing or cannot be used."""


class OptionError(VoxframeError, ValueError):
    """An option or argument is wrong. Raised before anything is uploaded or paid for."""


class AudioError(VoxframeError, OSError):
    """Audio that cannot be read or sent. Raised before anything is sent, or when a file changes under the upload."""


class AudioNotFoundError(AudioError, FileNotFoundError):
    """There is no such audio file."""


class MissingExtraError(VoxframeError, ImportError):
    """An optional part is not installed.

    Args:
        extra: Name of the extra that brings it.
        purpose: What was asked for, in words.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an optional part that is not installed: pip install 'voxframe[{extra}]'")
        self.extra = extra


class PayloadError(VoxframeError, ValueError):
    """Service data that not even the tolerant reader can make sense of."""


class PayloadWarning(UserWarning):
    """Service data was read, but not all of it made sense; the message names where. The raw payload is as it came."""


class CorpusWarning(UserWarning):
    """A file of a corpus was damaged. What can be made again from the raw payload was made again."""


class CorpusError(VoxframeError):
    """A corpus directory cannot be used."""


class LostAnswerError(CorpusError):
    """A language model was asked, perhaps paid, and its answer was lost; it is asked again only when told to."""


class ExportError(VoxframeError, OSError):
    """An export cannot be written; what was there before is as it was."""


class TranscriptError(VoxframeError):
    """A transcript whose status is "error".

    Args:
        transcript_id: Its identifier, or None.
        reason: The service's explanation.
    """

    def __init__(self, transcript_id: str | None, reason: str | None) -> None:
        super().__init__(f"transcript {transcript_id or '(no id)'} failed: {reason or 'the service gave no reason'}")
        self.transcript_id = transcript_id
        self.reason = reason


class ServiceError(VoxframeError):
    """The service, or the way to it, failed.

    Attributes:
        may_have_arrived: Whether the service may have acted on the request. Where it is False, asking again is safe
            even for a request that costs money.
    """

    may_have_arrived: bool = True


class ServiceUnreachableError(ServiceError, ConnectionError):
    """No connection to the service could be made or kept."""


class ServiceTimeoutError(ServiceError, TimeoutError):
    """The service did not answer in time, or a job was not finished in the time allowed."""


class APIError(ServiceError):
    """The service answered with an error status.

    Args:
        message: The service's own words, or a description of the answer.
        status: HTTP status code.
        method: HTTP method of the request.
        path: Path of the request, without the query.
        request_id: The service's identifier of the request, where it sent one.
    """

    def __init__(self, message: str, *, status: int, method: str, path: str, request_id: str | None = None) -> None:
        tail = f", request id {request_id}" if request_id else ""
        super().__init__(f"{message} (HTTP {status}, {method} {path}{tail})")
        self.status = status
        self.method = method
        self.path = path
        self.request_id = request_id


class BadRequestError(APIError):
    """400, and other refusals: the request is invalid."""

    may_have_arrived = False


class AuthenticationError(APIError):
    """401 or 403: the key is missing, invalid or not allowed to do this."""

    may_have_arrived = False


class NotFoundError(APIError, LookupError):
    """404: there is no such resource."""

    may_have_arrived = False


class RateLimitError(APIError):
    """429: too many requests. `retry_after` is in seconds, or None."""

    may_have_arrived = False
    retry_after: float | None = None


class ServerError(APIError):
    """500 and above: the service has a problem."""


class UnreadableAnswerError(APIError):
    """An answer that says success, but was cut short or is not what the interface describes."""


class StreamError(ServiceError):
    """A streaming session that did not end well. Everything received before it is kept in the session.

    Args:
        said: The service's own words, where it said something.
        code: Close code of the connection, or None.
        session_id: Identifier of the session, where it had begun.
    """

    meaning = "the service ended the session"
    advice = "The finals received so far are in the session's .finals; start another session to go on."

    def __init__(self, said: str | None = None, *, code: int | None = None, session_id: str | None = None) -> None:
        known = [f"close code {code}"] if code is not None else []
        known += [f"session {session_id}"] if session_id else []
        tail = f" ({', '.join(known)})" if known else ""
        words = f": {said.rstrip('. ')}" if said else ""
        super().__init__(f"{self.meaning}{words}{tail}. {self.advice}")
        self.said = said
        self.code = code
        self.session_id = session_id


class BadSampleRateError(StreamError):
    """4000: the sample rate cannot be used."""

    meaning = "the service does not take this sample rate"
    advice = "Give sample_rate as the rate of the audio in Hz, such as 16000."


class StreamAuthenticationError(StreamError):
    """4001: neither the key nor the token was accepted."""

    meaning = "the service did not accept the key or token of this session"
    advice = "Check the API key. A temporary token opens one session and expires: ask for another with client.token()."


class SessionNotFoundError(StreamError):
    """4004: the service knows no such session."""

    meaning = "the service knows no such session"


class SessionExpiredError(StreamError):
    """4008: the session lasted as long as a session may."""

    meaning = "the session has expired"


class SessionClosedError(StreamError):
    """4010: the session was closed before."""

    meaning = "the session was closed before"


class AudioTooFastError(StreamError):
    """4029: audio came faster than it is spoken, or than the service takes it."""

    meaning = "audio was sent faster than the service takes it"
    advice = "Leave realtime=True, which sends audio at the pace it was spoken."


class SessionIdleError(StreamError):
    """4031: no audio came for too long."""

    meaning = "no audio was sent for too long"
    advice = "A source that pauses should give silence meanwhile; start another session to go on."


class AudioTooShortError(StreamError):
    """4032: a message held too little audio."""

    meaning = "a message held too little audio"
    advice = "Check that sample_rate and encoding are those of the audio; 100 to 2000 ms are sent at a time."


class AudioTooLongError(StreamError):
    """4033: a message held too much audio."""

    meaning = "a message held too much audio"
    advice = "Check that sample_rate and encoding are those of the audio; 100 to 2000 ms are sent at a time."


class AudioUnreadableError(StreamError):
    """4034: the audio could not be decoded."""

    meaning = "the audio could not be decoded"
    advice = "Give raw mono samples in the encoding that was named (pcm_s16le or pcm_mulaw), or the path of a file."


class InvalidJSONError(StreamError):
    """4100: the service could not read a message as JSON."""

    meaning = "the service could not read a message as JSON"


class InvalidMessageError(StreamError):
    """4101: the service does not know such a message."""

    meaning = "the service does not take such a message"


class TooManyStreamsError(StreamError):
    """4102: too many sessions at once."""

    meaning = "too many sessions are open at once"
    advice = "Terminate one first, or wait until it has ended."


class BadWordBoostError(StreamError):
    """4104: the word boost could not be read."""

    meaning = "the service could not read word_boost"
    advice = "Give word_boost as a list of words, together at most 2500 characters."


class StreamUnavailableError(StreamError):
    """1013: the service cannot take a session at the moment."""

    meaning = "the service cannot take a session at the moment"
    advice = "Try again a little later; reconnect=True does so by itself."


class StreamCutError(StreamError, ConnectionError):
    """The connection broke, or the other side went silent, before the session was over."""

    meaning = "the connection was cut before the session was over"
    advice = (
        "The finals received so far are in the session's .finals; start another session to go on, or give "
        "reconnect=True to have that done when it happens."
    )


#: Error class of each close code of the interface.
STREAM_ERRORS: dict[int, type[StreamError]] = {
    4000: BadSampleRateError,
    4001: StreamAuthenticationError,
    4004: SessionNotFoundError,
    4008: SessionExpiredError,
    4010: SessionClosedError,
    4029: AudioTooFastError,
    4031: SessionIdleError,
    4032: AudioTooShortError,
    4033: AudioTooLongError,
    4034: AudioUnreadableError,
    4100: InvalidJSONError,
    4101: InvalidMessageError,
    4102: TooManyStreamsError,
    4104: BadWordBoostError,
    1013: StreamUnavailableError,
}
