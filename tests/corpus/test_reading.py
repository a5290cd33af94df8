"""Reading over many transcripts: columns, rows, SQL, Polars, and tables made again."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import export, payload

import voxframe
from voxframe.errors import CorpusError, CorpusWarning
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION


@pytest.fixture
def filled(corpus: voxframe.Corpus) -> voxframe.Corpus:
    """Three transcripts of three words each, two by A and one by B."""
    for name in ("a", "b", "c"):
        corpus.put(name, json.dumps(payload(name)).encode())
    return corpus


def test_columns_and_rows_are_chosen(filled: voxframe.Corpus) -> None:
    """Only the columns asked for come, in that order and with the dictionary's dtypes, and only rows that fit."""
    frame = filled.table(
        "words", ["c", "a"], columns=["start_ms", "text"], where=[("speaker", "==", "A"), ("start_ms", ">", 200)]
    )
    assert frame.to_dict("list") == {"start_ms": [310, 310], "text": ["morning.", "morning."]}
    whole = filled.table("words")
    assert frame.dtypes.to_dict() == whole.dtypes[["start_ms", "text"]].to_dict()
    either = filled.table("words", where=[[("text", "==", "Good")], [("speaker", "in", ["B"])]])
    assert either["text"].to_list() == ["Good", "Hello!"] * 3
    expression = (pc.field("end_ms") - pc.field("start_ms")) > 350
    assert filled.table("words", "a", where=expression)["text"].to_list() == ["morning.", "Hello!"]
    assert filled.table("words", columns="text", where=("speaker", "==", "B"))["text"].to_list() == ["Hello!"] * 3


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"columns": ["nonsense"]}, "has no column 'nonsense'; it has transcript_id"),
        ({"where": [("nonsense", "==", 1)]}, "has no column 'nonsense'"),
        ({"where": [("speaker", "~", "A")]}, "an operator is one of =="),
        ({"where": [("start_ms", "==", "soon")]}, r"voxframe.describe\('words'\) says"),
        ({"where": "speaker"}, "takes .column, operator, value. triples"),
    ],
)
def test_what_cannot_be_read_is_named(filled: voxframe.Corpus, asked: dict, said: str) -> None:
    """A column that is not there and a condition that does not fit are errors that name them."""
    with pytest.raises(CorpusError, match=said):
        filled.table("words", **asked)


def test_a_data_set_reads_nothing_until_asked(filled: voxframe.Corpus) -> None:
    """`scan` gives a data set of pyarrow with the schema of a corpus, of all transcripts or some, also of none."""
    data = filled.scan("words")
    assert data.schema.equals(CORPUS_TABLES["words"].arrow)
    assert data.count_rows() == 9
    assert filled.scan("words", "b").count_rows(filter=pc.field("speaker") == "B") == 1
    assert filled.scan("topics").count_rows() == 0
    assert filled.scan("words", []).to_table().schema.equals(CORPUS_TABLES["words"].arrow)


def test_conditions_on_what_is_not_there(filled: voxframe.Corpus) -> None:
    """None, and what pandas shows for it, is null; a text is not taken for a list of its letters."""
    assert len(filled.table("words", where=[("channel", "==", None)])) == 9
    assert len(filled.table("words", where=[("channel", "!=", None)])) == 0
    assert (
        len(filled.table("words", where=[[("speaker", "==", "A"), ("channel", "=", None)], [("speaker", "==", None)]]))
        == 6
    )
    filled.set_metadata(
        pd.DataFrame({"transcript_id": ["a"], "customer": ["Acme"], "day": pd.to_datetime(["2026-01-01"])})
    )
    assert set(filled.table("words", where=[("customer", "==", None)])["transcript_id"]) == {"b", "c"}
    assert set(filled.table("words", where=[("day", "!=", None)])["transcript_id"]) == {"a"}
    for missing in (float("nan"), pd.NA, pd.NaT):
        assert len(filled.table("words", where=[("channel", "==", missing)])) == 9
        assert set(filled.table("words", where=[("customer", "==", missing)])["transcript_id"]) == {"b", "c"}
        assert set(filled.table("words", where=[("day", "!=", missing)])["transcript_id"]) == {"a"}
        assert len(filled.table("words", where=[("customer", "in", ["Acme", missing])])) == 9
    for column in ("speaker", "customer"):
        with pytest.raises(CorpusError, match=r"needs a list of values, such as \['Ada'\]"):
            filled.table("words", where=[(column, "in", "Ada")])


def test_polars_reads_it(filled: voxframe.Corpus) -> None:
    """Polars scans the same rows lazily."""
    assert filled.to_polars("utterances").collect()["text"].to_list() == ["Good morning.", "Hello!"] * 3


def test_sql_joins_the_tables(filled: voxframe.Corpus) -> None:
    """DuckDB's SQL sees every table of the corpus; text comes as str and integers as Int64; values are parameters."""
    filled.put("a", json.dumps(export("a", "sentences")).encode(), "sentences")
    found = filled.sql(
        "select t.transcript_id, count(*) as n from words w join transcripts t using (transcript_id) "
        "where w.speaker = ? group by all order by all",
        ["A"],
    )
    assert found.to_dict("list") == {"transcript_id": ["a", "b", "c"], "n": [2, 2, 2]}
    assert found.dtypes.to_dict() == {"transcript_id": filled.table("words")["text"].dtype, "n": pd.Int64Dtype()}
    assert filled.sql("select text from sentences")["text"].to_list() == ["Good morning.", "Hello!"]
    assert filled.sql("select count(*) as n from jobs")["n"].to_list() == [0]
    for query in ("select * from nothing", "selec 1", "select nope from words"):
        with pytest.raises(CorpusError, match="the query cannot be answered"):
            filled.sql(query)


def test_sql_says_what_there_is(filled: voxframe.Corpus) -> None:
    """The tables can be listed, a mistyped one is answered with their names, and values are given by name, too."""
    listed = filled.sql("SHOW TABLES;")["name"].to_list()
    assert {"words", "sentences", "jobs", "metadata", "responses"} <= set(listed)
    for name in listed:
        assert len(filled.sql(f"select * from {name}")) >= 0
    with pytest.raises(CorpusError, match=r"Tables are transcripts, words, .*show tables"):
        filled.sql("select * from wrds")
    found = filled.sql("select count(*) as n from words where speaker = $who", {"who": "A"})
    assert found["n"].to_list() == [6]


def _flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20] ^= 0xFF  # in the first page: the footer is at the end
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_flip_a_byte, lambda path: path.write_bytes(path.read_bytes()[:-5])])
def test_a_damaged_table_is_told_and_made_again(filled: voxframe.Corpus, damage: object) -> None:
    """A flipped bit in a page, and a file cut short, are reported by name and the rows come from the raw payload."""
    before = filled.table("words")
    damage(filled.path / "tables" / "words" / "b.parquet")  # type: ignore[operator]
    with pytest.warns(CorpusWarning, match=r"b\.parquet is damaged"):
        pd.testing.assert_frame_equal(filled.table("words"), before)
    pd.testing.assert_frame_equal(filled.table("words"), before)


@pytest.mark.parametrize("count", [3, 40])
def test_rebuild_makes_everything_again(corpus: voxframe.Corpus, count: int) -> None:
    """Tables that are missing or of another version are made again with no request: few here, many on all cores."""
    ids = [f"t{number:02d}" for number in range(count)]
    for name in ids:
        corpus.put(name, json.dumps(payload(name)).encode())
        corpus.put(name, json.dumps(export(name, "sentences")).encode(), "sentences")
    before, sentences = corpus.table("words"), corpus.table("sentences")
    assert corpus.rebuild() == 0
    for name in ("words", "sentences"):
        for path in (corpus.path / "tables" / name).glob("t*.parquet"):
            table = pq.read_table(path)
            older = {**table.schema.metadata, b"voxframe.schema_version": str(SCHEMA_VERSION - 1).encode()}
            pq.write_table(table.replace_schema_metadata(older), path)
    assert corpus.stale() == corpus.stale("sentences") == ids
    assert corpus.rebuild(progress=False) == 2 * count
    assert corpus.stale() == corpus.stale("sentences") == []
    pd.testing.assert_frame_equal(corpus.table("words"), before)
    pd.testing.assert_frame_equal(corpus.table("sentences"), sentences)


def test_rebuild_names_what_it_could_not_do(filled: voxframe.Corpus) -> None:
    """A damaged raw payload is named after all the others were done."""
    for path in (filled.path / "tables" / "transcripts").glob("?.parquet"):
        path.unlink()
    raw = filled.path / "raw" / "b.json.zst"
    data = bytearray(raw.read_bytes())
    data[10] ^= 0xFF
    raw.write_bytes(data)
    with pytest.raises(CorpusError, match=r"b\.json\.zst is damaged"):
        filled.rebuild()
    assert filled.stale() == ["b"]


def test_rebuild_from_a_plain_script(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """A script without a main guard can call it: its own lines run once."""
    for number in range(40):
        filled.put(f"t{number}", json.dumps(payload(f"t{number}")).encode())
    for path in (filled.path / "tables" / "transcripts").glob("t*.parquet"):
        path.unlink()
    script = tmp_path / "script.py"
    script.write_text(f"import voxframe\nprint('once', voxframe.Corpus({str(filled.path)!r}).rebuild())\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "once 40\n"


def test_damage_inside_a_file_is_found_for_sql_and_rebuild(filled: voxframe.Corpus) -> None:
    """A flipped bit is mended for a query at once, and for data sets by rebuild(verify=True)."""
    path = filled.path / "tables" / "words" / "b.parquet"
    query = "select max(transcript_id) as last from words"
    before = filled.sql(query)
    _flip_a_byte(path)
    with pytest.warns(CorpusWarning, match="b.parquet is damaged"):
        pd.testing.assert_frame_equal(filled.sql(query), before)
    _flip_a_byte(path)
    with pytest.raises(OSError, match=r"only plain dictionary|CRC|deserialize"):
        filled.scan("words").to_table()
    assert filled.rebuild() == 0
    with pytest.warns(CorpusWarning, match="b.parquet is damaged"):
        assert filled.rebuild(verify=True) == 1
    assert filled.scan("words").to_table().num_rows == 9


def test_what_is_no_identifier_is_said(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """Jobs that were not sent have none; a table stands for the transcripts in it, each once."""
    sealed = filled.snapshot(progress=False)
    for ids in (pd.Series(["a", np.nan]), ["a", None], 7):
        for read in (
            lambda ids: filled.table("words", ids),
            lambda ids: sealed.table("words", ids),
            lambda ids: filled.search("good", ids=ids),
            lambda ids: filled.export(tmp_path / "out", "vtt", ids=ids),
            filled.metadata,
        ):
            with pytest.raises(CorpusError, match="is no identifier of a transcript; leave it out"):
                read(ids)
    with pytest.raises(CorpusError, match="no transcript 'nope'"):
        sealed.table("words", ["a", "nope"])
    some = filled.table("words", ["b", "a"])
    pd.testing.assert_frame_equal(filled.table("words", some), some)
    pd.testing.assert_frame_equal(sealed.table("words", some), filled.table("words", ["a", "b"]))
