import inspect
import pickle
import re

import pytest

from voxframe import errors

KINDS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.VoxframeError) and kind.__module__ == errors.__name__
]  # fmt: skip


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    """Every error is drawn under its parent, with the builtin it also is."""
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
    """The message of an error answer has all that support asks for, and it goes through pickle whole."""
    error = kind("it failed", status=418, method="GET", path="/v2/transcript/x", request_id="r-1")
    assert str(error) == "it failed (HTTP 418, GET /v2/transcript/x, request id r-1)"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.status, again.request_id) == (kind, str(error), 418, "r-1")


@pytest.mark.parametrize("kind", [k for k in KINDS if not issubclass(k, errors.APIError)])
def test_every_error_is_an_ordinary_exception(kind):
    """Errors can be raised, shown and sent to another process."""
    two = issubclass(kind, errors.TranscriptError | errors.MissingExtraError)
    error = kind("id", "because") if two else kind("because")
    assert "because" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_only_refusals_are_safe_to_repeat():
    """A refused request was not acted on; a broken connection or a server error may have come after the deed."""
    for kind in (errors.BadRequestError, errors.AuthenticationError, errors.NotFoundError, errors.RateLimitError):
        assert kind.may_have_arrived is False
    for kind in (
        errors.ServiceUnreachableError,
        errors.ServiceTimeoutError,
        errors.ServerError,
        errors.UnreadableAnswerError,
    ):
        assert kind.may_have_arrived is True
