"""Requests for a transcript, whatever they hold."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxframe import options
from voxframe.local import asked, wire
from voxframe.local.jobs import Job

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


@given(_bodies, st.booleans())
def test_any_body_is_refused_in_words_or_makes_a_whole_transcript(body, with_address):
    """No body is a fault of the service; what is accepted can be stored, and read back with every field."""
    if with_address:
        body = {**body, "audio_url": "http://192.0.2.1/a.mp3"}
    try:
        fields = asked.read(body)
    except asked.Refused as refused:
        message = str(refused)
    else:
        message = None
    if message is not None:
        assert message
        return
    stored = orjson.loads(orjson.dumps(fields))
    job = Job(1, "id", "queued", "now", None, stored, None, None, None, 0, None, False)
    shown = wire.transcript(job, None)
    orjson.dumps(shown)
    assert options.FIELDS.keys() - {"webhook_auth_header_value"} <= shown.keys()
    assert "webhook_auth_header_value" not in shown
    assert {name: shown[name] for name in fields if name in shown} == {n: v for n, v in stored.items() if n in shown}


@given(_values)
def test_body_that_is_no_object_is_refused(body):
    """Lists, numbers and texts are no requests."""
    if not isinstance(body, dict):
        with pytest.raises(asked.Refused, match="JSON object"):
            asked.read(body)
