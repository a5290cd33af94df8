import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from voxframe.errors import BadRequestError, NotFoundError, OptionError, ServiceError, ServiceTimeoutError

AUDIO = bytes(range(256)) * 4000
PATH = "/v2/transcript/t1/redacted-audio"


@pytest.fixture
def ready(peer):
    peer.on(
        "GET", PATH, {"redacted_audio_url": f"{peer.url}/files/t1.mp3?Signature=s", "status": "redacted_audio_ready"}
    )
    return peer


def ranges(reply, *faults, etag='"one"', audio=AUDIO):
    """A file server that supports ranges and cuts responses in half at each fault."""
    left = list(faults)

    def answer(request):
        found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        start = int(found[1]) if found and request.headers.get("if-range", etag) == etag else 0
        if start >= len(audio):
            return reply(b"", 416, {"Content-Range": f"bytes */{len(audio)}"})
        headers = {"ETag": etag} if etag else {}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(audio) - 1}/{len(audio)}"
        return reply(audio[start:], 206 if start else 200, headers, fault=left.pop(0) if left else "")

    return answer


def test_redacted_audio_is_awaited_and_saved(client, peer, reply, tmp_path):
    """After responses of 202, the complete file is saved under the requested name."""
    url = {"redacted_audio_url": f"{peer.url}/files/t1.mp3?Signature=s", "status": "redacted_audio_ready"}
    peer.on("GET", PATH, reply({}, 202), reply(b"", 202), url)
    peer.on("GET", "/files/t1.mp3", ranges(reply))
    audio = client.redacted_audio("t1")
    assert (audio.transcript_id, audio.status) == ("t1", "redacted_audio_ready")
    assert json.loads(audio.raw) == url
    assert audio.save(tmp_path / "talk.mp3").read_bytes() == AUDIO
    assert audio.save(tmp_path) == tmp_path / "t1.redacted.mp3"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t1.redacted.mp3", "talk.mp3"]
    assert "Signature" not in repr(audio)


def test_the_key_is_not_sent_to_storage(client, peer, other_peer, reply, tmp_path):
    """A download from another host is requested without the key."""
    peer.on("GET", PATH, {"redacted_audio_url": f"{other_peer.url}/a.wav"})
    other_peer.on("GET", "/a.wav", ranges(reply))
    client.redacted_audio("t1").save(tmp_path / "a.wav")
    assert "authorization" not in other_peer.requests[0].headers


def test_an_interrupted_download_resumes(client, ready, reply, tmp_path):
    """A download that is interrupted twice requests the rest only, and the file is complete."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut", "cut"))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO
    asked = [(r.headers.get("range"), r.headers.get("if-range")) for r in ready.made("GET", "/files/t1.mp3")]
    first = len(AUDIO) // 2
    second = first + (len(AUDIO) - first) // 2
    assert asked == [(None, None), (f"bytes={first}-", '"one"'), (f"bytes={second}-", '"one"')]


def test_a_later_call_resumes_the_download(client, ready, reply, tmp_path):
    """A later call resumes the download, and no partial file has the requested name."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut"), reply(fault="reset"))
    audio = client.redacted_audio("t1")
    with pytest.raises(ServiceError):
        audio.save(tmp_path / "a.mp3")
    assert not (tmp_path / "a.mp3").exists()
    ready.on("GET", "/files/t1.mp3", ranges(reply))
    ready.requests.clear()
    assert audio.save(tmp_path / "a.mp3").read_bytes() == AUDIO
    assert ready.requests[0].headers["range"] == f"bytes={len(AUDIO) // 2}-"
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp3"]


def test_a_changed_file_is_downloaded_again(client, ready, reply, tmp_path):
    """A file with another ETag, or without one in an earlier process, is downloaded from the start."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut"), ranges(reply, etag='"two"', audio=AUDIO[::-1]))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO[::-1]


def test_a_weak_tag_is_not_sent(client, ready, reply, tmp_path):
    """A weak ETag does not promise the same bytes, so it is not used in If-Range (RFC 9110, 13.1.5)."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut", etag='W/"one"'))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO
    rest = ready.requests[-1].headers
    assert ("range" in rest, "if-range" in rest) == (True, False)


def test_a_server_without_ranges_or_tags(client, ready, reply, tmp_path):
    """If a server ignores ranges, the download starts again and the file is complete."""
    ready.on("GET", "/files/t1.mp3", reply(AUDIO, fault="cut"), reply(AUDIO))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO


def test_a_wrong_range_is_discarded(client, ready, reply, tmp_path):
    """A range with a wrong start is discarded."""
    wrong = reply(AUDIO[10:], 206, {"Content-Range": f"bytes 10-{len(AUDIO) - 1}/{len(AUDIO)}"})
    ready.on("GET", "/files/t1.mp3", reply(AUDIO, fault="cut"), wrong, reply(AUDIO))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO


def test_an_expired_url_is_refused(client, peer, reply, tmp_path):
    """An expired URL is not requested, and the error advises to request a new one."""
    message = r"has expired\. Request a new one with client\.redacted_audio\(id\)"
    peer.on("GET", PATH, {"redacted_audio_url": f"{peer.url}/a.wav?Signature=s&Expires=1698966551"})
    with pytest.raises(NotFoundError, match=message):
        client.redacted_audio("t1").save(tmp_path / "a.wav")
    assert [r.path for r in peer.requests] == [PATH]
    peer.on("GET", PATH, {"redacted_audio_url": f"{peer.url}/a.wav?Expires=99999999999"})
    peer.on("GET", "/a.wav", reply(b"<Error>expired</Error>", 403))
    with pytest.raises(NotFoundError, match=message) as caught:
        client.redacted_audio("t1").save(tmp_path / "a.wav")
    assert caught.value.path == "/a.wav"
    assert list(tmp_path.iterdir()) == []


def test_redacted_audio_that_was_not_requested(client, peer, reply):
    """The error has the text of the service and the options that make redacted audio."""
    peer.on("GET", PATH, reply({"error": "Redacted audio is not available"}, 400))
    with pytest.raises(BadRequestError, match="Redacted audio is not available") as caught:
        client.redacted_audio("t1")
    assert "redact_pii=True and redact_pii_audio=True" in caught.value.__notes__[0]
    assert len(peer.requests) == 1


def test_the_wait_has_a_timeout(client, peer, reply):
    """The wait ends after `timeout` with an error."""
    peer.on("GET", PATH, reply({}, 202))
    with pytest.raises(ServiceTimeoutError, match=r"the redacted audio of transcript t1 is not ready after 0\.3 s"):
        client.redacted_audio("t1", timeout=0.3)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/a", "javascript:alert(1)", "x", "http://[::1"])
def test_other_schemes_are_not_fetched(client, peer, tmp_path, url):
    """A file URL from the service is refused."""
    peer.on("GET", PATH, {"redacted_audio_url": url})
    with pytest.raises(ServiceError, match="neither http nor https"):
        client.redacted_audio("t1").save(tmp_path / "a.wav")


def test_a_missing_directory_is_named(client, ready, tmp_path):
    """A missing directory is named before anything is requested."""
    with pytest.raises(OptionError, match="does not exist; make it, or name another"):
        client.redacted_audio("t1").save(tmp_path / "no" / "a.mp3")
    assert [r.path for r in ready.requests] == [PATH]


def test_progress_counts_bytes(client, ready, reply, tmp_path, capsys, monkeypatch):
    """The progress bar names the file and counts its bytes."""
    monkeypatch.setattr("voxframe._progress.DELAY_S", 0.0)
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut"))
    client.redacted_audio("t1").save(tmp_path / "a.mp3", progress=True)
    assert "downloading a.mp3" in capsys.readouterr().err


def test_one_file_is_saved_by_several_threads(client, ready, reply, tmp_path):
    """Threads that save one file at the same time wait for each other, and each gets the whole file."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut", "cut"))
    audio = client.redacted_audio("t1")
    with ThreadPoolExecutor(4) as pool:
        saved = list(pool.map(lambda _: audio.save(tmp_path / "a.mp3").read_bytes(), range(4)))
    assert saved == [AUDIO] * 4
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp3"]
