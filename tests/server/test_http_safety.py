"""Requests that are too large, too slow, malformed or hostile."""

import asyncio
import json
import os
import re
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import orjson
import psutil
import pytest
import requests
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from tests.server.test_llm import put

from voxframe_server import http
from voxframe_server.http.app import _http_error
from voxframe_server.http.middleware import ErrorMiddleware
from voxframe_server.jobs.data_dir import DataDir, RedactedAudioStore

LIMIT = 3_000_000


def connect(url):
    """Return a raw connection."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def head_of(service, line, *more):
    """Return the headers of a request, with the key."""
    lines = (line, "Host: 127.0.0.1", f"Authorization: {service.session.headers['Authorization']}", *more)
    return "".join(f"{one}\r\n" for one in lines).encode() + b"\r\n"


def answer_of(connection):
    """Return status, headers and body of the data received until the other side closes."""
    head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), body


@pytest.fixture
def small(tmp_path, monkeypatch):
    """URL and data directory of an upload server with a small limit and a short timeout."""
    data_dir = DataDir(tmp_path / "data")
    data_dir.make()
    monkeypatch.setattr(http, "STALLED", 0.5)

    async def upload(request):
        return PlainTextResponse(await http.save_upload(request, data_dir, LIMIT))

    app = Starlette(routes=[Route("/", upload, methods=["POST"])], exception_handlers={HTTPException: _http_error})
    config = uvicorn.Config(app, http="h11", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", data_dir
    server.should_exit = True
    thread.join()


def pieces(size):
    """Yield a body of the given size in chunks, without a Content-Length."""
    for at in range(0, size, 100_000):
        yield bytes(min(100_000, size - at))


@pytest.mark.parametrize("chunked", [False, True])
def test_upload_over_the_limit_is_refused_and_leaves_nothing(small, chunked):
    """An upload over the limit is a 413, with or without a Content-Length; one of exactly the limit is accepted."""
    url, data_dir = small
    assert requests.post(url, data=pieces(LIMIT) if chunked else bytes(LIMIT), timeout=20).status_code == 200
    kept = list(data_dir.uploads.iterdir())
    assert [path.stat().st_size for path in kept] == [LIMIT]
    refused = requests.post(url, data=pieces(LIMIT + 1) if chunked else bytes(LIMIT + 1), timeout=20)
    assert refused.status_code == 413
    assert refused.json() == {"error": "an upload may have at most 3 MB"}
    assert list(data_dir.uploads.iterdir()) == kept


def test_an_upload_is_flushed_before_it_gets_its_name(small, monkeypatch):
    """The bytes of an upload are flushed to the disk under a hidden name, and the folder after the rename."""
    flushed, fsync = [], os.fsync

    def record(descriptor):
        found = os.fstat(descriptor)
        flushed.append((found.st_size, [path.name[0] for path in data_dir.uploads.iterdir()]))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    url, data_dir = small
    assert requests.post(url, data=b"sound", timeout=20).status_code == 200
    assert flushed[0] == (5, ["."])
    assert "." not in flushed[-1][1]


def test_an_incomplete_body_is_a_408_and_leaves_no_file(small):
    """An upload that stalls is a 408 and leaves no file."""
    url, data_dir = small
    with connect(url) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n" + bytes(500))
        status, _, body = answer_of(slow)
    assert status == 408
    assert "stalled" in json.loads(body)["error"]
    assert list(data_dir.uploads.iterdir()) == []


@pytest.mark.skipif(not psutil.LINUX, reason="peak memory is read from /proc")
def test_a_large_upload_needs_little_memory(service):
    """An upload of 300 MB increases memory by less than a tenth of that."""

    def peak():
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1000

    service.upload(b"warm")
    before = peak()
    answer = service.request("POST", "/v2/upload", data=(bytes(1_000_000) for _ in range(300)))
    assert answer.status_code == 200
    stored = service.data_dir / "uploads" / answer.json()["upload_url"].rpartition("/")[2]
    assert stored.stat().st_size == 300_000_000
    assert peak() - before < 30
    stored.unlink()


@pytest.mark.long
def test_slow_clients_do_not_delay_others(service):
    """Hundreds of clients that stall do not delay others, and need few threads."""
    long = put(service, [("A", "word " * 100_000)])
    service.transcript(long)
    process = psutil.Process(service.process.pid)
    before = process.num_threads()
    with ExitStack() as stack:

        def slow(data):
            connection = stack.enter_context(connect(service.url))
            connection.sendall(data)

        for _ in range(150):
            slow(b"GET /v2/transcript HTTP/1.1\r\nHost: 127")
            slow(head_of(service, "POST /v2/transcript HTTP/1.1", "Content-Length: 100") + b"{")
            slow(head_of(service, "POST /v2/upload HTTP/1.1", "Content-Length: 100") + b"a")
        for _ in range(15):
            slow(head_of(service, f"GET /v2/transcript/{long} HTTP/1.1"))
        for _ in range(5):
            assert service.get("/v2/transcript").status_code == 200
            assert service.upload(b"in between")
        assert process.num_threads() < before + 45  # the pool that all requests share has 40


def test_a_refused_upload_is_read_before_the_connection_closes(service):
    """A client that sends a large upload with a wrong key can send all of it, and then reads the 401."""
    size = 30 << 20
    head = (
        f"POST /v2/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: wrong\r\nContent-Length: {size}\r\n"
        "Connection: close\r\n\r\n"
    )
    with connect(service.url) as connection:
        connection.sendall(head.encode())
        for _ in range(30):
            connection.sendall(bytes(1 << 20))
            time.sleep(0.01)
        assert answer_of(connection)[0] == 401


def test_a_line_break_in_a_path_forges_no_line_of_the_log(caplog):
    """The log of a failed request has the path as it was sent, percent-encoded."""

    async def fails(scope, receive, send):
        raise RuntimeError

    async def ignored(*_):
        pass

    scope = {"type": "http", "method": "GET", "path": "/a\nforged", "raw_path": b"/a%0Aforged", "headers": []}
    asyncio.run(ErrorMiddleware(fails)(scope, ignored, ignored))
    assert "GET /a%0Aforged failed" in caplog.text
    assert "\nforged" not in caplog.text


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: \x00\r\n\r\n",
        b"POST /v2/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v2/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_malformed_requests_are_a_400(service, sent):
    """Malformed and contradictory headers are a 400, without authentication, and the next request succeeds."""
    with connect(service.url) as connection:
        connection.sendall(sent)
        assert answer_of(connection)[0] == 400
    assert service.get("/v2/transcript").status_code == 200


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET http://192.0.2.1/v2/transcript HTTP/1.1", 404),
        ("OPTIONS * HTTP/1.1", 404),
        ("CONNECT 192.0.2.1:80 HTTP/1.1", 404),
        ("TRACE /v2/transcript HTTP/1.1", 405),
        ("BREW /v2/transcript HTTP/1.1", 405),
        ("GET /v2/transcript/%ff%fe%00/srt HTTP/1.1", 404),
        ("GET /v2//transcript HTTP/1.1", 404),
    ],
)
def test_odd_requests_get_an_error_object(service, line, status):
    """Proxy requests, unknown methods and undecodable bytes get an error object."""
    with connect(service.url) as connection:
        connection.sendall(head_of(service, line, "Connection: close"))
        found, headers, body = answer_of(connection)
    assert found == status
    assert headers["content-type"] == "application/json"
    assert json.loads(body).keys() == {"error"}


def test_head_is_a_get_without_its_body(service):
    """HEAD gives the status and length of GET for every path, also for a wrong key and an unknown path."""
    job = put(service)
    paths = (
        "/v2/transcript",
        f"/v2/transcript/{job}",
        f"/v2/transcript/{job}/srt",
        "/",
        "/page/page.js",
    )
    for path in paths:
        whole, head = service.get(path), service.request("HEAD", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(whole.content))
    assert service.request("HEAD", "/nowhere").status_code == 404
    assert service.request("HEAD", "/v2/transcript", headers={"Authorization": "wrong"}).status_code == 401


@pytest.mark.parametrize(("asked", "status"), [("bytes=abc", 400), ("bytes=999999-", 416), ("bytes=5-2", 400)])
def test_an_unsatisfiable_range_gets_an_error_object(service, asked, status):
    """An unsatisfiable range of redacted audio gets an error object."""
    data_dir, job = DataDir(service.data_dir), put(service)
    data_dir.redacted(job, "wav").write_bytes(bytes(1000))
    url = RedactedAudioStore(data_dir, service.session.headers["Authorization"]).url(job, service.url)
    assert requests.get(url, headers={"Range": "bytes=0-9"}, timeout=10).content == bytes(10)
    answer = requests.get(url, headers={"Range": asked}, timeout=10)
    assert answer.status_code == status
    assert answer.json().keys() == {"error"}


@pytest.mark.parametrize("value", ["velociraptor\r\nX-B: 1", "velociraptor ü", ["velociraptor"], {"a": "velociraptor"}])
def test_refused_header_value_is_not_repeated(service, value):
    """An invalid secret value is named by its field alone, in the response and in the log."""
    body = {"audio_url": "http://192.0.2.1/a", "webhook_auth_header_name": "X-A", "webhook_auth_header_value": value}
    answer = service.request("POST", "/v2/transcript", json=body)
    assert answer.status_code == 400
    assert "webhook_auth_header_value" in answer.json()["error"]
    assert "velociraptor" not in answer.text + service.log.read_text()


def test_ids_and_names_from_outside_never_become_paths(service):
    """URLs that only look like uploads of this server read nothing from its disk."""
    (service.data_dir / "secret.wav").write_bytes(b"RIFF velociraptor")
    for name in ("../secret.wav", "..%2fsecret.wav", str(service.data_dir / "secret.wav"), "key", "%2e%2e/key"):
        job = service.create(f"{service.url}/upload/{name}")["id"]
        found = service.wait(job)
        assert found["status"] == "error"
        assert "Download error" in found["error"], name
    for name in ("../../secret.wav", "..%2f..%2fsecret.wav", "key"):
        assert service.get(f"/redacted-audio/{name}?Expires=9999999999&Signature=a").status_code in (403, 404)
        assert service.get(f"/llm/v3/{name}").status_code == 404


def test_deep_and_wide_json_is_answered_at_once(service):
    """Deep nesting and huge numbers in JSON are a 400, and the next request succeeds."""
    for body in (
        b'{"audio_url": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"audio_url": 1' + b"0" * 4_000_000 + b"}",
        orjson.dumps({"audio_url": "http://192.0.2.1/a", "word_boost": [[["a"]]] * 100_000}),
        orjson.dumps({"audio_url": "http://192.0.2.1/a", "topics": [1] * 1_000_000}),
    ):
        answer = service.request("POST", "/v2/transcript", data=body)
        assert answer.status_code == 400
        assert len(answer.content) < 2000


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("line", ["POST /v2/upload", "POST /v2/transcript", "GET /v2/transcript", "POST /nowhere"])
def test_a_malformed_body_ends_its_connection_only(service, line, together):
    """A body with an invalid chunk closes its connection, whether the response was sent before or not."""
    head = head_of(service, f"{line} HTTP/1.1", "Transfer-Encoding: chunked")
    with connect(service.url) as connection:
        connection.sendall(head + b"no chunk\r\n" if together else head + b"1\r\na\r\n")
        if not together:
            time.sleep(0.3)
            connection.sendall(b"no chunk\r\n")
        assert answer_of(connection)[0] in (200, 400, 404)
    assert service.get("/v2/transcript").status_code == 200
    assert not list((service.data_dir / "uploads").glob(".*"))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v2/transcript?limit={long}", None),
        ("GET", "/v2/transcript?status={long}", None),
        ("GET", "/v2/transcript?created_on={long}", None),
        ("GET", "/v2/transcript?throttled_only={long}", None),
        ("POST", "/llm/v3/generate/{long}", {}),
        ("POST", "/llm/v3/generate/summary", {"input_text": "We met.", "max_output_size": [1] * 100_000}),
        ("POST", "/llm/v3/generate/summary", {"input_text": "We met.", "temperature": "1" * 100_000}),
        ("POST", "/v2/realtime/token", {"expires_in": [1] * 100_000}),
    ],
)
def test_an_error_shows_only_the_beginning_of_a_long_value(service, method, path, body):
    """An invalid value is shown in the error, shortened."""
    answer = service.request(method, path.format(long="a" * 20_000), json=body)
    assert answer.status_code in (400, 404)
    assert len(answer.content) < 500
