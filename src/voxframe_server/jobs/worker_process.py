"""Worker process for one stage of one job after the other, also for the download of media. Started by the scheduler.

Command line: `python -P -m voxframe_server.jobs.worker_process`. It reads JSON lines (`WorkerTask`) from standard input
and writes JSON lines to standard output: `{"progress": 0.4}`, or `{"bytes": 100, "of": 250}` for a download, and
finally `{"media": path}`, `{"done": true, "reusable": true}`, `{"failed": reason}` or `{"crashed": what, "error":
exception}`. Ending without one of these is a crash. After speech it waits for the next task, with its models loaded,
unless the last one was not done or the memory of the process is no longer small. A fault in
a decoder ends this process, never the server. When the server ends, this process ends too (see `child_process`;
standard input ends as well), so that no orphan keeps a core busy.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypedDict
from urllib.parse import urljoin

import orjson

from voxframe._files import put_in_place, write_atomic
from voxframe._text import one_line
from voxframe_engine import JobFailed
from voxframe_engine.analyses import REDACTED_SPANS
from voxframe_engine.child_process import end_with_parent, is_small, limit_this_process
from voxframe_engine.speech import engines
from voxframe_server.jobs.data_dir import DataDir, is_disk_full, upload_id
from voxframe_server.jobs.ssrf_guard import NotAllowedError, connection, request_target, time_limit

#: Maximum size of a media file in bytes.
MAX_BYTES = 5 * 10**9
#: Maximum duration of a download, headers included, and of a pause within it, in seconds.
MAX_SECONDS, MAX_SILENCE = 3600.0, 30.0
_REDIRECTS = 5
_CHUNK = 1 << 18
_REPORT_SECONDS = 1.0
_NO_UPLOAD = "this server has no such upload: it was deleted, or another key created it; upload the file again"


class _Refused(Exception):  # noqa: N818 - never leaves this file
    """A download that was refused or failed; the message is appended to the API's error text."""


def fetch(
    url: str,
    target: Path,
    allowed_origins: frozenset[str] = frozenset(),
    *,
    max_bytes: int = MAX_BYTES,
    progress: Callable[[int, int | None], None] = lambda _size, _total: None,
) -> None:
    """Download `url` to `target`, which exists only when that is complete. `progress` is called once a second."""
    part = target.with_name(target.name + ".part")
    try:
        _download(url, part, allowed_origins, max_bytes, progress)
        put_in_place(part, target)
    except (_Refused, NotAllowedError) as refused:
        is_upload = isinstance(refused, NotAllowedError) and upload_id(url) is not None
        raise JobFailed(_error_text(url, _NO_UPLOAD if is_upload else str(refused))) from None
    except TimeoutError:
        raise JobFailed(_error_text(url, f"the server sent nothing for {MAX_SILENCE:.0f} s")) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if is_disk_full(error):
            raise  # not a fault of the remote server
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise JobFailed(_error_text(url, str(reason))) from error
    finally:
        part.unlink(missing_ok=True)


def _error_text(url: str, reason: str) -> str:
    return (
        f"Download error, unable to download {url}. Please make sure the file exists and is accessible "
        f"from the internet. ({reason})"
    )


def _download(
    url: str, part: Path, allowed_origins: frozenset[str], max_bytes: int, progress: Callable[[int, int | None], None]
) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    for _ in range(_REDIRECTS + 1):
        server = _connect(url, allowed_origins)
        try:
            # Uncompressed, because a compressed response could expand without limit.
            headers = {"User-Agent": "voxframe", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
            with _response(server, request_target(url), headers, deadline) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                if not 200 <= response.status < 300:
                    raise _Refused(one_line(f"the server returned {response.status} {response.reason}"))
                _save(response, part, deadline, max_bytes, progress)
                return
        finally:
            server.close()
    raise _Refused(f"more than {_REDIRECTS} redirects")


def _connect(url: str, allowed_origins: frozenset[str]) -> http.client.HTTPConnection:
    try:
        return connection(url, allowed_origins, MAX_SILENCE)
    except (socket.gaierror, UnicodeError):  # UnicodeError: no host can have this name
        raise _Refused("its host is unknown") from None
    except ValueError:
        raise _Refused("it redirects to a URL that is not http or https, or has an invalid port") from None


def _response(
    server: http.client.HTTPConnection, target: str, headers: dict[str, str], deadline: float
) -> http.client.HTTPResponse:
    """Send the request and return the response, if its headers arrive before the deadline."""
    response = None
    with time_limit(server, max(0.0, deadline - time.monotonic())) as expired:
        try:
            server.request("GET", target, headers=headers)
            response = server.getresponse()
        except (OSError, http.client.HTTPException):
            if not expired.is_set():
                raise
    if response is None or expired.is_set():  # also without an error: http.client accepts truncated headers
        if response is not None:
            response.close()
        raise _Refused(f"its headers took longer than {MAX_SECONDS / 60:.0f} minutes")
    return response


def _save(
    response: http.client.HTTPResponse,
    part: Path,
    deadline: float,
    max_bytes: int,
    progress: Callable[[int, int | None], None],
) -> None:
    too_large = _Refused(f"it is larger than {max_bytes / 1e9:g} GB")
    if response.length is not None and response.length > max_bytes:
        raise too_large
    expected = response.length
    size, reported = 0, float("-inf")
    with part.open("wb") as file:
        while chunk := response.read1(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise too_large
            now = time.monotonic()
            if now > deadline:
                of = f" of {expected}" if expected is not None else ""
                raise _Refused(
                    f"it took longer than {MAX_SECONDS / 60:.0f} minutes; {size}{of} bytes arrived in that time"
                )
            file.write(chunk)
            if now >= reported + _REPORT_SECONDS:
                reported = now
                progress(size, expected)
        file.flush()
        os.fsync(file.fileno())
    if expected is not None and size < expected:
        raise _Refused(f"the connection ended after {size} of {expected} bytes")


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


def _media(task: WorkerTask, tell: Callable[..., None]) -> None:

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
        from voxframe_server.jobs.data_dir import RedactedAudioStore

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
            {"fetch": _media, "speech": _speech}[task["stage"]](task, tell)
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
