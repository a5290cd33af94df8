import io
import os
import threading
from contextlib import closing

import pytest

from voxframe._progress import Progress
from voxframe.client.transfers import CHUNK_BYTES, UploadSource, remote_url, send, upload
from voxframe.errors import (
    AudioError,
    AudioNotFoundError,
    AuthenticationError,
    OptionError,
    ServiceUnreachableError,
    UnreadableAnswerError,
)

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
def test_audio_is_uploaded_in_every_form(client, uploads, path, form):
    """A path, bytes, an open file and a pipe arrive byte for byte, with their size if it is known."""
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
    """A pipe: it has no length and cannot seek."""

    def __init__(self, file):
        self._file = file

    def read(self, count=-1):
        return self._file.read(count)


def test_an_open_file_is_sent_from_its_position(client, uploads):
    """Bytes before the position of an open file are not sent."""
    file = io.BytesIO(AUDIO)
    file.seek(1000)
    client.upload(file)
    assert uploads.requests[0].body == AUDIO[1000:]


def test_an_upload_is_retried(client, uploads, path, reply):
    """After a lost connection or a server error, the upload is sent again from the start."""
    uploads.on("POST", "/v2/upload", reply(fault="reset"), reply(b"", 503), {"upload_url": "http://x/1"})
    assert client.upload(path) == "http://x/1"
    assert [r.body for r in uploads.made("POST", "/v2/upload")] == [AUDIO] * 3


def test_a_refused_key_is_reported_after_a_cut_upload(client, uploads, path, reply):
    """If the service hangs up during an upload, a small request finds out that the key is refused."""
    uploads.on("POST", "/v2/upload", reply(fault="reset"))
    uploads.on("GET", "/v2/transcript", reply({"error": "API token invalid"}, 401))
    with pytest.raises(AuthenticationError, match="API token invalid"):
        client.upload(path)
    assert len(uploads.made("POST", "/v2/upload")) == 1


def test_a_pipe_is_sent_once(client, uploads, path, reply):
    """An upload that cannot be read again is not retried."""
    uploads.on("POST", "/v2/upload", reply(fault="reset"))
    with path.open("rb") as file, pytest.raises(ServiceUnreachableError):
        client.upload(OnlyReads(file))
    assert len(uploads.made("POST", "/v2/upload")) == 1


@pytest.mark.parametrize("method", ["upload", "submit", "transcribe"])
def test_unreadable_audio_is_not_sent(client, peer, tmp_path, method):
    """A missing, empty or otherwise unreadable file raises an error, and nothing is sent."""
    empty = tmp_path / "empty.wav"
    empty.touch()
    cases = [
        (tmp_path / "talk.wav", AudioNotFoundError, "there is no audio file", "there is no such file in"),
        (tmp_path / "no" / "talk.wav", AudioNotFoundError, "there is no audio file", "does not exist. Check the path"),
        (str(tmp_path), AudioError, "is a directory", "one by one"),
        (empty, AudioError, "empty.wav is empty", "no audio to send"),
        (b"", AudioError, "audio is empty", ""),
        (io.BytesIO(), AudioError, "audio is empty", ""),
        (OnlyReads(io.BytesIO()), AudioError, "audio is empty", ""),
        ("nul\x00byte", AudioError, "cannot be read", ""),
        (io.StringIO("text"), OptionError, "is a text file; open it in binary mode: open(path, 'rb')", ""),
        (None, OptionError, "audio must be a path, bytes", "got NoneType"),
        (7, OptionError, "audio must be a path, bytes", "got int"),
    ]
    for media, kind, says, more in cases:
        with pytest.raises(kind) as caught:
            getattr(client, method)(media)
        assert says in str(caught.value)
        assert more in str(caught.value)
    assert peer.requests == []


def test_a_file_without_permission(client, peer, path):
    """A file without read permission raises an error before anything is sent."""
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


def test_a_file_that_shrinks_during_the_upload(client, uploads, tmp_path):
    """A file that becomes shorter during the upload raises an error."""
    path = tmp_path / "growing.wav"
    path.write_bytes(AUDIO * 4)
    recording = UploadSource(path)
    path.write_bytes(AUDIO)
    with pytest.raises(AudioError, match=r"growing\.wav became shorter during the upload"):
        upload(client.transport, recording, False)


def test_a_file_that_grows_during_the_upload(client, uploads, tmp_path):
    """A file that grows during the upload is sent up to its announced length."""
    path = tmp_path / "growing.wav"
    path.write_bytes(AUDIO)
    recording = UploadSource(path)
    path.write_bytes(AUDIO * 2)
    upload(client.transport, recording, False)
    assert uploads.requests[0].body == AUDIO


def test_a_large_file_is_streamed(tmp_path):
    """The memory of an upload does not depend on the size of the file."""
    path = tmp_path / "large.wav"
    with path.open("wb") as file:
        file.truncate(50 * CHUNK_BYTES)
    with Progress("x", show=False) as progress, closing(UploadSource(path).stream(progress)) as body:
        pieces = [len(piece) for piece in body]
    assert pieces == [CHUNK_BYTES] * 50
    assert progress.count == 50 * CHUNK_BYTES


def test_a_response_without_a_url_is_an_error(client, uploads, path):
    """A response without an upload_url raises an UnreadableAnswerError."""
    uploads.on("POST", "/v2/upload", {"something": "else"})
    with pytest.raises(UnreadableAnswerError, match="POST /v2/upload"):
        client.upload(path)


def test_progress_is_shown_on_request(client, uploads, path, capsys, monkeypatch):
    """The bar names the file and counts bytes; quick uploads and non-interactive sessions show none."""
    monkeypatch.setattr("voxframe._progress.DELAY_S", 0.0)
    client.upload(path, progress=True)
    shown = capsys.readouterr().err
    assert "uploading talk.flac" in shown
    assert "/1.00M" in shown
    client.upload(path)
    client.upload(path, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("address", ["http://host/a.wav", "https://host/a.wav?x=1", "HTTPS://host/a"])
def test_urls_are_recognized(address):
    """An http or https URL is fetched by the service."""
    assert remote_url(address) == address


@pytest.mark.parametrize("text", ["talk.wav", "/calls/talk.wav", "C:\\talk.wav", "dir/http.wav", b"http://x", 5])
def test_paths_are_recognized(text):
    """Anything else is a path or audio."""
    assert remote_url(text) is None


@pytest.mark.parametrize("address", ["s3://bucket/a.wav", "file:///calls/a.wav", "ftp://host/a.wav"])
def test_other_schemes_are_refused(address, client, peer):
    """A URL with another scheme is refused, and the error names the allowed forms."""
    with pytest.raises(OptionError, match=r"the service does not fetch .* URLs; give an http or https URL"):
        client.submit(address)
    assert peer.requests == []


def test_uploads_from_many_threads_do_not_mix(client, uploads):
    """Recordings uploaded by several threads arrive unchanged."""
    bodies = [bytes([n]) * 100_000 for n in range(8)]
    threads = [threading.Thread(target=client.upload, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r.body for r in uploads.requests) == bodies


def test_a_file_that_cannot_be_read_is_an_error(client, uploads, path):
    """A closed file, and one opened for writing, are errors that say how to open it; nothing is sent."""
    with path.open("rb") as closed:
        pass
    with path.open("ab") as appending:
        for media in (closed, appending):
            with pytest.raises(AudioError, match=r"talk\.flac cannot be read: .*Open it with open\(path, 'rb'\)"):
                client.upload(media)
    assert uploads.requests == []


def test_every_second_byte_is_uploaded(client, uploads):
    """A memoryview with steps is sent as it reads."""
    client.upload(memoryview(AUDIO)[::2])
    assert uploads.requests[0].body == AUDIO[::2]


def test_a_refused_upload_counts_its_bytes_once(client, uploads, reply):
    """After a 429, the progress starts again from the first byte."""
    uploads.on("POST", "/v2/upload", reply({"error": "wait"}, 429, {"Retry-After": "0"}), {"upload_url": "https://a/b"})
    with Progress("uploading", len(AUDIO), show=False) as progress:
        assert send(client.transport, UploadSource(AUDIO), progress) == "https://a/b"
    assert progress.count == len(AUDIO)
    assert len(uploads.requests) == 2
