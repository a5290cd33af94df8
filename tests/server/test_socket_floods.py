"""Clients of the streaming socket that do not read, or send floods of frames, over real sockets."""

import contextlib
import json
import os
import socket
import struct
import time
from typing import Any

import psutil
import pytest
from tests.server.conftest import KEY
from tests.server.test_realtime import limited, listeners, open_stream, rest
from websockets.exceptions import ConnectionClosed

from voxframe_server.http.uvicorn_protocols import WebSocketProtocol

__all__ = ["limited"]  # a fixture
SERVICE_ARGUMENTS = ("--engine", "parrot")  # it starts faster than the default
CUT_OFF = "more than 500 control frames"
#: Maximum growth of the server process in megabytes during the floods.
MEGABYTES = 20


def frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """Return a frame as a client sends it, masked with zeros (RFC 6455, section 5.2)."""
    assert len(payload) < 126
    return struct.pack("!BB4x", (0x80 if final else 0) | opcode, 0x80 | len(payload)) + payload


def raw_stream(url: str, receive_buffer: int | None = None, early: bytes = b"") -> socket.socket:
    """Return a socket that has requested a session, has sent `early` with it, and has not read the response."""
    host, port = url.removeprefix("http://").split(":")
    raw = socket.socket()
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.settimeout(30)
    raw.connect((host, int(port)))
    head = (
        "GET /v2/realtime/ws?sample_rate=16000 HTTP/1.1",
        f"Host: {host}",
        f"Authorization: {KEY}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "",
        "",
    )
    raw.sendall("\r\n".join(head).encode() + early)
    return raw


def pour(raw: socket.socket, data: bytes, times: int) -> int:
    """Send `data` repeatedly until the other side closes; return the number of times."""
    for sent in range(times):
        try:
            raw.sendall(data)
        except (ConnectionError, TimeoutError):
            return sent
    return times


def megabytes(service: Any) -> float:
    """Return the memory of the server process."""
    return psutil.Process(service.process.pid).memory_info().rss / 1e6


def sessions_end(service: Any, left: int = 0) -> bool:
    """Wait until at most `left` sessions have a process; return False after 40 s."""
    until = time.monotonic() + 40
    while len(listeners(psutil.Process(service.process.pid))) > left:
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


FLOOD = {
    "pings": frame(0x9),
    "long pings": frame(0x9, bytes(125)),
    "pongs": frame(0xA),
    "empty parts of a message": frame(0x0, final=False),
}


@pytest.mark.parametrize("frames", [5_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_a_flood_of_control_frames_ends_its_connection_only(service: Any, frames: int) -> None:
    """Each kind of flood is cut off once; other requests succeed meanwhile, and another session continues."""
    before, cut_off = megabytes(service), service.log.read_text().count(CUT_OFF)
    with open_stream(service.url) as other:
        assert json.loads(other.recv(30))["message_type"] == "SessionBegins"
        for kind, data in FLOOD.items():
            raw = raw_stream(service.url)
            raw.recv(1)
            if kind == "empty parts of a message":
                raw.sendall(frame(0x1, final=False))
            assert pour(raw, data * 100, frames // 100) < frames // 100 or closed(raw)
            assert [service.get("/v2/transcript").status_code for _ in range(20)] == [200] * 20
            raw.close()
            assert sessions_end(service, left=1)
        other.send('{"terminate_session": true}')
        assert rest(other)[1] == 1000
    log = service.log.read_text()
    assert "Traceback" not in log
    assert log.count(CUT_OFF) == cut_off + len(FLOOD)
    assert sessions_end(service)
    assert megabytes(service) - before < MEGABYTES


def closed(raw: socket.socket) -> bool:
    """Read until the other side closes; return False if it does not."""
    try:
        while raw.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_frames_in_the_packet_of_the_request_are_received(service: Any) -> None:
    """A client that does not wait for the response to its request can configure and end the session all the same."""
    early = frame(0x1, b'{"end_utterance_silence_threshold": 300}') + frame(0x1, b'{"terminate_session": true}')
    raw, received = raw_stream(service.url, early=early), b""
    while b"SessionTerminated" not in received and (data := raw.recv(4096)):
        received += data
    raw.close()
    assert b"SessionTerminated" in received
    assert b'"error"' not in received


def test_pings_at_the_rate_of_clients_are_all_answered(service: Any) -> None:
    """All of 200 pings within a second are answered."""
    with open_stream(service.url) as stream:
        stream.recv(30)
        answered = [stream.ping(os.urandom(8)) for _ in range(200)]
        assert all(pong.wait(20) for pong in answered)
        stream.send('{"terminate_session": true}')
        assert rest(stream)[1] == 1000


def test_a_client_that_does_not_read_is_cut_off(
    limited: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The session of a client that does not read ends, and another session can start."""
    monkeypatch.setattr(WebSocketProtocol, "unread_seconds", 1.0)
    monkeypatch.setattr(WebSocketProtocol, "most_frames", 10**9)
    url = limited(sessions=1)
    before = psutil.Process().memory_info().rss / 1e6
    raw = raw_stream(url, receive_buffer=4096)
    batch = frame(0x9, bytes(125)) * 100
    assert (sent := pour(raw, batch, 10_000)) < 10_000
    assert "has not read sent data" in caplog.text
    until, code = time.monotonic() + 40, None
    while code != 1000 and time.monotonic() < until:
        with open_stream(url) as stream:
            with contextlib.suppress(ConnectionClosed):
                stream.send('{"terminate_session": true}')
            code = rest(stream)[1]
    assert code == 1000
    taken = psutil.Process().memory_info().rss / 1e6 - before  # a fast machine sends more in that second
    assert taken < MEGABYTES + sent * len(batch) / 1e6
    raw.close()


def test_a_flood_of_messages_ends_its_session(service: Any) -> None:
    """Messages that arrive faster than they are processed end the session with code 4029."""
    with open_stream(service.url) as stream:
        stream.recv(30)
        listener = listeners(psutil.Process(service.process.pid))[0]
        listener.suspend()
        try:
            for _ in range(40_000):
                stream.send('{"force_end_utterance": true}')
        except ConnectionClosed:
            pass
        messages, code = rest(stream)
    assert code == 4029
    assert "10000 of them wait" in messages[-1]["error"]
    assert sessions_end(service)
