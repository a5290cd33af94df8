"""People across transcripts: assigned, undone, grouped by."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.dataset
import pytest

import voxframe
from voxframe import analysis, plots
from voxframe.errors import CorpusError, OptionError


def _payload(transcript_id: str, *turns: tuple[str, str, int]) -> bytes:
    """Return a transcript of turns with speaker, text and length in seconds."""
    found, start = [], 0
    for speaker, text, seconds in turns:
        words = [
            {"text": word, "start": start + n, "end": start + n + 1, "speaker": speaker}
            for n, word in enumerate(text.split())
        ]
        found.append({"speaker": speaker, "text": text, "start": start, "end": start + 1000 * seconds, "words": words})
        start += 1000 * seconds
    words = [word for turn in found for word in turn["words"]]
    return json.dumps({"id": transcript_id, "status": "completed", "utterances": found, "words": words}).encode()


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """Two calls with speakers A and B each, of whom A of `one` and B of `two` are Ada."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    (tmp_path / "one.json").write_bytes(_payload("t1", ("A", "good day sir", 3), ("B", "yes good", 1), ("A", "so", 2)))
    (tmp_path / "two.json").write_bytes(_payload("t2", ("A", "good evening", 4), ("B", "good night", 2)))
    corpus.add([tmp_path / "one.json", tmp_path / "two.json"])
    corpus.speakers.set("one", {"A": "Ada"})
    corpus.speakers.set("two", {"B": "Ada"})
    return corpus


def _recorded(corpus: voxframe.Corpus) -> str:
    return "".join(path.read_text() for path in sorted(corpus.path.glob("records/*.jsonl")))


def _people(corpus: voxframe.Corpus) -> dict[tuple[str, str], str]:
    table = corpus.speakers.table().dropna(subset="person")
    return {(row.recording, row.speaker): row.person for row in table.itertuples()}


def test_the_table_has_one_row_per_label(corpus: voxframe.Corpus) -> None:
    """A row has transcript, recording, label, name, person, talk time in seconds and number of turns."""
    corpus.speakers.assign({"Ada": "Ada Lovelace"}, by="name", ids="one")
    table = corpus.speakers.table()
    assert table.columns.to_list() == [
        "transcript_id",
        "recording",
        "speaker",
        "speaker_name",
        "person",
        "talk_s",
        "turns",
    ]
    assert table.fillna("-").to_numpy().tolist() == [
        ["t1", "one", "A", "Ada", "Ada Lovelace", 5.0, 2],
        ["t1", "one", "B", "-", "-", 1.0, 1],
        ["t2", "two", "A", "-", "-", 4.0, 1],
        ["t2", "two", "B", "Ada", "-", 2.0, 1],
    ]


def test_people_by_name_metadata_rule_and_table(corpus: voxframe.Corpus) -> None:
    """Each way assigns people; a person is one in all transcripts; every assignment is undone on its own."""
    corpus.speakers.assign(by="name")
    by_name = {("one", "A"): "Ada", ("two", "B"): "Ada"}
    assert _people(corpus) == by_name
    corpus.metadata.set(pd.DataFrame({"recording": ["one", "two"], "agent": ["Ben", None]}))
    corpus.speakers.assign({"B": "agent"}, by="metadata")
    assert _people(corpus) == {**by_name, ("one", "B"): "Ben"}
    corpus.speakers.assign(lambda row: "Cleo" if row["talk_s"] == 4 and row["agent"] is None else None)
    assert _people(corpus) == {**by_name, ("one", "B"): "Ben", ("two", "A"): "Cleo"}
    corpus.speakers.assign(pd.DataFrame({"recording": ["one"], "speaker": ["A"], "person": [None]}))
    assert _people(corpus) == {("two", "B"): "Ada", ("one", "B"): "Ben", ("two", "A"): "Cleo"}
    for expected in (
        {**by_name, ("one", "B"): "Ben", ("two", "A"): "Cleo"},
        {**by_name, ("one", "B"): "Ben"},
        by_name,
        {},
    ):
        corpus.speakers.undo()
        assert _people(voxframe.Corpus(corpus.path)) == expected
    with pytest.raises(OptionError, match="no change to undo"):
        corpus.speakers.undo()


def test_a_rule_gets_the_columns_of_the_table_beside_metadata_with_their_names(corpus: voxframe.Corpus) -> None:
    """Metadata columns called turns and person hide no column of the table, and leave no label out."""
    corpus.metadata.set(pd.DataFrame({"recording": ["one", "two"], "turns": ["many", "few"], "person": ["X", "Y"]}))
    corpus.speakers.assign(lambda row: f"{row['turns']} turns")
    assert _people(corpus) == {
        ("one", "A"): "2 turns",
        ("one", "B"): "1 turns",
        ("two", "A"): "1 turns",
        ("two", "B"): "1 turns",
    }


def test_undo_after_forget_reverts_the_last_change_that_is_left(corpus: voxframe.Corpus) -> None:
    """A change that was only about a forgotten transcript is gone, so one undo reverts the change before it."""
    corpus.speakers.assign(lambda row: "Ada" if row["recording"] == "one" and row["speaker"] == "A" else None)
    corpus.speakers.assign(lambda row: "Bea" if row["recording"] == "two" else None)
    corpus.forget("two")
    assert _people(corpus) == {("one", "A"): "Ada"}
    corpus.speakers.undo()
    assert _people(corpus) == {}


def test_groups_by_person_and_by_speaker(corpus: voxframe.Corpus) -> None:
    """A person has one group in all recordings, a label without a person one per recording; labels never mix."""
    corpus.speakers.assign(by="name")
    counted = corpus.counts("good", by="person").set_index("person")
    assert counted["occurrences"].to_dict() == {"Ada": 2, "two · A": 1, "one · B": 1}
    assert counted["words"].to_dict() == {"Ada": 6, "two · A": 2, "one · B": 2}
    by_label = corpus.counts("good", by="speaker").set_index(["transcript_id", "speaker"])["words"]
    assert by_label.to_dict() == {("t1", "A"): 4, ("t1", "B"): 2, ("t2", "A"): 2, ("t2", "B"): 2}
    turns = corpus.table("utterances", metadata=["recording", "person"])
    talk = analysis.talk_time(turns, by="person").set_index("person")["talk_s"]
    assert talk.to_dict() == {"Ada": 7.0, "two · A": 4.0, "one · B": 1.0}
    shown = [label.get_text() for label in plots.timeline(turns, by="person").get_yticklabels()]
    assert sorted(shown) == ["Ada", "one · B", "two · A"]
    shown = [label.get_text() for label in plots.timeline(turns, by="speaker").get_yticklabels()]
    assert len(shown) == 4
    with pytest.raises(OptionError, match=r"choose from speaker, recording, minute, .* with metadata='person'"):
        analysis.talk_time(corpus.table("utterances"), by="person")


def test_the_column_person(corpus: voxframe.Corpus) -> None:
    """`metadata` and `columns` add it to tables with speakers; a corrected turn has the person of its new label."""
    corpus.speakers.assign(by="name")
    corpus.speakers.set("one", turns={1: "A"})
    words = corpus.words("one", columns=["text", "person"])
    assert words.fillna("-").to_numpy().tolist() == [[text, "Ada"] for text in "good day sir yes good so".split()]
    turns = corpus.table("utterances", metadata="person", where=[("recording", "==", "two")])
    assert turns.columns.to_list() == [*corpus.table("utterances").columns, "person"]
    assert turns["person"].fillna("-").to_list() == ["-", "Ada"]
    with pytest.raises(CorpusError, match="no speakers"):
        corpus.table("chapters", metadata="person")


def test_no_part_is_rewritten_and_forget_removes_people(corpus: voxframe.Corpus) -> None:
    """Assigning people writes one file; `forget` also removes the transcript from earlier assignments."""
    before = {path: path.stat().st_mtime_ns for path in corpus.path.glob("tables/**/*.parquet")}
    corpus.speakers.assign(by="name")
    corpus.speakers.assign(pd.DataFrame({"recording": ["one"], "speaker": ["A"], "person": ["Eve"]}))
    assert {path: path.stat().st_mtime_ns for path in corpus.path.glob("tables/**/*.parquet")} == before
    corpus.forget("one")
    assert "Eve" not in _recorded(corpus)
    assert _people(corpus) == {("two", "B"): "Ada"}


@pytest.mark.parametrize(
    ("people", "by", "said"),
    [
        (None, None, "a function of a row"),
        ({"A": "nobody"}, "metadata", "no metadata column 'nobody'"),
        (None, "metadata", "the metadata column of each label"),
        (
            pd.DataFrame({"recording": ["one"], "speaker": ["Z"], "person": ["Eve"]}),
            None,
            "has no speaker 'Z'; it has A, B",
        ),
        (pd.DataFrame({"recording": ["one"]}), None, "needs the columns"),
        (lambda row: 7, None, "the name of a person must be text"),
    ],
)
def test_invalid_people_are_refused(corpus: voxframe.Corpus, people: object, by: str, said: str) -> None:
    """The message says what is allowed, and nothing is written."""
    with pytest.raises(OptionError, match=said):
        corpus.speakers.assign(people, by=by)
    assert "people" not in _recorded(corpus)


def test_rows_are_chosen_by_person(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """`where` takes `person` beside other columns and metadata in tables and searches; exports are divided by it."""
    corpus.speakers.assign(by="name")
    corpus.metadata.set(pd.DataFrame({"recording": ["one", "two"], "customer": ["Acme", "Blue"]}))
    ada = [["t1", "good"], ["t1", "day"], ["t1", "sir"], ["t1", "so"], ["t2", "good"], ["t2", "night"]]
    columns = ["transcript_id", "text"]
    assert corpus.words(where="person == 'Ada'", columns=columns).to_numpy().tolist() == ada
    both = "person == 'Ada' and customer == 'Blue' or text == 'evening'"
    assert corpus.words(where=both, metadata="person")["person"].fillna("-").to_list() == ["-", "Ada", "Ada"]
    assert corpus.words(where="person is None", limit=2)["text"].to_list() == ["yes", "good"]
    hits = corpus.search("good", where=[("person", "==", "Ada")], metadata=["person", "customer"])
    assert hits[["transcript_id", "person", "customer"]].to_numpy().tolist() == [
        ["t1", "Ada", "Acme"],
        ["t2", "Ada", "Blue"],
    ]
    with pytest.raises(CorpusError, match="'entities' has no column 'person'"):
        corpus.table("entities", where="person == 'Ada'")
    for by, words, transcripts in (
        ("person", "words/person=Ada", "transcripts"),
        (["recording", "person"], "words/recording=one/person=Ada", "transcripts/recording=one"),
        (["customer", "person"], "words/customer=Acme/person=Ada", "transcripts/customer=Acme"),
    ):
        made = corpus.export(tmp_path / "set", partition_by=by, overwrite=True).files
        assert {f"{words}/part-0.parquet", f"{transcripts}/part-0.parquet"} < {*made}
        read = pyarrow.dataset.dataset(tmp_path / "set/words", partitioning="hive").to_table()
        assert read.num_rows == len(corpus.words())
    with pytest.raises(OptionError, match="cannot partition by 'person': no table has such a column; entities has"):
        corpus.export(tmp_path / "other", tables=["entities", "chapters"], partition_by="person")
    corpus.speakers.undo()
    assert corpus.words(where="person == 'Ada'").empty


def test_no_names_are_no_people(corpus: voxframe.Corpus) -> None:
    """An empty dict of names assigns nobody, unlike None, which makes each name a person."""
    assert corpus.speakers.assign({}, by="name")["person"].isna().all()
    corpus.speakers.assign(by="name")
    assert _people(corpus) == {("one", "A"): "Ada", ("two", "B"): "Ada"}


def test_people_are_assigned_in_a_known_way(corpus: voxframe.Corpus) -> None:
    """A misspelt `by` is refused instead of being ignored."""
    with pytest.raises(OptionError, match="by must be 'name', 'metadata', 'voice' or None, got 'names'"):
        corpus.speakers.assign(lambda row: "Ada", by="names")  # type: ignore[arg-type]
    assert _people(corpus) == {}


def test_nobody_is_left_of_a_transcript_that_is_deleted_meanwhile(corpus: voxframe.Corpus) -> None:
    """A transcript that is deleted while people are assigned gets none."""

    def who(row: dict[str, object]) -> str:
        if "t1" in voxframe.Corpus(corpus.path):
            voxframe.Corpus(corpus.path).forget("t1")
        return f"{row['recording']} {row['speaker']}"

    corpus.speakers.assign(who)
    assert _people(corpus) == {("two", "A"): "two A", ("two", "B"): "two B"}
    assert "t1" not in _recorded(corpus)


def test_a_metadata_column_called_person_changes_nothing(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """Where the person of a row is meant, a metadata column of the same name is not; a snapshot has only the column."""
    corpus.speakers.assign(by="name")
    corpus.metadata.set(pd.DataFrame({"recording": ["one", "two"], "person": ["X", "Y"]}))
    assert corpus.words(where="person == 'Ada'", limit=1)["text"].to_list() == ["good"]
    assert corpus.words(where="person == 'X'").empty
    assert len(corpus.search("good", where=[("person", "==", "Ada")])) == 2
    written = corpus.export(tmp_path / "parts", tables="words", partition_by="person").files
    assert "words/person=Ada/part-0.parquet" in written
    sealed = corpus.snapshots.create(progress=False)
    assert sealed.table("words", where="person == 'Y'")["transcript_id"].unique().tolist() == ["t2"]
