"""Other tools read back exact tables from every data format; values that a format cannot hold are counted."""

import csv
import datetime as dt
import io
import json
import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pytest
from tests.hostile import HOSTILE

from voxframe import export
from voxframe._arrow import TEXT_DTYPE
from voxframe.errors import ExportWarning, OptionError

TEXTS = [
    *HOSTILE,
    "",
    "lone\rreturn",
    "a\r\nb",
    "\n",
    '"',
    '""',
    ",",
    "'",
    "NA",
    "null",
    "nan",
    " blank ",
    "\u2028",
    "=1+1",
]


@pytest.fixture
def hostile() -> pd.DataFrame:
    """Every hostile text beside its number, and a null behind each."""
    texts = [value for text in TEXTS for value in (text, None)]
    return pd.DataFrame({"n": range(len(texts)), "text": pd.Series(texts, dtype=TEXT_DTYPE), "after": "end"})


@pytest.fixture
def no_losses() -> Iterator[None]:
    """Every warning about a loss is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        yield


def read_back(folder: Path, form: str) -> list[list[str | None]]:
    """The column `text` as each reader of a format gives it."""
    if form == "parquet":
        return [
            pl.read_parquet(folder / "part-0.parquet")["text"].to_list(),
            [text for (text,) in duckdb.sql(f"select text from '{folder}/part-0.parquet' order by n").fetchall()],
        ]
    if form == "huggingface":
        import datasets

        loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(folder.parent / "cache"))
        return [loaded["text"][:]]
    if form == "jsonl":
        path = folder / "data.jsonl"
        return [
            pl.read_ndjson(path)["text"].to_list(),
            [json.loads(line)["text"] for line in path.read_text("utf-8").split("\n")[:-1]],
            [text for (text,) in duckdb.sql(f"select text from read_json('{path}') order by n").fetchall()],
        ]
    path = folder / "data.csv"
    options = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
    arrow = pa.csv.read_csv(path, pa.csv.ReadOptions(), pa.csv.ParseOptions(newlines_in_values=True), options)
    how = "allow_quoted_nulls=false, new_line='\\n', quote='\"', escape='\"'"
    sql = f"select text from read_csv('{path}', {how}) order by n"
    return [
        pl.read_csv(path)["text"].to_list(),
        [text for (text,) in duckdb.sql(sql).fetchall()],
        arrow["text"].to_pylist(),
    ]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", pytest.param("huggingface", marks=pytest.mark.long)])
@pytest.mark.usefixtures("no_losses")
def test_hostile_texts_nulls_and_empty_texts_come_back(hostile: pd.DataFrame, tmp_path: Path, form: str) -> None:
    """Every reader gets every text, with nulls and empty texts told apart, and no row moves."""
    result = export.write(hostile, tmp_path / "set", form)
    assert result.losses == {}
    expected = [value for text in TEXTS for value in (text, None)]
    for found in read_back(tmp_path / "set", form):
        assert found == expected


def test_rows_of_csv_stay_in_place_for_the_reader_of_the_standard_library(
    hostile: pd.DataFrame, tmp_path: Path
) -> None:
    """Python's csv module, which knows no nulls, finds every row whole."""
    export.write(hostile, tmp_path / "hostile.csv", "csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "hostile.csv").read_bytes().decode(), newline="")))
    assert rows[0] == ["n", "text", "after"]
    assert [row[1] for row in rows[1:]] == [value for text in TEXTS for value in (text, "")]
    assert {row[2] for row in rows[1:]} == {"end"}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.usefixtures("no_losses")
def test_numbers_keep_every_digit(tmp_path: Path, form: str) -> None:
    """No float or integer changes by a bit, whatever its size."""
    made = random.Random(1)
    floats = [made.random() * 10.0 ** made.randint(-300, 300) for _ in range(5000)]
    whole = [made.randint(-(2**63), 2**63 - 1) for _ in range(5000)]
    export.write(pd.DataFrame({"f": floats, "i": whole}), tmp_path / f"n.{form}", form)
    text = (tmp_path / f"n.{form}").read_text()
    if form == "csv":
        rows = [(float(f), int(i)) for f, i in list(csv.reader(io.StringIO(text)))[1:]]
    else:
        rows = [(row["f"], row["i"]) for row in map(json.loads, text.splitlines())]
    assert rows == list(zip(floats, whole, strict=True))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_long_lists_are_whole(tmp_path: Path, form: str) -> None:
    """A list of 1,500 items is JSON with all of them."""
    items = [f"item, {n}\r" for n in range(1500)]
    column = pd.array([items, None], pd.ArrowDtype(pa.list_(pa.string())))
    export.write(pd.DataFrame({"n": [0, 1], "list": column}), tmp_path / f"l.{form}", form)
    if form == "csv":
        read = pl.read_csv(tmp_path / "l.csv")["list"].to_list()
        assert [json.loads(read[0]), read[1]] == [items, None]
    else:
        lines = (tmp_path / "l.jsonl").read_text().splitlines()
        assert [json.loads(line)["list"] for line in lines] == [items, None]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_moments_keep_their_microseconds(tmp_path: Path, form: str) -> None:
    """A moment has all its digits and its offset."""
    moment = dt.datetime(2024, 7, 1, 12, 30, 0, 123456, dt.UTC)
    df = pd.DataFrame(
        {"naive": [moment.replace(tzinfo=None)], "zoned": [pd.Timestamp(moment).tz_convert("Asia/Tokyo")]}
    )
    export.write(df, tmp_path / f"t.{form}", form)
    if form == "csv":
        row = pl.read_csv(tmp_path / "t.csv").row(0, named=True)
    else:
        row = json.loads((tmp_path / "t.jsonl").read_text())
    assert dt.datetime.fromisoformat(row["naive"]) == moment.replace(tzinfo=None)
    assert dt.datetime.fromisoformat(row["zoned"]) == moment


@pytest.mark.parametrize("dtype", [TEXT_DTYPE, "category"], ids=str)
def test_an_empty_text_to_partition_by_shares_the_folder_of_nulls(tmp_path: Path, dtype: object) -> None:
    """No folder lacks a value, which Spark refuses; the affected values are counted."""
    df = pd.DataFrame({"speaker": ["A", "", None, "__HIVE_DEFAULT_PARTITION__", "a/b=c"], "n": range(5)})
    df["speaker"] = df["speaker"].astype(dtype)
    with pytest.warns(ExportWarning, match="2 empty texts in a partition column"):
        result = export.write(df, tmp_path / "set", "parquet", partition_by="speaker")
    assert list(result.losses.values()) == [2]
    # https://github.com/apache/spark: PartitioningUtils.parsePartitionColumn asserts that the value is not empty
    assert all(name.name.partition("=")[2] for name in (tmp_path / "set").iterdir())
    read = pyarrow.dataset.dataset(tmp_path / "set", partitioning="hive").to_table().sort_by("n")
    assert read["speaker"].to_pylist() == ["A", None, None, None, "a/b=c"]
    sql = f"select speaker from read_parquet('{tmp_path}/set/*/*.parquet', hive_partitioning=true) order by n"
    assert [value for (value,) in duckdb.sql(sql).fetchall()] == ["A", None, None, None, "a/b=c"]
    parts = pl.read_parquet(tmp_path / "set" / "**" / "*.parquet", hive_partitioning=True).sort("n")
    assert parts["speaker"].to_list() == ["A", None, None, None, "a/b=c"]


def test_what_readers_change_in_values_of_folders_is_counted(tmp_path: Path) -> None:
    """Numbers with leading zeros and times with a zone are counted; the message says how to read them."""
    times = pd.to_datetime(["2026-01-31T09:30", "2026-02-01T10:00"]).tz_localize("Europe/Rome")
    df = pd.DataFrame({"code": ["001", "020"], "time": times, "n": [1, 2]})
    with pytest.warns(ExportWarning, match="2 texts in a partition column that readers take for numbers"):
        result = export.write(df, tmp_path / "set", "parquet", partition_by=["code"])
    partitioning = pyarrow.dataset.partitioning(pa.schema([("code", pa.string())]), flavor="hive")
    assert pd.read_parquet(tmp_path / "set", partitioning=partitioning)["code"].tolist() == ["001", "020"]
    with pytest.warns(ExportWarning, match="2 times in a partition column, in the time zone Europe/Rome"):
        export.write(df.drop(columns="code"), tmp_path / "times", "parquet", partition_by="time")
    assert sum(result.losses.values()) == 2


def test_values_of_folders_come_back_in_every_reader(tmp_path: Path) -> None:
    """Letters of any script, punctuation, control characters and escapes are the same for pyarrow, DuckDB and Polars.

    Spark decodes an escape to one character, so only ASCII characters are escaped.
    """
    texts = [f"a{chr(code)}b" for code in [*range(128), 0x85, 0xE9, 0x2028, 0x65E5, 0x1F600]]
    texts += ["Zoë", "日本語", "a%20b", "a%2Fb", "..", " a", "a ", "e\u0301", "100%"]
    df = pd.DataFrame({"speaker": texts, "n": range(len(texts))})
    result = export.write(df, tmp_path / "set", "parquet", partition_by="speaker")
    assert len(result) == len(texts)
    names = [path.name for path in (tmp_path / "set").iterdir()]
    assert {"speaker=Zoë", "speaker=日本語", "speaker=a%2520b", "speaker=a%00b"} <= set(names)
    for name in names:
        # https://github.com/apache/spark: ExternalCatalogUtils.charToEscape and unescapePathName
        assert not set(name.partition("=")[2]) & set("\x01\x1f\"#'*/:=?\\\x7f{[]^")
        assert re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), name.partition("=")[2]) in texts
    read = pyarrow.dataset.dataset(tmp_path / "set", partitioning="hive").to_table().sort_by("n")
    assert read["speaker"].to_pylist() == texts
    assert pd.read_parquet(tmp_path / "set").sort_values("n")["speaker"].to_list() == texts
    sql = f"select speaker from read_parquet('{tmp_path}/set/*/*.parquet', hive_partitioning=true) order by n"
    assert [value for (value,) in duckdb.sql(sql).fetchall()] == texts
    parts = pl.read_parquet(tmp_path / "set" / "**" / "*.parquet", hive_partitioning=True).sort("n")
    assert parts["speaker"].to_list() == texts


def test_every_value_may_have_a_folder(tmp_path: Path) -> None:
    """More than a thousand folders are written; a table of nothing but folders is refused."""
    df = pd.DataFrame({"transcript_id": [f"t{n % 1500}" for n in range(4500)], "n": range(4500)})
    assert len(export.write(df, tmp_path / "set", "parquet", partition_by="transcript_id")) == 1500
    read = duckdb.sql(f"select transcript_id, n from '{tmp_path}/set/*/*.parquet' order by n").fetchall()
    assert read == list(zip(df["transcript_id"], df["n"], strict=True))
    with pytest.raises(OptionError, match="every column is a column to partition by"):
        export.write(df, tmp_path / "none", "parquet", partition_by=["n", "transcript_id"])


def test_formulas_are_escaped_on_request(tmp_path: Path) -> None:
    """Texts that begin like a formula get an apostrophe, in CSV only, and are counted; numbers stay numbers."""
    risky = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1"]
    df = pd.DataFrame({"=head": [*risky, "a=b", "", None], "n": -1})
    assert export.write(df, tmp_path / "plain.csv", "csv").losses == {}
    assert pl.read_csv(tmp_path / "plain.csv")["=head"].to_list() == [*risky, "a=b", "", None]
    with pytest.warns(ExportWarning, match="8 texts that a spreadsheet would take for a formula"):
        result = export.write(df, tmp_path / "safe.csv", "csv", escape_formulas=True)
    assert list(result.losses.values()) == [8]
    read = pl.read_csv(tmp_path / "safe.csv")
    assert read["'=head"].to_list() == [*(f"'{text}" for text in risky), "a=b", "", None]
    assert read["n"].to_list() == [-1] * 11
    with pytest.raises(OptionError, match="escape_formulas works with csv"):
        export.write(df, tmp_path / "x", "parquet", escape_formulas=True)


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", pytest.param("huggingface", marks=pytest.mark.long)])
def test_what_no_format_holds_is_written_as_text_and_counted(tmp_path: Path, form: str) -> None:
    """Lone surrogates, columns of several types and named indexes neither stop an export nor change silently."""
    df = pd.DataFrame({"n": [0, 1, 2], "text": pd.Series(["a\ud800", "b", None], dtype=object)})
    df = df.assign(mixed=pd.Series([1, "x", 2.5], dtype=object)).set_index(pd.Index([7, 8, 9], name="id"))
    with pytest.warns(ExportWarning, match="cannot hold every value exactly: 3 values of a named index"):
        result = export.write(df, tmp_path / "set", form)
    assert sorted(result.losses.values()) == [1, 2, 3]
    for found in read_back(tmp_path / "set", form):
        assert found == ["a\ufffd", "b", None]


def test_numbers_that_json_has_no_word_for_are_null_and_counted(tmp_path: Path) -> None:
    """Infinite numbers are exact in CSV and Parquet; in JSON they are null, which the result tells."""
    df = pd.DataFrame({"f": [1.5, np.inf, -np.inf, None], "list": [[1.0], [np.inf], None, []]})
    with pytest.warns(ExportWarning, match="3 numbers that are not finite"):
        assert list(export.write(df, tmp_path / "f.jsonl", "jsonl").losses.values()) == [3]
    assert [json.loads(line)["f"] for line in (tmp_path / "f.jsonl").read_text().splitlines()] == [
        1.5,
        None,
        None,
        None,
    ]
    assert export.write(df[["f"]].assign(n=0), tmp_path / "f.csv", "csv").losses == {}
    assert pl.read_csv(tmp_path / "f.csv")["f"].to_list() == [1.5, np.inf, -np.inf, None]


def test_infinite_numbers_inside_of_other_values_are_counted(tmp_path: Path) -> None:
    """Lists and structs are JSON in CSV, too, so an infinite number in them is null there."""
    nested = pd.array([[{"a": np.inf}], None], pd.ArrowDtype(pa.list_(pa.struct({"a": pa.float64()}))))
    for form in ("csv", "jsonl"):
        with pytest.warns(ExportWarning, match="1 numbers that are not finite"):
            export.write(pd.DataFrame({"n": [0, 1], "nested": nested}), tmp_path / f"x.{form}")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_types_that_text_formats_lack_are_written_as_text(tmp_path: Path, form: str) -> None:
    """Periods, intervals, durations and UUIDs are readable in every text format; bytes are base64 and counted."""
    number = UUID("05e65831-36f5-4033-9721-b4294486c4f5")
    df = pd.DataFrame(
        {
            "period": [pd.Period("2020-05", "M"), None],
            "interval": [pd.Interval(0.5, 1.0), None],
            "duration": pd.to_timedelta([90, None], unit="s").astype("timedelta64[s]"),
            "uuid": [number, None],
            "bytes": [b"\xff\x00", None],
        }
    )
    with pytest.warns(ExportWarning, match=r"exactly: 1 values of bytes, written as text in base64$"):
        export.write(df, tmp_path / f"x.{form}")
    text = (tmp_path / f"x.{form}").read_text()
    first, second = csv.DictReader(io.StringIO(text)) if form == "csv" else map(json.loads, text.splitlines())
    assert list(first.values()) == ["2020-05", "(0.5, 1.0]", "P0DT0H1M30S", str(number), "/wA="]
    assert set(second.values()) == {"" if form == "csv" else None}


def test_values_that_cannot_name_a_folder_are_refused(tmp_path: Path) -> None:
    """A column of lists cannot be partitioned by; periods have readable folders."""
    with pytest.raises(OptionError, match="cannot partition by 'v', because its values are of the type list"):
        export.write(pd.DataFrame({"n": [1], "v": [[1]]}), tmp_path / "lists", partition_by="v")
    export.write(pd.DataFrame({"n": [1], "v": [pd.Period("2020", "Y")]}), tmp_path / "years", partition_by="v")
    assert [path.name for path in tmp_path.iterdir()] == ["years"]
    assert [path.name for path in (tmp_path / "years").iterdir()] == ["v=2020"]


def test_nulls_of_an_only_column_are_no_empty_lines(tmp_path: Path) -> None:
    """Readers skip empty lines, so that a null of an only column would move all rows; it is counted."""
    df = pd.DataFrame({"text": ["a", None, "b"]})
    with pytest.warns(ExportWarning, match="1 nulls of an only column"):
        export.write(df, tmp_path / "one.csv", "csv")
    assert len(pd.read_csv(tmp_path / "one.csv", skip_blank_lines=True)) == 3


def test_columns_that_no_table_can_have_are_refused(tmp_path: Path) -> None:
    """Two columns of one name, and a part with other columns than the first, are named in the error."""
    with pytest.raises(OptionError, match="unique column names, got a, a"):
        export.write(pd.DataFrame([[1, 2]], columns=["a", "a"]), tmp_path / "x", "csv")
    bad = pd.DataFrame({"transcript_id": ["t"], "word_idx": ["first"]})
    with pytest.raises(OptionError, match="column 'word_idx' does not fit: words needs int64"):
        export.write({"words": bad}, tmp_path / "x", "csv")
    assert list(tmp_path.iterdir()) == []
