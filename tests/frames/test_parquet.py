"""Tables through Parquet files and plain pandas, without voxframe between."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.benchmarks.payloads import payload, transcript

import voxframe
from voxframe import frames
from voxframe.schema import CORPUS_TABLES, TABLES, TRANSCRIPT_TABLES, Table

VALUES = {
    pa.string(): "é", pa.int64(): 2**53 + 1, pa.float64(): 0.1, pa.bool_(): True,
    pa.timestamp("us", tz="UTC"): pd.Timestamp("2026-01-02T03:04:05.678901Z"),
}  # fmt: skip


def frame_of(name: str, rows: int) -> pd.DataFrame:
    """Rows of any table, every second value null if it may be."""
    table = TABLES[name]
    columns = [
        pa.array([None if c.nullable and (i + n) % 2 else VALUES[c.type] for i in range(rows)], c.type)
        for n, c in enumerate(table.columns)
    ]
    return frames.to_pandas(pa.Table.from_arrays(columns, schema=table.arrow), name)


def text_dtype() -> str:
    """The dtype that this version of pandas gives to text."""
    return str(pd.Series(["a"]).dtype)


def dtypes_of(name: str, tables: Mapping[str, Table] = CORPUS_TABLES) -> dict[str, str]:
    """Dtypes of a table of a corpus by its dictionary."""
    return {c.name: text_dtype() if c.dtype == "str" else c.dtype for c in tables[name].columns}


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_comes_back_from_parquet_as_it_was(name: str, rows: int, tmp_path: Path) -> None:
    """`read_parquet` without options returns every table exactly as `to_parquet` wrote it."""
    df = frame_of(name, rows)
    df.to_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), df)


@pytest.mark.parametrize("name", TABLES)
def test_pandas_works_on_every_column(name: str) -> None:
    """Duplicates are dropped, rows grouped and dtypes converted by each column."""
    df = frame_of(name, 6)
    df.convert_dtypes()
    df.drop_duplicates()
    for column in df.columns:
        assert len(df.drop_duplicates(column)) == df[column].nunique(dropna=False)
        assert df.groupby(column).size().sum() == df[column].notna().sum()


def test_files_of_a_corpus_have_the_dtypes_of_the_dictionary(tmp_path: Path) -> None:
    """A plain `read_parquet` of a stored file or folder gives them, also for columns that are null everywhere."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a1", payload(80, seed=5))
    corpus.raw.put(
        "a2", json.dumps({"id": "a2", "status": "completed", "text": None, "words": [{"text": "Hi"}]}).encode()
    )
    for name in TRANSCRIPT_TABLES:
        corpus.table(name)
        for path in (tmp_path / "corpus" / "tables" / name).glob("*.parquet"):
            assert {c: str(d) for c, d in pd.read_parquet(path).dtypes.items()} == dtypes_of(name, TABLES), path.name


@pytest.mark.parametrize("partition_by", [(), ("speaker",)])
def test_exports_have_the_dtypes_of_the_dictionary(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    """A plain `read_parquet` of an exported folder gives them, and the values; folders are categories."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a1", payload(80, seed=5))
    tables = ["words", "utterances", "sentiments"] if partition_by else list(TRANSCRIPT_TABLES)
    corpus.export(tmp_path / "out", tables=tables, partition_by=partition_by)
    for name in tables:
        back = pd.read_parquet(tmp_path / "out" / name)
        expected = corpus.table(name)
        if partition_by:
            assert str(back.pop("speaker").dtype) == "category"
            expected = expected.drop(columns="speaker").astype(object).sort_values(back.columns[2])
            back = back.sort_values(back.columns[2])
            assert {c: str(d) for c, d in back.dtypes.items()}.items() <= dtypes_of(name).items()
            pd.testing.assert_frame_equal(
                back.astype(object).reset_index(drop=True), expected.reset_index(drop=True), check_dtype=False
            )
        else:
            pd.testing.assert_frame_equal(back, expected)


def test_one_exported_file_has_the_dtypes_of_the_dictionary(tmp_path: Path) -> None:
    """The same for a single file, and for a table as `voxframe.export` writes it."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a1", json.dumps(transcript(40, seed=6)).encode())
    corpus.export(tmp_path / "words.parquet", tables="words")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "words.parquet"), corpus.table("words"))
    assert pq.read_schema(tmp_path / "words.parquet").metadata.keys() >= {b"pandas"}
