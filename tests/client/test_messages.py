"""Error messages for every documented status and limit; those of streams are in `stream/test_stream_faults`."""

import asyncio

import pandas as pd
import pytest

from voxframe import errors
from voxframe.client import Client
from voxframe.client.http import Transport

PROBLEM = "The service has a problem"

#: Status, body, headers; the error and its message. 503 and 504 have no body; 502 comes from a proxy.
STATUSES = [
    (400, {"error": "audio_url is required"}, {}, errors.BadRequestError, "audio_url is required"),
    (
        401,
        {"error": "Authentication error, API token missing/invalid"},
        {},
        errors.AuthenticationError,
        (
            "Authentication error, API token missing/invalid. Check the key: connect(api_key=...) or the variable "
            "VOXFRAME_API_KEY"
        ),
    ),
    (
        404,
        {"error": "Not found"},
        {},
        errors.NotFoundError,
        "Not found. Check the id, and that it was made with this key",
    ),
    (
        429,
        {"error": "Too Many Requests"},
        {"Retry-After": "30"},
        errors.RateLimitError,
        "Too Many Requests. Try again in 30 s",
    ),
    (
        429,
        {"error": "Too Many Requests"},
        {"Retry-After": "Thu, 01 Jan 2015 00:00:00 GMT"},
        errors.RateLimitError,
        "Too Many Requests. Try again later",
    ),
    (
        500,
        {"error": "Internal Server Error", "status": "error", "more": 1},
        {},
        errors.ServerError,
        f"Internal Server Error. {PROBLEM}",
    ),
    (
        502,
        b"<html><title>502 Bad Gateway</title></html>",
        {},
        errors.ServerError,
        f"bad gateway; it is a web page titled '502 Bad Gateway', not JSON. {PROBLEM}",
    ),
    (503, b"", {}, errors.ServerError, f"service unavailable; it has no body. {PROBLEM}"),
    (504, b"", {}, errors.ServerError, f"gateway timeout; it has no body. {PROBLEM}"),
    (
        200,
        b'{"id": "t1", "te',
        {},
        errors.UnreadableAnswerError,
        (
            "the response of the service cannot be read: its JSON is incomplete or invalid after 16 bytes. "
            "Check that base_url is the URL of the API"
        ),
    ),
]


@pytest.mark.parametrize(("status", "body", "headers", "kind", "message"), STATUSES)
def test_every_status(peer, settings, reply, key, status, body, headers, kind, message):
    """Each status gives its error class and a message with reason, next step, status, method, path and request id."""
    peer.on("GET", "/v2/transcript/t1", reply(body, status, {"x-request-id": "r-1", **headers}))
    with (
        Client(settings, transport=Transport(settings.base_url, settings.api_key, attempts=1)) as client,
        pytest.raises(errors.APIError) as caught,
    ):
        client.transcript("t1")
    assert type(caught.value) is kind
    later = ". Try again later" if kind in (errors.ServerError, errors.UnreadableAnswerError) else ""
    assert str(caught.value) == f"{message} (HTTP {status}, GET /v2/transcript/t1, request id r-1){later}"
    assert key not in str(caught.value) + repr(caught.value)
    assert len(peer.requests) == 1


@pytest.mark.parametrize("status", [200, 408, 500, 504])
def test_no_error_of_a_possibly_charged_request_advises_to_repeat_it(peer, settings, reply, status):
    """A job that may exist is to be looked for first, whatever status its request ended with."""
    peer.on("POST", "/v2/transcript", reply(b"{", status))
    with Client(settings) as client, pytest.raises(errors.APIError) as caught:
        client.submit("https://audio.example/a.mp3")
    assert caught.value.possibly_delivered
    assert "see client.list() before you send it again" in str(caught.value)
    assert "ry again" not in str(caught.value)
    assert len(peer.requests) == 1


@pytest.mark.parametrize("body", [{"status": "queued"}, []])
def test_a_created_job_without_an_id_may_exist(client, peer, body):
    """A response without the id of the job is reported as such, with the advice to look for the job first."""
    peer.on("POST", "/v2/transcript", body)
    with pytest.raises(errors.UnreadableAnswerError, match="it lacks a field that it must have") as caught:
        client.submit("https://audio.example/a.mp3")
    assert "see client.list() before you send it again" in str(caught.value)
    assert len(peer.requests) == 1


def test_an_upload_that_failed_can_be_repeated(peer, settings, reply, monkeypatch):
    """An upload costs nothing, so its error advises to try again."""
    monkeypatch.setattr("voxframe.client.transfers._TRIES", 1)
    peer.on("POST", "/v2/upload", reply(b"{}", 500))
    peer.on("GET", "/v2/transcript", {"page_details": {}, "transcripts": []})
    with Client(settings) as client, pytest.raises(errors.ServerError, match=r"Try again later$"):
        client.upload(b"RIFF")


def test_a_failed_transcript_raises_nothing(client, peer):
    """A failed transcript has its reason in `.error`; `raise_for_status` raises an error with id and reason."""
    peer.on("GET", "/v2/transcript/t1", {"id": "t1", "status": "error", "error": "Audio duration is too short."})
    transcript = client.wait("t1")
    assert transcript.error == "Audio duration is too short."
    with pytest.raises(errors.TranscriptError) as caught:
        transcript.raise_for_status()
    assert str(caught.value) == "transcript t1 failed: Audio duration is too short."


#: Every limit of the interface that can be known before anything is sent: the call, and what is said.
LIMITS = {
    "transcripts": (
        lambda c: c.summarize([f"t{n}" for n in range(101)]),
        "more than 100 transcripts were given; a request takes 1 to 100. Split them into several requests",
    ),
    "hours": (
        lambda c: c.summarize(pd.DataFrame({"transcript_id": ["a", "b"], "audio_duration_s": [1e5, 3e5]})),
        "the transcripts are 111.1 hours long; a request takes up to 100 hours. Split them into several requests",
    ),
    "max_output_size": (
        lambda c: c.summarize("t1", max_output_size=4001),
        "max_output_size must be a whole number from 1 to 4000 tokens, got 4001",
    ),
    "temperature": (
        lambda c: c.task("x", "t1", temperature=1.1),
        "temperature must be a number from 0 to 1, got 1.1",
    ),
    "speakers_expected": (
        lambda c: c.submit(b"x", speakers_expected=11),
        "speakers_expected must be a whole number from 1 to 10, not 11",
    ),
    "content_safety_confidence": (
        lambda c: c.submit(b"x", content_safety=True, content_safety_confidence=101),
        "content_safety_confidence must be a whole number from 25 to 100, not 101",
    ),
    "language_confidence_threshold": (
        lambda c: c.submit(b"x", language_confidence_threshold=1.5),
        "language_confidence_threshold must be a number from 0 to 1, not 1.5",
    ),
    "speech_threshold": (
        lambda c: c.submit(b"x", speech_threshold=-0.5),
        "speech_threshold must be a number from 0 to 1, not -0.5",
    ),
    "audio_end_at": (
        lambda c: c.submit(b"x", audio_end_at=159),
        "audio_end_at must be a whole number of at least 160 ms, not 159",
    ),
    "word search": (
        lambda c: c.word_search("t1", "a b c d e f"),
        "the phrase 'a b c d e f' has 6 words; up to 5 are allowed. Search for fewer words",
    ),
    "streaming word_boost": (
        lambda c: c.stream(b"", sample_rate=8000, word_boost=["x" * 2497]),
        "word_boost is 2501 characters long as JSON, and at most 2500 are allowed; give fewer words",
    ),
    "end_utterance_silence_threshold": (
        lambda c: c.stream(b"", sample_rate=8000, end_utterance_silence_threshold=20_001),
        "end_utterance_silence_threshold must be a whole number from 0 to 20000 ms, got 20001",
    ),
    "message_ms": (
        lambda c: c.stream(b"", sample_rate=8000, message_ms=99),
        "message_ms must be a whole number from 100 to 2000 ms, got 99",
    ),
    "expires_in": (
        lambda c: c.token(59),
        "expires_in must be a whole number from 60 to 360000 seconds, got 59",
    ),
    "list": (
        lambda c: c.list(limit=201),
        "limit must be a whole number from 1 to 200 transcripts per page, got 201",
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_every_limit(client, peer, limit):
    """A value beyond a limit is named with the allowed range before anything is sent."""
    past, message = LIMITS[limit]
    with pytest.raises(errors.OptionError) as caught:
        past(client)
    assert message in str(caught.value)
    assert peer.requests == []


@pytest.mark.parametrize(("status", "words"), [(413, {"error": "File too large"}), (413, b"")])
def test_a_file_that_is_too_large(peer, client, reply, status, words):
    """A 413 reports that the file is too large for the service."""
    peer.on("POST", "/v2/upload", reply(words, status))
    with pytest.raises(errors.BadRequestError, match=r"too large.*The file is too large for the service \(HTTP 413"):
        client.upload(b"x" * 100)
    assert len(peer.requests) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.transcript("\ud800"), "is not the id of a transcript"),
        (lambda c: c.wait(None), "None is not the id of a transcript"),
        (lambda c: c.wait_all(5), "transcripts must be handles or ids, such as df['transcript_id'], got int"),
        (lambda c: c.wait_all(pd.DataFrame({"transcript_id": ["t1"]})), "df['transcript_id'], got DataFrame"),
        (lambda c: c.wait_all(["t1", None]), "None is not the id of a transcript"),
        (lambda c: c.ask([None], "t1"), "None is not a question; give a string, or a dict with 'question'"),
        (lambda c: c.subtitles("t1", path="/"), "/ is a directory; give the name of a file in it"),
        (lambda c: c.subtitles("t1", path="/no/such/a.srt"), "the directory /no/such does not exist"),
        (lambda c: c.subtitles("t1", path=5), "the path must be a str or a Path, got int"),
        (lambda c: c.word_search("t1", None), "None cannot be searched for"),
        (lambda c: c.word_search("t1", "\ud800"), "cannot be searched for"),
        (lambda c: c.list(created_on=5), "created_on must be a date such as '2024-03-11', got 5"),
        (lambda c: c.list(before_id=5), "before_id must be a non-empty text, got 5"),
        (lambda c: c.list(before_id=""), "before_id must be a non-empty text, got ''"),
        (lambda c: c.list(after_id="\ud800"), "after_id must be text that UTF-8 can hold"),
        (lambda c: c.list(created_on=pd.NaT), "created_on must be a date such as '2024-03-11', got NaT"),
        (lambda c: c.list(status="complete"), "status must be one of queued, processing, completed, error (did you"),
        (lambda c: c.list(throttled_only="false"), "throttled_only must be True or False, got 'false'"),
        (lambda c: c.word_search("t1", ["smoke", float("nan")]), "nan cannot be searched for"),
        (lambda c: c.word_search("t1", b"smoke"), "b'smoke' cannot be searched for"),
        (lambda c: c.word_search("t1", {"smoke": 1}), "{'smoke': 1} cannot be searched for"),
        (lambda c: c.word_search("t1", pd.DataFrame({"text": ["smoke"]})), "cannot be searched for"),
        (lambda c: c.subtitles("t1", path=""), "the path is empty"),
        (lambda c: c.upload(""), "the path is empty"),
        (lambda c: c.upload("https://ada:pw@host/a.mp3"), "give the URL to submit() or transcribe() instead"),
        (lambda c: c.ask([{1: 2, "ask": 3}], "t1"), "a question has no field 1"),
        (lambda c: c.wait("t1", timeout="5"), "timeout must be a number of at least 0 seconds, got '5'"),
        (lambda c: c.wait("t1", timeout=-1), "timeout must be a number of at least 0 seconds, got -1"),
        (lambda c: c.wait_all(["t1"], timeout=True), "timeout must be a number of at least 0 seconds, got True"),
        (lambda c: c.redacted_audio("t1", timeout=float("nan")), "timeout must be a number of at least 0 seconds"),
        (lambda c: c.transcribe(b"x", timeout="5"), "timeout must be a number of at least 0 seconds, got '5'"),
        (lambda c: asyncio.run(c.transcribe_async(b"x", timeout="5")), "timeout must be a number of at least 0"),
        (lambda c: c.submit(b"x", word_boost=["\ud800"]), "must be text that UTF-8 can hold"),
        (
            lambda c: c.submit(b"x", extra_body={"new": "\ud800"}),
            "extra_body must be a dict that can be written as JSON",
        ),
        (lambda c: c.submit(b"x", speakers_expected=pd.Series([1, 2])), "speakers_expected must be a whole number"),
        (lambda c: c.submit("https://a.example:80a/a.mp3"), "audio must be an http or https URL"),
        (lambda c: c.submit("https://a.example:99999/a.mp3"), "audio must be an http or https URL"),
        (lambda c: c.summarize(b"t1"), "a column transcript_id, got bytes"),
        (lambda c: c.summarize("t1", context=deep(10_000)), "context cannot be written as JSON"),
    ],
)
def test_invalid_values_are_named(client, peer, call, message):
    """An invalid value raises a voxframe error that names it, and nothing is sent."""
    with pytest.raises(errors.OptionError) as caught:
        call(client)
    assert message in str(caught.value)
    assert peer.requests == []


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def test_a_string_is_one_id(client, peer):
    """`wait_all` takes a string as one id, not as an iterable of characters."""
    peer.on("GET", "/v2/transcript/abc", {"id": "abc", "status": "completed"})
    assert [t.id for t in client.wait_all("abc")] == ["abc"]


def test_a_closed_client_sends_nothing(client, peer):
    """A closed client raises an error that advises to connect again."""
    client.close()
    with pytest.raises(errors.ServiceError, match=r"^the client is closed; call connect\(\) again$"):
        client.list()
    assert peer.requests == []
