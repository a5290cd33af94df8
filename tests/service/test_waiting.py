import itertools
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from voxframe.errors import NotFoundError, ServiceTimeoutError, ServiceUnreachableError
from voxframe.service import Transcript, waiting

ID = "t1"
PATH = f"/v2/transcript/{ID}"
QUEUED, DONE = {"id": ID, "status": "queued"}, {"id": ID, "status": "completed", "text": "Hi."}


def schedule(total_s, **kind):
    """Moments at which a job that takes `total_s` is asked about."""
    at, moments = 0.0, []
    while at < total_s:
        at += waiting.interval(at, first=not moments, **kind)
        moments.append(at)
    return moments


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("audio_s", [None, 0.2, 36_000])
def test_a_job_is_never_asked_about_more_than_once_a_second(local, audio_s):
    """Against any service, and for recordings of any length, two questions are over a second apart."""
    moments = schedule(1000, local=local, audio_s=audio_s)
    assert min(after - before for before, after in itertools.pairwise(moments)) > 1.0


def test_questions_on_the_wire_are_over_a_second_apart(client, peer):
    """The same measured where they arrive, from a fresh handle on, which asks at once."""
    peer.on("GET", PATH, *[QUEUED] * 2, DONE)
    client.wait(ID)
    arrived = [request.at for request in peer.requests]
    assert len(arrived) == 3
    assert min(after - before for before, after in itertools.pairwise(arrived)) > 1.0


def test_a_local_job_is_asked_about_soon():
    """On this machine the first question comes after half a second, and none is late by more than one and a half."""
    assert waiting.interval(0, local=True, first=True) == 0.5
    assert max(waiting.interval(s, local=True) for s in range(1000)) <= 1.55


def test_polling_adapts_to_the_length_of_the_wait_and_the_audio():
    """An hour of waiting is some 250 questions, not 3600; long audio is asked about seldom from the start."""
    assert 200 < len(schedule(3600)) < 300
    assert max(waiting.interval(s) for s in range(0, 100_000, 100)) <= 15
    assert waiting.interval(0, audio_s=600) > 5
    late = [m - 0.9 * m for m in schedule(100)]
    assert all(waiting.interval(m) <= max(1.25, 1.2 * lag) for m, lag in zip(schedule(100), late, strict=False))


def test_waiting_ends_with_the_job(client, peer):
    """The handle that was given is the one that is finished."""
    peer.on("GET", PATH, QUEUED, {"id": ID, "status": "something new"}, DONE)
    handle = Transcript(client, ID)
    assert handle.wait() is handle
    assert handle.text == "Hi."
    assert len(peer.requests) == 3


def test_a_finished_job_is_not_asked_about_again(client, peer):
    """One request for an id, none for a finished handle."""
    peer.on("GET", PATH, DONE)
    handle = client.wait(ID)
    client.wait(handle)
    assert len(peer.requests) == 1


def test_time_runs_out(client, peer):
    """After the time allowed: an error with the state, and a note on how to go on. The job itself goes on."""
    peer.on("GET", PATH, QUEUED)
    started = time.monotonic()
    with pytest.raises(ServiceTimeoutError, match=r"transcript t1 is still 'queued' after 0\.5 s") as caught:
        client.wait(ID, timeout=0.5)
    assert 0.5 <= time.monotonic() - started < 1.5
    assert caught.value.__notes__ == ["The job goes on at the service; client.wait('t1') waits for it again."]


def test_a_service_that_is_away_for_a_while_is_waited_for(client, peer, reply):
    """A job that was paid for survives a restart of the service and a rate limit."""
    peer.on(
        "GET", PATH, QUEUED, reply(b"", 503), reply(fault="reset"), reply(b"<html>", 502), reply(b'{"cut'),
        reply({"error": "slow"}, 429, {"Retry-After": "0"}), DONE,
    )  # fmt: skip
    assert client.wait(ID).text == "Hi."
    assert len(peer.requests) == 7


def test_a_service_that_stays_away_is_an_error_with_the_id(client, peer, reply, monkeypatch):
    """Past the patience the last error comes, with a note that names the job."""
    monkeypatch.setattr(waiting, "LOCAL_OUTAGE_S", 0.7)
    peer.on("GET", PATH, QUEUED, reply(fault="reset"))
    with pytest.raises(ServiceUnreachableError) as caught:
        client.wait(ID)
    assert "client.wait('t1')" in caught.value.__notes__[0]


def test_a_refusal_ends_the_wait_at_once(client, peer, reply):
    """A job that is gone does not come back."""
    peer.on("GET", PATH, QUEUED, reply({"error": "Not found"}, 404))
    with pytest.raises(NotFoundError):
        client.wait(ID)
    assert len(peer.requests) == 2


@pytest.mark.parametrize(
    ("audio", "called"),
    [("talk.flac", "talk.flac"), (b"audio", "audio"), ("https://host/a/talk.mp3?signed=1", "talk.mp3"), (None, ID)],
)
def test_progress_shows_the_recording_and_its_state(client, peer, capsys, monkeypatch, tmp_path, audio, called):
    """The recording, or the id where nobody knows it, with state and time, where that was asked for."""
    monkeypatch.setattr("voxframe.service.progress.PATIENCE_S", 0.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.flac").write_bytes(b"audio")
    peer.on("POST", "/v2/upload", {"upload_url": "https://cdn.example/1"})
    peer.on("POST", "/v2/transcript", QUEUED)
    peer.on("GET", PATH, {"id": ID, "status": "processing"}, DONE)
    handle = Transcript(client, ID) if audio is None else client.submit(audio)
    client.wait(handle, progress=True)
    assert re.search(rf"transcribing {called}, processing 00:0\d", capsys.readouterr().err)
    client.wait(handle)
    assert capsys.readouterr().err == ""


def listed(*statuses):
    """A page of a list, newest first."""
    items = [{"id": f"q{n}", "status": status} for n, status in enumerate(statuses)]
    return {"page_details": {}, "transcripts": items}


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "next in line"),
        (["queued"], "behind another one"),
        (["queued", "queued", "completed"], "behind 2 others"),
        (["queued"] * 200, "behind 200 others or more"),
    ],
)
def test_progress_says_how_long_a_job_is_in_the_queue_and_behind_what(client, peer, capsys, monkeypatch, others, said):
    """Who looks on learns why nothing happens, as far as the list of transcripts tells it."""
    monkeypatch.setattr("voxframe.service.progress.PATIENCE_S", 0.0)
    monkeypatch.setattr(waiting, "_QUEUE_S", -1.0)
    peer.on("GET", PATH, QUEUED, DONE)
    peer.on("GET", "/v2/transcript", listed(*others))
    client.wait(ID, progress=True)
    shown = capsys.readouterr().err
    assert re.search(rf"queued for \d+ s, {said}", shown)
    query = peer.made("GET", "/v2/transcript")[0].query
    assert query == {"status": ["queued"], "before_id": [ID], "limit": ["200"]}


def test_the_queue_is_looked_at_seldom_and_only_for_somebody(client, peer, monkeypatch):
    """Nobody looks: no question about others. And somebody who does costs one in ten seconds."""
    peer.on("GET", PATH, QUEUED, QUEUED, DONE)
    peer.on("GET", "/v2/transcript", listed())
    client.wait(ID)
    assert peer.made("GET", "/v2/transcript") == []
    monkeypatch.setattr(waiting, "_QUEUE_S", 1.0)
    peer.on("GET", PATH, *[QUEUED] * 3, DONE)
    client.wait(ID, progress=True)
    assert 1 <= len(peer.made("GET", "/v2/transcript")) <= 2


def test_ctrl_c_ends_the_wait_within_a_fifth_of_a_second(peer):
    """An interrupt between two questions is felt at once, and the traceback says how to go on."""
    peer.on("GET", PATH, QUEUED)
    script = f"""
        import sys, time, traceback
        import voxframe
        client = voxframe.connect({peer.url!r}, api_key="k")
        try:
            client.wait({ID!r})
        except KeyboardInterrupt:
            sys.stdout.write(repr(time.time()) + "\\n" + traceback.format_exc())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "src"})
    while len(peer.requests) < 3:  # past the quick start, when pauses are longer than a second
        time.sleep(0.02)
    time.sleep(0.3)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    felt, said = child.communicate(timeout=10)[0].split("\n", 1)
    assert float(felt) - sent < 0.2
    assert "client.wait('t1') waits for it again" in said
