"""A page with live widgets and nothing of Jupyter: no kernel process, styles or globals, only the widget protocol."""

import base64
import json
import os
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm
from ipywidgets import Widget
from playwright.sync_api import Browser, Locator, Page

_PAGE = Path(__file__).with_suffix(".html")


class _PageHandler(BaseHTTPRequestHandler):
    """Serves the page; a browser lets only pages of loopback fetch recordings from loopback."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(_PAGE.read_bytes() if self.path == "/" else b"")

    def log_message(self, *_: object) -> None:
        pass


class _Comm(BaseComm):
    """Keeps what a widget sends until the page fetches it."""

    sent: deque[dict[str, Any]]

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_: object
    ) -> None:
        packed = [base64.b64encode(buffer).decode() for buffer in buffers or ()]
        self.sent.append({"id": self.comm_id, "type": msg_type, "data": data or {}, "buffers": packed})


class Host:
    """A page with widgets of this process.

    Args:
        width: Width of the window in pixels.
        theme: "light" or "dark".
    """

    def __init__(self, browser: Browser, width: int = 1280, theme: Any = "light") -> None:
        self.faults: list[str] = []
        sent: deque[dict[str, Any]] = deque()
        self._comms = type("Comm", (_Comm,), {"sent": sent})
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(comm, "create_comm", self._comms)
        self.context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme=theme, reduced_motion="reduce"
        )
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

        def fetched() -> str:
            messages = [sent.popleft() for _ in range(len(sent))]
            return json.dumps(messages)

        self.page.expose_function("fromKernel", fetched)
        self.page.expose_function("toKernel", self._receive)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _PageHandler)
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.page.goto(f"http://127.0.0.1:{self._server.server_port}/")
        self.page.wait_for_function("'show' in window")

    def _receive(self, comm_id: str, data: str, buffers: list[str]) -> None:
        """Pass a message of the page on to its widget."""
        target = comm.get_comm_manager().get_comm(comm_id)
        content = {"data": json.loads(data)}
        target.handle_msg({"content": content, "buffers": [memoryview(base64.b64decode(b)) for b in buffers]})

    def show(self, widget: Widget) -> Locator:
        """Show a widget below the others and return its root element."""
        self.page.evaluate("window.show", widget.model_id)
        return self.page.locator("main > div").last.locator(".voxframe").first

    def shot(self, name: str) -> None:
        """Save a picture of the page if BROWSER_SHOTS names a folder."""
        if folder := os.environ.get("BROWSER_SHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Close the page; widgets opened later have comms as before."""
        self.context.close()
        self._patch.undo()
        self._server.shutdown()
        self._server.server_close()
