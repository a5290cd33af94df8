"""Start-up of the embedded server: its key, its socket and its data directory."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import sqlite3
import sys
import threading
import time
from argparse import SUPPRESS
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from voxframe import models, settings
from voxframe._arguments import amount, count, seconds
from voxframe._files import hidden_path, put_in_place, sync
from voxframe._shared_files import ServerFile, choices_of, file_lock
from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe_server.jobs.data_dir import DataDir, RetentionPolicy
from voxframe_server.jobs.ssrf_guard import origin

if TYPE_CHECKING:  # starlette is in the extra `local`
    from voxframe_server.http.middleware import ActivityMonitor
    from voxframe_server.jobs import JobStore


_log = logging.getLogger("voxframe_server")
_PARENT_CHECK_SECONDS = 1.0

#: Options of uvicorn for the streaming socket.
SOCKETS: dict[str, Any] = {
    "ws": "websockets-sansio",
    "ws_ping_interval": 5.0,  # keeps idle connections open
    "ws_ping_timeout": None,  # a client may be busy for long, such as a notebook; lost clients reach the idle limit
    "ws_max_size": 1 << 20,  # two seconds of audio at the highest rate, in base64, are 256 kB
    "ws_per_message_deflate": False,  # audio is not compressible
}


def serve(
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, int] = 8000,
    data_dir: Path | str | None = None,
    api_key: str | None = None,
    llm_prefix: str | None = None,
    allow_origin: Sequence[str] = (),
    webhook_interval: Annotated[float | None, seconds] = None,
    llm_url: str | None = None,
    llm_model: str | None = None,
    llm_key: str | None = None,
    llm_window: Annotated[int | None, count] = None,
    writer: str | None = None,
    llm_requests: Annotated[int | None, count] = None,
    engine: str | None = None,
    model: str | None = None,
    nano_model: str | None = None,
    device: str | None = None,
    keep_days: Annotated[float | None, amount] = None,
    keep_gb: Annotated[float | None, amount] = None,
    parent_pipe: Annotated[bool, SUPPRESS] = False,
    shared_for: Annotated[float | None, seconds, SUPPRESS] = None,
) -> None:
    """Run the embedded server on this machine until it is stopped by Ctrl-C or SIGTERM.

    Args:
        host (HOST): Host to bind. With any host other than a loopback address, other machines can reach the server;
            they still need the key.
        port (PORT): Port to bind; 0 for a free one.
        data_dir (DIR): Directory of jobs, media, results and the key. None (default): `service` in voxframe's data
            directory.
        api_key (KEY): API key; VOXFRAME_API_KEY is safer, because other processes cannot see it. None (default): a
            generated key stored in the file `key` of the directory.
        llm_prefix (NAME): First path segment of the language-model endpoints. None (default): VOXFRAME_LLM_PREFIX, else
            llm.
        allow_origin (ORIGIN): Origin such as http://127.0.0.1:9000 that media may be fetched from and that may be
            notified, although it is not public.
        webhook_interval (SECONDS): Time between two attempts of a notification. None (default): 10.
        llm_url (URL): URL of an OpenAI-compatible language model such as http://127.0.0.1:11434/v1; its key goes into
            VOXFRAME_LLM_KEY. None (default): VOXFRAME_LLM_URL, else responses quote the transcripts.
        llm_model (NAME): Name of the model. None (default): VOXFRAME_LLM_MODEL.
        llm_key: Key of the model. None (default): VOXFRAME_LLM_KEY, else no key.
        llm_window (TOKENS): Context window of the model in tokens, for input and output together. None (default):
            VOXFRAME_LLM_WINDOW, else 16000.
        writer (PATH): GGUF file of a model that writes on this machine, used if there is no other language model; off
            for none. None (default): VOXFRAME_WRITER, else that of `voxframe models get writer` if it is here.
        llm_requests (N): Language-model requests per minute; 0 for no limit. None (default): 30.
        engine (NAME): Speech engine: whisper, or an installed one. None (default): VOXFRAME_ENGINE, else whisper. Its
            models are downloaded; without one, jobs fail with the command that gets it.
        model (MODEL): Default model, also for speech_model best: a directory, or a name to download such as small or
            Systran/faster-whisper-small. None (default): VOXFRAME_MODEL, else base, and tiny.en for English with nano.
        nano_model (MODEL): Model for speech_model nano. None (default): VOXFRAME_MODEL_NANO, else that of --model.
        device (DEVICE): auto, cpu or cuda. None (default): VOXFRAME_DEVICE, else auto: a graphics card of NVIDIA if a
            trial succeeds, else the processor.
        keep_days (DAYS): Remove uploads, downloads and redacted audio of finished jobs after this number of days;
            transcripts are kept. None (default): 30.
        keep_gb (GB): Remove the oldest of this media while its total size in gigabytes is larger. None (default): 20.
        parent_pipe: Write one JSON line with the URL to standard output once ready, and stop when standard input ends.
            A line `{"allow_webhooks": origin}` on standard input allows one more origin to be notified; the reply is
            `{"allowed": origin}`.
        shared_for: Publish the URL in the data directory for commands of this user, and stop after this number of
            seconds without a request and without an unfinished job.

    Raises:
        SettingsError: A setting is invalid, or another shared server runs in the data directory.
        MissingExtraError: The extra `local` is not installed, or a writer is given without the extra `writer`.
    """
    try:
        import uvicorn

        from voxframe_engine.answers.chat import chat_from_settings
        from voxframe_engine.answers.writer import find as find_writer
        from voxframe_engine.speech.engines import select_engine
        from voxframe_server.http.app import make_app
        from voxframe_server.http.middleware import LOOPBACK, ActivityMonitor
        from voxframe_server.jobs import UnusableDatabaseError, webhook_delivery
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("voxframe"):
            raise
        raise MissingExtraError("local", "The embedded service") from error

    answerer = chat_from_settings(llm_url, llm_model, llm_key, llm_window)
    local_writer = None if answerer is not None else find_writer(writer)
    # With a parent, nobody sees a progress bar: the parent has downloaded the models. The first use of one that is
    # missing gives a warning.
    has_parent = parent_pipe or shared_for is not None
    if device is not None:
        os.environ["VOXFRAME_DEVICE"] = device  # the engine reads it, in this process and in those of jobs
    choice = select_engine(engine, model, nano_model, download=not has_parent)
    for name, consequence in models.ANALYSES.items() if not has_parent else ():
        try:
            models.ensure(name)
        except ModelError as error:
            _log.warning("%s. %s.", error, consequence)
    resolved = settings.resolve(llm_prefix=llm_prefix, api_key=api_key)
    directory = DataDir(
        Path(data_dir).expanduser().absolute() if data_dir is not None else resolved.data_dir / "service"
    )
    try:
        directory.make()
        key, key_file = (resolved.api_key.reveal(), None) if resolved.api_key else _kept_key(directory)
    except OSError as error:
        raise SettingsError(
            f"the data directory {directory.root} cannot be used ({error.strerror}: {error.filename}); choose another "
            "with --data-dir"
        ) from error
    shared = None if shared_for is None else ServerFile(directory.root)
    if shared is not None and not shared.hold():
        raise SettingsError(f"another shared server runs in {directory.root}; `voxframe server status` shows it")
    listener = _bind(host, port)
    url, address = _url(listener), listener.getsockname()[0]
    allowed_origins = frozenset(_origin(text) for text in allow_origin)
    try:
        app = make_app(
            directory,
            key,
            llm_prefix=resolved.llm_prefix,
            allowed_origins=allowed_origins,
            hosts=LOOPBACK | {host.lower(), address} if ip_address(address).is_loopback else None,
            base_url=url,
            webhook_interval=webhook_delivery.INTERVAL if webhook_interval is None else webhook_interval,
            answerer=answerer,
            writer=local_writer,
            llm_requests=30 if llm_requests is None else llm_requests,
            choice=choice,
            retention=RetentionPolicy(
                RetentionPolicy.days if keep_days is None else keep_days,
                RetentionPolicy.gigabytes if keep_gb is None else keep_gb,
            ),
        )
    except UnusableDatabaseError as error:
        raise SettingsError(str(error)) from error

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            key_hint = f"its key is in {key_file}" if key_file else "its key is the one you gave"
            _log.info("serving at %s, data in %s; %s", url, directory.root, key_hint)
            _log.info("open %s/ in a browser to see jobs and their text", url)
            if parent_pipe:
                sys.stdout.write(
                    json.dumps({"base_url": url, "api_key_file": str(key_file) if key_file else None}) + "\n"
                )
                sys.stdout.flush()
            if shared is not None:
                shared.publish(url, choices_of(os.environ, resolved.llm_prefix))
                idle = (self, monitor, app.state.server.jobs, shared, shared_for)
                threading.Thread(target=_end_when_idle, args=idle, daemon=True).start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if shared is not None:  # no command may find a server that accepts no more requests
                shared.withdraw()
            await super().shutdown(sockets=sockets)

    # A fixed event loop and parser, so that other installed packages make no difference.
    monitor = ActivityMonitor(app)
    config = uvicorn.Config(
        monitor,
        loop="asyncio",
        http="h11",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=75,  # a request that arrives just when an idle connection is closed is lost
        **SOCKETS,
    )
    server = Server(config)
    if parent_pipe:
        allow = app.state.server.webhook_origins.add
        threading.Thread(target=_end_with_parent, args=(server, allow), daemon=True).start()
    server.run(sockets=[listener])


def _end_when_idle(
    server: Any, monitor: ActivityMonitor, jobs: JobStore, shared: ServerFile, shared_for: float
) -> None:
    """Stop after `shared_for` seconds without a request and without an unfinished job.

    If no command can find this server any more, because its data directory or its record is gone, it does not wait.
    """
    while not server.should_exit:
        time.sleep(min(_PARENT_CHECK_SECONDS, shared_for / 4))
        lost = not shared.is_of(os.getpid())
        try:
            if jobs.unfinished():
                monitor.touch()
        except sqlite3.Error:
            if not lost:
                continue
        if not lost and monitor.idle_s < shared_for:
            continue
        with nullcontext(True) if lost else shared.starting(wait=False) as is_held:
            # A command that has found this server sends a request before it releases this lock.
            if is_held and (lost or monitor.idle_s >= shared_for):
                _log.info("nothing to do for %.0f s: the server ends", monitor.idle_s)
                shared.withdraw()
                server.should_exit = True


def _end_with_parent(server: object, allow_webhooks: Callable[[str], None]) -> None:
    """Stop when standard input ends, or when the parent is gone but another process holds its end of the pipe open."""
    parent = os.getppid()
    ended = threading.Event()

    def read() -> None:
        with os.fdopen(os.dup(0), "rb") as lines:
            for line in lines:
                _obey(line, allow_webhooks)
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    while not ended.wait(_PARENT_CHECK_SECONDS) and os.getppid() == parent:
        pass
    server.should_exit = True  # type: ignore[attr-defined]
    time.sleep(10)
    os._exit(1)  # a request or a job did not end in time


def _obey(line: bytes, allow_webhooks: Callable[[str], None]) -> None:
    """Carry out a command of the parent, the only process that may allow origins."""
    try:
        name = origin(json.loads(line)["allow_webhooks"])
        allow_webhooks(name)
        reply = {"allowed": name}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reply = {"error": f"unknown command: {type(error).__name__}"}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _kept_key(data_dir: DataDir) -> tuple[str, Path]:
    """Return the key stored in the data directory, generated if there is none, and its file."""
    with file_lock(data_dir.root / ".key.lock"):
        key = data_dir.key.read_text().strip() if data_dir.key.exists() else ""
        if not key:
            key = secrets.token_hex(24)
            fresh = hidden_path(data_dir.key)
            fresh.touch(0o600, exist_ok=False)
            fresh.write_text(f"{key}\n")
            sync(fresh)
            put_in_place(fresh, data_dir.key)
    return key, data_dir.key


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given; otherwise responses are delayed by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError, UnicodeError) as error:  # UnicodeError: no host can have this name
        listener.close()
        raise SettingsError(f"cannot serve at {host}, port {port} ({error}); try --port 0 for a free one") from error
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _origin(text: str) -> str:
    try:
        return origin(text)
    except ValueError as error:
        raise SettingsError(f"--allow-origin must be an origin such as http://127.0.0.1:9000: {error}") from None
