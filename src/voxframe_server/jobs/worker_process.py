"""Worker process for one stage of one job, started by the scheduler.

Command line: `python -P -m voxframe_server.jobs.worker_process`. It reads one JSON line (`WorkerTask`) from standard
input and writes JSON lines to standard output: `{"progress": 0.4}`, or `{"bytes": 100, "of": 250}` for a download, and
finally `{"media": path}`, `{"done": true}` or `{"failed": reason}`. Ending without one of these is a crash. A fault in
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
from pathlib import Path
from typing import Any, TypedDict

import orjson

from voxframe._files import write_atomic
from voxframe_engine.analyses import REDACTED_SPANS
from voxframe_engine.child_process import end_with_parent, limit_this_process
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import engines
from voxframe_server.data_dir import DataDir, is_disk_full

#: Error of a job that failed because the disk is full.
DISK_FULL = "The disk of the server is full, so this job was not completed. Free some space, then submit it again."


class WorkerTask(TypedDict):
    """Task of a worker process.

    Attributes:
        stage: "fetch" or "speech".
        root: The data directory.
        id: The job.
        request: Its request.
        media: Its media, a path in the data directory, for "speech".
        allowed_origins: Origins that may be fetched from although they are not public, for "fetch".
        workers: Maximum number of processes for speech decoding.
        engine: Name of the speech engine.
        model: Its model; None for its own.
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
    from voxframe_engine import transcription

    assert task["media"] is not None
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when numpy is imported: one decoding process per core, one thread in each
    limit_this_process(whole_machine=engines.uses_all_cores(task["engine"], task["model"]))
    if hasattr(os, "nice"):
        os.nice(5)  # streams and requests have priority over jobs
    root = Path(task["root"])
    pool = transcription.new_pool(task["workers"]) if task["workers"] > 1 else None
    try:
        result = transcription.run_job(
            root / task["media"],
            task["request"],
            progress=lambda part: tell(progress=part),
            pool=pool,
            engine=task["engine"],
            model=task["model"],
        )
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    data_dir = DataDir(root)
    spans = result.pop(REDACTED_SPANS, None)
    if task["request"].get("redact_pii_audio"):
        from voxframe_server.jobs.redacted_audio_store import RedactedAudioStore

        RedactedAudioStore.make(data_dir, task["id"], root / task["media"], spans, task["request"])
    write_atomic(data_dir.result(task["id"]), orjson.dumps(result))
    tell(done=True)


def _end_with_parent() -> None:
    """Wait for the end of standard input, then kill this process and all its children."""
    sys.stdin.read()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # the scheduler made this process a group leader
    os._exit(1)


def main() -> int:
    """Run the task on standard input.

    Returns:
        Exit status: 0 if the outcome was reported.
    """
    end_with_parent(int(sys.argv[1]))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be read as messages
    logging.basicConfig(level=logging.ERROR)
    task: WorkerTask = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(**message: object) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    try:
        {"fetch": _fetch, "speech": _speech}[task["stage"]](task, tell)
    except JobFailed as failure:
        tell(failed=failure.reason)
    except Exception as error:  # noqa: BLE001 - every error must be reported to the server
        if is_disk_full(error):
            tell(failed=DISK_FULL)
            return 0
        # The message of an exception may quote the recording; the traceback without it does not.
        sys.stderr.write(f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}\n")
        return 1
    return 0


if __name__ == "__main__":
    # Not sys.exit, which would wait for the thread that reads standard input.
    status = main()
    sys.stderr.flush()
    os._exit(status)
