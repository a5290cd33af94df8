"""Async methods in a real kernel and on uvloop."""

import asyncio
import sys
import threading
import time
from typing import Any

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from tests.client.conftest import interrupt

from voxframe.client.client import Client

QUEUED, DONE = {"id": "t1", "status": "queued"}, {"id": "t1", "status": "completed", "text": "Hi."}


def run(kernel: BlockingKernelClient, code: str) -> list[str]:
    """Run a cell and return its output, result and errors."""
    said: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        content = message["content"]
        said.append(content.get("text") or content.get("data", {}).get("text/plain") or content.get("evalue") or "")

    kernel.execute_interactive(code, output_hook=hear, timeout=60)
    return [text for text in said if text]


def script(peer: Any, *states: Any) -> None:
    peer.on("POST", "/v2/upload", {"upload_url": "https://cdn.example/1"})
    peer.on("POST", "/v2/transcript", QUEUED)
    peer.on("GET", "/v2/transcript/t1", *states)


def connect(kernel: BlockingKernelClient, peer: Any) -> None:
    code = f"import voxframe, time\nclient = voxframe.connect({peer.url!r}, api_key='k')"
    assert run(kernel, code) == []


def test_a_cell_awaits_a_job(started: tuple[KernelManager, BlockingKernelClient], peer: Any) -> None:
    """A cell awaits a job on its kernel's loop and shows progress as a widget."""
    script(peer, QUEUED, QUEUED, QUEUED, DONE)
    connect(started[1], peer)
    said = run(started[1], "transcript = await client.transcribe_async(b'audio' * 1000)\nprint(transcript.text)")
    assert said[-1] == "Hi.\n"
    assert not any("Traceback" in text or "Error" in text for text in said)


def test_a_cell_calls_a_sync_method(started: tuple[KernelManager, BlockingKernelClient], peer: Any) -> None:
    """A synchronous call works in a cell and leaves the kernel's loop unchanged."""
    script(peer, QUEUED, DONE)
    connect(started[1], peer)
    assert run(started[1], "print(client.transcribe(b'audio').text)")[-1] == "Hi.\n"


@pytest.mark.parametrize("call", ["client.wait('t1')", "await client.wait_async('t1')"])
@pytest.mark.parametrize("moment", ["pause", "answer"])
def test_an_interrupted_cell_ends(
    started: tuple[KernelManager, BlockingKernelClient], peer: Any, reply: Any, call: str, moment: str
) -> None:
    """Interrupting the kernel ends the wait, between two requests or during one, and the next cell runs."""
    script(peer, QUEUED if moment == "pause" else reply(fault="stall"))
    connect(started[1], peer)

    def later() -> None:
        while not peer.made("GET", "/v2/transcript/t1"):
            time.sleep(0.02)
        time.sleep(0.3)  # until the response has been read, if there is one
        interrupt(started[0])

    threading.Thread(target=later, daemon=True).start()
    code = f"""
try:
    {call}
except BaseException as error:
    print(type(error).__name__)
"""
    assert run(started[1], code)[-1].strip() in ("KeyboardInterrupt", "CancelledError")
    assert run(started[1], "print(1)") == ["1\n"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop on Windows")
def test_on_uvloop(client: Client, peer: Any) -> None:
    """Async methods work on uvloop."""
    import uvloop

    script(peer, QUEUED, DONE)

    async def main() -> list[str | None]:
        return [t.text for t in await asyncio.gather(*(client.transcribe_async(b"audio") for _ in range(5)))]

    assert uvloop.run(main()) == ["Hi."] * 5
