"""The WebSocket of a streaming session, on the portal's loop: it sends audio, receives messages and reconnects."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException

from voxframe.client import embedded
from voxframe.client.async_bridge import LONGEST_WAIT_S
from voxframe.client.http import CONNECT_AGAIN, EMBEDDED_ENDED, wait_after
from voxframe.client.response import HTTPResponse, clean
from voxframe.client.stream.audio import Chunker, MessageQueue, Pacer, SourceReader
from voxframe.client.stream.messages import Final, Gap, Message, MessageBuffer, SessionBegins, SessionTerminated, read
from voxframe.client.stream.stream_options import StreamPlan
from voxframe.errors import (
    STREAM_ERRORS,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    StreamCutError,
    StreamError,
    VoxframeError,
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


_log = logging.getLogger(__name__)

_FIRST_MESSAGE_SECONDS = 75.0  # the service may have to load a large model
_MAX_RECONNECTIONS = 6  # failed attempts and sessions in a row
_WORKING_SECONDS = 5.0  # a session that received this much audio did not fail
# If audio is not sent in real time: audio between two pings, and maximum number of pings without a response.
_PING_EVERY_SECONDS, _MAX_PENDING_PINGS = 5.0, 2


class StreamConnection:
    """A session, or several if it reconnects. Everything runs on the portal's loop."""

    def __init__(self, plan: StreamPlan, buffer: MessageBuffer, home: asyncio.AbstractEventLoop | None) -> None:
        self._plan = plan
        self._buffer = buffer
        self._reader = SourceReader(plan.samples.chunks, home)
        self._chunker = Chunker(plan.samples.rate, plan.encoding, plan.message_ms)
        self._outgoing = MessageQueue(self._reader, self._chunker)
        self._pacer = Pacer()
        self._silence_ms = plan.silence_ms
        self._socket: StreamSocket | None = None
        self._send_task: asyncio.Task[None] | None = None
        self._main_task: asyncio.Task[None] | None = None
        self._end_timeout: asyncio.Timeout | None = None
        self._count = 0
        self._failures = 0  # failed attempts and sessions in a row
        self._error_text: str | None = None
        self._covered_s = 0.0  # end of the last final, in the source
        self._offset_s = 0.0  # start of the current session, in the source
        self._gap_from_s: float | None = None  # start of the gap while reconnecting
        self.session_id: str | None = None
        self.sent_s = 0.0
        self.stopping = False

    async def open(self) -> None:
        """Connect, wait for the session to begin, and continue in the background."""
        try:
            await self._connect()
        except BaseException as error:
            self._buffer.end(error if isinstance(error, VoxframeError) else StreamCutError("it never began"))
            raise
        self._reader.start()
        self._main_task = asyncio.get_running_loop().create_task(self._main())

    async def ended(self) -> None:
        """Wait until the session has ended, successfully or not."""
        if self._main_task is not None:
            await asyncio.wait([self._main_task])

    async def stop(self) -> None:
        """Stop sending audio and tell the service to finish, without waiting for it."""
        if self._main_task is None or self.stopping:
            return
        self.stopping = True
        self._reader.stop()
        if self._send_task is not None:
            self._send_task.cancel()
            await asyncio.wait([self._send_task])
        await self._terminate()

    async def abort(self) -> None:
        """End the session immediately, without waiting for further messages."""
        self.stopping = True
        self._reader.stop()
        if self._send_task is not None:
            self._send_task.cancel()
        await self._terminate()
        if self._main_task is not None:
            self._main_task.cancel()

    async def send_json(self, message: Mapping[str, Any]) -> None:
        """Send a message that is not audio."""
        if "end_utterance_silence_threshold" in message:
            self._silence_ms = message["end_utterance_silence_threshold"]
        if self._socket is None or self._buffer.ended:
            raise StreamCutError("it is no longer open", session_id=self.session_id)
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed as error:
            raise closed(error, self._error_text, session_id=self.session_id, secrets=self._plan.secrets) from None

    async def _main(self) -> None:
        failure: BaseException | None = None
        try:
            while True:
                try:
                    await self._session()
                    break
                except ServiceError as error:
                    if not error.transient or not self._plan.reconnect or self.stopping:
                        raise
                    await self._reconnect(error)
            failure = self._reader.error
        except asyncio.CancelledError:
            failure = StreamCutError("it was aborted by this client", session_id=self.session_id)
        except Exception as error:  # noqa: BLE001 - raised to the reader of the session
            failure = error
        finally:
            self._reader.stop()
            if self._send_task is not None:
                self._send_task.cancel()
            try:
                if self._socket is not None:
                    await self._socket.close()
            finally:  # at the end of the process, closing is cancelled as well
                if self._socket is not None:
                    self._socket.transport.abort()
                self._buffer.end(failure)

    async def _connect(self) -> None:
        """Open a connection and wait for the first message."""
        plan = self._plan
        host = urlsplit(plan.url).netloc
        self._error_text, self._count = None, 0
        self._offset_s = self.sent_s
        self._socket = await open_socket(plan)
        try:
            if self._silence_ms is not None:
                await self.send_json({"end_utterance_silence_threshold": self._silence_ms})
            async with asyncio.timeout(_FIRST_MESSAGE_SECONDS):
                while self._count == 0:
                    self._receive(await self._socket.recv())
        except ConnectionClosed as error:
            if embedded.has_ended(plan.url):  # another program on its port refused the session
                raise not_opened(error, urlsplit(plan.url).netloc, plan.secrets) from None
            raise closed(error, self._error_text, session_id=None, secrets=plan.secrets) from None
        except TimeoutError:
            await self._socket.close()
            raise ServiceTimeoutError(
                f"{host} opened a connection but began no session in {_FIRST_MESSAGE_SECONDS:.0f} s. Try again later"
            ) from None
        except asyncio.CancelledError:
            self._socket.transport.abort()
            raise

    async def _session(self) -> None:
        """Send and receive until the current session ends."""
        assert self._socket is not None
        if self.stopping:
            await self._terminate()
        else:
            self._send_task = asyncio.get_running_loop().create_task(self._send(self._socket))
        keepalive = KeepAlive(self._socket, self._plan.keepalive_s, self._plan.keepalive_timeout_s)
        watch = asyncio.get_running_loop().create_task(keepalive.watch())
        try:
            async with asyncio.timeout(None) as self._end_timeout:
                while True:
                    message = self._receive(await self._socket.recv())
                    self._limit_wait()
                    if isinstance(message, SessionTerminated):
                        if self.stopping:
                            return
                        raise await self._unexpected_end()
        except ConnectionClosed as error:
            if keepalive.expired:
                raise StreamCutError("the service no longer responds", session_id=self.session_id) from None
            over = (
                self.stopping
                and self._error_text is None
                and error.rcvd is not None
                and error.rcvd.code in (1000, 1001)
            )
            if not over:
                raise closed(error, self._error_text, session_id=self.session_id, secrets=self._plan.secrets) from None
        except TimeoutError:
            raise ServiceTimeoutError(
                f"the session was told to end, and no message arrived for {self._plan.end_timeout_s:.0f} s; "
                "the finals received so far are in the session's .finals"
            ) from None
        finally:
            watch.cancel()
            self._end_timeout = None
            if self._send_task is not None:
                self._send_task.cancel()

    def _limit_wait(self) -> None:
        """Limit the time to the next message once the session was told to end."""
        if self.stopping and self._end_timeout is not None:
            self._end_timeout.reschedule(asyncio.get_running_loop().time() + self._plan.end_timeout_s)

    async def _unexpected_end(self) -> StreamError:
        """Return the error for a session ended by the service. A close code that follows gives the reason."""
        assert self._socket is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._socket.wait_closed(), CLOSE_SECONDS)
        code, reason = self._socket.close_code, self._socket.close_reason
        if code not in STREAM_ERRORS and not (reason or self._error_text):
            return StreamError(session_id=self.session_id)
        return ended(code, reason, self._error_text, session_id=self.session_id, secrets=self._plan.secrets)

    def _receive(self, data: str | bytes) -> Message | None:
        """Add a message to the buffer. An error message is kept as the reason for the error that follows."""
        offset_ms = round(self._offset_s * 1000)
        message = read(data, session_id=self.session_id, idx=self._count, offset_ms=offset_ms)
        if message.message_type is None and isinstance(message.raw.get("error"), str):
            self._error_text = message.raw["error"]
            return None
        if isinstance(message, SessionBegins):
            self.session_id = message.session_id
        if isinstance(message, Final) and message.end_ms is not None:
            self._covered_s = max(self._covered_s, self._offset_s + message.end_ms / 1000)
        if self._gap_from_s is not None:
            start_ms, self._gap_from_s = round(self._gap_from_s * 1000), None
            self._buffer.add(Gap({}, self.session_id, 0, offset_ms, start_ms=start_ms, end_ms=max(start_ms, offset_ms)))
        self._count += 1
        self._buffer.add(message)
        return message

    async def _send(self, socket: StreamSocket) -> None:
        """Send audio until the source ends, then tell the session to end."""
        pending_pings: deque[Awaitable[float]] = deque()
        unpinged_s = 0.0
        try:
            while (message := await self._outgoing.next()) is not None:
                length_s = len(message) / self._chunker.bytes_per_second
                if self._plan.realtime:
                    await asyncio.sleep(self._pacer.wait_s(asyncio.get_running_loop().time(), length_s))
                elif (unpinged_s := unpinged_s + length_s) >= _PING_EVERY_SECONDS:
                    # The service responds to a ping after it has read the audio before it, so buffers stay small.
                    unpinged_s = 0.0
                    pending_pings.append(await socket.ping())
                    if len(pending_pings) > _MAX_PENDING_PINGS:
                        await pending_pings.popleft()
                await socket.send(message)
                self._outgoing.pop()
                self.sent_s += length_s
        except ConnectionClosed:
            return  # the receiving side raises the reason
        self.stopping = True
        await self._terminate()

    async def _terminate(self) -> None:
        with suppress(StreamError):  # the receiving side raises the reason
            await self.send_json({"terminate_session": True})
        self._limit_wait()

    async def _reconnect(self, cause: ServiceError) -> None:
        """Open another session, or raise the error that ended the last one."""
        self._gap_from_s = max(self._covered_s, self._offset_s)
        if self.sent_s - self._offset_s >= _WORKING_SECONDS:
            self._failures = 0
        error = cause
        while True:
            _log.info("reconnecting the stream: %s", error)
            wait_s = wait_after(error, self._failures, most=_MAX_RECONNECTIONS + 1)
            if wait_s is None:
                raise cause
            self._failures += 1
            await asyncio.sleep(min(wait_s, LONGEST_WAIT_S))
            if self.stopping:
                raise cause
            try:
                await self._connect()
            except ServiceError as failed:
                if not failed.transient:
                    raise
                error = failed
            else:
                return
