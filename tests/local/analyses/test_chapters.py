"""Chapters where the subject changes."""

import json
from itertools import pairwise

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe.local.analyses.chapters import boundaries, chapters

TALK = labelled.talks("held")[0]
TEXT = " ".join(sentence for part in TALK.sections for sentence in part.sentences)


@pytest.mark.parametrize("half", labelled.HALVES)
def test_chapters_begin_where_the_subject_changes(half):
    """In texts put together of sections of different lengths; far better than equal lengths, told how many."""
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
    """What the words alone are not worth, "let us talk about" is: an interview that stays with its trees."""
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


def test_what_a_chapter_says_is_quoted_from_it():
    """Headline and summary are sentences of the chapter but for the words that open them; the gist is shorter."""
    for chapter, part in zip(chapters(labelled.sentences(TEXT)), TALK.sections, strict=True):
        source = " ".join(part.sentences).lower()
        assert chapter["headline"].rstrip(".?!").lower() in source
        for sentence in chapter["summary"].split(". "):
            assert sentence.rstrip(".").lower() in source
        assert 0 < len(chapter["gist"]) < len(chapter["headline"])


def test_long_transcripts_are_cut_too():
    """Five thousand sentences, as of ten hours of talk."""
    sections = [part.sentences for half in labelled.HALVES for talk in labelled.talks(half) for part in talk.sections]
    texts = [sentence for n in range(700) for sentence in sections[n % len(sections)]]
    cuts = boundaries(texts)
    assert len(texts) > 4000
    assert cuts == sorted(set(cuts))
    assert 100 < len(cuts) < len(texts) / 4
