"""A question to a language model whose answer is lost: it may be paid for, so it is not asked again unbidden."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe import settings
from voxframe.cli import main
from voxframe.errors import BadRequestError, CorpusError, OptionError, ServiceError, ServiceUnreachableError
from voxframe.service.http import Transport


class Model(ThreadingHTTPServer):
    """A service that answers, refuses, loses the answer or is still at it, and counts how often it was asked."""

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
        refused = self.server.mode == "refuses"
        answer = (
            {"error": "no"} if refused else {"request_id": f"r{self.server.asked}", "response": "A talk.", "usage": {}}
        )
        body = json.dumps(answer).encode()
        self.send_response(400 if refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[Model]:
    """The service."""
    server = Model()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """One transcript."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.put("t1", json.dumps(payload("t1")).encode())
    return corpus


def test_a_lost_answer_is_reported_and_asked_for_again_only_when_told(corpus, model, capsys) -> None:
    """The second time is an error before anything is sent; refresh="uncertain" asks once more, and then it is known."""
    with voxframe.connect(model.url, api_key="key") as client:
        model.mode = "loses"
        with pytest.raises(ServiceError):
            corpus.task("Say it.", client=client)
        asked = model.asked
        model.mode = "answers"
        with pytest.raises(CorpusError, match=r"may have been paid for.*refresh='uncertain'"):
            corpus.task("Say it.", client=client)
        assert model.asked == asked
        found = voxframe.Corpus(corpus.path).unanswered()
        assert found[["task", "prompt", "transcript_ids"]].values.tolist() == [["task", "Say it.", ["t1"]]]
        assert str(found["asked"].dtype) == "datetime64[us, UTC]"
        main(["doctor", "--corpus", str(corpus.path)])
        assert "answers of a language model that were lost: 1" in capsys.readouterr().out
        assert corpus.task("Say it.", client=client, refresh="uncertain").text == "A talk."
        assert model.asked == asked + 1
        assert corpus.task("Say it.", client=client, refresh="uncertain").text == "A talk."
        assert model.asked == asked + 1
        assert corpus.unanswered().empty
        with pytest.raises(OptionError, match="'all'"):
            corpus.task("Say it.", client=client, refresh="all")


def test_what_was_not_asked_is_not_uncertain(corpus, model) -> None:
    """A refusal, or a service that cannot be reached, leaves nothing behind; an answer from before stays."""
    with voxframe.connect(model.url, api_key="key") as client:
        model.mode = "refuses"
        with pytest.raises(BadRequestError):
            corpus.summarize(client=client)
        model.mode = "answers"
        assert corpus.summarize(client=client).text == "A talk."
        model.mode = "loses"
        with pytest.raises(ServiceError):
            corpus.summarize(client=client, refresh=True)
        assert corpus.summarize(client=client).text == "A talk."  # the one before is still kept
        assert len(corpus.unanswered()) == 1
    known = settings.resolve("http://127.0.0.1:9", api_key="key")
    transport = Transport(known.base_url, known.api_key, attempts=1)
    with voxframe.Client(known, transport=transport) as nobody, pytest.raises(ServiceUnreachableError):
        corpus.summarize(client=nobody)
    assert len(corpus.unanswered()) == 1
    corpus.forget("t1")
    assert corpus.unanswered().empty


_ASKING = """
import sys, voxframe
with voxframe.connect(sys.argv[2], api_key="key") as client:
    voxframe.Corpus(sys.argv[1]).summarize(client=client, progress=False)
"""


def test_a_process_killed_while_it_waits_for_an_answer(corpus, model) -> None:
    """The next one knows that it was asked."""
    model.mode = "works"
    with subprocess.Popen([sys.executable, "-c", _ASKING, str(corpus.path), model.url]) as process:
        assert model.begun.wait(30)
        process.kill()
    model.mode = "answers"
    with voxframe.connect(model.url, api_key="key") as client:
        with pytest.raises(CorpusError, match="answer was lost"):
            corpus.summarize(client=client)
        assert corpus.summarize(client=client, refresh="uncertain").text == "A talk."
    assert model.asked == 2
    assert corpus.unanswered().empty
