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
from voxframe.errors import ServiceError, ServiceTimeoutError, VoxframeError
from voxframe.service.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    running = Portal()
    yield running
    running.close()


async def double(number: int) -> int:
    await asyncio.sleep(0.001)
    return 2 * number


def test_it_runs_a_coroutine_without_a_loop(portal: Portal) -> None:
    """A script has no loop of its own, and needs none."""
    assert portal.run(lambda: double(2)) == 4


def test_it_runs_beside_a_loop(portal: Portal) -> None:
    """On a running loop both ways work: a call that blocks, and one that is awaited."""

    async def main() -> tuple[int, int]:
        return portal.run(lambda: double(3)), await portal.call(lambda: double(4))

    assert asyncio.run(main()) == (6, 8)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop on Windows")
def test_it_runs_beside_a_loop_of_another_kind(portal: Portal) -> None:
    """A uvloop in the user's thread changes nothing."""
    import uvloop

    async def main() -> tuple[int, int, str]:
        loop = type(asyncio.get_running_loop()).__module__
        return portal.run(lambda: double(3)), await portal.call(lambda: double(4)), loop

    assert uvloop.run(main()) == (6, 8, "uvloop")


def test_it_serves_many_threads(portal: Portal) -> None:
    """Threads do not wait for each other."""

    async def nap() -> None:
        await asyncio.sleep(0.3)

    begun = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: portal.run(nap), range(20)))
    assert time.monotonic() - begun < 2


def test_errors_come_through(portal: Portal) -> None:
    """What a coroutine raises, its own TimeoutError too, is what the caller sees."""

    async def fail(error: Exception) -> None:
        raise error

    with pytest.raises(TimeoutError, match="of its own"):
        portal.run(lambda: fail(TimeoutError("of its own")))

    def broken() -> None:
        raise KeyError("no coroutine")

    with pytest.raises(KeyError):
        portal.run(broken)  # type: ignore[arg-type]


def test_the_callers_context_comes_along(portal: Portal) -> None:
    """Context variables of the caller are those of the coroutine."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    async def read() -> str:
        return variable.get()

    assert portal.run(read) == "set"


def noting(ended: list[str]) -> Callable[[], object]:
    """A coroutine that never ends by itself, and notes its cleanup."""

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append("cleaned up")

    return wait


def test_a_timeout_cancels_and_lets_it_clean_up(portal: Portal) -> None:
    """When the time is up, the coroutine has ended before the caller goes on."""
    ended: list[str] = []
    with pytest.raises(ServiceTimeoutError):
        portal.run(noting(ended), timeout=0.2)  # type: ignore[arg-type]
    assert ended == ["cleaned up"]


def test_ctrl_c_cancels_within_a_fifth_of_a_second(portal: Portal) -> None:
    """An interrupt ends the wait, and the coroutine behind it."""
    ended: list[str] = []
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        portal.run(noting(ended))  # type: ignore[arg-type]
    assert time.monotonic() - sent[0] < 0.2
    assert ended == ["cleaned up"]


def test_cancelling_the_await_cancels_the_coroutine(portal: Portal) -> None:
    """A task that waits for the portal can be cancelled as any other."""
    ended: list[str] = []

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(portal.call(noting(ended)), 0.2)  # type: ignore[arg-type]
        await asyncio.sleep(0.2)

    asyncio.run(main())
    assert ended == ["cleaned up"]


def test_a_call_from_its_own_loop_is_refused(portal: Portal) -> None:
    """Waiting on its own loop would never end; the error says what to do instead."""

    async def inside() -> int:
        return portal.run(lambda: double(1))

    with pytest.raises(ServiceError, match="await its asynchronous twin"):
        portal.run(inside)

    async def awaited() -> int:
        return await portal.call(lambda: double(1))

    assert portal.run(awaited) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    """After a fork the portal works in the child, whatever its thread was doing, and in the parent."""
    from voxframe.service.portal import PORTAL

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


def test_it_starts_again_after_it_was_closed(portal: Portal) -> None:
    """Closing ends what runs; the next call finds a new loop."""
    ended: list[str] = []

    def wait() -> None:
        with pytest.raises((concurrent.futures.CancelledError, ServiceError)):
            portal.run(noting(ended))  # type: ignore[arg-type]

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    portal.close()
    waiting.join(5)
    assert not waiting.is_alive()
    assert ended == ["cleaned up"]
    assert portal.run(lambda: double(1)) == 2


def test_a_script_ends_although_something_still_runs() -> None:
    """The portal's thread does not keep a script alive."""
    script = (
        "import asyncio\n"
        "from voxframe.service.portal import PORTAL\n"
        "asyncio.run_coroutine_threadsafe(asyncio.sleep(60), PORTAL.loop)\n"
        "print(PORTAL.run(lambda: asyncio.sleep(0, 'done')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_importing_changes_no_loop() -> None:
    """Nothing of asyncio is changed by importing every part of the streaming half."""
    script = (
        "import asyncio\n"
        "before = asyncio.run, asyncio.Task, asyncio.BaseEventLoop.run_until_complete\n"
        "import voxframe.service.stream, voxframe.service.portal, voxframe.webhooks\n"
        "import sys\n"
        "assert before == (asyncio.run, asyncio.Task, asyncio.BaseEventLoop.run_until_complete)\n"
        "assert not [name for name in sys.modules if name.startswith('nest_asyncio')]\n"
    )
    subprocess.run([sys.executable, "-c", script], timeout=30, check=True)


def test_nested_loops_are_allowed_on_request() -> None:
    """After allow_nested_loops, asyncio.run works inside a running loop, and the portal goes on working."""
    script = (
        "import asyncio, voxframe\n"
        "from voxframe.service.portal import PORTAL\n"
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
def test_a_loop_that_cannot_be_nested_says_so() -> None:
    """A uvloop cannot be nested: the error says what to do instead."""
    import uvloop

    async def main() -> None:
        voxframe.allow_nested_loops()

    with pytest.raises(VoxframeError, match="await the coroutine"):
        uvloop.run(main())
