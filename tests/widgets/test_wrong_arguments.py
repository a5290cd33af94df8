"""Arguments of a wrong type are refused when a widget is created."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.errors import CorpusError, CorpusWarning, OptionError

DATA = Path(__file__).parents[2] / "data"
ROWS = pd.DataFrame({"transcript_id": ["a"], "text": ["Hi"], "start_ms": [0], "end_ms": [90], "speaker": ["A"]})


@pytest.mark.parametrize(
    "widget",
    [
        voxframe.WordSearch,
        voxframe.SubmitForm,
        voxframe.AskPanel,
        lambda corpus: voxframe.PassageList(ROWS, corpus=corpus),
        lambda corpus: voxframe.Timeline(ROWS, corpus=corpus),
        lambda corpus: voxframe.TranscriptPlayer(ROWS, corpus=corpus),
    ],
)
def test_a_corpus_is_a_corpus(widget: Callable) -> None:
    """A path says how to open the corpus; another object says its type."""
    with pytest.raises(OptionError, match=r"not a path; pass corpus=voxframe\.Corpus\('calls'\)"):
        widget("calls")
    with pytest.raises(OptionError, match=r"corpus must be a voxframe\.Corpus, not of type DataFrame"):
        widget(ROWS)


def test_a_corpus_is_no_recording(corpus: voxframe.Corpus) -> None:
    """A corpus in the place of the recording is named as the mistake, also if the transcript is unknown."""
    with pytest.raises(OptionError, match=r"a recording must be a path or a URL, got Corpus; .* such as corpus="):
        voxframe.TranscriptPlayer("no such id", corpus)  # type: ignore[arg-type]


@pytest.mark.parametrize("widget", [voxframe.AskPanel, voxframe.SubmitForm])
def test_a_client_is_a_client(widget: Callable, corpus: voxframe.Corpus) -> None:
    """A URL in the place of the client is found at once, not when something is sent."""
    with pytest.raises(OptionError, match=r"client must be the result of voxframe\.connect\(\), not of type str"):
        widget(corpus, "http://127.0.0.1:9")
    with pytest.raises(OptionError, match="client must be"):
        voxframe.LiveTranscript("http://127.0.0.1:9")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "widget",
    [
        voxframe.WordSearch,
        voxframe.AskPanel,
        lambda corpus, **given: voxframe.PassageList(ROWS, **given),
        lambda corpus, **given: voxframe.Timeline(ROWS, **given),
        lambda corpus, **given: voxframe.GroupComparison(ROWS, "end_ms", "speaker", **given),
        lambda corpus, **given: voxframe.Dispersion(ROWS, "hi", **given),
    ],
)
def test_players_and_recordings_have_their_type(widget: Callable, corpus: voxframe.Corpus) -> None:
    """A player is a TranscriptPlayer, and recordings are a dict of paths or URLs."""
    with pytest.raises(OptionError, match=r"player must be a voxframe\.TranscriptPlayer, got 'interview'"):
        widget(corpus, player="interview")
    with pytest.raises(OptionError, match=r"audio must be a dict of paths or URLs .* got \['a\.mp3'\]"):
        widget(corpus, audio=["a.mp3"])
    with pytest.raises(OptionError, match="a recording must be a path or a URL, got int"):
        widget(corpus, audio={"interview": 5})


def test_one_recording_is_not_enough_for_a_corpus(corpus: voxframe.Corpus) -> None:
    """A single path does not say which transcript it belongs to."""
    for widget in (voxframe.WordSearch, voxframe.AskPanel):
        with pytest.raises(OptionError, match=r"audio must be a dict .* got 'a\.mp3'"):
            widget(corpus, audio="a.mp3")


def test_unknown_transcripts_of_an_ask_panel_are_named(corpus: voxframe.Corpus) -> None:
    """An id that is not in the corpus is found before a question is asked about it."""
    with pytest.raises(CorpusError, match="there is no transcript 'intervew'"):
        voxframe.AskPanel(corpus, transcripts=["interview", "intervew"])


def test_a_misspelled_recording_suggests_the_right_one(corpus: voxframe.Corpus) -> None:
    """The choice of an `AskPanel`, the group of a `WordSearch`, and the names of recordings say which one was meant."""
    meant = r"did you mean 'interview'\?"
    panel = voxframe.AskPanel(corpus)
    with pytest.raises(CorpusError, match=meant):
        panel.chosen = ["intervew"]
    search = voxframe.WordSearch(corpus, query="trees")
    search.only = ["intervew"]
    assert "did you mean 'interview'?" in search.error
    search.by, search.only = "speaker", ["intervew · A"]
    assert "there is no speaker 'intervew · A' (did you mean 'interview · A'?)" in search.error
    for widget in (voxframe.AskPanel, voxframe.WordSearch):
        with pytest.warns(CorpusWarning, match=meant):
            widget(corpus, audio={"intervew": "a.flac"})
    rows = corpus.table("words", ["interview"])
    with pytest.warns(CorpusWarning, match=meant):
        voxframe.Timeline(rows, corpus=corpus, audio={"intervew": "a.flac"})
    with pytest.raises(OptionError, match=meant):
        voxframe.Timeline(rows, audio={"intervew": "a.flac"})
    with pytest.raises(CorpusError, match=meant):
        corpus.speakers.forget_vectors("intervew")


def test_options_of_a_live_transcript_are_checked() -> None:
    """A misspelled option and a file that is no path are found before a session begins."""
    with pytest.raises(OptionError, match=r"no option 'word_bost'.*word_boost"):
        voxframe.LiveTranscript(word_bost=["x"])  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="file must be the path of a recording, got 5"):
        voxframe.LiveTranscript(file=5)  # type: ignore[arg-type]


def test_names_times_and_links_of_a_player_are_checked() -> None:
    """Names are a dict, times are numbers of at least 0, and only a widget can be linked."""
    with pytest.raises(OptionError, match=r"names must be a dict of names by speaker label, .* got 'A'"):
        voxframe.TranscriptPlayer(ROWS, names="A")  # type: ignore[arg-type]
    player = voxframe.TranscriptPlayer(ROWS)
    for wrong in ("3", -1, float("nan"), None):
        with pytest.raises(OptionError, match="time_ms must be a number from 0"):
            player.seek(wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="end_ms must be a number from 0"):
        player.cue(0, "3")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="other must be a widget"):
        player.link(ROWS)  # type: ignore[arg-type]


def test_times_of_rows_are_numbers() -> None:
    """Texts and timedeltas are refused by name; columns without values may have any dtype."""
    for wrong in ("0:01", pd.Timedelta("1s")):
        for widget in (voxframe.PassageList, voxframe.Timeline, voxframe.TranscriptPlayer):
            with pytest.raises(ValueError, match="start_ms must be a column of numbers"):
                widget(ROWS.assign(start_ms=wrong))
        with pytest.raises(ValueError, match="start_ms must be a column of numbers"):
            voxframe.Timeline(ROWS, bands=ROWS.assign(start_ms=wrong))
    empty = pd.DataFrame(columns=["start_ms", "end_ms", "text"])
    assert repr(voxframe.PassageList(empty)) == "PassageList(0 rows)"
    mixed = voxframe.PassageList(pd.DataFrame({"start_ms": [0, None], "end_ms": [9, None]}, dtype=object))
    assert mixed.error == ""


def test_a_row_that_does_not_exist_is_not_played() -> None:
    """The error states which positions there are."""
    rows = voxframe.PassageList(ROWS, audio=DATA / "call.flac")
    for wrong in (1, -1, "first"):
        with pytest.raises(OptionError, match="position must be a whole number from 0 to 0"):
            rows.play_row(wrong)  # type: ignore[arg-type]


def test_presets_may_be_a_text_path(tmp_path: Path) -> None:
    """Presets are saved to a path given as text; another object is refused."""
    form = voxframe.SubmitForm(voxframe.Corpus(tmp_path), presets=str(tmp_path / "presets.json"))
    form.save_preset("plain")
    assert (tmp_path / "presets.json").exists()
    with pytest.raises(OptionError, match="presets must be the path of a JSON file, got 5"):
        voxframe.SubmitForm(voxframe.Corpus(tmp_path), presets=5)  # type: ignore[arg-type]
