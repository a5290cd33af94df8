"""Connections to addresses that were checked, never to whatever a name stands for a moment later."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from contextlib import suppress
from urllib.parse import quote, urlsplit

from voxframe.local.addresses import origin, resolve


class _Plain(http.client.HTTPConnection):
    pinned: list[tuple[str, int]]

    def connect(self) -> None:
        self.sock = _open(self.pinned, self.timeout)


class _Secure(http.client.HTTPSConnection):
    """The certificate is checked against the name."""

    pinned: list[tuple[str, int]]

    def connect(self) -> None:
        self.sock = ssl.create_default_context().wrap_socket(
            _open(self.pinned, self.timeout), server_hostname=self.host
        )


def _open(addresses: list[tuple[str, int]], seconds: float | None) -> socket.socket:
    """A connection to the first of the addresses that takes one."""
    until = time.monotonic() + (seconds or 0)
    for address in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection(address, max(until - time.monotonic(), 0.1))
    return socket.create_connection(addresses[-1], max(until - time.monotonic(), 0.1))


def connection(url: str, allowed_origins: frozenset[str], seconds: float) -> http.client.HTTPConnection:
    """A connection, not yet open, to the server that a URL names.

    Proxies named in the environment are not used: through one, the address that is connected to could not be checked.

    Args:
        url: An http or https address.
        allowed_origins: Origins, as `addresses.origin` spells them, that may resolve to anything.
        seconds: Longest time to connect, and longest silence after that.

    Raises:
        NotAllowedError: No address of the host is allowed.
        OSError: The host has no address.
        ValueError: It is no http or https address.
    """
    scheme = origin(url).partition(":")[0]
    addresses = resolve(url, allowed_origins)
    kind = _Secure if scheme == "https" else _Plain
    made = kind(urlsplit(url).hostname or "", addresses[0][1], timeout=seconds)
    made.pinned = addresses
    return made


def request_target(url: str) -> str:
    """Path and query of a URL, which may hold spaces or letters beyond ASCII, as HTTP wants them.

    Example:
        >>> request_target("http://localhost/my talk?x=1#end")
        '/my%20talk?x=1'
    """
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(path, safe="/%?&=+,;:@!$'()*~-._[]")
