import json
import re

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
    """A file server that knows ranges; each fault cuts one answer in half."""
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


def test_it_is_waited_for_while_it_is_made(client, peer, reply, tmp_path):
    """202 means not yet; the file is then saved whole under the name that was asked for."""
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


def test_the_key_does_not_go_to_storage(client, peer, other_peer, reply, tmp_path):
    """The signed address is on another host, which gets no key."""
    peer.on("GET", PATH, {"redacted_audio_url": f"{other_peer.url}/a.wav"})
    other_peer.on("GET", "/a.wav", ranges(reply))
    client.redacted_audio("t1").save(tmp_path / "a.wav")
    assert "authorization" not in other_peer.requests[0].headers


def test_a_broken_download_goes_on_where_it_broke_off(client, ready, reply, tmp_path):
    """Twice cut in half: three requests, each for the rest only, and the file is whole."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut", "cut"))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO
    asked = [(r.headers.get("range"), r.headers.get("if-range")) for r in ready.made("GET", "/files/t1.mp3")]
    first = whole_pieces(len(AUDIO) // 2)
    second = first + whole_pieces((len(AUDIO) - first) // 2)
    assert asked == [(None, None), (f"bytes={first}-", '"one"'), (f"bytes={second}-", '"one"')]


def whole_pieces(count):
    """Of what came before a cut, all but the last incomplete piece is kept."""
    return count // 65536 * 65536


def test_a_later_call_goes_on_too(client, ready, reply, tmp_path):
    """What an earlier call left is used, and no half file ever has the name that was asked for."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut"), reply(fault="reset"))
    audio = client.redacted_audio("t1")
    with pytest.raises(ServiceError):
        audio.save(tmp_path / "a.mp3")
    assert not (tmp_path / "a.mp3").exists()
    ready.on("GET", "/files/t1.mp3", ranges(reply))
    ready.requests.clear()
    assert audio.save(tmp_path / "a.mp3").read_bytes() == AUDIO
    assert ready.requests[0].headers["range"] == f"bytes={whole_pieces(len(AUDIO) // 2)}-"
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp3"]


def test_another_file_at_the_same_address_is_not_glued_on(client, ready, reply, tmp_path):
    """A changed tag starts from the beginning; without a tag an earlier process's part is not trusted."""
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut"), ranges(reply, etag='"two"', audio=AUDIO[::-1]))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO[::-1]


def test_a_server_without_ranges_or_tags(client, ready, reply, tmp_path):
    """It sends everything again, and everything is what is kept."""
    ready.on("GET", "/files/t1.mp3", reply(AUDIO, fault="cut"), reply(AUDIO))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO


def test_a_server_that_sends_another_range_than_asked(client, ready, reply, tmp_path):
    """A range that does not begin where it should is thrown away."""
    wrong = reply(AUDIO[10:], 206, {"Content-Range": f"bytes 10-{len(AUDIO) - 1}/{len(AUDIO)}"})
    ready.on("GET", "/files/t1.mp3", reply(AUDIO, fault="cut"), wrong, reply(AUDIO))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == AUDIO


def test_an_expired_address_is_refused_with_the_next_step(client, peer, reply, tmp_path):
    """An address that says it is over is not even asked; one that storage refuses is explained."""
    message = r"has expired\. Ask for a new one with client\.redacted_audio\(id\)"
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


def test_where_it_was_not_asked_for(client, peer, reply):
    """400 keeps the service's words and adds which options make it."""
    peer.on("GET", PATH, reply({"error": "Redacted audio is not available"}, 400))
    with pytest.raises(BadRequestError, match="Redacted audio is not available") as caught:
        client.redacted_audio("t1")
    assert "redact_pii=True and redact_pii_audio=True" in caught.value.__notes__[0]
    assert len(peer.requests) == 1


def test_time_runs_out_while_it_is_made(client, peer, reply):
    """The wait is bounded where that was asked for."""
    peer.on("GET", PATH, reply({}, 202))
    with pytest.raises(ServiceTimeoutError, match=r"the redacted audio of transcript t1 is not ready after 0\.3 s"):
        client.redacted_audio("t1", timeout=0.3)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/a", "javascript:alert(1)", "x", "http://[::1"])
def test_an_address_of_another_kind_is_not_fetched(client, peer, tmp_path, url):
    """The service cannot make the client read a local file."""
    peer.on("GET", PATH, {"redacted_audio_url": url})
    with pytest.raises(ServiceError, match="neither http nor https"):
        client.redacted_audio("t1").save(tmp_path / "a.wav")


def test_a_directory_that_does_not_exist(client, ready, tmp_path):
    """It is named before anything is fetched."""
    with pytest.raises(OptionError, match="does not exist; make it, or name another"):
        client.redacted_audio("t1").save(tmp_path / "no" / "a.mp3")
    assert [r.path for r in ready.requests] == [PATH]


def test_progress_counts_bytes_of_the_whole(client, ready, reply, tmp_path, capsys, monkeypatch):
    """The bar names the file."""
    monkeypatch.setattr("voxframe.service.progress.PATIENCE_S", 0.0)
    ready.on("GET", "/files/t1.mp3", ranges(reply, "cut"))
    client.redacted_audio("t1").save(tmp_path / "a.mp3", progress=True)
    assert "downloading a.mp3" in capsys.readouterr().err
