import asyncio
import concurrent.futures
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import voxframe
from voxframe.client.async_bridge import Portal
from voxframe.errors import ServiceError, ServiceTimeoutError, VoxframeError


@pytest.fixture
def portal() -> Iterator[Portal]:
    running = Portal()
    yield running
    running.close()


async def double(number: int) -> int:
    await asyncio.sleep(0.001)
    return 2 * number


def test_a_coroutine_runs_without_a_loop(portal: Portal) -> None:
    """A script without an event loop can run coroutines."""
    assert portal.run(lambda: double(2)) == 4


def test_a_coroutine_runs_beside_a_running_loop(portal: Portal) -> None:
    """With a running loop, coroutines can be called synchronously or awaited."""

    async def main() -> tuple[int, int]:
        return portal.run(lambda: double(3)), await portal.call(lambda: double(4))

    assert asyncio.run(main()) == (6, 8)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop on Windows")
def test_a_coroutine_runs_beside_uvloop(portal: Portal) -> None:
    """With uvloop in the caller's thread, both ways work."""
    import uvloop

    async def main() -> tuple[int, int, str]:
        loop = type(asyncio.get_running_loop()).__module__
        return portal.run(lambda: double(3)), await portal.call(lambda: double(4)), loop

    assert uvloop.run(main()) == (6, 8, "uvloop")


def test_threads_run_coroutines_concurrently(portal: Portal) -> None:
    """Coroutines of several threads run concurrently."""
    all_at_once = asyncio.Barrier(20)

    async def meet() -> None:
        await all_at_once.wait()

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: portal.run(meet), range(20)))


def test_errors_reach_the_caller(portal: Portal) -> None:
    """Errors of a coroutine, including its own TimeoutError, reach the caller."""

    async def fail(error: Exception) -> None:
        raise error

    with pytest.raises(TimeoutError, match="of its own"):
        portal.run(lambda: fail(TimeoutError("of its own")))

    def broken() -> None:
        raise KeyError("no coroutine")

    with pytest.raises(KeyError):
        portal.run(broken)  # type: ignore[arg-type]


def test_the_context_of_the_caller_is_used(portal: Portal) -> None:
    """The coroutine sees the context variables of the caller."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    async def read() -> str:
        return variable.get()

    assert portal.run(read) == "set"


def noting(ended: list[str], begun: threading.Event | None = None) -> Callable[[], object]:
    """Run until cancelled, and record the cleanup."""

    async def wait() -> None:
        try:
            if begun is not None:
                begun.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append("cleaned up")

    return wait


def test_a_timeout_waits_for_the_cleanup(portal: Portal) -> None:
    """After a timeout, the coroutine has ended before the caller continues."""
    ended: list[str] = []
    with pytest.raises(ServiceTimeoutError):
        portal.run(noting(ended), timeout=1.0)  # type: ignore[arg-type]
    assert ended == ["cleaned up"]


def test_ctrl_c_cancels_the_coroutine(portal: Portal) -> None:
    """An interrupt ends the call and cancels the coroutine."""
    ended: list[str] = []
    begun = threading.Event()
    threading.Thread(target=lambda: begun.wait(20) and os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        portal.run(noting(ended, begun))  # type: ignore[arg-type]
    assert ended == ["cleaned up"]


def test_cancelling_the_await_cancels_the_coroutine(portal: Portal) -> None:
    """Cancelling the awaiting task cancels the coroutine."""
    ended: list[str] = []

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(portal.call(noting(ended)), 1.0)  # type: ignore[arg-type]

    asyncio.run(main())
    until = time.monotonic() + 20
    while not ended and time.monotonic() < until:
        time.sleep(0.01)
    assert ended == ["cleaned up"]


def test_a_call_from_its_own_loop_is_refused(portal: Portal) -> None:
    """A synchronous call on the portal's loop raises an error with the alternative instead of blocking."""

    async def inside() -> int:
        return portal.run(lambda: double(1))

    with pytest.raises(ServiceError, match="await its async version"):
        portal.run(inside)

    async def awaited() -> int:
        return await portal.call(lambda: double(1))

    assert portal.run(awaited) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_its_own_loop() -> None:
    """After a fork, the portal works in the child and in the parent."""
    from voxframe.client.async_bridge import PORTAL

    assert PORTAL.run(lambda: double(1)) == 2
    with PORTAL._lock:  # the worst moment
        child = os.fork()
        if child == 0:
            code = 2
            try:
                code = 0 if PORTAL.run(lambda: double(2), timeout=10) == 4 else 1
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert PORTAL.run(lambda: double(3)) == 6


def test_a_closed_portal_starts_again(portal: Portal) -> None:
    """Closing ends running coroutines; the next call starts another loop."""
    ended: list[str] = []
    begun = threading.Event()

    def wait() -> None:
        with pytest.raises((concurrent.futures.CancelledError, ServiceError)):
            portal.run(noting(ended, begun))  # type: ignore[arg-type]

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert begun.wait(20)
    portal.close()
    waiting.join(20)
    assert not waiting.is_alive()
    assert ended == ["cleaned up"]
    assert portal.run(lambda: double(1)) == 2


def test_a_running_coroutine_does_not_keep_a_script_alive() -> None:
    """A script ends although a coroutine is still running on the portal."""
    script = (
        "import asyncio\n"
        "from voxframe.client.async_bridge import PORTAL\n"
        "asyncio.run_coroutine_threadsafe(asyncio.sleep(60), PORTAL.loop)\n"
        "print(PORTAL.run(lambda: asyncio.sleep(0, 'done')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_importing_does_not_change_asyncio() -> None:
    """Importing the streaming modules changes no loop and no policy of asyncio."""
    script = (
        "import asyncio\n"
        "before = asyncio.run, asyncio.Task, asyncio.BaseEventLoop.run_until_complete\n"
        "import voxframe.client.stream, voxframe.client.async_bridge, voxframe.webhooks\n"
        "import sys\n"
        "assert before == (asyncio.run, asyncio.Task, asyncio.BaseEventLoop.run_until_complete)\n"
        "assert not [name for name in sys.modules if name.startswith('nest_asyncio')]\n"
    )
    subprocess.run([sys.executable, "-c", script], timeout=30, check=True)


def test_nested_loops_are_allowed_on_request() -> None:
    """After `allow_nested_loops`, asyncio.run works inside a running loop, and the portal continues to work."""
    script = (
        "import asyncio, voxframe\n"
        "from voxframe.client.async_bridge import PORTAL\n"
        "async def two(): return 2\n"
        "assert PORTAL.run(two) == 2\n"
        "async def main():\n"
        "    voxframe.allow_nested_loops()\n"
        "    return asyncio.run(two()), PORTAL.run(two), await PORTAL.call(two)\n"
        "print(asyncio.run(main()))\n"
        "PORTAL.close()\n"
        "print(PORTAL.run(two))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == "(2, 2, 2)\n2\n", done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop on Windows")
def test_uvloop_cannot_be_nested() -> None:
    """On uvloop, `allow_nested_loops` raises an error with the alternative."""
    import uvloop

    async def main() -> None:
        voxframe.allow_nested_loops()

    with pytest.raises(VoxframeError, match="await the coroutine"):
        uvloop.run(main())
