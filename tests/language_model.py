"""A service of a language model that may lose its answers, to be asked from tests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(ThreadingHTTPServer):
    """It answers, refuses, limits, loses the answer or is still at it, and counts how often it was asked."""

    mode = "answers"
    asked = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.begun = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        if self.server.mode == "loses":
            self.connection.close()
            return
        if self.server.mode == "works":
            self.server.begun.set()
            self.rfile.read(1)  # until the other side is gone
            return
        refused = self.server.mode in ("refuses", "limits")
        answer = (
            {"error": "no"} if refused else {"request_id": f"r{self.server.asked}", "response": "A talk.", "usage": {}}
        )
        body = json.dumps(answer).encode()
        self.send_response({"refuses": 400, "limits": 429}.get(self.server.mode, 200))
        if self.server.mode == "limits":
            self.send_header("Retry-After", "60")
            self.server.begun.set()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def language_model() -> Iterator[Model]:
    """The service, on loopback."""
    server = Model()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
