"""Downloads of media."""

import gzip
import json
import re
import socket
import time

import pytest

from voxframe_engine import JobFailed
from voxframe_server.jobs import worker_process as fetching
from voxframe_server.jobs.ssrf_guard import origin
from voxframe_server.jobs.worker_process import fetch


def get(web, url, tmp_path, **how):
    """Fetch with the test web server's origin allowed."""
    fetch(url, tmp_path / "media", frozenset({origin(web.origin)}), **how)
    return (tmp_path / "media").read_bytes()


def failure(web, url, tmp_path, allowed=(), **how):
    """Return the reason of a failed fetch, which leaves no file."""
    with pytest.raises(JobFailed) as caught:
        fetch(url, tmp_path / "media", frozenset(map(origin, allowed)), **how)
    assert list(tmp_path.iterdir()) == []
    return caught.value.reason


def test_a_file_arrives_unchanged(web, tmp_path):
    """A file arrives byte for byte, even if the server compresses it without a request."""
    body = bytes(range(256)) * 5000
    assert get(web, web.page("/a.wav", body), tmp_path) == body
    squeezed = gzip.compress(body)
    assert get(web, web.page("/b.wav", squeezed, **{"Content-Encoding": "gzip"}), tmp_path) == squeezed


def test_query_blanks_and_letters_in_the_address_are_kept(web, tmp_path):
    """Query, spaces and non-ASCII letters of a URL reach the server."""
    web.page("/my%20talk%20%C3%BC.wav?token=a%2Fb&x=1", b"found")
    assert get(web, f"{web.origin}/my talk ü.wav?token=a%2Fb&x=1", tmp_path) == b"found"


def test_redirects_are_followed(web, tmp_path):
    """A few relative and absolute redirects are followed."""
    web.page("/end", b"found")
    web.page("/middle", status=302, Location=f"{web.origin}/end")
    assert get(web, web.page("/start", status=301, Location="middle"), tmp_path) == b"found"


def test_redirects_are_limited(web, tmp_path):
    """More than five redirects are an error."""
    url = web.page("/round", status=302, Location="/round")
    assert "redirects" in failure(web, url, tmp_path, [web.origin])
    assert len(web.asked) == 6


def test_errors_have_the_text_of_the_api(web, tmp_path, payload_folder):
    """An error has the API's sentence first, then the reason."""
    example = json.loads((payload_folder / "failed_download.json").read_text())
    url = web.page("/gone", status=404)
    reason = failure(web, url, tmp_path, [web.origin])
    assert reason.startswith(example["error"].replace(example["audio_url"], url))
    assert "404" in reason


def test_address_that_is_not_public_is_never_connected_to(web, tmp_path):
    """No connection to a private address is made."""
    url = web.page("/secret", b"inside")
    assert f"--allow-origin {web.origin}" in failure(web, url, tmp_path)
    assert web.asked == []


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:{port}/secret", "http://169.254.169.254/latest/meta-data/", "http://localhost:{port}/secret"],
)
def test_redirect_to_an_address_that_is_not_public_is_refused(web, tmp_path, target):
    """An allowed origin cannot redirect to a private address."""
    web.page("/secret", b"inside")
    web.page("/start", status=302, Location=target.format(port=web.server.server_port + 1))
    reason = failure(web, f"{web.origin}/start", tmp_path, [web.origin])
    assert "not on the public internet" in reason
    assert web.asked == ["/start"]


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://127.0.0.1/a", "gopher://127.0.0.1/", "data:text/plain,a"]
)
def test_redirect_to_another_scheme_is_refused(web, tmp_path, target):
    """A redirect to any scheme except http and https is refused."""
    reason = failure(web, web.page("/start", status=302, Location=target), tmp_path, [web.origin])
    assert "Download error" in reason
    assert len(web.asked) == 1


def test_the_checked_address_is_used(web, tmp_path, monkeypatch):
    """The connection goes to the address that was checked; the name is looked up once."""
    port = web.server.server_port
    answers = [[(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))] for ip in ("9.9.9.9", "127.0.0.1")]
    looked_up, connected = [], []

    def look_up(host, *_, **__):
        looked_up.append(host)
        return answers[min(len(looked_up), 2) - 1]

    def connect(address, *_, **__):
        connected.append(address)
        raise ConnectionRefusedError("no network here")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    failure(web, f"http://rebind.example:{port}/secret", tmp_path)
    assert connected == [("9.9.9.9", port)]
    assert looked_up == ["rebind.example"]


def test_proxy_of_the_environment_is_not_used(web, tmp_path, monkeypatch):
    """Proxies of the environment are ignored, because addresses behind them cannot be checked."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert get(web, web.page("/a", b"direct"), tmp_path) == b"direct"


def test_file_that_is_too_large_is_refused(web, tmp_path):
    """A file over the limit is refused by its Content-Length, or by its actual size."""
    body = bytes(2000)
    assert "larger" in failure(web, web.page("/announced", body), tmp_path, [web.origin], max_bytes=1999)

    def unannounced(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    web.pages["/unannounced"] = unannounced
    assert "larger" in failure(web, f"{web.origin}/unannounced", tmp_path, [web.origin], max_bytes=1999)


def test_connection_that_ends_early_is_a_failure(web, tmp_path):
    """A truncated download is an error."""
    url = web.page("/half", b"only this", **{"Content-Length": "1000"})
    assert "of 1000 bytes" in failure(web, url, tmp_path, [web.origin])


def test_a_server_that_stops_sending_is_an_error(web, tmp_path, monkeypatch):
    """A server that stops sending is an error."""
    monkeypatch.setattr(fetching, "MAX_SILENCE", 0.3)
    reason = failure(web, web.slow_page("/slow", bytes(100_000)), tmp_path, [web.origin])
    assert "sent nothing" in reason


def test_a_slow_body_ends_at_the_deadline(web, tmp_path, monkeypatch):
    """A body that arrives one byte at a time falls under the deadline."""
    monkeypatch.setattr(fetching, "MAX_SECONDS", 0.5)

    def trickle(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b".")
            time.sleep(0.05)

    web.pages["/trickle"] = trickle
    reason = failure(web, f"{web.origin}/trickle", tmp_path, [web.origin])
    assert re.search(r"longer than .*; [1-9]\d* of 1000 bytes arrived in that time", reason)


def test_slow_headers_end_at_the_deadline(web, tmp_path, monkeypatch):
    """A server that sends one byte of its headers at a time is cut off before it has sent all of them."""
    monkeypatch.setattr(fetching, "MAX_SECONDS", 0.5)
    sent = []

    def trickle(handler):
        handler.send_response_only(200)
        handler.flush_headers()
        for byte in b"X-Padding: " + b"x" * 600 + b"\r\nContent-Length: 0\r\n\r\n":
            handler.wfile.write(bytes([byte]))
            sent.append(byte)
            time.sleep(0.02)

    web.pages["/headers"] = trickle
    assert "headers took longer" in failure(web, f"{web.origin}/headers", tmp_path, [web.origin])
    assert len(sent) < 600


def test_unreachable_servers_are_a_failure(tmp_path, web):
    """Unknown hosts, closed ports and other protocols are errors."""
    assert "host is unknown" in failure(web, "http://no-such-host.invalid/a", tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/a"
        assert "refused" in failure(web, url, tmp_path, [url])
    for name in ("a..b", "a" * 64):  # no label of a name is empty, or has more than 63 characters (RFC 1035)
        assert "host is unknown" in failure(web, f"http://{name}.example/a", tmp_path)


def test_a_redirect_to_an_invalid_port_is_an_error(web, tmp_path):
    """A redirect to a port that does not exist is an error that says so."""
    url = web.page("/start", status=302, Location="http://192.0.2.1:99999/a")
    assert "invalid port" in failure(web, url, tmp_path, [web.origin])


def test_an_upload_that_does_not_exist_is_named_as_such(web, tmp_path):
    """An upload URL that is not usable is no advice to allow the origin of this server."""
    reason = failure(web, f"{web.origin}/upload/00000000-0000-4000-8000-000000000000", tmp_path)
    assert "no such upload" in reason
    assert "--allow-origin" not in reason


def test_the_reason_phrase_of_a_server_has_no_control_characters(web, tmp_path):
    """Control characters in the reason phrase of a response cannot change a terminal that shows the log."""

    def answer(handler):
        handler.wfile.write(b"HTTP/1.1 403 \x1b[2Jgone\r\nContent-Length: 0\r\n\r\n")

    web.pages["/odd"] = answer
    assert "returned 403 [2Jgone)" in failure(web, f"{web.origin}/odd", tmp_path, [web.origin])


@pytest.mark.long
def test_service_fetches_from_allowed_origins_only(start, web, silent_wav):
    """A running server fetches from a private origin only if it is allowed, and gives the reason in the transcript."""
    url = web.page("/a.wav", silent_wav)
    closed = start()
    failed = closed.wait(closed.create(url)["id"])
    assert failed["status"] == "error"
    assert failed["error"].startswith(f"Download error, unable to download {url}.")
    assert web.asked == []
    closed.stop()
    opened = start("--allow-origin", web.origin)
    done = opened.wait(opened.create(url)["id"])
    assert done["status"] == "completed"
    assert done["audio_url"] == url
    page = opened.wait(opened.create(web.page("/page", b"<html><body>Sign in</body></html>"))["id"])
    assert page["error"].startswith("File does not appear to contain audio. File type is text/html")
    assert web.origin not in opened.log.read_text()
