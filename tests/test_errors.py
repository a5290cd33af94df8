import inspect
import pickle
import re

import pytest

from voxframe import errors
from voxframe.client.response import HTTPResponse

KINDS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.VoxframeError) and kind.__module__ == errors.__name__
]  # fmt: skip


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    """The tree in the docstring has every error below its parent, with its builtin base."""
    drawn = {}
    stack = []
    for line in errors.__doc__.splitlines():
        found = re.match(r"^    ([ │├└─]*)(\w+Error)(?:\((\w+)\))?", line)
        if found:
            depth = len(found[1]) // 4
            stack[depth:] = [found[2]]
            drawn[found[2]] = (stack[depth - 1] if depth else None, found[3])
    assert set(drawn) == {kind.__name__ for kind in KINDS}
    for kind in KINDS[:]:
        parent, builtin = drawn[kind.__name__]
        bases = [base.__name__ for base in kind.__bases__]
        expected = [parent or "Exception"] + ([builtin] if builtin else [])
        assert bases == expected, kind


@pytest.mark.parametrize("kind", [k for k in KINDS if issubclass(k, errors.APIError)])
def test_an_answer_error_says_status_method_path_and_request_id(kind):
    """The message of an API error has status, method, path and request id, and pickling keeps them."""
    error = kind("it failed", status=418, method="GET", path="/v2/transcript/x", request_id="r-1")
    assert str(error) == "it failed (HTTP 418, GET /v2/transcript/x, request id r-1)"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.status, again.request_id) == (kind, str(error), 418, "r-1")


@pytest.mark.parametrize("kind", [k for k in KINDS if not issubclass(k, errors.APIError)])
def test_every_error_is_an_ordinary_exception(kind):
    """Errors can be raised, shown and pickled."""
    two = issubclass(kind, errors.TranscriptError | errors.MissingExtraError)
    error = kind("id", "because") if two else kind("because")
    assert "because" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errors.TranscriptError("t1", "no speech"), "transcript t1 failed: no speech"),
        (errors.TranscriptError(None, None), "transcript (no id) failed: the service gave no reason"),
        (
            errors.MissingExtraError("sql", "Corpus.sql"),
            "Corpus.sql needs a dependency that is not installed; run: pip install 'voxframe[sql]'",
        ),
        (errors.StreamError(), f"the service ended the session. {errors.StreamError.advice}"),
        (
            errors.StreamError("Too long. ", code=4033, session_id="s1"),
            f"the service ended the session: Too long (close code 4033, session s1). {errors.StreamError.advice}",
        ),
    ],
)
def test_an_error_says_what_it_was_given(error: errors.VoxframeError, says: str):
    """Errors that build their message from data name all of it, and nothing that is not known."""
    assert str(error) == says


def test_only_refusals_are_safe_to_repeat():
    """Rejected requests were not acted on; after a broken connection or a server error the request may have been."""
    for kind in (errors.BadRequestError, errors.AuthenticationError, errors.NotFoundError, errors.RateLimitError):
        assert kind.possibly_delivered is False
    for kind in (
        errors.ServiceUnreachableError,
        errors.ServiceTimeoutError,
        errors.ServerError,
        errors.UnreadableAnswerError,
    ):
        assert kind.possibly_delivered is True


def api_error(status):
    """Return the error that the client raises for a response with this status."""
    return HTTPResponse(status, {}, b"", "GET", "/x").error()


@pytest.mark.parametrize(
    ("status", "transient"),
    [(302, False), (400, False), (401, False), (403, False), (404, False), (408, True), (409, False), (413, False),
     (422, False), (425, True), (429, True), (500, True), (501, False), (502, True), (503, True), (504, True),
     (505, False), (507, True), (520, True), (529, True)],
)  # fmt: skip
def test_which_statuses_are_transient(status, transient):
    """RFC 9110 and RFC 6585: these statuses may pass, as may unknown statuses from 500 on."""
    assert api_error(status).transient is transient


def test_which_other_errors_are_transient():
    """A broken or silent connection is transient; an invalid argument, a closed client and a rejected key are not."""
    transient = {kind.__name__ for kind in KINDS if issubclass(kind, errors.ServiceError) and kind.transient is True}
    assert transient == {
        "ServiceUnreachableError", "ServiceTimeoutError", "UnreadableAnswerError", "StreamCutError",
        "StreamUnavailableError", "SessionExpiredError", "TooManyStreamsError",
    }  # fmt: skip
    assert errors.ServiceError("the client is closed").transient is False
    assert errors.StreamAuthenticationError().transient is False


def test_a_request_timeout_may_have_been_acted_on():
    """After 408 the service may have acted on the request; after 425 and 429 it has not."""
    assert [api_error(status).possibly_delivered for status in (408, 425, 429)] == [True, False, False]


@pytest.mark.parametrize(
    "name", ["Signature", "sig", "auth_key", "rlkey", "hmac", "jwt", "pass", "hdnts", "access_token", "session_id"]
)  # fmt: skip
def test_secrets_in_urls_are_masked(name):
    """No message shows the value of a query parameter by which storage services and CDNs sign a URL."""
    message = str(errors.VoxframeError(f"no audio at https://b.example/a.mp3?v=1&{name}=hidden&keyword=shown"))
    assert message == f"no audio at https://b.example/a.mp3?v=1&{name}=***&keyword=shown"
