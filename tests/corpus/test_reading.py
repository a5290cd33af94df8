"""Reads over many transcripts: columns, rows, SQL, Polars, and rebuilt tables."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.corpus.conftest import export, payload, raw_file, table_files

import voxframe
from voxframe.corpus.tables import Tables
from voxframe.errors import CorpusError, CorpusWarning, OptionError, PayloadError, PayloadWarning
from voxframe.schema import TABLES


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `filled`."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("stored") / "corpus")
    for name in ("a", "b", "c"):
        corpus.raw.put(name, json.dumps(payload(name)).encode())
    return corpus.path


@pytest.fixture
def filled(stored: Path, corpus: voxframe.Corpus) -> voxframe.Corpus:
    """Three transcripts of three words each, two by A and one by B."""
    return voxframe.Corpus(shutil.copytree(stored, corpus.path))


def test_columns_and_rows_are_selected(filled: voxframe.Corpus) -> None:
    """Only the requested columns and rows are returned, in the requested order, with the dtypes of the dictionary."""
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


def test_rows_without_their_id_are_those_of_the_transcripts(corpus: voxframe.Corpus) -> None:
    """A read without `transcript_id`, or without any column, has the rows of the transcripts, in the order of ids."""
    texts = {"a": ["One."], "b": ["Two", "three."], "c": ["Four", "five", "six."], "d": ["Seven."]}
    documents = [
        {"id": name, "status": "completed", "words": [{"text": w, "start": 0, "end": 9, "speaker": "A"} for w in words]}
        for name, words in texts.items()
    ]
    corpus.add([json.dumps(document).encode() for document in documents])
    corpus.corrections.set("c", {0: "Four and six."})  # its rows are in another file
    texts["c"] = ["Four", "and", "six."]
    for ids in (["d", "b"], ["c", "a"], ["d", "c", "b", "a"]):
        words = corpus.table("words", ids, columns=["text"])
        assert words["text"].to_list() == [word for name in ids for word in texts[name]]
        assert corpus.table("words", ids, columns=[]).shape == (len(words), 0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"columns": ["nonsense"]}, "has no column 'nonsense'; it has transcript_id"),
        ({"where": [("nonsense", "==", 1)]}, "has no column 'nonsense'"),
        ({"where": [("speaker", "~", "A")]}, "an operator is one of =="),
        ({"where": [("start_ms", "==", "soon")]}, "the column 'start_ms' contains numbers, but 'soon' is text"),
        ({"where": 5}, "where takes text such as .*, not 5"),
        ({"where": b"x"}, "where takes text such as .*, not b'x'"),
        ({"where": [[]]}, "where has an empty list of conditions"),
        ({"where": ["speaker"]}, "takes .column, operator, value. triples"),
        ({"where": "nonsense > 1"}, "has no column 'nonsense'"),
        ({"where": "speaker"}, "cannot be answered"),
        ({"where": pc.field("start_ms") > "soon"}, r"voxframe.describe\('words'\) says"),
    ],
)
def test_unknown_columns_and_conditions_are_named(filled: voxframe.Corpus, asked: dict, said: str) -> None:
    """An unknown column and an invalid condition are errors that name them."""
    with pytest.raises(CorpusError, match=said):
        filled.table("words", **asked)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("confidence < '0.5'", "the column 'confidence' contains numbers, but '0.5' is text; compare it with a number"),
        ("start_ms in [1, 'a']", "the column 'start_ms' contains numbers, but 'a' is text; compare it with a number"),
        ("speaker > 3", "the column 'speaker' contains text, but 3 is a number; compare it with text in quotes"),
        ("speaker", "the column 'speaker' contains text, but True is a boolean; compare it with text in quotes"),
        ("start_ms > None", "a null is neither less nor greater than a value; write start_ms is null"),
        ("n == '2'", "the column 'n' contains numbers, but '2' is text; compare it with a number"),
        ("`call type` < 2", "the column 'call type' contains text, but 2 is a number; compare it with text in quotes"),
        ("day > 20260102", "the column 'day' contains times, but 20260102 is a number; compare it with an ISO date"),
        ("day > '01.02.2026'", "'01.02.2026' is not an ISO date; write year, month and day, such as '2026-01-31'"),
        ("day > '2026-01-02T10:00+01:00'", "the column has times without a time zone; leave the time zone out"),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_named(filled: voxframe.Corpus, text: str, said: str) -> None:
    """The error shows the condition, what the column contains, and what was given, also for metadata."""
    days = pd.to_datetime(["2026-01-02"])
    filled.metadata.set(pd.DataFrame({"transcript_id": ["a"], "n": [2], "call type": ["new"], "day": days}))
    shown = {"speaker": "speaker == True"}.get(text, text)
    with pytest.raises(CorpusError, match=re.escape(said)) as caught:
        filled.words(where=f"{text} and transcript_id == 'a'")
    assert str(caught.value).startswith(f"the condition {shown} cannot be answered: ")


def test_dates_in_conditions(filled: voxframe.Corpus) -> None:
    """A column of dates is compared with ISO dates and times as text, and with date objects."""
    days = pd.to_datetime(["2026-01-02", "2026-02-01", "2026-02-03T10:00"], format="ISO8601")
    filled.metadata.set(pd.DataFrame({"transcript_id": ["a", "b", "c"], "day": days, "zoned": days.tz_localize("UTC")}))
    for where, expected in {
        "day >= '2026-02-01'": {"b", "c"},
        "day > '2026-02-03T09:30'": {"c"},
        "day in ['2026-01-02', '20260201']": {"a", "b"},
        "zoned < '2026-02-01T01:00+02:00'": {"a"},
        (("day", "<", date(2026, 2, 1)),): {"a"},
        (("day", "<", np.datetime64("2026-02-01", "ns")),): {"a"},
    }.items():
        assert set(filled.table("words", where=where)["transcript_id"]) == expected
    assert filled.ids(where=[("day", "in", days.to_numpy("datetime64[ns]")[1:])]) == ["b", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "speaker == 'A'",
        'speaker == "A" and start_ms > 200',
        "'A' != speaker",
        "200 < start_ms <= 400 or text == 'Good'",
        "not (speaker == 'A' and (start_ms > 200 or text in ['Good']))",
        "(speaker == 'A') & ~(text == 'Good') | (start_ms >= 500)",
        "text not in ('Good', 'x') and confidence > -1.5",
        "text != 'a `quoted` = \"text\"'",
        "not not word_idx == 1",
        "channel.isna() and speaker.notnull()",
        "not channel.notna() or text == 'is null'",
    ],
)
def test_conditions_written_as_text(filled: voxframe.Corpus, text: str) -> None:
    """Text selects the rows that `DataFrame.query` of pandas selects with it."""
    whole = filled.table("words")
    expected = whole.query(text).reset_index(drop=True)
    pd.testing.assert_frame_equal(filled.table("words", where=text), expected)
    assert 0 < len(expected) <= len(whole)


@pytest.mark.parametrize(
    "text",
    [
        "channel is null",
        "channel IS NOT NULL",
        "not speaker is null and text <> 'x' or end_ms is  not null",
        "text like 'G%' or text LIKE '%.'",
        "text not like '_o%' and speaker in ('A', 'B')",
        "not text like 'g%'",
    ],
)
def test_nulls_and_patterns_are_written_as_in_sql(filled: voxframe.Corpus, text: str) -> None:
    """`is null`, `is not null`, `like` and `not like` select the rows that DuckDB selects with them."""
    expected = filled.sql(f"select count(*) as n from words where {text}")["n"].item()
    assert len(filled.table("words", where=text.replace("<>", "!="))) == expected


def test_text_conditions_reach_nulls_flags_metadata_search_and_snapshots(filled: voxframe.Corpus) -> None:
    """`is None`, flags, metadata with blanks in their names, search and snapshots take text as well."""
    assert len(filled.table("words", where="channel is None and speaker is not None")) == 9
    assert filled.table("transcripts", where="dual_channel").empty
    filled.metadata.set(pd.DataFrame({"transcript_id": ["a", "b"], "call type": ["new", "old"], "n": [1, 2]}))
    assert set(filled.table("words", where="`call type` == 'old' or n < 2")["transcript_id"]) == {"a", "b"}
    assert filled.table("words", where="transcript_id in ['c'] and text == 'Good'")["transcript_id"].to_list() == ["c"]
    assert filled.search("hello", where="n == 2 and start_ms > 0")["transcript_id"].to_list() == ["b"]
    assert len(filled.snapshots.create().table("words", where="text == 'Good'")) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speaker = 'A'", "= must be =="),
        ("speaker == A", "compares the columns speaker and A"),
        ("__import__('os').getcwd() == 'x'", "is neither a column nor a value"),
        ("start_ms > 60 * 1000", "60 . 1000 is neither"),
        ("text.str.len() > 3", "is neither"),
        ("speaker in 'AB'", "in needs a list of values, not 'AB'"),
        ("speaker == ['A']", r"== needs one value, not \['A'\]"),
        ("'A' in speaker", "is neither a column"),
        ("", "cannot be read"),
        ("speaker == 'A", "cannot be read"),
        ("1 < 2", "1 is neither a column"),
        ("text == b'x'", "is neither"),
        ("(" * 5000 + "speaker == 'A'" + ")" * 4000, "cannot be read"),
        ("text == 'x' or " * 2000 + "text == 'y'", "at most 10000 are allowed"),
        (" and ".join(["(text == 'x' or text == 'y')"] * 30), "more than 100 combinations"),
        ("start_ms < 99999999999999999999999", "too large"),
        ("not " * 2000 + "dual_channel", "cannot be read"),
    ],
)
def test_other_text_is_refused_and_never_run(filled: voxframe.Corpus, text: str, said: str) -> None:
    """Anything but comparisons of columns with values is an error that shows the form."""
    with pytest.raises(CorpusError, match=said):
        filled.table("words", where=text)


@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")  # an empty list of ids
def test_categories_over_batches(filled: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with categories is read in batches, and has the rows and the dtypes of a read in one piece."""
    asked = [{}, {"where": "text != 'Good'"}, {"columns": ["start_ms", "speaker"]}, {"ids": ["c", "a"]}, {"ids": []}]
    asked += [{"limit": 4}, {"where": "text == 'nobody'"}]
    whole = [filled.table("words", **one, category=True, timedeltas=True) for one in asked]
    assert set(whole[0].dtypes[["transcript_id", "speaker", "speaker_name"]].astype(str)) == {"category"}
    monkeypatch.setattr("voxframe.corpus.query._IN_CATEGORIES", 1)
    for one, expected in zip(asked, whole, strict=True):
        pd.testing.assert_frame_equal(filled.table("words", **one, category=True, timedeltas=True), expected)


def test_limit_returns_the_first_rows(filled: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """`limit` returns the first rows of the same read without it, also with conditions and over several batches."""
    monkeypatch.setattr("voxframe.corpus.query._AT_A_TIME", 1)
    filled.metadata.set(pd.DataFrame({"transcript_id": ["c"], "n": [1]}))
    for limit in (0, 1, 4, 9, 20):
        for asked in ({}, {"where": "speaker == 'A'"}, {"metadata": "n"}, {"where": "n == 1"}, {"ids": ["b", "a"]}):
            expected = filled.table("words", **asked).head(limit)
            pd.testing.assert_frame_equal(filled.table("words", **asked, limit=limit), expected)
    assert filled.words(limit=2, category=True, timedeltas=True)["speaker"].dtype == "category"
    with pytest.raises(OptionError, match="limit must be a whole number of at least 0"):
        filled.table("words", limit=-1)


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("in", pa.array(["b", "c"])),
        ("in", pa.chunked_array([["b"], ["c"]])),
        ("in", np.array(["b", "c"])),
        ("in", pd.Series(["b", "c"])),
        ("in", iter(["b", "c"])),
        ("in", frozenset({"b", "c"})),
        (">=", pa.scalar("b")),
        (">=", np.str_("b")),
    ],
)
def test_values_of_other_libraries_are_compared(filled: voxframe.Corpus, operator: str, value: object) -> None:
    """Values of pyarrow, NumPy and pandas and iterators select rows of any column, also beside metadata."""
    found = filled.table("words", where=[("transcript_id", operator, value), ("speaker", "==", pa.scalar("B"))])
    assert found["transcript_id"].to_list() == ["b", "c"]
    again = filled.table("words", where=[("speaker", "in", iter(["B"]))], metadata="recording")
    assert again["recording"].to_list() == ["a", "b", "c"]


def test_scan_reads_nothing(filled: voxframe.Corpus) -> None:
    """`scan` returns a dataset with the schema of the corpus for all, some or no transcripts."""
    data = filled.scan("words")
    assert data.schema.equals(TABLES["words"].arrow)
    assert data.count_rows() == 9
    assert filled.scan("words", "b").count_rows(filter=pc.field("speaker") == "B") == 1
    assert filled.scan("words", iter(["a", "b"])).count_rows() == 6
    with pytest.warns(CorpusWarning, match="no topics: .* without iab_categories"):
        assert filled.scan("topics").count_rows() == 0
    with pytest.warns(CorpusWarning, match="no transcripts were given"):
        assert filled.scan("words", []).to_table().schema.equals(TABLES["words"].arrow)


def test_conditions_on_nulls(filled: voxframe.Corpus) -> None:
    """None and NA select nulls, and text is not treated as a list of letters."""
    assert len(filled.table("words", where=[("channel", "==", None)])) == 9
    assert len(filled.table("words", where=[("channel", "!=", None)])) == 0
    assert (
        len(filled.table("words", where=[[("speaker", "==", "A"), ("channel", "=", None)], [("speaker", "==", None)]]))
        == 6
    )
    filled.metadata.set(
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


def test_conditions_with_an_empty_list(filled: voxframe.Corpus) -> None:
    """No value is in an empty list, and every value is not in it; a list of nulls stands for null."""
    for where in ([("transcript_id", "in", [])], "speaker in []", [("start_ms", "in", [])]):
        assert len(filled.table("words", where=where)) == 0
    assert len(filled.table("words", where="speaker not in []")) == 9
    assert len(filled.table("words", where="channel in [None]")) == 9


def test_polars_reads_the_same_rows(filled: voxframe.Corpus) -> None:
    """Polars scans the same rows lazily, in any order."""
    rows = filled.to_polars("utterances").collect().sort("transcript_id", "utterance_idx")
    assert rows["text"].to_list() == ["Good morning.", "Hello!"] * 3
    assert filled.to_polars("utterances", iter(["b"])).collect()["transcript_id"].to_list() == ["b", "b"]


def test_lazy_reads_of_files_that_changed_are_errors(filled: voxframe.Corpus) -> None:
    """A lazy read has all its transcripts, or raises an error if one of them was replaced or forgotten meanwhile."""
    for name in ("a", "b", "c"):
        filled.raw.put(name, json.dumps(export(name, "sentences")).encode(), "sentences")
    filled.corrections.set("b", {0: "Good evening."})
    frame = filled.to_polars("words")
    filled.raw.put("a", json.dumps(payload("a") | {"text": "new"}).encode())
    with pytest.raises(Exception, match=r"(?i)page header|thrift|no such file"):
        frame.collect()
    assert filled.to_polars("words").collect()["transcript_id"].n_unique() == 3
    filled.table("sentences")
    sentences = filled.scan("sentences", ["b", "c"])
    filled.forget("a")
    assert sentences.to_table()["transcript_id"].to_pylist() == ["b", "b", "c", "c"]
    filled.forget("b")
    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)page header|thrift|no such file"):
        sentences.to_table()


def test_sql_joins_the_tables(filled: voxframe.Corpus) -> None:
    """SQL can use every table of the corpus; text is str, integers are Int64, and values are parameters."""
    filled.raw.put("a", json.dumps(export("a", "sentences")).encode(), "sentences")
    found = filled.sql(
        "select t.transcript_id, count(*) as n from words w join transcripts t using (transcript_id) "
        "where w.speaker = ? group by all order by all",
        ["A"],
    )
    assert found.to_dict("list") == {"transcript_id": ["a", "b", "c"], "n": [2, 2, 2]}
    assert found.dtypes.to_dict() == {"transcript_id": filled.table("words")["text"].dtype, "n": pd.Int64Dtype()}
    assert filled.sql("select text from sentences where not derived")["text"].to_list() == ["Good morning.", "Hello!"]
    assert filled.sql("select count(*) as n from jobs")["n"].to_list() == [0]
    for query in ("select * from nothing", "selec 1", "select nope from words"):
        with pytest.raises(CorpusError, match="the query failed"):
            filled.sql(query)


def test_an_error_about_a_text_is_no_damage(filled: voxframe.Corpus) -> None:
    """A query that fails at a text like the name of an error is reported as it is, not as a damaged file."""
    with pytest.raises(CorpusError, match="the query failed: Conversion Error: Could not convert string 'IOError'"):
        filled.sql("select cast('IOError' as int)")


@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")  # why a table is empty
def test_sql_lists_the_tables(filled: voxframe.Corpus) -> None:
    """The tables can be listed, an error names them, and parameters can be passed by name."""
    listed = filled.sql("SHOW TABLES;")["name"].to_list()
    assert {"words", "sentences", "jobs", "metadata", "responses"} <= set(listed)
    for name in listed:
        assert len(filled.sql(f"select * from {name}")) >= 0
    with pytest.raises(CorpusError, match=r"The tables are transcripts, words, .*show tables"):
        filled.sql("select * from wrds")
    found = filled.sql("select count(*) as n from words where speaker = $who", {"who": "A"})
    assert found["n"].to_list() == [6]


def _flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20] ^= 0xFF  # in the first page: the footer is at the end
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_flip_a_byte, lambda path: path.write_bytes(path.read_bytes()[:-5])])
def test_a_damaged_table_is_reported_and_rebuilt(filled: voxframe.Corpus, damage: object) -> None:
    """A flipped bit and a truncated file are reported, and the rows come from the payload."""
    before = filled.table("words")
    damage(table_files(filled, "words")[0])  # type: ignore[operator]
    with pytest.warns(CorpusWarning, match=r"words/.*\.parquet is damaged"):
        pd.testing.assert_frame_equal(filled.table("words"), before)
    pd.testing.assert_frame_equal(filled.table("words"), before)


def test_batches_hold_the_rows_of_the_table(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they have the rows of the table; each row group is read once, although the ids are in no order."""
    ids = [f"t{number * 7 % 40:02d}" for number in range(40)]
    corpus.add([payload(name) for name in ids], progress=False)
    whole, read, groups = corpus.table("words", columns=None), Tables.read, []
    spy = lambda self, part, name, some, *rest: groups.extend(some) or read(self, part, name, some, *rest)  # noqa: E731
    monkeypatch.setattr(Tables, "read", spy)
    found = list(corpus.batches("words", size=8))
    assert [one["transcript_id"].nunique() for one in found] == [8] * 5
    assert len(groups) == len(found)
    rows = pd.concat(found).sort_values(["transcript_id", "start_ms"], ignore_index=True)
    pd.testing.assert_frame_equal(rows, whole)
    assert [len(one) for one in corpus.batches("words", ["t03", "t01"], size=1)] == [3, 3]
    reading = corpus.batches("words", size=8)
    first = next(reading)
    corpus.forget(next(name for name in ids if name not in {*first["transcript_id"]}))
    assert sum(one["transcript_id"].nunique() for one in reading) == 31
    with pytest.raises(CorpusError, match="there is no transcript 'gone'"):
        list(corpus.batches("words", ["t01", "gone"]))
    for wrong in (0, True, 1.5):
        with pytest.raises(OptionError, match="size must be a whole number of at least 1"):
            corpus.batches("words", size=wrong)


@pytest.mark.long
@pytest.mark.parametrize("count", [3, 40])
def test_rebuild_tables(corpus: voxframe.Corpus, count: int) -> None:
    """Missing and outdated tables are rebuilt without a request, on all cores if there are many."""
    ids = [f"t{number:02d}" for number in range(count)]
    for name in ids:
        corpus.raw.put(name, json.dumps(payload(name)).encode())
        corpus.raw.put(name, json.dumps(export(name, "sentences")).encode(), "sentences")
    before, sentences = corpus.table("words"), corpus.table("sentences")
    assert corpus.raw.rebuild_tables() == 0
    corpus._archive.wait()
    with corpus._archive.catalog.writing() as tx:
        tx.put("parts", [{**row, "schema": "other"} for row in tx.find("parts")])
    corpus = voxframe.Corpus(corpus.path)
    assert corpus.raw.stale() == corpus.raw.stale("sentences") == ids
    assert corpus.raw.rebuild_tables(progress=False) == 2 * count
    assert corpus.raw.stale() == corpus.raw.stale("sentences") == []
    pd.testing.assert_frame_equal(corpus.table("words"), before)
    pd.testing.assert_frame_equal(corpus.table("sentences"), sentences)


def test_rebuild_names_damaged_payloads(filled: voxframe.Corpus) -> None:
    """A damaged payload is named after all others are done."""
    for path in table_files(filled, "transcripts"):
        path.unlink()
    raw = raw_file(filled, "b.json.zst")
    data = bytearray(raw.read_bytes())
    data[10] ^= 0xFF
    raw.write_bytes(data)
    with pytest.raises(CorpusError, match=r"b\.json\.zst is damaged"):
        filled.raw.rebuild_tables()
    assert filled.raw.stale() == ["b"]


@pytest.mark.long
def test_rebuild_from_a_plain_script(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """A script without a main guard can call it; its own lines run once."""
    for number in range(40):
        filled.raw.put(f"t{number}", json.dumps(payload(f"t{number}")).encode())
    filled._archive.wait()
    filled.path.joinpath("catalog.sqlite").unlink()
    script = tmp_path / "script.py"
    script.write_text(f"import voxframe\nprint('once', voxframe.Corpus({str(filled.path)!r}).raw.rebuild_tables())\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "once 43\n"


def test_damage_inside_a_file_is_found_for_sql_and_rebuild(filled: voxframe.Corpus) -> None:
    """A flipped bit in a file is found by its checksum, and the rows are made from the payload again."""
    query = "select max(transcript_id) as last from words"
    before = filled.sql(query)
    for repair in (
        lambda: pd.testing.assert_frame_equal(filled.sql(query), before),
        lambda: filled.scan("words").to_table(),
        filled.raw.rebuild_tables,
        lambda: filled.raw.rebuild_tables(verify=True),
    ):
        _flip_a_byte(table_files(filled, "words")[0])
        with pytest.warns(CorpusWarning, match=r"words/.*\.parquet is damaged"):
            repair()
        assert filled.scan("words").to_table().num_rows == 9


def test_invalid_ids_are_refused(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """A null is an error; a DataFrame stands for its transcripts, each once."""
    sealed = filled.snapshots.create(progress=False)
    for ids in (pd.Series(["a", np.nan]), ["a", None], 7):
        for read in (
            lambda ids: filled.table("words", ids),
            lambda ids: sealed.table("words", ids),
            lambda ids: filled.search("good", ids=ids),
            lambda ids: filled.export(tmp_path / "out", "vtt", ids=ids),
            filled.metadata.get,
        ):
            with pytest.raises(CorpusError, match="is not the id of a transcript; leave it out"):
                read(ids)
    with pytest.raises(CorpusError, match="no transcript 'nope'"):
        sealed.table("words", ["a", "nope"])
    some = filled.table("words", ["b", "a"])
    pd.testing.assert_frame_equal(filled.table("words", some), some)
    pd.testing.assert_frame_equal(sealed.table("words", some), filled.table("words", ["a", "b"]))


def _three(folder: Path) -> voxframe.Corpus:
    """Return a corpus of three transcripts with different words."""
    corpus = voxframe.Corpus(folder)
    for name in ("a", "b", "c"):
        words = [{"text": name, "start": 0, "end": 9, "speaker": "A"}]
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed", "text": name, "words": words}).encode())
    return corpus


def _cut_raw(corpus: voxframe.Corpus) -> None:
    path = raw_file(corpus, "b.json.zst")
    path.write_bytes(path.read_bytes()[:40])


def _deep_raw(corpus: voxframe.Corpus) -> None:
    with contextlib.suppress(PayloadError):
        corpus.raw.put("b", b'{"id": "b", "words": ' + b"[" * 200_000)


@pytest.mark.parametrize("damage", [_cut_raw, _deep_raw])
def test_one_bad_payload_does_not_stop_work_on_the_others(tmp_path: Path, damage: Callable) -> None:
    """A damaged or unreadable payload is named in a warning, and every read returns the others."""
    corpus = _three(tmp_path / "corpus")
    damage(corpus)
    with pytest.warns(CorpusWarning, match=r"1 of 3 transcripts cannot be read and are left out: 'b': "):
        assert corpus.table("words")["text"].to_list() == ["a", "c"]
    with pytest.warns(CorpusWarning, match="'b'"):
        assert corpus.words(["b", "c"])["text"].to_list() == ["c"]
    with pytest.warns(CorpusWarning, match="'b'"):
        assert corpus.sql("select text from words order by text")["text"].to_list() == ["a", "c"]
    with pytest.warns(UserWarning, match=r"\bb\b"):
        assert corpus.search(["a", "b", "c"])["match"].to_list() == ["a", "c"]
    # An index that has not changed for a while is not read again; the warning must come all the same.
    for folder in (corpus.path / "raw", *corpus.path.glob("raw/*")):
        if folder.is_dir():
            os.utime(folder, (1, 1))
    with pytest.warns(UserWarning, match=r"\bb\b"):
        assert corpus.search("c")["match"].to_list() == ["c"]
    with pytest.warns(UserWarning, match=r"\bb\b"):
        assert corpus.search("c", ids=["b", "c"])["match"].to_list() == ["c"]
    with pytest.warns(UserWarning, match=r"\bb\b"):
        assert corpus.counts("a")["occurrences"].to_list() == [1, 0]
    with pytest.warns(CorpusWarning, match="'b'"):
        corpus.export(tmp_path / "out", "csv", tables="words")
    assert (tmp_path / "out" / "words.csv").read_text().count("\n") == 3
    with pytest.raises((PayloadError, CorpusError), match=r"\bb\b"):
        corpus.table("words", "b")
    assert [name in corpus for name in ("a", "b", "c", "never seen")] == [True, False, True, False]
    with pytest.warns(PayloadWarning, match=r"1 of 3 payloads cannot be read and are left out: .*'?b"):
        assert voxframe.load_words(["a", "b", "c"], corpus=corpus)["text"].to_list() == ["a", "c"]
    with pytest.raises((PayloadError, CorpusError), match=r"\bb\b"):
        voxframe.load_words("b", corpus=corpus)
    with pytest.raises(PayloadError, match="'never seen' is neither a file nor a transcript"):
        voxframe.load_words(["a", "never seen"], corpus=corpus)
    with pytest.warns(CorpusWarning, match="'b'"):
        snapshot = corpus.snapshots.create()
    assert snapshot.table("words")["text"].to_list() == ["a", "c"]
    assert snapshot.manifest["transcripts"] == 2
    done = corpus.add([raw_file(corpus, "b.json.zst"), {"id": "d", "words": [], "status": "completed"}])
    assert (done.added, len(done.left_out)) == (1, 1)
    assert corpus.ids() == ["a", "b", "c", "d"]


def test_a_payload_that_cannot_be_opened_stops_nothing(tmp_path: Path) -> None:
    """It is named in the warning of every read, also of the first one after its tables were deleted."""
    corpus = _three(tmp_path / "corpus")
    path = raw_file(corpus, "b.json.zst")
    path.unlink()
    path.mkdir()
    table_files(corpus, "words")[0].unlink()
    for _ in range(2):
        with pytest.warns(
            CorpusWarning, match=r"1 of 3 transcripts cannot be read .*b\.json\.zst is not a regular file"
        ):
            assert voxframe.Corpus(corpus.path).table("words")["text"].to_list() == ["a", "c"]
    path.with_name("b.original.zst").mkdir()
    with pytest.raises(CorpusError, match=r"b\.original\.zst is not a regular file"):
        corpus.raw.original("b")


@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize(
    ("old", "new"), [(b'"content"', b'"cOntent"'), (b'"transcript_id"', b'"tranScript_id"'), (b'"A/b"', b'"A/c"')]
)
def test_a_damaged_note_of_a_payload_changes_nothing(tmp_path: Path, old: bytes, new: bytes, *, tables: bool) -> None:
    """If the end of a payload file is damaged, the id comes from the payload, and every transcript is read."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([payload("A/b"), payload("c")])
    (path,) = corpus.path.glob("raw/*/A_b~*.json.zst")
    path.write_bytes(path.read_bytes().replace(old, new))
    for place in () if tables else ("tables", "catalog.sqlite"):
        shutil.rmtree(corpus.path / place) if place == "tables" else (corpus.path / place).unlink()
    again = voxframe.Corpus(corpus.path)
    assert again.ids() == ["A/b", "c"]
    assert set(again.table("words")["transcript_id"]) == {"A/b", "c"}
    assert again.add(payload("A/b")).known == 1


def test_a_truncated_file_without_a_plain_id_stops_nothing(tmp_path: Path) -> None:
    """A truncated file that no longer has its id is named by its file name, and the others are read."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([payload("A/b"), payload("c")])
    (path,) = corpus.path.glob("raw/*/A_b~*.json.zst")
    os.truncate(path, 50)
    again = voxframe.Corpus(corpus.path)
    with pytest.warns(CorpusWarning, match=r"1 of 2 transcripts cannot be read and are left out: 'A_b~"):
        assert set(again.table("words")["transcript_id"]) == {"c"}
    assert again.add(payload("A/b")).added == 1
    assert again.ids() == ["A/b", "c"]
    assert set(again.table("words")["transcript_id"]) == {"A/b", "c"}


def test_a_damaged_export_leaves_the_other_tables(tmp_path: Path) -> None:
    """If sentences are damaged, a warning names them and all other tables are read."""
    corpus = _three(tmp_path)
    corpus.raw.put("a", b'{"id": "a", "sentences": [{"text": "a", "start": 0, "end": 9, "words": []}]}', "sentences")
    path = raw_file(corpus, "a.sentences.json.zst")
    path.write_bytes(path.read_bytes()[:30])
    with pytest.warns(CorpusWarning, match="the sentences of 'a' cannot be read"):
        tables = corpus.tables("a")
    assert tables["words"]["text"].to_list() == ["a"]
    assert "sentences" not in tables


def test_a_snapshot_is_made_despite_damaged_sentences_and_pages(tmp_path: Path) -> None:
    """A snapshot leaves out damaged sentences, makes missing ones from the words, and rebuilds a damaged table."""
    corpus = _three(tmp_path)
    for name in ("a", "b"):
        sentences = [{"text": name, "start": 0, "end": 9, "words": []}]
        corpus.raw.put(name, json.dumps({"id": name, "sentences": sentences}).encode(), "sentences")
    path = raw_file(corpus, "a.sentences.json.zst")
    path.write_bytes(path.read_bytes()[:30])
    _flip_a_byte(table_files(corpus, "words")[0])
    with pytest.warns(CorpusWarning) as warned:
        snapshot = corpus.snapshots.create()
    assert any("1 of 2 transcripts cannot be read and are left out: 'a'" in str(one.message) for one in warned)
    assert any(".parquet is damaged" in str(one.message) for one in warned)
    assert snapshot.table("words")["text"].to_list() == ["a", "b", "c"]
    assert snapshot.table("sentences")[["text", "derived"]].values.tolist() == [["b", False], ["c", True]]


def test_names_of_speakers_take_no_memory_without_names(tmp_path: Path) -> None:
    """The column `speaker_name` shares its text with `speaker` until a speaker is named."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", json.dumps({"id": "t1", "words": [{"text": "a", "speaker": "A"}] * 3}).encode())

    def places() -> list[int]:
        words = corpus.table("words")
        return [words[name].array._pa_array.chunk(0).buffers()[1].address for name in ("speaker", "speaker_name")]

    assert len({*places()}) == 1
    corpus.speakers.set("t1", {"A": "Ada"})
    assert len({*places()}) == 2
    assert corpus.table("words")["speaker_name"].to_list() == ["Ada"] * 3
