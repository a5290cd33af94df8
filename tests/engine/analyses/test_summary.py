"""Summaries: five types, three models, all of them quotations."""

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe import encoder
from voxframe_engine.analyses import chapters
from voxframe_engine.analyses.chapters import summary

TEXT = " ".join(sentence for part in labelled.talks("dev")[1].sections for sentence in part.sentences)
TYPES = ("bullets", "bullets_verbose", "gist", "headline", "paragraph")
MODELS = ("informative", "conversational", "catchy")


def conversation():
    """A talk in which two people take turns."""
    said = labelled.sentences(TEXT)
    for at, sentence in enumerate(said):
        sentence["speaker"] = "AB"[at % 2]
    return said


def test_chosen_sentences_belong_in_a_summary_more_often_than_the_first_ones():
    """Over both halves; a third of all sentences are labelled, and the first of a section often."""
    ours = [scores.score_summaries(half, chapters.scores) for half in labelled.HALVES]
    first = [scores.score_summaries(half, scores.first_ones) for half in labelled.HALVES]
    assert sum(ours) > sum(first)
    assert min(ours) >= 0.4


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("model", MODELS)
def test_every_type_of_every_model_quotes(kind, model):
    """Each word of a summary is in the transcript, except speaker labels and the "and" between phrases."""
    text = summary(conversation(), {"summary_type": kind, "summary_model": model})
    assert text
    said = set(TEXT.lower().replace(".", " ").replace(",", " ").split())
    words = [word.strip(".,:;-").lower() for word in text.split()]
    assert [word for word in words if word not in said | {"", "a", "b", "and"}] == []


def test_the_fifteen_kinds_differ():
    """No two combinations of type and model give the same summary of a talk, with and without the encoder."""
    for coder in (None, encoder.load()):
        made = [
            summary(conversation(), {"summary_type": kind, "summary_model": model}, coder)
            for kind in TYPES
            for model in MODELS
        ]
        assert len(set(made)) == len(TYPES) * len(MODELS)


@pytest.mark.parametrize(
    "text",
    [
        "They sold the factory last year.",
        "Those were the best machines.",
        "And then she repaired the roof.",
        "That was the reason for the delay.",
        "The roof of the factory,",
        "We sold it to the",
        "Because the roof was leaking.",
        "Was the roof leaking?",
    ],
)
def test_sentences_that_need_others_are_not_quoted(text):
    """References to what came before, cut sentences and questions are left out."""
    assert not chapters.stands_alone(text)
    texts = ["The roof of the factory was repaired in June.", text]
    assert chapters.choose(texts, 2) == [0]


def test_types_differ_in_length_and_form():
    """A gist is shorter than a headline, which is shorter than a paragraph; bullets are lines with a hyphen."""
    made = {kind: summary(labelled.sentences(TEXT), {"summary_type": kind}) for kind in TYPES}
    assert len(made["gist"]) < len(made["headline"]) < len(made["paragraph"])
    assert all(line.startswith("- ") for kind in ("bullets", "bullets_verbose") for line in made[kind].splitlines())
    assert len(made["bullets"].splitlines()) == len(made["bullets_verbose"].splitlines()) >= 3
    assert len(made["bullets"]) < len(made["bullets_verbose"])
    assert "\n" not in made["paragraph"]


def test_a_conversation_has_everybody_in_it():
    """The conversational model quotes every speaker, with labels."""
    text = summary(conversation(), {"summary_type": "paragraph", "summary_model": "conversational"})
    assert "A: " in text
    assert "B: " in text
    assert "A: " not in summary(conversation(), {"summary_type": "paragraph", "summary_model": "informative"})


def test_bullets_come_one_a_subject():
    """Each of the three sections has its say."""
    lines = summary(labelled.sentences(TEXT), {"summary_type": "bullets"}).splitlines()
    sections = [" ".join(part.sentences) for part in labelled.talks("dev")[1].sections]
    assert [any(line[3:].rstrip(".") in section for line in lines) for section in sections] == [True] * 3


@pytest.mark.parametrize("text", ["Yes.", "Hello. Hello?"])
def test_what_is_too_short_to_summarise_is_quoted(text):
    """There is always something to show."""
    assert all(summary(labelled.sentences(text), {"summary_type": kind}) for kind in TYPES)
