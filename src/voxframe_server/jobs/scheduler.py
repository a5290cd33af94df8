"""Job scheduler: runs jobs in order, each in a worker process, at most as many at once as there are cores.

A worker process that has done a job is kept for the next one, because its models are loaded. It is replaced after an
error, if it has grown, and after some idle minutes.

Each server process on a data directory holds a lock, which the operating system releases when the process ends. Its
jobs are then queued again.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from voxframe._files import write_atomic
from voxframe._shared_files import acquire_lock, file_lock, release_lock
from voxframe.settings import cores
from voxframe_engine.answers import Cancelled, ModelFailed, Report
from voxframe_engine.speech.engines import DEFAULT_CHOICE, EngineChoice
from voxframe_server.jobs import JobRecord, JobStore, Stage
from voxframe_server.jobs.data_dir import DataDir, RetentionPolicy, sweep
from voxframe_server.jobs.worker_process import WorkerTask

_log = logging.getLogger("voxframe_server")

#: Number of crashes of a job's worker process after which the job is an error.
MAX_CRASHES = 2
#: Maximum number of concurrent downloads, which do not wait for a core.
FETCHES = 4
#: Seconds without a message after which a worker process is considered hung.
STALLED = 1800.0
_ADVICE: dict[Stage, str] = {
    "fetch": "It was downloading the media. The log of the server may show the reason; uploading the file may help.",
    "speech": "The log of the server may show the reason; converting the file to wav or flac may help.",
}
_WRITTEN = ("auto_chapters", "summarization")  # options whose results have texts to write
_TICK = 1.0
_IDLE = 300.0  # seconds for which a worker process without a job is kept
_SWEEP = 600.0  # seconds between two removals of old media


Rewrite = Callable[[Mapping[str, Any], Mapping[str, Any], Report], dict[str, Any]]

#: Locks of the instances that are not closed. A lock object that is garbage-collected would release its lock.
_held: dict[str, Any] = {}


class ServerInstance:
    """This server process among those that share a data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = uuid.uuid4().hex
        _held[self.name] = acquire_lock(self._path(self.name))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"

    def is_dead(self, name: str) -> bool:
        """Return True if a process has ended, and remove its lock file."""
        if name == self.name:
            return False
        if not self._path(name).exists():
            return True
        with file_lock(self._path(name), wait=False) as ended:
            return ended

    def sweep(self) -> None:
        """Remove the lock files of processes that have ended."""
        for path in self._folder.glob("*.lock"):
            self.is_dead(path.stem)

    def close(self) -> None:
        """Remove the lock file of this process."""
        release_lock(_held.pop(self.name))


class JobScheduler:
    """Takes jobs from the database and runs them in threads, each with one worker process.

    Args:
        allowed_origins: Origins that media may be fetched from although they are not public.
        retention: How much media is kept. None (default): the default policy.
        rewrite: Function of a result, its request and a `Report` that returns the fields to change once the worker
            process is done.
    """

    def __init__(
        self,
        jobs: JobStore,
        data_dir: DataDir,
        allowed_origins: frozenset[str] = frozenset(),
        on_end: Callable[[], None] = lambda: None,
        choice: EngineChoice = DEFAULT_CHOICE,
        retention: RetentionPolicy | None = None,
        rewrite: Rewrite | None = None,
    ) -> None:
        self._jobs = jobs
        self._data_dir = data_dir
        self._allowed_origins = sorted(allowed_origins)
        self._on_end = on_end
        self._instance = ServerInstance(data_dir.instances)
        self._choice = choice
        self._retention = retention or RetentionPolicy()
        self._rewrite = rewrite
        self._swept = float("-inf")
        speech = 1 if choice.uses_all_cores else cores()
        self._limits: dict[Stage, int] = {"fetch": FETCHES, "speech": speech}
        self._children: dict[str, subprocess.Popen[str] | None] = {}
        self._heard: dict[str, float] = {}  # when the worker process of a job was started, or sent its last message
        self._idle: list[tuple[float, str | None, subprocess.Popen[str]]] = []  # since when, model, worker process
        # Linux ends a worker process when the thread that started it ends, so this one lives as long as the scheduler.
        self._starter = ThreadPoolExecutor(1, "voxframe-start")
        self._progress: dict[str, float] = {}
        self._downloads: dict[str, dict[str, int | None]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="voxframe-jobs", daemon=True)

    def start(self) -> None:
        """Start running jobs, including those of processes that have ended."""
        self._instance.sweep()
        self._thread.start()

    def wake(self) -> None:
        """Check the queue now, because a job was added or deleted."""
        self._wake.set()

    def progress(self) -> dict[str, float]:
        """Return the completed share, from 0 to 1, of each job in transcription in this process."""
        return dict(self._progress)

    def downloads(self) -> dict[str, dict[str, int | None]]:
        """Return the bytes received and expected of each download in progress in this process."""
        return dict(self._downloads)

    def stop(self) -> None:
        """Stop all jobs and queue them again."""
        self._stopping = True
        self.wake()
        self._thread.join()
        with self._lock:
            for child in self._children.values():
                if child is not None:
                    _kill(child)
        self._end_idle(before=float("inf"))
        self._starter.shutdown(wait=False)
        self._jobs.release(self._instance.name)
        self._instance.close()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._tick()
            except Exception:  # noqa: BLE001 - a full disk or a locked database is temporary; the thread must go on
                _log.exception("the job queue could not be processed; trying again")
            self._wake.wait(_TICK)
            self._wake.clear()

    def _tick(self) -> None:
        for holder in self._jobs.holders():
            if self._instance.is_dead(holder):
                count = self._jobs.release(holder)
                _log.info("%d job(s) of a server process that ended are queued again", count)
        if time.monotonic() - self._swept > _SWEEP:
            self._swept = time.monotonic()
            threading.Thread(target=self._sweep, name="voxframe-sweep", daemon=True).start()
        self._end_idle(before=time.monotonic() - _IDLE)
        jobs = self._jobs.held(self._instance.name)
        silent_since = time.monotonic() - STALLED
        with self._lock:
            for job_id, child in self._children.items():
                # An ended process is killed too, because one of its children may keep its output open.
                if child and (job_id not in jobs or self._heard[job_id] < silent_since or child.poll() is not None):
                    _kill(child)
        stage: Stage
        for stage in ("fetch", "speech"):
            while not self._stopping and (job := self._jobs.claim(stage, self._instance.name, self._limits[stage])):
                with self._lock:
                    self._children[job.id] = None
                thread = threading.Thread(
                    target=self._handle, args=(job, stage), name=f"voxframe-{job.id}", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # there are too many threads; the job is queued again
                    with self._lock:
                        del self._children[job.id]
                    self._jobs.crashed(job.id, self._instance.name)
                    raise

    def _end_idle(self, before: float) -> None:
        """End the worker processes that are idle since before a time."""
        with self._lock:
            ended = [child for since, _, child in self._idle if since < before]
            self._idle = [entry for entry in self._idle if entry[0] >= before]
        for child in ended:
            _end(child)

    def _idle_worker(self, model: str | None) -> subprocess.Popen[str] | None:
        """Take the worker process that was idle for the shortest time, if it has the model loaded."""
        with self._lock:
            for at, (_, loaded, child) in reversed(list(enumerate(self._idle))):
                if loaded == model and child.poll() is None:
                    del self._idle[at]
                    return child
        return None

    def _keep(self, child: subprocess.Popen[str], model: str | None) -> bool:
        """Keep a worker process for the next job; return False if there are enough, or the server stops."""
        with self._lock:
            if self._stopping or len(self._idle) >= self._limits["speech"]:
                return False
            self._idle.append((time.monotonic(), model, child))
            return True

    def _sweep(self) -> None:
        try:
            sweep(self._jobs, self._data_dir, self._retention)
        except (OSError, sqlite3.Error):  # another process sweeps too, or the disk is full
            if not self._stopping:
                _log.exception("old media could not be removed")

    def _handle(self, job: JobRecord, stage: Stage) -> None:
        begun = time.monotonic()
        try:
            outcome = self._outcome(job, stage)
        except Exception:  # noqa: BLE001 - handled like a crash, for example if no process can be created
            _log.exception("job %s: no worker process could be started", job.id)
            outcome = {"crashed": "could not be started"}
        finally:
            with self._lock:  # before the outcome is recorded, because the job can then be taken for its next stage
                self._children.pop(job.id, None)
                self._heard.pop(job.id, None)
            self._progress.pop(job.id, None)
            self._downloads.pop(job.id, None)
        while not self._stopping:
            try:
                self._record(job, stage, outcome, time.monotonic() - begun)
                break
            except sqlite3.Error:  # a full disk or a locked database is temporary
                if not self._stopping:
                    _log.exception("job %s: its outcome could not be recorded; trying again", job.id)
                    time.sleep(_TICK)
        self._on_end()
        self.wake()

    def _record(self, job: JobRecord, stage: Stage, outcome: dict[str, Any], seconds: float) -> None:
        me = self._instance.name
        if "media" in outcome:
            self._jobs.fetched(job.id, me, outcome["media"])
            _log.info("job %s: media downloaded in %.1f s", job.id, seconds)
        elif "done" in outcome:
            if self._jobs.complete(job.id, me):
                _log.info("job %s: completed in %.1f s", job.id, seconds)
        elif "failed" in outcome:
            if self._jobs.fail(job.id, me, outcome["failed"]):
                # The URL of media may contain a signature or a password.
                _log.info(
                    "job %s: error: %s", job.id, outcome["failed"].replace(job.request["audio_url"], "its audio_url")
                )
        elif job.crashes + 1 < MAX_CRASHES:
            if self._jobs.crashed(job.id, me):
                _log.warning("job %s: its worker process %s; trying again", job.id, outcome["crashed"])
        elif self._jobs.fail(
            job.id,
            me,
            f"The worker process of the embedded server {outcome['crashed']}, {MAX_CRASHES} times. "
            + (f"The error is {outcome['error']}. " if outcome.get("error") else "")
            + _ADVICE[stage],
        ):
            _log.error("job %s: error: its worker process %s, %d times", job.id, outcome["crashed"], MAX_CRASHES)

    def _outcome(self, job: JobRecord, stage: Stage) -> dict[str, Any]:
        """Run a worker process and return its last message, or the reason of its crash."""
        task = WorkerTask(
            stage=stage,
            root=str(self._data_dir.root),
            id=job.id,
            request=job.request,
            media=job.media,
            allowed_origins=self._allowed_origins,
            # A single process after a crash, because the job may have run out of memory.
            workers=1 if job.crashes else max(1, self._limits["speech"] - self._jobs.processing() + 1),
            engine=self._choice.engine,
            model=self._choice.model(job.request.get("speech_model")),
        )
        _log.info(
            "job %s: %s", job.id, "downloading its media" if stage == "fetch" else f"speech, {task['workers']} at once"
        )
        child = (self._idle_worker(task["model"]) if stage == "speech" else None) or self._starter.submit(
            _start_worker
        ).result()
        with self._lock:
            self._children[job.id], self._heard[job.id] = child, time.monotonic()
        outcome: dict[str, Any] = {}
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError):  # it crashed at once; see its exit status below
                child.stdin.write(json.dumps(task) + "\n")
                child.stdin.flush()
            outcome = self._follow(child, job)
        finally:
            with self._lock:  # from here on, deleting the job does not kill the process
                self._children[job.id] = None
            if not (outcome.get("reusable") and self._keep(child, task["model"])):
                _end(child)
        if "done" in outcome and self._rewrite is not None and any(job.request.get(name) for name in _WRITTEN):
            self._write_texts(job, self._rewrite)
        return outcome

    def _write_texts(self, job: JobRecord, rewrite: Rewrite) -> None:
        """Replace the texts of a result by written ones. If that fails, the result stays as it is."""

        def report(share: float) -> None:
            if self._stopping or job.id not in self._jobs.held(self._instance.name):
                raise Cancelled
            self._progress[job.id] = share

        path = self._data_dir.result(job.id)
        try:
            result = orjson.loads(path.read_bytes())
            if changed := rewrite(result, job.request, report):
                write_atomic(path, orjson.dumps(result | changed))
        except Cancelled:
            _log.info("job %s: its texts are not written, because it was deleted or the server stops", job.id)
        except (ModelFailed, OSError) as error:
            _log.warning("job %s: its texts are those of the analyses, because the writer failed: %s", job.id, error)

    def _follow(self, child: subprocess.Popen[str], job: JobRecord) -> dict[str, Any]:
        """Return the last message of a worker process about a job, or how it ended."""
        assert child.stdout is not None
        fraction = 0.0
        for line in child.stdout:
            self._heard[job.id] = time.monotonic()
            try:
                message: dict[str, Any] = json.loads(line)
            except ValueError:  # an incomplete last line
                continue
            if "bytes" in message:
                fraction = self._record_download(job, message["bytes"], message["of"], fraction)
            elif "progress" not in message:
                return message
            else:
                self._progress[job.id] = message["progress"]
                if message["progress"] >= fraction + 0.1:
                    fraction = message["progress"]
                    _log.info("job %s: %.0f %%", job.id, 100 * fraction)
        if time.monotonic() - self._heard[job.id] > STALLED:
            return {"crashed": f"did nothing for {STALLED / 60:.0f} minutes"}
        status = child.wait()
        return {"crashed": f"was stopped by signal {-status}" if status < 0 else f"ended with status {status}"}

    def _record_download(self, job: JobRecord, size: int, total: int | None, shown: float) -> float:
        """Record the progress of a download, log each tenth or 100 MB, and return the share that was logged last."""
        self._downloads[job.id] = {"bytes": size, "of": total}
        part = size / total if total else size / 1e9
        if part < shown + 0.1:
            return shown
        of = f" of {total / 1e6:.1f}" if total else ""
        _log.info("job %s: %.1f%s MB downloaded", job.id, size / 1e6, of)
        return part


def _start_worker() -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", "voxframe_server.jobs.worker_process", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def _end(child: subprocess.Popen[str]) -> None:
    """Kill a worker process and close its pipes."""
    _kill(child)
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()


def _kill(child: subprocess.Popen[str]) -> None:
    """Kill a process and all its children."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.wait()
