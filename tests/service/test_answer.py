import json

import pytest

from voxframe import errors
from voxframe.service.answer import Answer, clean, parse_json


def answer(status, body=b"", headers=None, path="/v2/transcript/abc", method="GET"):
    return Answer(status, headers or {}, body if isinstance(body, bytes) else json.dumps(body).encode(), method, path)


@pytest.mark.parametrize(
    ("status", "example", "kind", "message"),
    [
        (400, "error_BadRequest", errors.BadRequestError, "This is a sample error message"),
        (
            400,
            "error_funds_400",
            errors.BadRequestError,
            "Your current account balance is negative. Please top up to continue using the API",
        ),
        (
            400,
            "error_models_not_in_language_400",
            errors.BadRequestError,
            "The following models are not available in this language: speaker_labels",
        ),
        (
            400,
            "error_unknown_id_400",
            errors.NotFoundError,
            "Transcript lookup error, transcript id not found. Check the id, and that it was made with this key",
        ),
        (
            401,
            "error_Unauthorized",
            errors.AuthenticationError,
            (
                "Authentication error, API token missing/invalid. Check the key: connect(api_key=...) or the variable "
                "VOXFRAME_API_KEY"
            ),
        ),
        (404, "error_NotFound", errors.NotFoundError, "Not found. Check the id, and that it was made with this key"),
        (429, "error_TooManyRequests", errors.RateLimitError, "Too Many Requests. Wait and ask again"),
        (
            500,
            "error_InternalServerError",
            errors.ServerError,
            "Internal Server Error. The problem is at the service; try again later",
        ),
        (
            500,
            "error_server_500",
            errors.ServerError,
            "Server error, developers have been alerted. The problem is at the service; try again later",
        ),
    ],
)
def test_every_documented_error_answer(payload_folder, status, example, kind, message):
    """What a user sees for the service's own error bodies: its words, the next step, status, method and path."""
    error = answer(status, (payload_folder / f"{example}.json").read_bytes()).error()
    assert type(error) is kind
    assert str(error) == f"{message} (HTTP {status}, GET /v2/transcript/abc)"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (503, "service unavailable; it has no body. The problem is at the service; try again later"),
        (504, "gateway timeout; it has no body. The problem is at the service; try again later"),
    ],
)
def test_unavailable_and_gateway_timeout_have_no_body(status, message):
    """503 and 504 come with nothing; the message still says what happened."""
    assert str(answer(status).error()) == f"{message} (HTTP {status}, GET /v2/transcript/abc)"


def test_a_web_page_is_named_and_not_repeated():
    """An HTML error page of a proxy becomes one line with its title."""
    page = b"<!doctype html><html><head><title>502\n Bad <Gateway></title></head><body>" + b"x" * 5000
    error = answer(502, page, {"x-request-id": "r-1"}).error()
    assert isinstance(error, errors.ServerError)
    assert str(error) == (
        "bad gateway; it is a web page titled '502 Bad <Gateway>', not an answer of the service. The problem is at the "
        "service; try again later (HTTP 502, GET /v2/transcript/abc, request id r-1)"
    )


@pytest.mark.parametrize("body", [b'{"error": "cut', b'{"status": "error"}', b"nonsense", b"[]", b'{"error": 5}'])
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_an_error_body_of_any_kind_is_still_the_right_error(status, body):
    """Cut JSON, no error text, plain text: the kind and the status hold."""
    error = answer(status, body).error()
    assert error.status == status
    assert f"(HTTP {status}, GET /v2/transcript/abc)" in str(error)
    assert type(error) is type(answer(status, {"error": "x"}).error())


def test_the_wait_of_a_rate_limit_is_in_message_and_error():
    """Retry-After is read, and said."""
    error = answer(429, {"error": "Too Many Requests"}, {"retry-after": "30"}).error()
    assert error.retry_after == 30.0
    assert str(error) == "Too Many Requests. Ask again in 30 s (HTTP 429, GET /v2/transcript/abc)"


def test_a_success_that_is_no_json_names_what_it_is():
    """A captive portal answers 200 with a page: an error, not a transcript."""
    with pytest.raises(errors.UnreadableAnswerError, match=r"it is a web page titled 'Log in'.*Check that base_url"):
        answer(200, b"<html><title>Log in</title></html>").data  # noqa: B018 - reading it is what fails


def test_hostile_text_cannot_move_the_cursor():
    """Escape sequences, line breaks and direction marks of a service's error do not reach a terminal."""
    said = str(answer(400, {"error": "bad\x1b[2J\r\nnext\u202eline" + "x" * 1000}).error())
    assert not {"\x1b", "\r", "\n", "\u202e"} & set(said)
    assert len(said) < 600
    assert clean("a\x00b") == "a b"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b"[1]", [1]),
    ],
)
def test_json_is_read_leniently(content, value):
    """A byte order mark, invalid UTF-8 and repeated keys lose nothing."""
    assert parse_json(content) == value


def test_not_a_number_is_read():
    """NaN is no JSON, and it is on the wire all the same."""
    assert parse_json(b'{"a": NaN}')["a"] != parse_json(b'{"a": NaN}')["a"]


def test_json_nested_without_end_is_an_error():
    """A hundred thousand brackets do not end the process."""
    with pytest.raises(ValueError, match=r"nested|recursion|depth"):
        parse_json(b"[" * 100_000 + b"]" * 100_000)
