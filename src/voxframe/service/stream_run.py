"""One streaming run on the portal's loop: connects, sends audio, receives messages, connects again where asked to."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from voxframe.errors import (
    STREAM_ERRORS,
    ServiceTimeoutError,
    ServiceUnreachableError,
    SessionExpiredError,
    StreamCutError,
    StreamError,
    StreamUnavailableError,
    VoxframeError,
)
from voxframe.service.pacing import Clock, Cutter, Feed, Pump
from voxframe.service.retry import backoff
from voxframe.service.stream_errors import PATH, closed, ended, not_opened
from voxframe.service.stream_life import Connection, Life
from voxframe.service.stream_log import MessageLog
from voxframe.service.stream_messages import Final, Gap, Message, SessionBegins, SessionTerminated, read
from voxframe.service.stream_sources import Samples
from voxframe.settings import Secret, is_loopback

_log = logging.getLogger(__name__)

# websockets writes request headers, and so the key, to its logger where debugging is on.
_UNLOGGED = logging.Logger("voxframe.websockets")  # noqa: LOG001 - it must not be reachable by a configuration
_UNLOGGED.disabled = True

_OPEN_SECONDS = 10.0
_FIRST_MESSAGE_SECONDS = 75.0  # a service that loads a large model takes its time
_LAST_MESSAGE_SECONDS = 60.0  # without a message, after the session was told to end
_CLOSE_SECONDS = 1.0
_LARGEST_MESSAGE = 16 << 20
_RECONNECTIONS = 6  # tries in a row
_AHEAD_SECONDS, _OUTSTANDING = 5.0, 2  # where nothing paces it: audio between two pings, and pings unanswered at most
_CONNECT_AGAIN = (StreamCutError, StreamUnavailableError, SessionExpiredError)


class _Connect(connect):
    """A connection to the address that was configured, and to no other."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Follow nothing: key and audio go where the user said."""
        return exc


@dataclass(frozen=True)
class Plan:
    """What a run is to do.

    Attributes:
        url: Streaming address.
        key: The API key, or None with a token.
        token: A temporary token, or None.
        query: Parameters of the connection.
        samples: The audio.
        encoding: Its encoding.
        message_ms: Audio in one message.
        realtime: Whether to send it at the pace it was spoken.
        silence_ms: Silence that ends an utterance, where the service's own is not wanted.
        reconnect: Whether to open another session where one is cut.
        keepalive_s: Seconds between signs of life.
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
    def silent_s(self) -> float:
        """Seconds without a sign of life after which a connection counts as cut.

        A service that is sent audio faster than it is spoken may be at work on it for a while before it reads on.
        """
        return self.keepalive_s * (2 if self.realtime else 6)

    @property
    def last_s(self) -> float:
        """Seconds to wait for each message once the session was told to end; there may be much audio left to hear."""
        return _LAST_MESSAGE_SECONDS * (1 if self.realtime else 5)

    @property
    def hidden(self) -> tuple[str, ...]:
        """What must not be shown."""
        return tuple(secret.reveal() for secret in (self.key, self.token) if secret is not None)


class Run:
    """A session, or several where reconnecting was asked for. All of it happens on the portal's loop.

    Args:
        plan: What to do.
        log: Where messages go.
        home: Loop an asynchronous source belongs to, or None.

    Attributes:
        session_id: The session under way, or the last one.
        sent_s: Audio sent, in seconds of the source.
        stopping: Whether the session was told to end.
    """

    def __init__(self, plan: Plan, log: MessageLog, home: asyncio.AbstractEventLoop | None) -> None:
        self._plan = plan
        self._log = log
        self._pump = Pump(plan.samples.chunks, home)
        self._cutter = Cutter(plan.samples.rate, plan.encoding, plan.message_ms)
        self._feed = Feed(self._pump, self._cutter)
        self._clock = Clock()
        self._silence_ms = plan.silence_ms
        self._socket: Connection | None = None
        self._sender: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._patience: asyncio.Timeout | None = None
        self._count = 0
        self._said: str | None = None
        self._covered_s = 0.0  # end of the last final, in the source
        self._begun_s = 0.0  # where in the source the session under way began
        self._gap_from_s: float | None = None  # while connecting again: where the gap begins
        self.session_id: str | None = None
        self.sent_s = 0.0
        self.stopping = False

    async def open(self) -> None:
        """Connect, wait for the session to begin, and go on in the background.

        Raises:
            ServiceError: The session did not begin.
        """
        try:
            await self._connect()
        except BaseException as error:
            self._log.end(error if isinstance(error, VoxframeError) else StreamCutError("it never began"))
            raise
        self._pump.start()
        self._task = asyncio.get_running_loop().create_task(self._main())

    async def ended(self) -> None:
        """Wait for the end of the run, however it comes."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Send no more audio; have the service finish what it has. Does not wait for that."""
        if self._task is None or self.stopping:
            return
        self.stopping = True
        self._pump.stop()
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
        await self._terminate()

    async def abort(self) -> None:
        """End the session at once; what the service has not sent yet is not waited for."""
        self.stopping = True
        self._pump.stop()
        if self._sender is not None:
            self._sender.cancel()
        await self._terminate()
        if self._task is not None:
            self._task.cancel()

    async def say(self, message: Mapping[str, Any]) -> None:
        """Send a message that is not audio.

        Raises:
            StreamCutError: The session is no longer open.
        """
        if "end_utterance_silence_threshold" in message:
            self._silence_ms = message["end_utterance_silence_threshold"]
        if self._socket is None or self._log.ended:
            raise StreamCutError("it is no longer open", session_id=self.session_id)
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed as error:
            raise closed(error, self._said, session_id=self.session_id, hidden=self._plan.hidden) from None

    async def _main(self) -> None:
        failure: BaseException | None = None
        try:
            while True:
                try:
                    await self._session()
                    break
                except _CONNECT_AGAIN as error:
                    if not self._plan.reconnect or self.stopping:
                        raise
                    await self._reconnect(error)
            failure = self._pump.error
        except asyncio.CancelledError:
            failure = StreamCutError("it was ended from here", session_id=self.session_id)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever reads the session
            failure = error
        finally:
            self._pump.stop()
            if self._sender is not None:
                self._sender.cancel()
            if self._socket is not None:
                await self._socket.close()
            self._log.end(failure)

    async def _connect(self) -> None:
        """Open a connection and wait for its first message."""
        plan = self._plan
        query = dict(plan.query) | ({"token": plan.token.reveal()} if plan.token is not None else {})
        host = urlsplit(plan.url).netloc
        self._said, self._count = None, 0
        self._begun_s = self.sent_s
        try:
            opened = await _Connect(
                f"{plan.url}{PATH}?{urlencode(query)}",
                additional_headers={"Authorization": plan.key.reveal()} if plan.key is not None else None,
                user_agent_header="voxframe",
                compression=None,  # audio does not get smaller
                open_timeout=_OPEN_SECONDS,
                ping_interval=None,  # `Life` asks for signs of life
                close_timeout=_CLOSE_SECONDS,
                max_size=_LARGEST_MESSAGE,
                logger=_UNLOGGED,
                create_connection=Connection,
                proxy=None if is_loopback(plan.url) else True,  # a proxy has no way to the service on this machine
            )
        except (OSError, TimeoutError, EOFError, WebSocketException) as error:
            raise not_opened(error, host, plan.hidden) from None
        assert isinstance(opened, Connection)
        self._socket = opened
        try:
            if self._silence_ms is not None:
                await self.say({"end_utterance_silence_threshold": self._silence_ms})
            async with asyncio.timeout(_FIRST_MESSAGE_SECONDS):
                while self._count == 0:
                    self._take(await self._socket.recv())
        except ConnectionClosed as error:
            raise closed(error, self._said, session_id=None, hidden=plan.hidden) from None
        except TimeoutError:
            await self._socket.close()
            raise ServiceTimeoutError(
                f"{host} opened a connection but began no session in {_FIRST_MESSAGE_SECONDS:.0f} s. Try again later"
            ) from None
        except asyncio.CancelledError:
            self._socket.transport.abort()
            raise

    async def _session(self) -> None:
        """Send and receive until the session under way is over."""
        assert self._socket is not None
        if self.stopping:
            await self._terminate()
        else:
            self._sender = asyncio.get_running_loop().create_task(self._send(self._socket))
        life = Life(self._socket, self._plan.keepalive_s, self._plan.silent_s)
        watch = asyncio.get_running_loop().create_task(life.watch())
        try:
            async with asyncio.timeout(None) as self._patience:
                while True:
                    message = self._take(await self._socket.recv())
                    self._wait_for_the_end()
                    if isinstance(message, SessionTerminated):
                        if self.stopping:
                            return
                        raise await self._unasked_end()
        except ConnectionClosed as error:
            if life.gone:
                raise StreamCutError("no sign of life from the service any more", session_id=self.session_id) from None
            over = self.stopping and self._said is None and error.rcvd is not None and error.rcvd.code in (1000, 1001)
            if not over:
                raise closed(error, self._said, session_id=self.session_id, hidden=self._plan.hidden) from None
        except TimeoutError:
            raise ServiceTimeoutError(
                f"the session was told to end, and nothing came for {self._plan.last_s:.0f} s; "
                "the finals received so far are in the session's .finals"
            ) from None
        finally:
            watch.cancel()
            self._patience = None
            if self._sender is not None:
                self._sender.cancel()

    def _wait_for_the_end(self) -> None:
        """Once the session was told to end, wait only so long for each message."""
        if self.stopping and self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time() + self._plan.last_s)

    async def _unasked_end(self) -> StreamError:
        """The error for a service that ends the session by itself: a close code that follows says why."""
        assert self._socket is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._socket.wait_closed(), _CLOSE_SECONDS)
        code, reason = self._socket.close_code, self._socket.close_reason
        if code not in STREAM_ERRORS:
            return StreamError("nobody asked it to", session_id=self.session_id)
        return ended(code, reason, self._said, session_id=self.session_id, hidden=self._plan.hidden)

    def _take(self, data: str | bytes) -> Message | None:
        """Write a message to the log. An error message is not one of them: it becomes the error."""
        offset_ms = round(self._begun_s * 1000)
        message = read(data, session_id=self.session_id, idx=self._count, offset_ms=offset_ms)
        if message.message_type is None and isinstance(message.raw.get("error"), str):
            self._said = message.raw["error"]
            return None
        if isinstance(message, SessionBegins):
            self.session_id = message.session_id
        if isinstance(message, Final) and message.end_ms is not None:
            self._covered_s = max(self._covered_s, self._begun_s + message.end_ms / 1000)
        if self._gap_from_s is not None:
            start_ms, self._gap_from_s = round(self._gap_from_s * 1000), None
            self._log.add(Gap({}, self.session_id, 0, offset_ms, start_ms=start_ms, end_ms=max(start_ms, offset_ms)))
        self._count += 1
        self._log.add(message)
        return message

    async def _send(self, to: Connection) -> None:
        """Send audio until the source ends; then the session is told to end."""
        unacknowledged: deque[Awaitable[float]] = deque()
        since_s = 0.0
        try:
            while (message := await self._feed.next()) is not None:
                length_s = len(message) / self._cutter.bytes_per_second
                if self._plan.realtime:
                    await asyncio.sleep(self._clock.wait_s(asyncio.get_running_loop().time(), length_s))
                elif (since_s := since_s + length_s) >= _AHEAD_SECONDS:
                    # The service answers a ping once it has read all that came before: buffers on the way stay small.
                    since_s = 0.0
                    unacknowledged.append(await to.ping())
                    if len(unacknowledged) > _OUTSTANDING:
                        await unacknowledged.popleft()
                await to.send(message)
                self._feed.sent()
                self.sent_s += length_s
        except ConnectionClosed:
            return  # whoever receives finds out why
        self.stopping = True
        await self._terminate()

    async def _terminate(self) -> None:
        with suppress(StreamError):  # whoever receives finds out why
            await self.say({"terminate_session": True})
        self._wait_for_the_end()

    async def _reconnect(self, cause: StreamError) -> None:
        """Open another session, or give up with what ended the last one."""
        _log.info("%s", cause)
        self._gap_from_s = max(self._covered_s, self._begun_s)
        for attempt in range(_RECONNECTIONS):
            await asyncio.sleep(backoff(attempt))
            if self.stopping:
                break
            try:
                await self._connect()
            except (StreamCutError, StreamUnavailableError, ServiceUnreachableError, ServiceTimeoutError) as error:
                _log.info("no other session yet: %s", error)
            else:
                return
        raise cause
