"""GET /v2/realtime/ws: the streaming socket. It keeps the order and the limits; a process for each session listens."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
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

from voxframe.local import engines, records
from voxframe.local.engines import configured
from voxframe.local.engines.configured import Choice
from voxframe.local.runner import cores
from voxframe.local.stream_asked import Asked, RefusedError, record_of
from voxframe.local.tokens import Tokens

_log = logging.getLogger("voxframe.local")

_LONGEST_LINE = 1 << 22
_STOP_SECONDS = 2.0
_READY_SECONDS = 60.0  # a large model takes its time


@dataclass(frozen=True)
class Limits:
    """Limits of streaming.

    Attributes:
        sessions: Sessions at once. One takes a third of a core while somebody speaks, half of that without partials.
        idle_s: Seconds without a message of the client.
        session_s: Seconds a session may last.
        ahead_s: Seconds of audio a client may have sent more than seconds have passed. Up to there audio is taken, and
            recognised as fast as can be; what waits is held in memory.
        behind_s: Seconds that audio may wait to be heard after it would have been spoken.
    """

    sessions: int = 2 * cores()
    idle_s: float = 60.0
    session_s: float = 3 * 3600.0
    ahead_s: float = 600.0
    behind_s: float = 15.0


class Streaming:
    """The sessions of one service process.

    Args:
        key: The service's key.
        tokens: Temporary tokens.
        limits: Limits.
        choice: The speech engine and its model.
    """

    def __init__(
        self, key: str, tokens: Tokens, limits: Limits | None = None, choice: Choice = configured.DEFAULT
    ) -> None:
        self._key = key.encode()
        self._tokens = tokens
        # An engine that keeps the machine busy follows one speaker at a time.
        self._limits = limits or (Limits(sessions=1) if engines.uses_all_cores(choice.engine) else Limits())
        self._choice = choice
        self._open = 0

    async def endpoint(self, socket: WebSocket) -> None:
        """Serve one connection."""
        await socket.accept()
        self._open += 1
        try:
            self._admit(socket)
            await _Session(socket, Asked.of(socket.query_params), self._limits, self._choice).run()
        except RefusedError as refused:
            _log.info("stream: %d %s", refused.code, refused.message)
            await _end(socket, refused)
        except WebSocketDisconnect:
            pass
        finally:
            self._open -= 1

    def _admit(self, socket: WebSocket) -> None:
        token = socket.query_params.get("token")
        given = socket.headers.get("authorization", "").encode("latin-1", "replace")
        if not (self._tokens.redeem(token) if token else hmac.compare_digest(given, self._key)):
            raise RefusedError(4001, "Not authorized")
        if self._open > self._limits.sessions:
            raise RefusedError(4102, f"Too many streams: this service takes {self._limits.sessions} at once")


async def _end(socket: WebSocket, refused: RefusedError) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the client is gone already
            await socket.send_json({"error": refused.message})
            await socket.close(refused.code, refused.message[:120])


class _Session:
    def __init__(self, socket: WebSocket, asked: Asked, limits: Limits, choice: Choice) -> None:
        self._socket = socket
        self._asked = asked
        self._limits = limits
        self._choice = choice
        self._audio_s = 0.0
        self._begun = self._played = time.monotonic()
        # What the listener has not taken yet: records, each with the time when its audio would have been spoken.
        self._waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._terminating = False

    async def run(self) -> None:
        """Serve the session to its end.

        Raises:
            RefusedError: It ends with an error.
            WebSocketDisconnect: The client is gone.
        """
        asked = self._asked
        engine, model = self._choice.engine, self._choice.model(None) or ""
        boost, partials = json.dumps(asked.boost), "1" if asked.partials else "0"
        arguments = (str(asked.rate), asked.encoding, engine, model, boost, partials)
        try:
            listener = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "voxframe.local.live", *arguments),
                stdin=PIPE,
                stdout=PIPE,
                limit=_LONGEST_LINE,
                start_new_session=True,  # Ctrl-C is for the service, which then ends its sessions in order
            )
        except OSError as error:
            raise RefusedError(1013, f"Temporary server condition: no process could be started ({error})") from error
        session_id, expiry = str(uuid.uuid4()), datetime.now(UTC) + timedelta(seconds=self._limits.session_s)
        try:
            await self._ready(listener)
            _log.info("stream %s: begins", session_id)
            await self._say(
                message_type="SessionBegins",
                session_id=session_id,
                expires_at=expiry.replace(tzinfo=None).isoformat(timespec="microseconds"),
            )
            await self._serve(listener)
        finally:
            _log.info("stream %s: ended after %.1f s of audio", session_id, self._audio_s)
            await _stop(listener)

    async def _ready(self, listener: Process) -> None:
        """Wait until the engine is there: what is said before the session begins would be heard late."""
        assert listener.stdout is not None
        try:
            async with asyncio.timeout(_READY_SECONDS):
                ready = await listener.stdout.readline()
        except TimeoutError:
            ready = b""
        if not ready:
            raise RefusedError(
                1013, "Temporary server condition: the speech engine did not start; the log of the service may say why"
            )

    async def _serve(self, listener: Process) -> None:
        tasks = [asyncio.create_task(work) for work in (self._receive(), self._feed(listener), self._tell(listener))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, listener: Process) -> None:
        """Pass on what was heard; at the end, what the interface ends with."""
        assert listener.stdout is not None
        while line := await listener.stdout.readline():
            if line.startswith(b'{"done"'):
                if self._asked.information:
                    await self._say(message_type="SessionInformation", audio_duration_seconds=round(self._audio_s, 3))
                await self._say(message_type="SessionTerminated")
                await self._socket.close()
                return
            await self._socket.send_text(line.decode().rstrip())
        raise RefusedError(
            1013, "Temporary server condition: the speech engine stopped; the log of the service may say why"
        )

    async def _receive(self) -> None:
        """Take what the client sends, at once: a client whose pings wait behind its audio takes the service for dead.

        What comes after the end was asked for is read and forgotten.
        """
        while True:
            message = await self._next()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            if self._terminating:
                continue
            data = message.get("bytes")
            kind, data = (records.AUDIO, data) if data is not None else record_of(message.get("text") or "")
            if kind == records.AUDIO:
                self._note(self._asked.seconds(data))
            if kind == records.TERMINATE:
                self._terminating, data = True, repr(max(self._played, time.monotonic())).encode()
            self._waiting.put_nowait((self._played, records.pack(kind, data)))

    async def _next(self) -> Any:
        left = self._limits.session_s - (time.monotonic() - self._begun)
        try:
            async with asyncio.timeout(None if self._terminating else min(self._limits.idle_s, max(0.0, left))):
                return await self._socket.receive()
        except TimeoutError:
            if left <= self._limits.idle_s:
                raise RefusedError(4008, "Session expired") from None
            raise RefusedError(4031, f"Session idle for too long: nothing came for {self._limits.idle_s:g} s") from None

    def _note(self, seconds: float) -> None:
        now = time.monotonic()
        self._audio_s += seconds
        self._played = max(self._played, now) + seconds
        if self._audio_s - (now - self._begun) > self._limits.ahead_s:
            raise RefusedError(4029, "Client sent audio too fast")

    async def _feed(self, listener: Process) -> None:
        """Hand on what waits, as fast as the listener takes it."""
        assert listener.stdin is not None
        listener.stdin.transport.set_write_buffer_limits(0)  # what is written is in the pipe, which holds a few seconds
        while True:
            played, record = await self._waiting.get()
            listener.stdin.write(record)
            try:
                async with asyncio.timeout(max(0.0, played + self._limits.behind_s - time.monotonic())):
                    await listener.stdin.drain()
            except TimeoutError:
                raise RefusedError(
                    1013,
                    "Temporary server condition: this machine is too busy to keep up, what was said "
                    f"{self._limits.behind_s:g} s ago is not heard yet; try again with fewer sessions or jobs at once",
                ) from None
            except ConnectionError:
                await asyncio.sleep(_STOP_SECONDS)  # it has ended; `_tell` sees that too, and says so
                return

    async def _say(self, **message: object) -> None:
        await self._socket.send_text(orjson.dumps(message).decode())


async def _stop(listener: Process) -> None:
    """End the process and the one it started. What it was asked for is done, or not wanted any more."""
    assert listener.stdin is not None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(listener.pid, signal.SIGKILL)
        else:
            listener.kill()
    listener.stdin.close()
    await listener.wait()
