"""The embedded server that commands share."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from tests.embedded import shared_server_stopped
from tests.server.conftest import silence

import voxframe
from voxframe import settings
from voxframe._shared_files import ServerFile
from voxframe.client import command_mode, connect, embedded, shared_server
from voxframe.client.client import Client
from voxframe.errors import ServiceUnreachableError


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Settings with a temporary data directory, whose server is stopped after the test."""
    for name in settings.ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("VOXFRAME_ENGINE", "parrot")  # its servers start faster than those with the default
    with shared_server_stopped(tmp_path / "data"):
        yield settings.resolve()


def pid_of(found: settings.Settings) -> int:
    """Return the process id of the running server."""
    record, _, _ = shared_server.status(found)
    return record.pid


def ended(found: settings.Settings, seconds: float = 20) -> bool:
    """Return True if the server ends in time."""
    until = time.monotonic() + seconds
    while (running := shared_server.status(found)) and time.monotonic() < until:
        time.sleep(0.05)
    return running is None


def command(*arguments: str) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "voxframe", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_job_survives_the_command_that_sent_it(found, tmp_path):
    """`submit` and `sync` in two processes use one server, which reports the notice once and belongs to no terminal."""
    (tmp_path / "silence.wav").write_bytes(silence())
    corpus = ["--corpus", str(tmp_path / "c")]
    with command("submit", str(tmp_path / "silence.wav"), *corpus) as submit:
        out, notice = submit.communicate(timeout=60)
    assert (submit.returncode, out.split(",")[0]) == (0, "1 sent")
    assert notice.startswith("voxframe: no service is configured")
    first = pid_of(found)
    assert os.getsid(first) == first  # Ctrl-C and the end of a terminal do not reach it
    with command("sync", "--wait", *corpus) as sync:
        assert sync.communicate(timeout=60) == (f"1 fetched\nin {tmp_path / 'c'}\n", "")
    assert pid_of(found) == first
    assert voxframe.Corpus(tmp_path / "c").jobs()["state"].to_list() == ["completed"]


def test_two_commands_at_once_start_one_server(found):
    """The second of two commands waits for the server that the first one starts."""
    code = "from voxframe.client.shared_server import share; from voxframe.settings import resolve; share(resolve())"
    commands = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [started.wait(60) for started in commands] == [0, 0, 0]
    log = found.data_dir.joinpath("service", "service.log").read_text()
    assert log.count("serving at") == 1


def test_only_the_owner_can_read_the_record(found):
    """Record, key and folder are closed to other users, and the record does not contain the key."""
    shared = shared_server.share(found)
    folder = found.data_dir / "service"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {(folder / name).stat().st_mode & 0o777 for name in ("shared.json", "key")} == {0o600}
    assert shared.api_key.reveal() not in (folder / "shared.json").read_text()


def test_after_a_kill_the_key_goes_to_no_other_program_on_the_port(found):
    """A record left behind by a killed server is not used: a new server takes over its jobs."""
    with Client(shared_server.share(found)) as client:
        job = client.submit(voxframe.sample())
    record, _, _ = shared_server.status(found)
    killed = psutil.Process(record.pid)
    killed.kill()
    while killed.is_running() and killed.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    asked = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers["Authorization"])

    while True:
        try:
            other = HTTPServer(("127.0.0.1", int(record.base_url.rpartition(":")[2])), Other)
            break
        except OSError:  # children of the killed server, which hold its port, are still ending
            time.sleep(0.05)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    assert json.loads((found.data_dir / "service" / "shared.json").read_text())["pid"] == record.pid
    again = shared_server.share(found)
    other.shutdown()
    other.server_close()
    assert asked == []
    assert again.base_url != record.base_url
    with Client(again) as client:
        assert client.transcript(job.id).status in ("queued", "processing", "completed")


@pytest.mark.parametrize("content", ["", "{", "[1]", "5", '{"pid": 1}'])
def test_a_damaged_record_is_no_server(tmp_path, content):
    """A record that is cut, or is other JSON, belongs to no process."""
    (tmp_path / "shared.json").write_text(content)
    file = ServerFile(tmp_path)
    assert file.record() is None
    assert not file.is_of(1)


def test_a_server_ends_when_its_record_is_damaged_and_the_next_command_starts_another(found):
    """No command can find a server whose record is a list, so it ends, and the next command gets another one."""
    shared_server.share(found)
    first = psutil.Process(pid_of(found))
    (found.data_dir / "service" / "shared.json").write_text("[1]")
    shared_server.share(found)
    assert pid_of(found) != first.pid
    assert not first.is_running() or first.status() == psutil.STATUS_ZOMBIE


def test_a_server_whose_key_is_gone_can_be_stopped(found):
    """Without the key no command can use the server; the error says so, and after `stop` another one starts."""
    first = shared_server.share(found)
    (found.data_dir / "service" / "key").unlink()
    with pytest.raises(ServiceUnreachableError, match=r"cannot read the key of the running server.*server stop"):
        shared_server.status(found)
    assert shared_server.stop(found).base_url == first.base_url
    assert shared_server.share(found).api_key != first.api_key


@pytest.mark.long
def test_a_server_with_other_settings_is_replaced_when_it_has_no_job(found, monkeypatch, capsys):
    """Another model starts another server, but a server with an unfinished job is used as it is, with a notice."""
    monkeypatch.delenv("VOXFRAME_ENGINE")  # with the default engine, whose models can be chosen
    with Client(shared_server.share(found)) as client:
        first = pid_of(found)
        job = client.submit(voxframe.sample())
    monkeypatch.setenv("VOXFRAME_MODEL_NANO", "tiny.en")
    shared_server.share(found)
    assert pid_of(found) == first
    assert "was started with other settings" in capsys.readouterr().err
    with Client(shared_server.share(found)) as client:
        client.delete(job.id)
    shared_server.share(found)
    second = pid_of(found)
    assert second != first
    shared_server.share(found)
    assert pid_of(found) == second


def test_the_server_ends_when_it_has_nothing_to_do(found, monkeypatch):
    """A server without requests ends after its idle time, but not before its last job is finished."""
    with Client(shared_server.share(found)) as client:
        job = client.submit(silence())
    shared_server.stop(found)  # the next server has the job from its start, however late a request arrives
    monkeypatch.setattr(shared_server, "IDLE_S", 0.4)
    shared_server.share(found)
    record = found.data_dir / "service" / "shared.json"
    until = time.monotonic() + 60
    while record.exists() and time.monotonic() < until:  # `status` would be a request
        time.sleep(0.05)
    assert not record.exists()
    monkeypatch.setattr(shared_server, "IDLE_S", 60.0)
    with Client(shared_server.share(found)) as client:
        assert client.transcript(job.id).status == "completed"


@pytest.mark.long
def test_the_server_ends_when_its_data_directory_is_removed(found):
    """A server that no command can find ends at once."""
    shared_server.share(found)
    server = psutil.Process(pid_of(found))
    found.data_dir.joinpath("service", "shared.json").unlink()
    psutil.wait_procs([server], timeout=20)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


def test_a_stopped_server_continues_its_jobs_at_the_next_start(found):
    """`stop` ends the process; a job in progress is queued, and errors say how to continue."""
    client = Client(shared_server.share(found))
    job = client.submit(voxframe.sample())
    stopped = shared_server.stop(found)
    assert ended(found)
    assert shared_server.stop(found) is None
    client.transport.attempts = 1
    with pytest.raises(voxframe.errors.ServiceUnreachableError, match="the embedded server has ended"):
        client.transcript(job.id).status  # noqa: B018 - the property sends the request
    client.close()
    with Client(shared_server.share(found)) as again:
        assert pid_of(found) != stopped.pid
        assert again.transcript(job.id).status in ("queued", "processing", "completed")


@pytest.mark.long
def test_connect_in_python_starts_its_own_server(found, capsys):
    """`connect()` starts a server that ends with the process; in a command it shares one. Both have the same jobs."""
    with command_mode(quiet=True):
        shared = connect()
    job = shared.submit(silence())
    assert connect().base_url != shared.base_url
    own = embedded.launch(found)
    try:
        assert connect().transcript(job.id).id == job.id
        assert connect().base_url == own.base_url
        assert {embedded.is_embedded(shared.base_url), embedded.is_embedded(own.base_url)} == {True}
    finally:
        own.stop()
    assert pid_of(found) > 0


def test_a_server_that_cannot_start_shows_its_log(found, tmp_path: Path):
    """If the database is invalid, the error has the end of the log, and no process is left."""
    folder = found.data_dir / "service"
    folder.mkdir(parents=True)
    (folder / "jobs.sqlite").write_bytes(b"this is no database " * 100)
    with pytest.raises(voxframe.errors.ServiceUnreachableError, match="not a database"):
        shared_server.share(found)
    assert shared_server.status(found) is None


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_in_a_command_leaves_the_server_running(found, tmp_path):
    """Ctrl-C ends `sync --wait`, and the next `sync` fetches the transcript from the same server."""
    (tmp_path / "a.flac").write_bytes(voxframe.sample().read_bytes())
    corpus = ["--corpus", str(tmp_path / "c"), "-q"]
    with command("submit", str(tmp_path / "a.flac"), *corpus) as submit:
        submit.communicate(timeout=60)
    first = pid_of(found)
    with command("sync", "--wait", "-v", *corpus) as sync:
        while "/v2/transcript/" not in sync.stderr.readline():
            pass
        time.sleep(0.5)  # until it waits for its next request
        os.kill(sync.pid, signal.SIGINT)
        sync.communicate(timeout=20)
    assert sync.returncode == 130
    assert pid_of(found) == first
