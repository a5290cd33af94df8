"""Colours of people, groups and search terms, which plots, widgets and static pages share."""

import itertools
import json
import re
from pathlib import Path
from urllib.parse import unquote

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

import voxframe
from voxframe import Corpus, colors, plots
from voxframe.colors import COLORS, GREY, PALETTE, TERM_COLORS, color_indexes

PAYLOADS = Path(__file__).parents[1] / "data" / "payloads"


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
    """No search term has the colour of a speaker, and each keeps its colour, whatever was searched before."""
    assert not set(TERM_COLORS) & set(COLORS)
    terms = ["price", "money", "refund", "economy", "street", "tree"]
    alone = {term: color_indexes([term], kind="term")[0] for term in terms}
    assert {PALETTE[n] for n in alone.values()} <= {*TERM_COLORS}
    colors.registry.clear()  # as in a new process
    assert {term: color_indexes([term], kind="term")[0] for term in reversed(terms)} == alone


def test_terms_of_a_picture_differ() -> None:
    """Terms that share a colour have two in one picture, in whichever order; the others keep theirs."""
    terms = [f"term {chr(97 + n)}" for n in range(20)]
    alone = {term: color_indexes([term], kind="term")[0] for term in terms}
    one, other = next(pair for pair in itertools.combinations(terms, 2) if alone[pair[0]] == alone[pair[1]])
    free = next(term for term in terms if alone[term] != alone[one])
    found = color_indexes([one, other, free], kind="term")
    assert len({*found}) == 3
    assert (found[0], found[2]) == (alone[one], alone[free])
    assert color_indexes([free, other, one], kind="term") == found[::-1]


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
        colors.recordings.clear()
        colors.sources.clear()
        corpus = Corpus(interviews.path)
        assert color_indexes([name]) == [first[name]]
        del corpus


def test_people_of_a_recording_differ(interviews: Corpus) -> None:
    """However many people a corpus has, two people of one recording have two colours."""
    for n in range(20):
        ada, guest = color_indexes(["Ada", f"guest {chr(97 + n)}"])
        assert ada != guest


def test_speakers_of_a_recording_differ_while_there_are_colours_left() -> None:
    """Any up to eight of 24 people have as many colours in a recording, and so have labels that end in one number."""
    people = [f"person {chr(97 + n)}" for n in range(24)]
    for name in people:
        color_indexes([name])
    for n, group in enumerate(itertools.combinations(people, 2)):
        assert len(set(color_indexes(group, transcripts=[f"t{n}"] * 2))) == 2
    for n in range(3):
        eight = color_indexes(people[n::3], transcripts=[f"u{n}"] * 8)
        assert len(set(eight)) == 8
        assert color_indexes(people[n::3][::-1], transcripts=[f"u{n}"] * 8) == eight[::-1]
        assert [color_indexes([name], transcripts=[f"u{n}"])[0] for name in people[n::3]] == eight
    assert color_indexes(["customer 1"], transcripts=["v"]) == [1]
    assert color_indexes(["agent 1", "customer 1"], transcripts=["v"] * 2) == [0, 1]
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
        colors.recordings.clear()
        colors.sources.clear()
        corpus = Corpus(tmp_path / "corpus")
        pictures = {tuple(speakers): color_indexes(speakers) for speakers in order}
        assert all(len(set(indexes)) == 3 for indexes in pictures.values())
        seen.append({name: color_indexes([name])[0] for name in {*itertools.chain(*order)}})
        del corpus
    assert seen[0] == seen[1]
    assert seen[2].items() <= seen[0].items()


def _lines(ax: Axes) -> dict[str, str]:
    """Return the colour of each line by its name in the legend, without grey, which stands for several."""
    legend = ax.get_legend()
    lines = zip(legend.get_texts(), legend.get_lines(), strict=True)
    return {label.get_text(): line.get_color().upper() for label, line in lines if line.get_color() != GREY}


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
        for name, color in _lines(ax).items():
            seen[name].add(color)
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


def _timeline(rows: pd.DataFrame) -> dict[str, int]:
    """Return the index of the colour of each lane."""
    timeline = voxframe.Timeline(rows)
    return dict(zip(timeline._names, timeline._colors, strict=True))


@pytest.fixture
def examples(tmp_path: Path) -> Corpus:
    """The four recordings of `data`."""
    corpus = Corpus(tmp_path / "corpus")
    for name in ("call", "interview", "meeting", "panel"):
        corpus.add(json.loads((PAYLOADS / f"{name}.json").read_bytes()))
    return corpus


def test_named_people_keep_their_colours_beside_labels(examples: Corpus) -> None:
    """Four named people have the same colours in the player of their recording and among all recordings."""
    examples.speakers.set("panel", {"A": "Ada", "B": "Grace", "C": "Edsger", "D": "Donald"})
    player = voxframe.TranscriptPlayer("panel", corpus=examples)
    names = [f"panel · {name}" for name in ("Ada", "Grace", "Edsger", "Donald")]
    everything = _timeline(examples.table("utterances"))
    assert [everything[name] for name in names] == [player._colors[label] for label in "ABCD"] == [0, 1, 2, 3]


def test_labels_have_the_same_colours_alone_and_among_recordings(examples: Corpus) -> None:
    """A label has one colour in pictures of its recording and of all, although other recordings have it, too."""
    everything = _timeline(examples.table("utterances"))
    for recording in ("call", "interview", "meeting", "panel"):
        player = voxframe.TranscriptPlayer(recording, corpus=examples)
        assert {label: everything[f"{recording} · {label}"] for label in player._colors} == player._colors
    words = examples.table("words")
    meeting = words[words["recording"] == "meeting"]
    for plot in (plots.pace, plots.confidence):
        alone, among = _lines(plot(meeting, by="speaker")), _lines(plot(words, by="speaker"))
        assert {f"meeting · {label}": color for label, color in alone.items()}.items() <= among.items()
        assert among["meeting · B"] == PALETTE[everything["meeting · B"]]
    talk = plots.talk_time(examples.table("utterances"))
    bars = {
        label.get_text(): bar.get_facecolor() for label, bar in zip(talk.get_yticklabels(), talk.patches, strict=True)
    }
    assert {name: to_hex(color).upper() for name, color in bars.items()} == {
        name: PALETTE[index] for name, index in everything.items()
    }


def test_a_label_without_a_name_gives_way_to_a_person(examples: Corpus) -> None:
    """A person keeps a colour in a recording where a label has it; the label has another, also alone and later."""
    examples.speakers.set("panel", {"A": "Ada"})
    assert _timeline(examples.table("utterances"))["panel · Ada"] == 0
    examples.speakers.set("meeting", {"B": "Ada"})
    turns = examples.table("utterances")
    (alone,) = _timeline(turns[(turns["recording"] == "meeting") & (turns["speaker"] == "A")]).values()
    found = voxframe.TranscriptPlayer("meeting", corpus=examples)._colors
    assert found["A"] == alone
    assert (found["B"], len({*found.values()})) == (0, 3)
    for _ in range(2):
        turns = examples.table("utterances")
        label = turns[(turns["recording"] == "meeting") & (turns["speaker"] == "A")]
        assert [*_timeline(label).values()] == [found["A"]]
        everything = _timeline(turns)
        assert (everything["meeting · A"], everything["meeting · Ada"], everything["panel · Ada"]) == (found["A"], 0, 0)
        colors.registry.clear()  # as in a new process
        colors.recordings.clear()


def test_people_named_at_once_keep_their_colours_in_every_session(examples: Corpus) -> None:
    """Two people who are named within a second, of labels with one number, have the same colours in another session."""
    examples.speakers.set("panel", {"B": "Ada"})
    examples.speakers.set("call", {"1": "Bo"})  # whose id comes first
    ada, bo = color_indexes(["Ada", "Bo"])
    assert (ada, bo == 1) == (1, False)
    colors.registry.clear()  # as in a new process
    colors.recordings.clear()
    assert color_indexes(["Bo"]) + color_indexes(["Ada"]) == [bo, ada]


def test_recordings_have_one_colour_in_all_plots(examples: Corpus) -> None:
    """Recordings as lines have the same colours in two plots, by default, by name and by id."""
    words = examples.table("words")
    first = _lines(plots.confidence(words[words["recording"].isin(["interview", "call"])]))
    everything = _lines(plots.pace(words))
    assert len({*everything.values()}) == 4
    assert first.items() <= everything.items()
    for by in ("recording", "transcript_id"):
        assert _lines(plots.confidence(words, by=by)) == everything
    assert _lines(plots.pace(words, by="recording")) == everything


def test_an_unknown_speaker_is_grey_in_every_picture() -> None:
    """A row without a speaker is grey among the rows of one recording and of two, in a plot and in a widget."""
    two = pd.DataFrame({"recording": ["one", "two"], "transcript_id": ["a", "b"], "speaker": None, "text": "x"})
    two = two.assign(start_ms=0, end_ms=900)
    for rows in (two, two[:1]):
        assert {PALETTE[n] for n in _timeline(rows).values()} == {GREY}
        assert {to_hex(bar.get_facecolor()[0]) for bar in plots.timeline(rows).collections} == {GREY}
