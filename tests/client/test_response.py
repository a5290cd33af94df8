import json

import pytest

from voxframe import errors
from voxframe.client.response import HTTPResponse, as_float, as_int, clean, parse_json


def answer(status, body=b"", headers=None, path="/v2/transcript/abc", method="GET"):
    return HTTPResponse(
        status, headers or {}, body if isinstance(body, bytes) else json.dumps(body).encode(), method, path
    )


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
        (429, "error_TooManyRequests", errors.RateLimitError, "Too Many Requests. Try again later"),
        (
            500,
            "error_InternalServerError",
            errors.ServerError,
            "Internal Server Error. The service has a problem",
        ),
        (
            500,
            "error_server_500",
            errors.ServerError,
            "Server error, developers have been alerted. The service has a problem",
        ),
    ],
)
def test_every_documented_error_body(payload_folder, status, example, kind, message):
    """An error has the text of the service, the next step, status, method and path."""
    error = answer(status, (payload_folder / f"{example}.json").read_bytes()).error()
    assert type(error) is kind
    assert str(error) == f"{message} (HTTP {status}, GET /v2/transcript/abc)"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (503, "service unavailable; it has no body. The service has a problem"),
        (504, "gateway timeout; it has no body. The service has a problem"),
    ],
)
def test_an_error_without_a_body_has_a_message(status, message):
    """A 503 or 504 without a body still gives a message that describes it."""
    assert str(answer(status).error()) == f"{message} (HTTP {status}, GET /v2/transcript/abc)"


def test_an_html_error_page_is_one_line():
    """An HTML error page gives one line with the title of the page."""
    page = b"<!doctype html><html><head><title>502\n Bad <Gateway></title></head><body>" + b"x" * 5000
    error = answer(502, page, {"x-request-id": "r-1"}).error()
    assert isinstance(error, errors.ServerError)
    assert str(error) == (
        "bad gateway; it is a web page titled '502 Bad <Gateway>', not JSON. The service has a problem "
        "(HTTP 502, GET /v2/transcript/abc, request id r-1)"
    )


@pytest.mark.parametrize("body", [b'{"error": "cut', b'{"status": "error"}', b"nonsense", b"[]", b'{"error": 5}'])
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_the_status_decides_the_error(status, body):
    """Cut JSON, JSON without an error text and plain text give the error of their status."""
    error = answer(status, body).error()
    assert error.status == status
    assert f"(HTTP {status}, GET /v2/transcript/abc)" in str(error)
    assert type(error) is type(answer(status, {"error": "x"}).error())


def test_retry_after_is_in_the_error():
    """The time in Retry-After is in the message and in `retry_after`."""
    error = answer(429, {"error": "Too Many Requests"}, {"retry-after": "30"}).error()
    assert error.retry_after == 30.0
    assert str(error) == "Too Many Requests. Try again in 30 s (HTTP 429, GET /v2/transcript/abc)"


def test_a_web_page_with_status_200_is_an_error():
    """A sign-in page with status 200 is an UnreadableAnswerError, not a transcript."""
    with pytest.raises(errors.UnreadableAnswerError, match=r"it is a web page titled 'Log in'.*Check that base_url"):
        answer(200, b"<html><title>Log in</title></html>").data  # noqa: B018 - reading it is what fails


def test_control_characters_are_removed_from_errors():
    """Escape sequences, line breaks and direction marks in an error of the service are removed."""
    said = str(answer(400, {"error": "bad\x1b[2J\r\nnext\u202eline" + "x" * 1000}).error())
    assert not {"\x1b", "\r", "\n", "\u202e"} & set(said)
    assert len(said) < 600
    assert clean("a\x00b") == "a b"


def test_a_long_text_is_masked_before_it_is_cut():
    """A login that is cut off before its "@" is not shown."""
    said = str(answer(400, {"error": "x" * 450 + " https://ada:" + "unseen" * 20 + "@host/a.mp3"}).error())
    assert "https://***@host/a.mp3" in said
    assert "unseen" not in said


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
    """A byte order mark, invalid UTF-8 and repeated keys are accepted."""
    assert parse_json(content) == value


def test_nan_is_read():
    """NaN is accepted although it is not valid JSON."""
    assert parse_json(b'{"a": NaN}')["a"] != parse_json(b'{"a": NaN}')["a"]


def test_deeply_nested_json_is_an_error():
    """A hundred thousand nested brackets raise a ValueError."""
    with pytest.raises(ValueError, match=r"nested|recursion|depth"):
        parse_json(b"[" * 100_000 + b"]" * 100_000)


def test_the_rate_limit_window_matters_after_a_429_only():
    """Without Retry-After, a 429 waits for the next window, and a 503 has no time to wait."""
    headers = {"x-ratelimit-reset": "30"}
    waits = [HTTPResponse(status, headers, b"", "GET", "/x").retry_after_s for status in (429, 503)]
    assert waits == [30.0, None]


def test_json_values_are_converted_leniently():
    """Numbers in quotes and whole floats are numbers; truth values, text and infinity are not."""
    assert [as_int(value) for value in (42, 42.0, "42", 2**60)] == [42, 42, 42, 2**60]
    assert [as_float(value) for value in (True, False, "many", "inf", None, [1])] == [None] * 6
