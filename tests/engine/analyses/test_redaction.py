"""Redaction of words, and of every analysis that could quote them."""

import json

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe_engine.analyses import OPTIONS, REDACTED_SPANS, Redaction, apply
from voxframe_engine.analyses.entities import find

SAID = "My name is Linda Carter, and I live in Denver. Call me at 555-0173 any time."


def redacted(text: str, **options) -> dict:
    return apply({"words": labelled.words(text)}, {"redact_pii": True, **options})


def test_hash_keeps_the_length_of_words_and_their_punctuation():
    """One sign a character; commas and full stops stay."""
    assert redacted(SAID)["text"] == "My name is ##### ######, and I live in ######. Call me at ######## any time."


def test_the_full_stop_of_a_redacted_title_ends_no_sentence():
    """The stop of "Dr." belongs to the title and is redacted with it; the one at the end of a sentence stays."""
    done = redacted("I am talking with Dr. Paul Baker.", sentiment_analysis=True)
    assert done["text"] == "I am talking with ### #### #####."
    assert [item["text"] for item in done["sentiment_analysis_results"]] == [done["text"]]


@pytest.mark.parametrize("spelling", ["entity_name", "entity_type"])
def test_entity_name_puts_one_word_in_place_of_all(spelling):
    """The words of an entity become one, from the start of the first to the end of the last."""
    done = redacted(SAID, redact_pii_sub=spelling)
    assert done["text"] == "My name is [PERSON_NAME], and I live in [LOCATION]. Call me at [PHONE_NUMBER] any time."
    said = labelled.words(SAID)
    assert done["words"][3] == {**said[3], "text": "[PERSON_NAME],", "end": said[4]["end"]}


def test_people_who_talk_at_once_do_not_break_each_others_entities():
    """Words of two channels alternate in the transcript; each entity is still one word."""
    said = [
        {**word, "start": word["start"] + shift, "end": word["end"] + shift, "channel": channel}
        for channel, shift in (("1", 0), ("2", 100))
        for word in labelled.words("It is seven four one two nine.")
    ]
    said.sort(key=lambda word: word["start"])
    done = apply({"words": said}, {"redact_pii": True, "redact_pii_sub": "entity_name"})
    assert done["text"] == "It It is is [NUMBER_SEQUENCE]. [NUMBER_SEQUENCE]."
    assert [word["end"] for word in done["words"][-2:]] == [said[-2]["end"], said[-1]["end"]]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("I live at 14 Larkspur Close in a flat.", "I live at ## ######## ##### in a flat."),
        ("The policy number is HX 4471 229, I think.", "The policy number is ## #### ###, I think."),
        ("My licence plate is KX65 ABD or so.", "My licence plate is #### ### or so."),
        ("My date of birth is 12 04 1975.", "My date of birth is ## ## ####."),
    ],
)
def test_addresses_dates_and_codes_are_covered_whole(said, left):
    """Capital letters beside the digits of a code belong to it, and a street may be a Close."""
    assert redacted(said)["text"] == left


def test_ordinary_words_beside_numbers_are_not_redacted():
    """Words that are streets or letters elsewhere are kept."""
    said = "It was 20 metres close to the gate, policy number 12345 was for a long walk."
    assert redacted(said)["text"] == said.replace("12345", "#####")


def test_only_what_the_policies_name_is_redacted():
    """Entities of other kinds are not changed."""
    done = redacted(SAID, redact_pii_policies=["location", "date"])
    assert done["text"] == "My name is Linda Carter, and I live in ######. Call me at 555-0173 any time."


@pytest.mark.parametrize("substitute", ["hash", "entity_name"])
def test_utterances_and_sentences_are_redacted_like_the_words(substitute):
    """Their words, and their text, which stays the words joined."""
    said = labelled.words(SAID, "A")
    line = {"speaker": "A", "start": 0, "end": 6000, "confidence": 1.0, "text": SAID, "words": said}
    done = apply(
        {"words": said, "utterances": [line], "sentences": [line]}, {"redact_pii": True, "redact_pii_sub": substitute}
    )
    for name in ("utterances", "sentences"):
        assert done[name][0]["words"] == done["words"]
        assert done[name][0]["text"] == done["text"]
        assert done[name][0]["speaker"] == "A"


@pytest.mark.parametrize("substitute", ["hash", "entity_name"])
def test_no_analysis_quotes_what_was_redacted(substitute):
    """Every analysis at once, on talk in which names, numbers and addresses would be what is quoted first."""
    secrets = ["Linda", "Carter", "Denver", "555-0173", "jane.doe@example.com", "Stanford", "219-09-9999", "diabetes"]
    text = (
        "My name is Linda Carter and Linda Carter lives in Denver. Linda Carter loves Denver. Call Linda Carter at "
        "555-0173 or jane.doe@example.com in Denver. Stanford University is where Linda Carter studied. Her social "
        "security number is 219-09-9999. Linda Carter has diabetes. Denver is a wonderful city, and Linda Carter is "
        "happy there. Let us talk about diabetes in Denver. Stanford University treats diabetes."
    )
    asked = dict.fromkeys(OPTIONS, True) | {
        "redact_pii_sub": substitute,
        "topics": ["health"],
        "content_safety_confidence": 25,
    }
    words = labelled.words(text, "A")
    line = {"speaker": "A", "start": 0, "end": 60000, "confidence": 1.0, "text": text, "words": words}
    done = apply({"words": words, "text": text, "utterances": [line]}, asked)
    written = json.dumps(done).lower()
    # The topics "Diabetes" and "health" may be named: labels of the taxonomy, and what was asked for, quote nobody.
    assert [secret for secret in secrets if secret.lower() in written] == []
    assert {entity["entity_type"] for entity in done["entities"]} >= {"person_name", "location", "email_address"}
    assert done["auto_highlights_result"]["results"] is not None


def test_times_to_cover_hold_the_words_and_are_merged():
    """A little before and after; neighbours become one; the beginning is not before the recording."""
    said = [
        {"text": text, "start": start, "end": end}
        for text, start, end in (("Linda", 20, 400), ("Carter", 420, 900), ("sees", 950, 1500), ("Denver", 1520, 2000))
    ]
    assert Redaction(said, find(said)).spans == [(0, 960), (1460, 2060)]


def test_times_are_told_only_where_audio_is_asked_for():
    """They are not of the wire."""
    assert REDACTED_SPANS not in redacted(SAID)
    done = redacted(SAID, redact_pii_audio=True)
    assert [len(span) for span in done[REDACTED_SPANS]] == [2, 2, 2]


def test_a_transcript_without_words_has_nothing_to_redact():
    """Silence stays silence."""
    done = apply({"words": [], "text": ""}, dict.fromkeys(OPTIONS, True))
    assert done["text"] == ""
    assert done["entities"] == []
    assert done["chapters"] == []
    assert done["summary"] == ""


def test_entities_that_are_not_redacted_keep_their_text():
    """Entity detection beside redaction of other kinds."""
    done = redacted(SAID, redact_pii_policies=["person_name"], entity_detection=True)
    assert [(e["entity_type"], e["text"]) for e in done["entities"]] == [
        ("person_name", "##### ######"),
        ("location", "Denver"),
        ("phone_number", "555-0173"),
    ]


@pytest.mark.long
@pytest.mark.speech
def test_most_of_what_is_personal_in_a_recording_is_covered():
    """RecognizedWord by the default engine, mishearings and all: three quarters of the time, and little else.

    Of the shortest recording; `python -m tests.benchmarks analyses --speech` measures all of them.
    """
    hidden, lost, _ = scores.hear("call")
    assert hidden >= 0.7
    assert lost <= 0.15
