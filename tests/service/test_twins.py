import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from voxframe.errors import AudioNotFoundError, ServiceTimeoutError
from voxframe.service.client import Client

DONE = {"id": "t1", "status": "completed", "text": "Hi."}


def script(peer, jobs=1, polls=1):
    peer.on("POST", "/v2/upload", {"upload_url": "https://cdn.example/1"})
    counter = iter(range(1, jobs + 1))
    lock = threading.Lock()

    def submit(request):
        with lock:
            n = next(counter)
        return type(peer)._reply({"id": f"t{n}", "status": "queued"})

    peer.on("POST", "/v2/transcript", submit)
    for n in range(1, jobs + 1):
        peer.on(
            "GET", f"/v2/transcript/t{n}", *[{"id": f"t{n}", "status": "processing"}] * polls, {**DONE, "id": f"t{n}"}
        )


@pytest.fixture(autouse=True)
def _reply_on_peer(peer, reply):
    type(peer)._reply = reply


@pytest.mark.parametrize("name", [n for n in dir(Client) if n.endswith("_async")])
def test_twins_take_what_their_namesakes_take(name):
    """Same arguments, same defaults, same order."""
    twin = inspect.signature(getattr(Client, name)).parameters
    namesake = inspect.signature(getattr(Client, name.removesuffix("_async"))).parameters
    assert [(p.name, p.kind, p.default) for p in twin.values()] == [
        (p.name, p.kind, p.default) for p in namesake.values()
    ]


def test_what_takes_long_has_a_twin():
    """Upload, submit, transcribe, wait, redacted audio and every language-model request."""
    expected = [
        "action_items",
        "ask",
        "redacted_audio",
        "submit",
        "summarize",
        "task",
        "transcribe",
        "upload",
        "wait",
        "wait_all",
    ]
    assert sorted(n.removesuffix("_async") for n in dir(Client) if n.endswith("_async")) == expected


def test_a_job_from_start_to_end(client, peer, tmp_path):
    """Upload, submission and wait are awaited; the loop runs on meanwhile."""
    script(peer, polls=2)
    audio = tmp_path / "a.wav"
    audio.write_bytes(b"audio")
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def main():
        ticking = asyncio.create_task(tick())
        transcript = await client.transcribe_async(audio, speaker_labels=True)
        ticking.cancel()
        return transcript

    assert asyncio.run(main()).text == "Hi."
    assert ticks > 50
    assert peer.made("POST", "/v2/transcript")[0].json["speaker_labels"] is True


def test_many_at_once_need_few_threads(client, peer):
    """Sixty jobs at once, at most eight request threads, and all are finished in the time of one."""
    script(peer, jobs=60)
    most = 0

    async def main():
        nonlocal most

        async def watch():
            nonlocal most
            while True:
                most = max(most, client._http.workers._threads)
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        done = await asyncio.gather(*(client.transcribe_async(f"https://host.example/{n}.mp3") for n in range(60)))
        watching.cancel()
        return done

    started = time.monotonic()
    done = asyncio.run(main())
    assert time.monotonic() - started < 6
    assert sorted(t.id for t in done) == sorted(f"t{n}" for n in range(1, 61))
    assert 1 < most <= 8


def test_errors_come_through(client, peer):
    """A wrong path, and a time that runs out, raise where they are awaited, with the note on how to go on."""
    script(peer, polls=1000)
    with pytest.raises(AudioNotFoundError):
        asyncio.run(client.transcribe_async("nowhere.wav"))
    with pytest.raises(ServiceTimeoutError, match=r"still 'processing' after 1 s") as caught:
        asyncio.run(client.transcribe_async("https://host.example/a.mp3", timeout=1.0))
    assert "client.wait('t1')" in caught.value.__notes__[0]


def test_cancelling_a_wait_stops_the_questions(client, peer):
    """The task ends at once and nothing more is asked."""
    script(peer, polls=1000)

    async def main():
        task = asyncio.create_task(client.wait_async("t1"))
        await asyncio.sleep(0.8)
        task.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 0.2
        asked = len(peer.requests)
        await asyncio.sleep(1.5)
        assert len(peer.requests) <= asked + 1

    asyncio.run(main())


def test_cancelling_an_upload_stops_the_upload(client, peer):
    """The thread that sends it stops at the next piece instead of sending the rest for nobody."""
    sent = []

    class Slow:
        name = "slow"

        def read(self, count=-1):
            sent.append(count)
            time.sleep(0.02)
            return b"x" * 1000

    async def main():
        task = asyncio.create_task(client.upload_async(Slow()))
        await asyncio.sleep(0.5)
        assert sent
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.2)
        count = len(sent)
        await asyncio.sleep(0.3)
        assert len(sent) == count

    asyncio.run(main())


def test_wait_all_and_redacted_audio_and_the_language_model(client, peer, reply, tmp_path):
    """The other twins do what their namesakes do."""
    script(peer, jobs=3)
    peer.on("GET", "/v2/transcript/t1/redacted-audio", reply({}, 202), {"redacted_audio_url": f"{peer.url}/a.wav"})
    peer.on("GET", "/a.wav", reply(b"beep"))
    for task in ("summary", "question-answer", "task", "action-items"):
        peer.on("POST", f"/llm/v3/generate/{task}", {"request_id": "r", "response": task})

    async def main():
        handles = await client.wait_all_async(["t1", "t2", "t3"])
        audio = await client.redacted_audio_async("t1")
        saved = await audio.save_async(tmp_path / "a.wav")
        texts = [
            (await client.summarize_async(handles)).text, (await client.ask_async("Who?", "t1")).text,
            (await client.task_async("Do.", "t1")).text, (await client.action_items_async("t1")).text,
        ]  # fmt: skip
        return handles, saved, texts

    handles, saved, texts = asyncio.run(main())
    assert [h.status for h in handles] == ["completed"] * 3
    assert saved.read_bytes() == b"beep"
    assert texts == ["summary", "question-answer", "task", "action-items"]


def test_an_async_script_ends_when_its_task_does(peer):
    """A request that hangs does not keep the interpreter: Ctrl-C ends a script at once."""
    peer.on("GET", "/v2/transcript/t1", type(peer)._reply(fault="stall"))
    code = f"""
        import asyncio, sys, time
        import voxframe
        client = voxframe.connect({peer.url!r}, api_key="k")
        try:
            asyncio.run(client.wait_async("t1"))
        except KeyboardInterrupt:
            sys.stdout.write("interrupted")
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PYTHONPATH": "src"})  # fmt: skip
    while not peer.requests:
        time.sleep(0.02)
    time.sleep(0.3)
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=10)[0] == "interrupted"
    assert time.monotonic() - sent < 2.0
