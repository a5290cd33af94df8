import http.client
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from voxframe.errors import AudioError, AudioNotFoundError
from voxframe.widgets import TranscriptPlayer, media_server

SOUND = bytes(range(256)) * 1000


@pytest.fixture
def recording(tmp_path) -> Path:
    path = tmp_path / "täglich & <b>.flac"
    path.write_bytes(SOUND)
    return path


def ask(address: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a request to the media server; underscores in header names stand for dashes."""
    url = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=10)
    connection.request(method, url.path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_a_browser_gets_the_requested_range(recording):
    """Without a range the whole file is sent, with one exactly its bytes and status 206, and 416 beyond the end."""
    address, _ = media_server.media_urls(recording)
    status, headers, body = ask(address)
    assert (status, body == SOUND, headers["Accept-Ranges"], headers["Content-Type"]) == (
        200,
        True,
        "bytes",
        "audio/flac",
    )
    status, headers, body = ask(address, Range="bytes=1000-1999")
    assert (status, body, headers["Content-Range"]) == (206, SOUND[1000:2000], f"bytes 1000-1999/{len(SOUND)}")
    assert ask(address, Range="bytes=255990-")[2] == SOUND[255990:]
    assert ask(address, Range="bytes=-10")[2] == SOUND[-10:]
    status, headers, body = ask(address, Range=f"bytes={len(SOUND)}-")
    assert (status, headers["Content-Range"], body) == (416, f"bytes */{len(SOUND)}", b"")
    status, headers, body = ask(address, "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(SOUND)), b"")


def test_a_reset_connection_prints_nothing(recording, capfd):
    """A connection that is reset, before or during a request, prints nothing into the notebook."""
    address, _ = media_server.media_urls(recording)
    for begun in (b"", b"GET / HT"):
        with socket.create_connection(("127.0.0.1", urlsplit(address).port)) as left:
            left.sendall(begun)
            left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.1)
    assert ask(address)[0] == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("asked", ["bytes=5-1", "bytes=0-1,4-5", "bytes=-", "words=1-2", "bytes=x", "bytes=٣-"])
def test_an_invalid_range_is_ignored(recording, asked):
    """A request with an invalid or multiple range gets the whole file, as the standard allows."""
    assert media_server.byte_range(asked, len(SOUND)) == (0, len(SOUND))


def test_only_registered_recordings_are_served(recording, tmp_path):
    """Wrong tokens, other files, parent folders and other hosts are refused; a removed file gives 404."""
    (tmp_path / "secret.txt").write_text("canary")
    address, _ = media_server.media_urls(recording)
    url = urlsplit(address)
    assert ask(address)[1]["X-Content-Type-Options"] == "nosniff"
    token = url.path.split("/")[1]
    assert len(token) >= 20
    for path in ("/", "", f"/{'x' * len(token)}/a.flac", f"/{token[:-1]}/a", "/../secret.txt", "//", f"/%2e{token}/"):
        assert ask(f"http://127.0.0.1:{url.port}{path}")[0] == 404, path
    beside = ask(f"http://127.0.0.1:{url.port}/{token}/../secret.txt")
    assert beside[2] == SOUND  # the token says which file, the name is for people
    assert ask(address, Host="evil.example")[0] == 421
    assert ask(address, Host=f"localhost:{url.port}")[0] == 200
    recording.unlink()
    assert ask(address)[0] == 404


def test_a_recording_keeps_its_url(recording):
    """The same recording has the same URL each time, which ends with its readable name."""
    first, again = media_server.media_urls(recording), media_server.media_urls(str(recording))
    assert first == again
    assert unquote(first[0]).endswith("/täglich & <b>.flac")


def test_urls_are_unchanged_and_wrong_paths_are_errors(tmp_path):
    """An http URL is passed to the browser; a missing file and a folder raise errors that name them."""
    assert media_server.media_urls("https://example.org/a.mp3") == ["https://example.org/a.mp3"]
    with pytest.raises(AudioNotFoundError, match=r"no file 'nowhere\.mp3'"):
        media_server.media_urls("nowhere.mp3")
    with pytest.raises(AudioError, match="is not a file"):
        media_server.media_urls(tmp_path)


def test_markup_is_never_served_as_a_page(tmp_path):
    """A file with the name of an HTML or SVG file is sent as bytes."""
    for name in ("a.html", "a.svg", "a.js", "a"):
        assert media_server.media_type(Path(name)) == "application/octet-stream"
    assert media_server.media_type(Path("a.mp3")) == "audio/mpeg"


def test_a_file_in_jupyters_folder_has_a_url_there(recording, tmp_path, monkeypatch):
    """The file that Jupyter writes gives folder and base URL; hidden files and files elsewhere have no URL there."""
    monkeypatch.setenv("JPY_PARENT_PID", "4711")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "run"))
    assert media_server.jupyter_url(recording) is None
    (tmp_path / "run").mkdir()
    told = {"root_dir": str(tmp_path), "base_url": "/user/ada/", "token": "canary"}
    (tmp_path / "run" / "jpserver-4711.json").write_text(json.dumps(told))
    assert media_server.jupyter_url(recording) == "/user/ada/files/t%C3%A4glich%20%26%20%3Cb%3E.flac"
    assert media_server.media_urls(recording)[0] == media_server.jupyter_url(recording)
    assert media_server.jupyter_url(tmp_path / ".hidden" / "a.mp3") is None
    assert media_server.jupyter_url(Path("/elsewhere/a.mp3")) is None
    (tmp_path / "run" / "jpserver-4711.json").write_text("[]")
    assert media_server.jupyter_url(recording) is None


def test_a_recording_is_added_while_requests_are_answered(recording, tmp_path):
    """A request that looks up its recording is not disturbed by a new one."""
    media_server.media_urls(recording)
    looked_up = iter(media_server._server().files.items())
    next(looked_up)
    (tmp_path / "other.flac").write_bytes(SOUND)
    media_server.media_urls(tmp_path / "other.flac")
    list(looked_up)  # a dict that has changed raises a RuntimeError here


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names that are not UTF-8")
def test_a_name_that_is_not_utf8_is_played(tmp_path):
    """A recording with a Latin-1 name has a URL, a player with a readable title, and an exported page."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.flac"))
    path.write_bytes(SOUND)
    address, _ = media_server.media_urls(path)
    assert address.endswith("/caf%E9.flac")
    assert ask(address)[2] == SOUND
    player = TranscriptPlayer({"id": "a", "utterances": None, "words": []}, path)
    assert player.title == r"caf\udce9.flac"
    player.to_html(tmp_path / "page.html")
    assert "caf%E9.flac" in (tmp_path / "page.html").read_text("utf-8")


def test_a_file_is_sent_in_parts(tmp_path):
    """Each part begins at the requested byte, all together are the file, and a file that is gone has none."""
    path = tmp_path / "a.wav"
    path.write_bytes(SOUND * 9)
    received = b""
    while len(received) < len(SOUND) * 9:
        description, part = media_server.file_part(path, len(received))
        assert description == {"from": len(received), "size": len(SOUND) * 9, "type": "audio/wav"}
        received += part
    assert received == SOUND * 9
    path.unlink()
    assert media_server.file_part(path, 0) == ({"from": 0, "size": 0, "type": "audio/wav"}, b"")


def test_a_store_is_no_recording():
    """A browser cannot reach s3, so the error says what to give instead of looking for a file of that name."""
    with pytest.raises(AudioError, match=r"a browser cannot play 's3://calls/a\.mp3'.*https"):
        media_server.media_urls("s3://calls/a.mp3")
