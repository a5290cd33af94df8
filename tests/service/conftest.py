"""A peer on loopback that answers as it is told, faults included, and keeps what it was sent."""

import dataclasses
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from voxframe.service.client import Client
from voxframe.settings import Secret, Settings

KEY = "k3y-that-must-not-show"


@dataclasses.dataclass
class Request:
    """What the peer was sent."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    at: float
    port: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclasses.dataclass
class Reply:
    """What the peer answers. `fault`: reset, close (no answer), cut (half the body), or stall (nothing, ever)."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    fault: str = ""
    delay: float = 0.0

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Server(ThreadingHTTPServer):
    """Takes many connections at once; the library's own queue of five drops some."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some tests are about."""


class Peer:
    """A server whose answers are scripted per method and path; the last one repeats."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._scripts: dict[tuple[str, str], list[Reply | Callable[[Request], Reply]]] = {}
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def handle_any(self) -> None:
                peer._serve(self)

            do_GET = do_POST = do_DELETE = handle_any  # noqa: N815 - names the standard library looks for

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def on(self, method: str, path: str, *replies: Any) -> None:
        """Script the answers to a request; anything that is no Reply or function is a JSON body."""
        self._scripts[method, path] = [r if isinstance(r, Reply) or callable(r) else Reply(r) for r in replies]

    def made(self, method: str, path: str) -> list[Request]:
        return [r for r in self.requests if (r.method, r.path) == (method, path)]

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        request = Request(
            handler.command,
            parts.path,
            parse_qs(parts.query, keep_blank_values=True),
            {k.lower(): v for k, v in handler.headers.items()},
            _body(handler),
            time.monotonic(),
            handler.client_address[1],
        )
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get((handler.command, parts.path), [Reply({"error": "Not found"}, 404)])
            step = script.pop(0) if len(script) > 1 else script[0]
        reply = step if isinstance(step, Reply) else step(request)
        self.stopping.wait(reply.delay)
        if reply.fault == "stall":
            self.stopping.wait(60)
        if reply.fault in ("reset", "close", "stall"):
            if reply.fault == "reset":
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            handler.connection.close()
            handler.wfile = handler.rfile  # nothing is left to flush to
            return
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.content)))
        handler.end_headers()
        if reply.fault == "cut":
            handler.wfile.write(reply.content[: len(reply.content) // 2])
            handler.close_connection = True
        else:
            handler.wfile.write(reply.content)


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if "chunked" in handler.headers.get("Transfer-Encoding", ""):
        parts = []
        while size := int(handler.rfile.readline(), 16):
            parts.append(handler.rfile.read(size))
            handler.rfile.readline()
        handler.rfile.readline()
        return b"".join(parts)
    return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A fresh peer."""
    peer = Peer()
    yield peer
    peer.stop()


@pytest.fixture
def other_peer() -> Iterator[Peer]:
    """Another one: another origin."""
    peer = Peer()
    yield peer
    peer.stop()


@pytest.fixture
def settings(peer: Peer, tmp_path: Path) -> Settings:
    """Settings of a client of the peer."""
    return Settings(peer.url, peer.url.replace("http", "ws"), "llm", Secret(KEY), tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """A client of the peer."""
    with Client(settings) as client:
        yield client


@pytest.fixture
def reply() -> type[Reply]:
    """How a test says what the peer answers."""
    return Reply


@pytest.fixture
def key() -> str:
    """The key of the client."""
    return KEY


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[Client]:
    """A client of a service that is not there."""
    with Client(Settings(f"http://127.0.0.1:{closed_port()}", None, "llm", Secret(KEY), tmp_path)) as client:
        yield client
