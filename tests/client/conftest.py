"""A server on loopback with scripted responses and faults, which records requests."""

import contextlib
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
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from jupyter_core.utils import ensure_event_loop

from voxframe.client.client import Client
from voxframe.settings import Secret, Settings

KEY = "k3y-that-must-not-show"


@dataclasses.dataclass
class Request:
    """A request received by the peer."""

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
    """A reply of the peer. `fault`: reset, close (no response), cut (half the body), or stall (nothing, forever)."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    fault: str = ""
    delay: float = 0.0

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Server(ThreadingHTTPServer):
    """Accepts many connections at once; the default queue of five would drop some."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that hang up, which some tests do."""


class Peer:
    """A server with responses scripted per method and path; the last response repeats."""

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
        """Script the responses to a request; anything but a Reply or a function is a JSON body."""
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
    """A new server."""
    peer = Peer()
    yield peer
    peer.stop()


@pytest.fixture
def other_peer() -> Iterator[Peer]:
    """A second server with another origin."""
    peer = Peer()
    yield peer
    peer.stop()


@pytest.fixture
def settings(peer: Peer, tmp_path: Path) -> Settings:
    """Settings of a client of `peer`."""
    return Settings(peer.url, peer.url.replace("http", "ws"), "llm", Secret(KEY), tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """A client of `peer`."""
    with Client(settings) as client:
        yield client


@pytest.fixture
def reply() -> type[Reply]:
    """Script the responses of the server."""
    return Reply


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """A real Jupyter kernel."""
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def interrupt(manager: KernelManager) -> None:
    """Interrupt a kernel from a thread, and close the event loop that the manager opens in that thread."""
    manager.interrupt_kernel()
    ensure_event_loop().close()


@pytest.fixture
def key() -> str:
    """The API key of the client."""
    return KEY


def closed_port() -> int:
    """A port without a listener."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[Client]:
    """A client of a service that is not running."""
    with Client(Settings(f"http://127.0.0.1:{closed_port()}", None, "llm", Secret(KEY), tmp_path)) as client:
        yield client


class RawServer:
    """A server that reads a request and then writes given bytes, one at a time.

    Attributes:
        script: Called with the connection after each request.
        heads: Head of each request, as text.
    """

    def __init__(self) -> None:
        self.script: Callable[[socket.socket], None] = lambda _: None
        self.heads: list[str] = []
        self.stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def drip(self, connection: socket.socket, data: bytes, every_s: float = 0.05) -> None:
        """Send data one byte at a time, repeatedly, until the client disconnects."""
        while not self.stopping.is_set():
            for n in range(len(data)):
                connection.sendall(data[n : n + 1])
                if self.stopping.wait(every_s):
                    return

    def flood(self, connection: socket.socket, data: bytes) -> None:
        """Send data repeatedly, as fast as it is read, until the client disconnects."""
        many = data * max(1, 65536 // len(data))
        while not self.stopping.is_set():
            connection.sendall(many)

    def stop(self) -> None:
        self.stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else accept goes on waiting
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as file:
            lines = []
            while (line := file.readline()) not in (b"\r\n", b""):
                lines.append(line.decode("latin-1"))
            length = next(
                (int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length")), 0
            )
            file.read(length)
            self.heads.append("".join(lines))
            self.script(connection)


@pytest.fixture
def raw() -> Iterator[RawServer]:
    """A server that may violate HTTP."""
    server = RawServer()
    yield server
    server.stop()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll jobs at once, for tests of what a wait does rather than of its pauses."""
    monkeypatch.setattr("voxframe.client.async_bridge.interval", lambda *_, **__: 0.01)
