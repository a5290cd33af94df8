"""Payloads and tables written on all cores: by this process, and by one more for every other core.

`main` runs one of the other processes. It reads tasks from standard input: each is a line of JSON, followed by the
payload. For each task it writes a line of JSON. The multiprocessing module is not used, because it would run the
caller's script again in every process.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, Self, TypeAlias, get_args

import orjson
import pyarrow as pa

from voxframe import errors
from voxframe.corpus.archive import Archive
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.store import View
from voxframe.corpus.table_batch import TOGETHER, TableBatch
from voxframe.errors import CorpusError, DamagedFileError, PayloadError, VoxframeError, caller
from voxframe.settings import cores

#: Number and size of tasks; for more, starting other processes is worth its time.
_FEW, _SMALL = 32, 16 << 20
_QUEUED = 2  # lists of tasks for each other process that wait here to be sent
_AHEAD = 2  # lists of tasks that another process has or is being sent
#: pyarrow imports pandas if it is installed. Without it, another process starts in a third of the time.
_PROGRAM = """
import sys

class NoPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoPandas())
from voxframe.corpus.workers import main
main()
"""
_PIPE_BYTES = 1 << 20  # with the default of 64 kB, the processes wake each other 30 times per payload
_PATIENCE_S = 30.0  # after an error, for a process to write its last payloads and tables


class Task(NamedTuple):
    """A payload to store, or tables to rebuild."""

    transcript_id: str
    view: View
    payload: bytes | None = None  # to store with its tables; None: rebuild the tables of the stored payload
    replace: bool = False  # a different payload of the transcript
    recording: Mapping[str, str | None] | None = None  # record to store with the payload
    document: Any = None  # result of `frames.decode_transcript` for the payload; another process decodes it again


#: Number of a call of `StoringProcesses.do`, and its tasks.
_Tasks: TypeAlias = tuple[int, list[Task]]


class Result(NamedTuple):
    """Result of a task: False if nothing had to be done, and the reason if it failed."""

    done: bool
    error: str | None = None


def perform(archive: Archive, batch: TableBatch, tasks: Sequence[Task]) -> list[Result]:
    """Perform tasks in this process. Return their results."""
    errors: dict[int, str] = {}
    done = [_begin(archive, batch, task, partial(errors.__setitem__, place)) for place, task in enumerate(tasks)]
    batch.make_held()
    return [
        result._replace(done=result.done and place not in errors, error=errors.get(place))
        for place, result in enumerate(done)
    ]


def _begin(archive: Archive, batch: TableBatch, task: Task, tell: Callable[[str], None]) -> Result:
    """Store a payload. Its tables are made now or later. `tell` is called with the reason if it fails."""

    def failed(error: VoxframeError) -> None:
        is_stored = task.payload is not None and isinstance(error, PayloadError)
        tell(f"it was stored, but cannot be read: {error}" if is_stored else str(error))

    transcript_id, view = task.transcript_id, task.view
    if task.payload is None:
        try:
            stored = archive.stored(transcript_id, view)
        except CorpusError as error:
            tell(str(error))
        else:
            batch.make(transcript_id, view, stored.whole, lambda: stored, failed)
        return Result(done=True)
    batch.settle(transcript_id)
    try:
        payload = archive.store.raw(transcript_id, view)
    except DamagedFileError:
        payload = None
    if payload == task.payload:
        return Result(done=False)
    if payload is not None and not task.replace:
        tell(f"the corpus has another payload of {transcript_id!r}; pass replace=True to replace it")
        return Result(done=True)
    batch.put(transcript_id, view, task.payload, failed, task.recording, task.document)
    return Result(done=True)


class StoringProcesses:
    """Performs tasks in this process and, if there are many, in others. A context manager.

    At its end, or after Ctrl-C, the tables of all stored payloads are written and the other processes have ended.
    """

    def __init__(self, archive: Archive, processes: int | None = None, *, expected: int = 0) -> None:
        self._archive, self._here = archive, TableBatch(archive)
        self._others = (processes or cores()) - 1
        self._count, self._expected, self._bytes = 0, expected, 0
        self._tasks: queue.Queue[_Tasks | None] = queue.Queue(_QUEUED * max(1, self._others))
        self._results: queue.SimpleQueue[_Answer | Exception] = queue.SimpleQueue()
        self._busy: dict[int, _Busy] = {}
        self._children: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._pool = pa.default_memory_pool()
        pa.set_memory_pool(pa.system_memory_pool())  # the default pool of pyarrow keeps 45 MB more
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            pa.set_memory_pool(self._pool)
            try:
                if kind is None:
                    self.wait()
            finally:
                self._finish(None if kind is None else _PATIENCE_S)
            if kind is None:
                self._collect()
        finally:
            for child in self._children:
                child.kill()
                child.wait()

    def wait(self) -> None:
        """Perform the tasks that no other process has been sent, and wait for the others."""
        with contextlib.suppress(queue.Empty):
            while (numbered := self._tasks.get_nowait()) is not None:
                number, tasks = numbered
                self._do_here(tasks, self._busy.pop(number).tell)
        while self._busy:
            self._collect(wait=True)

    def _do_here(self, tasks: Sequence[Task], tell: Callable[[int, Result], None]) -> None:
        for place, result in enumerate(perform(self._archive, self._here, tasks)):
            tell(place, result)
        self._collect()

    def do(self, tasks: Sequence[Task], tell: Callable[[int, Result], None]) -> None:
        """Perform tasks now or soon, in one process. Tasks of one transcript are performed in order."""
        for task in tasks:
            self.settle(task.transcript_id)
        self._count += len(tasks)
        self._bytes += sum(len(task.payload or b"") for task in tasks)
        is_large = max(self._count, self._expected) > _FEW or self._bytes > _SMALL
        if is_large and self._others and not self._children:
            self._start()
        if self._children:
            number = self._count
            self._busy[number] = _Busy({task.transcript_id for task in tasks}, tell)
            with contextlib.suppress(queue.Full):
                self._tasks.put_nowait((number, [task._replace(document=None) for task in tasks]))
                return
            del self._busy[number]
        self._do_here(tasks, tell)

    def settle(self, transcript_id: str) -> None:
        """Wait until no task of a transcript is being performed."""
        self._here.settle(transcript_id)
        while any(transcript_id in busy.ids for busy in self._busy.values()):
            self._collect(wait=True)

    def _collect(self, *, wait: bool = False) -> None:
        """Pass on the results of other processes. Wait for the first if `wait`."""
        while wait or not self._results.empty():
            try:
                answer = self._results.get(timeout=0.2)  # a timeout, so that Ctrl-C is handled on Windows, too
            except queue.Empty:
                continue
            if isinstance(answer, Exception):
                raise answer
            for kind, text in answer.warnings:
                warnings.warn(text, getattr(errors, kind, UserWarning), stacklevel=caller())
            done = self._busy.pop(answer.number)
            for place, result in enumerate(answer.results):
                done.tell(place, result)
            wait = False

    def _start(self) -> None:
        command = [sys.executable, "-P", "-c", _PROGRAM, os.fspath(self._archive.path)]
        environment = {"ARROW_DEFAULT_MEMORY_POOL": "system", **os.environ}  # as in this process
        for _ in range(self._others):
            child = subprocess.Popen(  # noqa: S603  ourselves, in a session that Ctrl-C does not reach
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                env=environment,
                pipesize=_PIPE_BYTES,
            )
            self._children.append(child)
            self._threads.append(threading.Thread(target=self._feed, args=(child,), daemon=True))
            self._threads[-1].start()

    def _finish(self, patience_s: float | None) -> None:
        """Write what was collected here and elsewhere. Tasks that no process has begun are dropped."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._tasks.get_nowait()
        for _ in self._children:
            self._tasks.put(None)
        self._here.close()
        for thread in self._threads:
            thread.join(patience_s)
        if self._children:  # they have written parts that are not merged yet
            self._archive.merge_later()

    def _feed(self, child: subprocess.Popen[bytes]) -> None:
        """Send tasks to a process and receive the results, with one task ahead, so that it need not wait."""
        try:
            with _Connection(child) as connection:
                while True:
                    try:
                        numbered = self._tasks.get(block=not connection.sent)
                    except queue.Empty:
                        self._results.put(connection.receive())
                        continue
                    if numbered is None:
                        break
                    connection.send(*numbered)
                    del numbered  # its payloads
                    if connection.sent == _AHEAD:
                        self._results.put(connection.receive())
                while connection.sent:
                    self._results.put(connection.receive())
                connection.end()
        except (OSError, ValueError):
            self._results.put(CorpusError("a process that wrote tables ended early; repeat the call to continue"))
        except Exception as error:  # noqa: BLE001  without it, the call would wait forever for the result
            self._results.put(error)


class _Busy(NamedTuple):
    """Transcripts of tasks that another process performs, without the payloads, and what is called with the results."""

    ids: set[str]
    tell: Callable[[int, Result], None]


class _Answer(NamedTuple):
    number: int
    results: list[Result]
    warnings: list[tuple[str, str]]


class _Connection:
    """The pipes to another process."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self.sent = 0  # lists of tasks without results
        self._child, self._into, self._out = child, child.stdin, child.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        with contextlib.suppress(OSError):
            self._into.close()

    def send(self, number: int, tasks: Sequence[Task]) -> None:
        heads = [(*task[:2], None if task.payload is None else len(task.payload), *task[3:5]) for task in tasks]
        self._into.write(orjson.dumps([number, heads]) + b"\n")
        for task in tasks:
            self._into.write(task.payload or b"")
        self._into.flush()
        self.sent += 1

    def receive(self) -> _Answer:
        """Raise ValueError if the process has ended, CorpusError if it cannot write."""
        answer = orjson.loads(self._out.readline())
        if isinstance(answer, str):
            raise CorpusError(answer)
        self.sent -= 1
        number, results, warned = answer
        return _Answer(number, [Result(*result) for result in results], warned)

    def end(self) -> None:
        """Let the process write its tables, and wait for its end."""
        self._into.close()
        if message := self._out.read():
            raise CorpusError(orjson.loads(message))
        if self._child.wait():
            raise OSError


def rebuild(archive: Archive, workers: int | None, *, verify: bool, progress: bool) -> int:
    """Rebuild stale tables, without rows of payloads that are gone. Exports come last, because they need the words."""
    from tqdm.auto import tqdm  # the other processes start a tenth faster without it

    count, wrong = 0, list[str]()
    if verify and archive.path.is_dir():
        with clear_errors(archive.path):
            archive.files.write_schemas()  # these may be damaged, too
    for view in get_args(View):
        with clear_errors(archive.path):
            archive.drop_orphans(view)
        ids = archive.stale(view, verify=verify)
        with tqdm(total=len(ids), desc=f"tables of {view}", disable=not progress or len(ids) <= _FEW) as bar:

            def tell(_: int, result: Result, bar: tqdm[NoReturn] = bar) -> None:
                bar.update()
                if result.error:
                    wrong.append(result.error)

            with clear_errors(archive.path), StoringProcesses(archive, workers, expected=len(ids)) as pool:
                for start in range(0, len(ids), TOGETHER):
                    pool.do([Task(transcript_id, view) for transcript_id in ids[start : start + TOGETHER]], tell)
        count += len(ids)
    if wrong:
        raise CorpusError("; ".join(wrong))
    return count


def _read(file: IO[bytes], into: queue.Queue[_Tasks | None]) -> None:
    """Put lists of tasks, with their numbers, into a queue until the main process closes the pipe, or dies."""
    try:
        for line in file:
            number, heads = orjson.loads(line)
            tasks = [
                Task(fields[0], fields[1], None if fields[2] is None else file.read(fields[2]), *fields[3:])
                for fields in heads
            ]
            if all(
                task.payload is None or len(task.payload) == fields[2]
                for task, fields in zip(tasks, heads, strict=True)
            ):
                into.put((number, tasks))
            del tasks
    finally:
        into.put(None)  # also after a line that the main process has not finished


def main() -> None:
    """Perform the tasks of another process."""
    archive, out = Archive(Path(sys.argv[1])), sys.stdout.buffer
    archive.merges = False  # the other process does
    read: queue.Queue[_Tasks | None] = queue.Queue(1)
    threading.Thread(target=_read, args=(sys.stdin.buffer, read), daemon=True).start()  # while others are performed
    try:
        with clear_errors(archive.path), contextlib.closing(TableBatch(archive)) as batch:
            while (numbered := read.get()) is not None:
                number, tasks = numbered
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    results = perform(archive, batch, tasks)
                warned = [(warning.category.__name__, str(warning.message)) for warning in caught]
                out.write(orjson.dumps([number, [*map(tuple, results)], warned]) + b"\n")
                out.flush()
                del numbered, tasks, results
    except CorpusError as error:
        with contextlib.suppress(BrokenPipeError):
            out.write(orjson.dumps(str(error)) + b"\n")
            out.flush()
