import inspect
import json
import re
import typing
from typing import Any

import numpy as np
import pandas as pd
import pytest

import voxframe
from voxframe import options
from voxframe.errors import OptionError
from voxframe.validators import Choice, InvalidValueError, ListOf, Number, Text, WebAddress


def test_every_field_of_the_interface_can_be_sent(payload_folder):
    """Every field of the interface's example request can be sent."""
    body = json.loads((payload_folder / "TranscriptOptionalParams.json").read_text())
    checked = options.check(**body)
    assert checked == {name: value for name, value in body.items() if value is not None}
    assert set(body) | {"content_safety_confidence", "audio_url"} == set(options.FIELDS)


def test_typed_arguments_and_fields_are_the_same():
    """Editors complete exactly the fields that can be sent; the audio is a separate argument."""
    assert set(options.TranscriptOptions.__annotations__) == set(options.FIELDS) - {"audio_url"} | {"extra_body"}


@pytest.mark.parametrize("use_jedi", [True, False])
@pytest.mark.parametrize(
    "call", ["client.transcribe(", "client.submit('a', ", "corpus.submit(", "corpus.plan(", "TranscriptOptions("]
)
def test_ipython_completes_every_option(call, use_jedi):
    """In IPython, Tab after a call or a comma offers every option of a job."""
    from IPython.core.completer import IPCompleter, provisionalcompleter

    names = {
        "client": object.__new__(voxframe.Client),
        "corpus": object.__new__(voxframe.Corpus),
        "TranscriptOptions": options.TranscriptOptions,
    }
    completer = IPCompleter(namespace=names, use_jedi=use_jedi)
    with provisionalcompleter():
        offered = {completion.text for completion in completer.completions(call, len(call))}
    assert {f"{name}=" for name in options.TranscriptOptions.__annotations__} <= offered


def test_signature_shows_type_and_default_and_docstring_the_help():
    """`help(client.transcribe)` explains an option: its type, the default of the service and its meaning."""
    parameter = inspect.signature(voxframe.Client.transcribe).parameters["boost_param"]
    assert (parameter.annotation, parameter.default) == ("BoostParam | None", "default")
    assert "boost_param: How strongly to expect the words of word_boost." in inspect.getdoc(voxframe.Client.transcribe)


def test_options_are_described_as_a_table():
    """`voxframe.describe("options")` has one row per option, with allowed values and default."""
    rows = {row[0]: row[1:3] for row in voxframe.describe("options").rows}
    assert set(rows) == set(options.TranscriptOptions.__annotations__)
    assert rows["speech_model"] == ("best, nano", "")
    assert rows["content_safety_confidence"] == ("25 to 100", "50")
    assert rows["audio_end_at"] == ("160 or more", "")
    assert rows["redact_pii_policies"][0] == "list of 44 such as account_number"


def test_the_values_of_an_option_are_described():
    """`voxframe.describe` of an option lists its values, languages with names, or the option if it has no list."""
    found = voxframe.describe("language_code")
    assert [row[0] for row in found.rows] == list(options.LANGUAGE_CODES)
    assert dict(found.rows)["pt"] == "Portuguese"
    assert ("default", "'en_us'") in found.notes
    assert voxframe.describe("redact_pii_policies").rows == tuple((one,) for one in options.PII_POLICIES)
    assert voxframe.describe("speakers_expected").rows[0][:2] == ("speakers_expected", "1 to 10")
    assert voxframe.describe("extra_body").rows[0][:2] == ("extra_body", "a dict")
    with pytest.raises(OptionError, match="did you mean 'language_code'"):
        voxframe.describe("langage_code")


def test_extra_body_is_sent_unchecked():
    """Fields that voxframe does not know are added to the request as they are."""
    extra = {"speech_models": ["universal"], "keyterms": None}
    assert options.check(punctuate=False, extra_body=extra) == {"punctuate": False, **extra}
    assert options.check(extra_body=None) == {}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"punctuate": False}, "extra_body has 'punctuate', which voxframe knows; give it as the option punctuate"),
        ({"audio_url": "https://a.b/c"}, "extra_body has 'audio_url', which voxframe knows; give it as the recording"),
        ({"new": float("nan")}, "extra_body must be a dict that can be written as JSON: "),
        ({"new": {1, 2}}, "extra_body must be a dict that can be written as JSON: "),
        ({1: 2}, "extra_body must be a dict with names of fields as keys, not {1: 2}"),
        ({"new": "\ud800"}, "extra_body must be a dict that can be written as JSON: "),
        ([], "extra_body must be a dict with names of fields as keys, not []"),
        (["new"], "extra_body must be a dict with names of fields as keys, not ['new']"),
    ],
)
def test_extra_body_that_cannot_be_sent_is_refused(extra, message):
    """Known fields belong to the options, and the rest must be a JSON object."""
    with pytest.raises(OptionError, match=re.escape(message)):
        options.check(extra_body=extra)


def test_language_codes_and_policies_are_all_there():
    """The interface lists 102 language codes and 44 policies."""
    assert len(set(options.LANGUAGE_CODES)) == len(options.LANGUAGE_CODES) == 102
    assert len(set(options.PII_POLICIES)) == len(options.PII_POLICIES) == 44
    assert {"en_us", "haw", "jw", "yo"} <= set(options.LANGUAGE_CODES)
    assert {"account_number", "us_social_security_number", "zodiac_sign"} <= set(options.PII_POLICIES)


def test_choices_follow_their_types():
    """A choice of a field is a choice of its type, or an alias of one."""
    for name, field in options.FIELDS.items():
        if field.choices and name in options.TranscriptOptions.__annotations__:
            kind = typing.get_type_hints(options.TranscriptOptions)[name]
            assert all(f"'{choice}'" in str(kind) for choice in field.choices), name


def test_none_uses_the_default_of_the_service():
    """Options that are None are not sent."""
    assert options.check(punctuate=None, speech_model=None, speech_threshold=None) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speaker_lables": True}, "there is no option 'speaker_lables' (did you mean 'speaker_labels'?)"),
        ({"punctuate": "yes"}, "punctuate must be True or False, not 'yes'"),
        ({"punctuate": 1}, "punctuate must be True or False, not 1"),
        ({"language_code": "en_gb"}, "language_code must be one of 102 values, such as en (did you mean 'en_"),
        (
            {"language_code": "german"},
            "(did you mean 'de'?), not 'german'; voxframe.describe('language_code') lists them",
        ),
        ({"redact_pii_policies": ["names"]}, "voxframe.describe('redact_pii_policies') lists them"),
        ({"speech_model": "fast"}, "speech_model must be one of best, nano, not 'fast'"),
        ({"boost_param": "hgih"}, "boost_param must be one of low, default, high (did you mean 'high'?), not 'hgih'"),
        ({"speakers_expected": 11}, "speakers_expected must be a whole number from 1 to 10, not 11"),
        ({"speakers_expected": 2.5}, "speakers_expected must be a whole number from 1 to 10, not 2.5"),
        ({"speakers_expected": True}, "speakers_expected must be a whole number from 1 to 10, not True"),
        ({"content_safety_confidence": 24}, "content_safety_confidence must be a whole number from 25 to 100, not 24"),
        ({"speech_threshold": 1.01}, "speech_threshold must be a number from 0 to 1, not 1.01"),
        ({"speech_threshold": float("nan")}, "speech_threshold must be a number from 0 to 1, not nan"),
        (
            {"language_confidence_threshold": -0.1},
            "language_confidence_threshold must be a number from 0 to 1, not -0.1",
        ),
        ({"audio_start_from": -1}, "audio_start_from must be a whole number of at least 0 ms, not -1"),
        ({"word_boost": "smoke"}, "word_boost must be a list of words or phrases, not 'smoke'"),
        (
            {"word_boost": ["a", 3]},
            "word_boost must be a list of words or phrases; entry 1, 3, must be a non-empty text",
        ),
        ({"word_boost": pd.DataFrame({"word": ["a"]})}, "word_boost must be a list of words or phrases, not"),
        ({"word_boost": np.array("a")}, "word_boost must be a list of words or phrases, not array('a'"),
        ({"word_boost": ["\ud800"]}, "entry 0, '\\ud800', must be text that UTF-8 can hold"),
        ({"speakers_expected": np.array([2, 3])}, "speakers_expected must be a whole number from 1 to 10, not array"),
        ({"punctuate": pd.Series([True, False])}, "punctuate must be True or False, not"),
        ({"redact_pii_policies": ["person_nam"]}, "(did you mean 'person_name'?)"),
        ({"redact_pii_sub": "mask"}, "redact_pii_sub must be one of entity_name, hash, not 'mask'"),
        ({"webhook_url": "ftp://host/x"}, "webhook_url must be an http or https URL, not 'ftp://host/x'"),
        ({"webhook_url": "https://[x"}, "webhook_url must be an http or https URL"),
        ({"webhook_url": "https://h/\ud800"}, "webhook_url must be an http or https URL"),
        ({"webhook_url": "https://host:80a/x"}, "webhook_url must be an http or https URL"),
        (
            {"webhook_url": f"https://ada:{'secret' * 20}@h/ x"},
            "webhook_url must be an http or https URL, not 'https://***@h/ x'",
        ),
        ({"custom_spelling": [{"from": ["a"]}]}, 'must be {"from": ["heard"], "to": "written"}'),
        ({"custom_spelling": [{"from": [], "to": "A"}]}, 'needs at least one spelling in "from"'),
        ({"custom_spelling": [{"from": ["a"], "to": 5}]}, "has a wrong value: 'to' must be a non-empty text"),
        ({"custom_spelling": [{"from": 5, "to": "A"}]}, "has a wrong value: 'from' must be a list of spellings"),
        ({"custom_spelling": [{"from": ["a"], "to": "A", "too": 1}]}, "have the keys from and to only, not 'too'"),
        ({"summary_type": "bullet"}, "(did you mean 'bullets'?)"),
        ({"webhook_auth_header_name": "x-secret"}, "without webhook_auth_header_value; give both or neither"),
        ({"audio_start_from": 1000, "audio_end_at": 1100}, "leave 100 ms; audio must last at least 160 ms"),
        ({"audio_end_at": 100}, "audio_end_at must be a whole number of at least 160 ms, not 100"),
        ({"audio_end_at": 2**53 + 1}, "audio_end_at must be at most 9007199254740992 ms, not 9007199254740993"),
    ],
)
def test_an_invalid_option_names_the_allowed_values(given, message):
    """The message names the option, the value, what is allowed and the nearest name."""
    with pytest.raises(OptionError) as caught:
        options.check(**given)
    assert message in str(caught.value)


def test_up_to_twelve_allowed_values_are_listed():
    """The error lists all of up to 12 allowed values, otherwise their number and the first."""
    names = tuple("abcdefghijklm")
    with pytest.raises(InvalidValueError, match=r"^must be one of a, b, c, d, e, f, g, h, i, j, k, l$"):
        Choice(names[:12]).convert(0)
    with pytest.raises(InvalidValueError, match=r"^must be one of 13 values, such as a$"):
        Choice(names).convert(0)


def test_all_invalid_options_are_named_at_once():
    """One error names every invalid option."""
    with pytest.raises(OptionError) as caught:
        options.check(punctuate="yes", speakers_expected=0)
    assert "punctuate" in str(caught.value)
    assert "speakers_expected" in str(caught.value)


def test_a_webhook_secret_is_never_repeated():
    """No error message contains the value of the webhook header."""
    for given in ({"webhook_auth_header_value": "s3cr3t\nx"}, {"webhook_auth_header_value": "s3cr3t"}):
        with pytest.raises(OptionError) as caught:
            options.check(**given)
        assert "s3cr3t" not in str(caught.value)


def test_a_line_break_in_a_header_is_refused():
    """A line break in a header name or value is refused."""
    for name, value in (("x\r\nEvil", "1"), ("x", "1\r\nEvil: 2")):
        assert options.problems({"webhook_auth_header_name": name, "webhook_auth_header_value": value})


def test_numpy_and_pandas_numbers_are_accepted():
    """NumPy scalars, arrays and whole floats become the plain values that JSON needs."""
    checked = options.check(
        punctuate=np.bool_(True),
        speakers_expected=np.int64(3),
        speech_threshold=np.float64(0.5),
        audio_end_at=5000.0,
        word_boost=np.array(["a", "b"], dtype=object),
    )
    assert json.loads(json.dumps(checked)) == {
        "punctuate": True, "speakers_expected": 3, "speech_threshold": 0.5, "audio_end_at": 5000,
        "word_boost": ["a", "b"],
    }  # fmt: skip


def test_entity_type_is_an_alias_of_entity_name():
    """Both names of the interface for the same substitution are accepted, and one is sent."""
    assert options.check(redact_pii_sub="entity_type") == {"redact_pii_sub": "entity_name"}


def test_one_spelling_needs_no_list():
    """A single recognized spelling may be a string and is sent as a list."""
    assert options.check(custom_spelling=[{"from": "dicarlo", "to": "Decarlo"}]) == {
        "custom_spelling": [{"from": ["dicarlo"], "to": "Decarlo"}]
    }


def test_a_server_ignores_unknown_fields():
    """Unknown fields and nulls are no problem; invalid values are."""
    assert options.problems({"from_the_future": 1, "punctuate": None}) == []
    assert len(options.problems({"punctuate": "maybe", "speakers_expected": 99})) == 2
    assert options.normalise({"from_the_future": 1, "punctuate": None, "redact_pii_sub": "entity_type"}) == {
        "redact_pii_sub": "entity_name"
    }


def test_defaults_are_those_of_the_interface():
    """Defaults are those of the interface and can be sent."""
    expected = {"language_code": "en_us", "language_confidence_threshold": 0, "redact_pii_audio_quality": "mp3",
                "content_safety_confidence": 50, "boost_param": "default", "punctuate": True, "format_text": True,
                "redact_pii_sub": "hash", "summary_model": "informative", "summary_type": "bullets"}  # fmt: skip
    assert {name: options.DEFAULTS[name] for name in expected} == expected
    assert options.problems(options.DEFAULTS) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Number(0, 1), True),
        (ListOf(Text(), "words"), {"word": 1}),
        (ListOf(Text(), "words"), b"word"),
        (WebAddress(), "http://speech.example/a b"),
        (WebAddress(), "http://speech.example/\n"),
    ],
)
def test_similar_values_of_other_types_are_refused(kind: Any, value: object) -> None:
    """True is no number, a dict and bytes are no lists of texts, and a URL has no white space."""
    with pytest.raises(InvalidValueError):
        kind.convert(value)
