"""Starts the embedded service: its key, its socket, its log."""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from voxframe import settings
from voxframe.errors import MissingExtraError, SettingsError
from voxframe.local.addresses import origin
from voxframe.local.arguments import add_arguments
from voxframe.local.gate import LOOPBACK
from voxframe.local.places import Places

_log = logging.getLogger("voxframe.local")
_ENDINGS = 1.0  # seconds between two looks at whether the parent lives

#: How uvicorn is to serve the streaming socket.
SOCKETS: dict[str, Any] = {
    "ws": "websockets-sansio",
    "ws_ping_interval": 5.0,  # a sign of life while there is nothing to say
    "ws_ping_timeout": None,  # a client may be busy for long, a notebook for one; who is gone is idle, and ends so
    "ws_max_size": 1 << 20,  # two seconds of audio at the highest rate, in base64, are 256 kB
    "ws_per_message_deflate": False,  # audio does not get smaller
}


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    data_dir: Path | str | None = None,
    api_key: str | None = None,
    llm_prefix: str | None = None,
    allow_origin: Sequence[str] = (),
    webhook_interval: float | None = None,
    llm_url: str | None = None,
    llm_model: str | None = None,
    llm_key: str | None = None,
    llm_window: int | None = None,
    llm_requests: int | None = None,
    engine: str | None = None,
    model: str | None = None,
    nano_model: str | None = None,
    keep_days: float | None = None,
    keep_gb: float | None = None,
    parent_pipe: bool = False,
) -> None:
    """Run the embedded service until it is stopped (Ctrl-C, SIGTERM).

    Args:
        host: Address to bind. With any but a loopback address, others on the network can reach the service; they still
            need the key.
        port: Port to bind; 0 takes a free one.
        data_dir: Where jobs, media, results and the key are kept; default: `service` in voxframe's data directory.
        api_key: Key that requests must carry; default: the environment's VOXFRAME_API_KEY, else one made once and kept
            in the file `key` of `data_dir`.
        llm_prefix: First path segment of the language-model endpoints; default: VOXFRAME_LLM_PREFIX, else "llm".
        allow_origin: Origins such as "http://127.0.0.1:9000" to fetch media from, and to notify, although they are not
            on the public internet.
        webhook_interval: Seconds between two tries of a notification; default: 10.
        llm_url: Address of a language model that speaks the OpenAI-compatible protocol, without `/chat/completions`;
            default: VOXFRAME_LLM_URL, else none: language-model requests are answered by quoting.
        llm_model: Its name there; default: VOXFRAME_LLM_MODEL.
        llm_key: Its key; default: VOXFRAME_LLM_KEY, else none.
        llm_window: Tokens it takes at once, material and answer together; default: VOXFRAME_LLM_WINDOW, else 16000.
        llm_requests: Language-model requests a minute, 0 for no limit; default: 30.
        engine: Speech engine, "sphinx" or "whisper" or one that is installed; default: VOXFRAME_ENGINE, else sphinx.
        model: Its model for `speech_model` best and where none is asked for: a directory, or a name to download;
            default: VOXFRAME_MODEL.
        nano_model: Its model for `speech_model` nano; default: VOXFRAME_MODEL_NANO, else the same.
        keep_days: Days that media is kept: uploads, downloads, redacted audio; default: 30. Transcripts stay.
        keep_gb: Gigabytes of media that are kept, the newest; default: 20.
        parent_pipe: Write one JSON line with the address to standard output once ready, and end with standard input. A
            line `{"allow_webhooks": origin}` there lets one more origin be notified; `{"allowed": origin}` answers it.

    Raises:
        SettingsError: A setting cannot be used.
        MissingExtraError: The extra `local` is not installed.
    """
    try:
        import uvicorn

        from voxframe.local import webhooks
        from voxframe.local.app import make_app
        from voxframe.local.engines.configured import chosen
        from voxframe.local.llm.configured import configured
        from voxframe.local.protocol import Protocol
        from voxframe.local.sweep import Keep
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("voxframe"):
            raise
        raise MissingExtraError("local", "The embedded service") from error

    answerer = configured(llm_url, llm_model, llm_key, llm_window)
    choice = chosen(engine, model, nano_model)
    found = settings.resolve(llm_prefix=llm_prefix, api_key=api_key)
    places = Places(Path(data_dir).expanduser().absolute() if data_dir is not None else found.data_dir / "service")
    try:
        places.make()
    except OSError as error:
        raise SettingsError(
            f"the data directory {places.root} cannot be used ({error.strerror}); name another with --data-dir"
        ) from error
    key, key_file = (found.api_key.reveal(), None) if found.api_key else _kept_key(places)
    listener = _bind(host, port)
    address = _address(listener)
    allowed_origins = frozenset(_origin(text) for text in allow_origin)
    try:
        app = make_app(
            places,
            key,
            llm_prefix=found.llm_prefix,
            allowed_origins=allowed_origins,
            hosts=_hosts(host),
            base_url=address,
            webhook_interval=webhooks.INTERVAL if webhook_interval is None else webhook_interval,
            answerer=answerer,
            llm_requests=30 if llm_requests is None else llm_requests,
            choice=choice,
            keep=Keep(Keep.days if keep_days is None else keep_days, Keep.gigabytes if keep_gb is None else keep_gb),
        )
    except sqlite3.Error as error:
        raise SettingsError(
            f"{places.database} cannot be used ({error}); move it away to begin anew, or name another --data-dir"
        ) from error

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            where = f"its key is in {key_file}" if key_file else "its key is the one you gave"
            _log.info("serving at %s, data in %s; %s", address, places.root, where)
            _log.info("a browser shows jobs and their text at %s/", address)
            if parent_pipe:
                sys.stdout.write(
                    json.dumps({"base_url": address, "api_key_file": str(key_file) if key_file else None}) + "\n"
                )
                sys.stdout.flush()

    # One loop and one parser, whatever else is installed: no difference between machines.
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        **SOCKETS,
    )
    server = Server(config)
    if parent_pipe:
        allow = app.state.service.webhook_origins.add
        threading.Thread(target=_end_with_parent, args=(server, allow), daemon=True).start()
    server.run(sockets=[listener])


def _end_with_parent(server: object, allow_webhooks: Callable[[str], None]) -> None:
    """Stop when standard input ends, or when the parent is gone but someone else holds its end of the pipe open."""
    parent = os.getppid()
    ended = threading.Event()

    def read() -> None:
        with os.fdopen(os.dup(0), "rb") as lines:
            for line in lines:
                _obey(line, allow_webhooks)
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    while not ended.wait(_ENDINGS) and os.getppid() == parent:
        pass
    server.should_exit = True  # type: ignore[attr-defined]
    time.sleep(10)
    os._exit(1)  # a request or a job would not let go


def _obey(line: bytes, allow_webhooks: Callable[[str], None]) -> None:
    """Do what the parent wants: only it, who started the service, may say where that may connect."""
    try:
        name = origin(json.loads(line)["allow_webhooks"])
        allow_webhooks(name)
        answer = {"allowed": name}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        answer = {"error": f"no such request: {type(error).__name__}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _kept_key(places: Places) -> tuple[str, Path]:
    """The key that is kept in the data directory, made if there is none, and its file."""
    try:
        key = places.key.read_text().strip()
    except FileNotFoundError:
        key = ""
    if not key:
        fresh = places.root / f".key-{secrets.token_hex(8)}"
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(24) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, places.key)  # where two processes start at once, one key wins
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        key = places.key.read_text().strip()
    return key, places.key


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns Nagle's algorithm off; else answers on a kept connection wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise SettingsError(f"cannot serve at {host}, port {port} ({error}); try --port 0 for a free one") from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _hosts(host: str) -> frozenset[str] | None:
    """Host names to answer under: the loopback ones; where others on the network are meant to come, any."""
    return LOOPBACK if host in LOOPBACK else None


def _origin(text: str) -> str:
    try:
        return origin(text)
    except ValueError as error:
        raise SettingsError(f"--allow-origin takes an origin such as http://127.0.0.1:9000: {error}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m voxframe.local`: parse the arguments and serve.

    Returns:
        Exit status.
    """
    parser = argparse.ArgumentParser(
        prog="voxframe serve", description="Run the embedded speech service on this machine."
    )
    add_arguments(parser)
    parser.add_argument("--parent-pipe", action="store_true", help=argparse.SUPPRESS)
    given = vars(parser.parse_args(argv))
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        serve(**given)
    except (SettingsError, MissingExtraError) as error:
        sys.stderr.write(f"voxframe serve: {error}\n")
        return 2
    except KeyboardInterrupt:
        pass
    _end_at_once()
    return 0


def _end_at_once() -> None:
    """End this process where a thread still waits for something outside, such as a language model's answer.

    All that has to be kept is kept by now; the interpreter itself would wait for the thread.
    """
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
