"""Generated requests to every endpoint."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.test_llm import done, put

from voxframe import options

SERVICE_ARGUMENTS = ("--llm-requests", "0")
#: Methods of every endpoint except HEAD, which goes with GET.
ENDPOINTS = {
    "/v2/upload": {"POST"},
    "/v2/transcript": {"GET", "POST"},
    "/v2/transcript/{transcript_id}": {"GET", "DELETE"},
    "/v2/transcript/{transcript_id}/srt": {"GET"},
    "/v2/transcript/{transcript_id}/vtt": {"GET"},
    "/v2/transcript/{transcript_id}/paragraphs": {"GET"},
    "/v2/transcript/{transcript_id}/sentences": {"GET"},
    "/v2/transcript/{transcript_id}/word-search": {"GET"},
    "/v2/transcript/{transcript_id}/redacted-audio": {"GET"},
    "/v2/realtime/token": {"POST"},
    "/llm/v3/generate/summary": {"POST"},
    "/llm/v3/generate/task": {"POST"},
    "/llm/v3/generate/question-answer": {"POST"},
    "/llm/v3/generate/action-items": {"POST"},
    "/llm/v3/{request_id}": {"GET", "DELETE"},
}
OPERATIONS = [(method, path) for path, methods in ENDPOINTS.items() for method in sorted(methods)]
#: An address at which nobody listens.
NOBODY = "http://127.0.0.1:9/"

_text = st.text(max_size=8)
_scalar = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 202), st.sampled_from([2**53 + 1, 10**30]), st.floats(), _text
)
_value = st.recursive(
    _scalar, lambda items: st.lists(items, max_size=3) | st.dictionaries(_text, items, max_size=3), max_leaves=6
)
_valid = st.sampled_from([True, 1, 60, 0.5, "en_us", "low", "hash", ["a"], [{"from": ["a"], "to": "b"}], NOBODY])
_question = st.fixed_dictionaries({"question": _text}, optional={"answer_options": _value, "context": _value})
_BODY_FIELDS = [*options.FIELDS, *options.LLM_DEFAULTS, "expires_in", "prompt", "context", "answer_format", "unknown"]
_body = st.dictionaries(st.sampled_from(_BODY_FIELDS), _valid | _value, max_size=6)
_usable = st.fixed_dictionaries(
    {},
    optional={
        "audio_url": st.just(NOBODY),
        "input_text": st.just("We will meet on Monday."),
        "transcript_ids": st.just(["{transcript_id}"]) | _value,
        "sources": st.just([{"id": "{transcript_id}", "type": "transcript"}]) | _value,
        "questions": st.lists(_question) | _value,
    },
)
_query = st.dictionaries(
    st.sampled_from(["limit", "status", "created_on", "before_id", "after_id", "throttled_only", "words"])
    | st.just("chars_per_caption"),
    _text | st.sampled_from(["5", "-1", "2026-01-31", "queued", "true", "we,the whole", "9" * 30]),
    max_size=3,
)


@pytest.fixture(scope="module")
def ids(service) -> dict[str, str]:
    """The ids of a completed transcript and of a language-model answer."""
    transcript_id = put(service)
    return {
        "transcript_id": transcript_id,
        "request_id": done(service, "summary", transcript_ids=[transcript_id])["request_id"],
    }


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_generated_request_ends_in_an_internal_error(service, ids, method, path):
    """Any query and any body get a success or a 4xx with an error object, and the transcript stays as it is."""
    before = service.transcript(ids["transcript_id"])
    if method == "DELETE":
        path = path.rpartition("/")[0] + "/unknown"

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_query, st.builds(dict.__or__, _body, _usable) | _value)
    def sends(query, body):
        content = json.dumps(body).replace("{transcript_id}", ids["transcript_id"]) if method == "POST" else None
        answer = service.request(method, path.format(**ids), params=query, data=content)
        assert answer.status_code < 500, (answer.text, query, body)
        if answer.status_code >= 400:
            assert answer.json().keys() == {"error"}

    sends()
    assert service.transcript(ids["transcript_id"]) == before


@pytest.mark.parametrize("path", ENDPOINTS)
def test_other_methods_are_refused_with_the_allowed_ones(service, path):
    """Every method that an endpoint does not have is a 405, with its methods in Allow."""
    allowed = ENDPOINTS[path] | ({"HEAD"} if "GET" in ENDPOINTS[path] else set())
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - allowed:
        answer = service.request(method, path.replace("{", "").replace("}", ""))
        assert answer.status_code == 405, method
        assert answer.json().keys() == {"error"}
        assert set(answer.headers["Allow"].split(", ")) == allowed
