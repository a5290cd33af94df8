"""Everything voxframe raises, in one tree.

    VoxframeError
    ├── SettingsError(ValueError)          a setting is missing or cannot be used
    ├── OptionError(ValueError)            an option or argument is wrong; nothing was sent
    ├── AudioError(OSError)                audio that cannot be read or sent; nothing was sent
    │   └── AudioNotFoundError(FileNotFoundError)
    ├── MissingExtraError(ImportError)     an optional part is not installed
    ├── PayloadError(ValueError)           service data that cannot be read at all
    ├── CorpusError                        a corpus directory cannot be used
    ├── TranscriptError                    a transcript whose status is "error" (raise_for_status)
    └── ServiceError                       the service, or the way to it
        ├── ServiceUnreachableError(ConnectionError)
        ├── ServiceTimeoutError(TimeoutError)
        └── APIError                       an HTTP answer of no use: status, method, path, request_id
            ├── BadRequestError            400, and other refusals
            ├── AuthenticationError        401, 403
            ├── NotFoundError(LookupError) 404
            ├── RateLimitError             429, with retry_after
            ├── ServerError                500 and above
            └── UnreadableAnswerError      2xx, but cut short or not what the interface says

Each message says what was given, what is allowed and what to do next, and none holds a key.
"""

from __future__ import annotations


class VoxframeError(Exception):
    """Base of every error voxframe raises on purpose."""


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


class CorpusError(VoxframeError):
    """A corpus directory cannot be used."""


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
