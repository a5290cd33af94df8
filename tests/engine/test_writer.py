"""The local writer, with the real runtime and a tiny model of random weights."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests
from tests.engine.tiny_writer import write_model

from voxframe.errors import SettingsError
from voxframe_engine.answers import Cancelled, ModelFailed, writer
from voxframe_engine.answers.writer import LocalModel


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model."""
    return write_model(tmp_path_factory.mktemp("writer") / "tiny.gguf")


@pytest.fixture(scope="module")
def local(gguf_file: Path) -> Iterator[LocalModel]:
    """A writer with that model."""
    model = LocalModel(gguf_file)
    yield model
    model.close()


def test_it_writes_and_reports(local: LocalModel) -> None:
    """The child starts with the first request; tokens are counted by the runtime, and progress grows to 1."""
    assert local.pid is None
    shares: list[float] = []
    reply = local.ask("You write.", "word " * 400, 12, 1.0, shares.append)
    assert local.name == "tiny"
    assert local.pid is not None
    assert reply.input_tokens > 2000  # each letter is a token
    assert 1 <= reply.output_tokens <= 12
    assert len({share for share in shares if 0 < share < 0.8}) >= 5  # while the request is read
    assert max(shares) <= 1


def test_requests_share_one_child(local: LocalModel) -> None:
    """Two requests at once are both answered, by the same process."""
    local.ask("", "one", 2, 0.0)
    pid = local.pid
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(local.ask("", "two", 5, 0.0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(replies) == 2
    assert local.pid == pid


def test_the_child_outlives_the_thread_of_its_first_request(gguf_file: Path) -> None:
    """Threads of requests and jobs end; the next request is answered by the same process."""
    model = LocalModel(gguf_file)
    thread = threading.Thread(target=lambda: model.ask("", "one", 2, 0.0))
    thread.start()
    thread.join()
    pid = model.pid
    assert pid is not None
    time.sleep(0.2)
    assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    assert model.ask("", "two", 2, 0.0)
    assert model.pid == pid
    model.close()


def test_nobody_else_can_use_it(local: LocalModel) -> None:
    """It listens on loopback only, and refuses requests without its key."""
    local.ask("", "one", 2, 0.0)
    assert local.pid is not None
    (address,) = {one.laddr for one in psutil.Process(local.pid).net_connections() if one.status == "LISTEN"}
    assert address.ip == "127.0.0.1"
    url = f"http://127.0.0.1:{address.port}/v1/chat/completions"
    assert requests.post(url, json={"messages": []}, timeout=10).status_code == 401


def test_a_request_can_be_cancelled(local: LocalModel) -> None:
    """What `report` raises ends the request, and the writer answers the next one."""

    def report(share: float) -> None:
        if share > 0.1:
            raise Cancelled

    with pytest.raises(Cancelled):
        local.ask("", "word " * 400, 12, 0.0, report)
    assert local.ask("", "one", 2, 0.0).output_tokens >= 1


def test_a_dead_child_is_replaced(local: LocalModel) -> None:
    """If the child was killed, for example for its memory, the next request starts a new one."""
    local.ask("", "one", 2, 0.0)
    pid = local.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=10)
    local.ask("", "one", 2, 0.0)
    assert local.pid not in (None, pid)


def test_it_ends_when_idle(gguf_file: Path) -> None:
    """Some time after the last request, the child is gone, and its memory with it."""
    model = LocalModel(gguf_file, idle_s=0.2)
    model.ask("", "one", 2, 0.0)
    deadline = time.monotonic() + 30
    while model.pid is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert model.pid is None


def test_it_ends_with_its_parent(gguf_file: Path) -> None:
    """If the server is killed, no process keeps the memory."""
    code = (
        "import sys, time; from pathlib import Path; from voxframe_engine.answers.writer import LocalModel\n"
        "model = LocalModel(Path(sys.argv[1])); model.ask('', 'one', 2, 0.0)\n"
        "print(model.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(gguf_file)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        assert psutil.wait_procs([child], timeout=30)[1] == []


def test_a_file_that_is_no_model_is_a_clear_error(tmp_path: Path) -> None:
    """The error names the file; nothing keeps running."""
    (tmp_path / "note.gguf").write_bytes(b"no model")
    model = LocalModel(tmp_path / "note.gguf")
    with pytest.raises(ModelFailed, match=r"the local writer note\.gguf cannot be loaded"):
        model.ask("", "one", 2, 0.0)
    assert model.pid is None


def test_the_setting_names_a_file(gguf_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path, "off", or nothing, which is the model of the catalog if it is on this machine."""
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv(writer.VARIABLE, str(gguf_file))
    found = writer.find()
    assert found is not None
    assert found.name == "tiny"
    assert writer.find("off") is None
    with pytest.raises(SettingsError, match="give the path of a GGUF file"):
        writer.find(str(tmp_path / "absent.gguf"))
    monkeypatch.delenv(writer.VARIABLE)
    assert writer.find() is None
    (tmp_path / "writer").mkdir()
    found = writer.find()
    assert found is not None
    assert found.name == "writer"
    with pytest.raises(ModelFailed, match=r"cannot be used: .* is missing\. Run `voxframe models get writer`"):
        found.ask("", "one", 2, 0.0)
