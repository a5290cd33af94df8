"""Which addresses the service may connect to for someone: public ones, and origins that were allowed by name."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

_NAT64 = IPv6Network("64:ff9b::/96")
_PORTS = {"http": 80, "https": 443}


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, also where an IPv6 address stands for an IPv4 one.

    Example:
        >>> is_public("169.254.169.254"), is_public("::ffff:127.0.0.1"), is_public("9.9.9.9")
        (False, False, True)
    """
    return _is_public(ip_address(address.partition("%")[0]))


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(inner)
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def is_known_private(url: str) -> bool:
    """Whether an address is seen not to be public, without a look-up: an IP address, or this machine's own name.

    Example:
        >>> is_known_private("http://[::1]:9000/hook"), is_known_private("https://hooks.example/")
        (True, False)
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def origin(url: str) -> str:
    """Scheme, host and port of an address, in one spelling.

    Raises:
        ValueError: It is no http or https address.

    Example:
        >>> origin("HTTP://LocalHost/a.wav")
        'http://localhost:80'
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if scheme not in _PORTS or not host:
        raise ValueError(f"{url!r} is no http or https address")
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{parts.port or _PORTS[scheme]}"


class NotAllowedError(Exception):
    """The address is not public and its origin was not allowed."""


def resolve(url: str, allowed_origins: frozenset[str]) -> list[tuple[str, int]]:
    """Addresses and port to connect to for a URL. Connect to no other: a second look-up may give another answer.

    Args:
        url: An http or https address.
        allowed_origins: Origins, as `origin` spells them, that may resolve to anything.

    Raises:
        NotAllowedError: No address of the host is allowed.
        OSError: The host has no address.
        ValueError: It is no http or https address.
    """
    name = origin(url)
    host, _, port = name.partition("://")[2].rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if name in allowed_origins:
        return [(address, int(port)) for address in addresses]
    # All of them, not one of them: a name that is half public is somebody's trick.
    if not addresses or not all(is_public(address) for address in addresses):
        raise NotAllowedError(
            f"{name} is not on the public internet; the service connects there only when started with "
            f"--allow-origin {name}"
        )
    return [(address, int(port)) for address in addresses]
