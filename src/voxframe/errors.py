"""All exceptions and warnings of voxframe, in one tree.

    VoxframeError
    ├── SettingsError(ValueError)          a setting is missing or invalid
    ├── OptionError(ValueError)            an option or argument is invalid; nothing was sent
    ├── AudioError(OSError)                audio cannot be read or sent
    │   └── AudioNotFoundError(FileNotFoundError)
    ├── MissingExtraError(ImportError)     an optional dependency is not installed
    ├── PayloadError(ValueError)           service data cannot be read at all
    ├── CorpusError                        a corpus directory cannot be used
    │   ├── DamagedFileError               a file of a corpus is damaged and cannot be rebuilt
    │   ├── NewerCorpusError(OSError)      a newer voxframe wrote the corpus, which is read-only for this one
    │   └── LostAnswerError                the response of a language model was lost
    ├── ExportError(OSError)               an export cannot be written
    ├── ModelError(OSError)                model files are missing, damaged or cannot be downloaded
    ├── TranscriptError                    a transcript has the status "error" (raise_for_status)
    └── ServiceError                       the service, or the connection to it, failed
        ├── ServiceUnreachableError(ConnectionError)
        ├── ServiceTimeoutError(TimeoutError)
        │   └── ResponseTooSlowError       a response began, but took too long
        ├── ResponseTooLargeError          a response has more bytes than allowed
        ├── StreamError                    a streaming session ended with an error: code, session_id
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
        │   └── StreamCutError(ConnectionError)  the connection broke or went silent
        └── APIError                       an HTTP error response: status, method, path, request_id
            ├── BadRequestError            400 and other rejections
            ├── AuthenticationError        401, 403
            ├── NotFoundError(LookupError) 404
            ├── RateLimitError             429, with retry_after
            ├── ServerError                500 and above
            └── UnreadableAnswerError      2xx, but truncated or not as the interface describes

    PayloadWarning(UserWarning)            service data was read, but an invalid value in it became null
    CorpusWarning(UserWarning)             a file of a corpus was damaged and has been rebuilt
    ExportWarning(UserWarning)             a format could not represent every value; the message counts them

Each message says what was given, what is allowed and what to do next. No message contains an API key.
"""

from __future__ import annotations

import sys

from voxframe._text import masked


class VoxframeError(Exception):
    """Base class of all errors that voxframe raises.

    Passwords and signatures in URLs are masked in the message. All subclasses can be pickled without loss, for example
    to pass them between processes.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(masked(arg) if isinstance(arg, str) else arg for arg in args))

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[VoxframeError], args: tuple[object, ...], state: dict[str, object]) -> VoxframeError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class SettingsError(VoxframeError, ValueError):
    """A setting is missing or invalid."""


class OptionError(VoxframeError, ValueError):
    """An option or argument is invalid. Raised before anything is uploaded or billed."""


class AudioError(VoxframeError, OSError):
    """Audio cannot be read or sent. Raised before anything is sent, or if a file changes during the upload."""


class AudioNotFoundError(AudioError, FileNotFoundError):
    """The audio file does not exist."""


class MissingExtraError(VoxframeError, ImportError):
    """An optional dependency is not installed.

    Args:
        extra: Name of the extra that installs it.
        purpose: The feature that needs it, in words.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs a dependency that is not installed; run: pip install 'voxframe[{extra}]'")
        self.extra = extra


class PayloadError(VoxframeError, ValueError):
    """Service data cannot be read, not even leniently."""


class PayloadWarning(UserWarning):
    """Service data was read, but some values are invalid. The message gives their paths; the raw payload is kept."""


class CorpusWarning(UserWarning):
    """A file of a corpus was damaged; everything derived from the raw payload has been rebuilt."""


class ExportWarning(UserWarning):
    """A file format could not represent every value. The message counts these values and says how they were written."""


class CorpusError(VoxframeError):
    """A corpus directory cannot be used."""


class DamagedFileError(CorpusError):
    """A raw payload in a corpus cannot be read, so its tables cannot be built. Other transcripts are not affected."""


class NewerCorpusError(CorpusError, OSError):
    """A newer version of voxframe wrote the corpus. This version can read it but not change it."""


class LostAnswerError(CorpusError):
    """The response to a language model request was lost. The request may be billed; refresh="lost" sends it again."""


class ExportError(VoxframeError, OSError):
    """An export cannot be written; an existing file is unchanged."""


class ModelError(VoxframeError, OSError):
    """Model files are missing, damaged or cannot be downloaded."""


class TranscriptError(VoxframeError):
    """A transcript has the status "error".

    Args:
        transcript_id: Id of the transcript, or None.
        reason: The service's explanation.
    """

    def __init__(self, transcript_id: str | None, reason: str | None) -> None:
        super().__init__(f"transcript {transcript_id or '(no id)'} failed: {reason or 'the service gave no reason'}")
        self.transcript_id = transcript_id
        self.reason = reason


class ServiceError(VoxframeError):
    """The service, or the connection to it, failed.

    Attributes:
        possibly_delivered: True if the service may have acted on the request. If False, it is safe to repeat even a
            request that costs money.
        retry_after: Seconds to wait before the next request, as requested by the service; None if it sent no value.
    """

    possibly_delivered: bool = True
    retry_after: float | None = None

    @property
    def transient(self) -> bool:
        """True if the same request may succeed later.

        Retries, polling, downloads, streams and batches all use this property. It does not say that repeating the
        request is safe: for a request that costs money, check `possibly_delivered` too.
        """
        return False


class ServiceUnreachableError(ServiceError, ConnectionError):
    """The connection to the service failed or was lost."""

    transient = True


class ServiceTimeoutError(ServiceError, TimeoutError):
    """The service did not respond in time, or a job did not finish in time."""

    transient = True


class ResponseTooSlowError(ServiceTimeoutError):
    """A response began but was not complete in time. A retry with the same time limit is unlikely to succeed."""

    transient = False


class ResponseTooLargeError(ServiceError):
    """A response has more bytes than allowed; the rest was not read."""


class APIError(ServiceError):
    """The service returned an error status.

    Args:
        message: The service's message, or a description of the response.
        status: HTTP status code.
        method: HTTP method of the request.
        path: Path of the request, without the query.
        request_id: The service's id of the request; None if it sent none.
    """

    def __init__(self, message: str, *, status: int, method: str, path: str, request_id: str | None = None) -> None:
        tail = f", request id {request_id}" if request_id else ""
        super().__init__(f"{message} (HTTP {status}, {method} {path}{tail})")
        self.status = status
        self.method = method
        self.path = path
        self.request_id = request_id

    @property
    def transient(self) -> bool:
        """True for 408, 425, 429 and every status from 500 on, except 501 and 505 ("not supported")."""
        return self.status in (408, 425, 429) or (self.status >= 500 and self.status not in (501, 505))


class BadRequestError(APIError):
    """400 and other rejections: the request is invalid."""

    possibly_delivered = False


class AuthenticationError(APIError):
    """401 or 403: the API key is missing, invalid or not permitted to do this."""

    possibly_delivered = False


class NotFoundError(APIError, LookupError):
    """404: the resource does not exist."""

    possibly_delivered = False


class RateLimitError(APIError):
    """429: too many requests. `retry_after` is in seconds, or None."""

    possibly_delivered = False


class ServerError(APIError):
    """500 and above: the service failed."""


class UnreadableAnswerError(APIError):
    """A response has a success status, but is truncated or not as the interface describes."""

    transient = True


class StreamError(ServiceError):
    """A streaming session ended with an error. Everything received before is kept in the session.

    Args:
        said: The service's message; None if it sent none.
        code: Close code of the connection, or None.
        session_id: Id of the session; None if it had not begun.
    """

    #: Close code of the interface that stands for this error; None if there is none.
    close_code: int | None = None
    meaning = "the service ended the session"
    advice = "The finals received so far are in the session's .finals; start another session to continue."

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
    """The sample rate is not supported."""

    close_code = 4000
    meaning = "the service does not accept this sample rate"
    advice = "Give sample_rate as the rate of the audio in Hz, such as 16000."


class StreamAuthenticationError(StreamError):
    """Neither the key nor the token was accepted."""

    close_code = 4001
    meaning = "the service did not accept the key or token of this session"
    advice = "Check the API key. A temporary token opens one session and expires; get a new one with client.token()."


class SessionNotFoundError(StreamError):
    """The session does not exist."""

    close_code = 4004
    meaning = "the service does not know this session"


class SessionExpiredError(StreamError):
    """The session reached its maximum duration."""

    close_code = 4008
    transient = True
    meaning = "the session has expired"


class SessionClosedError(StreamError):
    """The session is already closed."""

    close_code = 4010
    meaning = "the session is already closed"


class AudioTooFastError(StreamError):
    """Audio arrived faster than real time, or faster than the service accepts it."""

    close_code = 4029
    meaning = "audio was sent faster than the service accepts it"
    advice = "Keep realtime=True, which sends audio at the speed of speech."


class SessionIdleError(StreamError):
    """No audio arrived for too long."""

    close_code = 4031
    meaning = "no audio was sent for too long"
    advice = "A source that pauses must send silence; start another session to continue."


class AudioTooShortError(StreamError):
    """A message contained too little audio."""

    close_code = 4032
    meaning = "a message contained too little audio"
    advice = "Check that sample_rate and encoding match the audio; each message has 100 to 2000 ms."


class AudioTooLongError(StreamError):
    """A message contained too much audio."""

    close_code = 4033
    meaning = "a message contained too much audio"
    advice = "Check that sample_rate and encoding match the audio; each message has 100 to 2000 ms."


class AudioUnreadableError(StreamError):
    """The audio could not be decoded."""

    close_code = 4034
    meaning = "the audio could not be decoded"
    advice = "Send raw mono samples in the given encoding (pcm_s16le or pcm_mulaw), or pass the path of a file."


class InvalidJSONError(StreamError):
    """A message is not valid JSON."""

    close_code = 4100
    meaning = "the service could not read a message as JSON"


class InvalidMessageError(StreamError):
    """The service does not accept this message."""

    close_code = 4101
    meaning = "the service does not accept this message"


class TooManyStreamsError(StreamError):
    """Too many sessions are open at the same time."""

    close_code = 4102
    transient = True
    meaning = "too many sessions are open at the same time"
    advice = "Terminate one, or wait until one has ended."


class BadWordBoostError(StreamError):
    """The word boost is invalid."""

    close_code = 4104
    meaning = "the service could not read word_boost"
    advice = "Pass word_boost as a list of words with at most 2500 characters in total."


class StreamUnavailableError(StreamError):
    """The service cannot accept a session at the moment."""

    close_code = 1013
    transient = True
    meaning = "the service cannot accept a session at the moment"
    advice = "Try again later; with reconnect=True, voxframe does so."


class StreamCutError(StreamError, ConnectionError):
    """The connection broke, or the service went silent, before the session ended."""

    transient = True
    meaning = "the connection was cut before the session ended"
    advice = (
        "The finals received so far are in the session's .finals; start another session to continue, or pass "
        "reconnect=True to start one automatically."
    )


#: Error class of each close code of the interface.
STREAM_ERRORS: dict[int, type[StreamError]] = {
    kind.close_code: kind for kind in StreamError.__subclasses__() if kind.close_code is not None
}


def caller() -> int:
    """Return the `stacklevel` for a warning in the calling function: the nearest frame outside voxframe."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("voxframe."):
        level, frame = level + 1, frame.f_back
    return level
