"""`.code` of each widget in a fresh process with another working directory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.widgets import AskPanel, LiveTranscript, SubmitForm, Timeline, TranscriptPlayer, WordSearch

DATA = Path(__file__).parents[2] / "data"
INTERVIEW = DATA / "payloads" / "interview.json"

_RUN = """
import sys
code, result = sys.argv[1:]
names = {}
exec(code, names)
names["result"].to_pickle(result)
"""


@pytest.fixture
def corpus(tmp_path) -> voxframe.Corpus:
    """A corpus with three transcripts."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in ("call", "interview", "panel"):
        corpus.raw.put(name, (DATA / "payloads" / f"{name}.json").read_bytes())
    return corpus


@pytest.fixture
def fresh(tmp_path):
    """Run code in a fresh process in another folder and return its `result`; the process connects to `service`."""

    def run(code: str, service: voxframe.Client | None = None, define: str = "") -> pd.DataFrame:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        data = tmp_path / "data" if service is None else service.settings.data_dir
        env = {name: value for name, value in os.environ.items() if not name.startswith("VOXFRAME_")}
        env["VOXFRAME_DATA_DIR"] = str(data)
        result = tmp_path / "result.pkl"
        done = subprocess.run(
            [sys.executable, "-c", _RUN, f"{define}\n{code}", str(result)],
            check=False, cwd=elsewhere, env=env, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return pd.read_pickle(result)

    return run


def test_a_player_of_a_path(fresh, monkeypatch):
    """A relative path and its recording are found from another folder, with names and corrections."""
    monkeypatch.chdir(DATA)
    player = TranscriptPlayer("payloads/interview.json", "interview.flac", title="Talk")
    player.names, player.corrections = {"A": "Ada's"}, {"1": 'say "so"'}
    monkeypatch.chdir("/")
    pd.testing.assert_frame_equal(fresh(player.code), player.result)
    names: dict = {}
    exec(player.code, names)
    assert (names["player"].title, names["player"]._sources) == ("Talk", player._sources)


def test_a_player_of_an_id(fresh, corpus):
    """A transcript of the corpus is shown from the corpus, with stored names and without a request."""
    client = voxframe.connect("http://127.0.0.1:9", api_key="secret-key")
    player = TranscriptPlayer("interview", corpus=corpus, client=client, names={"A": "Ada"})
    assert "secret-key" not in player.code
    pd.testing.assert_frame_equal(fresh(player.code), player.result)
    assert player.result["speaker"][0] == "Ada"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (json.loads(INTERVIEW.read_bytes()), "the payload"),
        (INTERVIEW.read_bytes(), "the payload"),
        (voxframe.load_words(INTERVIEW), "the DataFrame of words"),
        (voxframe.tables(INTERVIEW), "the dict of tables"),
    ],
    ids=["dict", "bytes", "words", "tables"],
)
def test_a_player_of_data_in_memory(source, said):
    """The first line describes `source`; with it defined, the code shows the same."""
    player = TranscriptPlayer(source)
    assert player.code.splitlines()[0] == f"# Define first: source = {said}"
    names: dict = {"source": source}
    exec(player.code, names)
    pd.testing.assert_frame_equal(names["result"], player.result)


@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")  # the interview has no chapters
def test_a_timeline(fresh):
    """The first line describes `df` and `bands`; with them defined, the code selects the same rows."""
    turns = voxframe.load_utterances(INTERVIEW)
    timeline = Timeline(turns, bands=voxframe.load_chapters(INTERVIEW), title="Who")
    timeline.interval, timeline.names = [20_000, 40_000], {"A": "Ada"}
    first = timeline.code.splitlines()[0]
    assert first == "# Define first: df = the DataFrame with start_ms and end_ms; bands = the DataFrame of bands"
    path = str(INTERVIEW)
    define = f"import voxframe\ndf, bands = voxframe.load_utterances({path!r}), voxframe.load_chapters({path!r})"
    pd.testing.assert_frame_equal(fresh(timeline.code, define=define), timeline.result)
    names: dict = {"df": turns, "bands": voxframe.load_chapters(INTERVIEW)}
    exec(timeline.code, names)
    assert names["timeline"].names == {"A": "Ada"}
    assert names["timeline"].title == "Who"


def test_a_word_search(fresh, corpus):
    """The code has query, group and recordings; its first line describes the DataFrame `about`."""
    search = WordSearch(corpus, audio={"call": DATA / "call.flac"}, query="the")
    search.only = ["call"]
    pd.testing.assert_frame_equal(fresh(search.code), search.result)
    names: dict = {}
    exec(search.code, names)
    assert names["search"]._found == search._found
    about = pd.DataFrame({"transcript_id": ["call", "interview"], "year": [2023, 2024]})
    other = WordSearch(corpus, about=about, player=TranscriptPlayer(INTERVIEW), query="the")
    wanted = "# Define first: about = the DataFrame with metadata; player = the TranscriptPlayer"
    assert other.code.splitlines()[0] == wanted


def test_an_ask_panel(fresh, corpus, service):
    """All answers shown come from the corpus without a request; a request that was not sent is a comment."""
    for name, speaker in (("interview", "A"), ("call", "1")):
        corpus.speakers.set(name, {speaker: "Ada"})  # sent as text: the service need not have them
    panel = AskPanel(corpus, service)
    assert fresh(panel.code, service).empty
    panel.chosen = ["interview"]
    for task, prompt in (("question-answer", "How many trees?"), ("summary", "")):
        panel.task, panel.prompt = task, prompt
        panel.ask()
        panel.wait(60)
        assert panel.error == ""
    panel.task, panel.prompt = "task", "List\nthe trees"
    again = fresh(panel.code, service)
    pd.testing.assert_frame_equal(again.drop(columns="created"), panel.result.drop(columns="created"))
    assert len(again) == 2
    assert r"# answers = corpus.task('List\nthe trees', ['interview'], client=client)" in panel.code
    panel.close()


@pytest.mark.long
@pytest.mark.speech
def test_a_submit_form(fresh, tmp_path, service, short, monkeypatch):
    """Recordings that were sent are not sent again; the code of an empty form runs too."""
    form = SubmitForm(voxframe.Corpus(tmp_path / "sent"), service, presets=tmp_path / "presets.json")
    assert fresh(form.code).empty
    monkeypatch.chdir(short.parent)
    form.inputs.value = short.name
    form.plan()
    form.wait(30)
    form.send()
    form.wait(120)
    again = fresh(form.code, service)
    assert again[["state", "transcript_id"]].to_numpy().tolist() == [["completed", form.result["transcript_id"][0]]]
    form.close()


@pytest.mark.long
@pytest.mark.speech
def test_a_live_transcript(fresh, service, short, monkeypatch):
    """A file given by a relative path is streamed again and gives the same text."""
    monkeypatch.chdir(short.parent)
    live = LiveTranscript(service, file=short.name)
    live.start()
    live.wait(60)
    again = fresh(live.code, service)
    assert again["text"].dropna().tolist() == live.result["text"].dropna().tolist() != []
    live.close()
