"""PassageList: rows of any DataFrame that play."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tests.widgets.recordings import AUDIO, DATA, NAMES

import voxframe
from voxframe import compare
from voxframe.errors import OptionError
from voxframe.widgets import PassageList, TranscriptPlayer


def lines(widget: PassageList, name: str) -> list[str]:
    """Return the texts of a column that the browser shows."""
    edges = np.frombuffer(widget._rows[f"{name}_at"], "<i4")
    return [widget._rows[name][a:b].decode() for a, b in pairwise(edges)]


def click(widget: PassageList, row: int) -> None:
    widget._on_browser_message({"do": "row", "row": row}, [])


def test_search_results_of_many_recordings_play(corpus):
    """A click plays the row's own recording from its time, with the words of the corpus in the player, hits marked."""
    found = corpus.search("the")
    widget = PassageList(found, corpus=corpus, audio=AUDIO)
    assert lines(widget, "match") == found["match"].to_list()
    assert lines(widget, "left") == found["left"].to_list()
    for name in NAMES:
        row = int(np.flatnonzero(found["transcript_id"] == name)[0])
        click(widget, row)
        assert widget.error == ""
        assert widget.player._transcript_id == name
        assert widget.player.time == found["start_ms"].iloc[row]
        assert widget.player.interval == found[["start_ms", "end_ms"]].iloc[row].to_list()
        assert widget.player.query == "the"
        assert f"{name}.flac" in widget.player._sources[0]


def test_rows_play_without_a_corpus():
    """With recordings by name, disagreements play from files; the player has the rows as its text, one turn each."""
    texts = {name: " ".join(voxframe.load_words(DATA / "payloads" / f"{name}.json")["text"]) for name in NAMES}
    reference = pd.DataFrame({"recording": texts.keys(), "text": [text.replace("the", "a") for text in texts.values()]})
    heard = pd.concat(voxframe.load_words(DATA / "payloads" / f"{n}.json").assign(recording=n) for n in NAMES)
    places = pd.concat(
        compare.disagreements(compare.align(text, heard[heard["recording"] == name])).assign(recording=name)
        for name, text in reference.itertuples(index=False)
    )  # the index repeats
    widget = PassageList(places, audio=AUDIO, columns=["edit"])
    assert lines(widget, "name") == places["recording"].to_list()
    assert lines(widget, "match") == places["text"].to_list()
    assert lines(widget, "more") == places["edit"].to_list()
    row = int(np.flatnonzero(places["recording"] == "panel")[1])
    click(widget, row)
    assert widget.error == ""
    assert widget.player.title == "panel"
    assert widget.player.time == places["start_ms"].iloc[row]
    own = places[places["recording"] == "panel"].sort_values("start_ms", kind="stable")
    assert widget.player.result["text"].to_list() == own["text"].to_list()


def test_one_recording_needs_no_id(corpus):
    """Rows without an id play from one recording, or from the player that was given."""
    words = voxframe.load_words(DATA / "payloads" / "call.json")
    low = voxframe.analysis.low_confidence(words, below=0.7)
    widget = PassageList(low, audio=DATA / "call.flac", columns=["mean_confidence"])
    click(widget, 1)
    assert (widget.error, widget.player.time) == ("", low["start_ms"][1])
    assert lines(widget, "more")[1] == f"{low['mean_confidence'][1]:.3f}".rstrip("0")
    player = TranscriptPlayer("call", DATA / "call.flac", corpus=corpus)
    linked = PassageList(low.drop(columns="transcript_id"), player=player)
    click(linked, 1)
    assert (linked.player, player.time) == (None, low["start_ms"][1])


def test_what_cannot_play_is_said(corpus):
    """Rows without a time, an unknown transcript, a missing recording and a widget without sound give messages."""
    rows = pd.DataFrame(
        {"transcript_id": ["call", "lost"], "text": [None, "x"], "start_ms": [None, 10], "end_ms": [5, np.nan]}
    )
    widget = PassageList(rows, corpus=corpus, audio={"call": DATA / "call.flac"})
    click(widget, 0)
    assert "it has no start_ms" in widget.error
    click(widget, 1)
    assert "there is no transcript 'lost'" in widget.error
    silent = PassageList(rows)
    click(silent, 1)
    assert "pass corpus=, audio= or player=" in silent.error
    other = PassageList(rows, audio={"call": DATA / "call.flac"})
    click(other, 1)
    assert "audio has no recording of 'lost', only of call" in other.error
    with pytest.raises(
        OptionError, match=r"only of Call \(did you mean 'call'\?\); the rows belong to .*'call', 'lost'"
    ):
        PassageList(rows, audio={"Call": DATA / "call.flac"})
    with pytest.raises(OptionError, match="but the rows have no transcript_id or recording"):
        PassageList(rows.drop(columns="transcript_id"), audio={"call": DATA / "call.flac"})
    with pytest.raises(OptionError, match="the rows belong to 2; pass a dict by transcript_id"):
        PassageList(rows, audio=DATA / "call.flac")
    with pytest.raises(OptionError, match="need a column transcript_id or recording"):
        PassageList(rows.drop(columns="transcript_id"), corpus=corpus)
    with pytest.raises(ValueError, match="lacks size"):
        PassageList(rows, columns=["size"])


def test_a_list_is_sent_in_parts_and_an_empty_one_is_shown(corpus):
    """The browser gets the first rows, and more on request; a table without rows is shown too."""
    words = corpus.table("words", "panel")
    widget = PassageList(words, corpus=corpus)
    assert (len(lines(widget, "match")), widget._rows["of"]) == (200, len(words))
    widget.limit = 250
    assert lines(widget, "match") == words["text"].head(250).to_list()
    empty = PassageList(corpus.search("zzz"), corpus=corpus)
    assert lines(empty, "match") == []
    assert "<table></table>" in empty.static_html()


def test_the_static_html_and_code(corpus):
    """Text with markup is escaped in the static HTML, and the code shows the same rows."""
    hostile = "<script>window.hurt=1</script>"
    rows = pd.DataFrame({"recording": "call", "text": hostile, "start_ms": [1000], "end_ms": [2000]})
    widget = PassageList(rows, corpus=corpus, audio={"call": DATA / "call.flac"}, title=hostile)
    assert hostile not in widget.static_html()
    assert "call 0:01" in widget.static_html()
    names: dict = {"df": rows}
    exec(widget.code, names)
    again = names["passages"]
    assert (again._rows, again.title, again._audio) == (widget._rows, hostile, widget._audio)
    assert names["result"] is rows


def test_lists_in_a_column_are_shown():
    """A column of lists is shown as text, like other values; a null is empty."""
    rows = pd.DataFrame({"start_ms": [0, 100], "end_ms": [90, 190], "places": [[1, 2], None]})
    widget = PassageList(rows, columns=["places"])
    assert (lines(widget, "more"), widget.error) == (["[1, 2]", ""], "")
    assert "[1, 2]" in widget.static_html()


def test_rows_of_files_find_recordings_by_name():
    """Rows that voxframe loaded from files know the names of their recordings, which are the keys of `audio`."""
    turns = voxframe.load_utterances([DATA / "payloads" / f"{name}.json" for name in NAMES])
    widget = PassageList(turns, audio=AUDIO)
    for row, name in enumerate(lines(widget, "name")):
        if turns["utterance_idx"].iloc[row] == 1:
            click(widget, row)
            assert widget.error == ""
            assert widget.player._sources[0].endswith(f"/{name}.flac")
            assert widget.player.time == turns["start_ms"].iloc[row]


def test_rows_with_a_term_alone_show_it(corpus) -> None:
    """The result of `find_words` has no text, so its terms are shown."""
    hits = voxframe.analysis.find_words(corpus.table("words"), ["street"])
    listed = voxframe.PassageList(hits, corpus=corpus)
    assert listed.static_html().count("<strong>street</strong>") == len(hits) > 0
