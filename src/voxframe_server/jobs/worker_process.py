"""Worker process for one stage of one job after the other, started by the scheduler.

Command line: `python -P -m voxframe_server.jobs.worker_process`. It reads JSON lines (`WorkerTask`) from standard input
and writes JSON lines to standard output: `{"progress": 0.4}`, or `{"bytes": 100, "of": 250}` for a download, and
finally `{"media": path}`, `{"done": true, "reusable": true}`, `{"failed": reason}` or `{"crashed": what, "error":
exception}`. Ending without one of these is a crash. After speech it waits for the next task, with its models loaded,
unless the last one was not done or the memory of the process is no longer small. A fault in
a decoder ends this process, never the server. When the server ends, this process ends too (see `child_process`;
standard input ends as well), so that no orphan keeps a core busy.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypedDict

import orjson

from voxframe._files import write_atomic
from voxframe_engine.analyses import REDACTED_SPANS
from voxframe_engine.child_process import end_with_parent, is_small, limit_this_process
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import engines
from voxframe_server.data_dir import DataDir, is_disk_full

#: Error of a job that failed because the disk is full.
DISK_FULL = "The disk of the server is full, so this job was not completed. Free some space, then submit it again."


class WorkerTask(TypedDict):
    """Task of a worker process.

    Attributes:
        stage: "fetch" or "speech".
    """

    stage: str
    root: str
    id: str
    request: dict[str, Any]
    media: str | None
    allowed_origins: list[str]
    workers: int
    engine: str
    model: str | None


def _fetch(task: WorkerTask, tell: Callable[..., None]) -> None:
    from voxframe_server.jobs.media_fetch import fetch

    limit_this_process(memory_gb=1)
    folder = DataDir(Path(task["root"])).job(task["id"])
    fetch(
        task["request"]["audio_url"],
        folder / "media",
        frozenset(task["allowed_origins"]),
        progress=lambda size, total: tell(bytes=size, of=total),
    )
    tell(media=f"jobs/{task['id']}/media")


def _speech(task: WorkerTask, tell: Callable[..., None]) -> None:
    assert task["media"] is not None
    _prepare(task["engine"], task["model"])
    from voxframe_engine import transcription

    root = Path(task["root"])
    result = transcription.run_job(
        root / task["media"],
        task["request"],
        progress=lambda part: tell(progress=part),
        workers=task["workers"],
        isolated=True,
        engine=task["engine"],
        model=task["model"],
    )
    data_dir = DataDir(root)
    spans = result.pop(REDACTED_SPANS, None)
    if task["request"].get("redact_pii_audio"):
        from voxframe_server.jobs.redacted_audio_store import RedactedAudioStore

        RedactedAudioStore.make(data_dir, task["id"], root / task["media"], spans, task["request"])
    write_atomic(data_dir.result(task["id"]), orjson.dumps(result))
    tell(done=True, reusable=is_small())


@cache
def _prepare(engine: str, model: str | None) -> None:
    """Set the limits of this process, before its first job."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when numpy is imported: there is one decoding thread per core
    limit_this_process(whole_machine=engines.uses_all_cores(engine, model))
    if hasattr(os, "nice"):
        os.nice(5)  # streams and requests have priority over jobs


def _read_tasks(tasks: SimpleQueue[str]) -> None:
    """Queue the lines of standard input; at its end, kill this process and all its children."""
    for line in sys.stdin:
        tasks.put(line)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # the scheduler made this process a group leader
    os._exit(1)


def main() -> int:
    """Run the tasks on standard input."""
    end_with_parent(int(sys.argv[1]))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be read as messages
    logging.basicConfig(level=logging.ERROR)
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()

    def tell(**message: object) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    while True:
        task: WorkerTask = json.loads(tasks.get())
        try:
            {"fetch": _fetch, "speech": _speech}[task["stage"]](task, tell)
        except JobFailed as failure:
            tell(failed=failure.reason)
            return 0
        except Exception as error:  # noqa: BLE001 - every error must be reported to the server
            if is_disk_full(error):
                tell(failed=DISK_FULL)
                return 0
            # The message of an exception may quote the recording, so it is for the owner of the job, not for the log.
            name = type(error).__name__
            sys.stderr.write(f"{''.join(traceback.format_tb(error.__traceback__))}{name}\n")
            tell(crashed=f"ended with {name}", error=f"{name}: {error}")
            return 1


if __name__ == "__main__":
    # Not sys.exit, which would wait for the thread that reads standard input.
    status = main()
    sys.stderr.flush()
    os._exit(status)
