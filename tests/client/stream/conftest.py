"""A streaming service on loopback that follows the API and can be made to fail."""

import asyncio
import json
import socket
import threading
import uuid
import wave
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response

from voxframe.client.stream import Stream
from voxframe.settings import Secret

KEY = "a-key-for-the-peer"
RATE = 16_000


class Session:
    """A connection to the service. Each second of audio is an utterance: "second 1", "second 2", ..."""

    def __init__(self, peer: "Peer", connection: ServerConnection) -> None:
        self.peer = peer
        self.connection = connection
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(connection.request.path).query).items()}
        self.headers = connection.request.headers
        self.id = str(uuid.uuid4())
        self.frames: list[bytes] = []
        self.heard: list[dict[str, Any]] = []
        self.ended_ms = 0
        self.finals = 0

    @property
    def ms(self) -> int:
        width = 1 if self.query.get("encoding") == "pcm_mulaw" else 2
        return sum(map(len, self.frames)) * 1000 // (int(self.query["sample_rate"]) * width)

    async def say(self, **message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def refuse(self, error: str, code: int, reason: str = "") -> None:
        await self.say(error=error)
        await self.connection.close(code, reason)

    async def transcript(self, kind: str, end_ms: int) -> None:
        words = [
            {"text": text, "start": self.ended_ms + at, "end": self.ended_ms + at + 90, "confidence": 0.5}
            for text, at in (("second", 0), (str(self.finals + 1), 100))
        ]
        more = {"punctuated": True, "text_formatted": True} if kind == "FinalTranscript" else {}
        await self.say(
            message_type=kind,
            audio_start=self.ended_ms,
            audio_end=end_ms,
            confidence=0.5,
            text=f"second {self.finals + 1}",
            words=words,
            created="2026-01-02T03:04:05.678901",
            **more,
        )
        if kind == "FinalTranscript":
            self.finals += 1
            self.ended_ms = end_ms

    async def final(self, end_ms: int) -> None:
        await self.transcript("FinalTranscript", end_ms)

    async def begin(self) -> None:
        await self.say(message_type="SessionBegins", session_id=self.id, expires_at="2030-01-02T03:04:05.000006")

    async def finish(self) -> None:
        if self.ms > self.ended_ms:
            await self.final(self.ms)
        if self.query.get("enable_extra_session_information") == "true":
            await self.say(message_type="SessionInformation", audio_duration_seconds=self.ms / 1000)
        await self.say(message_type="SessionTerminated")
        await self.connection.close()

    async def serve(self) -> None:
        """Follow the API."""
        if self.headers.get("Authorization") != KEY and self.query.get("token") not in self.peer.tokens:
            await self.refuse("Not Authorized", 4001)
            return
        self.peer.tokens.discard(self.query.get("token"))
        await self.begin()
        async for data in self.connection:
            if isinstance(data, bytes):
                await self.audio(data)
            else:
                message = json.loads(data)
                self.heard.append(message)
                if message.get("force_end_utterance") and self.ms > self.ended_ms:
                    await self.final(self.ms)
                if message.get("terminate_session"):
                    await self.finish()
                    return

    async def audio(self, data: bytes) -> None:
        before, self.frames = self.ms, [*self.frames, data]
        if self.ms // 1000 > before // 1000:
            await self.final(self.ms // 1000 * 1000)
        elif self.query.get("disable_partial_transcripts") != "true":
            await self.transcript("PartialTranscript", self.ms)


class Peer:
    """The service. `script` may replace its behaviour for a connection."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.tokens: set[str | None] = set()
        self.script: Callable[[Session], Awaitable[None]] = Session.serve
        self.refuse_with: list[int] = []  # statuses with which the next handshakes are refused
        ready = threading.Event()
        self._stop = asyncio.Event()

        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            async with serve(self._handle, "127.0.0.1", 0, close_timeout=1, process_request=self._refuse) as server:
                self.port = server.sockets[0].getsockname()[1]
                ready.set()
                await self._stop.wait()

        self._thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)  # cancels what is left
        self._thread.start()
        assert ready.wait(10)
        self.url = f"ws://127.0.0.1:{self.port}"

    def _refuse(self, connection: ServerConnection, _: object) -> Response | None:
        return connection.respond(self.refuse_with.pop(0), "not now") if self.refuse_with else None

    async def _handle(self, connection: ServerConnection) -> None:
        session = Session(self, connection)
        self.sessions.append(session)
        with suppress(ConnectionClosed):
            await self.script(session)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


class Wire:
    """A TCP relay to the service that can be cut, or go silent like a cable that is pulled out."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._silent = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._pairs.append((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._silent.is_set():
                    target.sendall(data)

    def go_silent(self) -> None:
        self._silent.set()

    def cut(self) -> None:
        for pair in self._pairs:
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        self._pairs.clear()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else whoever waits in accept takes one more connection
        self._listener.close()
        self.cut()


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A service that follows the API."""
    running = Peer()
    yield running
    running.close()


@pytest.fixture
def wire(peer: Peer) -> Iterator[Wire]:
    """A relay to the service."""
    relay = Wire(peer.port)
    yield relay
    relay.close()


@pytest.fixture
def stream(peer: Peer) -> Callable[..., Stream]:
    """Create sessions with the service, faster than real time by default."""

    def make(source: Any, **how: Any) -> Stream:
        how = {"url": peer.url, "key": Secret(KEY), "realtime": False, "sample_rate": RATE} | how
        return Stream(source, **how)

    return make


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """A wav file of 2.5 seconds."""
    path = tmp_path / "speech.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(bytes(range(250)) * (RATE * 5 // 250))
    return path
