"""GET /v2/realtime/ws: the streaming socket. It keeps the order and the limits; a process for each session listens."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import logging
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
from voxframe.local.tokens import Tokens
from voxframe.options import STREAM_ENCODINGS, STREAM_SILENCE_MS, STREAM_WORD_BOOST_CHARS

_log = logging.getLogger("voxframe.local")

_RATES = (8000, 48_000)
_MESSAGE_MS = (100, 2000)
_LONGEST_LINE = 1 << 22
_STOP_SECONDS = 2.0
_READY_SECONDS = 60.0  # a large model takes its time


@dataclass(frozen=True)
class Limits:
    """Limits of streaming.

    Attributes:
        sessions: Sessions at once. One takes just under half of a core with partials, a fifth without; more than these
            would fall behind.
        idle_s: Seconds without a message of the client.
        session_s: Seconds a session may last.
        ahead_s: Seconds of audio a client may have sent more than seconds have passed. Up to there audio is taken as
            fast as it can be recognised.
    """

    sessions: int = max(1, 3 * cores() // 2)
    idle_s: float = 60.0
    session_s: float = 3 * 3600.0
    ahead_s: float = 600.0


class _RefusedError(Exception):
    """The session ends with an error message and a close code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class _Asked:
    """The parameters of a connection."""

    rate: int
    encoding: str
    partials: bool
    information: bool
    boost: list[str]

    @property
    def bytes_per_second(self) -> int:
        return self.rate * (1 if self.encoding == "pcm_mulaw" else 2)


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
            await _Session(socket, _asked(socket), self._limits, self._choice).run()
        except _RefusedError as refused:
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
            raise _RefusedError(4001, "Not authorized")
        if self._open > self._limits.sessions:
            raise _RefusedError(4102, f"Too many streams: this service takes {self._limits.sessions} at once")


def _asked(socket: WebSocket) -> _Asked:
    query = socket.query_params
    rate = query.get("sample_rate", "")
    low, high = _RATES
    if not rate.isascii() or not rate.isdecimal() or len(rate) > 9 or not low <= int(rate) <= high:
        raise _RefusedError(4000, f"Sample rate must be a whole number from {low} to {high}")
    encoding = query.get("encoding") or "pcm_s16le"
    if encoding not in STREAM_ENCODINGS:
        raise _RefusedError(4101, f"Invalid encoding: it is one of {', '.join(STREAM_ENCODINGS)}")
    return _Asked(
        int(rate),
        encoding,
        not _flag(query.get("disable_partial_transcripts")),
        _flag(query.get("enable_extra_session_information")),
        _word_boost(query.get("word_boost") or "[]"),
    )


def _flag(text: str | None) -> bool:
    return (text or "").lower() in ("true", "1")


def _word_boost(text: str) -> list[str]:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _RefusedError(4104, "Could not parse word boost parameter: it is a JSON array of strings")
    if len(text) > STREAM_WORD_BOOST_CHARS:
        raise _RefusedError(4104, f"Word boost may have at most {STREAM_WORD_BOOST_CHARS} characters")
    return words


async def _end(socket: WebSocket, refused: _RefusedError) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the client is gone already
            await socket.send_json({"error": refused.message})
            await socket.close(refused.code, refused.message[:120])


class _Session:
    def __init__(self, socket: WebSocket, asked: _Asked, limits: Limits, choice: Choice) -> None:
        self._socket = socket
        self._asked = asked
        self._limits = limits
        self._choice = choice
        self._audio_s = 0.0
        self._begun = time.monotonic()
        self._terminating = False

    async def run(self) -> None:
        """Serve the session to its end.

        Raises:
            _RefusedError: It ends with an error.
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
            raise _RefusedError(1013, f"Temporary server condition: no process could be started ({error})") from error
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
            raise _RefusedError(
                1013, "Temporary server condition: the speech engine did not start; the log of the service may say why"
            )

    async def _serve(self, listener: Process) -> None:
        receiving = asyncio.create_task(self._receive(listener))
        telling = asyncio.create_task(self._tell(listener))
        try:
            await asyncio.wait((receiving, telling), return_when=asyncio.FIRST_COMPLETED)
            for task in (receiving, telling):
                if task.done():
                    task.result()
        finally:
            for task in (receiving, telling):
                task.cancel()
            await asyncio.gather(receiving, telling, return_exceptions=True)

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
        raise _RefusedError(
            1013, "Temporary server condition: the speech engine stopped; the log of the service may say why"
        )

    async def _receive(self, listener: Process) -> None:
        """Pass on what the client sends. What comes after the end was asked for is read and forgotten."""
        assert listener.stdin is not None
        while True:
            message = await self._next()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            if self._terminating:
                continue
            data = message.get("bytes")
            record = self._audio(data) if data is not None else self._command(message.get("text") or "")
            try:
                listener.stdin.write(record)
                # Waits while the process has more to do than its pipe holds; the client is then not read from.
                await listener.stdin.drain()
            except ConnectionError:
                await asyncio.sleep(_STOP_SECONDS)  # it has ended; `_tell` sees that too, and says so
                return

    async def _next(self) -> Any:
        left = self._limits.session_s - (time.monotonic() - self._begun)
        try:
            async with asyncio.timeout(None if self._terminating else min(self._limits.idle_s, max(0.0, left))):
                return await self._socket.receive()
        except TimeoutError:
            if left <= self._limits.idle_s:
                raise _RefusedError(4008, "Session expired") from None
            raise _RefusedError(
                4031, f"Session idle for too long: nothing came for {self._limits.idle_s:g} s"
            ) from None

    def _audio(self, data: bytes) -> bytes:
        width = 1 if self._asked.encoding == "pcm_mulaw" else 2
        if len(data) % width:
            raise _RefusedError(4034, f"Could not decode the audio: {len(data)} bytes are no whole number of samples")
        seconds = len(data) / self._asked.bytes_per_second
        shortest, longest = _MESSAGE_MS
        # A message may be off by the part of a sample that a whole number of samples leaves.
        if (seconds + 1 / self._asked.rate) * 1000 < shortest:
            raise _RefusedError(4032, f"Audio duration is too short: {seconds * 1000:.0f} ms, of at least {shortest}")
        if (seconds - 1 / self._asked.rate) * 1000 > longest:
            raise _RefusedError(4033, f"Audio duration is too long: {seconds * 1000:.0f} ms, of at most {longest}")
        self._audio_s += seconds
        if self._audio_s - (time.monotonic() - self._begun) > self._limits.ahead_s:
            raise _RefusedError(4029, "Client sent audio too fast")
        return records.pack(records.AUDIO, data)

    def _command(self, text: str) -> bytes:
        try:
            message = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise _RefusedError(4100, "Endpoint received invalid JSON") from None
        low, high = STREAM_SILENCE_MS
        if isinstance(message, dict):
            if isinstance(audio := message.get("audio_data"), str):
                try:
                    return self._audio(base64.b64decode(audio, validate=True))
                except binascii.Error:
                    raise _RefusedError(4034, "Could not decode the audio: audio_data is not base64") from None
            if message.get("terminate_session") is True:
                self._terminating = True
                return records.pack(records.TERMINATE)
            if message.get("force_end_utterance") is True:
                return records.pack(records.END_UTTERANCE)
            silence = message.get("end_utterance_silence_threshold")
            if isinstance(silence, float) and silence.is_integer():
                silence = int(silence)
            if isinstance(silence, int) and not isinstance(silence, bool) and low <= silence <= high:
                return records.pack(records.SILENCE, str(silence).encode())
        raise _RefusedError(
            4101,
            "Endpoint received a message with an invalid schema: it takes audio, terminate_session, "
            f"force_end_utterance, and end_utterance_silence_threshold from {low} to {high}",
        )

    async def _say(self, **message: object) -> None:
        await self._socket.send_text(orjson.dumps(message).decode())


async def _stop(listener: Process) -> None:
    """End the process: by itself where it is about to, else at once."""
    assert listener.stdin is not None
    with contextlib.suppress(ProcessLookupError):
        if listener.returncode is None:
            listener.kill()
    listener.stdin.close()
    await listener.wait()
