"""Responses of broken and hostile servers: each ends soon, with a result or a voxframe error."""

import copy
import json

import pytest

from voxframe.client import async_bridge
from voxframe.client.client import Client
from voxframe.client.http import Transport
from voxframe.errors import ServiceError, ServiceUnreachableError, UnreadableAnswerError, VoxframeError
from voxframe.settings import Secret, Settings

#: Values that a field of another type may have.
WRONG = [None, True, 0.5, 10**30, "9" * 5000, "\ud800", [], [None], {"a": 1}]

WORD = {"text": "Hi", "start": 0, "end": 90, "confidence": 0.5, "speaker": "A", "channel": "1"}
PASSAGE = {**WORD, "words": [WORD]}
PAGE = {
    "page_details": {"limit": 1, "result_count": 1, "current_url": "x", "prev_url": None, "next_url": None},
    "transcripts": [
        {"id": "t1", "status": "completed", "created": "2026-01-02T03:04:05", "completed": "2026-01-02T03:04:05",
         "audio_url": "https://h/a", "error": None, "resource_url": "https://h/t1"}
    ],
}  # fmt: skip
LLM = {"request_id": "r1", "response": [{"question": "Who?", "answer": "A."}],
       "usage": {"input_tokens": 1, "output_tokens": 2}}  # fmt: skip
TRANSCRIPT = {"id": "t1", "status": "completed", "text": "Hi", "error": None, "audio_duration": 1}

#: Method and path, a good answer, and everything that is done with it.
ANSWERS = {
    "transcript": ("GET", "/v2/transcript/t1", TRANSCRIPT, lambda c: look_at(c.transcript("t1"))),
    "submit": ("POST", "/v2/transcript", TRANSCRIPT, lambda c: look_at(c.submit("https://h/a.mp3"))),
    "upload": ("POST", "/v2/upload", {"upload_url": "https://h/1"}, lambda c: c.upload(b"audio")),
    "delete": ("DELETE", "/v2/transcript/t1", TRANSCRIPT, lambda c: look_at(c.delete("t1"))),
    "list": ("GET", "/v2/transcript", PAGE, lambda c: repr(list(c.iter_transcripts()))),
    "sentences": ("GET", "/v2/transcript/t1/sentences",
                  {"id": "t1", "confidence": 0.5, "audio_duration": 1, "sentences": [PASSAGE]},
                  lambda c: repr(c.sentences("t1"))),
    "words": ("GET", "/v2/transcript/t1/word-search",
              {"id": "t1", "total_count": 1,
               "matches": [{"text": "a", "count": 1, "timestamps": [[0, 9]], "indexes": [0]}]},
              lambda c: repr(c.word_search("t1", "a"))),
    "redacted": ("GET", "/v2/transcript/t1/redacted-audio",
                 {"redacted_audio_url": "http://127.0.0.1:9/a.mp3?Expires=1", "status": "redacted_audio_ready"},
                 lambda c: c.redacted_audio("t1").save("/nonexistent")),
    "ask": ("POST", "/llm/v3/generate/question-answer", LLM, lambda c: c.ask("Who?", input_text="A.").text),
    "purge": ("DELETE", "/llm/v3/r1", {"request_id": "r2", "request_id_to_purge": "r1", "deleted": True},
              lambda c: repr(c.purge("r1"))),
    "token": ("POST", "/v2/realtime/token", {"token": "t"}, lambda c: c.token()),
    "queue": ("GET", "/queue", {"waiting": {"t1": 0}, "progress": {"t2": 0.5}}, lambda c: c.progress()),
}  # fmt: skip


def look_at(handle):
    return handle.status, handle.error, handle.text, handle.audio_duration_s, repr(handle), handle._repr_html_()


def broken(value):
    """Yield each copy of a JSON value with one part replaced by a value of another type."""
    yield from WRONG
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        for wrong in broken(part):
            changed = copy.copy(value)
            changed[key] = wrong
            yield changed


@pytest.fixture
def client(peer, key, tmp_path):
    """A client that sends each request once."""
    settings = Settings(peer.url, None, "llm", Secret(key), tmp_path)
    with Client(settings, transport=Transport(peer.url, Secret(key), attempts=1)) as client:
        yield client


@pytest.mark.parametrize("name", ANSWERS)
def test_a_field_of_the_wrong_type_gives_a_result_or_a_voxframe_error(client, peer, reply, monkeypatch, name):
    """Any value in any field of any response gives a result or a VoxframeError."""
    monkeypatch.setattr("voxframe.client.transfers._TRIES", 1)
    method, path, good, use = ANSWERS[name]
    peer.on("GET", "/v2/transcript", PAGE)
    for answer in broken(good):
        peer.on(method, path, reply(json.dumps(answer).encode()))
        try:
            use(client)
        except VoxframeError:
            pass
        except Exception as error:
            raise AssertionError(f"{name}: {json.dumps(answer)[:200]}") from error


#: Whole answers that break the rules of HTTP, and what the error says of each.
NO_HTTP = {
    b"SSH-2.0-OpenSSH_9.9\r\n": "BadStatusLine SSH-2.0",
    b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 200 + b"\r\n{}": "got more than 100 headers",
    b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 100_000 + b"\r\n\r\n{}": "LineTooLong",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!": "its compressed body is broken",
}


@pytest.mark.parametrize(("answer", "says"), NO_HTTP.items(), ids=NO_HTTP.values())
def test_a_response_that_is_not_http_is_described(raw, key, answer, says):
    """The error describes the violation of HTTP instead of a lost connection."""
    raw.script = lambda connection: connection.sendall(answer)
    with pytest.raises(ServiceUnreachableError, match=f"is not valid HTTP: .*{says}.*Check base_url"):
        Transport(raw.url, Secret(key)).request("GET", "/x", attempts=1)


@pytest.mark.parametrize("content_type", ["text/html", "application/json", "text/plain"])
@pytest.mark.parametrize("call", ["transcript", "subtitles", "list", "redacted_audio"])
def test_a_web_page_is_never_taken_for_a_result(client, peer, reply, tmp_path, call, content_type):
    """A sign-in page with status 200 is an error for every endpoint, including captions."""
    page = reply(b"\n<!DOCTYPE html><html><title>Sign in</title></html>", headers={"Content-Type": content_type})
    for path in ("/v2/transcript/t1", "/v2/transcript/t1/srt", "/v2/transcript", "/v2/transcript/t1/redacted-audio"):
        peer.on("GET", path, page)
    calls = {
        "transcript": lambda: client.transcript("t1"),
        "subtitles": lambda: client.subtitles("t1", path=tmp_path / "a.srt"),
        "list": client.list,
        "redacted_audio": lambda: client.redacted_audio("t1"),
    }
    with pytest.raises(UnreadableAnswerError, match="a web page titled 'Sign in'"):
        calls[call]()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["wait", "wait_all"])
@pytest.mark.parametrize("answer", [{}, {"id": "t1", "status": None}, {"id": "t1", "status": ["completed"]}])
def test_a_job_without_a_status_ends_the_wait(client, peer, monkeypatch, how, answer):
    """After the tolerated outage, the error says that the response cannot be read."""
    monkeypatch.setattr(async_bridge, "LOCAL_OUTAGE_S", 0.7)
    peer.on("GET", "/v2/transcript/t1", answer)
    handle = client.transcript("t1")
    with pytest.raises(UnreadableAnswerError, match="cannot be read"):
        getattr(client, how)([handle] if how == "wait_all" else handle)


@pytest.mark.parametrize(
    "link", ["{url}/v2/transcript?before_id=t1", "{url}/v2/transcript?n={n}", "http://[::1", "?" * 9000]
)
def test_a_looping_list_ends(client, peer, reply, link):
    """Iteration ends although links repeat or lead to new URLs of the same page; each item is returned once."""
    asked = []

    def page(request):
        asked.append(request)
        found = copy.deepcopy(PAGE)
        found["page_details"]["prev_url"] = link.replace("{url}", peer.url).replace("{n}", str(len(asked)))
        return reply(found)

    peer.on("GET", "/v2/transcript", page)
    assert [item.id for item in client.iter_transcripts()] == ["t1"]
    assert len(asked) < 100


@pytest.mark.parametrize(
    ("first", "later"),
    [((416, {}), (416, {})), ((206, {"Content-Range": "bytes 5-9/10"}), (206, {"Content-Range": "bytes 5-9/10"})),
     ((206, {"Content-Range": "bytes x-y/z"}), (416, {"Content-Range": "bytes */" + "9" * 5000}))],
)  # fmt: skip
def test_unrequested_ranges_are_refused(client, peer, reply, tmp_path, first, later):
    """A download with unrequested ranges fails after a few attempts and writes no file."""
    peer.on("GET", "/v2/transcript/t1/redacted-audio", {"redacted_audio_url": f"{peer.url}/a.mp3"})
    peer.on("GET", "/a.mp3", *[reply(b"audio", status, headers) for status, headers in (first, later)])
    with pytest.raises(ServiceError):
        client.redacted_audio("t1").save(tmp_path / "a.mp3")
    assert len(peer.made("GET", "/a.mp3")) < 10
    assert not (tmp_path / "a.mp3").exists()


@pytest.mark.parametrize("expires", ["\u00b2", "9" * 5000, "-1", "nan", ""])
def test_a_url_with_an_invalid_expiry_is_requested(client, peer, reply, tmp_path, expires):
    """A URL with an invalid expiry time is requested, because the server knows better."""
    peer.on("GET", "/v2/transcript/t1/redacted-audio", {"redacted_audio_url": f"{peer.url}/a.mp3?Expires={expires}"})
    peer.on("GET", "/a.mp3", reply(b"audio"))
    assert client.redacted_audio("t1").save(tmp_path / "a.mp3").read_bytes() == b"audio"


def test_control_characters_are_removed_from_a_status(client, peer, capsys, monkeypatch):
    """Escape sequences in a status are not written to the screen."""
    monkeypatch.setattr("voxframe._progress.DELAY_S", 0.0)
    peer.on("GET", "/v2/transcript/t1", {"id": "t1", "status": "x\x1b]0;owned\x07\x1b[2J"}, TRANSCRIPT)
    client.wait(client.transcript("t1"), progress=True)
    shown = capsys.readouterr().err
    assert "owned" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-13-45", "9" * 5000])
def test_a_time_out_of_range_is_none(client, peer, moment):
    """A time that UTC cannot represent is None; the item stays in the list."""
    page = copy.deepcopy(PAGE)
    page["transcripts"][0]["created"] = moment
    peer.on("GET", "/v2/transcript", page)
    assert [item.created for item in client.list()] == [None]
