"""Validation of requests for a transcript."""

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from voxframe import options
from voxframe_engine import RequestRefused
from voxframe_server.http import validated
from voxframe_server.http.app import transcript_fields
from voxframe_server.jobs import JobRecord

_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_values = st.recursive(
    _scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3)
)
_likely = st.sampled_from(
    [
        True,
        False,
        0,
        1,
        0.5,
        42.0,
        "en_us",
        "en",
        "best",
        "low",
        "hash",
        "mp3",
        [],
        ["a"],
        [{"from": ["a"], "to": "b"}],
        "http://a/b",
    ]
)
_bodies = st.dictionaries(st.sampled_from([*options.FIELDS, "unknown"]), _likely | _values, max_size=8)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_bodies, st.booleans())
def test_any_body_is_refused_or_gives_a_complete_transcript(body, with_address):
    """Any body is either refused with a message or stored and returned with every field."""
    if with_address:
        body = {**body, "audio_url": "http://192.0.2.1/a.mp3"}
    try:
        fields = validated(body)
    except RequestRefused as refused:
        message = str(refused)
    else:
        message = None
    if message is not None:
        assert message
        return
    stored = orjson.loads(orjson.dumps(fields))
    job = JobRecord(1, "id", "queued", "now", None, stored, None, None, None, 0, None, False)
    shown = transcript_fields(job, None)
    orjson.dumps(shown)
    assert options.FIELDS.keys() - {"webhook_auth_header_value"} <= shown.keys()
    assert "webhook_auth_header_value" not in shown
    assert {name: shown[name] for name in fields if name in shown} == {n: v for n, v in stored.items() if n in shown}


@given(_values)
def test_a_body_that_is_not_an_object_is_refused(body):
    """Lists, numbers and strings are refused."""
    if not isinstance(body, dict):
        with pytest.raises(RequestRefused, match="JSON object"):
            validated(body)


ADDRESS = {"audio_url": "http://192.0.2.1/a.mp3"}


@pytest.fixture
def polyglot(tmp_path, monkeypatch) -> str:
    """An installed engine for French and English with language detection."""
    (tmp_path / "polyglot_engine.py").write_text(
        "class Polyglot:\n"
        "    name, model, languages = 'polyglot', 'polyglot', frozenset({'fr', 'en_us'})\n"
        "    def detect(self, samples):\n"
        "        return 'fr', 0.9\n"
    )
    metadata = tmp_path / "polyglot_engine-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: polyglot-engine\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[voxframe.engines]\npolyglot = polyglot_engine:Polyglot\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "polyglot"


def test_every_analysis_is_accepted_in_english():
    """All analyses may be requested together."""
    flags = {name: True for name, field in options.FIELDS.items() if field.default is False}
    wanted = {**ADDRESS, **flags, "language_detection": False, "topics": ["a"], "word_boost": ["b"]}
    assert validated(wanted) == wanted


def test_each_policy_alone_is_accepted():
    """Every PII policy is supported."""
    for policy in options.PII_POLICIES:
        assert validated({**ADDRESS, "redact_pii": True, "redact_pii_policies": [policy]})


def test_an_analysis_in_an_unsupported_language_is_refused(polyglot, payload_folder):
    """The error names all unsupported options with the API's text, if only the engine supports the language."""
    example = orjson.loads((payload_folder / "error_models_not_in_language_400.json").read_bytes())
    beginning = example["error"].partition(":")[0]
    wanted = {"redact_pii": True, "summarization": True, "filter_profanity": True}
    with pytest.raises(RequestRefused) as refused:
        validated({**ADDRESS, "language_code": "fr", **wanted}, polyglot)
    assert str(refused.value) == f"{beginning}: redact_pii, summarization, filter_profanity"
    assert validated({**ADDRESS, "language_code": "fr", "speaker_labels": True, "word_boost": ["a"]}, polyglot)
    assert validated({**ADDRESS, **wanted}, polyglot)


def test_language_detection_needs_an_engine_that_supports_it(polyglot):
    """The error tells what to send instead and which engine detects languages."""
    with pytest.raises(
        RequestRefused,
        match=r"parrot engine .* Send language_code instead .*restart the server with --engine and one of: polyglot",
    ):
        validated({**ADDRESS, "language_detection": True}, "parrot")
    wanted = {**ADDRESS, "language_detection": True, "language_confidence_threshold": 0.4, "redact_pii": True}
    assert validated(wanted, polyglot) == wanted


def test_too_many_boosted_terms_are_refused():
    """A thousand boosted terms of a hundred characters are accepted, more or longer ones refused."""
    most = ["a" * 100] * 1000
    assert validated({**ADDRESS, "word_boost": most})["word_boost"] == most
    for beyond in ([*most, "a"], ["a" * 101]):
        with pytest.raises(RequestRefused, match="at most 1000 words or phrases of at most 100 characters"):
            validated({**ADDRESS, "word_boost": beyond})
