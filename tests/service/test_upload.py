import io
import os
import threading

import pytest

from voxframe.errors import (
    AudioError,
    AudioNotFoundError,
    AuthenticationError,
    OptionError,
    ServiceUnreachableError,
    UnreadableAnswerError,
)
from voxframe.service.progress import Progress
from voxframe.service.upload import CHUNK_BYTES, Recording, web_address

AUDIO = bytes(range(256)) * 4096


@pytest.fixture
def uploads(peer):
    peer.on("POST", "/v2/upload", {"upload_url": f"{peer.url}/upload/1"})
    peer.on("GET", "/v2/transcript", {"page_details": {}, "transcripts": []})
    return peer


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "talk.flac"
    path.write_bytes(AUDIO)
    return path


@pytest.mark.parametrize("form", ["path", "text", "bytes", "bytearray", "memoryview", "file", "stream"])
def test_audio_in_every_form_arrives_whole(client, uploads, path, form):
    """Path, text, bytes, an open file, a pipe: the service gets every byte, and their count."""
    with path.open("rb") as file:
        media = {
            "path": path, "text": str(path), "bytes": AUDIO, "bytearray": bytearray(AUDIO), "file": file,
            "memoryview": memoryview(AUDIO), "stream": OnlyReads(file),
        }[form]  # fmt: skip
        assert client.upload(media) == f"{uploads.url}/upload/1"
    request = uploads.requests[0]
    assert request.body == AUDIO
    assert request.headers["content-type"] == "application/octet-stream"
    assert request.headers.get("content-length") == (None if form == "stream" else str(len(AUDIO)))


class OnlyReads:
    """A pipe: no length, no way back."""

    def __init__(self, file):
        self._file = file

    def read(self, count=-1):
        return self._file.read(count)


def test_an_open_file_is_sent_from_where_it_stands(client, uploads):
    """What was read already is not sent."""
    file = io.BytesIO(AUDIO)
    file.seek(1000)
    client.upload(file)
    assert uploads.requests[0].body == AUDIO[1000:]


def test_an_upload_is_sent_again_from_the_start(client, uploads, path, reply):
    """A cut connection or a server error costs nothing here, so the whole is sent once more."""
    uploads.on("POST", "/v2/upload", reply(fault="reset"), reply(b"", 503), {"upload_url": "http://x/1"})
    assert client.upload(path) == "http://x/1"
    assert [r.body for r in uploads.made("POST", "/v2/upload")] == [AUDIO] * 3


def test_a_refused_key_is_named_even_where_the_upload_is_cut(client, uploads, path, reply):
    """A service that hangs up on a large upload gives no reason; a small question in between does."""
    uploads.on("POST", "/v2/upload", reply(fault="reset"))
    uploads.on("GET", "/v2/transcript", reply({"error": "API token invalid"}, 401))
    with pytest.raises(AuthenticationError, match="API token invalid"):
        client.upload(path)
    assert len(uploads.made("POST", "/v2/upload")) == 1


def test_a_pipe_is_sent_once(client, uploads, path, reply):
    """What cannot be read again is not pretended to be."""
    uploads.on("POST", "/v2/upload", reply(fault="reset"))
    with path.open("rb") as file, pytest.raises(ServiceUnreachableError):
        client.upload(OnlyReads(file))
    assert len(uploads.made("POST", "/v2/upload")) == 1


@pytest.mark.parametrize("method", ["upload", "submit", "transcribe"])
def test_audio_that_cannot_be_read_is_noticed_before_anything_is_sent(client, peer, tmp_path, method):
    """Missing, a directory, empty, not permitted, text, no audio at all: one clear error each, no request."""
    empty = tmp_path / "empty.wav"
    empty.touch()
    cases = [
        (tmp_path / "talk.wav", AudioNotFoundError, "there is no audio file", "nothing of that name in"),
        (tmp_path / "no" / "talk.wav", AudioNotFoundError, "there is no audio file", "does not exist. Check the path"),
        (str(tmp_path), AudioError, "is a directory", "one by one"),
        (empty, AudioError, "empty.wav is empty", "no audio to send"),
        (b"", AudioError, "audio is empty", ""),
        (io.BytesIO(), AudioError, "audio is empty", ""),
        (OnlyReads(io.BytesIO()), AudioError, "audio is empty", ""),
        ("nul\x00byte", AudioError, "cannot be read", ""),
        (io.StringIO("text"), OptionError, "gives text; open it for bytes: open(path, 'rb')", ""),
        (None, OptionError, "audio is a NoneType; give a path, bytes", ""),
        (7, OptionError, "audio is a int; give a path, bytes", ""),
    ]
    for media, kind, says, more in cases:
        with pytest.raises(kind) as caught:
            getattr(client, method)(media)
        assert says in str(caught.value)
        assert more in str(caught.value)
    assert peer.requests == []


def test_a_file_that_may_not_be_read(client, peer, path):
    """Permission is checked before anything is sent."""
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)  # root may read everything; nobody may not
    try:
        with pytest.raises(AudioError, match=r"cannot be read: Permission denied. Check its permissions"):
            client.upload(path)
    finally:
        if root:
            os.seteuid(0)
    assert peer.requests == []


def test_a_file_that_shrinks_under_the_upload_is_an_error(client, uploads, tmp_path):
    """Half a recording is never taken for the whole."""
    path = tmp_path / "growing.wav"
    path.write_bytes(AUDIO * 4)
    recording = Recording(path)
    path.write_bytes(AUDIO)
    with pytest.raises(AudioError, match=r"growing\.wav became shorter while it was sent"):
        client._upload(recording, False)


def test_a_file_that_grows_under_the_upload_is_sent_as_it_was(client, uploads, tmp_path):
    """The length that was promised is the length that is sent."""
    path = tmp_path / "growing.wav"
    path.write_bytes(AUDIO)
    recording = Recording(path)
    path.write_bytes(AUDIO * 2)
    client._upload(recording, False)
    assert uploads.requests[0].body == AUDIO


def test_a_large_file_is_streamed_in_small_pieces(tmp_path):
    """The memory an upload takes does not grow with the file."""
    path = tmp_path / "large.wav"
    with path.open("wb") as file:
        file.truncate(50 * CHUNK_BYTES)
    with Progress("x", show=False) as progress:
        pieces = [len(piece) for piece in Recording(path).stream(progress)]
    assert pieces == [CHUNK_BYTES] * 50
    assert progress.count == 50 * CHUNK_BYTES


def test_an_answer_without_an_address_is_an_error(client, uploads, path):
    """A service that accepts an upload and says nothing is not believed."""
    uploads.on("POST", "/v2/upload", {"something": "else"})
    with pytest.raises(UnreadableAnswerError, match="POST /v2/upload"):
        client.upload(path)


def test_progress_is_shown_where_it_was_asked_for(client, uploads, path, capsys, monkeypatch):
    """The bar names the file and counts bytes, and is not there for what is quick or where nobody looks."""
    monkeypatch.setattr("voxframe.service.progress.PATIENCE_S", 0.0)
    client.upload(path, progress=True)
    shown = capsys.readouterr().err
    assert "uploading talk.flac" in shown
    assert "/1.00M" in shown
    client.upload(path)
    client.upload(path, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("address", ["http://host/a.wav", "https://host/a.wav?x=1", "HTTPS://host/a"])
def test_web_addresses_are_told_from_paths(address):
    """What begins with http or https is fetched by the service."""
    assert web_address(address) == address


@pytest.mark.parametrize("text", ["talk.wav", "/tmp/talk.wav", "C:\\talk.wav", "dir/http.wav", b"http://x", 5])
def test_paths_are_told_from_web_addresses(text):
    """Everything else is a path or audio."""
    assert web_address(text) is None


@pytest.mark.parametrize("address", ["s3://bucket/a.wav", "file:///tmp/a.wav", "ftp://host/a.wav"])
def test_other_schemes_are_refused(address, client, peer):
    """The service fetches http and https only, and the message says what to give instead."""
    with pytest.raises(OptionError, match=r"the service does not fetch .* addresses; give an http or https address"):
        client.submit(address)
    assert peer.requests == []


def test_uploads_from_many_threads_do_not_mix(client, uploads):
    """Each recording arrives as it was sent."""
    bodies = [bytes([n]) * 100_000 for n in range(8)]
    threads = [threading.Thread(target=client.upload, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r.body for r in uploads.requests) == bodies
