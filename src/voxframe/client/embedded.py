"""Start the embedded server as a subprocess that ends with this process."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from voxframe import models
from voxframe._files import private_folder
from voxframe._shared_files import ServerFile
from voxframe.errors import MissingExtraError, ModelError, ServiceTimeoutError, ServiceUnreachableError
from voxframe.settings import Secret, Settings

#: Maximum seconds to start the server.
START_SECONDS = 30.0
_TAIL_LINES = 15
# Packages of the extra `local` without which the server cannot respond.
_NEEDED = ("starlette", "uvicorn", "faster_whisper", "av")
# Variables that choose another engine or model than the default. The server prepares that one itself.
_ENGINE_VARIABLES = ("VOXFRAME_ENGINE", "VOXFRAME_MODEL", "VOXFRAME_MODEL_NANO")


@dataclass
class EmbeddedServer:
    """A running embedded server."""

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
        """Its API key."""
        return Secret(self.api_key_file.read_text())

    @property
    def running(self) -> bool:
        """True if the process is running."""
        return self._child.poll() is None

    def allow_webhooks(self, url: str) -> None:
        """Allow webhooks to the origin of `url`, although it is not on the public internet.

        Only the process that started the server can do this, over the pipe between the two.
        """
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        with self._pipe:
            if origin in self._receivers or self._starter != os.getpid():
                return
            reply = None
            with suppress(OSError, ValueError):  # ValueError: the server was stopped and the pipe is closed
                assert self._child.stdin is not None
                self._child.stdin.write(json.dumps({"allow_webhooks": origin}) + "\n")
                self._child.stdin.flush()
                reply = _line(self._child)
            if reply is None or "allowed" not in reply:
                raise ServiceUnreachableError(
                    f"the embedded server cannot send webhooks to {origin}; its log is {self.log}"
                )
            self._receivers.add(origin)

    def stop(self) -> None:
        """Stop the server. Unfinished jobs are queued for the next start."""
        if self._starter != os.getpid():
            return  # a forked process does not own the server
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


_running: dict[Path, EmbeddedServer] = {}
_ended: set[str] = set()  # URLs of replaced servers
_shared: dict[str, ServerFile] = {}  # servers that other processes use too, by their URLs
_lock = threading.Lock()


def launch(settings: Settings) -> EmbeddedServer:
    """Start the embedded server, or return the running one that this process started on the same data directory.

    Jobs, results and the key are kept in `data_dir/service`, so that ids stay valid after a restart. The server ends
    when this process ends, even if it is killed. The first start downloads the models (320 MB). If that fails, this
    warns, and jobs fail until a model is there.
    """
    folder = settings.data_dir.expanduser().absolute() / "service"
    with _lock:
        server = _running.get(folder)
        if server is not None and server.running:
            return server
        check_installed()
        started = _running[folder] = _start(folder, settings.llm_prefix)
        if server is not None:
            _ended.add(server.base_url)
        return started


def allow_webhooks(url: str) -> None:
    """Allow all embedded servers started by this process to send webhooks to a URL on this machine."""
    for service in list(_running.values()):
        if service.running:
            service.allow_webhooks(url)


def is_embedded(base_url: str) -> bool:
    """Return True if the URL belongs to an embedded server that this process started or shares."""
    return base_url in _shared or any(service.base_url == base_url for service in list(_running.values()))


def has_ended(url: str) -> bool:
    """Return True if the URL belongs to an embedded server that this process used and that is no longer running."""
    host = urlsplit(url).netloc
    ended = _ended | {service.base_url for service in list(_running.values()) if not service.running}
    ended |= {base_url for base_url, file in list(_shared.items()) if not file.is_running(base_url)}
    return host in {urlsplit(base_url).netloc for base_url in ended}


def share(base_url: str, file: ServerFile) -> None:
    """Remember that a URL belongs to an embedded server that other processes use too."""
    _shared[base_url] = file


def settings_of(base_url: str, key: Secret, settings: Settings) -> Settings:
    """Return settings with the URLs and the key of a server on this machine."""
    return replace(settings, base_url=base_url, stream_url=base_url.replace("http", "ws", 1), api_key=key)


def check_installed() -> None:
    """Check that the packages of the embedded server are installed, and download its models."""
    if not all(find_spec(name) for name in _NEEDED):
        raise MissingExtraError("local", "The embedded server")
    _fetch_models()


def _fetch_models() -> None:
    """Download the models of the default speech engine and of the analyses here, where the user sees the progress."""
    is_configured = any(os.environ.get(name, "").strip() for name in _ENGINE_VARIABLES)
    download = True
    try:
        models.ensure(*() if is_configured else models.SPEECH)
    except ModelError as error:
        there = [name for name in models.SPEECH if models.is_present(name)]
        outlook = f"Until then, only {' and '.join(there)} can be used" if there else models.WITHOUT_SPEECH
        warnings.warn(f"{error}. {outlook}.", stacklevel=4)
        download = False  # it would fail as well, after as long a wait
    for name, consequence in models.ANALYSES.items():
        try:
            models.ensure(name, download=download)
        except ModelError as error:
            warnings.warn(f"{error}. {consequence}.", stacklevel=4)


def _start(folder: Path, llm_prefix: str) -> EmbeddedServer:
    child, log, begin = spawn(folder, llm_prefix, "--parent-pipe", pipes=subprocess.PIPE)
    try:
        ready = _line(child)
    except BaseException:
        with child:  # waits and closes the pipes
            child.kill()
        raise
    if ready is None:
        raise not_started(child, log, begin)
    embedded = EmbeddedServer(ready["base_url"], Path(ready["api_key_file"]), log, child.pid, child)
    atexit.register(embedded.stop)
    return embedded


def spawn(folder: Path, llm_prefix: str, *arguments: str, pipes: int) -> tuple[subprocess.Popen[str], Path, int]:
    """Start a server process."""
    with open_log(folder) as written:
        begin = written.tell()
        # -P: a file such as av.py or queue.py beside the notebook must not shadow the module of that name.
        command = [sys.executable, "-P", "-m", "voxframe_server", *arguments, "--port", "0"]
        child = subprocess.Popen(  # noqa: S603 - our own module, with arguments that are data
            [*command, "--data-dir", str(folder), "--llm-prefix", llm_prefix],
            stdin=pipes,
            stdout=pipes,
            stderr=written,
            text=True,
            encoding="utf-8",
            # The server uses the key in its data directory and must not see the key of a hosted service.
            env={name: value for name, value in os.environ.items() if name not in _NOT_PASSED},
            # Ctrl-C in a terminal and "interrupt kernel" must only reach the user's code.
            start_new_session=True,
        )
    return child, Path(written.name), begin


def open_log(folder: Path) -> IO[bytes]:
    """Create the data directory of a server, closed to other users, and open its log."""
    try:
        private_folder(folder)
        return (folder / "service.log").open("ab")
    except OSError as error:
        raise ServiceUnreachableError(
            f"the embedded server cannot use {folder} ({error.strerror}); "
            "give another data_dir, or set VOXFRAME_DATA_DIR"
        ) from error


def not_started(child: subprocess.Popen[str], log: Path, begin: int) -> ServiceTimeoutError | ServiceUnreachableError:
    """End a server process that did not start, and return the error with the end of its log."""
    status = child.poll()
    with child:  # waits and closes the pipes
        child.kill()
    if status is None:
        return ServiceTimeoutError(f"the embedded server did not start within {START_SECONDS:.0f} s{_tail(log, begin)}")
    return ServiceUnreachableError(f"the embedded server did not start (exit status {status}){_tail(log, begin)}")


_NOT_PASSED = {"VOXFRAME_API_KEY", "VOXFRAME_BASE_URL", "VOXFRAME_STREAM_URL"}


def _line(child: subprocess.Popen[str]) -> dict[str, str] | None:
    """Return the next JSON line of the server, or None if it ended or took too long."""
    assert child.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.append(child.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(START_SECONDS)
    if lines == [""]:
        with suppress(subprocess.TimeoutExpired):  # the output has ended, so the exit status follows
            child.wait(5)
    if not lines or not lines[0]:
        return None
    reply: dict[str, str] = json.loads(lines[0])
    return reply


def _tail(log: Path, begin: int) -> str:
    """Return the end of the log of this start, for an error message."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode("utf-8", "replace").splitlines()
    if not lines:
        return f"; its log {log} is empty"
    return f"; its log {log} ends:\n" + "\n".join(lines[-_TAIL_LINES:])
