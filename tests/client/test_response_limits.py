"""Limits of a response, against servers on loopback that drip and flood."""

import asyncio
import gzip
import re
import tracemalloc
import zlib

import pytest

import voxframe
from voxframe.client import response, transfers
from voxframe.client.client import Client
from voxframe.client.http import Transport
from voxframe.client.stream import Stream
from voxframe.client.stream import connection as stream_connection
from voxframe.client.transfers import RedactedAudio
from voxframe.errors import (
    AuthenticationError,
    OptionError,
    ResponseTooLargeError,
    ResponseTooSlowError,
    ServiceError,
    ServiceTimeoutError,
    SettingsError,
)
from voxframe.settings import ENVIRONMENT, Secret, Settings, resolve

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
JSON = OK + b'Content-Length: 8\r\n\r\n{"ok":1}'

#: What a server sends at once, and what it then repeats without end.
ENDLESS = {
    "status line": (b"", b"H"),
    "header": (OK + b"X-A: ", b"a"),
    "body": (OK + b"\r\n", b" "),
    "known length": (OK + b"Content-Length: 9000000000\r\n\r\n", b" "),
    "chunk size": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"20\r\n" + b" " * 32 + b"\r\n"),
}


def endless(raw, part, write):
    """Make the server begin a response and repeat a part of it forever."""
    first, again = ENDLESS[part]

    def script(connection):
        connection.sendall(first)
        write(connection, again)

    raw.script = script


@pytest.fixture
def transport(raw, key):
    transport = Transport(raw.url, Secret(key), response_timeout_s=0.6, max_response_bytes=1 << 20)
    yield transport
    transport.close()


@pytest.fixture
def patient(raw, key):
    """A transport with a small size limit and a long time limit."""
    transport = Transport(raw.url, Secret(key), max_response_bytes=1 << 20)
    yield transport
    transport.close()


@pytest.fixture
def client(raw, key, tmp_path):
    """A client with small limits."""
    settings = Settings(
        raw.url, raw.url.replace("http", "ws"), "llm", Secret(key), tmp_path, timeout=0.6, max_response_mb=1
    )
    with Client(settings) as client:
        yield client


@pytest.mark.parametrize("part", ["body", "known length", "chunks"])
def test_a_dripping_response_is_an_error(raw, transport, part):
    """A body that arrives byte by byte raises an error and is not retried."""
    endless(raw, part, raw.drip)
    with pytest.raises(ResponseTooSlowError):
        transport.request("GET", "/x", attempts=2)
    assert len(raw.heads) == 1


def test_the_error_of_a_slow_response(raw, transport):
    """The error names seconds, bytes, request and setting, and the connection is not reused."""
    endless(raw, "body", raw.drip)
    with pytest.raises(ResponseTooSlowError) as caught:
        transport.request("POST", "/x", json={})
    message = str(caught.value)
    assert re.match(r"the response of 127\.0\.0\.1:\d+ was not complete 0\.6 s after its headers; \d+ bytes", message)
    assert "(POST /x)" in message
    assert "connect(timeout=...) or VOXFRAME_TIMEOUT" in message
    assert caught.value.possibly_delivered
    assert not caught.value.transient
    assert len(raw.heads) == 1
    raw.script = lambda connection: connection.sendall(JSON)
    assert transport.request("GET", "/x").data == {"ok": 1}


@pytest.mark.parametrize("part", ENDLESS)
def test_an_endless_response_is_an_error(raw, patient, part):
    """Reading stops at the size limit, whichever part of the response is endless."""
    endless(raw, part, raw.flood)
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError):
            patient.request("GET", "/x", attempts=1)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", ["body", "known length", "chunks"])
def test_the_error_of_a_large_response(raw, patient, part):
    """The error names bytes, request and setting, and says that a POST may have arrived."""
    endless(raw, part, raw.flood)
    with pytest.raises(ResponseTooLargeError) as caught:
        patient.request("POST", "/x", json={})
    assert "is larger than 1,048,576 bytes (POST /x)" in str(caught.value)
    assert "connect(max_response_mb=...) or VOXFRAME_MAX_RESPONSE_MB" in str(caught.value)
    assert caught.value.possibly_delivered
    assert not caught.value.transient


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip"])
def test_a_decompression_bomb_fills_no_memory(raw, patient, encoding):
    """100 MB that are compressed to some 100 kB are read up to the limit only."""
    zeros = bytes(100 << 20)
    packed = zlib.compress(zeros) if encoding == "deflate" else gzip.compress(zeros)
    if encoding == "gzip, gzip":
        packed = gzip.compress(packed)
    del zeros
    head = OK + f"Content-Encoding: {encoding}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    raw.script = lambda connection: connection.sendall(head + packed)
    tracemalloc.start()
    try:
        with pytest.raises(ResponseTooLargeError):
            patient.request("GET", "/x", attempts=1)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("write", ["drip", "flood"])
def test_an_error_with_an_endless_body(raw, transport, monkeypatch, write):
    """An error response raises the error of its status although its body is slow or endless."""
    monkeypatch.setattr(response, "_ERROR_SECONDS", 0.3)

    def script(connection):
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\n\r\n<title>No")
        getattr(raw, write)(connection, b".")

    raw.script = script
    with pytest.raises(AuthenticationError, match="HTTP 401"):
        transport.request("POST", "/x", json={})


def test_the_time_limit_starts_with_the_first_byte(raw, key):
    """Before the first byte, only the read timeout applies."""

    def script(connection):
        raw.stopping.wait(0.8)
        connection.sendall(JSON)

    raw.script = script
    with_little = Transport(raw.url, Secret(key), response_timeout_s=0.3)
    assert with_little.request("GET", "/x", attempts=1).data == {"ok": 1}


@pytest.mark.parametrize("call", ["wait", "wait_async", "summarize", "summarize_async", "transcripts", "submit"])
def test_every_call_has_the_limits(raw, client, call):
    """Jobs, lists and language-model calls, sync and async, raise the error after one request."""
    endless(raw, "body", raw.drip)
    calls = {
        "wait": lambda: client.wait("t1"),
        "wait_async": lambda: asyncio.run(client.wait_async("t1")),
        "summarize": lambda: client.summarize(input_text="Hello."),
        "summarize_async": lambda: asyncio.run(client.summarize_async(input_text="Hello.")),
        "transcripts": lambda: list(client.iter_transcripts()),
        "submit": lambda: client.submit("https://host.example/a.mp3"),
    }
    with pytest.raises(ResponseTooSlowError):
        calls[call]()
    assert len(raw.heads) == 1


def redacted(raw, client):
    return RedactedAudio("t1", f"{raw.url}/a.mp3", None, b"", client.transport)


@pytest.mark.parametrize("how", ["save", "save_async"])
def test_a_slow_download_is_an_error_and_resumes(raw, client, tmp_path, monkeypatch, how):
    """Too few bytes per window end a download, and the next call requests the rest only."""
    monkeypatch.setattr(transfers, "WINDOW_S", 0.5)
    first, rest = b"a" * 70_000, b"b" * 70_000
    etag = b'ETag: "1"\r\n'

    def drips(connection):
        connection.sendall(OK + etag + b"Content-Length: 140000\r\n\r\n" + first)
        raw.drip(connection, b"b")

    def goes_on(connection):
        begin = int(re.search(r"Range: bytes=(\d+)-", raw.heads[-1])[1])
        assert begin >= len(first)
        head = f"Content-Range: bytes {begin}-139999/140000\r\nContent-Length: {140_000 - begin}\r\n\r\n"
        connection.sendall(b"HTTP/1.1 206 Partial Content\r\n" + etag + head.encode() + (first + rest)[begin:])

    def save():
        saved = getattr(redacted(raw, client), how)(tmp_path / "a.mp3")
        return asyncio.run(saved) if how == "save_async" else saved

    raw.script = drips
    with pytest.raises(ResponseTooSlowError, match=r"less than 65,536 bytes in 0\.5 s .*call save\(\) again"):
        save()
    assert len(raw.heads) == 1
    raw.script = goes_on
    assert save().read_bytes() == first + rest


def test_a_steady_download_has_no_time_limit(raw, client, tmp_path, monkeypatch):
    """A download that makes progress has no time limit."""
    monkeypatch.setattr(transfers, "WINDOW_S", 0.4)
    monkeypatch.setattr(transfers, "MIN_BYTES", 100)

    def steady(connection):
        connection.sendall(OK + b"Content-Length: 3000\r\n\r\n")
        for _ in range(15):
            connection.sendall(b"a" * 200)
            raw.stopping.wait(0.1)

    raw.script = steady
    assert redacted(raw, client).save(tmp_path / "a.mp3").stat().st_size == 3000


@pytest.mark.parametrize("part", ["body", "known length", "chunks"])
def test_a_download_that_is_too_large_is_refused(raw, client, tmp_path, part):
    """The size limit applies to an announced length and to the received bytes."""
    endless(raw, part, raw.flood)
    with pytest.raises(
        ResponseTooLargeError, match=r"larger than 1,048,576 bytes \(GET /a\.mp3\).*save\(max_gb=\.\.\.\)"
    ):
        redacted(raw, client).save(tmp_path / "a.mp3", max_gb=1 / 1024)
    assert not (tmp_path / "a.mp3").exists()
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 1 << 20


@pytest.mark.parametrize("given", [0, -1, float("nan"), float("inf"), "5", True])
def test_an_invalid_limit_is_refused(raw, client, tmp_path, given):
    """An invalid size limit is refused before anything is requested."""
    with pytest.raises(OptionError, match="max_gb must be a number of gigabytes above 0, got"):
        redacted(raw, client).save(tmp_path / "a.mp3", max_gb=given)
    assert raw.heads == []


def test_limits_come_from_arguments_and_the_environment(monkeypatch, tmp_path):
    """The limits come from arguments, else from the environment, else from the defaults."""
    for name in ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)
    assert (resolve().timeout, resolve().max_response_mb) == (600, 256)
    monkeypatch.setenv("VOXFRAME_TIMEOUT", "30")
    monkeypatch.setenv("VOXFRAME_MAX_RESPONSE_MB", "0.5")
    assert (resolve().timeout, resolve().max_response_mb) == (30, 0.5)
    client = voxframe.connect("http://127.0.0.1:9", api_key="k", data_dir=tmp_path, timeout=5)
    assert (client.settings.timeout, client.settings.max_response_mb) == (5, 0.5)


@pytest.mark.parametrize("given", ["soon", "0", "-3", "nan", "inf"])
def test_an_invalid_setting_is_refused(monkeypatch, given):
    """The error names the setting, the value and the variable."""
    monkeypatch.setenv("VOXFRAME_TIMEOUT", given)
    with pytest.raises(
        SettingsError, match=f"timeout must be a number of seconds above 0, got '{given}'.*VOXFRAME_TIM"
    ):
        resolve()


@pytest.mark.parametrize("write", ["drip", "flood"])
@pytest.mark.parametrize("part", ["status line", "header", "refusal"])
def test_an_endless_handshake_is_an_error(raw, key, monkeypatch, part, write):
    """A slow or endless response to a streaming handshake raises an error."""
    monkeypatch.setattr(stream_connection, "_OPEN_SECONDS", 0.6)
    first, again = (b"HTTP/1.1 503 Busy\r\n\r\n", b".") if part == "refusal" else ENDLESS[part]

    def script(connection):
        connection.sendall(first)
        getattr(raw, write)(connection, again)

    raw.script = script
    with pytest.raises(ServiceError) as caught:
        Stream(bytes(3200), url=raw.url.replace("http", "ws"), key=Secret(key), sample_rate=16_000).wait(30)
    if write == "drip":
        assert isinstance(caught.value, ServiceTimeoutError)
    assert len(raw.heads) == 1
