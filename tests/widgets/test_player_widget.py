import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
import traitlets
from ipywidgets import Widget
from ipywidgets.widgets import widget_link
from ipywidgets.widgets.widget import _instances
from matplotlib.colors import to_hex

import voxframe
from voxframe.colors import COLORS
from voxframe.errors import AudioNotFoundError, CorpusWarning, OptionError, PayloadWarning
from voxframe.widgets import Timeline, TranscriptPlayer
from voxframe.widgets.player_data import MAX_PASSAGE_WORDS, split_passages

DATA = Path(__file__).parents[2] / "data"
INTERVIEW = DATA / "payloads" / "interview.json"


def words(texts: list[str], speakers: list[str | None], start: list[int | None] | None = None) -> pd.DataFrame:
    start = list(range(0, 1000 * len(texts), 1000)) if start is None else start
    return pd.DataFrame(
        {
            "transcript_id": "t",
            "text": texts,
            "speaker": speakers,
            "start_ms": pd.array(start, "Int64"),
            "end_ms": pd.array(start, "Int64") + 800,
        }
    )


@pytest.mark.parametrize("audio", [b"RIFF", 5])
def test_a_recording_must_be_a_path_or_url(audio):
    """Bytes or a number as the recording raise an OptionError with the type."""
    with pytest.raises(OptionError, match=rf"must be a path or a URL, got {type(audio).__name__}"):
        TranscriptPlayer(INTERVIEW, audio)


def test_turns_of_the_transcript_are_the_passages():
    """The turns of the interview have their speakers, times and texts, and every word occurs once."""
    player = TranscriptPlayer(INTERVIEW)
    turns = voxframe.load_utterances(INTERVIEW)
    for column in ("speaker", "text", "start_ms", "end_ms", "word_count"):
        assert player.result[column].to_list() == turns[column].to_list(), column
    assert not player.result["corrected"].any()


def test_two_channels_at_once_stay_two_turns():
    """Words of overlapping turns stay in their turn, and turns are ordered by start."""
    player = TranscriptPlayer(DATA / "payloads" / "call.json")
    turns = voxframe.load_utterances(DATA / "payloads" / "call.json").sort_values("start_ms", kind="stable")
    for column, wanted in (("label", "speaker"), ("text", "text"), ("start_ms", "start_ms"), ("end_ms", "end_ms")):
        assert player.result[column].to_list() == turns[wanted].to_list(), column
    assert (turns["end_ms"].cummax().shift() > turns["start_ms"]).any()  # some do overlap


def test_a_long_turn_is_split_after_sentences():
    """A long turn is split into parts of at most 80 words, after sentences, and stays one turn."""
    texts = [f"word{n}." if n % 30 == 29 else f"word{n}" for n in range(200)] + ["x"] * 100
    found = split_passages(words(texts, ["A"] * 300))
    assert np.diff(found.first).max() <= MAX_PASSAGE_WORDS
    assert found.first.tolist()[:4] == [0, 60, 120, 180]
    assert found.words["text"].to_list() == texts
    assert set(found.turn) == {0}
    assert TranscriptPlayer(words(texts, ["A"] * 300)).result["text"].to_list() == [" ".join(texts)]


def test_words_without_a_time_or_speaker_are_kept():
    """A word without a time stays after the previous word, a null speaker is a speaker, no words give no passages."""
    found = split_passages(words(["one", "two", "three"], ["A", "A", None], [500, None, 900]))
    assert found.words["text"].to_list() == ["one", "two", "three"]
    assert found.speakers == ["A", None]
    assert TranscriptPlayer(words(["one"], [None], [None])).result["start_ms"].isna().all()
    with pytest.warns(PayloadWarning, match="no transcripts were given"):
        assert TranscriptPlayer(voxframe.load_words([])).result.empty


def test_names_and_corrections_are_in_the_result():
    """Names and corrections appear in the result beside label and times, and observers are notified."""
    player = TranscriptPlayer(words(["Helo", "there.", "Hi."], ["A", "A", "B"]), names={"A": "Ada"})
    heard = []
    player.observe(lambda change: heard.append((change["name"], change["new"])), ["names", "corrections"])
    player.corrections = {"0": "Hello there."}
    player.names = {"A": "Ada", "B": "Bo"}
    player.turn_names = {"1": "A"}
    assert player.result[["speaker", "label", "text", "corrected"]].values.tolist() == [
        ["Ada", "A", "Hello there.", True],
        ["Ada", "B", "Hi.", False],
    ]
    assert heard == [("corrections", {"0": "Hello there."}), ("names", {"A": "Ada", "B": "Bo"})]


@pytest.fixture
def corpus(tmp_path) -> voxframe.Corpus:
    """A corpus with the interview."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("interview", INTERVIEW.read_bytes())
    return corpus


def test_names_and_corrections_are_stored_in_the_corpus(corpus):
    """Edits in a player are in the tables of the corpus and in later players; undone edits disappear."""
    player = TranscriptPlayer("interview", corpus=corpus)
    player.names = {"A": "Ada"}
    player.turn_names = {"2": "B"}
    player.corrections = {"1": "Good morning. Thank you."}
    assert player.error == ""
    turns = corpus.table("utterances")
    assert turns["speaker_name"].to_list()[:4] == ["Ada", "B", "B", "B"]
    assert corpus.corrections.get("interview")[["utterance_idx", "text"]].values.tolist() == [
        [1, "Good morning. Thank you."]
    ]
    again = TranscriptPlayer("interview", corpus=voxframe.Corpus(corpus.path))
    assert again.result.equals(player.result)
    player.interval = again.interval = [0, 30_000]
    assert player.selection["speaker_name"].drop_duplicates().to_list() == ["Ada", "B"]
    pd.testing.assert_frame_equal(player.selection, again.selection)
    assert again.result["corrected"].sum() == 1
    assert TranscriptPlayer(corpus.tables("interview")["words"]).result["speaker"].to_list()[:3] == ["Ada", "B", "B"]
    again.names, again.turn_names, again.corrections = {}, {}, {}
    assert corpus.speakers.get("interview").empty
    assert corpus.corrections.get("interview").empty
    assert TranscriptPlayer("interview", corpus=corpus).result["speaker"].to_list()[:3] == ["A", "B", "A"]


def test_an_edit_that_cannot_be_stored_is_reverted(corpus):
    """An unknown label raises an error as an argument; typed in the widget, it is reported and reverted."""
    player = TranscriptPlayer("interview", corpus=corpus, names={"A": "Ada"})
    assert corpus.table("utterances")["speaker_name"][0] == "Ada"
    player.names = {"A": "Ada", "Z": "Zoe"}
    assert "This change was not saved: 'interview' has no speaker 'Z'" in player.error
    assert player.names == {"A": "Ada"}
    player.names = {"A": "Ann"}
    assert player.error == ""
    assert player.result["speaker"][0] == "Ann"
    with pytest.raises(OptionError, match="has no speaker 'Z'"):
        TranscriptPlayer("interview", corpus=corpus, names={"Z": "Zoe"})


def test_a_payload_is_corrected_in_the_widget_only(corpus):
    """Edits of a payload are not stored, unless a given corpus has the transcript."""
    TranscriptPlayer(INTERVIEW).names = {"A": "Ada"}
    assert corpus.speakers.get().empty
    TranscriptPlayer(corpus.tables("interview")["words"], corpus=corpus).names = {"A": "Ada"}
    assert corpus.speakers.get()["speaker_name"].to_list() == ["Ada"]


def test_the_code_shows_the_same_again():
    """Run with the same source, `.code` gives a player with the same names, corrections, selection and settings."""
    player = TranscriptPlayer(INTERVIEW, DATA / "interview.flac")
    player.names, player.corrections = {"A": "Ada's"}, {"1": 'say "so"'}
    player.interval, player.speed, player.query, player.layers = [1000, 5000], 1.5, "tree", []
    names: dict = {"source": INTERVIEW}
    exec(player.code, names)
    again = names["player"]
    assert again.result.equals(player.result)
    assert again.selection.equals(player.selection)
    assert len(player.selection) > 3
    assert [again.speed, again.query, again.layers, again.title] == [1.5, "tree", [], "interview.flac"]


def test_layers_are_those_that_have_rows():
    """Chapters, entities and safety labels of the payload are sent as bands; an empty table is no layer."""
    payload = json.loads(INTERVIEW.read_bytes())
    assert TranscriptPlayer(payload)._layers == ["confidence"]
    payload["chapters"] = [{"headline": "Trees", "gist": "", "summary": "", "start": 0, "end": 9000}]
    payload["entities"] = [{"entity_type": "date", "text": "today", "start": 100, "end": 900}]
    player = TranscriptPlayer(payload)
    assert player._layers == ["confidence", "chapters", "entities"]
    assert player._columns["chapter_text"] == b"Trees"
    tables = voxframe.tables(payload)
    assert TranscriptPlayer(tables)._columns == player._columns
    assert TranscriptPlayer(tables["words"])._layers == ["confidence"]


def test_a_transcript_with_turns_only_can_be_read():
    """If the service sent no words, each turn is shown and played as one word."""
    player = TranscriptPlayer(
        {"id": "a", "utterances": [{"speaker": "A", "text": "Yes, sure.", "start": 5, "end": 90}]}
    )
    assert player.result[["speaker", "text", "start_ms"]].values.tolist() == [["A", "Yes, sure.", 5]]


def test_a_recording_is_played_by_url():
    """The browser gets a URL; the state of the widget is much smaller than the recording."""
    player = TranscriptPlayer(INTERVIEW, DATA / "interview.flac")
    assert player._sources[0].startswith("http://127.0.0.1:")
    size = sum(len(value) if isinstance(value, bytes) else len(str(value)) for value in player._columns.values())
    assert size < 50_000 < (DATA / "interview.flac").stat().st_size


def test_invalid_input_is_refused_with_a_next_step():
    """Missing files, two transcripts, reversed intervals and impossible speeds raise errors with the next step."""
    one = voxframe.load_words(INTERVIEW)
    with pytest.raises(AudioNotFoundError, match="check the path"):
        TranscriptPlayer(INTERVIEW, "nowhere.flac")
    with pytest.raises(ValueError, match="to 2 transcripts; select one"):
        TranscriptPlayer(pd.concat([one, one.assign(transcript_id="b")]))
    with pytest.raises(ValueError, match="needs the table 'words', got chapters"):
        TranscriptPlayer({"chapters": pd.DataFrame()})
    with pytest.raises(traitlets.TraitError, match="interval must be"):
        TranscriptPlayer(one).interval = [1]
    with pytest.raises(traitlets.TraitError):
        TranscriptPlayer(one).speed = 99


def test_a_player_and_a_timeline_share_time_and_selection():
    """A link joins time and interval in the browser, so it works without a kernel."""
    player, timeline = TranscriptPlayer(INTERVIEW), Timeline(voxframe.load_utterances(INTERVIEW))
    player.link(timeline)

    links = [w for w in _instances.values() if isinstance(w, widget_link.Link)]
    joined = {(link.source[0], link.source[1], link.target[0], link.target[1]) for link in links}
    assert {(player, "time", timeline, "time"), (player, "interval", timeline, "interval")} <= joined


def test_names_are_passed_on_but_not_to_a_player_of_another_transcript():
    """A linked timeline shows the names of the player, also later ones; its names of other speakers stay."""
    player, timeline = TranscriptPlayer(INTERVIEW, names={"A": "Ada"}), Timeline(voxframe.load_utterances(INTERVIEW))
    other = TranscriptPlayer(DATA / "payloads" / "panel.json")
    timeline.names = {"B": "Bo"}
    player.link(timeline)
    player.link(other)
    assert timeline.names == {"A": "Ada", "B": "Bo"}
    player.names = {"A": "Zoe"}
    assert timeline.names == {"A": "Zoe", "B": "Bo"}
    player.names = {}
    assert timeline.names == {"B": "Bo"}
    assert "(unknown)" not in unquote(timeline.static_html())
    assert other.names == {}


def test_a_rename_changes_no_colour(corpus):
    """A label has one colour in player, timeline and plots, whatever its name and whoever is left out."""
    first, second = COLORS[:2]
    named = {"A": "Zoe", "B": "Ada"}  # in alphabetical order they would change places
    player = TranscriptPlayer("interview", corpus=corpus, names=named)
    assert player._colors == {"A": 0, "B": 1}
    player.turn_names = {"2": "Guest"}
    guest = player._colors["Guest"]
    assert (player._colors, guest > 1) == ({"A": 0, "B": 1, "Guest": guest}, True)
    turns = corpus.table("utterances")
    timeline = Timeline(turns)
    assert dict(zip(timeline._names, timeline._colors, strict=True)) == {
        "Zoe": 0,
        "Ada": 1,
        "Guest": guest,
    }
    lanes = voxframe.plots.timeline(turns)
    drawn = {
        lane.get_text(): to_hex(bars.get_facecolor()[0]).upper()
        for lane, bars in zip(lanes.get_yticklabels(), lanes.collections, strict=True)
    }
    assert drawn == {"Zoe": first, "Ada": second, "Guest": COLORS[guest]}
    only = voxframe.plots.timeline(turns, speakers=["Ada"])
    assert to_hex(only.collections[0].get_facecolor()[0]).upper() == second
    for spoken in (turns, voxframe.analysis.talk_time(turns)):
        bars = voxframe.plots.talk_time(spoken)
        names = [label.get_text() for label in bars.get_yticklabels()]
        colors = {name: to_hex(bar.get_facecolor()).upper() for name, bar in zip(names, bars.patches, strict=True)}
        assert colors == drawn
    left = unquote(TranscriptPlayer(turns[turns["speaker"] == "B"]).static_html())
    assert second in left
    assert first not in left


def test_labels_with_one_name_have_one_lane_and_colour(corpus):
    """Two labels with one name have the colour of the first one in the static HTML and in the plot."""
    player = TranscriptPlayer("interview", corpus=corpus, names={"A": "Ada", "B": "Ada"})
    still = unquote(player.static_html())
    assert (COLORS[0] in still, COLORS[1] in still) == (True, False)
    (bars,) = voxframe.plots.timeline(corpus.table("utterances")).collections
    assert to_hex(bars.get_facecolor()[0]).upper() == COLORS[0]


def test_a_cue_stops_at_the_end_of_its_passage():
    """`cue` seeks, selects, ends a loop and stops at the end of the turn; `play` does not stop."""
    player = TranscriptPlayer(words(["one", "two", "three", "four"], ["A", "A", "B", "B"]))
    player.loop = True
    player.cue(1000, 1800)
    assert (player.time, player.interval, player.loop, player._stop_at[0]) == (1000, [1000, 1800], False, 1800)
    player.cue(0)
    assert (player.interval, player._stop_at[0]) == ([], 1800)
    player.cue(1000, 2800)  # a match over two turns
    assert player._stop_at[0] == 2800
    player.play()
    assert player._stop_at[0] == 0


def test_an_edit_is_confirmed_even_if_it_is_refused(corpus, monkeypatch):
    """A page gets a confirmation of an edit; if the corpus refuses it, the error pane shows why."""
    player, sent = TranscriptPlayer("interview", corpus=corpus), []
    monkeypatch.setattr(Widget, "send", lambda _, message, buffers=None: sent.append(message))
    player._handle_custom_msg({"do": "edit", "n": "x", "names": {"A": "Ada"}, "turn_names": {"1": "A"}}, [])
    assert (player.names, player.turn_names) == ({"A": "Ada"}, {"1": "A"})
    player._handle_custom_msg({"do": "edit", "n": "y", "names": {"Z": "Zoe"}}, [])
    assert player.names == {"A": "Ada"}
    assert "was not saved" in player.error
    assert [message["n"] for message in sent if message["do"] == "received"] == ["x", "y"]


def test_turns_are_split_merged_moved_and_retimed(corpus):
    """Edits of turns from a page are stored in the corpus and shown; undo takes them back, last one first."""
    player = TranscriptPlayer("interview", corpus=corpus)
    player.send = lambda message, buffers=None: None
    first = player.result["text"][0].split()

    def edit(action: str, **more: int) -> None:
        player._on_browser_message({"do": "turn", "n": "x", "action": action, "turn": 0, **more}, [])
        assert player.error == ""

    def turns() -> list[tuple[int, str]]:
        return list(zip(player.result["turn_idx"], player.result["text"], strict=True))[:2]

    before = turns()
    edit("split", word=6)
    free = len(voxframe.load_utterances(INTERVIEW))
    assert turns() == [(0, " ".join(first[:6])), (free, " ".join(first[6:]))]
    player.turn_names = {str(free): "Guest"}
    assert player.result["speaker"].to_list()[:2] == ["A", "Guest"]
    edit("move", by=-2)
    assert turns()[0] == (0, " ".join(first[:4]))
    edit("time", word=1, start_ms=600, end_ms=700)
    assert corpus.words("interview", limit=2)["end_ms"][1] == 700
    player.corrections = {"0": "Good morning, all."}
    player.corrections = {}
    assert turns()[0] == (0, " ".join(first[:4]))
    edit("merge")
    assert turns()[0] == before[0]
    for _ in range(6):
        edit("undo")
    assert turns() == before
    player._on_browser_message({"do": "turn", "n": "y", "action": "undo"}, [])
    assert "no change to undo" in player.error


def test_a_saved_notebook_holds_no_undone_text_and_no_author(corpus, monkeypatch):
    """The state of a player, as a notebook saves it, has neither; its page asks for them in a message."""
    monkeypatch.setenv("LOGNAME", "who-edited-it")
    player = TranscriptPlayer("interview", corpus=corpus)
    sent: list[dict] = []
    player.send = lambda message, buffers=None: sent.append(message)
    player.corrections = {"0": "Said in confidence."}
    player._on_browser_message({"do": "turn", "n": "x", "action": "undo", "turn": 0}, [])
    state = repr(player.get_state())
    assert "in confidence" not in state
    assert "who-edited-it" not in state
    sent.clear()
    player._on_browser_message({"do": "changes"}, [])
    (row,) = sent[0]["rows"]
    assert (row["text"], row["author"], row["redo"]) == ("Said in confidence.", "who-edited-it", True)


def put(path, payload: dict) -> voxframe.Corpus:
    """Return a new corpus with one payload."""
    corpus = voxframe.Corpus(path)
    corpus.raw.put(payload["id"], json.dumps(payload).encode())
    return corpus


def said(texts: str, speakers: str | None = None, **more) -> list[dict]:
    """Return words of 100 ms with pauses of 50 ms."""
    return [
        {"text": text, "start": n * 150, "end": n * 150 + 100, "confidence": 0.9, **more}
        | {"speaker": speakers[n] if speakers else None}
        for n, text in enumerate(texts.split())
    ]


def edit(player: TranscriptPlayer, action: str, turn: int = 0, **more: int) -> str:
    """Edit a turn as a page does, and return the error."""
    player.send = lambda message, buffers=None: None
    player._on_browser_message({"do": "turn", "n": "x", "action": action, "turn": turn, **more}, [])
    return player.error


@pytest.mark.parametrize("speakers", [None, "AABBA"])
def test_a_transcript_without_utterances_is_edited(tmp_path, speakers):
    """Turns are then counted at changes of speaker, in player and corpus alike; without labels there is one."""
    corpus = put(tmp_path, {"id": "t", "utterances": None, "words": said("so we met in zurich", speakers)})
    player = TranscriptPlayer("t", corpus=corpus)
    assert player.result["text"].to_list() == corpus.corrections.turns("t")["text"].to_list()
    assert len(player.result) == (3 if speakers else 1)
    last = player.result["turn_idx"].max()
    text = player.result["text"].iloc[-1]
    player.corrections = {str(last): text.replace("zurich", "Zürich today")}
    assert player.error == ""
    assert corpus.words()["text"].to_list() == ["so", "we", "met", "in", "Zürich", "today"]
    assert edit(player, "split", int(last), word=1) == ""
    assert player.result["text"].to_list() == corpus.corrections.turns("t")["text"].to_list()
    assert player.result["text"].iloc[-1] == ("today" if speakers else "we met in Zürich today")
    assert TranscriptPlayer("t", corpus=corpus).result.equals(player.result)
    assert edit(player, "undo") == edit(player, "undo") == ""
    assert player.result["text"].iloc[-1] == text
    assert not player.corrections


def test_words_of_no_turn_are_passages_of_their_own(tmp_path):
    """If the service left words out of its utterances, edits of the turns still reach the right ones."""
    words = said("um so we met", "AAAA")
    turn = {"speaker": "A", "text": "so we met", "start": 150, "end": 550, "words": words[1:]}
    corpus = put(tmp_path, {"id": "t", "words": words, "utterances": [turn]})
    player = TranscriptPlayer("t", corpus=corpus)
    assert player.result[["turn_idx", "text"]].values.tolist() == [[-1, "um"], [0, "so we met"]]
    player.corrections = {"0": "so they met"}
    assert corpus.words()["text"].to_list() == ["um", "so", "they", "met"]
    player.corrections = {**player.corrections, "-1": "er"}
    assert "has no turn -1; it has 0 to 0" in player.error


def test_turns_without_words_are_corrected_in_a_corpus(tmp_path):
    """A turn without words is shown as one word with its corrected text; it cannot be split."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    (tmp_path / "talk.json").write_text(
        json.dumps(
            {"id": "t", "status": "completed", "utterances": [{"speaker": "A", "text": "Yes, sure.", "start": 5}]}
        )
    )
    corpus.add(tmp_path / "talk.json")
    player = TranscriptPlayer("talk", corpus=corpus)
    assert player.title == "talk"
    player.corrections = {"0": "Yes, of course."}
    assert player.error == ""
    assert player.result[["text", "corrected"]].values.tolist() == [["Yes, of course.", True]]
    assert corpus.table("utterances")["text"].to_list() == ["Yes, of course."]
    assert "turn 0 has no word 1; it has 0" in edit(player, "split", 0, word=1)


def test_turns_on_two_channels_are_split(tmp_path):
    """A word is found by its turn although `words` has no `utterance_idx` where turns overlap."""
    turns = []
    for channel, text in (("1", "so we met"), ("2", "yes we did")):
        words = said(text, channel=channel)
        turns.append({"channel": channel, "text": text, "start": 0, "end": 400, "words": words})
    words = sorted((word for turn in turns for word in turn["words"]), key=lambda word: word["start"])
    corpus = put(tmp_path, {"id": "t", "words": words, "utterances": turns})
    player = TranscriptPlayer("t", corpus=corpus)
    assert edit(player, "split", 1, word=2) == ""
    assert sorted(player.result["text"]) == ["did", "so we met", "yes we"]
    assert "turn 1 has no word 7; it has 2" in edit(player, "time", 1, word=7, start_ms=0, end_ms=1)


def test_scripts_without_spaces_are_not_joined_with_spaces(tmp_path):
    """Chinese words are shown and corrected without spaces, in the widget alone and in a corpus."""
    payload = {"id": "t", "utterances": None, "words": said("我们 今天 在 北京 用 pandas 吧", "AAAAAAA")}
    corpus = put(tmp_path, payload)
    for player in (TranscriptPlayer(payload), TranscriptPlayer("t", corpus=corpus)):
        assert player.result["text"].to_list() == ["我们今天在北京用 pandas 吧"]
        assert np.frombuffer(player._columns["spaced"], "<i4").tolist() == [0, 0, 0, 0, 0, 1, 1]
        player.corrections = {"0": "我们昨天在北京用 pandas 吧"}
        assert player.result["text"].to_list() == ["我们昨天在北京用 pandas 吧"]
        player.interval = [0, 400]
        assert player.selection[["text", "start_ms"]].values.tolist() == [["我们", 0], ["昨天", 150], ["在", 300]]
        assert player._columns["text"].decode() == "我们昨天在北京用pandas吧"
    with pytest.warns(CorpusWarning, match="no utterances: .* without speaker_labels"):
        assert corpus.table("utterances").empty
    assert corpus.corrections.turns("t")["text"].to_list() == ["我们昨天在北京用 pandas 吧"]
    assert voxframe.analysis.turns(corpus.words())["text"].to_list() == ["我们昨天在北京用 pandas 吧"]


def test_a_turn_that_was_changed_elsewhere_is_not_overwritten(corpus):
    """Of two players, the second one shows what the first one stored instead of replacing it; other turns are free."""
    one, two = (TranscriptPlayer("interview", corpus=voxframe.Corpus(corpus.path)) for _ in range(2))
    first = one.result["text"][0]
    one.corrections = {"0": "Good morning."}
    two.corrections = {"1": "Thanks."}
    assert two.error == ""
    assert two.corrections == {"0": "Good morning.", "1": "Thanks."}
    assert edit(one, "split", 1, word=0).startswith("turn 1 was changed elsewhere; it is shown as it is now")
    assert one.result["text"].to_list()[:2] == ["Good morning.", "Thanks."]
    edit(two, "split", 0, word=1)
    one.corrections = {"0": first, "1": "Thanks."}
    assert "turn 0 was changed elsewhere" in one.error
    assert one.result["text"].to_list()[:3] == ["Good", "morning.", "Thanks."]
    assert corpus.corrections.history()["action"].to_list() == ["text", "text", "split"]


def test_a_payload_says_how_to_keep_changes(tmp_path, monkeypatch):
    """A player of a payload has realigned words; its advice, run as written, gives a player that stores changes."""
    payload = tmp_path / "talk.json"
    payload.write_text(json.dumps({"id": "t", "utterances": None, "words": said("so we met")}))
    player = TranscriptPlayer(payload)
    player.corrections = {"0": "so we two met"}
    player.interval = [0, 500]
    assert player.selection[["text", "start_ms", "end_ms"]].values.tolist() == [
        *(["so", 0, 100], ["we", 150, 250], ["two", 250, 300], ["met", 300, 400])
    ]
    assert player.selection["confidence"].isna().to_list() == [False, False, True, False]
    assert player.selection["text_original"].fillna("-").to_list() == ["-", "-", "", "-"]
    assert edit(player, "split", word=1) == ""  # a page offers no such edit, and it changes nothing
    player.corrections = {"0": "so we met"}
    assert player.corrections == {}
    assert "turns cannot be split, merged or moved" in player._not_stored
    monkeypatch.chdir(tmp_path)
    code = player._not_stored.partition("add it to a corpus: ")[2].removesuffix(".")
    *steps, last = code.split("; ")
    names: dict = {"voxframe": voxframe}
    exec("\n".join([*steps, f"kept = {last}"]), names)
    assert names["kept"]._not_stored == ""
    assert edit(names["kept"], "split", word=1) == ""
    assert names["kept"].result["text"].to_list() == ["so", "we met"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_static_html_is_escaped_and_short():
    """Markup in words and names is escaped; of many turns, the first are shown and the others are counted."""
    hostile = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"
    texts = [f"{hostile}{n}" for n in range(100)]
    player = TranscriptPlayer(words(texts, ["A", "B"] * 50), names={"A": hostile}, title=hostile)
    shown = player._repr_mimebundle_()[0]["text/html"]
    tags = Tags()
    tags.feed(shown)
    assert {tag for tag, _ in tags.seen} == {"div", "p", "strong", "em", "img"}
    assert all(set(attrs) <= {"style", "alt", "src", "class"} for _, attrs in tags.seen)
    assert "and 88 more turns" in shown


def test_a_page_links_or_embeds_the_recording(tmp_path):
    """The recording is linked by a path relative to the page, embedded as data, or left out; a URL is not embedded."""
    sound = tmp_path / "sound" / "näme 1.flac"
    sound.parent.mkdir()
    sound.write_bytes((DATA / "call.flac").read_bytes()[:3000])
    player = TranscriptPlayer(INTERVIEW, sound)
    sources = {}
    for how in ("link", "embed", "none"):
        player.to_html(tmp_path / "page.html", audio=how)
        page = (tmp_path / "page.html").read_text()
        state = page.split('id="state">')[1].split("</script>")[0]
        sources[how] = json.loads(state)["_sources"]
    assert sources["link"] == ["sound/n%C3%A4me%201.flac"]
    assert sources["none"] == []
    assert sources["embed"][0].startswith("data:audio/flac;base64,")
    assert "127.0.0.1" not in page
    with pytest.raises(OptionError, match="'link', 'embed' or 'none', got 'inline'"):
        player.to_html(tmp_path / "page.html", audio="inline")
    with pytest.raises(OptionError, match="only a local file can be embedded"):
        TranscriptPlayer(INTERVIEW, "https://example.org/a.mp3").to_html(tmp_path / "page.html", audio="embed")
