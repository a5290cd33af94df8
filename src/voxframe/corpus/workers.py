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
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, Self, TypeAlias, get_args

import orjson
import pyarrow as pa

from voxframe import errors, frames
from voxframe.corpus.archive import Archive
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.store import Stored, View
from voxframe.corpus.tables import NewMember, PartBatch, new_member
from voxframe.errors import CorpusError, DamagedFileError, PayloadError, VoxframeError, caller
from voxframe.settings import cores

_AHEAD = 3  # payloads that are being stored
#: Payloads whose recordings are named and whose tables are made together, and their bytes.
TOGETHER, BYTES_TOGETHER = 16, 5 << 20


class _Storing(NamedTuple):
    """A payload that is being stored. `stored` waits for it, and `made` returns its tables then."""

    view: View
    stored: Callable[[], Stored]
    made: Callable[[Stored], NewMember]


class _Held(NamedTuple):
    """A payload with tables that are made together with those of the next ones: see `TableBatch.make`."""

    transcript_id: str
    view: View
    raw: bytes
    stored: Callable[[], Stored]
    failed: Callable[[VoxframeError], None]
    document: Any


class TableBatch:
    """Payloads of many transcripts that are stored while the tables of others are made, and written in large parts."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._thread = ThreadPoolExecutor(1)
        self._held: list[_Held] = []
        self._storing: dict[str, _Storing] = {}
        self._parts = PartBatch(archive.write_part)

    def put(
        self,
        transcript_id: str,
        view: View,
        raw: bytes,
        failed: Callable[[VoxframeError], None],
        recording: Mapping[str, object] | None = None,
        document: Any = None,
    ) -> None:
        """Store a payload and its tables. Both are on the disk after `close`, or earlier. One thread may call this."""
        self._archive.check_id(transcript_id, view)
        self.settle(transcript_id)
        # The disk is written while the tables of this payload and the next are made.
        stored = self._thread.submit(self._archive.store.put, transcript_id, view, raw, None, recording)
        self.make(transcript_id, view, raw, stored.result, failed, document)

    def make(
        self,
        transcript_id: str,
        view: View,
        raw: bytes,
        stored: Callable[[], Stored],
        failed: Callable[[VoxframeError], None],
        document: Any = None,
    ) -> None:
        """Make the tables of a payload now, or together with those of the next ones. One thread may call this."""
        if document is None and view == "transcript":
            document = frames.decode_transcript(raw)
        payload = _Held(transcript_id, view, raw, stored, failed, document)
        if document is None:
            self._make_alone(payload)
            return
        self._held.append(payload)
        if len(self._held) == TOGETHER or sum(len(item.raw) for item in self._held) >= BYTES_TOGETHER:
            self.make_held()

    def make_held(self) -> None:
        """Make the tables of the payloads that were held."""
        if not self._held:
            return
        ids = [payload.transcript_id for payload in self._held]
        together = frames.tables_together([payload.document for payload in self._held], ids) if len(ids) > 1 else None
        for place, payload in enumerate(self._held):
            if together is None:
                self._make_alone(payload)
            else:
                self._storing[payload.transcript_id] = _Storing(
                    payload.view, payload.stored, new_member(payload.transcript_id, together[place])
                )
        self._held = []
        self._settle_all_but(_AHEAD)

    def _make_alone(self, payload: _Held) -> None:
        try:
            finish = self._archive.made(payload.transcript_id, payload.view, payload.raw, payload.document)
        except (PayloadError, CorpusError) as error:
            payload.stored()  # a payload that cannot be stored is the first error
            payload.failed(error)
        else:
            self._storing[payload.transcript_id] = _Storing(payload.view, payload.stored, finish)
            self._settle_all_but(_AHEAD)

    def settle(self, transcript_id: str) -> None:
        """Wait until no payload of a transcript is being stored."""
        if any(item.transcript_id == transcript_id for item in self._held):
            self.make_held()
        while transcript_id in self._storing:
            self._settle_first()

    def _settle_all_but(self, count: int) -> None:
        while len(self._storing) > count:
            self._settle_first()

    def _settle_first(self) -> None:
        first = self._storing.pop(next(iter(self._storing)))
        self._parts.add(first.view, first.made(first.stored()))

    def close(self) -> None:
        """Write what was collected."""
        try:
            self.make_held()
            self._settle_all_but(0)
        finally:
            self._thread.shutdown()
            self._parts.close()


#: Number and size of tasks; for more, starting other processes is worth its time.
_FEW, _SMALL = 32, 16 << 20
_QUEUED = 3  # lists of tasks that each other process performs, or that wait here for it
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


class Result(NamedTuple):
    """Result of a task: False if nothing had to be done, and the reason if it failed."""

    done: bool
    error: str | None = None


#: Results of tasks, and the warnings as category and text.
_Answer: TypeAlias = "tuple[list[Result], list[tuple[str, str]]]"


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
        self._children: list[_StoringChild] = []
        self._free: queue.SimpleQueue[_StoringChild] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(max(1, self._others), "voxframe-storing")  # one for each child
        self._sent: dict[Future[_Answer], tuple[Sequence[Task], Callable[[int, Result], None]]] = {}

    def __enter__(self) -> Self:
        self._pool = pa.default_memory_pool()
        pa.set_memory_pool(pa.system_memory_pool())  # the default pool of pyarrow keeps 45 MB more
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            pa.set_memory_pool(self._pool)
            try:
                if kind is None:
                    self._wait()
            finally:
                ends = self._finish(None if kind is None else _PATIENCE_S)
            if kind is None:
                for end in ends:
                    end.result()
        finally:
            for child in self._children:
                child.kill()
            self._threads.shutdown()
            for child in self._children:
                child.close()

    def _wait(self) -> None:
        """Perform the tasks that no other process has begun, and wait for the others."""
        for future, (tasks, tell) in [*self._sent.items()]:
            if future.cancel():
                del self._sent[future]
                self._do_here(tasks, tell)
        while self._sent:
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
            for _ in range(self._others):
                self._free.put(child := _StoringChild(self._archive.path))
                self._children.append(child)
        if len(self._sent) < _QUEUED * len(self._children):
            tasks = [task._replace(document=None) for task in tasks]
            self._sent[self._threads.submit(self._ask, tasks)] = tasks, tell
        else:
            self._do_here(tasks, tell)

    def settle(self, transcript_id: str) -> None:
        """Wait until no task of a transcript is being performed."""
        self._here.settle(transcript_id)
        while any(task.transcript_id == transcript_id for tasks, _ in self._sent.values() for task in tasks):
            self._collect(wait=True)

    def _collect(self, *, wait: bool = False) -> None:
        """Pass on the results of other processes. Wait for the first if `wait`."""
        done = {future for future in self._sent if future.done()}
        while wait and not done:
            done = futures.wait(self._sent, 0.2, "FIRST_COMPLETED")[0]  # for Ctrl-C on Windows
        for future in done:
            _, tell = self._sent.pop(future)
            results, warned = future.result()
            for kind, text in warned:
                warnings.warn(text, getattr(errors, kind, UserWarning), stacklevel=caller())
            for place, result in enumerate(results):
                tell(place, result)

    def _ask(self, tasks: Sequence[Task]) -> _Answer:
        child = self._free.get()
        try:
            return child.ask(tasks)
        finally:
            self._free.put(child)

    def _finish(self, patience_s: float | None) -> list[Future[None]]:
        """Write what was collected here and elsewhere. Tasks that no process has begun are dropped."""
        for future in self._sent:
            future.cancel()
        self._here.close()
        ends = [self._threads.submit(lambda: self._free.get().end()) for _ in self._children]
        futures.wait(ends, patience_s)
        if self._children:  # they have written parts that are not merged yet
            self._archive.merge_later()
        return ends


class _StoringChild:
    """Another process that performs tasks."""

    def __init__(self, corpus: Path) -> None:
        try:
            self.process = self._started(corpus, _PIPE_BYTES)
        except PermissionError:  # a user may have few large pipes
            self.process = self._started(corpus, -1)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._into, self._out = self.process.stdin, self.process.stdout
        self.kill = self.process.kill

    @staticmethod
    def _started(corpus: Path, pipesize: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  ourselves, in a session that Ctrl-C does not reach
            [sys.executable, "-P", "-c", _PROGRAM, os.fspath(corpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={"ARROW_DEFAULT_MEMORY_POOL": "system", **os.environ},  # as in this process
            pipesize=pipesize,
        )

    def ask(self, tasks: Sequence[Task]) -> _Answer:
        """Let the process perform tasks."""
        heads = [(*task[:2], None if task.payload is None else len(task.payload), *task[3:5]) for task in tasks]
        line = orjson.dumps(heads) + b"\n"
        try:
            for data in (line, *(task.payload or b"" for task in tasks)):
                self._into.write(data)
            self._into.flush()
            answer = orjson.loads(self._out.readline())
        except (OSError, ValueError):
            raise _ended() from None
        if isinstance(answer, str):
            raise CorpusError(answer)
        results, warned = answer
        return [Result(*result) for result in results], warned

    def end(self) -> None:
        """Let the process write its tables, and wait for its end."""
        with contextlib.suppress(OSError):
            self._into.close()
        if message := self._out.read():
            raise CorpusError(orjson.loads(message))
        if self.process.wait():
            raise _ended()

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        self.process.wait()
        self._out.close()
        with contextlib.suppress(OSError):
            self._into.close()


def _ended() -> CorpusError:
    return CorpusError("a process that wrote tables ended early; repeat the call to continue")


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


def _received(file: IO[bytes]) -> Iterator[list[Task]]:
    """Yield lists of tasks until the main process closes the pipe, or dies."""
    for line in file:
        with contextlib.suppress(ValueError):  # a line that the main process has not finished
            heads = orjson.loads(line)
            tasks = [Task(i, view, None if size is None else file.read(size), *more) for i, view, size, *more in heads]
            if all(
                task.payload is None or len(task.payload) == head[2] for task, head in zip(tasks, heads, strict=True)
            ):
                yield tasks
            del tasks  # before the next ones are read


def main() -> None:
    """Perform the tasks of another process."""
    archive, out = Archive(Path(sys.argv[1])), sys.stdout.buffer
    archive.merges = False  # the other process does
    try:
        with clear_errors(archive.path), contextlib.closing(TableBatch(archive)) as batch:
            for tasks in _received(sys.stdin.buffer):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    results = perform(archive, batch, tasks)
                warned = [(warning.category.__name__, str(warning.message)) for warning in caught]
                out.write(orjson.dumps([[*map(tuple, results)], warned]) + b"\n")
                out.flush()
                del tasks
    except CorpusError as error:
        with contextlib.suppress(BrokenPipeError):
            out.write(orjson.dumps(str(error)) + b"\n")
            out.flush()
