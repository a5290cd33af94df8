"""The WebSocket connection of a streaming session: open it, watch it, and map the ways it fails to voxframe errors."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException

from voxframe.client import embedded
from voxframe.client.failures import CONNECT_AGAIN, EMBEDDED_ENDED
from voxframe.client.response import HTTPResponse, clean
from voxframe.client.stream.stream_options import StreamPlan
from voxframe.errors import (
    STREAM_ERRORS,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    StreamCutError,
    StreamError,
)
from voxframe.settings import is_loopback

# websockets logs request headers, and so the key, at debug level.
_UNLOGGED = logging.Logger("voxframe.websockets")  # noqa: LOG001 - it must not be reachable by a configuration
_UNLOGGED.disabled = True

#: Seconds to wait for the closing handshake.
CLOSE_SECONDS = 1.0
_OPEN_SECONDS = 10.0
_MAX_MESSAGE_BYTES = 16 << 20


class StreamSocket(ClientConnection):
    """A WebSocket connection that records when the last bytes arrived.

    Any bytes prove that the service is there, not only the response to a ping. A service that is behind with the audio
    reads a ping after the audio before it, and sends transcripts or pings of its own meanwhile.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.received_at = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Record the time and pass the bytes on."""
        self.received_at = self.loop.time()
        super().data_received(data)


class _NoRedirects(connect):
    def process_redirect(self, exc: Exception) -> Exception | str:
        """Refuse redirects: the key and the audio only go to the configured URL."""
        return exc


async def open_socket(plan: StreamPlan) -> StreamSocket:
    """Open the WebSocket connection of a session."""
    query = dict(plan.query) | ({"token": plan.token.reveal()} if plan.token is not None else {})
    try:
        opened = await _NoRedirects(
            f"{plan.url}{PATH}?{urlencode(query)}",
            additional_headers={"Authorization": plan.key.reveal()} if plan.key is not None else None,
            user_agent_header="voxframe",
            compression=None,  # audio does not compress
            open_timeout=_OPEN_SECONDS,
            ping_interval=None,  # `KeepAlive` sends pings
            close_timeout=CLOSE_SECONDS,
            max_size=_MAX_MESSAGE_BYTES,
            logger=_UNLOGGED,
            create_connection=StreamSocket,
            proxy=None if is_loopback(plan.url) else True,  # a proxy cannot reach a server on this machine
        )
    except (OSError, TimeoutError, EOFError, WebSocketException) as error:
        raise not_opened(error, urlsplit(plan.url).netloc, plan.secrets) from None
    assert isinstance(opened, StreamSocket)
    return opened


class KeepAlive:
    """Sends pings and aborts a connection on which nothing arrives any more."""

    def __init__(self, socket: StreamSocket, interval_s: float, timeout_s: float) -> None:
        self._socket, self._interval_s, self._timeout_s = socket, interval_s, timeout_s
        self._loop = asyncio.get_running_loop()
        self.expired = False

    async def watch(self) -> None:
        """Send pings until the connection is closed or aborted."""
        while True:
            pinged_at = self._loop.time()
            # A ping is queued behind unsent audio. If it cannot be sent, the timeout counts as well.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    try:
                        await self._socket.ping()
                    except ConnectionClosed:
                        return
            await asyncio.sleep(pinged_at + self._interval_s - self._loop.time())
            if self._loop.time() - self._socket.received_at > self._timeout_s:
                self.expired = True
                self._socket.transport.abort()
                return


#: Path of the socket below the streaming URL.
PATH = "/v2/realtime/ws"

# Words of error messages and their codes, for connections that are lost before the close code arrives.
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
# Codes without a reason: the connection was lost.
_SILENT = frozenset({1000, 1001, 1005, 1006})


def ended(
    code: int | None,
    reason: str | None,
    error_text: str | None,
    *,
    session_id: str | None,
    secrets: tuple[str, ...] = (),
) -> StreamError:
    """Return the error for a session that ended early."""
    words = error_text or reason or None
    if words is not None:
        for secret in secrets:
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
    error: ConnectionClosed, error_text: str | None, *, session_id: str | None, secrets: tuple[str, ...]
) -> StreamError:
    """Return the error for a connection that closed before the session ended."""
    if error.rcvd is not None:
        return ended(error.rcvd.code, error.rcvd.reason, error_text, session_id=session_id, secrets=secrets)
    if error.sent is not None and error.sent.code != 1000:
        return StreamError(f"the service violated the protocol ({error.sent.reason})", session_id=session_id)
    return ended(None, None, error_text, session_id=session_id, secrets=secrets)


def not_opened(error: Exception, host: str, secrets: tuple[str, ...]) -> ServiceError:
    """Return the error for a connection that could not be opened. No audio was sent."""
    if isinstance(error, OSError | InvalidHandshake | ConnectionClosed) and embedded.has_ended(f"ws://{host}"):
        return _unreachable(EMBEDDED_ENDED, host, CONNECT_AGAIN)  # what another program on its port says does not help
    if isinstance(error, InvalidStatus):
        response = error.response
        body = bytes(response.body or b"")
        for secret in secrets:
            body = body.replace(secret.encode(), b"...")
        headers = {name.lower(): value for name, value in response.headers.raw_items()}
        if 300 <= response.status_code < 400:
            target = clean(headers.get("location", "nowhere").partition("?")[0], 200)
            return _unreachable(f"the service redirects to {target}", host, "Set stream_url to the URL it redirects to")
        return HTTPResponse(response.status_code, headers, body, "GET", PATH).error()
    if isinstance(error, TimeoutError):
        return ServiceTimeoutError(
            f"{host} did not open the stream in time (GET {PATH}). Check stream_url and the network"
        )
    if isinstance(error, ConnectionRefusedError):
        reason = "connection refused"
    elif isinstance(error, socket.gaierror):
        reason = "the host cannot be found"
    elif isinstance(error, InvalidHandshake | InvalidURI | EOFError):
        reason = "the server there does not support WebSocket"
    else:
        reason = clean(getattr(error, "strerror", None) or type(error).__name__, 100)
    return _unreachable(reason, host, "Check stream_url and that the service is running")


def _unreachable(reason: str, host: str, advice: str) -> ServiceUnreachableError:
    error = ServiceUnreachableError(f"no streaming connection to {host}: {reason} (GET {PATH}). {advice}")
    error.possibly_delivered = False
    return error
