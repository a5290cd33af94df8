"""From settings to a client: a service that is configured, or the embedded one."""

from __future__ import annotations

import dataclasses
import os
import sys

from voxframe.errors import SettingsError
from voxframe.service.client import Client
from voxframe.service.progress import in_notebook
from voxframe.settings import ENVIRONMENT, Secret, Settings, resolve

_noticed = False


def connect(
    base_url: str | None = None,
    *,
    api_key: str | Secret | None = None,
    stream_url: str | None = None,
    llm_prefix: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_http: bool | None = None,
) -> Client:
    """Connect to a transcription service.

    Every setting comes from its argument, else from the environment, else from its default. With no address and no key
    at all, the embedded service of this machine is started, and a line says so (on stderr in a script). With an address
    and no key, the key is asked for where somebody can type it; it is never shown.

    Args:
        base_url: Address of the service; environment `VOXFRAME_BASE_URL`.
        api_key: The key; `VOXFRAME_API_KEY`.
        stream_url: Address of its streaming socket; `VOXFRAME_STREAM_URL`, else `base_url` with ws or wss.
        llm_prefix: First path segment of its language-model endpoints; `VOXFRAME_LLM_PREFIX`, else "llm".
        data_dir: Directory for data; `VOXFRAME_DATA_DIR`, else the platform's directory for user data.
        allow_http: Whether the key may travel unencrypted to another machine; `VOXFRAME_ALLOW_HTTP=1`, else False.

    Raises:
        SettingsError: A setting is missing or cannot be used.
        MissingExtraError: The embedded service is not installed.
        ServiceError: The embedded service did not come up.

    Example:
        >>> client = connect("https://speech.example", api_key="not-shown")
        >>> client
        Client('https://speech.example')
    """
    settings = resolve(base_url, stream_url, llm_prefix, api_key, data_dir, allow_http=allow_http)
    if settings.base_url is None:
        if settings.api_key is not None:
            raise SettingsError(
                "there is a key but no address of the service it is for; give connect(base_url='https://host') or set "
                f"{ENVIRONMENT['base_url']}. Without a key, connect() uses the embedded service"
            )
        settings = _embedded(settings)
    elif settings.api_key is None:
        settings = dataclasses.replace(settings, api_key=_ask_for_key(settings.base_url))
    return Client(settings)


def _embedded(settings: Settings) -> Settings:
    from voxframe.service.embedded import launch

    service = launch(settings)
    _notice(
        f"voxframe: no service is configured; using the embedded one on this machine (data in {settings.data_dir}). "
        "For another, give connect(base_url=..., api_key=...).\n"
    )
    found = resolve(service.base_url, service.base_url, settings.llm_prefix, service.api_key, settings.data_dir)
    return dataclasses.replace(found, llm_prefix=settings.llm_prefix)


def _notice(line: str) -> None:
    """Say it once to whoever looks: no warning, since nothing is wrong.

    A notebook shows stderr as a red box; in a script, stdout may be data for another program.
    """
    global _noticed  # noqa: PLW0603 - once per process is what it is for
    out = sys.stdout if in_notebook() else sys.stderr
    if not _noticed and out is not None:
        _noticed = True
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
    except (EOFError, NotImplementedError):  # NotImplementedError: a notebook run by a program has nobody to ask
        raise missing from None
    if not typed.strip():
        raise missing
    return Secret(typed)
