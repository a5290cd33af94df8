"""Addresses the server may connect to."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from voxframe_server.jobs.ssrf_guard import NotAllowedError, is_public, origin, resolve, time_limit

# First and last address of each block of the IANA special-purpose registries (as published in 2025), and what clouds
# answer their machines at. Written from the registries, by hand, with no use of `ipaddress`.
SPECIAL = """
0.0.0.0 0.255.255.255
10.0.0.0 10.255.255.255
100.64.0.0 100.127.255.255
127.0.0.0 127.255.255.255
169.254.0.0 169.254.255.255
172.16.0.0 172.31.255.255
192.0.0.0 192.0.0.255
192.0.0.8 192.0.0.9
192.0.0.10 192.0.0.171
192.0.2.0 192.0.2.255
192.31.196.0 192.31.196.255
192.52.193.0 192.52.193.255
192.88.99.0 192.88.99.255
192.168.0.0 192.168.255.255
192.175.48.0 192.175.48.255
198.18.0.0 198.19.255.255
198.51.100.0 198.51.100.255
203.0.113.0 203.0.113.255
224.0.0.0 239.255.255.255
240.0.0.0 255.255.255.255
:: ::1
::7f00:1 ::ffff:ffff
::ffff:0:7f00:1 ::ffff:0:909:909
64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff
100:: 100::ffff:ffff:ffff:ffff
100:0:0:1:: 100:0:0:1:ffff:ffff:ffff:ffff
2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
2001:1::1 2001:1::3
2001:2:: 2001:2:0:ffff:ffff:ffff:ffff:ffff
2001:3:: 2001:3:ffff:ffff:ffff:ffff:ffff:ffff
2001:4:112:: 2001:4:112:ffff:ffff:ffff:ffff:ffff
2001:10:: 2001:1f:ffff:ffff:ffff:ffff:ffff:ffff
2001:20:: 2001:2f:ffff:ffff:ffff:ffff:ffff:ffff
2001:30:: 2001:3f:ffff:ffff:ffff:ffff:ffff:ffff
2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff
3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
4000:: 5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
5f00:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fe80:: febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
ff00:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fe80::1%eth0 fe80::1%1
168.63.129.16 169.254.169.254
100.100.100.200 192.0.0.192
fd00:ec2::254 fd20:ce::254
""".split()
# IPv6 addresses that lead to loopback, a private network, cloud metadata or the host at Azure: IPv4-mapped, NAT64,
# 6to4, and Teredo by its server and by its client, whose bits are inverted.
EMBEDDED = """
::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:168.63.129.16
::ffff:7f00:1 ::ffff:a9fe:a9fe ::ffff:c000:1 0:0:0:0:0:ffff:a00:1
64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::a83f:8110 64:ff9b::c0a8:101
2002:7f00:1:: 2002:a9fe:a9fe::1 2002:a00:1:ffff:ffff:ffff:ffff:ffff 2002:a83f:8110::
2001:0:7f00:1::f6f6:f6f6 2001:0:909:909::80ff:fffe 2001:0:909:909:0:0:5601:5601
""".split()
# The neighbours of those blocks, and what anyone can reach.
PUBLIC = """
1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17
169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.31.195.255
192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 192.175.47.255
192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 9.9.9.9
2000:: 2001:200:: 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003::
2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8001:: 2620:fe::fe 2a00:1450:4001::1
3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000:: 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
::ffff:9.9.9.9 ::ffff:909:909 64:ff9b::9.9.9.9 64:ff9b::909:909
""".split()
EXPECTED = {**dict.fromkeys(SPECIAL + EMBEDDED, False), **dict.fromkeys(PUBLIC, True)}
ADDRESSES = Path(__file__).parents[2] / "src" / "voxframe_server" / "jobs" / "ssrf_guard.py"
# The module alone, as it needs nothing but the standard library: other Pythons have no packages of ours.
ASK = """
import json, runpy, sys
is_public = runpy.run_path(sys.argv[1])["is_public"]
print(json.dumps({address: is_public(address) for address in json.load(sys.stdin)}))
"""


def other_pythons() -> list[str]:
    """Return the Pythons named by VOXFRAME_TEST_PYTHONS and those of pyenv, versions 3.11 to 3.13."""
    named = [name for name in os.environ.get("VOXFRAME_TEST_PYTHONS", "").split(":") if name]
    found = sorted(str(path) for path in Path.home().glob(".pyenv/versions/3.1[123].*/bin/python"))
    return list(dict.fromkeys([sys.executable, *named, *found]))


@pytest.mark.parametrize("address", EXPECTED)
def test_an_address_is_public_as_the_registries_say(address):
    """No address of a special-purpose block is public, even embedded in IPv6; its neighbours on both sides are."""
    assert is_public(address) is EXPECTED[address]


@pytest.mark.parametrize("python", other_pythons())
def test_every_python_gives_the_same_answers(python):
    """Python 3.11 to 3.13 agree with the table, although their `is_global` does not."""
    asked = json.dumps(list(EXPECTED))
    ran = subprocess.run([python, "-c", ASK, str(ADDRESSES)], input=asked, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == EXPECTED


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
    """The address a name resolves to is checked, not the name."""
    with pytest.raises(NotAllowedError, match="allow-origin"):
        resolve(f"http://{host}/a.wav", frozenset())


def test_name_with_a_private_address_among_public_ones_is_refused(monkeypatch):
    """A host with public and private addresses is refused."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("9.9.9.9", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(NotAllowedError):
        resolve("http://two-faced.example/", frozenset())


def test_allowed_origin_is_allowed_exactly():
    """An origin is allowed by its scheme, host and port; the path is ignored."""
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
    """Only http and https URLs have an origin."""
    with pytest.raises(ValueError, match=r"."):
        origin(url)


def test_a_connection_that_opens_after_the_time_limit_is_interrupted():
    """A connection that is not open yet when its time is over is interrupted as soon as it is."""

    class Late(http.client.HTTPConnection):
        def connect(self):
            time.sleep(0.3)
            super().connect()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        late = Late("127.0.0.1", listening.getsockname()[1], timeout=20)  # the server accepts, but never answers
        began = time.monotonic()
        with time_limit(late, 0.1) as expired:
            late.connect()
            assert late.sock.recv(1) == b""
        late.close()
    assert expired.is_set()
    assert time.monotonic() - began < 5
