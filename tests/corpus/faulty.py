"""A service on loopback, in a separate process, that fails in every way a service can.

`python tests/corpus/faulty.py` writes its address as the first line. `GET /facts` says what it was really asked to do,
`POST /calm` ends its faults.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

#: What may go wrong with a request. "before": it is not acted on; "after": it is, and only the answer suffers.
FAULTS = (
    "reset before",
    "reset after",
    "5xx before",
    "5xx after",
    "429",
    "silence before",
    "silence after",
    "cut short",
    "no JSON",
    "late",
    "shown twice",
)

#: Seconds after which a "late" request is acted on, although its connection was reset.
LATE_S = 0.3


class Service:
    """State and operations of the service; every method is called with its lock held."""

    def __init__(self, seed: int, rate: float, latency_s: float, silence_s: float) -> None:
        self.random = random.Random(seed)
        self.rate, self.latency_s, self.silence_s = rate, latency_s, silence_s
        self.lock = threading.Lock()
        self.base_url = ""
        self.uploads: list[str] = []
        self.made: list[dict] = []
        self.faults: Counter[str] = Counter()

    def fault(self, method: str, path: str) -> str | None:
        """Return the fault of this request."""
        if self.random.random() >= self.rate:
            return None
        fault = self.random.choice(FAULTS)
        is_list = method == "GET" and path == "/v2/transcript"
        if (fault == "shown twice" and not is_list) or (fault == "late" and method != "POST"):
            fault = "reset before"
        self.faults[fault] += 1
        return fault

    def act(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, dict]:
        """Carry out a request."""
        if path == "/v2/upload":
            self.uploads.append(hashlib.sha256(body).hexdigest())
            return 200, {"upload_url": f"{self.base_url}/upload/{len(self.uploads) - 1}"}
        if method == "POST":
            address = json.loads(body)["audio_url"]
            if address.startswith(f"{self.base_url}/upload/"):
                media = self.uploads[int(address.rpartition("/")[2])]
            else:
                media = address.partition("#")[0]
            self.made.append({"media": media, "audio_url": address, "made": time.time()})
            return 200, self.transcript(len(self.made) - 1)
        if path == "/v2/transcript":
            return 200, self.page(query)
        return 200, self.transcript(int(path.rpartition("/")[2].removeprefix("t")))

    def transcript(self, n: int) -> dict:
        """Return a transcript, completed a moment after it was created; its text names its media."""
        job = self.made[n]
        done = time.time() - job["made"] > 0.05
        word = {"text": job["media"], "start": 0, "end": 90, "confidence": 1.0, "speaker": "A"}
        return {
            "id": f"t{n}",
            "status": "completed" if done else "queued",
            "audio_url": job["audio_url"],
            "text": job["media"] if done else None,
            "words": [word] * 20 if done else None,
            "audio_duration": 1,
        }

    def page(self, query: dict[str, str]) -> dict:
        """Return a page of the list, newest first."""
        end = int(query["before_id"].removeprefix("t")) if "before_id" in query else len(self.made)
        begin = max(0, end - int(query.get("limit", 10)))
        items = []
        for n in range(end - 1, begin - 1, -1):
            made = datetime.fromtimestamp(self.made[n]["made"], UTC).replace(tzinfo=None)
            whole = self.transcript(n)
            items.append({k: whole[k] for k in ("id", "status", "audio_url")} | {"created": made.isoformat()})
        older = f"{self.base_url}/v2/transcript?before_id=t{begin}" if begin else None
        return {"page_details": {"prev_url": older}, "transcripts": items}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    service: Service

    def handle_any(self) -> None:
        """Handle one request, with its fault."""
        service = self.service
        body = self.rfile.read(int(self.headers["Content-Length"])) if "Content-Length" in self.headers else b""
        parts = urlsplit(self.path)
        if parts.path == "/facts":
            with service.lock:
                return self.answer(200, {"made": service.made, "faults": service.faults})
        if parts.path == "/calm":
            service.rate = 0.0
            return self.answer(200, {})
        asked = self.command, parts.path, dict(parse_qsl(parts.query)), body
        time.sleep(service.latency_s)
        with service.lock:
            fault = service.fault(self.command, parts.path)
        if fault in ("reset before", "5xx before", "429", "silence before", "late"):
            return self.fail(fault, asked)
        with service.lock:
            status, answer = service.act(*asked)
        if fault == "shown twice":
            answer["transcripts"] = [item for item in answer["transcripts"] for _ in "ab"]
        if fault in (None, "shown twice"):
            return self.answer(status, answer)
        return self.spoil(fault, answer)

    def fail(self, fault: str, asked: tuple[str, str, dict[str, str], bytes]) -> None:
        """Do not carry out the request, or do so later."""
        if fault == "429":
            self.answer(429, {"error": "too many requests"}, {"Retry-After": "0"})
        elif fault == "5xx before":
            self.answer(self.service.random.choice((500, 502, 503, 504)), {"error": "not now"})
        elif fault == "silence before":
            time.sleep(self.service.silence_s)
            self.reset()
        else:
            self.reset()
            if fault == "late":
                time.sleep(LATE_S)
                with self.service.lock:
                    self.service.act(*asked)

    def spoil(self, fault: str, answer: dict) -> None:
        """Carry out the request, but spoil the response."""
        if fault == "5xx after":
            self.answer(self.service.random.choice((500, 502, 503, 504)), {"error": "not now"})
        elif fault == "no JSON":
            self.answer(200, "<html><title>Sign in</title></html>")
        elif fault == "silence after":
            time.sleep(self.service.silence_s)
            self.reset()
        elif fault == "cut short":
            whole = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])
            self.close_connection = True
        else:
            self.reset()

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        """Send a complete response."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def reset(self) -> None:
        """Close the connection so that the client sees a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.connection.close()

    do_GET = do_POST = do_DELETE = handle_any  # noqa: N815  names the base class looks for

    def handle(self) -> None:
        """Like the base class, but ignore clients that have closed the connection."""
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def finish(self) -> None:
        """Like the base class, but ignore clients that have closed the connection."""
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Write no log."""


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--silence", type=float, default=0.5)
    given = parser.parse_args()
    Handler.service = Service(given.seed, given.rate, given.latency, given.silence)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.service.base_url = f"http://127.0.0.1:{server.server_port}"
    print(Handler.service.base_url, flush=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
