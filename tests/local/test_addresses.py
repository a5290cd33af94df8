"""Which addresses may be connected to."""

import socket

import pytest

from voxframe.local.addresses import NotAllowedError, is_public, origin, resolve

# RFC 6890 and its updates: none of these is on the public internet.
SPECIAL = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
]


@pytest.mark.parametrize("address", SPECIAL)
def test_special_addresses_are_not_public(address):
    """Loopback, private, link-local, multicast and the like, also where IPv6 carries them."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["9.9.9.9", "172.32.0.1", "2620:fe::fe", "::ffff:9.9.9.9", "64:ff9b::909:909"])
def test_others_are_public(address):
    """What anyone can reach."""
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "localhost.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "user:pass@127.0.0.1",
    ],
)
def test_every_spelling_of_loopback_is_refused(host):
    """It is the address a name resolves to that counts, not how the name looks."""
    with pytest.raises(NotAllowedError, match="allow-origin"):
        resolve(f"http://{host}/a.wav", frozenset())


def test_name_with_a_private_address_among_public_ones_is_refused(monkeypatch):
    """No answer of a name server can be half right."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("9.9.9.9", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(NotAllowedError):
        resolve("http://two-faced.example/", frozenset())


def test_allowed_origin_is_allowed_exactly():
    """Scheme, host and port all count; the path does not."""
    allowed = frozenset({origin("http://127.0.0.1:9000")})
    assert resolve("http://127.0.0.1:9000/any/path", allowed) == [("127.0.0.1", 9000)]
    for other in ("http://127.0.0.1:9001/", "https://127.0.0.1:9000/", "http://localhost:9000/"):
        with pytest.raises(NotAllowedError):
            resolve(other, allowed)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://a/b", "gopher://a", "data:,a", "//a", "http://", "http:///a", "http://a:99999/"],
)
def test_other_addresses_are_no_origin(url):
    """Only http and https have one."""
    with pytest.raises(ValueError, match=r"."):
        origin(url)
