"""Fixtures: the embedded server as a real process on loopback, and a web server that it may or may not fetch from."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from voxframe import models
from voxframe_server.jobs import JobStore
from voxframe_server.jobs.data_dir import DataDir

KEY = "a-key-for-tests"


class Service:
    """A server process and a client session for it."""

    def __init__(
        self, data_dir: Path, *arguments: str, key: str | None = KEY, environment: dict[str, str] | None = None
    ) -> None:
        self.data_dir = data_dir
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("VOXFRAME_") or name in (models.CACHE_VARIABLE, "VOXFRAME_WRITER")
        }
        environment = inherited | ({"VOXFRAME_API_KEY": key} if key else {}) | (environment or {})
        self.log = data_dir.parent / f"{data_dir.name}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-P", "-m", "voxframe_server", "--parent-pipe", "--port", "0"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(data_dir), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.url = json.loads(line)["base_url"]
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = key or (data_dir / "key").read_text().strip()

    def request(self, method: str, path: str, **how: Any) -> requests.Response:
        return self.session.request(method, self.url + path, timeout=30, **how)

    def get(self, path: str, **how: Any) -> requests.Response:
        return self.request("GET", path, **how)

    def upload(self, data: bytes) -> str:
        answer = self.request("POST", "/v2/upload", data=data)
        assert answer.status_code == 200, answer.text
        return answer.json()["upload_url"]

    def create(self, audio_url: str, **options: Any) -> dict[str, Any]:
        answer = self.request("POST", "/v2/transcript", json={"audio_url": audio_url, **options})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def transcript(self, transcript_id: str) -> dict[str, Any]:
        answer = self.get(f"/v2/transcript/{transcript_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait(self, transcript_id: str, seconds: float = 120) -> dict[str, Any]:
        """Return the transcript once it is completed or an error."""
        until = time.monotonic() + seconds
        while (found := self.transcript(transcript_id))["status"] in ("queued", "processing"):
            assert time.monotonic() < until, f"still {found['status']}:\n{self.log.read_text()}"
            time.sleep(0.05)
        return found

    def holds(self, text: str) -> bool:
        """Return True if a file of the data directory contains a text. Files may be removed meanwhile."""
        for folder, _, names in os.walk(self.data_dir):
            for name in names:
                with suppress(FileNotFoundError):
                    if text.encode() in Path(folder, name).read_bytes():
                        return True
        return False

    def kill(self) -> None:
        """Kill the server process alone with SIGKILL."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        """Stop the server by closing its standard input, as when its parent ends."""
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        self.session.close()


def engine_of(node: pytest.Item | pytest.Collector) -> tuple[str, ...]:
    """Return the arguments for the engine of tests: for those not marked `speech` the parrot, which starts faster."""
    return () if node.get_closest_marker("speech") else ("--engine", "parrot")


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    """Start servers, by default on one data directory; all are stopped after the test."""
    started: list[Service] = []
    engine = engine_of(request.node)

    def begin(
        *arguments: str,
        data_dir: Path | None = None,
        key: str | None = KEY,
        environment: dict[str, str] | None = None,
    ) -> Service:
        started.append(Service(data_dir or tmp_path / "data", *engine, *arguments, key=key, environment=environment))
        return started[-1]

    yield begin
    for service in started:
        service.stop()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Service]:
    """One server for the tests of a module, started with its SERVICE_ARGUMENTS if it has any."""
    arguments = (*engine_of(request.node), *getattr(request.module, "SERVICE_ARGUMENTS", ()))
    running = Service(tmp_path_factory.mktemp("service") / "data", *arguments)
    yield running
    running.stop()


class Web:
    """A web server on loopback. `pages` maps a path to a function that handles the request."""

    def __init__(self) -> None:
        web = self
        self.pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[str] = []
        self.finish = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                web.pages[self.path](self)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass  # a client that was killed

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def page(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> str:
        """Serve this response at `path`; return its URL."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)

        self.pages[path] = answer
        return self.origin + path

    def slow_page(self, path: str, body: bytes) -> str:
        """Serve half of this body at `path`, and the rest once `finish` is set; return its URL."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[: len(body) // 2])
            self.finish.wait(60)
            handler.wfile.write(body[len(body) // 2 :])

        self.pages[path] = answer
        return self.origin + path


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server on loopback."""
    served = Web()
    yield served
    served.finish.set()
    served.server.shutdown()
    served.server.server_close()


def silence(seconds: float = 1.0) -> bytes:
    """Return a wav file without speech, for jobs without the speech engine."""
    import io
    import wave

    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(round(seconds * 16_000) * 2))
    return held.getvalue()


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    """An empty data directory."""
    made = DataDir(tmp_path / "data")
    made.make()
    return made


@pytest.fixture
def jobs(data_dir: DataDir) -> Iterator[JobStore]:
    """The job store of the data directory."""
    opened = JobStore(data_dir.database)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def silent_wav() -> bytes:
    """One second of silence as a wav file."""
    return silence()
