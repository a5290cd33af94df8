import json
import shutil
import threading
from pathlib import Path

import pytest
from tests.corpus.conftest import WORDS, export, payload, table_files

import voxframe
from voxframe import analysis, plots
from voxframe.errors import CorpusError, OptionError

VIEWS = ("sentences", "paragraphs")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two transcripts; in each, A says a turn of two words and B one of one word. The first has its exports."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("made") / "corpus")
    for transcript_id in ("t1", "t2"):
        corpus.raw.put(transcript_id, json.dumps(payload(transcript_id)).encode())
    for view in VIEWS:
        corpus.raw.put("t1", json.dumps(export("t1", view)).encode(), view)
    return corpus.path


@pytest.fixture
def corpus(made: Path, tmp_path: Path) -> voxframe.Corpus:
    """A copy of these."""
    shutil.copytree(made, tmp_path / "corpus")
    return voxframe.Corpus(tmp_path / "corpus")


def shown(corpus: voxframe.Corpus, name: str, transcript_id: str = "t1") -> list:
    """Return the names in one table of one transcript."""
    return corpus.table(name, transcript_id)["speaker_name"].to_list()


def test_names_are_in_every_table_and_labels_stay(corpus: voxframe.Corpus) -> None:
    """A name is shown for its label in all tables, SQL, Polars and snapshots."""
    corpus.speakers.set("t1", {"A": "Ada"})
    assert shown(corpus, "words") == ["Ada", "Ada", "B"]
    assert shown(corpus, "words", "t2") == ["A", "A", "B"]
    for name in ("utterances", *VIEWS):
        assert shown(corpus, name) == ["Ada", "B"]
        assert corpus.table(name, "t1")["speaker"].to_list() == ["A", "B"]
        assert corpus.tables("t1")[name]["speaker_name"].to_list() == ["Ada", "B"]
    query = "select distinct speaker_name from words order by all"
    assert corpus.sql(query)["speaker_name"].to_list() == ["A", "Ada", "B"]
    assert corpus.table("words", where=[("speaker_name", "==", "Ada")])["word_idx"].to_list() == [0, 1]
    assert corpus.table("words", columns=["speaker_name"], where=[("speaker", "==", "B")])["speaker_name"].eq("B").all()
    assert corpus.snapshots.create().table("words", "t1")["speaker_name"].to_list() == ["Ada", "Ada", "B"]
    assert corpus.to_polars("words", "t1").collect()["speaker_name"].to_list() == ["Ada", "Ada", "B"]


def test_loaders_show_names(corpus: voxframe.Corpus) -> None:
    """Tables loaded from a corpus have the names; payloads loaded with them show labels as names."""
    corpus.speakers.set("t1", {"A": "Ada"})
    loaded = voxframe.load_words(["t1", payload("t9")], corpus=corpus)
    assert loaded["speaker_name"].to_list() == ["Ada", "Ada", "B", "A", "A", "B"]
    assert voxframe.load_sentences("t1", corpus=corpus)["speaker_name"].to_list() == ["Ada", "B"]
    assert voxframe.tables("t1", corpus=corpus)["utterances"].vox.talk_time()["speaker"].to_list() == ["Ada", "B"]
    assert "speaker_name" not in voxframe.load_words(payload("t9"))


def test_another_handle_sees_them_and_a_rebuild_keeps_them(corpus: voxframe.Corpus) -> None:
    """Names are on disk: another process has them at once, and rebuilt tables too."""
    other = voxframe.Corpus(corpus.path)
    assert shown(other, "sentences") == ["A", "B"]
    corpus.speakers.set("t1", {"B": "Ben"})
    assert shown(other, "sentences") == ["A", "Ben"]
    for name in ("words", "sentences", "paragraphs"):
        for path in table_files(corpus, name):
            path.unlink()
    assert other.raw.rebuild_tables() == 4  # the other transcript is in the same part
    assert shown(other, "paragraphs") == ["A", "Ben"]


def test_two_labels_with_one_name_are_one_speaker(corpus: voxframe.Corpus) -> None:
    """Talk time and the timeline show one speaker if two labels have the same name."""
    corpus.speakers.set("t1", {"A": "Ada", "B": "Ada"})
    turns = corpus.table("utterances", "t1")
    assert analysis.talk_time(turns)[["speaker", "turns"]].to_numpy().tolist() == [["Ada", 2]]
    assert [label.get_text() for label in plots.timeline(turns).get_yticklabels()] == ["Ada"]


def test_a_single_turn_is_corrected_in_every_table(corpus: voxframe.Corpus) -> None:
    """Words, sentences and paragraphs of a corrected turn show the given label or name."""
    corpus.speakers.set("t1", {"A": "Ada"}, turns={1: "A"})
    assert shown(corpus, "words") == ["Ada", "Ada", "Ada"]
    corpus.speakers.set("t1", turns={1: "Carl"})
    assert shown(corpus, "words") == ["Ada", "Ada", "Carl"]
    for name in ("utterances", *VIEWS):
        assert shown(corpus, name) == ["Ada", "Carl"]
    assert corpus.search("hello")[["speaker", "speaker_name"]].to_numpy().tolist() == [["B", "Carl"], ["B", "B"]]


def test_a_turn_without_a_label_is_named(corpus: voxframe.Corpus) -> None:
    """The speaker of a single turn has a name in SQL and Polars too, even if the service gave no label."""
    turns = [{"speaker": None, "text": text, "start": 0, "end": 90, "words": []} for text in ("Hi.", "Yes.")]
    corpus.raw.put("t3", json.dumps({"id": "t3", "utterances": turns}).encode())
    corpus.speakers.set("t3", turns={0: "Ada"})
    query = "select speaker_name from utterances where transcript_id = 't3' order by utterance_idx"
    assert corpus.sql(query)["speaker_name"].fillna("").to_list() == ["Ada", ""]
    assert corpus.to_polars("utterances", "t3").collect()["speaker_name"].to_list() == ["Ada", None]


def test_a_turn_ends_before_the_next_one_starts(corpus: voxframe.Corpus) -> None:
    """A sentence that starts when a corrected turn ends belongs to the next turn of the same label."""
    turns = [{"speaker": "A", "text": "Hi.", "start": at, "end": at + 90, "words": []} for at in (0, 90)]
    said = [{"text": "Hi.", "start": at, "end": at + 90, "speaker": "A", "sentiment": "NEUTRAL"} for at in (0, 90)]
    answer = {"id": "t3", "utterances": turns, "sentiment_analysis_results": said}
    corpus.raw.put("t3", json.dumps(answer).encode())
    corpus.speakers.set("t3", turns={0: "Ada"})
    assert shown(corpus, "sentiments", "t3") == ["Ada", "A"]


def test_undo_reverts_one_change_at_a_time(corpus: voxframe.Corpus) -> None:
    """Undo goes back to no names at all, and is then an error; a call without a change adds no step."""
    corpus.speakers.set("t1", {"A": "Ada"})
    corpus.speakers.set("t1", {"B": "Ben"}, turns={0: "Carl"})
    corpus.speakers.set("t1", {"B": "Ben"}, turns={1: None})
    found = corpus.speakers.undo("t1")
    assert found.to_dict("list") == {
        "transcript_id": ["t1"],
        "speaker": ["A"],
        "speaker_name": ["Ada"],
        "utterance_idx": [None],
    }
    assert shown(corpus, "sentences") == ["Ada", "B"]
    assert corpus.speakers.undo("t1").empty
    assert shown(corpus, "sentences") == ["A", "B"]
    with pytest.raises(OptionError, match="no change to undo"):
        corpus.speakers.undo("t1")


def test_none_removes_a_name(corpus: voxframe.Corpus) -> None:
    """None removes a name and keeps the others."""
    corpus.speakers.set("t1", {"A": "Ada", "B": "Ben"}, turns={0: "Carl"})
    found = corpus.speakers.set("t1", {"A": None}, turns={0: None})
    assert found[["speaker", "speaker_name"]].to_numpy().tolist() == [["B", "Ben"]]
    assert shown(corpus, "utterances") == ["A", "Ben"]


def test_names_of_channels(corpus: voxframe.Corpus) -> None:
    """If only channels are known, the label is "channel 1"."""
    words = [{k: v for k, v in word.items() if k != "speaker"} | {"channel": "1"} for word in WORDS]
    corpus.raw.put("t3", json.dumps({"id": "t3", "words": words}).encode())
    corpus.speakers.set("t3", {"channel 1": "Ada"})
    assert shown(corpus, "words", "t3") == ["Ada"] * 3


@pytest.mark.parametrize(
    ("names", "turns", "said"),
    [
        ({"C": "Ada"}, None, "no speaker 'C'; it has A, B"),
        ({"A": " "}, None, "text of 1 to 200"),
        ({"A": 7}, None, "got 7"),
        (None, {2: "A"}, "no turn 2; it has 0 to 1"),
    ],
)
def test_invalid_names_are_refused(corpus: voxframe.Corpus, names: dict, turns: dict, said: str) -> None:
    """An unknown label or turn, and an invalid name, are errors and change nothing."""
    with pytest.raises(OptionError, match=said):
        corpus.speakers.set("t1", names, turns=turns)
    assert corpus.speakers.get().empty
    with pytest.raises(CorpusError, match="no transcript 'gone'"):
        corpus.speakers.set("gone", {"A": "Ada"})


def test_search_knows_names(corpus: voxframe.Corpus) -> None:
    """Matches can be filtered by name, also in `where`; matches and counts show names and group by them."""
    corpus.search("hello")  # the index is there before the names
    corpus.speakers.set("t1", {"B": "Ben"})
    corpus.speakers.set("t2", {"A": "Ben"})
    assert corpus.search("hello", speaker="Ben")["transcript_id"].to_list() == ["t1"]
    assert corpus.search(["hello", "morning"], where=[("speaker_name", "==", "Ben")])["speaker"].to_list() == ["B", "A"]
    found = corpus.counts("*o*", by="speaker_name")
    assert found[["speaker_name", "occurrences"]].to_numpy().tolist() == [["A", 2], ["B", 1], ["Ben", 3]]
    assert corpus.counts("*o*", by=(), speaker="Ben")["occurrences"].to_list() == [3]


def test_exports_show_names(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """Exports show speaker names, and leave them out if personal data is masked."""
    corpus.speakers.set("t1", {"A": "Ada"})
    corpus.export(tmp_path / "captions", "vtt", ids="t1")
    assert "<v Ada>Good morning." in (tmp_path / "captions/t1.vtt").read_text()
    with_entities = json.dumps(payload("t1") | {"entity_detection": True, "entities": []}).encode()
    corpus.raw.put("t1", with_entities)
    corpus.export(tmp_path / "masked", "vtt", ids="t1", pii="mask")
    assert "<v A>Good morning." in (tmp_path / "masked/t1.vtt").read_text()


def test_concurrent_changes_of_names(corpus: voxframe.Corpus) -> None:
    """No change is lost if several processes name the speakers of one transcript at the same time."""
    labels = "ABCDEFGH"
    words = [WORDS[0] | {"speaker": label} for label in labels]
    corpus.raw.put("many", json.dumps({"id": "many", "words": words}).encode())
    threads = [
        threading.Thread(target=voxframe.Corpus(corpus.path).speakers.set, args=("many", {label: f"Name {label}"}))
        for label in labels
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shown(corpus, "words", "many") == [f"Name {label}" for label in labels]


def test_names_go_with_the_transcript(corpus: voxframe.Corpus) -> None:
    """Forgetting a transcript deletes its names and their history."""
    corpus.speakers.set("t1", {"A": "Ada"})
    corpus.forget("t1")
    assert corpus.speakers.get().empty
    assert not any(b"Ada" in path.read_bytes() for path in corpus.path.rglob("*.*") if path.is_file())


def test_a_turn_that_was_split_off_has_a_speaker(tmp_path: Path) -> None:
    """The second part of a turn gets a name of its own in words, turns and sentences, until the split is undone."""
    words = [
        {"text": t, "start": 100 * n, "end": 100 * n + 90, "speaker": "A"} for n, t in enumerate(["Hi.", "Oh.", "No."])
    ]
    turn = {"speaker": "A", "text": "Hi. Oh. No.", "start": 0, "end": 290, "words": words}
    corpus = voxframe.Corpus(tmp_path / "split")
    corpus.raw.put("t", json.dumps({"id": "t", "status": "completed", "words": words, "utterances": [turn]}).encode())
    corpus.corrections.split("t", 1)
    assert corpus.speakers.set("t", turns={1: "Guest"})["utterance_idx"].to_list() == [1]
    corpus.corrections.set("t", {1: "Oh! No."})
    for name in ("words", "sentences"):
        assert corpus.table(name)["speaker_name"].to_list() == ["A", "Guest", "Guest"], name
    assert corpus.table("utterances")["speaker_name"].to_list() == ["A", "Guest"]
    with pytest.raises(OptionError, match="has no turn 7"):
        corpus.speakers.set("t", turns={7: "Guest"})
    corpus.corrections.undo("t")
    corpus.corrections.undo("t")
    assert corpus.words()["speaker_name"].to_list() == ["A"] * 3
