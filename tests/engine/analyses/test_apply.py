"""All analyses behind one function, in the shapes of the wire."""

import json
from pathlib import Path

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe_engine import JobFailed
from voxframe_engine.analyses import OPTIONS, apply

ASKED = dict.fromkeys(OPTIONS, True) | {"topics": ["wildfires"]}
FIELDS = {
    "auto_highlights": "auto_highlights_result",
    "content_safety": "content_safety_labels",
    "iab_categories": "iab_categories_result",
    "custom_topics": "custom_topics_results",
    "sentiment_analysis": "sentiment_analysis_results",
    "auto_chapters": "chapters",
    "entity_detection": "entities",
    "summarization": "summary",
}


BY_LABEL = ("summary", "severity_score_summary")  # objects whose names are labels


def shape(value, name=""):
    """Names and types; of a list its first entry, of an object by label any value."""
    if isinstance(value, dict):
        named = {"any label": next(iter(value.values()))} if name in BY_LABEL else value
        return {key: shape(entry, key) for key, entry in named.items()}
    if isinstance(value, list):
        return [shape(value[0])]
    return "number" if isinstance(value, int | float) else type(value).__name__


@pytest.mark.parametrize(("option", "name"), FIELDS.items())
def test_only_what_is_asked_for_is_added(option, name):
    """One option, one field, and for a summary how it was made; what was there stays."""
    given = {"words": labelled.words("I love the big storm in Boston."), "confidence": 0.9}
    done = apply(given, {option: True})
    assert set(done) - {"summary_method"} == {"words", "confidence", name}
    assert done.get("summary_method") == ("key sentences, quoted" if name == "summary" else None)
    assert given == {"words": labelled.words("I love the big storm in Boston."), "confidence": 0.9}


def test_the_name_of_what_was_redacted_is_no_word_that_was_said():
    """Topics, moods and phrases of a text are the same whichever way a date or an injury is covered."""
    text = "The library opened in March. My broken leg healed in June. The library lends books to every reader."
    asked = {name: True for name in OPTIONS if name != "entity_detection"} | {"topics": ["dating"]}
    named, hashed = (
        apply({"words": labelled.words(text)}, asked | {"redact_pii_sub": how}) for how in ("entity_name", "hash")
    )
    assert "[DATE]" in named["text"]
    for name in ("iab_categories_result", "custom_topics_results"):
        assert named[name]["summary"] == hashed[name]["summary"]
        assert not any("Dating" in label or "dating" in label for label in named[name]["summary"])
    moods = [[line["sentiment"] for line in one["sentiment_analysis_results"]] for one in (named, hashed)]
    assert moods[0] == moods[1]
    phrases = [[found["text"] for found in one["auto_highlights_result"]["results"]] for one in (named, hashed)]
    assert phrases[0] == phrases[1]


def test_nothing_asked_for_changes_nothing():
    """Not even the text."""
    given = {"words": labelled.words("Hello there."), "text": "other"}
    assert apply(given, {}) == given
    assert apply(given, dict.fromkeys(OPTIONS, False)) == given


def test_a_transcript_without_words_is_answered_in_full():
    """No speech, no failure: words may be an empty list or null."""
    for empty in ([], None):
        done = apply({"words": empty, "text": ""}, {**ASKED, "redact_pii": False})
        assert set(FIELDS.values()) <= set(done)
        json.dumps(done)


def test_another_language_has_no_analyses():
    """Fields say that there is nothing, in the interface's own spellings; words stay as they are."""
    given = {"words": labelled.words("je suis content"), "language_code": "fr"}
    done = apply(given, {**ASKED, "redact_pii": False})
    assert done["words"] == given["words"]
    assert done["iab_categories_result"] == {"status": "unavailable", "results": [], "summary": {}}
    assert [done[name] for name in ("chapters", "entities", "summary", "sentiment_analysis_results")] == [None] * 4


def test_redaction_in_another_language_fails_rather_than_show_everything():
    """The reason says what to do."""
    with pytest.raises(JobFailed, match="English only"):
        apply({"words": labelled.words("je suis Anne"), "language_code": "fr"}, {"redact_pii": True})


def test_shapes_are_those_of_the_example_answers(payload_folder: Path):
    """The same fields and types as a hosted service gave for the same recording."""
    words = json.loads((payload_folder / "transcripts" / "completed.json").read_text("utf-8"))["words"]
    done = apply({"words": words}, {**ASKED, "redact_pii": False})
    for name, file in (
        ("auto_highlights_result", "key-phrases"),
        ("content_safety_labels", "content-moderation"),
        ("iab_categories_result", "topic-detection"),
        ("chapters", "auto-chapters"),
        ("entities", "entity-detection"),
        ("summary", "summarization"),
        ("sentiment_analysis_results", "sentiment-analysis"),
    ):
        answer = json.loads((payload_folder / "analyses" / f"{file}-response.json").read_text("utf-8"))[name]
        ours, theirs = shape(done[name]), shape(answer)
        if name == "sentiment_analysis_results":  # a speaker is a label or null
            ours, theirs = ([{key: kind for key, kind in one[0].items() if key != "speaker"}] for one in (ours, theirs))
        assert ours == theirs, name


def test_a_hosted_services_answers_are_mostly_agreed_with(payload_folder: Path):
    """Sentiment, entities, topics and content safety mostly agree with a hosted service on one real recording."""
    figures = dict(line.split(": ", 1) for line in scores.compare(payload_folder))
    assert float(figures["sentiment"].split()[3]) >= 0.65
    assert int(figures["entities"].split()[0]) >= 22
    assert int(figures["content safety"].split("for ")[1].split()[0]) >= 5
    assert int(figures["topics"].split("for ")[1].split()[0]) >= 5
