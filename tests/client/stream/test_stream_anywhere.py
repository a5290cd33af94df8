"""Streaming sessions in scripts, threads, two kinds of event loops, and a real kernel."""

import asyncio
import gc
import itertools
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from tests.client.conftest import interrupt

from voxframe.client.async_bridge import PORTAL
from voxframe.client.stream import Stream

EXPECTED = ["second 1", "second 2", "second 3"]
SETUP = """
from voxframe.client.stream import Stream
from voxframe.client.stream.messages import Final
from voxframe.settings import Secret
def stream(source, **how):
    how = {{"url": {url!r}, "key": Secret("a-key-for-the-peer"), "realtime": False, "sample_rate": 16000}} | how
    return Stream(source, **how)
"""


async def collect(session: Stream) -> list[str]:
    async with session:
        return [message.text async for message in session if message.message_type == "FinalTranscript"]


def test_in_a_script(peer: Any, speech: Path) -> None:
    """A script streams, prints and ends."""
    script = SETUP.format(url=peer.url) + f"print([final.text for final in stream({str(speech)!r}).wait()])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (f"{EXPECTED}\n", "")


@pytest.mark.parametrize("left", ["session.terminate()", "session.abort()", "pass"])
def test_a_script_that_leaves_a_session_ends_quietly(peer: Any, left: str) -> None:
    """A script ends without output, however it leaves a session."""
    script = SETUP.format(url=peer.url) + textwrap.dedent(f"""
        import itertools, time
        session = stream(itertools.repeat(bytes(6400)), realtime=True).start()
        time.sleep(0.3)
        {left}
    """)
    # -X dev has asyncio tell of every task that is thrown away.
    command = [sys.executable, "-X", "dev", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_in_threads(stream: Callable[..., Stream], speech: Path) -> None:
    """Several threads stream at the same time."""
    texts: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: texts.append([final.text for final in stream(speech).wait()])) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert texts == [EXPECTED] * 5


def test_on_a_running_loop(stream: Callable[..., Stream], speech: Path) -> None:
    """On a running loop, several sessions are awaited concurrently, and a synchronous one works."""

    async def main() -> list[list[str]]:
        awaited = await asyncio.gather(*(collect(stream(speech)) for _ in range(5)))
        return [*awaited, [final.text for final in stream(speech).wait()]]

    assert asyncio.run(main()) == [EXPECTED] * 6


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop on Windows")
def test_on_uvloop(stream: Callable[..., Stream], speech: Path) -> None:
    """Sessions work on uvloop."""
    import uvloop

    async def main() -> list[str]:
        return await collect(stream(speech))

    assert uvloop.run(main()) == EXPECTED


class Kernel:
    """A real Jupyter kernel."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def cell(self, code: str, timeout: float = 60) -> tuple[str, dict[str, Any]]:
        """Run a cell and return its output and reply."""
        printed: list[str] = []

        def note(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = self.client.execute_interactive(textwrap.dedent(code), timeout=timeout, output_hook=note)
        return "".join(printed), reply["content"]

    def run(self, code: str) -> str:
        printed, content = self.cell(code)
        assert content["status"] == "ok", content
        return printed


@pytest.fixture
def kernel(started: tuple[KernelManager, BlockingKernelClient], peer: Any) -> Kernel:
    running = Kernel(*started)
    running.run(SETUP.format(url=peer.url))
    return running


def test_a_cell_iterates_both_ways(kernel: Kernel, speech: Path) -> None:
    """In a cell, `for` and `async for` both work without patching the loop."""
    code = f"""
        import asyncio, sys
        finals = [m.text for m in stream({str(speech)!r}) if isinstance(m, Final)]
        async with stream({str(speech)!r}) as session:
            again = [m.text async for m in session if isinstance(m, Final)]
        print(finals, again, [name for name in sys.modules if name.startswith("nest_asyncio")])
    """
    # ipykernel brings nest_asyncio2 itself in some versions; what counts is that asyncio.run stays what it is.
    assert kernel.run(code).startswith(f"{EXPECTED} {EXPECTED}")
    assert "cannot be called from a running event loop" in kernel.run(
        "try:\n    c = asyncio.sleep(0)\n    asyncio.run(c)\nexcept RuntimeError as e:\n    c.close(); print(e)"
    )


def test_a_session_continues_between_cells(kernel: Kernel) -> None:
    """A session started in one cell is read in the next and ended in a third."""
    kernel.run("""
        import itertools
        session = stream(itertools.repeat(bytes(6400)), realtime=True).start()
    """)
    deadline = time.monotonic() + 20
    while int(kernel.run("print(len(session.finals))")) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    shown = kernel.run("""
        import voxframe
        df = voxframe.load_stream(session)
        print(df.loc[df["message_type"] == "FinalTranscript", "text"].to_list()[:2])
    """)
    assert shown == "['second 1', 'second 2']\n"
    rest = kernel.run("print(session.terminate()[-1].text.startswith('second'), session.ended)")
    assert rest == "True True\n"


def test_output_of_callbacks_is_shown(kernel: Kernel, speech: Path) -> None:
    """Output of callbacks appears below the cell that started the session."""
    printed = kernel.run(f"finals = stream({str(speech)!r}, on_final=lambda final: print(final.text)).wait()")
    assert printed.split("\n")[:3] == EXPECTED


def test_interrupting_a_cell_ends_the_session(kernel: Kernel, peer: Any) -> None:
    """An interrupt of the kernel closes the connection, and the kernel continues."""
    before = len(peer.sessions)

    def later() -> None:
        while len(peer.sessions) == before or not peer.sessions[-1].frames:
            time.sleep(0.02)
        interrupt(kernel.manager)

    threading.Thread(target=later, daemon=True).start()
    _, content = kernel.cell("""
        import itertools, time
        live = stream(itertools.repeat(bytes(6400)), realtime=True)
        with live:
            for message in live:
                pass
    """)
    assert content["ename"] == "KeyboardInterrupt"
    assert kernel.run("print(len(live.messages) > 0)") == "True\n"
    deadline = time.monotonic() + 5
    while kernel.run("print(live.ended)") != "True\n":
        assert time.monotonic() < deadline


@pytest.mark.parametrize("call", ["await live.start_async()", "await live.__anext__()", "await live.wait_async()"])
def test_interrupting_an_awaited_session(kernel: Kernel, peer: Any, call: str) -> None:
    """An interrupt ends a cell that awaits a silent session."""

    async def say_nothing(session: Any) -> None:
        if "start" not in call:
            await session.begin()
        await session.connection.wait_closed()

    peer.script = say_nothing

    def later() -> None:
        while not peer.sessions:
            time.sleep(0.02)
        time.sleep(1.0)  # past every timer but the one that keeps the loop awake
        interrupt(kernel.manager)

    threading.Thread(target=later, daemon=True).start()
    first = "" if "start" in call else "await live.start_async()" + ("\n    await live.__anext__()" * ("next" in call))
    printed = kernel.run(f"""
import itertools
live = stream(itertools.repeat(bytes(6400)), realtime=True, keepalive_s=60.0)
try:
    {first}
    {call}
except BaseException as error:
    print(type(error).__name__)
live.abort()
""")
    assert printed.strip() in ("KeyboardInterrupt", "CancelledError")


def test_nested_loops_work_in_a_kernel(kernel: Kernel, speech: Path) -> None:
    """After `allow_nested_loops`, a cell may call asyncio.run, and sessions still work."""
    code = f"""
        import voxframe
        voxframe.allow_nested_loops()
        print(asyncio.run(asyncio.sleep(0, "nested")), len(stream({str(speech)!r}).wait()))
    """
    assert kernel.run(code) == "nested 3\n"


def test_an_aborted_session_leaves_no_socket_at_exit(stream: Callable[..., Stream]) -> None:
    """If the event loop ends while a session is being aborted, its socket is closed before the loop."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in range(30):  # at different points of the abort
            session = stream(itertools.repeat(bytes(6400)), realtime=True).start()
            time.sleep(n % 6 * 0.004)
            session.abort()
            time.sleep(n % 5 * 0.001)
            PORTAL.close()
            del session
            gc.collect()
    assert [str(warning.message) for warning in told] == []
