"""The OpenAPI description, checked against the server by Schemathesis and against the options."""

import json
import string

import jsonschema
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.openapi_run import SERVICE_ARGUMENTS, run

from voxframe import options
from voxframe_server.http.openapi import document
from voxframe_server.http.request_bodies import transcript_request

__all__ = ["SERVICE_ARGUMENTS"]  # the fixture `service` reads it
URL = "http://192.0.2.1/a.mp3"

_text = st.text(string.printable.replace("\n", "") + "é\x7f", max_size=4)
_number = st.one_of(
    st.integers(-2, 202),
    st.sampled_from([159, 160, 2**53, 2**53 + 1, 10**30]),
    st.floats(-1, 2),
    st.integers(0, 200).map(float),
)
_word = st.one_of(_text, st.sampled_from([*options.LANGUAGE_CODES, *options.PII_POLICIES, "low", "wav", "entity_type"]))
_spelling = st.fixed_dictionaries(
    {}, optional={"from": st.one_of(_text, st.lists(_text, max_size=2)), "to": _text, "more": _text}
)
_value = st.one_of(st.none(), st.booleans(), _number, _word, _spelling)
_values = st.one_of(_value, st.lists(_value, max_size=2), st.lists(_word, max_size=3), st.lists(_spelling, max_size=2))


@pytest.mark.long
def test_some_hundreds_of_requests_are_answered_as_described(service, tmp_path):
    """Valid and invalid requests, alone and in sequences, get described responses and no 5xx.

    `python -m tests.benchmarks openapi` sends two thousand.
    """
    made = run(service, tmp_path, examples=8, phases="fuzzing,stateful")
    assert made.passed, made.said
    assert made.cases >= 200


def test_the_description_needs_no_key_and_contains_no_secret(service):
    """The description is served without a key and is the same for every server."""
    answer = requests.get(f"{service.url}/openapi.json", timeout=10)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == document("llm")
    assert answer.json()["openapi"].startswith("3.1")
    foreign = requests.get(f"{service.url}/openapi.json", headers={"Host": "evil.example"}, timeout=10)
    assert foreign.status_code == 400


@pytest.mark.parametrize("name", [name for name in transcript_request()["properties"] if not name.endswith("_url")])
def test_the_schema_accepts_what_the_server_accepts(name):
    """A value is valid according to the description exactly if the server accepts it."""
    body = {"audio_url": URL}
    if name.startswith("webhook_auth_header"):
        body |= {"webhook_auth_header_name": "X-A", "webhook_auth_header_value": "b"}
    validator = jsonschema.Draft202012Validator(transcript_request())

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(_values)
    def agree(value):
        if value is None and name.startswith("webhook_auth_header"):
            return  # a rule between two fields, which the description does not have
        wrongs = options.problems(body | {name: value})
        assert validator.is_valid(body | {name: value}) == (not wrongs), (value, wrongs)

    agree()


@pytest.mark.parametrize("url", ["http://example.org/a", "HTTPS://example.org:8443/a?b=c#d", "http://[::1]/é"])
def test_the_schema_accepts_urls(url):
    """All forms of http and https URLs are valid."""
    jsonschema.validate({"audio_url": url}, transcript_request())


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://", "http:///a", "example.org", 7, None])
def test_the_schema_refuses_values_that_are_not_urls(url):
    """Values that are not http or https URLs are invalid, as in the server."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"audio_url": url}, transcript_request())
    assert options.problems({"audio_url": url}) or url is None


def test_every_endpoint_is_described(service):
    """Every method that is not described is a 405, with the described methods in Allow."""
    for path, described in document("llm")["paths"].items():
        address = service.url + path.replace("{subtitle_format}", "srt").replace("{", "").replace("}", "")
        known = {method for method in described if method != "parameters"}
        for method in {"get", "post", "put", "patch", "delete", "options"} - known:
            answer = service.session.request(method, address, timeout=10)
            assert answer.status_code == 405, (method, path)
            assert answer.json().keys() == {"error"}
            assert {one.strip().lower() for one in answer.headers["Allow"].split(",")} == known | (known & {"get"}) | (
                {"head"} if "get" in known else set()
            )


def test_language_model_is_described_under_its_prefix():
    """The language-model paths start with the configured prefix."""
    paths = document("lm")["paths"]
    assert "/lm/v3/generate/summary" in paths
    assert not [path for path in paths if path.startswith("/llm/")]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("transcripts/queued.json", "Transcript"),
        ("transcripts/completed.json", "Transcript"),
        ("transcripts/deleted.json", "Transcript"),
        ("Transcript.json", "Transcript"),
        ("TranscriptList.json", "TranscriptList"),
        ("SentencesResponse.json", "Sentences"),
        ("ParagraphsResponse.json", "Paragraphs"),
        ("WordSearchResponse.json", "WordSearch"),
        ("RedactedAudioResponse.json", "RedactedAudio"),
        ("UploadedFile.json", "Upload"),
        ("RealtimeTemporaryTokenResponse.json", "Token"),
        ("PurgeLlmRequestDataResponse.json", "Purged"),
        ("error_BadRequest.json", "Error"),
    ],
)
def test_example_responses_are_valid(payload_folder, file, name):
    """Example responses of the API are valid according to the description."""
    described = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema.Draft202012Validator(described).validate(json.loads((payload_folder / file).read_text()))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["status"], "done"),
        (["words", 0, "start"], "250"),
        (["words", 0, "confidence"], 97),
        (["chapters", 0, "headline"], None),
        (["iab_categories_result", "results", 0, "labels", 0, "relevance"], "high"),
        (["text"], ["Smoke"]),
        (["punctuate"], "yes"),
    ],
)
def test_a_response_with_a_wrong_type_is_invalid(payload_folder, path, value):
    """A transcript with a single value of a wrong type is invalid."""
    described = {"$ref": "#/components/schemas/Transcript", "components": document()["components"]}
    answer = json.loads((payload_folder / "Transcript.json").read_text())
    place = answer
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(described).validate(answer)
