"""Settings for the service, the API key and the data directory: from arguments, the environment, or defaults."""

from __future__ import annotations

import hmac
import ipaddress
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
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
    "timeout": "VOXFRAME_TIMEOUT",
    "max_response_mb": "VOXFRAME_MAX_RESPONSE_MB",
}

#: Seconds from the first to the last byte of a response. The longest results, tens of MB, arrive in seconds.
RESPONSE_TIMEOUT_S = 600.0
#: Maximum size of a response in MiB. Ten hours of speech with every analysis take about 30.
MAX_RESPONSE_MB = 256


class Secret:
    """An API key that only `reveal()` returns; it never appears in a repr, a log, a notebook, a pickle or JSON.

    Args:
        value: The key. Leading and trailing white space is removed.

    Raises:
        SettingsError: The key is empty or contains characters not allowed in an HTTP header.

    Example:
        >>> Secret("not-shown")
        Secret(set)
    """

    __slots__ = ("_reveal",)

    def __init__(self, value: str) -> None:
        value = value.strip()
        if not value or not all("!" <= c <= "~" for c in value):
            raise SettingsError(
                "the API key is empty or has characters that no key has (not shown here); pass it as it was issued"
            )
        self._reveal: Callable[[], str] = lambda: value  # a closure hides it from code that walks attributes

    def reveal(self) -> str:
        """Return the key in plain text."""
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
        raise TypeError("an API key cannot be pickled; call voxframe.connect() in the other process")


@dataclass(frozen=True)
class Settings:
    """Resolved settings.

    Attributes:
        base_url: URL of the service, without a trailing slash; None if not configured.
        stream_url: URL of the streaming WebSocket (ws or wss); None if not configured.
        llm_prefix: First path segment of the language model endpoints.
        api_key: The API key, or None.
        data_dir: Directory for corpora and for the embedded server.
        timeout: Maximum seconds from the first to the last byte of a response. Does not apply to media downloads.
        max_response_mb: Maximum size of a response in MiB. Media downloads have a separate limit.
    """

    base_url: str | None
    stream_url: str | None
    llm_prefix: str
    api_key: Secret | None
    data_dir: Path
    timeout: float = RESPONSE_TIMEOUT_S
    max_response_mb: float = MAX_RESPONSE_MB


def resolve(
    base_url: str | None = None,
    stream_url: str | None = None,
    llm_prefix: str | None = None,
    api_key: str | Secret | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    allow_http: bool | None = None,
    timeout: float | None = None,
    max_response_mb: float | None = None,
) -> Settings:
    """Return settings from the arguments, then the environment, then defaults.

    Args:
        base_url: URL of the service. None (default): `VOXFRAME_BASE_URL`.
        stream_url: URL of the streaming WebSocket. None (default): `VOXFRAME_STREAM_URL`, else `base_url` with
            ws or wss.
        llm_prefix: First path segment of the language model endpoints. None (default): `VOXFRAME_LLM_PREFIX`,
            else "llm".
        api_key: The API key. None (default): `VOXFRAME_API_KEY`.
        data_dir: Directory for data. None (default): `VOXFRAME_DATA_DIR`, else the platform's user data directory.
        allow_http: Allow sending the key unencrypted to another machine. None (default): True if `VOXFRAME_ALLOW_HTTP`
            is 1, true or yes.
        timeout: Maximum seconds from the first to the last byte of a response. None (default): `VOXFRAME_TIMEOUT`,
            else 600.
        max_response_mb: Maximum size of a response in MiB. None (default): `VOXFRAME_MAX_RESPONSE_MB`, else 256.

    Example:
        >>> resolve("https://speech.example", api_key="not-shown").stream_url
        'wss://speech.example'
    """
    from platformdirs import user_data_path

    for name, given in (("base_url", base_url), ("stream_url", stream_url), ("llm_prefix", llm_prefix)):
        if given is not None and not isinstance(given, str):
            raise SettingsError(f"{name} must be text, got {type(given).__name__}")
    if api_key is not None and not isinstance(api_key, str | Secret):
        raise SettingsError(f"the API key must be text, got {type(api_key).__name__}")
    if allow_http is None:
        allow_http = is_on(ENVIRONMENT["allow_http"])
    if not isinstance(allow_http, bool):  # the text "no" would count as true
        raise SettingsError(f"allow_http must be True or False, got {allow_http!r}")
    if data_dir is not None and not isinstance(data_dir, str | os.PathLike):
        raise SettingsError(f"data_dir must be a str or a Path, got {type(data_dir).__name__}")
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
        data_dir=Path(directory).expanduser().absolute() if directory else user_data_path("voxframe", appauthor=False),
        timeout=_positive("timeout", timeout, RESPONSE_TIMEOUT_S, "seconds"),
        max_response_mb=_positive("max_response_mb", max_response_mb, MAX_RESPONSE_MB, "megabytes"),
    )


def is_loopback(url: str) -> bool:
    """Return True if a URL refers to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_on(variable: str) -> bool:
    """Return True if an environment variable is 1, true or yes."""
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def plugin(kind: str, name: str | None, built_in: str) -> Any:
    """Return what a package offers as an entry point of the group `voxframe.<kind>s`, or None for what is built in."""
    name = name or os.environ.get(f"VOXFRAME_{kind.upper()}", "").strip() or built_in
    for entry in entry_points(group=f"voxframe.{kind}s", name=name):
        return entry.load()
    if name != built_in:
        raise SettingsError(
            f"there is no {kind} {name!r}; installed are {', '.join(plugins(kind, built_in))}, and "
            f"VOXFRAME_{kind.upper()} chooses one"
        )
    return None


def plugins(kind: str, built_in: str) -> list[str]:
    """Return the names that `plugin` takes, sorted."""
    return sorted({built_in, *(entry.name for entry in entry_points(group=f"voxframe.{kind}s"))})


def _environment(name: str) -> str | None:
    return os.environ.get(ENVIRONMENT[name], "").strip() or None


def _positive(name: str, given: float | None, default: float, unit: str) -> float:
    """Return a positive number from the argument, the environment or the default."""
    value = _environment(name) if given is None else given
    if value is None:
        return default
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise SettingsError(
            f"{name} must be a number of {unit} above 0, got {value!r}; change the argument or {ENVIRONMENT[name]}"
        )
    return number


def _prefix(value: str) -> str:
    prefix = value.strip("/")
    if not re.fullmatch(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", prefix):
        raise SettingsError(
            f"llm_prefix {value!r} is not one path segment; give letters, digits and hyphens, such as 'llm'"
        )
    return prefix


def _address(value: str, name: str, schemes: dict[str, str], allow_http: bool) -> str:
    """Return the URL in normalized form, or raise a SettingsError that never repeats a password in it."""
    hint = f"give it as {name}='https://host', or in {ENVIRONMENT[name]}"
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - reading the port validates it: a bad one raises
    except ValueError:  # its text may repeat a part of a password
        raise SettingsError(f"{name} is not a valid URL: check its port and its brackets; {hint}") from None
    if parts.username is not None or parts.password is not None:
        raise SettingsError(f"{name} contains a user name or password; {hint}, and the key as api_key")
    if parts.scheme not in schemes or not parts.hostname or re.search(r"[\s\x00-\x1f\\]", value):
        # The message does not repeat the value: it may be a key passed as a URL by mistake.
        raise SettingsError(f"{name} is not the URL of a service ({', '.join(schemes)}); {hint}")
    if parts.query or parts.fragment:
        raise SettingsError(f"{name} must be a URL without a query ('?') or a fragment ('#'); {hint}")
    path = parts.path.rstrip("/")
    if re.search(r"/v\d+$", path):
        raise SettingsError(f"{name} is {value!r}, but voxframe adds the version to each request; remove the last part")
    address = SplitResult(schemes[parts.scheme], parts.netloc.lower(), path, "", "").geturl()
    if schemes[parts.scheme] in ("http", "ws") and not is_loopback(address) and not allow_http:
        raise SettingsError(
            f"{name} is {address!r}: your key would travel unencrypted to another machine. Use "
            f"{schemes[parts.scheme]}s://, or allow it on a network you trust with {ENVIRONMENT['allow_http']}=1"
        )
    return address
