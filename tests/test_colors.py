"""Colours of people, groups and search terms, which plots, widgets and static pages share."""

from pathlib import Path

import pytest

from voxframe import Corpus, colors
from voxframe.colors import COLORS, GREY, PALETTE, TERM_COLORS, color_indexes


def test_labels_determine_their_colours() -> None:
    """A letter or a small number in a label decides its colour, also beside the name of a recording; none is grey."""
    assert color_indexes(["C", "A", "call · C"]) == [2, 0, 2]
    assert [PALETTE[n] for n in color_indexes(["SPEAKER_01", None])] == [COLORS[1], GREY]
    assert len(set(color_indexes("ABCDEFGHI"))) == 8


def test_a_person_keeps_a_colour() -> None:
    """The colour of a person stays if labels, other people and recordings change; two people have two colours."""
    first = dict(zip(("Bo", "Ada"), color_indexes(["Bo", "Ada"], {"A": "Ada", "B": "Bo"}), strict=True))
    assert first == {"Ada": 0, "Bo": 1}
    bo, cy = color_indexes(["Bo", "Cy"], {"A": "Bo", "B": "Cy"})
    assert (bo, cy == bo) == (1, False)
    assert color_indexes(["call · Cy", "call · Ada", "talk · Ada"]) == [cy, 0, 0]


def test_the_first_eight_people_differ() -> None:
    """Eight people whose names come one by one have eight colours."""
    assert len({color_indexes([name])[0] for name in ("Ann", "Ben", "Cem", "Dana", "Eva", "Finn", "Gus", "Hanna")}) == 8


def test_terms_have_colours_of_their_own() -> None:
    """No search term has the colour of a speaker, and each keeps its colour."""
    assert not set(TERM_COLORS) & set(COLORS)
    tree = color_indexes(["tree", "car"], kind="term")[0]
    assert PALETTE[tree] in TERM_COLORS
    assert color_indexes(["street", "call · tree"], kind="term")[1] == tree


@pytest.fixture
def interviews(tmp_path: Path) -> Corpus:
    """Twenty recordings of one interviewer, each with another guest."""
    corpus = Corpus(tmp_path / "corpus")
    for n in range(20):
        turns = [{"speaker": label, "text": "x", "start": 0, "end": 9, "words": []} for label in "AB"]
        corpus.add({"id": f"t{n}", "status": "completed", "text": "x x", "utterances": turns})
        corpus.speakers.set(f"t{n}", {"A": "Ada", "B": f"guest {chr(97 + n)}"})
    return corpus


def test_people_of_a_corpus_keep_their_colours_in_every_session(interviews: Corpus) -> None:
    """Another process that draws a person first, or alone, has the same colour as one that draws everybody."""
    everybody = ["Ada", *(f"guest {chr(97 + n)}" for n in range(20))]
    first = dict(zip(everybody, color_indexes(everybody), strict=True))
    for name in reversed(everybody):
        colors.registry.clear()  # as in a new process
        colors.sources.clear()
        corpus = Corpus(interviews.path)
        assert color_indexes([name]) == [first[name]]
        del corpus


def test_people_of_a_recording_differ(interviews: Corpus) -> None:
    """However many people a corpus has, two people of one recording have two colours."""
    for n in range(20):
        ada, guest = color_indexes(["Ada", f"guest {chr(97 + n)}"])
        assert ada != guest
