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

from voxframe.client.client import Client
from voxframe.errors import AudioNotFoundError, ServiceTimeoutError

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
def test_async_methods_have_the_same_parameters(name):
    """An async method has the parameters and defaults of its sync version, in the same order."""
    twin = inspect.signature(getattr(Client, name)).parameters
    namesake = inspect.signature(getattr(Client, name.removesuffix("_async"))).parameters
    assert [(p.name, p.kind, p.default) for p in twin.values()] == [
        (p.name, p.kind, p.default) for p in namesake.values()
    ]


def test_long_calls_have_async_versions():
    """Every call that may take long has an async version."""
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


def test_a_job_is_awaited(client, peer, tmp_path):
    """Upload, submission and wait are awaited while the loop continues to run."""
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


def test_many_jobs_need_few_threads(client, peer):
    """Thirty concurrent jobs need at most eight threads and the time of one job."""
    script(peer, jobs=30)
    most = 0

    async def main():
        nonlocal most

        async def watch():
            nonlocal most
            while True:
                most = max(most, client.transport.workers._threads)
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        done = await asyncio.gather(*(client.transcribe_async(f"https://host.example/{n}.mp3") for n in range(30)))
        watching.cancel()
        return done

    done = asyncio.run(main())
    assert sorted(t.id for t in done) == sorted(f"t{n}" for n in range(1, 31))
    assert 1 < most <= 8


def test_errors_are_raised_when_awaited(client, peer):
    """A missing file and a timeout raise errors, with a note on how to continue."""
    script(peer, polls=1000)
    with pytest.raises(AudioNotFoundError):
        asyncio.run(client.transcribe_async("nowhere.wav"))
    with pytest.raises(ServiceTimeoutError, match=r"still 'processing' after 1 s") as caught:
        asyncio.run(client.transcribe_async("https://host.example/a.mp3", timeout=1.0))
    assert "client.wait('t1')" in caught.value.__notes__[0]


def test_cancelling_a_wait_stops_the_requests(client, peer):
    """A cancelled wait ends at once, and no more requests are sent."""
    script(peer, polls=1000)

    async def main():
        task = asyncio.create_task(client.wait_async("t1"))
        await asyncio.sleep(0.8)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        asked = len(peer.requests)
        await asyncio.sleep(1.5)
        assert len(peer.requests) <= asked + 1

    asyncio.run(main())


def test_cancelling_an_upload_stops_the_upload(client, peer):
    """After a cancellation, the uploading thread stops at the next chunk."""
    sent, begun = [], threading.Event()

    class Slow:
        name = "slow"

        def read(self, count=-1):
            sent.append(count)
            begun.set()
            time.sleep(0.02)
            return b"x" * 1000

    async def main():
        task = asyncio.create_task(client.upload_async(Slow()))
        assert await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.2)
        count = len(sent)
        await asyncio.sleep(0.3)
        assert len(sent) == count

    asyncio.run(main())


def test_other_async_methods(client, peer, reply, tmp_path):
    """The async versions of `wait_all`, redacted audio and language-model calls return the same results."""
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


def test_ctrl_c_ends_an_async_script(peer):
    """Ctrl-C ends an async script although a request hangs."""
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
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted"
