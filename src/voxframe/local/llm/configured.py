"""Which language model is configured, if any."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from voxframe.errors import SettingsError
from voxframe.local.llm.chat import Chat
from voxframe.local.llm.model import Model
from voxframe.settings import Secret, is_loopback

_LEAST_WINDOW = 1000


def configured(url: str | None, model: str | None, key: str | None, window: int | None) -> Chat | None:
    """The model that arguments or the environment name; None where they name none.

    Raises:
        SettingsError: A setting is missing or cannot be used.
    """
    url = url or _environment("URL")
    model = model or _environment("MODEL")
    if url is None:
        if model is not None:
            raise SettingsError(f"the language model {model!r} has no address; give --llm-url or set VOXFRAME_LLM_URL")
        return None
    host = _host(url)
    if model is None:
        raise SettingsError(f"which model at {host}? Give --llm-model or set VOXFRAME_LLM_MODEL")
    secret = key or _environment("KEY")
    if secret and urlsplit(url).scheme == "http" and not is_loopback(url):
        raise SettingsError(
            f"the key of the language model would travel unencrypted to {host}; use https, or unset VOXFRAME_LLM_KEY"
        )
    if window is None:
        text = _environment("WINDOW") or "16000"
        if not text.isdecimal():
            raise SettingsError(f"VOXFRAME_LLM_WINDOW must be a number of tokens, not {text!r}")
        window = int(text)
    if window < _LEAST_WINDOW:
        raise SettingsError(
            f"a window of {window} tokens is too small for a language model; {_LEAST_WINDOW} is the least"
        )
    address = url.rstrip("/").removesuffix("/chat/completions")
    return Chat(Model(address, model, Secret(secret) if secret else None), window)


def _environment(name: str) -> str | None:
    return os.environ.get(f"VOXFRAME_LLM_{name}", "").strip() or None


def _host(url: str) -> str:
    """Its server, once it is an address; never the rest, which may hold a key."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise SettingsError(
            "the address of the language model must be like http://127.0.0.1:11434/v1: http or https, without a user, "
            "'?' or '#'"
        )
    return parts.hostname
