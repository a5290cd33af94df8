"""Where the service is, who asks, and where data is kept: argument, then environment, then default."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self
from urllib.parse import SplitResult, urlsplit

from voxframe.errors import SettingsError

#: Environment variable of each setting.
ENVIRONMENT = {
    "base_url": "VOXFRAME_BASE_URL",
    "stream_url": "VOXFRAME_STREAM_URL",
    "llm_prefix": "VOXFRAME_LLM_PREFIX",
    "api_key": "VOXFRAME_API_KEY",
    "data_dir": "VOXFRAME_DATA_DIR",
    "allow_http": "VOXFRAME_ALLOW_HTTP",
}


class Secret:
    """A key that shows itself to nobody but `reveal()`: not in a repr, a log, a notebook, a pickle or JSON.

    Args:
        value: The key. White space around it is dropped.

    Raises:
        SettingsError: The key is empty or cannot stand in an HTTP header.

    Example:
        >>> Secret("not-shown")
        Secret(set)
    """

    __slots__ = ("_reveal",)

    def __init__(self, value: str) -> None:
        value = value.strip()
        if not value or not all("!" <= c <= "~" for c in value):
            raise SettingsError(
                "the API key is empty or holds characters no key has (it is not shown here); give it as it was issued"
            )
        self._reveal: Callable[[], str] = lambda: value  # a closure keeps it out of everything that walks attributes

    def reveal(self) -> str:
        """The key itself."""
        return self._reveal()

    def __repr__(self) -> str:
        return "Secret(set)"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.reveal(), other.reveal())

    def __hash__(self) -> int:
        return hash((Secret, self.reveal()))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("an API key is not pickled; call voxframe.connect() again where it is needed")


@dataclass(frozen=True)
class Settings:
    """Settings as resolved.

    Attributes:
        base_url: Address of the service, without a slash at its end; None where none is configured.
        stream_url: Address of its streaming socket (ws or wss); None where none is configured.
        llm_prefix: First path segment of its language-model endpoints.
        api_key: The key, or None.
        data_dir: Directory for corpora and for the embedded service.
    """

    base_url: str | None
    stream_url: str | None
    llm_prefix: str
    api_key: Secret | None
    data_dir: Path


def resolve(
    base_url: str | None = None,
    stream_url: str | None = None,
    llm_prefix: str | None = None,
    api_key: str | Secret | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    allow_http: bool | None = None,
) -> Settings:
    """Settings from arguments, else from the environment, else defaults.

    Args:
        base_url: Address of the service; environment `VOXFRAME_BASE_URL`.
        stream_url: Address of its streaming socket; `VOXFRAME_STREAM_URL`, else `base_url` with ws or wss.
        llm_prefix: First path segment of the language-model endpoints; `VOXFRAME_LLM_PREFIX`, else "llm".
        api_key: The key; `VOXFRAME_API_KEY`.
        data_dir: Directory for data; `VOXFRAME_DATA_DIR`, else the platform's directory for user data.
        allow_http: Whether the key may travel unencrypted to another machine; `VOXFRAME_ALLOW_HTTP=1`, else False.

    Raises:
        SettingsError: A setting cannot be used.

    Example:
        >>> resolve("https://speech.example", api_key="not-shown").stream_url
        'wss://speech.example'
    """
    for name, given in (("base_url", base_url), ("stream_url", stream_url), ("llm_prefix", llm_prefix)):
        if given is not None and not isinstance(given, str):
            raise SettingsError(f"{name} is a {type(given).__name__}; give it as text")
    if api_key is not None and not isinstance(api_key, str | Secret):
        raise SettingsError(f"the API key is a {type(api_key).__name__}; give it as text")
    if allow_http is None:
        allow_http = (_environment("allow_http") or "").lower() in ("1", "true", "yes")
    base = base_url or _environment("base_url")
    base = base and _address(base, "base_url", {"http": "http", "https": "https"}, allow_http)
    stream = stream_url or _environment("stream_url") or base
    stream = stream and _address(
        stream, "stream_url", {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}, allow_http
    )
    key = api_key or _environment("api_key")
    directory = data_dir or _environment("data_dir")
    return Settings(
        base_url=base or None,
        stream_url=stream or None,
        llm_prefix=_prefix(llm_prefix or _environment("llm_prefix") or "llm"),
        api_key=key if isinstance(key, Secret) else Secret(key) if key else None,
        data_dir=Path(directory).expanduser().absolute() if directory else _default_data_dir(),
    )


def is_loopback(url: str) -> bool:
    """Whether an address leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _environment(name: str) -> str | None:
    return os.environ.get(ENVIRONMENT[name], "").strip() or None


def _default_data_dir() -> Path:
    from platformdirs import user_data_path

    return user_data_path("voxframe", appauthor=False)


def _prefix(value: str) -> str:
    prefix = value.strip("/")
    if not re.fullmatch(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", prefix):
        raise SettingsError(
            f"llm_prefix {value!r} is not one path segment; give letters, digits and hyphens, such as 'llm'"
        )
    return prefix


def _address(value: str, name: str, schemes: dict[str, str], allow_http: bool) -> str:
    """The address in one spelling, or a SettingsError that never repeats a password it holds."""
    hint = f"give it as {name}='https://host', or in {ENVIRONMENT[name]}"
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - reading it is the check: a bad port raises here
    except ValueError as error:
        raise SettingsError(f"{name} is not an address ({error}); {hint}") from None
    if parts.username is not None or parts.password is not None:
        raise SettingsError(f"{name} holds a user name or password; {hint}, and the key as api_key")
    if parts.scheme not in schemes or not parts.hostname or re.search(r"[\s\x00-\x1f\\]", value):
        # What was given is not repeated: it may be a key in the wrong place.
        raise SettingsError(f"{name} is not an address of a service ({', '.join(schemes)}); {hint}")
    if parts.query or parts.fragment:
        raise SettingsError(f"{name} is an address alone, without what follows '?' or '#'; {hint}")
    path = parts.path.rstrip("/")
    if re.search(r"/v\d+$", path):
        raise SettingsError(
            f"{name} is {value!r}, but versions are added to it for each request; leave the last part off"
        )
    address = SplitResult(schemes[parts.scheme], parts.netloc.lower(), path, "", "").geturl()
    if schemes[parts.scheme] in ("http", "ws") and not is_loopback(address) and not allow_http:
        raise SettingsError(
            f"{name} is {address!r}: your key would travel unencrypted to another machine. Use "
            f"{schemes[parts.scheme]}s://, or allow it on a network you trust with {ENVIRONMENT['allow_http']}=1"
        )
    return address
