import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from voxframe import _progress as progress
from voxframe.client import Transcript, async_bridge, transcript
from voxframe.client.async_bridge import PollState
from voxframe.errors import NotFoundError, RateLimitError, ServiceTimeoutError, ServiceUnreachableError

ID = "t1"
PATH = f"/v2/transcript/{ID}"
QUEUED, DONE = {"id": ID, "status": "queued"}, {"id": ID, "status": "completed", "text": "Hi."}


def schedule(total_s, **kind):
    """Return the times of the requests for a job that takes `total_s` seconds."""
    at, moments = 0.0, []
    while at < total_s:
        at += async_bridge.interval(at, first=not moments, **kind)
        moments.append(at)
    return moments


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("audio_s", [None, 0.2, 36_000])
def test_the_interval_exceeds_a_second(local, audio_s):
    """Two requests for a job are more than a second apart, for any service and duration."""
    moments = schedule(1000, local=local, audio_s=audio_s)
    assert min(after - before for before, after in itertools.pairwise(moments)) > 1.0


def test_requests_are_over_a_second_apart(client, peer):
    """Requests arrive more than a second apart, after the first one of a new handle."""
    peer.on("GET", PATH, *[QUEUED] * 2, DONE)
    client.wait(ID)
    arrived = [request.at for request in peer.requests]
    assert len(arrived) == 3
    assert min(after - before for before, after in itertools.pairwise(arrived)) > 1.0


def test_a_local_job_is_polled_soon():
    """A job of the embedded server is polled after half a second, then at least every 1.5 s."""
    assert async_bridge.interval(0, local=True, first=True) == 0.5
    assert max(async_bridge.interval(s, local=True) for s in range(1000)) <= 1.55


def test_polling_adapts_to_the_length_of_the_wait_and_the_audio():
    """An hour of waiting needs some 250 requests, and long audio is polled rarely from the start."""
    assert 200 < len(schedule(3600)) < 300
    assert max(async_bridge.interval(s) for s in range(0, 100_000, 100)) <= 15
    assert async_bridge.interval(0, audio_s=600) > 5
    late = [m - 0.9 * m for m in schedule(100)]
    assert all(async_bridge.interval(m) <= max(1.25, 1.2 * lag) for m, lag in zip(schedule(100), late, strict=False))


@pytest.mark.usefixtures("soon")
def test_wait_returns_the_finished_handle(client, peer):
    """`wait` returns the given handle when the job is finished."""
    peer.on("GET", PATH, QUEUED, {"id": ID, "status": "something new"}, DONE)
    handle = Transcript(client.transport, ID)
    assert handle.wait() is handle
    assert handle.text == "Hi."
    assert len(peer.requests) == 3


def test_a_finished_job_is_not_polled(client, peer):
    """Waiting sends one request for the id of a finished job, and none for its handle."""
    peer.on("GET", PATH, DONE)
    handle = client.wait(ID)
    client.wait(handle)
    assert len(peer.requests) == 1


def test_a_timeout_has_the_status_and_a_note(client, peer):
    """The timeout error has the status and a note on how to continue."""
    peer.on("GET", PATH, QUEUED)
    with pytest.raises(ServiceTimeoutError, match=r"transcript t1 is still 'queued' after 0\.5 s") as caught:
        client.wait(ID, timeout=0.5)
    assert caught.value.__notes__ == ["The job continues at the service; client.wait('t1') waits for it again."]


@pytest.mark.usefixtures("soon")
def test_a_short_outage_is_tolerated(client, peer, reply):
    """A wait survives a restart of the service and a rate limit."""
    peer.on(
        "GET", PATH, QUEUED, reply(b"", 503), reply(fault="reset"), reply(b"<html>", 502), reply(b'{"cut'),
        reply({"error": "slow"}, 429, {"Retry-After": "0"}), DONE,
    )  # fmt: skip
    assert client.wait(ID).text == "Hi."
    assert len(peer.requests) == 7


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("how", ["wait", "wait_async", "wait_all", "wait_all_async"])
def test_every_transient_status_is_tolerated(client, peer, reply, how):
    """No transient status, 408 and 425 included, ends the wait."""
    peer.on("GET", PATH, QUEUED, reply(b"", 408), reply(b"", 425), DONE)
    handle = client.transcript(ID)
    done = getattr(client, how)([handle] if "all" in how else handle)
    if how.endswith("async"):
        asyncio.run(done)
    assert handle.text == "Hi."
    assert len(peer.requests) == 4


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("status", [408, 425, 503])
def test_the_first_request_is_tolerated_as_later_ones_are(client, peer, reply, status):
    """A wait for an id survives an outage that is longer than the retries of one request."""
    peer.on("GET", PATH, *[reply(b"", status)] * 6, DONE)
    assert client.wait(ID).text == "Hi."
    assert len(peer.requests) == 7


def test_retry_after_cannot_speed_up_polling(client, peer, reply):
    """With any Retry-After, a job is polled at most once per second."""
    asked = {"0": 429, "-5": 503, "soon": 429, "Thu, 01 Jan 1970 00:00:00 GMT": 503}
    refusals = [reply(b"", status, {"Retry-After": value}) for value, status in asked.items()]
    peer.on("GET", PATH, QUEUED, *refusals, DONE)
    client.wait(ID)
    arrived = [request.at for request in peer.requests]
    assert len(arrived) == 6
    assert min(after - before for before, after in itertools.pairwise(arrived)) > 1.0


@pytest.mark.usefixtures("soon")
def test_a_long_outage_is_an_error(client, peer, reply, monkeypatch):
    """After the tolerated outage, the last error is raised with a note that names the job."""
    monkeypatch.setattr(async_bridge, "LOCAL_OUTAGE_S", 0.7)
    peer.on("GET", PATH, QUEUED, reply(fault="reset"))
    with pytest.raises(ServiceUnreachableError) as caught:
        client.wait(ID)
    assert "client.wait('t1')" in caught.value.__notes__[0]


@pytest.mark.usefixtures("soon")
def test_a_refused_request_ends_the_wait(client, peer, reply):
    """A NotFoundError ends the wait at once."""
    peer.on("GET", PATH, QUEUED, reply({"error": "Not found"}, 404))
    with pytest.raises(NotFoundError):
        client.wait(ID)
    assert len(peer.requests) == 2


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("audio", "called"),
    [("talk.flac", "talk.flac"), (b"audio", "audio"), ("https://host/a/talk.mp3?signed=1", "talk.mp3"), (None, ID)],
)
def test_progress_shows_the_recording_and_its_state(client, peer, capsys, monkeypatch, tmp_path, audio, called):
    """The bar shows the recording, or its id, with state and time."""
    monkeypatch.setattr("voxframe._progress.DELAY_S", 0.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.flac").write_bytes(b"audio")
    peer.on("POST", "/v2/upload", {"upload_url": "https://cdn.example/1"})
    peer.on("POST", "/v2/transcript", QUEUED)
    peer.on("GET", PATH, {"id": ID, "status": "processing"}, DONE)
    handle = Transcript(client.transport, ID) if audio is None else client.submit(audio)
    client.wait(handle, progress=True)
    assert re.search(rf"transcribing {called}, processing 00:0\d", capsys.readouterr().err)
    client.wait(handle)
    assert capsys.readouterr().err == ""


def listed(*statuses):
    """Return a page of a list, newest first."""
    items = [{"id": f"q{n}", "status": status} for n, status in enumerate(statuses)]
    return {"page_details": {}, "transcripts": items}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "next in line"),
        (["queued"], "behind another one"),
        (["queued", "queued", "completed"], "behind 2 others"),
        (["queued"] * 200, "behind 200 others or more"),
    ],
)
def test_progress_shows_the_position_in_the_queue(client, peer, capsys, monkeypatch, others, said):
    """The bar shows how long a job is queued and how many jobs are before it."""
    monkeypatch.setattr("voxframe._progress.DELAY_S", 0.0)
    monkeypatch.setattr(transcript, "_QUEUE_S", -1.0)
    peer.on("GET", PATH, QUEUED, DONE)
    peer.on("GET", "/v2/transcript", listed(*others))
    client.wait(ID, progress=True)
    shown = capsys.readouterr().err
    assert re.search(rf"queued for \d+ s, {said}", shown)
    query = peer.made("GET", "/v2/transcript")[0].query
    assert query == {"status": ["queued"], "before_id": [ID], "limit": ["200"]}


def test_the_queue_is_requested_rarely(client, peer, monkeypatch):
    """The queue is requested at most once in ten seconds, and never without a bar."""
    peer.on("GET", PATH, QUEUED, QUEUED, DONE)
    peer.on("GET", "/v2/transcript", listed())
    client.wait(ID)
    assert peer.made("GET", "/v2/transcript") == []
    monkeypatch.setattr(transcript, "_QUEUE_S", 1.0)
    peer.on("GET", PATH, *[QUEUED] * 3, DONE)
    client.wait(ID, progress=True)
    assert 1 <= len(peer.made("GET", "/v2/transcript")) <= 2


def test_ctrl_c_ends_the_wait(peer):
    """An interrupt between two requests ends the wait with a note on how to continue."""
    peer.on("GET", PATH, QUEUED)
    script = f"""
        import sys, traceback
        import voxframe
        client = voxframe.connect({peer.url!r}, api_key="k")
        try:
            client.wait({ID!r})
        except KeyboardInterrupt:
            sys.stdout.write(traceback.format_exc())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "src"})
    while len(peer.requests) < 3:  # past the quick start, when pauses are longer than a second
        time.sleep(0.02)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert "client.wait('t1') waits for it again" in child.communicate(timeout=30)[0]


def test_a_requested_wait_is_kept():
    """After a refusal with Retry-After, the next request waits at least as long; later ones need not."""

    def refuse():
        error = RateLimitError("busy", status=429, method="GET", path="/x")
        error.retry_after = 20.0
        raise error

    poll = PollState(None, local=False)
    poll.tolerate(refuse)()
    assert poll.pause("") == 20.0
    assert 1.0 < poll.pause("") < 1.5


def test_a_bar_is_cleared_and_its_time_left_counts_new_work(monkeypatch, capsys):
    """A bar that showed only states leaves an empty line; jobs that were done before do not shorten the time left."""
    monkeypatch.setattr(progress, "DELAY_S", 0.05)
    with progress.Progress("transcribing", jobs=4, shares=True, show=True) as bar:
        bar.move(2)  # fetched at once
        time.sleep(0.1)
        bar.move(2, "2 of 4 fetched")
    shown = capsys.readouterr().err.split("\r")
    assert " 50%|" in shown[-3]
    assert "<?, 2 of 4 fetched" in shown[-3]
    assert not "".join(shown[-2:]).strip()
