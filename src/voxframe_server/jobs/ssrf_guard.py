"""Protection against server-side request forgery.

Only public addresses and allowed origins may be contacted. A connection goes to an address that was checked, without
a second DNS lookup.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

_PORTS = {"http": 80, "https": 443}
_AGAIN_SECONDS = 0.1

# Not `ip_address(...).is_global`, which differs between Python 3.11, 3.12 and 3.13.
# https://www.iana.org/assignments/iana-ipv4-special-registry, every row, also those that are routed
_FORBIDDEN_IPV4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by customers of a carrier; metadata of Alibaba Cloud is 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # public by number, but the host of a machine at Azure
        "169.254.0.0/16",  # link-local; metadata of most clouds is 169.254.169.254
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocols; metadata of Oracle Cloud is 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast tunnels
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# All addresses of the IPv6 internet begin with the bits 001. This leaves out, among others, ::1, 100::/64, 5f00::/16,
# fc00::/7 (metadata of AWS and Google Cloud), fe80::/10, fec0::/10, ff00::/8 and local NAT64 (64:ff9b:1::/48).
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# https://www.iana.org/assignments/iana-ipv6-special-registry, every row that begins so
_FORBIDDEN_IPV6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # IETF protocols; Teredo (2001::/32) leads to the IPv4 address of its choice
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4 leads to the IPv4 address of its choice
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# IPv4-mapped addresses and NAT64: the last 32 bits are the IPv4 address of the destination.
_EMBEDS_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))


def is_public(address: str) -> bool:
    """Return True if an IP address belongs to the public internet and to no special-purpose block.

    An IPv6 address that stands for an IPv4 address (IPv4-mapped, NAT64) is as public as that one.
    """
    ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and any(ip in block for block in _EMBEDS_IPV4):
        ip = IPv4Address(int(ip) & 0xFFFFFFFF)
    if isinstance(ip, IPv4Address):
        return not any(ip in block for block in _FORBIDDEN_IPV4)
    return ip in _GLOBAL_UNICAST and not any(ip in block for block in _FORBIDDEN_IPV6)


def is_known_private(url: str) -> bool:
    """Return True if a URL is not public without a DNS lookup: its host is a private IP address or a localhost name."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def origin(url: str) -> str:
    """Return the scheme, host and port of a URL in a normalized form."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if scheme not in _PORTS or not host:
        raise ValueError(f"{url!r} is not an http or https URL")
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{parts.port or _PORTS[scheme]}"


class NotAllowedError(Exception):
    """The address is not public and its origin was not allowed."""


def resolve(url: str, allowed_origins: frozenset[str]) -> list[tuple[str, int]]:
    """Return the addresses and port of a URL's host. Connect only to these: a second lookup may give others."""
    name = origin(url)
    host, _, port = name.partition("://")[2].rpartition(":")
    infos = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in infos]
    if name in allowed_origins:
        return [(address, int(port)) for address in addresses]
    # All addresses must be public; a name with public and private addresses is an attack.
    if not addresses or not all(is_public(address) for address in addresses):
        raise NotAllowedError(
            f"{name} is not on the public internet; to allow it, start the server with --allow-origin {name}"
        )
    return [(address, int(port)) for address in addresses]


class _Plain(http.client.HTTPConnection):
    pinned: list[tuple[str, int]]

    def connect(self) -> None:
        self.sock = _connect(self.pinned, self.timeout)


class _Secure(http.client.HTTPSConnection):
    """HTTPS connection; the certificate is checked against the host name."""

    pinned: list[tuple[str, int]]

    def connect(self) -> None:
        self.sock = ssl.create_default_context().wrap_socket(
            _connect(self.pinned, self.timeout), server_hostname=self.host
        )


def _connect(addresses: list[tuple[str, int]], seconds: float | None) -> socket.socket:
    """Connect to the first address that accepts a connection."""
    until = time.monotonic() + (seconds or 0)
    for address in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection(address, max(until - time.monotonic(), 0.1))
    return socket.create_connection(addresses[-1], max(until - time.monotonic(), 0.1))


def connection(url: str, allowed_origins: frozenset[str], seconds: float) -> http.client.HTTPConnection:
    """Return a connection, not yet open, to the server of a URL. Proxies are ignored: they cannot be checked."""
    scheme = origin(url).partition(":")[0]
    addresses = resolve(url, allowed_origins)
    kind = _Secure if scheme == "https" else _Plain
    result = kind(urlsplit(url).hostname or "", addresses[0][1], timeout=seconds)
    result.pinned = addresses
    return result


@contextmanager
def time_limit(server: http.client.HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """Interrupt a connection after `seconds`. Yields an event that is set at that moment.

    The timeout of a socket limits the wait for each read; a server could send one byte at a time forever.
    """
    expired, finished = threading.Event(), threading.Event()

    def end() -> None:
        expired.set()
        while True:
            if server.sock is not None:
                with suppress(OSError):  # not the method of a TLS socket, which two threads may not use at once
                    socket.socket.shutdown(server.sock, socket.SHUT_RDWR)
            if finished.wait(_AGAIN_SECONDS):  # a connection may be opened only now
                return

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        finished.set()
        timer.cancel()


def request_target(url: str) -> str:
    """Return the path and query of a URL, percent-encoded for HTTP."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(path, safe="/%?&=+,;:@!$'()*~-._[]")
