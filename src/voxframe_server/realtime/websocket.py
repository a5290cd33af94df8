"""GET /v2/realtime/ws: the streaming socket. It enforces the limits of sessions and connects their processes.

A process per session detects speech and writes messages (`stream_worker`). All sessions share the processes that decode
it (`decode_pool`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import signal
import sys
import time
import uuid
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from voxframe.settings import cores
from voxframe_engine.speech import engines
from voxframe_engine.speech.engines import DEFAULT_CHOICE, EngineChoice
from voxframe_server import realtime
from voxframe_server.realtime import SessionRefusedError, StreamParameters, TokenStore, record_of
from voxframe_server.realtime.decode_pool import DecodeError, DecodePool

_log = logging.getLogger("voxframe_server")

_MOST_WAITING = 10_000  # messages; the audio allowed ahead of real time is at most 6,000 messages
_STOP_SECONDS = 2.0
_READY_SECONDS = 60.0
_AHEAD_S = 2.0  # audio that is further ahead of real time is decoded when there is time
_MOST_UNDECODED = 30 * 32_000  # bytes: 30 s of samples
_STOPPED = "Temporary server condition: the speech engine stopped; the log of the service may say why"


@dataclass(frozen=True)
class StreamLimits:
    """Limits of streaming.

    Attributes:
        sessions: Maximum number of sessions. In speech without pauses, a session uses up to half a core.
        idle_s: Maximum time without a message from the client, in seconds.
        session_s: Maximum duration of a session in seconds.
        ahead_s: Seconds of audio that a client may send faster than real time. Such audio is held in memory and
            recognized as fast as possible.
        behind_s: Maximum delay of recognition behind real time, in seconds.
    """

    sessions: int = 2 * cores()
    idle_s: float = 60.0
    session_s: float = 3 * 3600.0
    ahead_s: float = 600.0
    behind_s: float = 15.0


class StreamEndpoint:
    """The streaming sessions of a server process."""

    def __init__(
        self, key: str, tokens: TokenStore, limits: StreamLimits | None = None, choice: EngineChoice = DEFAULT_CHOICE
    ) -> None:
        self._key = key.encode()
        self._tokens = tokens
        # An engine that uses all cores serves one session at a time.
        self._limits = limits or (StreamLimits(sessions=1) if choice.uses_all_cores else StreamLimits())
        self._engine = choice.engine
        # The fast model: a session must keep up with the speaker.
        model = choice.model("nano") or engines.default_model(choice.engine, "nano", "en")
        self._pool = DecodePool(choice.engine, model, 1 if choice.uses_all_cores else cores())
        self._open = 0

    async def endpoint(self, socket: WebSocket) -> None:
        """Serve a connection."""
        await socket.accept()
        try:
            await self._serve(socket)
        except SessionRefusedError as refused:
            _log.info("stream: %d %s", refused.code, refused.message)
            await _end(socket, refused)
        except WebSocketDisconnect:
            pass

    async def close(self) -> None:
        """End the processes that decode speech."""
        await self._pool.close()

    async def _serve(self, socket: WebSocket) -> None:
        """Serve a session. Its token is used up only if the session starts."""
        token = socket.query_params.get("token")
        expiry = self._tokens.take(token) if token else None
        session = None
        try:
            authorization = socket.headers.get("authorization", "").encode("latin-1", "replace")
            if expiry is None if token else not hmac.compare_digest(authorization, self._key):
                raise SessionRefusedError(4001, "Not authorized")
            parameters = StreamParameters.of(socket.query_params)
            if self._open >= self._limits.sessions:
                raise SessionRefusedError(4102, f"Too many streams: this service takes {self._limits.sessions} at once")
            session = _StreamSession(socket, parameters, self._limits, self._engine, self._pool)
            self._open += 1
            try:
                async with self._pool.session():
                    await session.run()
            except DecodeError:
                raise SessionRefusedError(1013, _STOPPED) from None
            finally:
                self._open -= 1
        finally:
            if token and expiry is not None and not (session and session.started):
                self._tokens.give_back(token, expiry)


async def _end(socket: WebSocket, refused: SessionRefusedError) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the client is gone already
            await socket.send_json({"error": refused.message})
            await socket.close(refused.code, refused.message[:120])


class _StreamSession:
    """A session. `started` is True once the client was told that it begins."""

    def __init__(
        self, socket: WebSocket, parameters: StreamParameters, limits: StreamLimits, engine: str, pool: DecodePool
    ) -> None:
        self._socket = socket
        self._parameters = parameters
        self._limits = limits
        self._engine = engine
        self._pool = pool
        self._audio_s = 0.0
        self._begun = self._played = time.monotonic()
        # Records that the process has not read yet, with the time at which their audio ends in real time.
        self._waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._terminating = False
        self._decodes: set[asyncio.Future[bytes]] = set()  # requested and not done
        self._partial: asyncio.Future[bytes] | None = None  # the latest one for a partial
        self._undecoded = 0  # bytes of samples of all finals that are not decoded yet
        self._room = asyncio.Event()  # set if few samples are not decoded yet
        self._room.set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.started = False

    async def run(self) -> None:
        """Serve the session to its end."""
        parameters = self._parameters
        partials = "1" if parameters.partials else "0"
        arguments = (str(parameters.rate), parameters.encoding, self._engine, partials, str(os.getpid()))
        try:
            listener = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "voxframe_server.realtime.stream_worker", *arguments),
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # Ctrl-C is handled by the server, which ends its sessions in order
            )
        except OSError as error:
            raise SessionRefusedError(
                1013, f"Temporary server condition: no process could be started ({error})"
            ) from error
        session_id, expiry = str(uuid.uuid4()), datetime.now(UTC) + timedelta(seconds=self._limits.session_s)
        try:
            await self._wait_until_ready(listener)
            await self._say(
                message_type="SessionBegins",
                session_id=session_id,
                expires_at=expiry.replace(tzinfo=None).isoformat(timespec="microseconds"),
            )
            self.started = True
            _log.info("stream %s: begins", session_id)
            await self._serve(listener)
        finally:
            _log.info("stream %s: ended after %.1f s of audio", session_id, self._audio_s)
            await _stop(listener)

    async def _wait_until_ready(self, listener: Process) -> None:
        assert listener.stdout is not None
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await realtime.read_record(listener.stdout)
        except (TimeoutError, asyncio.IncompleteReadError):
            raise SessionRefusedError(1013, _STOPPED) from None

    async def _serve(self, listener: Process) -> None:
        tasks = [asyncio.create_task(work) for work in (self._receive(), self._feed(listener), self._tell(listener))]
        try:
            done, _ = await asyncio.wait([*tasks, self._failed], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            self._failed.cancel()
            for future in [*self._decodes]:
                self._pool.drop(future)
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, listener: Process) -> None:
        """Forward messages to the client and requests to the pool, and end the session after the last message."""
        assert listener.stdout is not None
        while True:
            try:
                kind, data = await realtime.read_record(listener.stdout)
            except asyncio.IncompleteReadError:
                raise SessionRefusedError(1013, _STOPPED) from None
            if kind == realtime.MESSAGE:
                await self._socket.send_text(data.decode())
            elif kind == realtime.DECODE:
                self._decode(listener, data)
            elif kind == realtime.DONE:
                if self._parameters.information:
                    await self._say(message_type="SessionInformation", audio_duration_seconds=round(self._audio_s, 3))
                await self._say(message_type="SessionTerminated")
                await self._socket.close()
                return

    def _decode(self, listener: Process, data: bytes) -> None:
        """Request a decode, and write its result to the process of the session."""
        assert listener.stdin is not None
        stdin = listener.stdin
        number, priority, samples = realtime.unpack_request(data)
        # Audio that was sent ahead of real time is not urgent: other sessions have live speakers.
        later = self._played > time.monotonic() + _AHEAD_S
        future = self._pool.decode(priority, self._parameters.boost, samples, later=later)
        self._decodes.add(future)
        if priority == realtime.FINAL:
            if self._partial is not None:
                self._pool.drop(self._partial)  # of the same speech, or of earlier speech
            self._undecoded += len(samples)
            self._room.clear() if self._undecoded > _MOST_UNDECODED else self._room.set()
        else:
            self._partial = future

        def note(done: asyncio.Future[bytes]) -> None:
            self._decodes.discard(done)
            if priority == realtime.FINAL:
                self._undecoded -= len(samples)
                if self._undecoded <= _MOST_UNDECODED:
                    self._room.set()
            error = None if done.cancelled() else done.exception()
            if error is None:
                words = b"null" if done.cancelled() else done.result()
                stdin.write(realtime.pack(realtime.WORDS, b"[%d,%b]" % (number, words)))
            elif not self._failed.done():
                self._failed.set_exception(error)

        future.add_done_callback(note)

    async def _receive(self) -> None:
        """Receive messages at once, because a client whose pings wait behind its audio considers the server dead.

        Messages after the request to terminate are discarded.
        """
        while True:
            message = await self._next()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            if self._terminating:
                continue
            data = message.get("bytes")
            kind, data = (realtime.AUDIO, data) if data is not None else record_of(message.get("text") or "")
            if kind == realtime.AUDIO:
                self._note(self._parameters.seconds(data))
            if self._waiting.qsize() >= _MOST_WAITING:
                raise SessionRefusedError(
                    4029, f"Client sent messages too fast: {_MOST_WAITING} of them wait to be processed"
                )
            self._terminating = kind == realtime.TERMINATE
            self._waiting.put_nowait((self._played, realtime.pack(kind, data)))

    async def _next(self) -> Any:
        remaining = self._limits.session_s - (time.monotonic() - self._begun)
        try:
            async with asyncio.timeout(None if self._terminating else min(self._limits.idle_s, max(0.0, remaining))):
                return await self._socket.receive()
        except TimeoutError:
            if remaining <= self._limits.idle_s:
                raise SessionRefusedError(4008, "Session expired") from None
            raise SessionRefusedError(
                4031, f"Session idle for too long: no message arrived for {self._limits.idle_s:g} s"
            ) from None

    def _note(self, seconds: float) -> None:
        now = time.monotonic()
        self._audio_s += seconds
        self._played = max(self._played, now) + seconds
        if self._audio_s - (now - self._begun) > self._limits.ahead_s:
            raise SessionRefusedError(4029, "Client sent audio too fast")

    async def _feed(self, listener: Process) -> None:
        """Forward queued records as fast as the process of the session reads them and its finals are decoded."""
        assert listener.stdin is not None
        # No buffer besides the pipe, which holds a few seconds.
        listener.stdin.transport.set_write_buffer_limits(0)
        while True:
            played, record = await self._waiting.get()
            try:
                async with asyncio.timeout(max(0.0, played + self._limits.behind_s - time.monotonic())):
                    await self._room.wait()
                    listener.stdin.write(record)
                    await listener.stdin.drain()
            except TimeoutError:
                raise SessionRefusedError(
                    1013,
                    "Temporary server condition: this machine is too busy to keep up, recognition is more than "
                    f"{self._limits.behind_s:g} s late; try again with fewer sessions or jobs at once",
                ) from None
            except ConnectionError:
                await asyncio.sleep(_STOP_SECONDS)  # it has ended; `_tell` notices and reports it
                return

    async def _say(self, **message: object) -> None:
        await self._socket.send_text(orjson.dumps(message).decode())


async def _stop(listener: Process) -> None:
    """Kill the worker process and its children; their work is complete or no longer needed."""
    assert listener.stdin is not None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(listener.pid, signal.SIGKILL)
        else:
            listener.kill()
    listener.stdin.close()
    await listener.wait()
