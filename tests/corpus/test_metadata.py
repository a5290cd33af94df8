import datetime as dt
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import payload

import voxframe
from voxframe.corpus.ledger import Ledger
from voxframe.errors import CorpusError, CorpusWarning, ExportWarning, OptionError

ABOUT = pd.DataFrame(
    {
        "transcript_id": ["t1", "t2"],
        "customer": ["Acme", "Böhm"],
        "calls": [3, 7],
        "day": pd.to_datetime(["2026-01-02", None]),
        "paid": [True, None],
        "text": ["note", None],
    }
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three transcripts of three words; two of them have metadata."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("made") / "corpus")
    for transcript_id in ("t1", "t2", "t3"):
        corpus.raw.put(transcript_id, json.dumps(payload(transcript_id)).encode())
    corpus.metadata.set(ABOUT)
    return corpus.path


@pytest.fixture
def filled(made: Path, corpus: voxframe.Corpus) -> voxframe.Corpus:
    """A copy of these."""
    shutil.copytree(made, corpus.path)
    return corpus


def test_columns_join_to_every_table(filled: voxframe.Corpus) -> None:
    """All or some columns follow those of a table, with their types; a name that the table has gets a prefix."""
    found = filled.table("utterances", metadata=True)
    assert list(found.columns[-5:]) == ["customer", "calls", "day", "paid", "metadata_text"]
    assert found["customer"].fillna("-").to_list() == ["Acme", "Acme", "Böhm", "Böhm", "-", "-"]
    assert list(map(str, found[["calls", "day", "paid"]].dtypes)) == ["Int64", "datetime64[us]", "boolean"]
    assert found["text"].to_list() == ["Good morning.", "Hello!"] * 3
    picked = filled.table("words", ["t2"], columns=["customer", "text"])
    assert picked.to_numpy().tolist() == [["Böhm", "Good"], ["Böhm", "morning."], ["Böhm", "Hello!"]]
    assert filled.table("words", columns="text", metadata="calls").columns.to_list() == ["text", "calls"]
    with pytest.warns(CorpusWarning, match="no topics: .* without iab_categories"):
        topics = filled.table("topics", metadata=["customer"])
    assert topics.dtypes["customer"] == found.dtypes["customer"]


def test_a_ledger_that_is_a_link_is_refused(filled: voxframe.Corpus) -> None:
    """Metadata, reads and a rebuild name the link, and the file that it points to does not change."""
    ledger, elsewhere = filled.path / "catalog.sqlite", filled.path.parent / "elsewhere.sqlite"
    ledger.rename(elsewhere)
    ledger.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    for use in (
        lambda: filled.metadata.set(ABOUT.assign(customer="other")),
        lambda: filled.table("transcripts"),
        lambda: filled.forget("t1"),
        filled.raw.rebuild_ledger,
    ):
        with pytest.raises(CorpusError, match=r"catalog\.sqlite is a symbolic link, through which nothing is written"):
            use()
    assert elsewhere.read_bytes() == before
    assert [path.name for path in elsewhere.parent.iterdir()] == [filled.path.name, elsewhere.name]
    assert filled.ids() == ["t1", "t2", "t3"]


def test_rows_are_filtered_by_metadata(filled: voxframe.Corpus) -> None:
    """Conditions on metadata combine with those on the table, as in pandas."""
    where = [("customer", "==", "Böhm"), ("start_ms", "<", 300)]
    assert filled.table("words", where=where)[["transcript_id", "text"]].to_numpy().tolist() == [["t2", "Good"]]
    either = [[("calls", ">", 5), ("speaker", "==", "B")], [("transcript_id", "==", "t3"), ("word_idx", "==", 0)]]
    assert filled.table("words", where=either)["text"].to_list() == ["Hello!", "Good"]
    assert filled.words("t2", where=("customer", "in", ["Acme", "Böhm"]))["text"].to_list()[0] == "Good"
    assert filled.words(where=("customer", "in", ["Nobody"]), columns=["text"], metadata="calls").empty
    for day in (pd.Timestamp("2026-02-01"), "2026-02-01"):
        assert filled.table("words", where=[("day", "<", day)])["transcript_id"].unique() == ["t1"]


def test_sql_knows_metadata(filled: voxframe.Corpus) -> None:
    """A query can join any table with `metadata`."""
    query = "select customer, count(*) n from words left join metadata using (transcript_id) group by 1 order by 1"
    assert filled.sql(query).fillna("-").to_numpy().tolist() == [["Acme", 3], ["Böhm", 3], ["-", 3]]


def test_search_and_counts_know_metadata(filled: voxframe.Corpus) -> None:
    """Matches are filtered by metadata and show it; counts group by it."""
    found = filled.search("hello", where=[("customer", "==", "Böhm"), ("start_ms", ">", 0)], metadata="calls")
    assert found[["transcript_id", "calls"]].to_numpy().tolist() == [["t2", 7]]
    assert filled.search("hello", where=[("start_ms", "<", 0)]).empty
    assert filled.ids("customer == 'Böhm' or calls < 5") == ["t1", "t2"]
    assert filled.counts("good", ids=filled.ids([("calls", ">", 5)]))["transcript_id"].to_list() == ["t2"]
    counted = filled.counts("good", by=["customer", "speaker"])
    assert counted[["customer", "speaker", "occurrences", "words"]].fillna("-").to_numpy().tolist() == [
        ["Acme", "A", 1, 2],
        ["Acme", "B", 0, 1],
        ["Böhm", "A", 1, 2],
        ["Böhm", "B", 0, 1],
        ["-", "A", 1, 2],
        ["-", "B", 0, 1],
    ]


def test_exports_with_metadata(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """Exports have the requested columns and partitions; caption formats refuse metadata."""
    filled.export(tmp_path / "set", tables="words", partition_by="customer", metadata="calls", ids=["t1", "t2"])
    read = pq.read_table(tmp_path / "set")
    assert sorted(zip(read["customer"].to_pylist(), read["calls"].to_pylist(), strict=True)) == [
        *[("Acme", 3)] * 3,
        *[("Böhm", 7)] * 3,
    ]
    filled.export(tmp_path / "words.csv", "csv", tables="words", metadata=True)
    written = pd.read_csv(tmp_path / "words.csv")
    assert written["customer"].to_list()[:3] == ["Acme"] * 3
    assert written["text"].to_list() == filled.table("words")["text"].to_list()
    assert "metadata_text" in written
    with pytest.raises(OptionError, match="srt cannot contain it"):
        filled.export(tmp_path / "captions", "srt", metadata=True)


def test_dates_as_partitions(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """A date is named YYYY-MM-DD in its time zone, whose loss is reported; a timestamp keeps its time."""
    days = pd.to_datetime(["2026-01-02", "2026-07-02"]).tz_localize("Europe/Berlin")
    about = {"transcript_id": ["t1", "t2"], "day": days, "at": pd.to_datetime(["2026-01-02 10:30", "2026-01-03 00:00"])}
    filled.metadata.set(pd.DataFrame(about))
    with pytest.warns(ExportWarning, match="in the time zone Europe/Berlin"):
        written = filled.export(tmp_path / "set", tables="words", partition_by=["day", "at"], ids=["t1", "t2"])
    assert {name.rpartition("/")[0] for name in written if "/" in name} == {
        "words/day=2026-01-02/at=2026-01-02 10%3A30%3A00",
        "words/day=2026-07-02/at=2026-01-03",
    }
    found = duckdb.sql(f"select distinct day from '{tmp_path}/set/words/**/*.parquet' order by day").fetchall()
    assert found == [(dt.date(2026, 1, 2),), (dt.date(2026, 7, 2),)]


def test_a_snapshot_keeps_its_metadata(filled: voxframe.Corpus) -> None:
    """A snapshot has the metadata of its time, and joins and filters like the corpus."""
    sealed = filled.snapshots.create()
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["New"]}))
    assert filled.table("transcripts", "t1", columns=["customer"])["customer"].to_list() == ["New"]
    assert sealed.table("transcripts", columns=["customer"], where=[("calls", "==", 3)]).to_numpy().tolist() == [
        ["Acme"]
    ]
    assert sealed.metadata()["customer"].fillna("-").to_list() == ["Acme", "Böhm", "-"]
    assert sealed.table("words", ["t2"], metadata="customer")["customer"].to_list() == ["Böhm"] * 3
    sealed.verify()


def test_submit_and_set_share_their_columns(peer, client, corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """Columns passed to `submit` join to tables; `metadata.set` changes single columns, also those shown by `jobs`."""
    path = tmp_path / "a.mp3"
    path.write_bytes(b"sound")
    corpus.submit(pd.DataFrame({"path": [path], "customer": ["Acme"], "calls": [1]}), client=client)
    corpus.sync(client=client)
    assert corpus.table("words", metadata="customer")["customer"].to_list() == ["Acme"] * 3
    (transcript_id,) = corpus.ids()
    corpus.metadata.set(pd.DataFrame({"transcript_id": [transcript_id], "calls": [2]}))
    assert corpus.jobs()[["customer", "calls"]].to_numpy().tolist() == [["Acme", 2]]
    assert voxframe.Corpus(corpus.path).metadata.get()[["customer", "calls"]].to_numpy().tolist() == [["Acme", 2]]
    corpus.forget(transcript_id)
    assert corpus.metadata.get().columns.to_list() == ["transcript_id", "recording", "source"]


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"customer": ["A"]}, "a column transcript_id"),
        ({"transcript_id": ["t1"], "state": ["A"]}, "cannot be named 'state'"),
        ({"transcript_id": ["t1"], "": ["A"]}, "a name must be non-empty text"),
        ({"transcript_id": ["t1", "t1"], "x": [1, 2]}, "contains 't1' more than once"),
        ({"transcript_id": ["t1", None], "x": [1, 2]}, "must contain only text, got nan; drop rows without a value"),
        ({"recording": [1001], "x": [1]}, "must contain only text, got 1001; .* and read numbers as text"),
        ({"transcript_id": ["t1"], "x": [[1]]}, "must be text, numbers, booleans or dates"),
    ],
)
def test_invalid_metadata_is_refused(filled: voxframe.Corpus, about: dict, said: str) -> None:
    """A DataFrame that cannot be stored changes nothing."""
    before = filled.metadata.get()
    with pytest.raises(OptionError, match=said):
        filled.metadata.set(pd.DataFrame(about))
    with pytest.raises(CorpusError, match="such as 'gone'"):
        filled.metadata.set(pd.DataFrame({"transcript_id": ["t1", "gone"], "customer": ["x", "y"]}))
    pd.testing.assert_frame_equal(filled.metadata.get(), before)


def test_unknown_transcripts_are_counted(filled: voxframe.Corpus) -> None:
    """The error has the number of ids that are not in the corpus, in singular or plural, and one of them."""
    for unknown, said in ((["x"], "1 transcript not found in"), (["x", "y"], "2 transcripts not found in")):
        with pytest.raises(CorpusError, match=rf"^{said} the corpus .*, such as 'x'; Corpus\.ids\(\) lists"):
            filled.metadata.set(pd.DataFrame({"transcript_id": unknown, "customer": "Acme"}))


def test_unknown_columns_are_named(filled: voxframe.Corpus) -> None:
    """Unknown columns, and conditions that do not fit their column, are errors."""
    with pytest.raises(CorpusError, match=r"no metadata column 'region'; the columns are: source, customer, calls"):
        filled.table("words", metadata="region")
    with pytest.raises(CorpusError, match="no column 'region'"):
        filled.table("words", where=[("region", "==", "x")])
    with pytest.raises(CorpusError, match="the column 'calls' contains numbers, but 'x' is text"):
        filled.table("words", where=[("calls", "<", "x")])
    with pytest.raises(OptionError, match=r"channel, person, recording, source, customer, calls.*got 'region'"):
        filled.counts("good", by="region")


def test_nulls_remove_values(filled: voxframe.Corpus) -> None:
    """A null removes a value; a column of text and numbers becomes text."""
    found = filled.metadata.set(pd.DataFrame({"transcript_id": ["t1", "t3"], "calls": [None, "many"]}))
    assert found["calls"].fillna("-").to_list() == ["-", "7", "many"]
    assert found["customer"].fillna("-").to_list() == ["Acme", "Böhm", "-"]


def test_values_without_a_common_type_are_text(filled: voxframe.Corpus) -> None:
    """Integers over 64 bits, and times with and without a zone, become text; times of two zones become UTC."""
    about = {"transcript_id": ["t1", "t2"], "big": [2**70, 1]}
    about["when"] = [pd.Timestamp("2026-07-01", tz="Europe/Berlin"), pd.Timestamp("2026-07-01")]
    found = filled.metadata.set(pd.DataFrame(about))
    assert found["big"].to_list()[:2] == ["1180591620717411303424", "1"]
    assert found["when"].to_list()[:2] == ["2026-07-01 00:00:00+02:00", "2026-07-01 00:00:00"]
    about["when"] = [pd.Timestamp("2026-07-01 12:00", tz=zone) for zone in ("Europe/Berlin", "Asia/Tokyo")]
    found = filled.metadata.set(pd.DataFrame(about))
    assert str(found["when"].dtype.tz) == "UTC"
    assert found["when"].dt.hour.to_list()[:2] == [10, 3]
    with pytest.raises(OptionError, match="surrogate"):
        filled.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "note": pd.Series(["\ud800"], dtype=object)}))


def test_types_are_those_of_all_recordings(filled: voxframe.Corpus) -> None:
    """A column has the same type in every selection, batch and single transcript, also where it has no value."""
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1", "t2", "t3"], "level": [1, "high", None]}))
    assert filled.metadata.get("t1")["level"].to_list() == ["1"]
    whole = filled.table("words", metadata=True).dtypes.to_dict()
    assert filled.table("words", "t3", metadata=True).dtypes.to_dict() == whole
    assert [batch.dtypes.to_dict() for batch in filled.batches("words", size=1, metadata=True)] == [whole] * 3


def test_a_name_conflicts_in_any_case(filled: voxframe.Corpus) -> None:
    """A column that differs from a table's only in case gets a prefix, because SQL, Spark and Delta ignore case."""
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "Speaker": ["Ada"]}))
    found = filled.table("words", metadata=["Speaker"], where="metadata_Speaker == 'Ada'")
    assert found["metadata_Speaker"].to_list() == ["Ada"] * 3
    for asked in ({"where": "Speaker == 'Ada'"}, {"columns": ["Speaker"]}):
        with pytest.raises(CorpusError, match="column 'Speaker' is called 'metadata_Speaker' in the table 'words'"):
            filled.table("words", **asked)


def test_a_name_with_a_prefix_may_be_taken(filled: voxframe.Corpus) -> None:
    """A column that is named like another one with its prefix keeps its name, and both have their values."""
    about = {"text": ["a", "b"], "Text": ["c", "d"], "metadata_text": ["e", "f"]}
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1", "t2"], **about}))
    found = filled.table("words", metadata=True, where="metadata_text == 'e'")
    names = ["metadata_metadata_text", "metadata_metadata_metadata_Text", "metadata_text"]
    assert found[names].to_numpy().tolist() == [["a", "c", "e"]] * 3
    assert filled.snapshots.create().table("words", metadata=["metadata_text"])["metadata_text"].notna().sum() == 6


def test_times_keep_their_time_zone(filled: voxframe.Corpus) -> None:
    """A column in one time zone keeps it, also over summer time, and is compared with text in that zone."""
    days = pd.to_datetime(["2026-01-01", "2026-07-01", None]).tz_localize("Europe/Berlin")
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1", "t2", "t3"], "when": days}))
    assert filled.metadata.get()["when"].to_list()[:2] == days.to_list()[:2]
    assert str(filled.metadata.get()["when"].dtype.tz) == "Europe/Berlin"
    assert filled.table("words", where=[("when", ">=", "2026-07-01")])["transcript_id"].unique().tolist() == ["t2"]
    assert filled.table("words", where=[("when", "in", ["2026-01-01"])])["transcript_id"].unique().tolist() == ["t1"]


def test_a_column_with_a_conflicting_name(filled: voxframe.Corpus) -> None:
    """`metadata_text` selects rows and columns; repeated ids and columns are not duplicated."""
    found = filled.table(
        "words", ["t1", "t2", "t1"], columns=["metadata_text"], where=[("metadata_text", "==", "note")]
    )
    assert found["metadata_text"].to_list() == ["note"] * 3
    assert len(filled.table("words", columns=["customer", "customer"]).columns) == 2
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t2"], "channel": ["phone"]}))
    matches = filled.search("good", where=[("metadata_channel", "==", "phone")], metadata="channel")
    assert matches[["transcript_id", "metadata_channel"]].to_numpy().tolist() == [["t2", "phone"]]


def test_metadata_may_have_the_names_of_other_columns(filled: voxframe.Corpus) -> None:
    """Snapshots, SQL and counts take numbers called confidence, and groups called like a column of the counts."""
    clashing = {"confidence": [1, 2], "words": ["few", "many"], "term": ["spring", "autumn"], "rank": [5, 6]}
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1", "t2"], **clashing}))
    sealed = filled.snapshots.create()
    assert sealed.metadata()["confidence"].fillna(0).to_list() == [1, 2, 0]
    joined = filled.sql("select * from words join metadata using (transcript_id) where words.text = 'Good' order by 1")
    assert joined["confidence_1"].fillna(0).to_list() == [1, 2, 0]
    assert joined.columns.is_unique
    counted = filled.counts("good", by="customer")
    assert counted[["customer", "occurrences", "words"]].fillna("-").to_numpy().tolist() == [
        ["Acme", 1, 3],
        ["Böhm", 1, 3],
        ["-", 1, 3],
    ]
    counted = filled.counts("good", by=["metadata_words", "metadata_term", "metadata_rank"], ids=["t2"])
    assert counted.columns.to_list()[1:4] == ["metadata_words", "metadata_term", "metadata_rank"]
    assert counted.iloc[0].to_list()[:6] == ["good", "many", "autumn", 6, 1, 3]
    with pytest.raises(OptionError, match="got 'term'"):
        filled.counts("good", by="term")


def test_different_metadata_for_one_recording_warns(client, corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """The first row is kept, and a warning says so."""
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).write_bytes(b"sound")
    recordings = pd.DataFrame({"path": [tmp_path / "a.wav", tmp_path / "b.wav"], "customer": ["Acme", "Böhm"]})
    with pytest.warns(CorpusWarning, match=r"b.wav' is the same recording as .*a.wav' with different metadata"):
        assert corpus.submit(recordings, client=client).sent == 1
    assert corpus.jobs()["customer"].to_list() == ["Acme"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorpusWarning)
        corpus.submit(recordings.assign(customer="Acme"), client=client)


def test_submitting_again_adds_columns(peer, client, corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """New columns are added to the existing ones; types in jobs() and plan() are those of metadata.get()."""
    path = tmp_path / "a.wav"
    path.write_bytes(b"sound")
    corpus.submit(pd.DataFrame({"path": [path], "customer": ["Acme"], "calls": [1]}), client=client)
    corpus.sync(client=client)
    corpus.metadata.set(pd.DataFrame({"transcript_id": corpus.ids(), "paid": [True]}))
    corpus.submit(pd.DataFrame({"path": [path], "calls": [2], "day": ["Monday"]}), client=client)
    assert corpus.jobs()[["customer", "calls", "paid", "day"]].to_numpy().tolist() == [["Acme", 2, True, "Monday"]]
    (tmp_path / "b.wav").write_bytes(b"more sound")
    corpus.submit(pd.DataFrame({"path": [tmp_path / "b.wav"]}), client=client)
    dtypes = corpus.metadata.get().dtypes
    assert (corpus.jobs()[["calls", "paid"]].dtypes == dtypes[["calls", "paid"]]).all()
    assert (
        corpus.plan(str(tmp_path / "*.wav"), client=client).table[["calls", "paid"]].dtypes == dtypes[["calls", "paid"]]
    ).all()


def test_a_column_with_names_occurs_once(filled: voxframe.Corpus) -> None:
    """Two columns with names of recordings are an error, like two columns with ids."""
    twice = pd.DataFrame([["t1", "t2", 1]], columns=["recording", "recording", "calls"])
    with pytest.raises(OptionError, match="has the column 'recording' more than once"):
        filled.metadata.set(twice)


def test_values_are_no_arrays(filled: voxframe.Corpus) -> None:
    """An array as a value is refused with the name of its column."""
    about = pd.DataFrame({"transcript_id": ["t1"], "scores": [np.array([1, 2])]})
    with pytest.raises(OptionError, match=r"metadata 'scores' must be text, .*, got array\(\[1, 2\]\)"):
        filled.metadata.set(about)


def test_no_metadata_are_left_of_a_transcript_that_is_deleted_meanwhile(filled: voxframe.Corpus, monkeypatch) -> None:
    """Metadata of a transcript that another process deletes at the same time are refused, and nothing is stored."""
    write = Ledger.set_metadata

    def delete_and_write(self: Ledger, *arguments: Any) -> Any:
        voxframe.Corpus(filled.path).forget("t1")
        return write(self, *arguments)

    monkeypatch.setattr(Ledger, "set_metadata", delete_and_write)
    with pytest.raises(CorpusError, match=r"1 transcript not found in the corpus .*, such as 't1'"):
        filled.metadata.set(ABOUT)
    assert not filled._archive.catalog.mentions("t1")
    assert filled.metadata.get("t2")["customer"].to_list() == ["Böhm"]


@pytest.mark.parametrize("there", [True, False])
def test_metadata_make_no_corpus(tmp_path: Path, there: bool) -> None:
    """Metadata for a mistyped path are an error, and no directory is made there."""
    corpus = voxframe.Corpus(tmp_path / "typo")
    if there:
        corpus.path.mkdir()
    with pytest.raises(CorpusError, match="not found in the corpus"):
        corpus.metadata.set(ABOUT)
    assert corpus.path.exists() == there


def test_a_join_with_metadata_leaves_one_recording(filled: voxframe.Corpus) -> None:
    """SQL names the recording of the rows without a prefix after a join with metadata."""
    filled.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"]}))
    query = "select recording, customer from utterances join metadata using (transcript_id) where customer = 'Acme'"
    assert set(filled.sql(query)["recording"]) == set(filled.table("utterances", "t1")["recording"])
