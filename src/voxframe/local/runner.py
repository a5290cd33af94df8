"""Works on the jobs: takes them in order, a process each, never more at once than there are cores."""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from voxframe.local import engines
from voxframe.local.child import Task
from voxframe.local.engines import configured
from voxframe.local.engines.configured import Choice
from voxframe.local.instances import Instance
from voxframe.local.jobs import Job, Jobs, Stage
from voxframe.local.places import Places
from voxframe.local.sweep import Keep, sweep

_log = logging.getLogger("voxframe.local")

#: A worker process may crash this often on one job; then the job is an error.
MAX_CRASHES = 2
#: Downloads at once. They need no core, so they do not wait for one.
FETCHES = 4
#: A child that says nothing for so long hangs, in seconds.
STALLED = 1800.0
_TICK = 1.0
_SWEEP = 600.0  # seconds between two looks for old media


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Runner:
    """Takes jobs from the database and works on them in threads of its own, each minding one child process.

    Args:
        jobs: The database.
        places: The data directory.
        allowed_origins: Origins that media may be fetched from wherever they resolve to.
        ended: Called when a job has ended.
        choice: The speech engine and its models.
        keep: How much media is kept; None: as much as usual.
    """

    def __init__(
        self,
        jobs: Jobs,
        places: Places,
        allowed_origins: frozenset[str] = frozenset(),
        ended: Callable[[], None] = lambda: None,
        choice: Choice = configured.DEFAULT,
        keep: Keep | None = None,
    ) -> None:
        self._jobs = jobs
        self._places = places
        self._allowed_origins = sorted(allowed_origins)
        self._ended = ended
        self._instance = Instance(places.instances)
        self._choice = choice
        self._keep = keep or Keep()
        self._swept = float("-inf")
        speech = 1 if engines.uses_all_cores(choice.engine) else cores()
        self._limits: dict[Stage, int] = {"fetch": FETCHES, "speech": speech}
        self._children: dict[str, subprocess.Popen[str] | None] = {}
        self._progress: dict[str, float] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="voxframe-jobs", daemon=True)

    def start(self) -> None:
        """Begin, with the jobs that were left behind by processes that have ended."""
        self._instance.sweep()
        self._thread.start()

    def wake(self) -> None:
        """Say that something changed: a job is new, or deleted."""
        self._wake.set()

    def progress(self) -> dict[str, float]:
        """How much is done, from 0 to 1, of each job that this process transcribes and that has said so."""
        return dict(self._progress)

    def stop(self) -> None:
        """Stop all work and queue it again."""
        self._stopping = True
        self.wake()
        self._thread.join()
        with self._lock:
            for child in self._children.values():
                if child is not None:
                    _kill(child)
        self._jobs.release(self._instance.name)
        self._instance.close()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._tick()
            except Exception:  # noqa: BLE001 - a full disk or a locked database passes; the thread must outlive it
                _log.exception("the queue of jobs could not be read; trying again")
            self._wake.wait(_TICK)
            self._wake.clear()

    def _tick(self) -> None:
        for holder in self._jobs.holders():
            if self._instance.is_dead(holder):
                count = self._jobs.release(holder)
                _log.info("%d job(s) of a service process that ended are queued again", count)
        if time.monotonic() - self._swept > _SWEEP:
            self._swept = time.monotonic()
            threading.Thread(target=self._sweep, name="voxframe-sweep", daemon=True).start()
        held = self._jobs.held(self._instance.name)
        with self._lock:
            for job_id in self._children.keys() - held:
                if (child := self._children[job_id]) is not None:
                    _kill(child)
        stage: Stage
        for stage in ("fetch", "speech"):
            while not self._stopping and (job := self._jobs.claim(stage, self._instance.name, self._limits[stage])):
                with self._lock:
                    self._children[job.id] = None
                threading.Thread(target=self._mind, args=(job, stage), name=f"voxframe-{job.id}", daemon=True).start()

    def _sweep(self) -> None:
        try:
            sweep(self._jobs, self._places, self._keep)
        except (OSError, sqlite3.Error):  # another process sweeps too, or the disk is full; the next time will do
            if not self._stopping:
                _log.exception("old media could not be removed")

    def _mind(self, job: Job, stage: Stage) -> None:
        begun = time.monotonic()
        try:
            outcome = self._outcome(job, stage)
        except Exception:  # noqa: BLE001 - no process or no pipe to be had: an outcome like any other
            _log.exception("job %s: no worker process could be started", job.id)
            outcome = {"crashed": "could not be started"}
        finally:
            with self._lock:  # before the outcome is noted: from then on the job may be taken again, for its next stage
                self._children.pop(job.id, None)
            self._progress.pop(job.id, None)
        while not self._stopping:
            try:
                self._settle(job, outcome, time.monotonic() - begun)
                break
            except sqlite3.Error:  # a full disk or a locked database passes
                if not self._stopping:
                    _log.exception("job %s: its outcome could not be noted; trying again", job.id)
                    time.sleep(_TICK)
        self._ended()
        self.wake()

    def _settle(self, job: Job, outcome: dict[str, Any], seconds: float) -> None:
        me = self._instance.name
        if "media" in outcome:
            self._jobs.fetched(job.id, me, outcome["media"])
            _log.info("job %s: media downloaded in %.1f s", job.id, seconds)
        elif "done" in outcome:
            if self._jobs.complete(job.id, me):
                _log.info("job %s: completed in %.1f s", job.id, seconds)
        elif "failed" in outcome:
            if self._jobs.fail(job.id, me, outcome["failed"]):
                # The address of media may hold a signature or a password.
                _log.info(
                    "job %s: error: %s", job.id, outcome["failed"].replace(job.asked["audio_url"], "its audio_url")
                )
        elif job.crashes + 1 < MAX_CRASHES:
            if self._jobs.crashed(job.id, me):
                _log.warning("job %s: its worker process %s; trying once more", job.id, outcome["crashed"])
        elif self._jobs.fail(
            job.id,
            me,
            f"The worker process of the embedded service {outcome['crashed']}, {MAX_CRASHES} times. "
            "The log of the service may say why; a file converted to wav or flac may pass.",
        ):
            _log.error("job %s: error: its worker process %s, %d times", job.id, outcome["crashed"], MAX_CRASHES)

    def _outcome(self, job: Job, stage: Stage) -> dict[str, Any]:
        """Run a child and return its last message, or how it crashed."""
        task = Task(
            stage=stage,
            root=str(self._places.root),
            id=job.id,
            asked=job.asked,
            media=job.media,
            allowed_origins=self._allowed_origins,
            # After a crash with one process only: what was too much for the memory may fit then.
            workers=1 if job.crashes else max(1, self._limits["speech"] - self._jobs.processing() + 1),
            engine=self._choice.engine,
            model=self._choice.model(job.asked.get("speech_model")),
        )
        _log.info(
            "job %s: %s", job.id, "downloading its media" if stage == "fetch" else f"speech, {task['workers']} at once"
        )
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "voxframe.local.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        with self._lock:
            self._children[job.id] = child
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError):  # it crashed at once; its exit status will tell
                child.stdin.write(json.dumps(task) + "\n")
                child.stdin.flush()
            return self._follow(child, job)
        finally:
            _kill(child)
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()

    def _follow(self, child: subprocess.Popen[str], job: Job) -> dict[str, Any]:
        shown = 0.0
        for message in _messages(child):
            if message is None:
                return {"crashed": f"did nothing for {STALLED / 60:.0f} minutes"}
            if "progress" not in message:
                return message
            self._progress[job.id] = message["progress"]
            if message["progress"] >= shown + 0.1:
                shown = message["progress"]
                _log.info("job %s: %.0f %%", job.id, 100 * shown)
        status = child.wait()
        return {"crashed": f"was stopped by signal {-status}" if status < 0 else f"ended with status {status}"}


def _messages(child: subprocess.Popen[str]) -> Iterator[dict[str, Any] | None]:
    """What a child says, until it ends; None when it has hung.

    Its end is watched for, not only the end of its output: a process it started may hold that open.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        assert child.stdout is not None
        with suppress(ValueError):  # closed under us
            for line in child.stdout:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    heard = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=_TICK)
        except queue.Empty:
            if child.poll() is not None:
                _kill(child)
            elif time.monotonic() - heard > STALLED:
                yield None
            continue
        if line is None:
            return
        heard = time.monotonic()
        with suppress(ValueError):  # cut off by its end
            message = json.loads(line)
            yield message


def _kill(child: subprocess.Popen[str]) -> None:
    """End a child and all it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.wait()
