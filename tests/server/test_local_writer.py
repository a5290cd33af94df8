"""The local writer behind the endpoints: a tiny model with random weights, in the real runtime."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from tests.engine.tiny_writer import write_model
from tests.server.conftest import Service

DATA = Path(__file__).parents[2] / "data"
TEXT = "Ann: The bridge was closed for a month. Bob: The repair cost two million euros."


@pytest.fixture
def written(start: Callable[..., Service], tmp_path: Path) -> Service:
    """A server with the tiny model as its writer."""
    return start("--writer", str(write_model(tmp_path / "tiny.gguf")), "--llm-requests", "0")


def _generate(service: Service, task: str, **body: object) -> dict[str, Any]:
    """Return a response. The first one takes long, because it starts the writer and loads the sentence encoder."""
    answer = service.session.post(f"{service.url}/llm/v3/generate/{task}", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _child(service: Service) -> psutil.Process | None:
    for child in psutil.Process(service.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # also ZombieProcess: it ends at this moment
            if any("writer_process" in part for part in child.cmdline()):
                return child
    return None


def test_the_server_starts_and_ends_its_writer(written: Service) -> None:
    """The first request starts it. Gibberish is not supported by the text, so key sentences come, and say so."""
    assert _child(written) is None
    answer = _generate(written, "summary", input_text=TEXT, max_output_size=8)
    assert answer["model"] == "voxframe-extractive"
    assert "bridge" in answer["response"]
    answer = _generate(written, "task", input_text=TEXT, prompt="Write a poem", max_output_size=8)
    assert answer["model"] == "tiny"
    assert answer["usage"]["input_tokens"] > len(TEXT)  # each letter is a token
    child = _child(written)
    assert child is not None
    written.stop()
    assert psutil.wait_procs([child], timeout=30)[1] == []


def test_a_request_ends_when_its_client_has_gone(written: Service) -> None:
    """The writer does not go on for nobody: the server logs the end, and the next request is answered."""
    questions = [{"question": f"What happened on day {day}?"} for day in range(60)]  # each is a request to the writer
    body = {"input_text": TEXT * 8, "questions": questions, "max_output_size": 450, "temperature": 1.0}
    with pytest.raises(requests.ReadTimeout):
        written.session.post(f"{written.url}/llm/v3/generate/question-answer", json=body, timeout=0.3)
    deadline = time.monotonic() + 60
    while "the client has gone" not in written.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "cancelled, because the client has gone" in written.log.read_text()
    assert _generate(written, "task", input_text=TEXT, prompt="Write a poem", max_output_size=2)["model"] == "tiny"


@pytest.mark.speech
def test_texts_of_jobs_are_checked_too(written: Service) -> None:
    """A job asks the writer for its texts. Gibberish is not supported by the transcript, so key sentences stay."""
    job = written.create(
        written.upload((DATA / "call.flac").read_bytes()),
        summarization=True,
        multichannel=True,
        speech_model="nano",
        audio_end_at=20_000,
    )
    done = written.wait(job["id"], 280)
    assert _child(written) is not None
    assert done["summary"]
    assert done["summary_method"] == "key sentences, quoted"
