import json
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import traitlets

import voxframe
from voxframe import encoder
from voxframe.errors import CorpusError, CorpusWarning, OptionError
from voxframe.widgets import TranscriptPlayer, WordSearch

DATA = Path(__file__).parents[2] / "data"
HOSTILE = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> voxframe.Corpus:
    """The recordings in data/, and a transcript with markup as words."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    for name in ("call", "interview", "panel"):
        corpus.raw.put(name, (DATA / "payloads" / f"{name}.json").read_bytes())
    texts = ["hostile", HOSTILE, "words"]
    words = [{"text": t, "start": 100 * n, "end": 100 * n + 90, "speaker": HOSTILE} for n, t in enumerate(texts)]
    corpus.raw.put(HOSTILE, json.dumps({"id": HOSTILE, "status": "completed", "words": words}).encode())
    return corpus


def read(found: dict, name: str) -> list[str]:
    """Return the texts of a column for the browser."""
    edges = np.frombuffer(found[f"{name}_at"], "<i4")
    return [found[name][a:b].decode() for a, b in pairwise(edges)]


def test_listed_matches_are_those_of_the_corpus(corpus):
    """Matches are listed with their context; the result has all of them, however few are listed."""
    search = WordSearch(corpus, query="the")
    search.limit = 5
    every = corpus.search("the")
    assert search.result.equals(every)
    assert len(every) > 20
    for name in ("left", "match", "right"):
        assert read(search._found, name) == every[name].head(5).to_list()
    assert np.frombuffer(search._found["start"], "<i4").tolist() == every["start_ms"].head(5).to_list()
    assert search._found["total"] == search._found["of_shown"] == len(every)
    search.query = ""
    assert search.result.empty
    assert list(search.result.columns) == list(every.columns)


def test_counts_and_positions_of_matches(corpus):
    """Transcripts have their counts in descending order and the positions of matches; one group can be shown alone."""
    search = WordSearch(corpus, query="the")
    counts = corpus.counts("the").query("occurrences > 0").sort_values("occurrences", ascending=False, kind="stable")
    assert read(search._found, "key") == counts["transcript_id"].to_list()
    first = np.frombuffer(search._found["falls_first"], "<i4")
    falls = np.frombuffer(search._found["falls"], "<i4")
    for n, transcript_id in enumerate(counts["transcript_id"]):
        expected = corpus.search("the", ids=transcript_id)["word_idx"].to_list()
        assert falls[first[n] : first[n + 1]].tolist() == expected
    search.only = ["call"]
    assert search.result.equals(corpus.search("the", ids="call"))
    search.by = "speaker"
    assert search.only == []
    assert search.counts.equals(corpus.counts("the", by="speaker"))
    search.only = ["interview · A"]
    assert set(search.result["speaker"]) == {"A"}
    assert set(search.result["transcript_id"]) == {"interview"}
    assert search._found["of_shown"] == len(search.result) < search._found["total"]


def test_groups_of_given_metadata(corpus):
    """Columns of `about` of any type can be counted by, and one group can be shown alone."""
    about = pd.DataFrame({"transcript_id": ["call", "interview", "panel"], "year": [2023, 2024, 2024]})
    search = WordSearch(corpus, about=about, query="the")
    search.by, search.only = "year", ["2024"]
    assert set(search.result["transcript_id"]) == {"interview", "panel"}
    assert dict(zip(read(search._found, "key"), np.frombuffer(search._found["count"], "<i4"), strict=True)) == {
        year: count for year, count in search.counts.dropna()[["year", "occurrences"]].values if count
    }
    assert "2024" in search.counts["year"].to_list()
    with pytest.raises(
        traitlets.TraitError,
        match="by must be one of transcript_id, speaker, speaker_name, channel, year, got 'colour'",
    ):
        search.by = "colour"
    corpus.metadata.set(about.rename(columns={"year": "jahr"}))
    own = WordSearch(corpus, query="the")
    own.by, own.only = "jahr", ["2023"]
    assert set(own.result["transcript_id"]) == {"call"}
    with pytest.raises(OptionError, match="a column transcript_id"):
        WordSearch(corpus, about=about.rename(columns={"transcript_id": "id"}))


def test_slop_and_invalid_queries(corpus):
    """`slop` is that of the corpus; an invalid query is shown in the error pane, which the next query clears."""
    search = WordSearch(corpus, query="trees the")
    search.slop = 3
    assert search.result.equals(corpus.search("trees the", slop=3))
    search.query = "*"
    assert "no word to search for" in search.error
    search.query = "trees the of"
    assert search.error == ""


def test_the_code_gives_the_same_result(corpus):
    """`.code` runs unchanged and gives the same matches and counts."""
    search = WordSearch(corpus)
    search.query, search.by, search.only, search.slop, search.limit = "of the", "speaker", ["interview · B"], 4, 7
    names: dict = {}
    exec(search.code, names)
    assert names["result"].equals(search.result)
    assert len(search.result) > 1
    assert names["search"]._found == search._found


def test_a_match_is_played_from_its_time(corpus):
    """A click opens the transcript at the match with its recording, hits marked; an open player is used again."""
    search = WordSearch(corpus, audio={"call": DATA / "call.flac"}, query="the")
    sent = []
    search.send = lambda message, buffers=None: sent.append(message)
    row = search.result.iloc[0]
    assert row["transcript_id"] == "call"
    search._on_browser_message({"do": "match", "row": 0}, [])
    player = search.player
    assert isinstance(player, TranscriptPlayer)
    assert (player.title, player.time, player.interval) == (
        "call",
        row["start_ms"],
        [row["start_ms"], row["end_ms"]],
    )
    assert player._sources
    assert player.query == "the"
    turns = corpus.table("utterances", "call")
    own = turns[(turns["start_ms"] <= row["start_ms"]) & (turns["end_ms"] >= row["end_ms"])]
    assert player._stop_at[0] in own["end_ms"].to_list()
    search._on_browser_message({"do": "fall", "transcript_id": "call", "start_ms": 5000}, [])
    assert search.player is player
    assert player.time == 5000
    search.play("panel", 10)
    assert search.player is not player
    assert sent == [{"do": "play"}] * 3
    with pytest.raises(CorpusError, match="no transcript 'nowhere'"):
        search.play("nowhere", 0)


def test_a_linked_player_plays_its_own_transcript(corpus):
    """A match of the linked player's transcript opens no second player."""
    player = TranscriptPlayer(corpus.tables("panel"))
    search = WordSearch(corpus, player=player)
    search.play("panel", 1234, 2000)
    assert (player.time, player.interval, search.player) == (1234, [1234, 2000], None)
    search.play("call", 100)
    assert search.player.time == 100


def test_a_moved_recording_is_reported(corpus, tmp_path):
    """The error pane names the missing path, and the transcript opens without sound."""
    search = WordSearch(corpus, audio={"call": tmp_path / "gone.flac"}, query="the")
    search._on_browser_message({"do": "match", "row": 0}, [])
    assert "is no longer at" in search.error
    assert search.player._sources == []


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append(tag)
        assert set(dict(attrs)) <= {"style", "class"}


def test_the_static_html_is_escaped(corpus):
    """Markup in words, speakers, ids, titles and queries is text in the saved notebook."""
    search = WordSearch(corpus, query="hostile *", title=HOSTILE)
    assert search._found["total"] == 1
    tags = Tags()
    tags.feed(search._repr_mimebundle_()[0]["text/html"])
    assert set(tags.seen) == {"div", "p", "strong", "table", "tr", "td"}
    assert HOSTILE in search.result["match"].iloc[0]


def test_an_empty_corpus_can_be_searched(tmp_path):
    """A search in a corpus that does not exist yet says so and does not fail; transcripts added later are found."""
    corpus = voxframe.Corpus(tmp_path / "later")
    search = WordSearch(corpus, query="trees")
    missing = f"there is no corpus in {str(corpus.path)!r} yet; Corpus.submit and Corpus.add create it"
    assert (search.error, search._found["total"]) == (missing, 0)
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        assert len(search.result) == 0
    corpus.raw.put("interview", (DATA / "payloads" / "interview.json").read_bytes())
    search.query = "tree*"
    assert search._found["total"] == len(search.result) > 0


def test_search_by_meaning(corpus):
    """The closest sentences are listed with their counts, one group can be shown alone, and the code does the same."""
    search = WordSearch(corpus)
    search.mode, search.limit = "meaning", 6
    search.query = "who pays for the trees"
    expected = corpus.search("who pays for the trees", mode="meaning", limit=6)
    assert search.result.equals(expected)
    assert read(search._found, "match") == expected["match"].to_list()
    assert (
        np.frombuffer(search._found["score"], "<i4").tolist() == (100 * expected["score"]).round().astype(int).to_list()
    )
    counts = expected["transcript_id"].value_counts(sort=False)
    assert dict(zip(read(search._found, "key"), np.frombuffer(search._found["count"], "<i4"), strict=True)) == dict(
        counts
    )
    search.by, search.only = "speaker", ["interview · B"]
    assert set(search.result["speaker"]) == {"B"}
    assert len(search.result) == 6
    assert "6 close sentences (score from 0.20)" in search._static_html()
    search.only, search.min_score = [], 0.4
    assert len(search.result) == (expected["score"] >= 0.4).sum()
    made = {}
    exec(search.code, made)
    assert made["result"].equals(search.result)
    search.mode = "words"
    assert list(search.result.columns) == list(corpus.search("x").columns)


def test_a_search_by_meaning_without_the_encoder_says_what_to_install(corpus, monkeypatch):
    """Without the extra, the error pane and the static HTML say how to install it, and words can still be searched."""
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    encoder.load.cache_clear()
    search = WordSearch(corpus, query="the price")
    search.mode = "meaning"
    assert "pip install 'voxframe[local]'" in search.error
    assert "pip install" in search._repr_mimebundle_()[0]["text/html"]
    search.mode = "words"
    assert search.error == ""


def test_a_date_selects_its_matches(corpus):
    """Dates in metadata are groups without a time of day, and each shows the matches of its transcripts alone."""
    about = pd.DataFrame({"transcript_id": ["call", "interview"], "day": pd.to_datetime(["2024-03-11", "2024-03-12"])})
    search = WordSearch(corpus, about=about, query="the")
    search.by = "day"
    assert set(read(search._found, "key")) == {"2024-03-11", "2024-03-12", ""}
    search.only = ["2024-03-12"]
    assert len(search.result) == len(corpus.search("the", ids="interview")) > 0
    assert search.error == ""
