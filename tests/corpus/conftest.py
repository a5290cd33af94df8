"""A small service on loopback that records its requests and can be made to fail."""

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.server.conftest import web  # noqa: F401  a fixture here, too

import voxframe

WORDS = [
    {"text": "Good", "start": 100, "end": 300, "confidence": 0.9, "speaker": "A"},
    {"text": "morning.", "start": 310, "end": 700, "confidence": 0.8, "speaker": "A"},
    {"text": "Hello!", "start": 900, "end": 1300, "confidence": 0.7, "speaker": "B"},
]
UTTERANCES = [
    {"speaker": "A", "text": "Good morning.", "start": 100, "end": 700, "confidence": 0.85, "words": WORDS[:2]},
    {"speaker": "B", "text": "Hello!", "start": 900, "end": 1300, "confidence": 0.7, "words": WORDS[2:]},
]


def raw_file(corpus: voxframe.Corpus, name: str) -> Path:
    """Return the file of a payload, by its name without the folder, such as `t1.json.zst`."""
    (path,) = corpus.path.glob(f"raw/*/{name}")
    return path


_DYING = """
import os, sys, voxframe
place, transcript_id, step = sys.argv[1:]
*owners, name = step.split(".")
owner = corpus = voxframe.Corpus(place)
for one in owners:
    owner = getattr(owner, one)
setattr(owner, name, lambda *_: os._exit(9))
corpus.forget(transcript_id)
"""


def forget_until(corpus: voxframe.Corpus, transcript_id: str, step: str) -> None:
    """Forget a transcript in a process that dies when it reaches a step, such as "_ledger.remove"."""
    command = [sys.executable, "-c", _DYING, str(corpus.path), transcript_id, step]
    assert subprocess.run(command, check=False).returncode == 9


def table_files(corpus: voxframe.Corpus, name: str) -> list[Path]:
    """Return the files with the rows of a table, oldest first."""
    return sorted((corpus.path / "tables" / name).glob("[!_]*.parquet"))


def payload(transcript_id: str, status: str = "completed") -> dict:
    """Return a transcript as a service returns it."""
    done = status == "completed"
    return {
        "id": transcript_id,
        "status": status,
        "error": "no audio" if status == "error" else None,
        "text": "Good morning. Hello!" if done else None,
        "audio_duration": 2 if done else None,
        "words": WORDS if done else None,
        "utterances": UTTERANCES if done else None,
    }


def export(transcript_id: str, view: str) -> dict:
    """Return a sentences or paragraphs export."""
    return {
        "id": transcript_id,
        "confidence": 0.8,
        "audio_duration": 2,
        view: [
            {"text": "Good morning.", "start": 100, "end": 700, "confidence": 0.85, "words": WORDS[:2], "speaker": "A"},
            {"text": "Hello!", "start": 900, "end": 1300, "confidence": 0.7, "words": WORDS[2:], "speaker": "B"},
        ],
    }


class Peer:
    """The service.

    Attributes:
        statuses: Status of each transcript it has, by id.
        asked: Every request, as "METHOD /path".
        asked_at: Time of each request, in seconds.
        cut_submissions: Number of submissions that are accepted and whose responses are lost.
        drop_submissions: Number of submissions that are dropped before they are accepted.
        refuse_submissions: Number of submissions that get a 400.
        limit_submissions: Number of submissions that get a 429.
        listing: True if the list is available.
        audio_urls: URL of the audio of each transcript, by id.
        asked_for: Body of each submission, by id.
        outcome: Status of new transcripts.
        clock: Time by the service's clock when it creates a transcript.
        equal_uploads: True if equal audio gets equal URLs.
        longest_list: Number of transcripts after which the list ends, without a link to older ones.
        lagging: True if the list does not show new transcripts until `catch_up` is called.
        base_url: Its URL.
    """

    def __init__(self) -> None:
        self.statuses: dict[str, str] = {}
        self.asked: list[str] = []
        self.asked_at: list[float] = []
        self.audio_urls: dict[str, str] = {}
        self.asked_for: dict[str, dict] = {}
        self.cut_submissions = self.drop_submissions = self.refuse_submissions = self.limit_submissions = 0
        self.listing = True
        self.equal_uploads = False
        self.longest_list = 10**9
        self.lagging = False
        self.unlisted: set[str] = set()
        self.clock = datetime.now(UTC).replace(tzinfo=None)
        self.created: dict[str, str] = {}
        self.outcome = "completed"
        self.base_url = ""

    def count(self, what: str) -> int:
        """Return the number of requests that start with `what`."""
        return sum(line.startswith(what) for line in self.asked)

    def answer(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict] | None:
        """Return status and body; None drops the connection."""
        parts = path.split("?", maxsplit=1)[0].strip("/").split("/")
        if method == "GET" and parts == ["v2", "transcript"]:
            return (200, self.page(path)) if self.listing else (503, {"error": "no list today"})
        if method == "DELETE" and parts[0] == "llm":
            return 200, {"request_id": "purge", "request_id_to_purge": parts[2], "deleted": True}
        if method == "DELETE":
            self.statuses[parts[2]] = "deleted"
            return 200, payload(parts[2]) | {"text": "Deleted by user."}
        if method == "POST" and parts == ["v2", "upload"]:
            name = hashlib.sha256(body).hexdigest() if self.equal_uploads else len(self.asked)
            return 200, {"upload_url": f"{self.base_url}/upload/{name}"}
        if method == "POST":
            if self.refuse_submissions:
                self.refuse_submissions -= 1
                return 400, {"error": "not like this"}
            if self.limit_submissions:
                self.limit_submissions -= 1
                return 429, {"error": "too many"}
            if self.drop_submissions:
                self.drop_submissions -= 1
                return None
            made = f"t{len(self.statuses) + 1}"
            self.statuses[made] = self.outcome
            self.created[made] = self.clock.isoformat()
            self.unlisted |= {made} if self.lagging else set()
            asked = json.loads(body)
            self.audio_urls[made], self.asked_for[made] = asked["audio_url"], asked
            if self.cut_submissions:
                self.cut_submissions -= 1
                return None
            return 200, payload(made, "queued")
        if parts[2] not in self.statuses:
            return 404, {"error": "Transcript lookup error, transcript id not found"}
        if len(parts) == 4:
            return 200, export(parts[2], parts[3])
        return 200, {**self.asked_for.get(parts[2], {}), **payload(parts[2], self.statuses[parts[2]])}

    def catch_up(self) -> None:
        """Show every transcript in the list."""
        self.lagging, self.unlisted = False, set()

    def page(self, path: str) -> dict:
        """Return a page of the list, newest first."""
        query = dict(parse_qsl(urlsplit(path).query))
        ids = [i for i in self.statuses if i not in self.unlisted][::-1][: self.longest_list]
        if "before_id" in query:
            ids = ids[ids.index(query["before_id"]) + 1 :]
        shown = ids[: int(query["limit"])]
        items = [
            {
                "id": i,
                "status": self.statuses[i],
                "audio_url": self.audio_urls.get(i),
                "created": self.created.get(i),
            }
            for i in shown
        ]
        more = f"{self.base_url}/v2/transcript?before_id={shown[-1]}" if len(ids) > len(shown) else None
        return {"page_details": {"prev_url": more}, "transcripts": items}


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A running service."""
    peer = Peer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            peer.asked_at.append(time.monotonic())
            peer.asked.append(f"{self.command} {self.path}")
            answer = peer.answer(self.command, self.path, sent)
            if answer is None:
                self.close_connection = True
                return
            body = answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _handle  # noqa: N815  names the base class looks for

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    peer.base_url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield peer
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(peer: Peer) -> Iterator[voxframe.Client]:
    """A client of the service."""
    with voxframe.connect(peer.base_url, api_key="test-key") as client:
        yield client


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """A corpus that does not exist yet."""
    return voxframe.Corpus(tmp_path / "corpus")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A file to submit."""
    path = tmp_path / "recording.wav"
    path.write_bytes(b"RIFF sound")
    return path
