"""What a user sees for every documented status and limit, over the wire; close codes: `stream/test_stream_faults`."""

import pandas as pd
import pytest

from voxframe import errors
from voxframe.service import Client
from voxframe.service.http import Transport

TRY_LATER = "The problem is at the service; try again later"

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
        "Too Many Requests. Ask again in 30 s",
    ),
    (
        429,
        {"error": "Too Many Requests"},
        {"Retry-After": "Thu, 01 Jan 2015 00:00:00 GMT"},
        errors.RateLimitError,
        "Too Many Requests. Ask again in 0 s",
    ),
    (
        500,
        {"error": "Internal Server Error", "status": "error", "more": 1},
        {},
        errors.ServerError,
        f"Internal Server Error. {TRY_LATER}",
    ),
    (
        502,
        b"<html><title>502 Bad Gateway</title></html>",
        {},
        errors.ServerError,
        f"bad gateway; it is a web page titled '502 Bad Gateway', not an answer of the service. {TRY_LATER}",
    ),
    (503, b"", {}, errors.ServerError, f"service unavailable; it has no body. {TRY_LATER}"),
    (504, b"", {}, errors.ServerError, f"gateway timeout; it has no body. {TRY_LATER}"),
    (
        200,
        b'{"id": "t1", "te',
        {},
        errors.UnreadableAnswerError,
        (
            "the service's answer cannot be read: its JSON is cut short or broken after 16 bytes. Check that base_url "
            "is the address of the service's API, and try again"
        ),
    ),
]


@pytest.mark.parametrize(("status", "body", "headers", "kind", "message"), STATUSES)
def test_every_status(peer, settings, reply, key, status, body, headers, kind, message):
    """The error's class, and its whole message: what happened, what to do, status, method, path, request id, no key."""
    peer.on("GET", "/v2/transcript/t1", reply(body, status, {"x-request-id": "r-1", **headers}))
    with (
        Client(settings, transport=Transport(settings.base_url, settings.api_key, attempts=1)) as client,
        pytest.raises(errors.APIError) as caught,
    ):
        client.transcript("t1")
    assert type(caught.value) is kind
    assert str(caught.value) == f"{message} (HTTP {status}, GET /v2/transcript/t1, request id r-1)"
    assert key not in str(caught.value) + repr(caught.value)
    assert len(peer.requests) == 1


def test_a_failed_transcript_is_a_200_and_a_value(client, peer):
    """No exception: the reason is in `.error`, and an exception for those who ask for one has id and reason."""
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
        "more than 100 transcripts were given; a request takes 1 to 100. Ask in several requests",
    ),
    "hours": (
        lambda c: c.summarize(pd.DataFrame({"transcript_id": ["a", "b"], "audio_duration_s": [1e5, 3e5]})),
        "the transcripts are 111.1 hours long; a request takes up to 100 hours. Ask in several requests",
    ),
    "max_output_size": (
        lambda c: c.summarize("t1", max_output_size=4001),
        "max_output_size is 4001; give a whole number from 1 to 4000 tokens",
    ),
    "temperature": (
        lambda c: c.task("x", "t1", temperature=1.1),
        "temperature is 1.1; give a number from 0 to 1",
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
        "the phrase 'a b c d e f' has 6 words; up to 5 are allowed. Search for a part of it",
    ),
    "streaming word_boost": (
        lambda c: c.stream(b"", sample_rate=8000, word_boost=["x" * 2497]),
        "word_boost is 2501 characters long as JSON, and at most 2500 are taken; give fewer words",
    ),
    "end_utterance_silence_threshold": (
        lambda c: c.stream(b"", sample_rate=8000, end_utterance_silence_threshold=20_001),
        "end_utterance_silence_threshold is 20001; it must be a whole number from 0 to 20000 ms",
    ),
    "message_ms": (
        lambda c: c.stream(b"", sample_rate=8000, message_ms=99),
        "message_ms is 99; it must be a whole number from 100 to 2000 ms",
    ),
    "expires_in": (
        lambda c: c.token(59),
        "expires_in is 59; it must be a whole number from 60 to 360000 seconds",
    ),
    "list": (
        lambda c: c.list(limit=201),
        "limit is 201; give the transcripts of a page, a whole number from 1 to 200",
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_every_limit(client, peer, limit):
    """A value past a limit is named with what is allowed, before anything is sent."""
    past, message = LIMITS[limit]
    with pytest.raises(errors.OptionError) as caught:
        past(client)
    assert message in str(caught.value)
    assert peer.requests == []


@pytest.mark.parametrize(("status", "words"), [(413, {"error": "File too large"}), (413, b"")])
def test_a_file_past_the_limit_of_the_service(peer, client, reply, status, words):
    """How much a service takes is not in the interface; its refusal says that the file is what was too large."""
    peer.on("POST", "/v2/upload", reply(words, status))
    with pytest.raises(errors.BadRequestError, match=r"too large.*The file is too large for the service \(HTTP 413"):
        client.upload(b"x" * 100)
    assert len(peer.requests) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.transcript("\ud800"), "is no id of a transcript"),
        (lambda c: c.wait(None), "None is no id of a transcript"),
        (lambda c: c.wait_all(5), "transcripts is a int; give handles or ids"),
        (lambda c: c.wait_all(pd.DataFrame({"transcript_id": ["t1"]})), "transcripts is a DataFrame; give handles or"),
        (lambda c: c.wait_all(["t1", None]), "None is no id of a transcript"),
        (lambda c: c.ask([None], "t1"), "None is no question; give a text, or a dict with 'question'"),
        (lambda c: c.subtitles("t1", path="/"), "/ is a directory; give the name of a file in it"),
        (lambda c: c.subtitles("t1", path="/no/such/a.srt"), "the directory /no/such does not exist"),
        (lambda c: c.subtitles("t1", path=5), "the path is a int; give a text or a Path"),
        (lambda c: c.word_search("t1", None), "None cannot be searched for"),
        (lambda c: c.word_search("t1", "\ud800"), "cannot be searched for"),
        (lambda c: c.list(created_on=5), "created_on is 5; give a date such as '2024-03-11'"),
        (lambda c: c.list(before_id=5), "before_id is 5; give a text"),
        (lambda c: c.list(status="\ud800"), "give a text"),
        (lambda c: c.summarize(b"t1"), "transcripts is a bytes; give an id, a handle"),
        (lambda c: c.summarize("t1", context=deep(10_000)), "context cannot be written as JSON"),
    ],
)
def test_values_that_make_no_sense(client, peer, call, message):
    """Whatever is given, the error is one of ours and names it; nothing is sent."""
    with pytest.raises(errors.OptionError) as caught:
        call(client)
    assert message in str(caught.value)
    assert peer.requests == []


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def test_one_id_is_one_job_to_wait_for(client, peer):
    """A text is an id, not an iterable of letters."""
    peer.on("GET", "/v2/transcript/abc", {"id": "abc", "status": "completed"})
    assert [t.id for t in client.wait_all("abc")] == ["abc"]


def test_a_closed_client_says_so(client, peer):
    """Nothing is sent, and the message says what to do."""
    client.close()
    with pytest.raises(errors.ServiceError, match=r"^the client is closed; connect\(\) again$"):
        client.list()
    assert peer.requests == []
