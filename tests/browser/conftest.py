"""A real browser on loopback: headless Chromium, JupyterLab, and a small server for pages.

Environment: BROWSER_PATH names a Chromium binary (default: the first on PATH), BROWSER_SHOTS a folder for screenshots
(default: none are taken).
"""

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.browser.player_notebook import (  # noqa: F401  fixtures
    in_lab,
    lab_notebook,
    notebook,
    page_without_faults,
    voila_notebook,
)

#: Longest wait for a server, a kernel or a page on a slow, shared machine.
BOOT_S = 90

expect.set_options(timeout=30_000)  # ms; a kernel on such a machine may answer after the default of 5 seconds

#: A name of this machine that is not one of loopback, for pages of another machine.
HUB = "hub.test"

FLAGS = [
    f"--host-resolver-rules=MAP {HUB} 127.0.0.1",
    "--no-sandbox",  # Chromium refuses to run as root with it, and tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--autoplay-policy=no-user-gesture-required",
    "--mute-audio",
    "--use-fake-device-for-media-stream",
]

_SETTINGS = {
    # No "Jupyter news?" question over the page.
    "apputils-extension/notification.jupyterlab-settings": '{"fetchNews": "false", "checkForUpdates": false}',
    # Cells out of sight stay in the page, so that a test sees all of them.
    "notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder as long."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.long)


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its URL, its token, and the folder it serves."""

    base: str
    token: str
    folder: Path


@dataclass(frozen=True)
class Voila:
    """A running Voila: its URL, and the folder of notebooks it shows."""

    base: str
    folder: Path


def chromium_path() -> str | None:
    """Return the path of a Chromium; None if there is none."""
    named = os.environ.get("BROWSER_PATH")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# Package scope: sync_playwright keeps an event loop running in this thread, in which no other test should find itself.
@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Headless Chromium with a recording as its microphone."""
    binary = chromium_path()
    if binary is None:
        pytest.skip("no Chromium found; install chromium or set BROWSER_PATH")
    spoken = tmp_path_factory.mktemp("microphone") / "call.wav"
    _as_wav(Path(__file__).parents[2] / "data" / "call.flac", spoken)
    flags = [*FLAGS, f"--use-file-for-fake-audio-capture={spoken}"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=binary, args=flags, headless=True)
        yield chromium
        chromium.close()


def _as_wav(recording: Path, path: Path) -> None:
    """Write a recording in the format that Chromium's fake microphone reads."""
    import av

    resampler = av.AudioResampler("s16", "mono", 48_000)
    with av.open(str(recording)) as source, wave.open(str(path), "wb") as out:
        out.setparams((1, 2, 48_000, 0, "NONE", ""))
        for frame in source.decode(audio=0):
            for piece in resampler.resample(frame):
                out.writeframes(piece.to_ndarray().tobytes())


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that reaches loopback only. The test fails if the page raised an error or requested another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))

    def outside(route: Route) -> None:
        faults.append(f"asked for {route.request.url}")
        route.abort()

    page.route(re.compile(r"^(https?|wss?)://(?!127\.0\.0\.1[:/])"), outside)
    yield page
    if shots := os.environ.get("BROWSER_SHOTS"):
        page.screenshot(path=Path(shots) / f"{request.node.name}.png")
    context.close()
    assert not faults


def _environment(home: Path) -> dict[str, str]:
    """Return the environment with Jupyter's and voxframe's folders in `home`."""
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "run",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "VOXFRAME_DATA_DIR": "voxframe",
    }
    env = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "VOXFRAME", "MPL"))}
    return env | {name: str(home / part) for name, part in own.items()}


@contextlib.contextmanager
def _running(command: list[str], url: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    """Run a server as a process group (kernels are its children) and wait for its first response."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + BOOT_S
        while True:
            try:
                urllib.request.urlopen(url, timeout=2).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{command[2]} did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.2)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def running_lab(folder: Path, home: Path, *options: str, prefix: str = "/") -> Iterator[Lab]:
    """Run JupyterLab with its own settings, kernels and voxframe data, below a path prefix."""
    for name, text in _SETTINGS.items():
        path = home / "settings" / "@jupyterlab" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    port, token = _free_port(), secrets.token_hex(16)
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}", "--ServerApp.port_retries=0"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += ["--LabApp.expose_app_in_browser=True", f"--ServerApp.base_url={prefix}", *options]
    with _running(command, f"{base}{prefix}api", home, _environment(home)):
        yield Lab(base, token, folder)


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab at the root of its address."""
    with running_lab(tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("jupyter")) as lab:
        yield lab


@pytest.fixture(scope="package")
def voila(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Voila]:
    """Voila with its own settings, kernels and voxframe data, serving a folder of notebooks."""
    folder, home = tmp_path_factory.mktemp("voila"), tmp_path_factory.mktemp("jupyter")
    port = _free_port()
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "voila", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    command += ["--show_tracebacks=True", str(folder)]
    with _running(command, f"{base}/voila/static/voila.js", home, _environment(home)):
        yield Voila(base, folder)


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, tuple[str, bytes]]], str]]:
    """Serve bodies on loopback: `serve({"/": ("text/html", b"...")})` returns the base URL."""
    servers: list[ThreadingHTTPServer] = []

    def start(bodies: dict[str, tuple[str, bytes]]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, body = bodies.get(self.path, ("text/plain", b""))
                self.send_response(200 if self.path in bodies else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
