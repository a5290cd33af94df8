"""The API client: a client of the service, handles for its jobs, and streaming sessions.

Names are imported when they are first used, so that importing a module of this package does not load the HTTP client.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import lazy_loader

from voxframe import _progress as progress
from voxframe._progress import in_notebook
from voxframe.errors import SettingsError
from voxframe.settings import ENVIRONMENT, Secret, Settings, resolve

if TYPE_CHECKING:
    from voxframe.client.client import Client
    from voxframe.client.transcript import Transcript

__all__ = ["Client", "Transcript", "connect"]

__getattr__, *_ = lazy_loader.attach(__name__, submod_attrs={"client": ["Client"], "transcript": ["Transcript"]})

_noticed = False
_in_command = False


@contextmanager
def command_mode(*, quiet: bool = False) -> Iterator[None]:
    """Inside the block, `connect` uses the embedded server that commands share, and notices appear once per user."""
    global _in_command
    before = _in_command, progress.quiet
    _in_command, progress.quiet = True, quiet
    try:
        yield
    finally:
        _in_command, progress.quiet = before


def connect(
    base_url: str | None = None,
    *,
    api_key: str | Secret | None = None,
    stream_url: str | None = None,
    llm_prefix: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_http: bool | None = None,
    timeout: float | None = None,
    max_response_mb: float | None = None,
) -> Client:
    """Connect to a transcription service.

    Each setting is taken from its argument, else from the environment, else from its default. Without a URL of the
    service, a key and a URL for streaming, the embedded server is started on this machine, and one line reports it (on
    stderr in a script). With a URL but no key, an interactive session prompts for the key, which is never displayed.

    Args:
        base_url: URL of the service; environment `VOXFRAME_BASE_URL`.
        api_key: API key; `VOXFRAME_API_KEY`.
        stream_url: URL for streaming; `VOXFRAME_STREAM_URL`, else `base_url` with ws or wss.
        llm_prefix: First path segment of the language-model endpoints; `VOXFRAME_LLM_PREFIX`, else "llm".
        data_dir: Data directory; `VOXFRAME_DATA_DIR`, else the platform's directory for user data.
        allow_http: Allow sending the key unencrypted to another machine; `VOXFRAME_ALLOW_HTTP=1`, else False.
        timeout: Maximum seconds from the first to the last byte of a response; `VOXFRAME_TIMEOUT`, else 600. It does
            not limit the time of a job, see `Client.wait`, nor of a media download that makes progress.
        max_response_mb: Maximum size of a response in MiB; `VOXFRAME_MAX_RESPONSE_MB`, else 256.

    Returns:
        A client.

    Raises:
        SettingsError: A setting is missing or invalid.
        MissingExtraError: The embedded server is not installed.
        ServiceError: The embedded server could not be started.

    Example:
        >>> client = connect("https://speech.example", api_key="not-shown")
        >>> client
        Client('https://speech.example')
    """
    settings = resolve(
        base_url,
        stream_url,
        llm_prefix,
        api_key,
        data_dir,
        allow_http=allow_http,
        timeout=timeout,
        max_response_mb=max_response_mb,
    )
    if settings.base_url is None:
        if settings.api_key is not None or settings.stream_url is not None:
            setting = "a URL for streaming" if settings.api_key is None else "a key"
            raise SettingsError(
                f"there is {setting} but no URL of the service; give connect(base_url='https://host') or set "
                f"{ENVIRONMENT['base_url']}. Without any of them, connect() uses the embedded server"
            )
        settings = _embedded(settings)
    elif settings.api_key is None:
        settings = dataclasses.replace(settings, api_key=_ask_for_key(settings.base_url))
    from voxframe.client.client import Client

    return Client(settings)


def reconnect(settings: Settings, is_local: bool) -> Client:
    """Return a client with settings whose key is looked up again, as a copy or a pickle of a client needs it."""
    return connect(
        None if is_local else settings.base_url,
        stream_url=None if is_local else settings.stream_url,
        llm_prefix=settings.llm_prefix,
        data_dir=settings.data_dir,
        timeout=settings.timeout,
        max_response_mb=settings.max_response_mb,
    )


def _embedded(settings: Settings) -> Settings:
    if _in_command:
        from voxframe.client.shared_server import share

        shared = share(settings)
        _notice(
            f"voxframe: no service is configured; using the server on this machine (data in {settings.data_dir}). It "
            "ends when it has nothing to do; `voxframe server status` shows it. For another service, set "
            f"{ENVIRONMENT['base_url']} and {ENVIRONMENT['api_key']}. This notice appears once.\n",
            settings.data_dir / "service" / "notice-shown",
        )
        return shared
    from voxframe.client.embedded import launch, settings_of

    service = launch(settings)
    _notice(
        f"voxframe: no service is configured; using the embedded server (data in {settings.data_dir}). "
        "For another service, give connect(base_url=..., api_key=...).\n"
    )
    return settings_of(service.base_url, service.api_key, settings)


def _notice(line: str, marker: Path | None = None) -> None:
    """Print the line once per process, or once until `marker` is removed. It is no warning, because nothing is wrong.

    In a notebook it goes to stdout, because stderr is shown as a red box. In a script it goes to stderr, because stdout
    may be data for another program.
    """
    global _noticed  # noqa: PLW0603 - printed once per process
    out = sys.stdout if in_notebook() else sys.stderr
    was_shown = _noticed if marker is None else marker.exists()
    if not was_shown and not progress.quiet and out is not None:
        if marker is None:
            _noticed = True
        else:
            marker.touch()
        out.write(line)
        out.flush()


def _ask_for_key(base_url: str) -> Secret:
    missing = SettingsError(
        f"there is no key for {base_url}; give connect(api_key=...) or set {ENVIRONMENT['api_key']}"
    )
    if not (in_notebook() or (sys.stdin is not None and sys.stdin.isatty())):
        raise missing
    from getpass import getpass

    try:
        typed = getpass(f"API key for {base_url}: ")
    except (EOFError, NotImplementedError):  # NotImplementedError: a notebook executed by a program
        raise missing from None
    if not typed.strip():
        raise missing
    return Secret(typed)
