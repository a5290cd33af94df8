import contextlib
import ipaddress
import itertools
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import requests
from tests.client.conftest import closed_port

from voxframe.client import Transcript
from voxframe.client.http import SHORTEST_WAIT_S, Transport
from voxframe.client.response import HTTPResponse, ResponseLimits
from voxframe.errors import (
    APIError,
    AuthenticationError,
    BadRequestError,
    OptionError,
    ServerError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    TranscriptError,
    UnreadableAnswerError,
)
from voxframe.settings import Secret


@pytest.fixture
def transport(peer, key):
    transport = Transport(peer.url, Secret(key), read_timeout_s=1.0)
    yield transport
    transport.close()


def test_every_request_has_the_key_and_connections_are_reused(peer, transport, key):
    """Every request has the key in its Authorization header, and GET requests share a connection."""
    peer.on("GET", "/x", {"ok": 1})
    for _ in range(3):
        transport.request("GET", "/x")
    assert {r.headers["authorization"] for r in peer.requests} == {key}
    assert len({r.port for r in peer.requests}) == 1


def test_a_post_uses_a_new_connection(peer, transport):
    """A POST uses a new connection, because a pooled one that breaks would leave open if it arrived."""
    peer.on("POST", "/x", {"ok": 1})
    for _ in range(3):
        transport.request("POST", "/x", json={})
    assert len({r.port for r in peer.requests}) == 3
    assert {r.headers["connection"] for r in peer.requests} == {"close"}


@pytest.mark.parametrize("fault", ["reset", "close", "cut"])
def test_a_get_is_retried_after_a_broken_response(peer, transport, reply, fault):
    """A GET is retried after a reset, a closed connection or a truncated body."""
    peer.on("GET", "/x", reply({"a": 1}, fault=fault), {"ok": 1})
    assert transport.request("GET", "/x").data == {"ok": 1}
    assert len(peer.requests) == 2


@pytest.mark.parametrize("fault", ["reset", "close", "cut"])
def test_a_post_is_not_retried_after_a_broken_response(peer, transport, reply, fault):
    """A POST with a broken response is sent once, and the error says that it may have arrived."""
    peer.on("POST", "/x", reply({"a": 1}, fault=fault))
    with pytest.raises(
        ServiceUnreachableError, match=r"was lost before the response was complete \(POST /x\)"
    ) as caught:
        transport.request("POST", "/x", json={})
    assert caught.value.possibly_delivered
    assert len(peer.requests) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_only_a_get_is_retried_after_a_server_error(peer, transport, reply, status):
    """A GET is retried after a 5xx; a POST is not, because it may be charged twice."""
    peer.on("GET", "/x", reply(b"", status), {"ok": 1})
    peer.on("POST", "/x", reply(b"", status))
    assert transport.request("GET", "/x").data == {"ok": 1}
    with pytest.raises(ServerError):
        transport.request("POST", "/x", json={})
    assert len(peer.made("POST", "/x")) == 1


def test_a_429_is_retried_after_the_requested_wait(peer, transport, reply):
    """After a 429, GET and POST are retried when the time in Retry-After is over."""
    peer.on("POST", "/x", reply({"error": "Too Many Requests"}, 429, {"Retry-After": "1"}), {"ok": 1})
    transport.request("POST", "/x", json={})
    first, second = peer.requests
    assert 1.0 <= second.at - first.at < 2.0


@pytest.mark.parametrize(("status", "asked"), [(429, "0"), (429, "-1"), (429, "junk"), (503, "0")])
def test_no_retry_after_makes_a_tight_loop(peer, transport, reply, status, asked):
    """Whatever Retry-After says, attempts are few and have a minimum pause."""
    peer.on("GET", "/x", reply({"error": "not now"}, status, {"Retry-After": asked}))
    with pytest.raises(APIError, match="not now"):
        transport.request("GET", "/x")
    arrived = [request.at for request in peer.requests]
    assert len(arrived) == 5
    assert min(after - before for before, after in itertools.pairwise(arrived)) >= SHORTEST_WAIT_S


def test_retry_after_may_be_a_date_or_come_with_a_503(peer, transport, reply):
    """Retry-After may be a date (RFC 9110), and is also obeyed after a 503."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
    peer.on("GET", "/x", reply(b"", 503, {"Retry-After": later}), {"ok": 1})
    assert transport.request("GET", "/x").data == {"ok": 1}
    first, second = peer.requests
    assert second.at - first.at > 1.5


def test_only_a_get_is_retried_after_a_408(peer, transport, reply):
    """After a 408, which a gateway may send while the service works, only a GET is retried."""
    peer.on("GET", "/x", reply(b"", 408), {"ok": 1})
    peer.on("POST", "/x", reply(b"", 408))
    assert transport.request("GET", "/x").data == {"ok": 1}
    with pytest.raises(BadRequestError, match="the request took too long") as caught:
        transport.request("POST", "/x", json={})
    assert caught.value.possibly_delivered
    assert len(peer.made("POST", "/x")) == 1


def test_truncated_json_is_retried(peer, transport, reply):
    """JSON that a proxy has truncated is retried, and at last an UnreadableAnswerError."""
    peer.on("GET", "/x", reply(b'{"text": "cut', headers={"X-Request-Id": "r-9"}))
    with pytest.raises(UnreadableAnswerError) as caught:
        transport.request("GET", "/x", attempts=2)
    assert len(peer.requests) == 2
    assert "its JSON is incomplete or invalid after 13 bytes" in str(caught.value)
    assert str(caught.value).endswith("(HTTP 200, GET /x, request id r-9). Try again later")


def test_an_error_that_the_caller_handles_does_not_count(peer, client, reply):
    """A POST after a refused connection elsewhere, in the same except block, is sent once."""
    peer.on("POST", "/v2/transcript", reply(fault="close"))
    try:
        requests.get(f"http://127.0.0.1:{closed_port()}", timeout=5)
    except requests.ConnectionError:
        with pytest.raises(ServiceUnreachableError, match="was lost before the response was complete") as caught:
            client.submit("https://audio.example/a.mp3")
    assert caught.value.possibly_delivered
    assert len(peer.requests) == 1


def test_an_error_of_voxframe_that_the_caller_handles_is_not_raised_again(nobody):
    """A request that fails while another error is handled raises its own error."""
    failed = Transcript(nobody.transport, "t1", HTTPResponse(200, {}, b'{"status": "error"}', "GET", "/x"))
    try:
        failed.raise_for_status()
    except TranscriptError:
        with pytest.raises(ServiceUnreachableError, match="connection refused"):
            nobody.transport.request("GET", "/x", attempts=1)


@pytest.fixture
def tls(tmp_path):
    """A TLS context of a server on loopback, and the file of its certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, path


@pytest.mark.long
@pytest.mark.parametrize("trusted", [True, False])
def test_a_post_is_sent_once_if_tls_breaks_after_it_arrived(tls, key, monkeypatch, trusted):
    """A TLS error after the handshake may follow a request that arrived; one in the handshake cannot."""
    context, certificate = tls
    arrived = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection.dup() as beneath, connection:
                secure = context.wrap_socket(connection, server_side=True)
                with secure, secure.makefile("rb") as file:
                    while file.readline() != b"\r\n":
                        pass
                    arrived.append(file.read(len(b'{"a": 1}')))
                    beneath.sendall(b"not a TLS record")
                    time.sleep(0.2)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        if trusted:
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        monkeypatch.setattr("voxframe.client.http.is_loopback", lambda _: False)  # else variables do not apply
        transport = Transport(f"https://127.0.0.1:{listener.getsockname()[1]}", Secret(key))
        with pytest.raises(ServiceUnreachableError, match="secure connection") as caught:
            transport.request("POST", "/x", json={"a": 1}, attempts=3)
        assert caught.value.possibly_delivered is trusted
        assert arrived == ([b'{"a": 1}'] if trusted else [])
        listener.shutdown(socket.SHUT_RDWR)


def test_a_read_timeout(peer, transport, reply):
    """A read timeout names the host and the time, and a POST is sent once."""
    peer.on("POST", "/x", reply(fault="stall"))
    with pytest.raises(
        ServiceTimeoutError, match=r"no response from 127\.0\.0\.1:\d+ within 1 s \(POST /x\)"
    ) as caught:
        transport.request("POST", "/x", json={})
    assert caught.value.possibly_delivered
    assert len(peer.requests) == 1


def test_a_refused_connection_is_retried(nobody):
    """A refused connection is retried, and the error says that nothing can have arrived."""
    with pytest.raises(ServiceUnreachableError, match="connection refused") as caught:
        nobody.transport.request("POST", "/x", json={}, attempts=2)
    assert caught.value.possibly_delivered is False


def test_an_unknown_host(key):
    """An unknown host is named, and the error says that nothing can have arrived."""
    transport = Transport("http://nowhere.invalid", Secret(key))
    with pytest.raises(ServiceUnreachableError, match=r"host nowhere\.invalid cannot be found") as caught:
        transport.request("POST", "/x", json={}, attempts=1)
    assert caught.value.possibly_delivered is False


def test_the_key_never_follows_a_redirect_to_another_host(peer, other_peer, transport, reply, key):
    """A GET redirected to another host has no key; on the same host it has."""
    peer.on("GET", "/x", reply(b"", 302, {"Location": f"{other_peer.url}/y"}))
    other_peer.on("GET", "/y", {"ok": 1})
    assert transport.request("GET", "/x").data == {"ok": 1}
    assert "authorization" not in other_peer.requests[0].headers
    peer.on("GET", "/here", reply(b"", 307, {"Location": "/there"}))
    peer.on("GET", "/there", {"ok": 2})
    assert transport.request("GET", "/here").data == {"ok": 2}
    assert peer.requests[-1].headers["authorization"] == key


def test_a_redirected_post_is_an_error(peer, other_peer, transport, reply):
    """A POST is not redirected; the error names the setting to change."""
    peer.on("POST", "/x", reply(b"", 308, {"Location": f"{other_peer.url}/x"}))
    with pytest.raises(ServiceError, match=f"redirects to {other_peer.url}/x.*Set base_url"):
        transport.request("POST", "/x", json={})
    assert other_peer.requests == []


def test_a_redirect_from_https_to_http_is_not_followed(key):
    """A GET over https is not continued without encryption."""
    transport = Transport("https://service.example", Secret(key))
    response = requests.Response()
    response.status_code, response.url = 302, "https://service.example/x"
    for target, followed in (("http://service.example/y", None), ("/y", "https://service.example/y")):
        response.headers["Location"] = target
        assert transport._redirect(response) == followed


def test_cookies_are_not_kept(peer, transport, reply):
    """A cookie that the service sets is not sent back."""
    peer.on("GET", "/x", reply({"ok": 1}, 200, {"Set-Cookie": "session=1; Path=/"}))
    for _ in range(2):
        transport.request("GET", "/x")
    assert "cookie" not in peer.requests[1].headers


@pytest.mark.parametrize("target", ["http://[::1", "javascript:alert(1)", "http://host:port/"])
def test_a_redirect_to_an_invalid_url_is_an_error(peer, transport, reply, target):
    """A redirect to an invalid URL is not followed and raises a voxframe error."""
    peer.on("GET", "/x", reply(b"", 302, {"Location": target}))
    with pytest.raises(ServiceError, match="GET /x"):
        transport.request("GET", "/x")


def test_a_redirect_loop_ends(peer, transport, reply):
    """A redirect loop ends with an error after a few redirects."""
    peer.on("GET", "/x", reply(b"", 302, {"Location": "/x"}))
    with pytest.raises(ServiceError, match="redirects to"):
        transport.request("GET", "/x")
    assert len(peer.requests) == 6


def test_the_key_is_masked_in_errors(peer, transport, reply, key):
    """A key that the service repeats in its error is masked in message and response."""
    peer.on("GET", "/x", reply({"error": f"invalid key {key}"}, 401))
    with pytest.raises(AuthenticationError) as caught:
        transport.request("GET", "/x")
    assert key not in str(caught.value)
    assert "invalid key (key)." in str(caught.value)


@pytest.mark.parametrize("body", ["authorization: {}", "<html><title>{}</title></html>"])
def test_the_key_is_masked_in_a_success_that_is_no_json(peer, transport, reply, key, body):
    """A success that is not JSON is quoted in the error, with the key masked."""
    peer.on("GET", "/x", reply(body.format(key).encode()))
    with pytest.raises(UnreadableAnswerError, match=r"\(key\)") as caught:
        transport.request("GET", "/x", attempts=1)
    assert key not in str(caught.value)


def test_logs_show_no_signature(peer, other_peer, transport, reply, caplog):
    """Even at debug level, no log and no error shows the secrets in the URL of a file, whether it is found or not."""
    caplog.set_level(logging.DEBUG)
    other_peer.on("GET", "/a.mp3", reply(b"audio"))
    with transport.download(f"{other_peer.url}/a.mp3?v=1&Signature=unseen", {}, ResponseLimits(5, 10_000)) as response:
        assert b"".join(response.chunks(100)) == b"audio"
    nowhere = f"http://ada:unseen@127.0.0.1:{closed_port()}/a.mp3?v=1&Signature=unseen"
    with (
        pytest.raises(ServiceUnreachableError, match=r"no connection to 127\.0\.0\.1:\d+: connection refused"),
        transport.download(nowhere, {}, ResponseLimits(5, 10_000)),
    ):
        pass
    assert other_peer.requests[0].query["Signature"] == ["unseen"]
    assert "/a.mp3?v=1&Signature=***" in caplog.text
    assert "unseen" not in caplog.text


def test_the_key_is_hidden_in_request_headers(transport, peer, key):
    """The repr of the request headers does not show the key."""
    request = transport._authorise(requests.Request("GET", peer.url + "/x").prepare())
    assert request.headers["Authorization"] == key
    assert key not in repr(request.headers)
    assert key not in repr(vars(transport))


def test_loopback_requests_use_no_proxy(peer, key, monkeypatch):
    """HTTP_PROXY is ignored for a service on loopback."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    peer.on("GET", "/x", {"ok": 1})
    assert Transport(peer.url, Secret(key)).request("GET", "/x", attempts=1).data == {"ok": 1}


def test_concurrent_requests_are_limited(peer, key, reply):
    """Twelve threads with two clients of one host send at most three requests at a time."""
    transports = [Transport(peer.url, Secret(key), concurrency=3) for _ in range(2)]
    busy, most, lock = 0, 0, threading.Lock()

    def answer(request):
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.05)
        with lock:
            busy -= 1
        return reply({"ok": 1})

    peer.on("GET", "/x", answer)
    threads = [threading.Thread(target=transports[n % 2].request, args=("GET", "/x")) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(peer.requests) == 12
    assert most == 3


def test_closing_ends_a_waiting_request(peer, transport, reply):
    """A request that waits for its next attempt raises an error when the client is closed."""
    peer.on("GET", "/x", reply({"error": "slow down"}, 429, {"Retry-After": "60"}))
    errors = []

    def ask():
        try:
            transport.request("GET", "/x")
        except ServiceError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not peer.requests:
        time.sleep(0.01)
    time.sleep(0.1)
    transport.close()
    thread.join(30)
    assert "closed" in str(errors[0])


def test_nan_in_a_body_is_refused(transport, peer):
    """A body with NaN is refused before it is sent."""
    with pytest.raises(OptionError, match="cannot be written as JSON"):
        transport.request("POST", "/x", json={"a": float("nan")})
    assert peer.requests == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_forked_child_opens_its_own_connections(peer, transport):
    """A forked child and its parent do not read each other's responses."""
    peer.on("GET", "/x", {"ok": 1})
    transport.request("GET", "/x")
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if transport.request("GET", "/x").data == {"ok": 1} else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len({r.port for r in peer.requests}) == 2


@pytest.mark.parametrize("moment", ["answer", "pause"])
def test_ctrl_c_ends_a_request(peer, reply, moment):
    """An interrupt ends a request that awaits a response or its next attempt."""
    peer.on("GET", "/x", reply(fault="stall") if moment == "answer" else reply(b"", 429, {"Retry-After": "60"}))
    script = f"""
        import sys
        from voxframe.client.http import Transport
        from voxframe.settings import Secret
        try:
            Transport({peer.url!r}, Secret("k")).request("GET", "/x")
        except KeyboardInterrupt:
            sys.stdout.write("interrupted")
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    while not peer.requests:
        time.sleep(0.02)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted"
