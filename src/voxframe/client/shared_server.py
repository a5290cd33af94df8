"""The embedded server that keeps working between commands: find it, start it, stop it.

`voxframe.connect()` starts a server that ends with its process. Commands end within seconds, so they share one server
per data directory. It ends when it has had nothing to do for a while. Both kinds work on the same jobs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from voxframe._shared_files import ServerFile, ServerRecord, choices_of
from voxframe.client import embedded
from voxframe.client.client import Client
from voxframe.errors import ServiceError, ServiceUnreachableError
from voxframe.settings import Secret, Settings

#: Seconds without a request and without an unfinished job after which the server ends.
IDLE_S = 600.0
_STOP_S = 15.0
_PAUSE_S = 0.02


def server_file(settings: Settings) -> ServerFile:
    """Return the record of the shared server for the data directory of the settings."""
    return ServerFile(settings.data_dir.expanduser().absolute() / "service")


def share(settings: Settings) -> Settings:
    """Return the settings with URL and key of the shared server, which is started if it is not running.

    A running server of another version of voxframe, or with another model or language model, is replaced. If it has
    unfinished jobs, it is used as it is, and one line on stderr says so.
    """
    file = server_file(settings)
    embedded.open_log(file.folder).close()
    with file.starting():
        missing = file.record() is None
    if missing:  # not while the lock is held: downloads may take minutes
        embedded.check_installed()
    with file.starting():
        record = file.record()
        if record is not None and not _is_usable(record, file, settings):
            _stop(record, file)
            record = None
        with _client(record or _start(file, settings), file, settings) as client:
            client.list(limit=1)  # the server does not end now: it got a request while this lock was held
    return client.settings


def status(settings: Settings) -> tuple[ServerRecord, int, int] | None:
    """Return the running shared server and the numbers of its queued and processing jobs, or None."""
    file = server_file(settings)
    if not file.folder.is_dir():
        return None
    with file.starting():
        record = file.record()
        if record is None:
            return None
        with _client(record, file, settings) as client:
            return record, _count(client, "queued"), _count(client, "processing")


def stop(settings: Settings) -> ServerRecord | None:
    """Stop the shared server. Unfinished jobs are queued for the next start."""
    file = server_file(settings)
    if not file.folder.is_dir():
        return None
    with file.starting():
        record = file.record()
        if record is not None:
            _stop(record, file)
    return record


def _client(record: ServerRecord, file: ServerFile, settings: Settings) -> Client:
    try:
        key = Secret(file.key_file.read_text())
    except OSError as error:
        raise ServiceUnreachableError(
            f"cannot read the key of the running server, {file.key_file} ({error.strerror}); `voxframe server stop` "
            "ends the server, and the next command starts one with a new key"
        ) from error
    embedded.share(record.base_url, file)
    return Client(embedded.settings_of(record.base_url, key, settings))


def _count(client: Client, state: str) -> int:
    return client.list(limit=1, status=state).result_count or 0


def _is_usable(record: ServerRecord, file: ServerFile, settings: Settings) -> bool:
    """Return True if a running server has the right settings, or has unfinished jobs."""
    if record.choices == choices_of(os.environ, settings.llm_prefix):
        return True
    with suppress(ServiceError), _client(record, file, settings) as client:
        if any(_count(client, state) for state in ("queued", "processing")):
            sys.stderr.write(
                f"voxframe: the running server (voxframe {record.version}) was started with other settings. It is used "
                "because it has unfinished jobs; `voxframe server stop` ends it, and its jobs continue at the next "
                "start.\n"
            )
            return True
    return False


def _start(file: ServerFile, settings: Settings) -> ServerRecord:
    """Start a server that outlives this process. Called while `starting` is held."""
    until = time.monotonic() + _STOP_S
    while not file.has_ended() and time.monotonic() < until:  # one without a record is starting, or is ending
        if (record := file.record()) is not None:
            return record
        time.sleep(_PAUSE_S)
    arguments = ("--shared-for", str(IDLE_S))
    child, log, begin = embedded.spawn(file.folder, settings.llm_prefix, *arguments, pipes=subprocess.DEVNULL)
    until = time.monotonic() + embedded.START_SECONDS
    try:
        while child.poll() is None and time.monotonic() < until:
            record = file.record() if file.is_of(child.pid) else None
            if record is not None:
                child.returncode = 0  # it goes on after this process: no warning that it was not waited for
                return record
            time.sleep(_PAUSE_S)
    except BaseException:
        child.kill()
        child.wait()
        raise
    error = embedded.not_started(child, log, begin)
    record = file.record()  # of a command that was killed while it started a server
    if record is None:
        raise error
    return record


def _stop(record: ServerRecord, file: ServerFile) -> None:
    """Stop a server. Its process id is valid, because it holds its lock."""
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with suppress(ProcessLookupError):
            os.kill(record.pid, number)
        until = time.monotonic() + _STOP_S
        while time.monotonic() < until:
            if file.has_ended():
                return
            time.sleep(_PAUSE_S)
    raise ServiceUnreachableError(f"the embedded server (process {record.pid}) does not end; end it yourself")
