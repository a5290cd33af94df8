"""Colours of people, groups and search terms, which plots, widgets and static pages share."""

import itertools
import json
import re
from pathlib import Path
from urllib.parse import unquote

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex

import voxframe
from voxframe import Corpus, colors, plots
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


def test_speakers_of_a_picture_differ_while_there_are_colours_left() -> None:
    """Any up to eight of 24 people have as many colours, in any order, and so have labels that end in one number."""
    people = [f"person {chr(97 + n)}" for n in range(24)]
    for name in people:
        color_indexes([name])
    for group in itertools.combinations(people, 2):
        assert len(set(color_indexes(group))) == 2
    for eight in (people[n::3] for n in range(3)):
        assert len(set(color_indexes(eight))) == 8
        assert color_indexes(eight[::-1]) == color_indexes(eight)[::-1]
    assert len(set(color_indexes([f"{role} {n}" for role in ("agent", "guest", "host") for n in (1, 2)]))) == 6


def _payload(transcript_id: str, speakers: list[str]) -> dict[str, object]:
    """Return a transcript of which each speaker has two turns of three words."""
    turns = []
    for n, label in enumerate(speakers * 2):
        words = [
            {"text": f"word{k}", "start": 5000 * n + 900 * k, "end": 5000 * n + 900 * k + 800, "confidence": 0.9}
            | {"speaker": label}
            for k in range(3)
        ]
        turns.append({"speaker": label, "text": "word0 word1 word2", "start": 5000 * n, "end": 5000 * n + 2600})
        turns[-1] |= {"words": words, "confidence": 0.9}
    words = [word for turn in turns for word in turn["words"]]
    return {"id": transcript_id, "status": "completed", "text": "", "words": words, "utterances": turns}


def test_speakers_of_a_corpus_keep_their_colours_in_every_session(tmp_path: Path) -> None:
    """Names that the recordings came with, as in captions, have the same colours whichever is drawn first."""
    names = [[f"speaker {chr(97 + n)}", f"speaker {chr(99 + n)}", "Ada"] for n in range(12)]
    stored = Corpus(tmp_path / "corpus")
    for n, speakers in enumerate(names):
        stored.add(_payload(f"t{n:02}", speakers))
    seen: list[dict[str, int]] = []
    for order in (names, names[::-1], names[5:]):
        colors.registry.clear()  # as in a new process
        colors.sources.clear()
        corpus = Corpus(tmp_path / "corpus")
        pictures = {tuple(speakers): color_indexes(speakers) for speakers in order}
        assert all(len(set(indexes)) == 3 for indexes in pictures.values())
        seen.append({name: color_indexes([name])[0] for name in {*itertools.chain(*order)}})
        del corpus
    assert seen[0] == seen[1]
    assert seen[2].items() <= seen[0].items()


@pytest.mark.parametrize("speakers", [["A", "B", "C"], ["agent 1", "guest 1", "zoe"], ["Ann", "Bo", "Cy", "Dee"]])
def test_plots_widgets_and_pages_agree(tmp_path: Path, speakers: list[str]) -> None:
    """Each speaker of a recording has one colour, and no other has it, in four plots, two widgets and their pages."""
    corpus = Corpus(tmp_path / "corpus")
    corpus.add(_payload("t", speakers))
    corpus.speakers.set("t", {speakers[0]: "Ada"})
    words, turns = corpus.table("words"), corpus.table("utterances")
    names = ["Ada", *speakers[1:]]
    seen: dict[str, set[str]] = {name: set() for name in names}
    mpl.use("agg")
    for ax in (plots.timeline(words), plots.talk_time(turns)):
        artists = ax.patches or ax.collections
        for label, artist in zip(ax.get_yticklabels(), artists, strict=True):
            face = artist.get_facecolor()
            seen[label.get_text()].add(to_hex(face if ax.patches else face[0]).upper())
    for ax in (plots.pace(words, by="speaker", window_s=20), plots.confidence(words, by="speaker")):
        legend = ax.get_legend()
        for label, line in zip(legend.get_texts(), legend.get_lines(), strict=True):
            seen[label.get_text()].add(line.get_color().upper())
    player, timeline = voxframe.TranscriptPlayer("t", corpus=corpus), voxframe.Timeline(turns)
    for widget, labels in ((player, speakers), (timeline, range(len(speakers)))):
        widget.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        state = json.loads(re.search(r'id="state">(.*?)</script>', page)[1])
        picture = re.findall(r'<text x="0"[^>]*>([^<]*)</text><path fill="(#......)"', unquote(widget._static_html()))
        for name, label in zip(names, labels, strict=True):
            seen[name] |= {PALETTE[widget._colors[label]], PALETTE[state["_colors"][label]], dict(picture)[name]}
    assert all(len(of) == 1 for of in seen.values()), seen
    assert len(set.union(*seen.values())) == len(names)


def test_speakers_of_two_recordings_differ_in_style() -> None:
    """Lines and packed bars of the same label of two recordings have one colour, but not one style."""
    words = voxframe.load_words([_payload("call", ["A", "B"]), _payload("talk", ["A", "B"])])
    pace = plots.pace(words, by="speaker", window_s=20).get_legend().get_lines()
    sure = plots.confidence(words, by="speaker").get_legend().get_lines()
    bars = plots.timeline(words, pack=True).collections
    for artists in (pace, sure):
        assert len({line.get_color() for line in artists}) == 2
        assert len({(line.get_color(), line.get_linestyle()) for line in artists}) == 4
    assert len({(to_hex(bar.get_facecolor()[0]), bar.get_hatch()) for bar in bars}) == 4
