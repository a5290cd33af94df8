"""The decoding processes of streaming, shared by all sessions of a server. Urgent requests are decoded first.

There is one process per core with one thread each, or one process if the engine uses all cores. A process
(`python -P -m voxframe_server.realtime.decode_pool`) writes a line when its model is loaded. Then it reads records (see
the package) and writes the words of each as a JSON array on one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import sys
import traceback
from asyncio import Future, Task
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from voxframe_engine.child_process import end_with_parent, limit_this_process
from voxframe_engine.speech import EngineOptions, engines
from voxframe_server import realtime

_log = logging.getLogger("voxframe_server")

_KEEP_S = 60.0  # time for which the processes keep their model loaded after the last session
_ENGINES = 4  # maximum number of engines in a process, which differ in their words to boost
_LONGEST_LINE = 1 << 22
_LONGEST_S = 300.0  # time after which a process that decodes half a minute of speech is taken to hang


class DecodeError(Exception):
    """No decoding process could be started, or several of them ended during a request."""


class _QueuedDecode(NamedTuple):
    priority: tuple[bool, int]
    order: int
    record: bytes
    future: Future[bytes]
    attempt: int = 1


class DecodePool:
    """Decoding processes with a priority queue. They start with the first session."""

    def __init__(self, engine: str, model: str | None, processes: int) -> None:
        self._arguments = (engine, model or "", str(os.getpid()))
        self._processes = processes
        self._queue: asyncio.PriorityQueue[_QueuedDecode] = asyncio.PriorityQueue()
        self._order = itertools.count()
        self._workers: set[Task[None]] = set()
        self._loaded: set[Task[None]] = set()  # workers whose process is ready
        self._started: set[Future[bytes]] = set()  # requests that are decoded now
        self._ready = asyncio.Event()
        self._sessions = 0
        self._idle: asyncio.TimerHandle | None = None

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep the processes running. The body starts when one of them is ready."""
        self._sessions += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            await self._start()
            yield
        finally:
            self._sessions -= 1
            if not self._sessions:
                self._idle = asyncio.get_running_loop().call_later(_KEEP_S, self._stop)

    def decode(self, priority: int, boost: list[str], samples: bytes, *, later: bool) -> Future[bytes]:
        """Return a future of the words as a JSON array. It fails with DecodeError, and can be cancelled with `drop`."""
        record = realtime.pack(realtime.DECODE, orjson.dumps([priority == realtime.FINAL, boost]) + b"\n" + samples)
        future: Future[bytes] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_QueuedDecode((later, priority), next(self._order), record, future))
        return future

    def drop(self, future: Future[bytes]) -> None:
        """Cancel a request unless it is being decoded."""
        if future not in self._started:
            future.cancel()

    async def close(self) -> None:
        """End the processes."""
        if self._idle is not None:
            self._idle.cancel()
        workers = list(self._workers)
        self._stop()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _start(self) -> None:
        for _ in range(self._processes - len(self._workers)):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        ready = asyncio.create_task(self._ready.wait())
        try:
            while not ready.done():
                if not self._workers:
                    raise DecodeError("no decoding process could be started")
                await asyncio.wait({ready, *self._workers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.cancel()
        self._workers.clear()
        self._loaded.clear()
        self._started.clear()
        self._ready.clear()

    async def _work(self) -> None:
        while await self._run_process():
            _log.error("a decoding process of streaming has ended; another one is started")
        if len(self._workers) <= 1:  # nobody is left to decode
            while not self._queue.empty():
                request = self._queue.get_nowait()
                if not request.future.done():
                    request.future.set_exception(DecodeError("no decoding process could be started"))

    async def _run_process(self) -> bool:
        """Serve requests until the process ends. Return False if it could not start."""
        worker = asyncio.current_task()
        assert worker is not None
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", __name__, *self._arguments),
                stdin=PIPE,
                stdout=PIPE,
                limit=_LONGEST_LINE,
                start_new_session=True,  # Ctrl-C is handled by the server
            )
        except OSError:
            _log.exception("a decoding process of streaming could not be started")
            return False
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if not await process.stdout.readline():
                _log.error("a decoding process of streaming ended before it was ready")
                return False
            self._loaded.add(worker)
            self._ready.set()
            while True:
                request = await self._queue.get()
                if request.future.done():  # cancelled
                    continue
                answer = b""
                self._started.add(request.future)
                with contextlib.suppress(ConnectionError, TimeoutError):
                    async with asyncio.timeout(_LONGEST_S):
                        process.stdin.write(request.record)
                        await process.stdin.drain()
                        answer = await process.stdout.readline()
                self._started.discard(request.future)
                if not answer:  # it has ended, or hangs and is ended
                    self._note_end(request)
                    return True
                if not request.future.done():
                    request.future.set_result(answer)
        finally:
            self._loaded.discard(worker)
            if not self._loaded:
                self._ready.clear()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.stdin.close()
            await process.wait()

    def _note_end(self, request: _QueuedDecode) -> None:
        """Try a request again whose process has ended, perhaps while it was idle."""
        if request.attempt <= self._processes:  # all of them may have ended at the same time
            self._queue.put_nowait(request._replace(attempt=request.attempt + 1))
        elif not request.future.done():
            request.future.set_exception(DecodeError("the decoding process has ended"))


def main() -> int:
    """Serve requests from standard input."""
    name, model, parent = sys.argv[1:]
    end_with_parent(int(parent))
    whole_machine = engines.uses_all_cores(name, model or None)
    limit_this_process(whole_machine=whole_machine)
    if not whole_machine:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[variable] = "1"  # read when numpy is imported
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not be read as words

    import numpy as np

    from voxframe_engine.speech import RATE

    @lru_cache(maxsize=_ENGINES)
    def engine(boost: tuple[str, ...]) -> Any:
        return engines.find(name)(EngineOptions(model or None, boost=boost))

    engine(()).transcribe(np.zeros(RATE // 10, np.int16))  # completes lazy loading
    out.write(b"true\n")
    out.flush()
    for _, data in realtime.unpack(sys.stdin.buffer):
        options, _, samples = data.partition(b"\n")
        is_final, boost = orjson.loads(options)
        recognizer = engine(tuple(boost))
        decode = recognizer.transcribe if is_final else getattr(recognizer, "transcribe_partial", recognizer.transcribe)
        out.write(orjson.dumps([tuple(word) for word in decode(np.frombuffer(samples, np.int16))]) + b"\n")
        out.flush()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as error:  # noqa: BLE001 - the server starts another process
        # The message of an exception may quote the recording; the traceback without it does not.
        sys.stderr.write(f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}\n")
        sys.exit(1)
