"""Why a streaming session ended, as voxframe's errors: from close codes, error messages and refused handshakes."""

from __future__ import annotations

import socket

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from voxframe.errors import (
    STREAM_ERRORS,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    StreamCutError,
    StreamError,
)
from voxframe.service import embedded
from voxframe.service.answer import Answer, clean
from voxframe.service.faults import CONNECT_AGAIN, EMBEDDED_ENDED

#: Path of the socket below the streaming address.
PATH = "/v2/realtime/ws"

# Words that stand for a code in an error message, for when the connection is gone before its close code came.
_WORDS: tuple[tuple[str, int], ...] = (
    ("sample rate", 4000),
    ("authoriz", 4001),
    ("authoris", 4001),
    ("authentic", 4001),
    ("not found", 4004),
    ("expired", 4008),
    ("previously closed", 4010),
    ("too fast", 4029),
    ("idle", 4031),
    ("too short", 4032),
    ("too long", 4033),
    ("decode", 4034),
    ("transcode", 4034),
    ("invalid json", 4100),
    ("schema", 4101),
    ("number of allowed streams", 4102),
    ("too many", 4102),
    ("word boost", 4104),
    ("word_boost", 4104),
    ("temporary", 1013),
)
# Codes that say nothing of what happened: the connection was simply no longer there.
_SILENT = frozenset({1000, 1001, 1005, 1006})


def ended(
    code: int | None, reason: str | None, said: str | None, *, session_id: str | None, hidden: tuple[str, ...] = ()
) -> StreamError:
    """The error for a session that ended before it was over.

    Args:
        code: Close code that came, or None where none came.
        reason: Reason that came with it.
        said: Text of the error message before it, where there was one.
        session_id: The session.
        hidden: What must not be shown, such as the key.
    """
    words = said or reason or None
    if words is not None:
        for secret in hidden:
            words = words.replace(secret, "...")
        words = clean(words, 300) or None
    kind = STREAM_ERRORS.get(code) if code is not None else None
    if kind is None and words is not None:
        lower = words.lower()
        meant = next((meant for part, meant in _WORDS if part in lower), None)
        kind = STREAM_ERRORS[meant] if meant is not None else StreamError
    if kind is None:
        kind = StreamCutError if code is None or code in _SILENT or 1011 <= code <= 1014 else StreamError
    return kind(words, code=code, session_id=session_id)


def closed(
    error: ConnectionClosed, said: str | None, *, session_id: str | None, hidden: tuple[str, ...]
) -> StreamError:
    """The error for a connection that closed before the session was over."""
    if error.rcvd is not None:
        return ended(error.rcvd.code, error.rcvd.reason, said, session_id=session_id, hidden=hidden)
    if error.sent is not None and error.sent.code != 1000:
        return StreamError(f"its answer breaks the protocol ({error.sent.reason})", session_id=session_id)
    return ended(None, None, said, session_id=session_id, hidden=hidden)


def not_opened(error: Exception, host: str, hidden: tuple[str, ...]) -> ServiceError:
    """The error for a connection that could not be made. Nothing was sent but the request for it."""
    if isinstance(error, InvalidStatus):
        response = error.response
        body = bytes(response.body or b"")
        for secret in hidden:
            body = body.replace(secret.encode(), b"...")
        headers = {name.lower(): value for name, value in response.headers.raw_items()}
        if 300 <= response.status_code < 400:
            target = clean(headers.get("location", "nowhere").partition("?")[0], 200)
            return _unreachable(f"the service redirects to {target}", host, "Set stream_url to where the stream is")
        return Answer(response.status_code, headers, body, "GET", PATH).error()
    if isinstance(error, TimeoutError):
        return ServiceTimeoutError(
            f"{host} did not open the stream in time (GET {PATH}). Check stream_url and the network"
        )
    if isinstance(error, OSError) and embedded.has_ended(f"ws://{host}"):
        return _unreachable(EMBEDDED_ENDED, host, CONNECT_AGAIN)
    if isinstance(error, ConnectionRefusedError):
        reason = "connection refused"
    elif isinstance(error, socket.gaierror):
        reason = "the host is not known"
    elif isinstance(error, InvalidHandshake | InvalidURI | EOFError):
        reason = "what answers there is no WebSocket"
    else:
        reason = clean(getattr(error, "strerror", None) or type(error).__name__, 100)
    return _unreachable(reason, host, "Check stream_url and that the service runs")


def _unreachable(reason: str, host: str, advice: str) -> ServiceUnreachableError:
    error = ServiceUnreachableError(f"no streaming connection to {host}: {reason} (GET {PATH}). {advice}")
    error.may_have_arrived = False
    return error
