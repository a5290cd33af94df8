"""Dispersion, GroupComparison, and playback of a Timeline."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from tests.widgets.recordings import AUDIO, DATA, NAMES

import voxframe
from voxframe import analysis
from voxframe._text import clock
from voxframe.colors import PALETTE, TERM_COLORS
from voxframe.errors import OptionError
from voxframe.widgets import Dispersion, GroupComparison, Timeline, TranscriptPlayer


@pytest.fixture(scope="module")
def words() -> pd.DataFrame:
    return voxframe.load_words(DATA / "payloads" / "interview.json")


def column(widget, name: str) -> list[int]:
    return np.frombuffer(widget._columns[name], "<i4").tolist()


def texts(widget) -> list[str]:
    """Return the texts of tooltips, in the order of marks."""
    return [widget._columns["text"][a:b].decode() for a, b in pairwise(column(widget, "offsets"))]


def click(widget, mark: int) -> None:
    """Click on a mark."""
    widget._on_browser_message({"do": "row", "row": column(widget, "row")[mark]}, [])


def test_a_timeline_of_many_recordings_plays_a_span(corpus):
    """Speakers of each recording have a lane, and a click on a span plays it in its own recording."""
    turns = corpus.table("utterances")
    timeline = Timeline(turns, corpus=corpus, audio=AUDIO)
    assert timeline._plays
    assert len(timeline._names) == turns.groupby(["transcript_id", "speaker"]).ngroups
    assert timeline._names[:2] == ["call · 1", "call · 2"]
    for mark in (0, 25, len(turns) - 1):
        row = turns.iloc[column(timeline, "row")[mark]]
        assert texts(timeline)[mark] == row["text"]
        click(timeline, mark)
        assert timeline.error == ""
        assert timeline.player._transcript_id == row["transcript_id"]
        assert timeline.player.interval == [row["start_ms"], row["end_ms"]]
    assert not Timeline(turns)._plays


def test_a_click_on_a_timeline_plays_the_player_that_was_given(corpus):
    """The player elsewhere in the notebook is set to the span, and none is made below the lanes."""
    player = TranscriptPlayer("call", DATA / "call.flac", corpus=corpus)
    timeline = Timeline(corpus.table("utterances", "call"), player=player)
    click(timeline, 1)
    assert (timeline.player, player.interval) == (None, [column(timeline, n)[1] for n in ("start", "end")])


def test_occurrences_have_lanes_and_context(words):
    """Each query has a lane with its occurrences in its colour, and a tooltip has the words around each."""
    dispersion = Dispersion(words, ["tree*", "zzz", "money"], audio=DATA / "interview.flac")
    found = words[words["text"].str.lower().str.startswith("tree")]
    first = column(dispersion, "first")
    assert dispersion._names == ["tree*", "zzz", "money"]
    assert column(dispersion, "start")[: first[1]] == found["start_ms"].to_list()
    assert first[1] == first[2]
    place = words.index.get_loc(found.index[1])
    assert texts(dispersion)[1] == " ".join(words["text"].iloc[place - 6 : place + 7])
    click(dispersion, 1)
    assert dispersion.error == ""
    assert dispersion.player.time == found["start_ms"].iloc[1]
    strokes = voxframe.plots.dispersion(words, ["tree*", "zzz", "money"]).collections
    tree, zzz, money = (PALETTE[n] for n in dispersion._colors)
    assert {tree, zzz, money} <= {*TERM_COLORS}
    assert {tree, money} <= {to_hex(lane.get_color()[0]).upper() for lane in strokes}


def test_a_word_that_does_not_occur_is_said(words, corpus):
    """Its lane and those of recordings without it stay, as long as the recordings, and the widget says so."""
    one = Dispersion(words, ["zebra"])
    assert (one._names, one._until, one._absent) == (["zebra"], words["end_ms"].max(), ["zebra"])
    assert "zebra: no occurrence" in one._static_html()
    several = Dispersion(corpus.table("words"), ["zebra", "street"])
    assert sorted(several._names) == sorted(NAMES)
    assert several._absent == ["zebra"]


def test_queries_share_the_lane_of_a_recording(corpus):
    """Of many recordings, each has one name and a part of its lane per query, with a legend."""
    found = corpus.search(["the", "and"])
    dispersion = Dispersion(found, corpus=corpus, audio=AUDIO)
    assert sorted(dispersion._names) == sorted(NAMES)
    assert dispersion._parts == ["the", "and"]
    counts = np.diff(column(dispersion, "first")).tolist()
    wanted = found.groupby(["transcript_id", "term"]).size()
    assert counts == [wanted[name, term] for name in dispersion._names for term in ("the", "and")]
    assert dispersion._colors == dispersion._colors[:2] * 3
    assert texts(dispersion)[0].split() == " ".join(found[["left", "match", "right"]].iloc[0]).split()
    click(dispersion, len(found) - 1)
    row = found.iloc[column(dispersion, "row")[-1]]
    assert (dispersion.player._transcript_id, dispersion.player.time) == (row["transcript_id"], row["start_ms"])
    dispersion.interval = [0, 20_000]
    assert len(dispersion.selection) == (found["start_ms"] < 20_000).sum()


def test_groups_have_their_values_and_means(corpus):
    """Each row is a mark at its value; means and intervals are those of the bootstrap over recordings."""
    turns = analysis.turn_taking(corpus.table("utterances"))
    turns = turns.assign(site=turns["transcript_id"].map({"call": "phone", "interview": "studio", "panel": "studio"}))
    groups = GroupComparison(turns, "offset_ms", "site", corpus=corpus, audio=AUDIO)
    known = turns.dropna(subset="offset_ms")
    values = groups._axis["low"] + groups._axis["step"] * np.array(column(groups, "start"))
    rows = turns.iloc[column(groups, "row")]
    assert np.allclose(values, rows["offset_ms"].astype(float), atol=groups._axis["step"])
    assert rows["site"].to_list() == sorted(known["site"])
    assert groups.means["site"].to_list() == ["phone", "studio"]
    assert np.allclose(groups.means["mean"], known.groupby("site")["offset_ms"].mean().astype(float))
    rates = analysis.rates(known.assign(one=1), "offset_ms", "one", "site")
    assert np.allclose(groups.means[["low", "high"]], rates[["low", "high"]], equal_nan=True)
    assert groups.means["units"].to_list() == [1, 2]
    mark = column(groups, "first")[1]
    row = rows.iloc[mark]
    assert texts(groups)[mark].startswith(f"{row['transcript_id']} {clock(row['start_ms'] / 1000)} ")
    assert texts(groups)[mark].endswith(f"{row['speaker']}: {row['text']}")
    click(groups, mark)
    assert (groups.player._transcript_id, groups.player.time) == (row["transcript_id"], row["start_ms"])
    groups.interval = [0, column(groups, "start")[mark]]
    assert groups.selection["offset_ms"].max() <= row["offset_ms"] + groups._axis["step"]


@pytest.mark.parametrize("size", [0, 1])
def test_few_rows_are_shown(words, size):
    """Tables with no row, one row, and rows without values or times are shown."""
    few = words.head(size)
    assert len(GroupComparison(few, "confidence", "speaker").means) == size
    unknown = few.assign(confidence=np.nan, start_ms=pd.NA, end_ms=pd.NA)
    groups = GroupComparison(unknown, "confidence", "speaker")
    assert column(groups, "start") == []
    for widget in (groups, Dispersion(few, "good"), Dispersion(unknown, "good"), Timeline(unknown)):
        assert "<img" in widget.static_html()


def test_invalid_values_are_refused(words):
    """A text as value, a missing group, and one recording for several transcripts raise errors."""
    with pytest.raises(ValueError, match="value must be a column of numbers, but 'text' is"):
        GroupComparison(words, "text", "speaker")
    with pytest.raises(ValueError, match="lacks site"):
        GroupComparison(words, "confidence", "site")
    two = pd.concat([words, words.assign(transcript_id="b")])
    with pytest.raises(OptionError, match="the rows belong to 2"):
        Dispersion(two, "the", audio=DATA / "call.flac")
    many = words.assign(group=[str(n % 201) for n in range(len(words))])
    with pytest.raises(ValueError, match="by='group' gives 201 lanes"):
        GroupComparison(many, "confidence", "group")


def test_the_code_shows_the_same(words):
    """Run with the same DataFrame, `.code` gives the same marks, selection and recording."""
    for widget in (
        Dispersion(words, ["the", "tree"], by="speaker", audio=DATA / "interview.flac", title="Words"),
        GroupComparison(words, "confidence", "speaker", audio=DATA / "interview.flac", label="share"),
    ):
        widget.interval, widget.view = [10_000, 60_000], [5_000, 90_000]
        names: dict = {"df": words}
        exec(widget.code, names)
        again = names[widget.code.splitlines()[-1]]
        for trait in ("_columns", "_names", "_colors", "_parts", "_axis", "_means", "interval", "view", "title"):
            assert getattr(again, trait) == getattr(widget, trait), trait
        assert again._audio == widget._audio
        assert names["result"].equals(widget.result)


def test_static_html_escapes_names(words):
    """Group names and titles with markup are escaped, and the axis has values instead of times."""
    hostile = "<script>window.hurt=1</script>"
    widget = GroupComparison(words.assign(speaker=hostile), "confidence", "speaker", title=hostile)
    assert hostile not in widget.static_html()
    assert "Values by group" in widget.static_html()
    assert ":00" not in widget.static_html()
