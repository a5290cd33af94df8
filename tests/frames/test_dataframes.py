import gc
import json
import weakref
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.benchmarks.payloads import payload, transcript
from tests.benchmarks.peers import with_json

from voxframe import frames
from voxframe._arrow import TEXT_DTYPE
from voxframe.analysis.rows import add_recordings
from voxframe.frames.corrected import with_original
from voxframe.schema import JOBS, RESPONSES, STREAM, TABLES, TRANSCRIPT_TABLES, Table

RAW = payload(300, seed=2)


def as_pandas() -> dict[str, pd.DataFrame]:
    """DataFrames of a payload with every analysis."""
    return frames.all_to_pandas(frames.transcript_arrays(RAW))


def sample(table: Table, rows: int) -> pa.Table:
    """Return rows of a table, with every second nullable value null."""
    values: dict[pa.DataType, Any] = {
        pa.string(): "é", pa.int64(): 2**53 + 1, pa.float64(): 0.1, pa.bool_(): True,
        pa.timestamp("us", tz="UTC"): pd.Timestamp("2026-01-02T03:04:05.678901Z"),
    }  # fmt: skip
    columns = [
        pa.array([None if c.nullable and (i + n) % 2 else values[c.type] for i in range(rows)], c.type)
        for n, c in enumerate(table.columns)
    ]
    return pa.Table.from_arrays(columns, schema=table.arrow)


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("name", TABLES)
def test_dtypes_are_those_of_the_dictionary(name: str, rows: int) -> None:
    """Exactly, in order, with and without rows, nulls kept."""
    table = sample(TABLES[name], rows)
    df = frames.to_pandas(table, name)
    text = str(TEXT_DTYPE)
    expected = {c.name: text if c.dtype == "str" else c.dtype for c in TABLES[name].columns}
    assert {c: str(dtype) for c, dtype in df.dtypes.items()} == expected
    assert list(df.columns) == list(TABLES[name].names)
    assert df.index.equals(pd.RangeIndex(rows))
    for column in TABLES[name].columns:
        back = [None if v is pd.NA or v != v else v for v in df[column.name].tolist()]
        assert back == table[column.name].to_pylist()


def test_texts_have_the_default_dtype_of_pandas() -> None:
    """NaN-backed Arrow strings with pandas 3, objects and None with pandas 2: the dtype of a list of texts."""
    text = as_pandas()["words"]["text"]
    assert text.dtype == pd.Series(["a"]).dtype
    is_new = int(pd.__version__.partition(".")[0]) >= 3
    assert text.dtype == (pd.StringDtype("pyarrow", na_value=np.nan) if is_new else object)
    nulls = [value for value in frames.to_pandas(sample(TABLES["words"], 4), "words")["text"] if pd.isna(value)]
    assert [type(value) for value in nulls] == [float if is_new else type(None)] * 2


@pytest.mark.parametrize("name", TRANSCRIPT_TABLES)
def test_the_short_way_into_pandas_gives_what_the_public_one_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are equal if pandas has only the usual constructor, as before 3.0."""
    table = frames.transcript_tables(RAW)[name]
    short = frames.to_pandas(table, name)
    monkeypatch.delattr(pd.api, "internals", raising=False)
    public = frames.to_pandas(table, name)
    pd.testing.assert_frame_equal(short, public, check_exact=True, check_column_type="equiv")
    assert short._mgr.nblocks == public._mgr.nblocks
    assert short.memory_usage(deep=True).equals(public.memory_usage(deep=True))


@pytest.mark.long
def test_writing_to_a_frame_changes_nothing_else() -> None:
    """Every cell can be set; neither the other columns, nor the tables, nor other frames of the payload notice."""
    tables = frames.transcript_tables(RAW)
    before = {name: table.to_pylist() for name, table in tables.items()}
    first, second = frames.all_to_pandas(tables), frames.all_to_pandas(tables)
    new = {"str": "zz", "int64": 5, "Int64": 5, "float64": 5.0, "boolean": True}
    for df in first.values():
        for column in df.columns if len(df) else ():
            others = df.drop(columns=column).copy()
            if str(df[column].dtype) in new:
                df.loc[0, column] = new[str(df[column].dtype)]
                assert df.loc[0, column] == new[str(df[column].dtype)]
            pd.testing.assert_frame_equal(df.drop(columns=column), others)
    assert {name: table.to_pylist() for name, table in tables.items()} == before
    for name, df in frames.all_to_pandas(tables).items():
        pd.testing.assert_frame_equal(df, second[name])


@pytest.mark.parametrize("names", [{}, {"a": "call"}])
def test_columns_of_loaders_can_be_added_at_once_or_later(names: dict[str, str]) -> None:
    """Both give the same columns, dtypes and values for every table, with rows and without."""
    for arrays in frames.transcript_arrays(RAW), frames.transcript_arrays(b'{"id": "a", "words": []}'):
        at_once = frames.all_to_pandas(arrays, recordings=names)
        for name, columns in arrays.items():
            expected = frames.to_pandas(with_original(frames.as_table(name, columns), name), name)
            add_recordings(expected, names)
            pd.testing.assert_frame_equal(at_once[name], expected)
        assert at_once["words"].columns[:2].to_list() == ["transcript_id", "recording"]


def test_renaming_the_columns_of_one_frame_leaves_others() -> None:
    """Frames of a table do not share their column labels."""
    one, two = as_pandas()["words"], as_pandas()["words"]
    one.columns.name = "mine"
    assert two.columns.name is None
    assert as_pandas()["words"].columns.name is None


def test_adding_to_a_frame_without_rows_leaves_others() -> None:
    """Frames without rows are each their own: columns added, rows appended and names given are not in the next."""
    first = frames.to_pandas(frames.empty_table("entities"), "entities")
    before = first.copy()
    first["mine"] = pd.Series(dtype="float64")
    first.columns.name = "field"
    first.loc[0] = ["a", 0, "date", "today", 1, 2, None, 0.5]
    pd.testing.assert_frame_equal(frames.to_pandas(frames.empty_table("entities"), "entities"), before)


def test_a_frame_that_is_kept_does_not_keep_the_others() -> None:
    """The numbers of one table are not a view of an array of all tables."""
    tables = as_pandas()
    chapters = tables["chapters"]
    words = weakref.ref(tables["words"]._mgr.blocks[0])
    base = chapters["start_ms"].array._data
    while base.base is not None:
        base = base.base
    assert base.nbytes <= 8 * len(chapters)
    del tables
    gc.collect()
    assert words() is None


def test_values_are_those_of_json_and_pandas() -> None:
    """Every column that the plain way makes from the same bytes has the same values."""
    for seed in range(3):
        raw = payload(200, seed=seed)
        ours = frames.all_to_pandas(frames.transcript_arrays(raw))
        for name, theirs in with_json(raw).items():
            for column in theirs.columns:
                assert ours[name][column].tolist() == theirs[column].tolist(), (name, column)


def test_tables_in_many_pieces() -> None:
    """Tables of several payloads, one after another."""
    raws = [payload(n, seed=n) for n in (0, 1, 50)]
    for name in TRANSCRIPT_TABLES:
        tables = [frames.transcript_tables(raw)[name] for raw in raws]
        whole = frames.concat_tables(tables, name)
        assert whole.schema.equals(TABLES[name].arrow, check_metadata=True)
        parts = [frames.to_pandas(t, name) for t in tables if t.num_rows]
        expected = pd.concat(parts, ignore_index=True) if parts else frames.to_pandas(tables[0], name)
        pd.testing.assert_frame_equal(frames.to_pandas(whole, name), expected)


def test_no_tables_are_an_empty_table() -> None:
    """`concat_tables` of nothing has the columns of the table."""
    assert frames.concat_tables([], "words").equals(frames.empty_table("words"))


def test_files_that_other_tools_wrote(tmp_path: Any) -> None:
    """Other widths, encodings and column orders are brought to the dictionary's."""
    table = frames.transcript_tables(RAW)["words"]
    other = table.select(table.column_names[::-1])
    for name, values in {
        "channel": other["channel"].cast(pa.large_string()),
        "speaker": other["speaker"].dictionary_encode(),
        "start_ms": other["start_ms"].cast(pa.int32()),
    }.items():
        other = other.set_column(other.column_names.index(name), name, values)
    pq.write_table(other, tmp_path / "words.parquet")
    read = pq.read_table(tmp_path / "words.parquet")
    assert not read.schema.equals(table.schema)
    pd.testing.assert_frame_equal(frames.to_pandas(read, "words"), frames.to_pandas(table, "words"))


@pytest.mark.parametrize("table", [RESPONSES, STREAM, JOBS])
def test_times_of_day_in_microseconds(table: Table) -> None:
    """Timestamps are exact and in UTC; null is NaT."""
    created = frames.to_pandas(sample(table, 4), table.name)["created"]
    assert created.dtype == "datetime64[us, UTC]"
    assert {str(t) for t in created.dropna()} == {"2026-01-02 03:04:05.678901+00:00"}
    assert created.isna().sum() == 2


def test_an_hour_has_an_hour() -> None:
    """The payloads of the benchmark are what it says: an hour, about 1.8 MB, every word once in a turn."""
    made = transcript()
    assert 1.75e6 < len(json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()) < 1.9e6
    assert 3500 < made["audio_duration"] < 3700
    assert [w for t in made["utterances"] for w in t["words"]] == made["words"]
    assert payload(50, seed=4) == payload(50, seed=4) != payload(50, seed=5)


def test_columns_of_nulls_take_no_memory() -> None:
    """Text columns without values share one short array in a long DataFrame, instead of 8 bytes per row and column."""
    rows = 300_000
    numbers = pa.array(range(rows))
    columns = {"transcript_id": pa.repeat(pa.scalar("a"), rows), "word_idx": numbers, "text": numbers.cast(pa.string())}
    kind = TABLES["words"].arrow
    table = pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in kind], schema=kind)
    frame = frames.to_pandas(table, "words")
    assert frame["extra"].isna().all()
    assert frame["text"].to_list() == list(map(str, range(rows)))
    chunks = [chunk for name in ("speaker", "channel", "extra") for chunk in frame[name].array._pa_array.chunks]
    buffers = {buffer.address: buffer.size for chunk in chunks for buffer in chunk.buffers() if buffer is not None}
    assert sum(buffers.values()) < 8 * rows
