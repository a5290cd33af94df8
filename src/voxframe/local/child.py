"""The process that works on one stage of one job: `python -P -m voxframe.local.child`, started by `runner`.

It reads one JSON line from standard input (`Task`) and writes JSON lines to standard output: `{"progress": 0.4}`, and
last `{"media": path}`, `{"done": true}` or `{"failed": reason}`. Ending without one of these is a crash. A fault in a
decoder takes this process down, never the service; and when the service is gone, standard input ends and this process
with it, so that no orphan keeps a core busy.
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

from voxframe.local import engines
from voxframe.local.analyses import REDACTED_SPANS
from voxframe.local.failed import JobFailed
from voxframe.local.limits import limit_this_process
from voxframe.local.places import Places, write_whole


class Task(TypedDict):
    """What a child is to do.

    Attributes:
        stage: "fetch" or "speech".
        root: The data directory.
        id: The job.
        asked: Its request.
        media: Its media, a path in the data directory, for "speech".
        allowed_origins: Origins that may be fetched from wherever they resolve to, for "fetch".
        workers: Processes that may decode speech at once.
        engine: Name of the speech engine.
        model: Its model; None for its own.
    """

    stage: str
    root: str
    id: str
    asked: dict[str, Any]
    media: str | None
    allowed_origins: list[str]
    workers: int
    engine: str
    model: str | None


def _fetch(task: Task, tell: Callable[..., None]) -> None:
    from voxframe.local.fetch import fetch

    limit_this_process(memory_gb=1)
    folder = Places(Path(task["root"])).job(task["id"])
    fetch(task["asked"]["audio_url"], folder / "media", frozenset(task["allowed_origins"]))
    tell(media=f"jobs/{task['id']}/media")


def _speech(task: Task, tell: Callable[..., None]) -> None:
    from voxframe.local import worker

    assert task["media"] is not None
    limit_this_process(whole_machine=engines.uses_all_cores(task["engine"]))
    if hasattr(os, "nice"):
        os.nice(5)  # a job can wait; who speaks into a stream, or asks how a job is doing, cannot
    root = Path(task["root"])
    pool = worker.new_pool(task["workers"]) if task["workers"] > 1 else None
    try:
        result = worker.run_job(
            root / task["media"],
            task["asked"],
            progress=lambda part: tell(progress=part),
            pool=pool,
            engine=task["engine"],
            model=task["model"],
        )
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    places = Places(root)
    spans = result.pop(REDACTED_SPANS, None)
    if task["asked"].get("redact_pii_audio"):
        from voxframe.local.redacted import RedactedAudio

        RedactedAudio.make(places, task["id"], root / task["media"], spans, task["asked"])
    write_whole(places.result(task["id"]), orjson.dumps(result))
    tell(done=True)


def _end_with_parent() -> None:
    """Wait for the end of standard input, then end this process and all it started."""
    sys.stdin.read()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # the runner made this process the leader of a group
    os._exit(1)


def main() -> int:
    """Do the task on standard input.

    Returns:
        Exit status: 0 where the outcome was told.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for a message
    logging.basicConfig(level=logging.ERROR)
    task: Task = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(**message: object) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    try:
        {"fetch": _fetch, "speech": _speech}[task["stage"]](task, tell)
    except JobFailed as failure:
        tell(failed=failure.reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, the service has to hear of it
        # The message of an exception may quote what was said in the recording; where it happened does not.
        sys.stderr.write(f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}\n")
        return 1
    return 0


if __name__ == "__main__":
    # Not sys.exit: the end of the interpreter would wait for the thread that sits in a read of standard input.
    status = main()
    sys.stderr.flush()
    os._exit(status)
