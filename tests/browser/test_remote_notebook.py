"""Sound of a notebook that runs on another machine: JupyterLab behind a proxy with a path prefix, at another name."""

import contextlib
import shutil
import threading
import wave
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from socket import SHUT_WR, create_connection
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import HUB, running_lab
from tests.browser.open_notebook import WAIT_MS, Notebook, write_notebook

DATA = Path(__file__).parents[2] / "data"
PREFIX = "/user/ada/"

CELLS = [
    f"""
import voxframe
from pathlib import Path
payload = Path({str(DATA / "payloads" / "interview.json")!r}).read_bytes()
voxframe.TranscriptPlayer(payload, "interview.flac", title="Beside the notebook")""",
    """voxframe.TranscriptPlayer(payload, "../elsewhere.wav", title="Elsewhere")""",
]

PLAYING = """(source) => window.sounds.some((sound) =>
    !sound.paused && sound.currentTime > 0 && sound.src.includes(source))"""

pytestmark = pytest.mark.browser


class _Proxy(ThreadingTCPServer):
    """Passes on connections whose first request is below the prefix, and nothing else."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = port


class _Connection(StreamRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        head = list(iter(self.rfile.readline, b"\r\n"))
        if not head or not head[0].split()[1].startswith(PREFIX.encode()):
            self.wfile.write(f"HTTP/1.1 {HTTPStatus.NOT_FOUND} x\r\nContent-Length: 0\r\n\r\n".encode())
            return
        if not any(line.lower().startswith(b"upgrade:") for line in head):  # one request per connection
            head = [line for line in head if not line.lower().startswith(b"connection:")] + [b"Connection: close\r\n"]
        with create_connection(("127.0.0.1", self.server.port)) as jupyter:
            jupyter.sendall(b"".join(head) + b"\r\n")
            threading.Thread(target=_pass_on, args=(self.rfile.read1, jupyter), daemon=True).start()
            _pass_on(jupyter.recv, self.connection)


def _pass_on(receive: Callable[[int], bytes], target: object) -> None:
    with contextlib.suppress(OSError, ValueError):  # ValueError: the other direction has closed the file
        while data := receive(1 << 16):
            target.sendall(data)
        target.shutdown(SHUT_WR)


@pytest.fixture
def notebook(browser: Browser, tmp_path: Path) -> Iterator[Notebook]:
    """The notebook, at the address of the proxy."""
    folder, home = tmp_path / "served", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    shutil.copy(DATA / "interview.flac", folder)
    with wave.open(str(tmp_path / "elsewhere.wav"), "wb") as file:
        file.setparams((1, 1, 8000, 0, "NONE", ""))
        file.writeframes(b"\x80" * 8000 * 600)  # 4.8 MB: several messages
    with running_lab(folder, home, "--ServerApp.allow_remote_access=True", prefix=PREFIX) as lab:
        proxy = _Proxy(int(lab.base.rpartition(":")[2]))
        threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
        notebook = Notebook(browser, folder / "remote.ipynb", HUB)
        write_notebook(notebook.path, CELLS)
        notebook.open_in_lab(f"http://{HUB}:{proxy.server_address[1]}{PREFIX[:-1]}", lab.token, folder)
        yield notebook
        notebook.context.close()
        proxy.shutdown()
        proxy.server_close()


def test_sound_reaches_a_browser_on_another_machine(notebook: Notebook) -> None:
    """A recording beside the notebook comes from Jupyter below the prefix, another in messages; none from loopback."""
    for title, source in (("Beside the notebook", f"{HUB}:"), ("Elsewhere", "blob:")):
        player = notebook.page.locator(f".vf-player[aria-label='{title}']").first
        expect(player).to_be_attached(timeout=WAIT_MS)
        player.get_by_role("button", name="Play", exact=True).click()
        notebook.page.wait_for_function(PLAYING, arg=source)
    sources = notebook.page.evaluate("window.sounds.map((sound) => sound.src)")
    assert f"{PREFIX}files/interview.flac" in sources[0]
    assert notebook.page.evaluate("window.sounds[1].duration") == 600
    assert not notebook.faults
