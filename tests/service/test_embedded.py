"""Starting the embedded service from Python."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
import requests

from voxframe import settings
from voxframe.errors import MissingExtraError, ServiceUnreachableError
from voxframe.service import connect, embedded


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Settings with a data directory of the test's own."""
    for name in settings.ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)
    return settings.resolve(data_dir=tmp_path / "data")


@pytest.fixture
def running(found):
    """A service that was launched."""
    service = embedded.launch(found)
    yield service
    service.stop()


def listing(service):
    """The list of transcripts, with the service's own key."""
    headers = {"Authorization": service.api_key.reveal()}
    return requests.get(f"{service.base_url}/v2/transcript", headers=headers, timeout=10)


def gone(pid, seconds=20):
    """Whether a process ends in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_launched_service_answers_on_loopback_with_its_key(running):
    """Its address and key are all that is needed, and the key is readable by its owner only."""
    assert running.base_url.startswith("http://127.0.0.1:")
    assert listing(running).status_code == 200
    assert running.api_key_file.stat().st_mode & 0o777 == 0o600
    assert running.api_key.reveal() not in repr(running)


def test_second_launch_is_the_same_service(running, found):
    """One process per data directory is enough."""
    assert embedded.launch(found) is running


def test_service_that_died_is_started_again_with_its_key(running, found):
    """A dead service is not handed out, and its clients say what to do; what it knew is still there."""
    key = running.api_key
    client = connect(data_dir=found.data_dir)
    os.kill(running.pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while running.running and time.monotonic() < end:
        time.sleep(0.02)
    told = r"the embedded service has ended.*Call connect\(\) again"
    with pytest.raises(ServiceUnreachableError, match=told) as caught:
        client.wait("t1")
    assert caught.value.__notes__ == [
        "The job goes on with the next connect(); its client.wait('t1') waits for it again."
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


def test_stop_ends_the_process(running):
    """And stopping twice does no harm."""
    running.stop()
    assert not psutil.pid_exists(running.pid)
    assert not running.running
    running.stop()


def test_nothing_is_left_open_at_the_end(tmp_path):
    """A process that used the service ends without a warning of Python about files that nobody closed."""
    code = f"import voxframe; voxframe.connect(data_dir={str(tmp_path)!r})"
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "ResourceWarning" not in ended.stderr


def test_key_for_a_hosted_service_is_not_used(found, monkeypatch):
    """The key in the environment belongs to another service: the embedded one neither takes nor hands it on."""
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
    from voxframe import settings
    from voxframe.service.embedded import launch
    print(launch(settings.resolve(data_dir=sys.argv[1])).pid, flush=True)
    {then}
"""


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
def test_service_ends_with_the_process_that_launched_it(tmp_path, then, number):
    """By its end, an exception, a kernel restart or kill -9."""
    code = textwrap.dedent(_PARENT).format(then=then)
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with parent:
        pid = int(parent.stdout.readline())
        if number:
            parent.send_signal(number)
        parent.wait(20)
        assert gone(pid)


def test_interrupt_is_for_the_code_of_the_user(running):
    """Ctrl-C goes to the terminal's process group, of which the service is no member."""
    assert os.getpgid(running.pid) != os.getpgid(0)


def test_file_beside_the_notebook_is_not_taken_for_a_module(found, tmp_path, monkeypatch):
    """A queue.py in the current directory is the user's own."""
    (tmp_path / "queue.py").write_text("raise SystemExit('taken for the standard library')")
    monkeypatch.chdir(tmp_path)
    service = embedded.launch(found)
    try:
        assert listing(service).status_code == 200
    finally:
        service.stop()


def test_data_directory_that_cannot_be_used_is_named(tmp_path):
    """The message says which directory and how to choose another."""
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ServiceUnreachableError, match=r"file.*VOXFRAME_DATA_DIR"):
        embedded.launch(settings.resolve(data_dir=tmp_path / "file"))


def test_service_that_does_not_come_up_shows_the_end_of_its_log(found):
    """A database that is none stops the start; the message holds the reason from the log, and where the log is."""
    folder = found.data_dir / "service"
    folder.mkdir(parents=True)
    (folder / "jobs.sqlite").write_bytes(b"this is no database " * 100)
    with pytest.raises(ServiceUnreachableError, match=r"service\.log") as caught:
        embedded.launch(found)
    assert "not a database" in str(caught.value)


def test_missing_extra_is_named(found, monkeypatch):
    """Without the extra, the message says what to install."""
    monkeypatch.setattr(embedded, "find_spec", lambda name: None if name == "pocketsphinx" else object())
    with pytest.raises(MissingExtraError, match=r"voxframe\[local\]"):
        embedded.launch(found)


def test_inbox_of_this_process_is_notified_by_the_embedded_service(running, found):
    """A notebook's own receiver is on loopback: the service tells it because who started the service said so."""
    import io
    import wave

    from voxframe import webhooks
    from voxframe.service.client import Client

    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(32_000))
    service = settings.resolve(running.base_url, api_key=running.api_key, data_dir=found.data_dir)
    with Client(service) as client, webhooks.listen(client=client) as inbox:
        job = client.submit(sound.getvalue(), **inbox.options(job="17"))
        told = inbox.get(timeout=60)
        assert (told.transcript_id, told.status, told.params) == (job.id, "completed", {"job": "17"})
        assert told.transcript().status == "completed"


def test_only_who_started_the_service_may_name_a_receiver(running):
    """Another address of this machine stays out of reach."""
    headers = {"Authorization": running.api_key.reveal()}
    running.allow_webhooks("http://127.0.0.1:9001/hook")
    asked = {"audio_url": "http://192.0.2.1/a", "webhook_url": "http://127.0.0.1:9002/hook"}
    refused = requests.post(f"{running.base_url}/v2/transcript", json=asked, headers=headers, timeout=10)
    assert refused.status_code == 400
    running.stop()
    with pytest.raises(ServiceUnreachableError, match="log"):
        running.allow_webhooks("http://127.0.0.1:9003/hook")
