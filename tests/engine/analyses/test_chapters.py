"""Chapters at changes of subject."""

import json
import re
from itertools import pairwise

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled, meaning

from voxframe import encoder
from voxframe_engine.analyses.chapters import boundaries, chapters

TALK = labelled.talks("held")[0]
TEXT = " ".join(sentence for part in TALK.sections for sentence in part.sentences)


@pytest.mark.parametrize("half", labelled.HALVES)
def test_chapters_begin_where_the_subject_changes(half):
    """In texts joined from sections of different lengths, boundaries are far better than equal lengths."""
    error, score = scores.score_chapters(half, lambda texts, _: boundaries(texts))
    assert error <= 0.05
    assert score.f1 >= 0.95
    assert error < scores.score_chapters(half, scores.equal)[0] / 2


def test_one_subject_is_one_chapter():
    """A section of eight sentences is not cut."""
    cuts = [
        boundaries(part.sentences)
        for half in labelled.HALVES
        for talk in labelled.talks(half)
        for part in talk.sections
    ]
    assert sum(map(bool, cuts)) <= 1


def test_an_announcement_begins_a_chapter():
    """The words "let us talk about" start a chapter in an interview about one subject."""
    turns = json.loads((labelled.DATA / "interview.json").read_text("utf-8"))["turns"]
    texts = [s["text"] for turn in turns for s in labelled.sentences(turn["text"])]
    at = texts.index("Let us talk about money.")
    assert boundaries(texts) == [at]
    texts[at] = "Now the money."
    assert boundaries(texts) == []


def test_chapters_span_the_whole_transcript_in_order():
    """From the first word to the last, none overlapping."""
    made = chapters(labelled.sentences(TEXT))
    assert len(made) == 3
    assert made[0]["start"] == 0
    assert made[-1]["end"] == labelled.words(TEXT)[-1]["end"]
    assert all(before["end"] <= after["start"] for before, after in pairwise(made))


@pytest.mark.parametrize("coder", [None, "encoder"])
def test_what_a_chapter_says_is_quoted_from_it(coder):
    """Gist and headline are phrases of the chapter, and its summary sentences of it."""
    for chapter, part in zip(chapters(labelled.sentences(TEXT), coder and encoder.load()), TALK.sections, strict=True):
        source = " ".join(part.sentences).lower()
        named = re.split(", | and ", chapter["headline"])
        assert named[0] == chapter["gist"] != ""
        assert all(phrase.lower() in source for phrase in named)
        for sentence in chapter["summary"].split(". "):
            assert sentence.rstrip(".").lower() in source


@pytest.mark.parametrize("coder", [None, "encoder"])
def test_a_chapter_of_small_talk_has_no_name(coder):
    """Greetings, discourse words and cut sentences give neither gist nor headline nor summary."""
    text = "Hey, Luis. I know. Yep. Aww. But so just to. Of course, you know. Nope. Um, yeah, options. And then the."
    (chapter,) = chapters(labelled.sentences(text), coder and encoder.load())
    assert (chapter["gist"], chapter["headline"], chapter["summary"]) == ("", "", "")


def test_discourse_words_are_in_no_headline():
    """In talk about a subject with interjections between, only nouns and adjectives name it."""
    text = (
        "Aww, yep, of course the delivery van broke down again. Gotcha, you know, the van needs a new gearbox. "
        "Whoa, dude, the gearbox is, like, super expensive for that van, I mean. Nope, the garage has no spare parts."
    )
    (chapter,) = chapters(labelled.sentences(text), encoder.load())
    assert "van" in chapter["headline"].lower()
    assert not {"aww", "yep", "course", "gotcha", "whoa", "like", "super", "nope", "mean", "dude"} & set(
        re.findall(r"[a-z]+", chapter["headline"].lower())
    )


def test_long_transcripts_are_cut_too():
    """Five thousand sentences, as of ten hours of talk."""
    sections = [part.sentences for half in labelled.HALVES for talk in labelled.talks(half) for part in talk.sections]
    texts = [sentence for n in range(700) for sentence in sections[n % len(sections)]]
    cuts = boundaries(texts)
    assert len(texts) > 4000
    assert cuts == sorted(set(cuts))
    assert 100 < len(cuts) < len(texts) / 4


def test_a_talk_of_eleven_minutes_gets_a_chapter_for_each_of_its_two_subjects():
    """With the encoder, the boundary is at the shift of topic, and headlines name the topics."""
    sections, made, right, named = meaning.score_talks("held", encoder.load())
    assert (sections, made, right, named) == (2, 2, 1, 2)


@pytest.mark.parametrize("coder", [None, "encoder"])
def test_no_chapter_of_a_long_recording_is_shorter_than_a_minute(coder):
    """Sections of half a minute are not chapters of their own in a recording of ten minutes."""
    texts = [text for texts, _ in labelled.mixtures("held", 8) for text in texts]
    said = labelled.sentences(" ".join(texts))
    assert said[-1]["end"] > 300_000
    for chapter in chapters(said, coder and encoder.load()):
        assert chapter["end"] - chapter["start"] > 59_000
