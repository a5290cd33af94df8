"""Everything voxframe raises, in one tree.

    VoxframeError
    ├── SettingsError(ValueError)          a setting is missing or cannot be used
    ├── OptionError(ValueError)            an option of a job is wrong; nothing was sent
    ├── MissingExtraError(ImportError)     an optional part is not installed
    ├── PayloadError(ValueError)           service data that cannot be read at all
    ├── CorpusError                        a corpus directory cannot be used
    ├── TranscriptError                    a transcript whose status is "error" (raise_for_status)
    └── ServiceError                       the service, or the way to it
        ├── ServiceUnreachableError(ConnectionError)
        ├── ServiceTimeoutError(TimeoutError)
        └── APIError                       an HTTP answer that is not 2xx: status, method, path, request_id
            ├── BadRequestError            400
            ├── AuthenticationError        401
            ├── NotFoundError(LookupError) 404
            ├── RateLimitError             429, with retry_after
            └── ServerError                500 and above

Each message says what was given, what is allowed and what to do next, and none holds a key.
"""

from __future__ import annotations


class VoxframeError(Exception):
    """Base of every error voxframe raises on purpose."""


class SettingsError(VoxframeError, ValueError):
    """A setting is missing or cannot be used."""


class OptionError(VoxframeError, ValueError):
    """An option of a transcription job is wrong. Raised before anything is uploaded or paid for."""


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
    """The service, or the way to it, failed."""


class ServiceUnreachableError(ServiceError, ConnectionError):
    """No connection to the service could be made or kept."""


class ServiceTimeoutError(ServiceError, TimeoutError):
    """The service did not answer in time."""


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
    """400: the request is invalid."""


class AuthenticationError(APIError):
    """401: the key is missing or invalid."""


class NotFoundError(APIError, LookupError):
    """404: there is no such resource."""


class RateLimitError(APIError):
    """429: too many requests. `retry_after` is in seconds, or None."""

    retry_after: float | None = None


class ServerError(APIError):
    """500 and above: the service has a problem."""
