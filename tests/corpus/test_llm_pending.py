"""Language-model requests with a lost response. The service may charge for them, so they are not repeated silently."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.corpus.conftest import payload
from tests.language_model import Model, language_model

import voxframe
from voxframe import settings
from voxframe.cli import main
from voxframe.client.http import Transport
from voxframe.errors import BadRequestError, LostAnswerError, OptionError, ServiceError, ServiceUnreachableError
from voxframe.widgets import AskPanel


@pytest.fixture
def model() -> Iterator[Model]:
    """The service."""
    with language_model() as server:
        yield server


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """A corpus with one transcript."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", json.dumps(payload("t1")).encode())
    return corpus


def test_a_lost_response_is_requested_again_only_with_refresh(corpus, model, capsys) -> None:
    """A repeated call is an error before anything is sent; refresh="lost" sends the request once more."""
    with voxframe.connect(model.url, api_key="key") as client:
        model.mode = "loses"
        with pytest.raises(ServiceError):
            corpus.task("Say it.", client=client)
        asked = model.asked
        model.mode = "answers"
        with pytest.raises(LostAnswerError, match=r"may have charged for it.*refresh='lost'"):
            corpus.task("Say it.", client=client)
        assert model.asked == asked
        found = voxframe.Corpus(corpus.path).unanswered()
        assert found[["task", "prompt", "transcript_ids"]].values.tolist() == [["task", "Say it.", ["t1"]]]
        assert str(found["asked"].dtype) == "datetime64[us, UTC]"
        main(["doctor", "--corpus", str(corpus.path)])
        assert "1 language-model request without a response" in capsys.readouterr().out
        answers = corpus.task("Say it.", client=client, refresh="lost")
        assert (answers.text, answers.quotes_key_sentences) == ("A talk.", False)
        assert model.asked == asked + 1
        assert corpus.task("Say it.", client=client, refresh="lost").text == "A talk."
        assert model.asked == asked + 1
        assert corpus.unanswered().empty
        with pytest.raises(OptionError, match="'all'"):
            corpus.task("Say it.", client=client, refresh="all")


def test_the_command_line_sends_lost_requests_again_with_lost(corpus, model, monkeypatch, capsys) -> None:
    """`voxframe summarize` refuses a request whose response was lost, and `--lost` sends it again."""
    monkeypatch.setenv("VOXFRAME_BASE_URL", model.url)
    monkeypatch.setenv("VOXFRAME_API_KEY", "key")
    command = ["summarize", "--corpus", str(corpus.path)]
    model.mode = "loses"
    assert main(command) == 1
    model.mode = "answers"
    assert main(command) == 1
    assert "--lost" in capsys.readouterr().err
    assert main([*command, "--lost"]) == 0
    assert capsys.readouterr().out == "A talk.\n"


def test_a_request_that_was_not_sent_is_not_pending(corpus, model) -> None:
    """A refused request and an unreachable service leave nothing pending; an earlier response stays cached."""
    with voxframe.connect(model.url, api_key="key") as client:
        model.mode = "refuses"
        with pytest.raises(BadRequestError):
            corpus.summarize(client=client)
        model.mode = "answers"
        assert corpus.summarize(client=client).text == "A talk."
        model.mode = "refuses"
        with pytest.raises(BadRequestError):
            corpus.summarize(client=client, refresh=True)
        assert corpus.unanswered().empty
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


def test_a_process_killed_during_a_request(corpus, model) -> None:
    """The next process knows that the request was sent."""
    model.mode = "works"
    with subprocess.Popen([sys.executable, "-c", _ASKING, str(corpus.path), model.url]) as process:
        assert model.begun.wait(30)
        process.kill()
    model.mode = "answers"
    with voxframe.connect(model.url, api_key="key") as client:
        with pytest.raises(LostAnswerError, match="response was lost"):
            corpus.summarize(client=client)
        assert corpus.summarize(client=client, refresh="lost").text == "A talk."
    assert model.asked == 2
    assert corpus.unanswered().empty


@pytest.mark.skipif(sys.platform == "win32", reason="there, Ctrl-C goes to all processes of a console")
@pytest.mark.parametrize("moment", ["limits", "works"])
def test_ctrl_c_during_a_request(corpus, model, moment) -> None:
    """During the pause of a rate limit nothing is pending; during a request its response is lost."""
    model.mode = moment
    command = [sys.executable, "-c", _ASKING, str(corpus.path), model.url]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert model.begun.wait(30)
        time.sleep(1)  # the refusal is read, and the minute begins
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert b"KeyboardInterrupt" in said
    assert (b"between two requests" in said) == (moment == "limits")
    assert len(corpus.unanswered()) == (moment == "works")
    model.mode = "answers"
    with voxframe.connect(model.url, api_key="key") as client:
        again = "lost" if moment == "works" else False
        assert corpus.summarize(client=client, refresh=again).text == "A talk."
    assert model.asked == 2


def test_the_panel_repeats_a_lost_request_only_on_demand(corpus, model) -> None:
    """The panel reports the lost response and offers to repeat the request; afterwards the offer is gone."""
    with voxframe.connect(model.url, api_key="key") as client, closing(AskPanel(corpus, client)) as panel:
        panel.task, panel.prompt = "task", "Say it."
        model.mode = "loses"
        panel.ask()
        panel.wait(60)
        assert panel.error
        assert not panel._lost
        model.mode, asked = "answers", model.asked
        panel.ask()
        panel.wait(60)
        assert "may have charged for it" in panel.error
        assert panel._lost
        assert model.asked == asked
        panel._on_browser_message({"do": "ask", "again": True}, [])
        panel.wait(60)
        assert (panel.error, panel._lost) == ("", False)
        assert panel.result["response"].to_list() == ["A talk."]
        assert model.asked == asked + 1
