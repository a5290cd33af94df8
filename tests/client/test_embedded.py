"""Starting the embedded server from Python."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from urllib.parse import urlsplit

import psutil
import pytest
import requests

from voxframe import models, settings
from voxframe.client import connect, embedded
from voxframe.errors import MissingExtraError, ServiceUnreachableError

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Settings with a temporary data directory."""
    for name in settings.ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VOXFRAME_ENGINE", "parrot")  # its servers start faster than those with the default
    return settings.resolve(data_dir=tmp_path / "data")


@pytest.fixture
def running(found):
    """A running embedded server."""
    service = embedded.launch(found)
    yield service
    service.stop()


def listing(service):
    """Return the list of transcripts, requested with the server's own key."""
    headers = {"Authorization": service.api_key.reveal()}
    return requests.get(f"{service.base_url}/v2/transcript", headers=headers, timeout=10)


def gone(pid, seconds=20):
    """Return True if a process ends in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_launch_without_models_warns(found, monkeypatch, tmp_path):
    """A warning per purpose has the command that downloads the model, and so has the log of the server."""
    for name in (models.CACHE_VARIABLE, "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    for name in ("HF_HUB_CACHE", "VOXFRAME_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(models.OFFLINE_VARIABLE, "1")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", UserWarning)
        service = embedded.launch(found)
    service.stop()
    said = [str(one.message) for one in shown if one.category is UserWarning]
    expected = {
        "base": "nothing can be transcribed",
        "all-MiniLM-L6-v2": "Analyses go by lists of words instead of meaning",
        "en_core_web_sm": "Entities and redaction find only the names that are in lists",
        "voices": "Speakers are not told apart",
    }
    for message, (name, consequence) in zip(said, expected.items(), strict=True):
        assert f"run `voxframe models get {name}`" in message
        assert consequence in message
    assert "nothing can be transcribed" in service.log.read_text()


def test_a_launched_server_responds(running):
    """A launched server accepts its key, which only its owner can read."""
    assert running.base_url.startswith("http://127.0.0.1:")
    assert listing(running).status_code == 200
    assert running.api_key_file.stat().st_mode & 0o777 == 0o600
    assert running.api_key.reveal() not in repr(running)


def test_a_second_launch_returns_the_running_server(running, found):
    """Launching again on the same data directory returns the running server."""
    assert embedded.launch(found) is running


def test_a_dead_server_is_restarted(running, found):
    """A dead server is replaced with the same key and data, and errors of its clients advise to reconnect."""
    key = running.api_key
    client = connect(data_dir=found.data_dir)
    os.kill(running.pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while running.running and time.monotonic() < end:
        time.sleep(0.02)
    told = r"the embedded server has ended.*Call connect\(\) to restart the server"
    with pytest.raises(ServiceUnreachableError, match=told) as caught:
        client.wait("t1")
    assert caught.value.__notes__ == [
        "The job continues after the next connect(); then client.wait('t1') waits for it."
    ]
    again = embedded.launch(found)
    try:
        assert again.pid != running.pid
        assert again.api_key == key
        assert listing(again).status_code == 200
        with pytest.raises(ServiceUnreachableError, match=told):
            client.stream(bytes(6400), sample_rate=16_000).start()
    finally:
        again.stop()


def test_another_server_on_the_port_of_a_dead_one_is_not_taken_for_it(running, found, tmp_path):
    """If another server got the port of a dead one and refuses its key, errors advise to reconnect."""
    client = connect(data_dir=found.data_dir)
    os.kill(running.pid, signal.SIGKILL)
    assert gone(running.pid)
    command = [sys.executable, "-m", "voxframe_server", "--port", str(urlsplit(running.base_url).port)]
    other = subprocess.Popen([*command, "--data-dir", str(tmp_path / "other"), "--parent-pipe"], **PIPES)
    try:
        assert json.loads(other.stdout.readline())["base_url"] == running.base_url
        assert listing(running).status_code == 401
        told = r"the embedded server has ended.*Call connect\(\) to restart the server"
        with pytest.raises(ServiceUnreachableError, match=told) as caught:
            client.wait("t1")
        assert "after the next connect()" in caught.value.__notes__[0]
        with pytest.raises(ServiceUnreachableError, match=told):
            client.stream(bytes(6400), sample_rate=16_000).start()
    finally:
        other.communicate(timeout=20)


def test_stop_ends_the_process(running):
    """`stop` ends the process and can be called twice."""
    running.stop()
    assert not psutil.pid_exists(running.pid)
    assert not running.running
    running.stop()


def test_exit_leaves_nothing_open(tmp_path):
    """A process that used the server ends without a ResourceWarning."""
    code = f"import voxframe; voxframe.connect(data_dir={str(tmp_path)!r})"
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "ResourceWarning" not in ended.stderr


def test_the_key_of_a_hosted_service_is_not_used(found, monkeypatch):
    """The embedded server neither uses nor inherits the API key in the environment."""
    monkeypatch.setenv("VOXFRAME_API_KEY", "hosted-key")
    service = embedded.launch(found)
    try:
        assert service.api_key.reveal() != "hosted-key"
        refused = requests.get(f"{service.base_url}/v2/transcript", headers={"Authorization": "hosted-key"}, timeout=10)
        assert refused.status_code == 401
        assert "VOXFRAME_API_KEY" not in psutil.Process(service.pid).environ()
    finally:
        service.stop()


_PARENT = """
    import os, sys, time
    from voxframe import models, settings
    from voxframe.client.embedded import launch
    print(launch(settings.resolve(data_dir=sys.argv[1])).pid, flush=True)
    {then}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("then", "number"),
    [
        ("", None),
        ("raise SystemExit(3)", None),
        ("os._exit(0)", None),
        ("time.sleep(60)", signal.SIGTERM),
        ("time.sleep(60)", signal.SIGKILL),
        # A child that was forked holds the pipe open; the service must end nevertheless.
        ("os.fork() or time.sleep(30); os._exit(0)", None),
    ],
)
def test_the_server_ends_with_its_parent(tmp_path, then, number):
    """The server ends when its parent exits, fails, restarts its kernel or is killed."""
    code = textwrap.dedent(_PARENT).format(then=then)
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with parent:
        pid = int(parent.stdout.readline())
        if number:
            parent.send_signal(number)
        parent.wait(20)
        assert gone(pid)


def test_ctrl_c_does_not_reach_the_server(running):
    """The server is not in the process group that receives Ctrl-C."""
    assert os.getpgid(running.pid) != os.getpgid(0)


def test_local_files_do_not_shadow_modules(found, tmp_path, monkeypatch):
    """The server does not import a queue.py in the working directory."""
    (tmp_path / "queue.py").write_text("raise SystemExit('taken for the standard library')")
    monkeypatch.chdir(tmp_path)
    service = embedded.launch(found)
    try:
        assert listing(service).status_code == 200
    finally:
        service.stop()


def test_an_unusable_data_directory_is_named(tmp_path):
    """The error names the directory and how to choose another."""
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ServiceUnreachableError, match=r"file.*VOXFRAME_DATA_DIR"):
        embedded.launch(settings.resolve(data_dir=tmp_path / "file"))


def test_a_failed_start_shows_the_log(found):
    """If an invalid database prevents the start, the error has the end of the log and its path."""
    folder = found.data_dir / "service"
    folder.mkdir(parents=True)
    (folder / "jobs.sqlite").write_bytes(b"this is no database " * 100)
    with pytest.raises(ServiceUnreachableError, match=r"service\.log") as caught:
        embedded.launch(found)
    assert "not a database" in str(caught.value)


def test_missing_extra_is_named(found, monkeypatch):
    """Without the extra `local`, the error names it."""
    monkeypatch.setattr(embedded, "find_spec", lambda name: None if name == "faster_whisper" else object())
    with pytest.raises(MissingExtraError, match=r"voxframe\[local\]"):
        embedded.launch(found)


def test_a_receiver_of_this_process_is_notified(running, found):
    """The server notifies a loopback receiver that the process which started it has allowed."""
    import io
    import wave

    from voxframe import webhooks
    from voxframe.client.client import Client

    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(32_000))
    service = settings.resolve(running.base_url, api_key=running.api_key, data_dir=found.data_dir)
    with Client(service) as client, webhooks.listen(client=client) as receiver:
        job = client.submit(sound.getvalue(), **receiver.options(job="17"))
        told = receiver.get(timeout=60)
        assert (told.transcript_id, told.status, told.params) == (job.id, "completed", {"job": "17"})
        assert told.transcript().status == "completed"


def test_other_loopback_receivers_are_refused(running):
    """A webhook URL on loopback that was not allowed is refused."""
    headers = {"Authorization": running.api_key.reveal()}
    running.allow_webhooks("http://127.0.0.1:9001/hook")
    asked = {"audio_url": "http://192.0.2.1/a", "webhook_url": "http://127.0.0.1:9002/hook"}
    refused = requests.post(f"{running.base_url}/v2/transcript", json=asked, headers=headers, timeout=10)
    assert refused.status_code == 400
    running.stop()
    with pytest.raises(ServiceUnreachableError, match="log"):
        running.allow_webhooks("http://127.0.0.1:9003/hook")
