import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import traitlets
from ipywidgets.widgets import widget_link
from ipywidgets.widgets.widget import _instances

import voxframe
from voxframe.errors import AudioNotFoundError, OptionError
from voxframe.widgets import Timeline, TranscriptPlayer
from voxframe.widgets.passages import MOST_WORDS, passages

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


def test_turns_of_the_transcript_are_the_passages():
    """The interview's turns come out with their speakers, times and texts, every word once."""
    player = TranscriptPlayer(INTERVIEW)
    turns = voxframe.load_utterances(INTERVIEW)
    for column in ("speaker", "text", "start_ms", "end_ms", "word_count"):
        assert player.result[column].to_list() == turns[column].to_list(), column
    assert not player.result["corrected"].any()


def test_two_channels_at_once_stay_two_turns():
    """Where turns overlap, words stay with the turn they belong to, in the order in which the turns began."""
    player = TranscriptPlayer(DATA / "payloads" / "call.json")
    turns = voxframe.load_utterances(DATA / "payloads" / "call.json").sort_values("start_ms", kind="stable")
    for column, wanted in (("label", "speaker"), ("text", "text"), ("start_ms", "start_ms"), ("end_ms", "end_ms")):
        assert player.result[column].to_list() == turns[wanted].to_list(), column
    assert (turns["end_ms"].cummax().shift() > turns["start_ms"]).any()  # some do overlap


def test_a_long_turn_is_read_in_parts_cut_after_sentences():
    """A voice that never stops is cut into parts of at most 80 words, after sentences; it stays one turn."""
    texts = [f"word{n}." if n % 30 == 29 else f"word{n}" for n in range(200)] + ["x"] * 100
    found = passages(words(texts, ["A"] * 300))
    assert np.diff(found.first).max() <= MOST_WORDS
    assert found.first.tolist()[:4] == [0, 60, 120, 180]
    assert found.words["text"].to_list() == texts
    assert set(found.turn) == {0}
    assert TranscriptPlayer(words(texts, ["A"] * 300)).result["text"].to_list() == [" ".join(texts)]


def test_words_without_a_time_or_a_voice_are_kept():
    """A word with no time stays behind the one before it, a null speaker is a voice, no words are no passages."""
    found = passages(words(["one", "two", "three"], ["A", "A", None], [500, None, 900]))
    assert found.words["text"].to_list() == ["one", "two", "three"]
    assert found.voices == ["A", None]
    assert TranscriptPlayer(words(["one"], [None], [None])).result["start_ms"].isna().all()
    assert TranscriptPlayer(voxframe.load_words([])).result.empty


def test_names_and_corrections_are_in_the_result_and_told():
    """What is renamed or corrected shows in the result beside label and times; an observer hears of it."""
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
    corpus.put("interview", INTERVIEW.read_bytes())
    return corpus


def test_names_and_corrections_are_kept_by_the_corpus(corpus):
    """What is typed in one player is in the corpus's tables, and in a player opened later; taken back, it is gone."""
    player = TranscriptPlayer("interview", corpus=corpus)
    player.names = {"A": "Ada"}
    player.turn_names = {"2": "B"}
    player.corrections = {"1": "Good morning. Thank you."}
    assert player.error == ""
    turns = corpus.table("utterances")
    assert turns["speaker_name"].to_list()[:4] == ["Ada", "B", "B", "B"]
    assert corpus.corrections("interview")[["utterance_idx", "text"]].values.tolist() == [
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
    assert corpus.speaker_names("interview").empty
    assert corpus.corrections("interview").empty
    assert TranscriptPlayer("interview", corpus=corpus).result["speaker"].to_list()[:3] == ["A", "B", "A"]


def test_what_the_corpus_cannot_keep_is_said_and_taken_back(corpus):
    """A label nobody has: refused where it is given, said below and not shown where it is typed."""
    player = TranscriptPlayer("interview", corpus=corpus, names={"A": "Ada"})
    assert corpus.table("utterances")["speaker_name"][0] == "Ada"
    player.names = {"A": "Ada", "Z": "Zoe"}
    assert "This was not kept: 'interview' has no speaker 'Z'" in player.error
    assert player.names == {"A": "Ada"}
    player.names = {"A": "Ann"}
    assert player.error == ""
    assert player.result["speaker"][0] == "Ann"
    with pytest.raises(OptionError, match="has no speaker 'Z'"):
        TranscriptPlayer("interview", corpus=corpus, names={"Z": "Zoe"})


def test_a_payload_is_corrected_in_the_widget_only(corpus):
    """Of a payload nothing is written, unless a corpus that has the transcript is named."""
    TranscriptPlayer(INTERVIEW).names = {"A": "Ada"}
    assert corpus.speaker_names().empty
    TranscriptPlayer(corpus.tables("interview")["words"], corpus=corpus).names = {"A": "Ada"}
    assert corpus.speaker_names()["speaker_name"].to_list() == ["Ada"]


def test_the_code_shows_the_same_again():
    """Run with the same source, the lines give a player with the same names, corrections, selection and settings."""
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
    """Chapters, entities and safety labels of the payload travel as bands; what is not there is no layer."""
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
    """Where the service gave no words, a turn is read and sought as one."""
    player = TranscriptPlayer(
        {"id": "a", "utterances": [{"speaker": "A", "text": "Yes, sure.", "start": 5, "end": 90}]}
    )
    assert player.result[["speaker", "text", "start_ms"]].values.tolist() == [["A", "Yes, sure.", 5]]


def test_a_recording_is_played_by_address():
    """What goes to the browser is an address; nothing of the widget's state is near the size of the recording."""
    player = TranscriptPlayer(INTERVIEW, DATA / "interview.flac")
    assert player._sources[-1].startswith("http://127.0.0.1:")
    size = sum(len(value) if isinstance(value, bytes) else len(str(value)) for value in player._columns.values())
    assert size < 50_000 < (DATA / "interview.flac").stat().st_size


def test_what_cannot_be_played_is_refused_with_a_next_step():
    """No such file, two transcripts, an interval the wrong way round, a speed nobody hears."""
    one = voxframe.load_words(INTERVIEW)
    with pytest.raises(AudioNotFoundError, match="check its path"):
        TranscriptPlayer(INTERVIEW, "nowhere.flac")
    with pytest.raises(ValueError, match="of 2 transcripts; pick one"):
        TranscriptPlayer(pd.concat([one, one.assign(transcript_id="b")]))
    with pytest.raises(ValueError, match="needs the table 'words'; there is chapters"):
        TranscriptPlayer({"chapters": pd.DataFrame()})
    with pytest.raises(traitlets.TraitError, match="interval is"):
        TranscriptPlayer(one).interval = [1]
    with pytest.raises(traitlets.TraitError):
        TranscriptPlayer(one).speed = 99


def test_a_player_and_a_timeline_share_time_and_selection():
    """A link joins both traits in the browser, where it also works without a kernel."""
    player, timeline = TranscriptPlayer(INTERVIEW), Timeline(voxframe.load_utterances(INTERVIEW))
    player.link(timeline)

    links = [w for w in _instances.values() if isinstance(w, widget_link.Link)]
    joined = {(link.source[0], link.source[1], link.target[0], link.target[1]) for link in links}
    assert {(player, "time", timeline, "time"), (player, "interval", timeline, "interval")} <= joined


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_still_picture_is_text_and_short():
    """Hostile words and names are text; of many turns the first are shown and the others counted."""
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
    """Linked by a path relative to the page, embedded as data, or left out; an address cannot be embedded."""
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
    with pytest.raises(OptionError, match="'link', 'embed' or 'none', not 'inline'"):
        player.to_html(tmp_path / "page.html", audio="inline")
    with pytest.raises(OptionError, match="only a file can be embedded"):
        TranscriptPlayer(INTERVIEW, "https://example.org/a.mp3").to_html(tmp_path / "page.html", audio="embed")
