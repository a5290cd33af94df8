import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import requests

from voxframe.errors import (
    AuthenticationError,
    OptionError,
    ServerError,
    ServiceError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    UnreadableAnswerError,
)
from voxframe.service.http import Transport
from voxframe.settings import Secret


@pytest.fixture
def transport(peer, key):
    transport = Transport(peer.url, Secret(key), read_timeout_s=1.0)
    yield transport
    transport.close()


def test_every_request_has_the_key_and_connections_are_reused(peer, transport, key):
    """The key is the Authorization header itself, and reads share one connection."""
    peer.on("GET", "/x", {"ok": 1})
    for _ in range(3):
        transport.request("GET", "/x")
    assert {r.headers["authorization"] for r in peer.requests} == {key}
    assert len({r.port for r in peer.requests}) == 1


def test_a_request_that_costs_gets_a_connection_of_its_own(peer, transport):
    """A kept connection that dies under a POST would leave open whether it arrived, so none is kept."""
    peer.on("POST", "/x", {"ok": 1})
    for _ in range(3):
        transport.request("POST", "/x", json={})
    assert len({r.port for r in peer.requests}) == 3


@pytest.mark.parametrize("fault", ["reset", "close", "cut"])
def test_a_broken_answer_to_a_read_is_asked_for_again(peer, transport, reply, fault):
    """A reset, a closed connection and a cut body are all mended by asking again, where that is harmless."""
    peer.on("GET", "/x", reply({"a": 1}, fault=fault), {"ok": 1})
    assert transport.request("GET", "/x").data == {"ok": 1}
    assert len(peer.requests) == 2


@pytest.mark.parametrize("fault", ["reset", "close", "cut"])
def test_a_broken_answer_to_a_request_that_costs_is_not(peer, transport, reply, fault):
    """One request went out, one error says that it may have arrived."""
    peer.on("POST", "/x", reply({"a": 1}, fault=fault))
    with pytest.raises(ServiceUnreachableError, match=r"was cut before the whole answer came \(POST /x\)") as caught:
        transport.request("POST", "/x", json={})
    assert caught.value.may_have_arrived
    assert len(peer.requests) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_server_errors_are_asked_again_for_reads_only(peer, transport, reply, status):
    """A GET is tried again; a POST is not, since it may have been paid for."""
    peer.on("GET", "/x", reply(b"", status), {"ok": 1})
    peer.on("POST", "/x", reply(b"", status))
    assert transport.request("GET", "/x").data == {"ok": 1}
    with pytest.raises(ServerError):
        transport.request("POST", "/x", json={})
    assert len(peer.made("POST", "/x")) == 1


def test_too_many_requests_are_made_again_after_the_wait_asked_for(peer, transport, reply):
    """429 with Retry-After: also a POST waits that long and is made again, since it was refused."""
    peer.on("POST", "/x", reply({"error": "Too Many Requests"}, 429, {"Retry-After": "1"}), {"ok": 1})
    transport.request("POST", "/x", json={})
    first, second = peer.requests
    assert 1.0 <= second.at - first.at < 2.0


def test_a_truncated_json_document_of_the_right_length_is_asked_for_again(peer, transport, reply):
    """A proxy may cut a body and count it right; it is noticed, retried, and at last an error with all that helps."""
    peer.on("GET", "/x", reply(b'{"text": "cut', headers={"X-Request-Id": "r-9"}))
    with pytest.raises(UnreadableAnswerError) as caught:
        transport.request("GET", "/x", attempts=2)
    assert len(peer.requests) == 2
    assert "its JSON is cut short or broken after 13 bytes" in str(caught.value)
    assert str(caught.value).endswith("(HTTP 200, GET /x, request id r-9)")


def test_no_answer_in_time(peer, transport, reply):
    """The read timeout names the host and the time, and a request that costs is made once."""
    peer.on("POST", "/x", reply(fault="stall"))
    with pytest.raises(ServiceTimeoutError, match=r"no answer from 127\.0\.0\.1:\d+ within 1 s \(POST /x\)") as caught:
        transport.request("POST", "/x", json={})
    assert caught.value.may_have_arrived
    assert len(peer.requests) == 1


def test_nobody_there(nobody):
    """Connection refused is tried again, and the error says that nothing can have arrived."""
    started = time.monotonic()
    with pytest.raises(ServiceUnreachableError, match="connection refused") as caught:
        nobody._http.request("POST", "/x", json={}, attempts=2)
    assert caught.value.may_have_arrived is False
    assert time.monotonic() - started < 2


def test_a_host_that_does_not_exist(key):
    """A name that is not known says so, and nothing can have arrived."""
    transport = Transport("http://nowhere.invalid", Secret(key))
    with pytest.raises(ServiceUnreachableError, match=r"host nowhere\.invalid is not known") as caught:
        transport.request("POST", "/x", json={}, attempts=1)
    assert caught.value.may_have_arrived is False


def test_the_key_never_follows_a_redirect_to_another_host(peer, other_peer, transport, reply, key):
    """A read is followed elsewhere without the key; on the same host it is followed with it."""
    peer.on("GET", "/x", reply(b"", 302, {"Location": f"{other_peer.url}/y"}))
    other_peer.on("GET", "/y", {"ok": 1})
    assert transport.request("GET", "/x").data == {"ok": 1}
    assert "authorization" not in other_peer.requests[0].headers
    peer.on("GET", "/here", reply(b"", 307, {"Location": "/there"}))
    peer.on("GET", "/there", {"ok": 2})
    assert transport.request("GET", "/here").data == {"ok": 2}
    assert peer.requests[-1].headers["authorization"] == key


def test_a_redirected_post_is_an_error_that_names_the_address(peer, other_peer, transport, reply):
    """Nothing that costs is sent on; the message says which setting to change."""
    peer.on("POST", "/x", reply(b"", 308, {"Location": f"{other_peer.url}/x"}))
    with pytest.raises(ServiceError, match=f"redirects to {other_peer.url}/x.*Set base_url"):
        transport.request("POST", "/x", json={})
    assert other_peer.requests == []


@pytest.mark.parametrize("target", ["http://[::1", "javascript:alert(1)", "http://host:port/"])
def test_a_redirect_to_what_is_no_address(peer, transport, reply, target):
    """Nothing is followed, and the error is one of voxframe's."""
    peer.on("GET", "/x", reply(b"", 302, {"Location": target}))
    with pytest.raises(ServiceError, match="GET /x"):
        transport.request("GET", "/x")


def test_a_redirect_loop_ends(peer, transport, reply):
    """Redirects are followed a few times, not for ever."""
    peer.on("GET", "/x", reply(b"", 302, {"Location": "/x"}))
    with pytest.raises(ServiceError, match="redirects to"):
        transport.request("GET", "/x")
    assert len(peer.requests) == 6


def test_a_key_repeated_by_the_service_is_hidden(peer, transport, reply, key):
    """Some services put the key they refuse into their error; it is taken out of message and answer."""
    peer.on("GET", "/x", reply({"error": f"invalid key {key}"}, 401))
    with pytest.raises(AuthenticationError) as caught:
        transport.request("GET", "/x")
    assert key not in str(caught.value)
    assert "invalid key (key)." in str(caught.value)


def test_headers_of_a_request_do_not_show_the_key(transport, peer, key):
    """A debugger or a log that prints headers prints no key."""
    request = transport._authorise(requests.Request("GET", peer.url + "/x").prepare())
    assert request.headers["Authorization"] == key
    assert key not in repr(request.headers)
    assert key not in repr(vars(transport))


def test_a_proxy_from_the_environment_is_not_used_for_this_machine(peer, key, monkeypatch):
    """With HTTP_PROXY set, the service on loopback is still reached directly."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    peer.on("GET", "/x", {"ok": 1})
    assert Transport(peer.url, Secret(key)).request("GET", "/x", attempts=1).data == {"ok": 1}


def test_no_more_requests_at_once_to_a_host_than_allowed(peer, key, reply):
    """Twelve threads, two clients of one host, three slots: never more than three requests are under way."""
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


def test_closing_wakes_a_thread_that_waits(peer, transport, reply):
    """A thread between two tries ends with an error as soon as the client is closed."""
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
    thread.join(2)
    assert "closed" in str(errors[0])


def test_a_body_that_json_cannot_hold_is_refused(transport, peer):
    """Not-a-number has no place in JSON and nothing is sent."""
    with pytest.raises(OptionError, match="cannot be written as JSON"):
        transport.request("POST", "/x", json={"a": float("nan")})
    assert peer.requests == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_forked_child_uses_connections_of_its_own(peer, transport):
    """Parent and child do not read each other's answers from one socket."""
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
def test_ctrl_c_ends_a_request_within_a_fifth_of_a_second(peer, reply, moment):
    """An interrupt is felt at once, while an answer is awaited and between two tries."""
    peer.on("GET", "/x", reply(fault="stall") if moment == "answer" else reply(b"", 429, {"Retry-After": "60"}))
    script = f"""
        import sys, time
        from voxframe.service.http import Transport
        from voxframe.settings import Secret
        try:
            Transport({peer.url!r}, Secret("k")).request("GET", "/x")
        except KeyboardInterrupt:
            sys.stdout.write(repr(time.time()))
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    while not peer.requests:
        time.sleep(0.02)
    time.sleep(0.3)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    felt = float(child.communicate(timeout=10)[0])
    assert felt - sent < 0.2
