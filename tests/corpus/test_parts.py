import contextlib
import gc
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import export, forget_until, raw_file, table_files

import voxframe
from voxframe._files import hidden_path
from voxframe.corpus import query
from voxframe.corpus.parquet_footer import footer_of
from voxframe.corpus.part import NewMember, Part
from voxframe.corpus.part_files import OpenTable, RowGroup, TableFile, TableLayout
from voxframe.corpus.part_reading import Located, in_order
from voxframe.corpus.parts import Parts, to_merge
from voxframe.corpus.store import View
from voxframe.corpus.workers import StoringProcesses, Task
from voxframe.errors import CorpusError, CorpusWarning
from voxframe.schema import TABLES


def _raw(name: str, count: int = 3, text: str = "word", **more: object) -> bytes:
    words = [{"text": f"{text}{n}", "start": n, "end": n + 1, "confidence": 0.5, "speaker": "A"} for n in range(count)]
    return json.dumps({"id": name, "status": "completed", "words": words} | more).encode()


def _rows(name: str, count: int) -> pa.Table:
    columns = {
        "transcript_id": [name] * count,
        "word_idx": range(count),
        "text": [f"{name}-{n % 7}" for n in range(count)],
        "start_ms": [n * 300 for n in range(count)],
        "confidence": [n % 100 / 100 for n in range(count)],
    }
    schema = TABLES["words"].arrow
    arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _globbed(path: Path) -> list[str]:
    """Return the ids of the transcripts in the files of words, once per file, as other programs see them.

    A program that lists the files just before small ones are merged does not find one of them, and has to start again.
    """
    for _ in range(50):
        seen = []
        with contextlib.suppress(FileNotFoundError):
            for file in path.glob("tables/words/*.parquet"):
                seen += dict.fromkeys(pq.ParquetFile(file).read(["transcript_id"])["transcript_id"].to_pylist())
            return seen
    raise AssertionError("files of words disappeared in each of 50 reads")


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[voxframe.Corpus]:
    """An empty corpus."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    yield corpus
    corpus._archive.wait()


def test_row_groups_are_added_without_changing_the_pages_before(tmp_path: Path) -> None:
    """A file that grows starts with the same bytes, and any Parquet reader returns all rows in order."""
    path, layout, before = tmp_path / "words.parquet", None, b""
    for first, last in ((0, 1), (1, 3), (3, 30)):
        file = TableFile(hidden_path(path), "words", path if layout else None, layout)
        for number in range(first, last):
            file.add(number, _rows(f"t{number}", 1000))
        layout = file.finish()
        file.close()
        file.path.replace(path)
        assert path.read_bytes().startswith(before)
        metadata = pq.read_metadata(path)
        before = path.read_bytes()[: path.stat().st_size - 8 - metadata.serialized_size]
        expected = pa.concat_tables([_rows(f"t{number}", 1000) for number in range(last)])
        assert pq.read_table(path).cast(expected.schema).equals(expected)
    assert [group.members for group in layout.groups] == [
        (0,),
        (1, 2),
        tuple(range(3, 19)),
        tuple(range(19, 30)),
    ]


def test_a_file_with_another_footer_is_continued(tmp_path: Path) -> None:
    """Row groups are added to a file whose footer has other fields than those that are written now."""
    path, rows = tmp_path / "words.parquet", pa.concat_tables(_rows(f"t{number}", 100) for number in range(20))
    pq.write_table(rows, path, row_group_size=100, version="1.0", store_schema=False)
    with path.open("rb") as opened:
        groups = [RowGroup((number,), (100,)) for number in range(20)]
        layout = TableLayout(zlib.crc32(footer_of(opened)), msgspec.json.encode(groups))
    file = TableFile(hidden_path(path), "words", path, layout)
    file.add(20, _rows("t20", 100))
    file.finish()
    file.close()
    found = pq.read_table(file.path)
    assert found.cast(rows.schema).equals(pa.concat_tables([rows, _rows("t20", 100)]))
    assert pq.read_metadata(file.path).num_row_groups == 21


def test_a_file_that_a_thread_writes_is_discarded_when_it_is_finished(tmp_path: Path) -> None:
    """Discarding, as after a second Ctrl-C, waits for the thread instead of closing what it uses."""
    file = TableFile(hidden_path(tmp_path / "words.parquet"), "words")
    file.add(0, _rows("t0", 500_000))
    with ThreadPoolExecutor(1) as thread:
        finished = thread.submit(file.finish)
        while not file._lock.locked():
            time.sleep(0.0001)
        file.discard()
        assert finished.result().groups == (RowGroup((0,), (500_000,)),)
    assert [*tmp_path.iterdir()] == []


def test_removed_rows_are_not_in_the_file(tmp_path: Path) -> None:
    """A removed row group is overwritten with zeros, and the other rows can be read."""
    path = tmp_path / "words.parquet"
    file = TableFile(hidden_path(path), "words")
    for number in range(30):
        file.add(number, _rows(f"t{number:02}", 1000))
    layout = file.finish()
    file.close()
    file.path.replace(path)
    assert [group.members for group in layout.groups] == [tuple(range(16)), tuple(range(16, 30))]
    assert b"t00" in path.read_bytes()
    file = TableFile(hidden_path(path), "words", path, layout, [0])
    layout = file.finish()
    file.close()
    file.path.replace(path)
    expected = [f"t{number:02}" for number in range(16, 30)]
    assert [*dict.fromkeys(pq.read_table(path)["transcript_id"].to_pylist())] == expected
    assert b"t00" not in path.read_bytes()
    with OpenTable(path, layout) as opened:
        assert [member for member, _ in opened.transcripts(0)] == list(range(16, 30))


def test_encodings_are_compact(corpus: voxframe.Corpus) -> None:
    """Texts and confidences use dictionaries, times and ordinals deltas, ids have statistics; transcripts are plain."""
    corpus.raw.put("t1", _raw("t1", 1000))
    columns = _columns(table_files(corpus, "transcripts")[0])
    assert {column.compression for column in columns.values()} == {"UNCOMPRESSED"}
    assert not any(column.has_dictionary_page for column in columns.values())
    columns = _columns(table_files(corpus, "words")[0])
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert all("DELTA_BINARY_PACKED" in columns[name].encodings for name in ("word_idx", "start_ms", "end_ms"))
    assert all("RLE_DICTIONARY" in columns[name].encodings for name in ("transcript_id", "text", "confidence"))
    assert columns["transcript_id"].statistics.min == "t1"


def _columns(path: Path) -> dict[str, pq.ColumnChunkMetaData]:
    group = pq.read_metadata(path).row_group(0)
    return {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}


def test_transcripts_of_many_parts_are_read_in_order(corpus: voxframe.Corpus) -> None:
    """Every value is the one that Arrow reads from the files, in the order of the ids; short columns are one chunk."""
    corpus._archive.merges = False
    for first in range(3):
        more = ((n, {"text": f"{n} " * 3000 if n % 2 else None, "audio_duration": n}) for n in range(first, 200, 3))
        corpus.add(json.dumps(json.loads(_raw(f"t{n:03}", n % 4)) | fields).encode() for n, fields in more)
    assert len(table_files(corpus, "transcripts")) >= 3
    for name in ("transcripts", "words"):
        frame, key = corpus.table(name), list(TABLES[name].key)
        stored = pa.concat_tables([pq.read_table(path) for path in table_files(corpus, name)])
        stored = stored.sort_by([(column, "ascending") for column in key])
        assert frame[key].to_dict("list") == stored.select(key).to_pydict()
        for column in stored.column_names:
            values = [None if value is pd.NA or value != value else value for value in frame[column].to_list()]
            assert values == stored[column].to_pylist(), column
    assert corpus.table("transcripts")["status"].array._pa_array.num_chunks == 1


def test_runs_of_rows_in_several_chunks_are_put_in_order() -> None:
    """Runs may begin and end in any chunk and may be empty; long texts and short values stay together."""
    chance = random.Random(3)
    texts = [f"{n} " * 3000 for n in range(90)]
    tables = [
        pa.table({"text": pa.chunked_array([texts[a : a + 7], texts[a + 7 : a + 30]]), "n": pa.array(range(a, a + 30))})
        for a in (0, 30, 60)
    ]
    runs = [(of, start, chance.randint(0, 3)) for start in range(0, 27, 3) for of in (1, 0, 2) for _ in range(4)]
    found = in_order(tables, *np.array(runs).T, tables[0].schema)
    expected = [30 * of + n for of, start, count in runs for n in range(start, start + count)]
    assert found["n"].to_pylist() == expected
    assert found["text"].to_pylist() == [texts[n] for n in expected]


def test_batches_read_each_row_group_about_once(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """With categories or a column that is not stored, batches follow the files, and rows have the order of the ids."""
    corpus._archive.merges = False
    for first in range(5):
        corpus.add(_raw(f"t{n:03}", 1 + n % 4) for n in range(first, 320, 5))
    corpus.speakers.set("t007", {"A": "Ada"})
    whole, read, opened = corpus.table("words"), OpenTable.read, list[int]()

    def spy(file: OpenTable, groups: Sequence[int], *more: object) -> pa.Table:
        opened.extend(groups)
        return read(file, groups, *more)

    monkeypatch.setattr(OpenTable, "read", spy)
    groups = sum(pq.read_metadata(path).num_row_groups for path in table_files(corpus, "words"))
    compact = corpus.table("words", category=True)
    assert groups <= len(opened) <= groups + 10
    assert {str(compact[name].dtype) for name in ("transcript_id", "speaker_name", "text_original")} == {"category"}
    for name in whole:
        values = [None if value is pd.NA or value != value else value for value in compact[name].to_list()]
        assert values == whole[name].astype(object).where(whole[name].notna(), None).to_list(), name
    ids = [f"t{n:03}" for n in range(319, 0, -3)]
    some = corpus.table("words", ids, columns=["text", "speaker_name"], where="word_idx > 0", category=True)
    expected = pd.concat([whole[(whole["transcript_id"] == i) & (whole["word_idx"] > 0)] for i in ids])
    assert list(some.columns) == ["text", "speaker_name"]
    assert some.astype(str).to_dict("list") == expected[["text", "speaker_name"]].to_dict("list")
    opened.clear()
    unnamed = corpus.table("words", where="speaker_name != 'Ada'")
    assert groups <= len(opened) <= groups + 5
    pd.testing.assert_frame_equal(unnamed, whole[whole["transcript_id"] != "t007"].reset_index(drop=True))


def test_transcripts_are_collected_in_few_parts(corpus: voxframe.Corpus) -> None:
    """After 70 puts there are few files, a glob finds each transcript once after every put, and all rows are read."""
    for number in range(70):
        corpus.raw.put(f"t{number:02}", _raw(f"t{number:02}"))
        seen = _globbed(corpus.path)
        assert sorted(seen) == sorted(set(seen))
    corpus._archive.wait()
    ids = [f"t{number:02}" for number in range(70)]
    assert sorted(_globbed(corpus.path)) == ids
    assert len(table_files(corpus, "words")) <= 8
    words = corpus.table("words")
    assert list(dict.fromkeys(words["transcript_id"])) == ids
    assert len(words) == 210
    assert voxframe.Corpus(corpus.path).raw.stale() == []


_CHANCE = random.Random(5)
_ADDS = {
    **{f"{size} at a time": [size] * min(2000, 100_000 // size) for size in (1, 7, 8, 9, 64, 65, 100, 257, 383, 511)},
    "ones, then most of a size": ([1] * 8 + [8] * 7 + [63] * 7 + [382] * 7) * 30,
    "any": [_CHANCE.randint(1, 512) for _ in range(400)],
    "mostly few": [int(512 ** _CHANCE.random()) for _ in range(2000)],
    "fewer and fewer": [*range(512, 0, -1)],
}


@pytest.mark.parametrize("adds", _ADDS.values(), ids=_ADDS.keys())
def test_few_parts_are_left_whatever_the_sizes_of_the_adds(adds: list[int]) -> None:
    """After every add, n transcripts are in at most n / 384 + 21 parts. Each was merged at most 4 times."""
    parts: list[tuple[int, int]] = []  # number of transcripts, and how often one of them was merged at most
    for number, size in enumerate(adds):
        parts.append((size, 0))
        while group := to_merge([count for count, _ in parts]):
            chosen = [parts[n] for n in group]
            rest = [part for n, part in enumerate(parts) if n not in group]
            parts = [*rest, (sum(count for count, _ in chosen), 1 + max(times for _, times in chosen))]
        assert sum(count for count, _ in parts) == sum(adds[: number + 1])
        assert len(parts) <= sum(adds[: number + 1]) / 384 + 21
        assert max(parts)[0] < 512 + 383
        assert max(times for _, times in parts) <= 4


def test_many_payloads_at_once_are_one_part(corpus: voxframe.Corpus) -> None:
    """`add` writes one file per table, with row groups of several transcripts."""
    corpus.add([_raw(f"t{number:03}", 2000) for number in range(30)])
    (path,) = table_files(corpus, "words")
    assert pq.read_metadata(path).num_row_groups == 4
    assert corpus.table("words", ["t020"])["word_idx"].to_list() == list(range(2000))


def test_a_replaced_transcript_is_in_no_file_twice(corpus: voxframe.Corpus) -> None:
    """The old rows are removed, the new ones are in another file, and the other transcripts stay."""
    for name in "abc":
        corpus.raw.put(name, _raw(name, text="before"))
    (old,) = table_files(corpus, "words")
    corpus.raw.put("b", _raw("b", 5, text="after"))
    assert sorted(_globbed(corpus.path)) == ["a", "b", "c"]
    assert sorted(set(pq.ParquetFile(old).read()["transcript_id"].to_pylist())) == ["a", "c"]
    assert corpus.table("words", "b")["text"].to_list() == [f"after{n}" for n in range(5)]
    corpus.raw.put("d", _raw("d"))
    assert set(pq.ParquetFile(old).read()["transcript_id"].to_pylist()) == {"a", "c"}


def test_forget_leaves_no_byte_of_a_transcript(corpus: voxframe.Corpus) -> None:
    """No file contains the id of a forgotten transcript, which statistics store uncompressed."""
    for name in ("first", "secret", "third"):
        corpus.raw.put(name, _raw(name, 2))
    corpus.forget("secret")
    kept = [path for path in corpus.path.rglob("*") if path.is_file()]
    assert [path for path in kept if b"secret" in path.read_bytes()] == []
    assert sorted(_globbed(corpus.path)) == ["first", "third"]
    assert corpus.table("words")["transcript_id"].to_list() == ["first"] * 2 + ["third"] * 2


@pytest.mark.parametrize(
    "step",
    [
        *("_archive.remove", "_archive.parts.drop", "_archive.store.remove"),
        *("_people.forget", "_search.purge", "_ledger.remove"),
    ],
)
def test_an_interrupted_forget_is_repeated(corpus: voxframe.Corpus, step: str) -> None:
    """After a kill at any step, a transcript is whole or in no read, and another call leaves no byte of it.

    Another program reads no rows of a transcript that is gone.
    """
    corpus.add([_raw(name, 2) for name in ("other", "secret")])
    corpus.speakers.set("secret", {"A": "Ada"})
    corpus.speakers.assign(by="name")
    assert len(corpus.search("word1")) == 2
    forget_until(corpus, "secret", f"_batch.{step}")
    others = _globbed(corpus.path)
    again = voxframe.Corpus(corpus.path)
    ids = again.ids()
    assert {*others} <= {*ids}
    words = again.table("words").groupby("transcript_id")["speaker_name"].agg(list)
    assert words.to_dict() == {"other": ["A", "A"]} | ({"secret": ["Ada", "Ada"]} if "secret" in ids else {})
    assert sorted(again.search("word1")["transcript_id"]) == ids
    again.forget("secret")
    assert [path for path in _files(corpus.path) if b"secret" in path.read_bytes()] == []
    assert _globbed(corpus.path) == again.ids() == ["other"]
    with pytest.raises(CorpusError, match="there is no transcript 'secret'"):
        again.forget("secret")


@pytest.mark.parametrize("is_rebuilt", [True, False])
def test_rows_of_a_deleted_payload_are_removed(corpus: voxframe.Corpus, *, is_rebuilt: bool) -> None:
    """If a payload file is deleted, a rebuild removes the rows and keeps the names, and `forget` removes all."""
    corpus.add([_raw(f"t{n:02}") for n in range(12)])
    corpus.raw.put("t05", json.dumps(export("t05", "sentences")).encode(), "sentences")
    corpus.speakers.set("t05", {"A": "Ada"})
    assert len(corpus.search("word1")) == 12
    raw_file(corpus, "t05.json.zst").unlink()
    names = corpus.path / "names" / "t05.json"
    assert corpus.raw.stale() == corpus.raw.stale("sentences") == ["t05"]
    if is_rebuilt:
        assert corpus.raw.rebuild_tables(progress=False) == 0
        assert sorted(_globbed(corpus.path)) == corpus.ids()
        assert table_files(corpus, "sentences") == []
        assert corpus.raw.stale() == corpus.raw.stale("sentences") == []
        assert names.exists()
    corpus.forget("t05")
    assert [path for path in _files(corpus.path) if b"t05" in path.read_bytes() or "t05" in path.name] == []
    assert sorted(_globbed(corpus.path)) == corpus.ids()


@pytest.mark.filterwarnings("ignore:the corpus has no transcripts yet")
@pytest.mark.parametrize("count", [1, 9])
def test_a_reader_does_not_bring_back_what_is_forgotten(
    corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A reader that makes the tables of a transcript again while it is forgotten does not write them."""
    names = [f"t{n}" for n in range(count)]
    corpus.add([_raw(name) for name in names])
    shutil.rmtree(corpus.path / "parts")
    reader = voxframe.Corpus(corpus.path)
    make = reader._archive.make

    def forgotten_meanwhile(transcript_id: str, view: View) -> NewMember:
        made = make(transcript_id, view)
        if transcript_id == "t0":
            corpus.forget("t0")
        return made

    monkeypatch.setattr(reader._archive, "make", forgotten_meanwhile)
    reader.table("words")
    assert sorted(_globbed(corpus.path)) == names[1:]
    assert not any(b"t0" in path.read_bytes() for path in corpus.path.glob("tables/*/*.parquet"))


def test_a_transcript_is_forgotten_during_a_read(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of all transcripts has the others; a transcript that was named is an error."""
    reads = [
        lambda reader: reader.table("words")["transcript_id"],
        lambda reader: reader.table("words", category=True, where="word_idx < 9")["transcript_id"],
        lambda reader: reader.sql("select transcript_id from words")["transcript_id"],
        lambda reader: reader.scan("words").to_table()["transcript_id"].to_pandas(),
        lambda reader: pd.Series([*reader._query.rows("words")]),  # of `to_dask`
        lambda reader: pd.concat(reader.batches("words"))["transcript_id"],
        lambda reader: reader.table("words", ["a", "b"])["transcript_id"],
    ]
    for number, read in enumerate(reads):
        corpus.add([_raw(name) for name in "ab"])
        reader = voxframe.Corpus(corpus.path)
        locate = reader._archive.locate

        def forgotten_before(*args: object, locate=locate, **options: object) -> Located:
            if "a" in corpus:
                corpus.forget("a")
            return locate(*args, **options)

        monkeypatch.setattr(reader._archive, "locate", forgotten_before)
        if number < len(reads) - 1:
            assert read(reader).unique().tolist() == ["b"]
        else:
            with pytest.raises(CorpusError, match="there is no transcript 'a'"):
                read(reader)


@pytest.mark.parametrize("read", ["sql", "to_polars", "scan"])
def test_a_transcript_is_replaced_during_a_read(
    corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """A read whose files are replaced meanwhile is repeated; if that happens each time, the error says what to do."""
    reads = {
        "sql": lambda reader: reader.sql("select text from words order by all")["text"].to_list(),
        "to_polars": lambda reader: sorted(reader.to_polars("words").collect()["text"]),
        "scan": lambda reader: sorted(reader.scan("words").to_table()["text"].to_pylist()),
    }
    corpus.add([_raw("a", 1, "old"), _raw("b", 1, "old")])
    reader, versions = voxframe.Corpus(corpus.path), count()
    locate, left = reader._archive.locate, [1]

    def replaced_after(*args: object, **options: object) -> Located:
        found = locate(*args, **options)
        if left[0]:
            left[0] -= 1
            version = next(versions)
            for name in "ab":
                corpus.raw.put(name, _raw(name, 1, f"v{version}-"))
        return found

    monkeypatch.setattr(reader._archive, "locate", replaced_after)
    assert reads[read](reader) == ["v0-0", "v0-0"]
    left[0] = 1000
    monkeypatch.setattr(query, "_TRIES", 3)
    with pytest.raises(CorpusError, match="changes all the time; stop what writes to it and try again"):
        reads[read](reader)


def test_a_transcript_is_replaced_during_a_query(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query whose files are replaced while DuckDB reads them is repeated, a bounded number of times."""
    corpus.add([_raw(name, 1, "old") for name in "abc"])
    register, left, versions = query._register, [3], count()

    def replaced_after(*args: object) -> None:
        register(*args)
        if left[0]:
            left[0] -= 1
            corpus.raw.put("a", _raw("a", 1, f"v{next(versions)}-"))

    monkeypatch.setattr(query, "_register", replaced_after)
    assert corpus.sql("select text from words order by all")["text"].to_list() == ["old0", "old0", "v2-0"]
    left[0] = 1000
    monkeypatch.setattr(query, "_TRIES", 3)
    with pytest.raises(CorpusError, match="changes all the time; stop what writes to it and try again"):
        corpus.sql("select text from words")


def test_tables_and_payload_are_forgotten_together(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader in between waits, so that it does not make the tables again."""
    corpus.add([_raw(name) for name in "ab"])
    reader = threading.Thread(target=lambda: voxframe.Corpus(corpus.path).table("words"))
    remove = corpus._archive.store.remove

    def read_meanwhile(transcript_id: str) -> None:
        reader.start()
        reader.join(2)
        remove(transcript_id)

    monkeypatch.setattr(corpus._archive.store, "remove", read_meanwhile)
    corpus.forget("a")
    reader.join()
    assert _globbed(corpus.path) == ["b"]


def test_an_interrupted_change_is_completed(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a writer stops after its change was committed, a reader completes the change."""
    corpus.raw.put("a", _raw("a"))
    parts = corpus._archive.parts

    def stop(part: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parts, "_complete", stop)
    with pytest.raises(KeyboardInterrupt):
        corpus.raw.put("b", _raw("b"))
    assert len([*corpus.path.glob("parts/*.next")]) == 1
    other = voxframe.Corpus(corpus.path)
    assert other.table("words")["transcript_id"].to_list() == ["a"] * 3 + ["b"] * 3
    other.raw.put("c", _raw("c"))
    assert [*corpus.path.glob("parts/*.next")] == []
    assert sorted(_globbed(corpus.path)) == ["a", "b", "c"]


def test_a_damaged_change_is_dropped(corpus: voxframe.Corpus) -> None:
    """If the file of a change cannot be read, the next write deletes it, and no transcript is lost."""
    corpus.raw.put("a", _raw("a"))
    damaged = corpus.path / "parts" / "x.next"
    damaged.write_bytes(b"{")
    voxframe.Corpus(corpus.path).raw.put("b", _raw("b"))
    assert not damaged.exists()
    assert sorted(_globbed(corpus.path)) == ["a", "b"]


def test_a_folder_can_be_read_beside_a_writer(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """While files are written, Polars, which opens hidden files too, reads the transcripts that were there before."""
    corpus.raw.put("a", _raw("a"))
    found, close = [], TableFile.close

    def closed(self: TableFile) -> None:
        found.append(pl.read_parquet(corpus.path / "tables" / "words")["transcript_id"].unique().to_list())
        close(self)

    monkeypatch.setattr(TableFile, "close", closed)
    corpus.add([_raw(f"t{n}") for n in range(9)])
    corpus.raw.put("b", _raw("b"))
    assert found[0] == ["a"]
    assert len(found) == 4  # words and transcripts, twice


def test_files_of_no_part_are_removed(corpus: voxframe.Corpus) -> None:
    """Tables of an older layout and files of killed writers are deleted by the next process that writes."""
    corpus.raw.put("a", _raw("a"))
    folder = corpus.path / "tables" / "words"
    left = folder / ".x.parquet.0123456789ab.tmp"
    for path in (folder / "a.parquet", left):
        path.write_bytes(table_files(corpus, "words")[0].read_bytes())
    os.utime(left, (time.time() - 7200,) * 2)
    voxframe.Corpus(corpus.path).raw.put("b", _raw("b"))
    assert sorted(_globbed(corpus.path)) == ["a", "b"]
    assert not left.exists()


def _files(folder: Path) -> dict[Path, bytes]:
    """Return the content of every file, but not of lock files."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".lock" not in str(path)}


def test_a_glob_sees_a_rebuilt_transcript_once(corpus: voxframe.Corpus) -> None:
    """A transcript of a damaged part is not rebuilt into a file that a program has listed together with that part."""
    names = [f"t{number}" for number in range(8)]
    corpus.add([_raw(name) for name in names], progress=False)
    corpus.forget("t7")
    corpus.raw.put("new", _raw("new"))
    listed = sorted((corpus.path / "tables" / "transcripts").glob("[!_]*.parquet"))
    seen = [pq.read_table(path)["transcript_id"].to_pylist() for path in listed]
    (damaged,) = [path for path, ids in zip(listed, seen, strict=True) if "t0" in ids]
    (corpus.path / "tables" / "words" / damaged.name).write_bytes(b"PAR1")
    with pytest.warns(CorpusWarning, match="is damaged"):
        assert len(corpus.table("words")) == 3 * 8
    (other,) = [path for path in listed if path != damaged]
    assert pq.read_table(other)["transcript_id"].to_pylist() == ["new"]
    assert sorted(_globbed(corpus.path)) == sorted(["new", *names[:7]])


@pytest.mark.parametrize("deleted", [["parts"], ["tables"], ["parts", "tables"], ["parts", "tables", "raw"], ["*"]])
def test_folders_may_be_deleted_beside_an_open_corpus(corpus: voxframe.Corpus, deleted: list[str]) -> None:
    """Afterwards the same object adds, stores and reads tables, and a glob sees each transcript once."""
    corpus.add([_raw(f"t{n}") for n in range(12)])
    for pattern in deleted:
        for path in corpus.path.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    kept = [] if "raw" in deleted or "*" in deleted else [f"t{n}" for n in range(12)]
    corpus.raw.put("new", _raw("new"))
    assert corpus.ids() == sorted([*kept, "new"])
    assert len(corpus.table("words")) == 3 * (len(kept) + 1)
    assert sorted(_globbed(corpus.path)) == sorted([*kept, "new"])
    assert corpus.raw.stale() == []


def test_a_damaged_manifest_gives_no_wrong_rows(corpus: voxframe.Corpus) -> None:
    """If any byte of a manifest is changed, tables are rebuilt, and a glob sees each transcript once."""
    corpus.add([_raw(f"t{n}", count=n + 1) for n in range(9)])
    expected = corpus.table("words")
    (manifest,) = corpus.path.glob("parts/*.json")
    length = len(manifest.read_bytes())
    damages = [b"", b"null", b"[]", b"{}", b"\0" * length]
    for place in range(0, length, length // 12):
        (manifest,) = corpus.path.glob("parts/*.json")
        whole = bytearray(manifest.read_bytes())
        whole[place % len(whole)] ^= 1
        damages.append(bytes(whole))
    for damage in damages:
        (manifest,) = corpus.path.glob("parts/*.json")
        manifest.write_bytes(damage)
        pd.testing.assert_frame_equal(corpus.table("words"), expected)
        assert sorted(_globbed(corpus.path)) == corpus.ids()
        assert len([*corpus.path.glob("parts/*")]) == 1


@pytest.mark.parametrize("number", range(50, 81, 6))
def test_an_interrupted_addition_stores_whole_transcripts(
    corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """After Ctrl-C between two tables of a transcript, all its tables have the rows of its payload."""
    turn = {"text": "a", "start": 0, "end": 1, "confidence": 0.5, "speaker": "A", "words": []}
    chapter = {"gist": "a", "headline": "a", "summary": "a", "start": 0, "end": 1}
    calls, add = count(), TableFile.add

    def interrupted(self: TableFile, member: int, table: pa.Table) -> None:
        if next(calls) == number:
            raise KeyboardInterrupt
        add(self, member, table)

    with monkeypatch.context() as patch:
        patch.setattr(TableFile, "add", interrupted)
        with contextlib.suppress(KeyboardInterrupt):
            corpus.add([_raw(f"t{n}", utterances=[turn], chapters=[chapter]) for n in range(20)])
    for name, rows in {"words": 3, "utterances": 1, "chapters": 1, "transcripts": 1}.items():
        assert corpus.table(name).groupby("transcript_id").size().to_dict() == dict.fromkeys(corpus.ids(), rows), name
    assert sorted(_globbed(corpus.path)) == corpus.ids()


def test_no_folder_of_a_corpus_is_written_through_a_link(corpus: voxframe.Corpus) -> None:
    """Names, corrections and snapshots are refused if their folder is a symbolic link; search then works in memory."""
    corpus.raw.put("a", _raw("a"))
    elsewhere = corpus.path.parent / "elsewhere"
    elsewhere.mkdir()
    for name in ("names", "corrections", "snapshots", "search"):
        (corpus.path / name).symlink_to(elsewhere)
    for change in (
        lambda: corpus.speakers.set("a", {"A": "Ada"}),
        lambda: corpus.corrections.set("a", {0: "other words"}),
        lambda: corpus.snapshots.create(progress=False),
    ):
        with pytest.raises(CorpusError, match="is a symbolic link"):
            change()
    assert corpus.counts("word1")["occurrences"].to_list() == [1]
    assert [*elsewhere.iterdir()] == []


@pytest.mark.parametrize("name", ["names", "corrections", "corrections/tables", "redacted", "search", "raw/*"])
def test_nothing_is_forgotten_through_a_link(corpus: voxframe.Corpus, name: str) -> None:
    """If a folder is a symbolic link, `forget` and `undo` are refused, and nothing is deleted, here or elsewhere."""
    corpus.raw.put("a", _raw("a"))
    corpus.speakers.set("a", {"A": "Ada"})
    corpus.corrections.set("a", {0: "other words"})
    assert corpus.table("words")["speaker_name"].to_list() == ["Ada"] * 2
    assert len(corpus.search("other")) == 1
    (corpus.path / "redacted").mkdir()
    (corpus.path / "redacted" / "a.mp3").write_bytes(b"sound")
    (place,) = corpus.path.glob(name)
    elsewhere = corpus.path.parent / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    before = _files(corpus.path) | _files(elsewhere)
    with pytest.raises(CorpusError, match="is a symbolic link, through which nothing is written"):
        corpus.forget("a")
    if name == "names":
        with pytest.raises(CorpusError, match="is a symbolic link, through which nothing is written"):
            corpus.speakers.undo("a")
    assert _files(corpus.path) | _files(elsewhere) == before
    place.unlink()
    elsewhere.rename(place)
    corpus.forget("a")
    assert corpus.ids() == []
    assert [path for path in _files(corpus.path) if path.stem.startswith("a.")] == []


def test_a_corpus_of_a_newer_version_is_read_only(corpus: voxframe.Corpus) -> None:
    """It can be read, with one warning; changing it is an error that names the format and the update."""
    corpus.raw.put("a", _raw("a"))
    (corpus.path / "format.json").write_text('{"format": 99}')
    begun = corpus.path / "parts" / "begun.next"  # of a newer writer that died; this version cannot complete it
    begun.write_text('{"layout": "unknown"}')
    before = _files(corpus.path)
    newer = voxframe.Corpus(corpus.path)
    recording = corpus.path.parent / "recording.mp3"
    recording.write_bytes(b"sound")
    os.utime(recording, (time.time() - 60,) * 2)
    with pytest.warns(CorpusWarning, match=r"format 99, which a newer voxframe wrote.*update voxframe"):
        assert newer.table("words")["text"].to_list() == ["word0", "word1", "word2"]
    assert newer.table("words")["text"].to_list() == ["word0", "word1", "word2"]
    assert newer.counts("word1")["occurrences"].to_list() == [1]
    assert newer.plan(recording, progress=False).new == 1
    for change in (
        lambda: newer.snapshots.create(progress=False),
        lambda: newer.raw.put("b", _raw("b")),
        lambda: newer.forget("a"),
        lambda: newer.add(_raw("b")),
        lambda: newer.speakers.set("a", {"A": "Ada"}),
    ):
        with pytest.raises(CorpusError, match=r"format 99, which a newer voxframe wrote.*update voxframe"):
            change()
    assert newer.ids() == ["a"]
    table_files(newer, "words")[0].unlink()
    with pytest.warns(CorpusWarning, match="format 99"):
        assert voxframe.Corpus(corpus.path)["a"]["words"]["text"].to_list() == ["word0", "word1", "word2"]
    assert before == _files(corpus.path) | {path: content for path, content in before.items() if "words" in path.parts}


def test_an_older_corpus_is_rebuilt_from_its_payloads(corpus: voxframe.Corpus) -> None:
    """Tables of another schema version are rebuilt; the rebuild can be interrupted."""
    names = [f"t{number:02}" for number in range(20)]
    corpus.add([_raw(name) for name in names])
    corpus.speakers.set("t03", {"A": "Ada"})
    before = corpus.table("words")
    for path in corpus.path.glob("parts/*.json"):
        path.write_bytes(replace(Part.from_json(path.read_bytes()), schema=1).to_json())
    older = voxframe.Corpus(corpus.path)
    assert older.raw.stale() == names

    def interrupted() -> None:
        with StoringProcesses(older._archive) as workers:
            for name in names[:10]:
                workers.do([Task(name, "transcript")], lambda place, result: None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert 0 < len(older.raw.stale()) < 20
    assert older.raw.rebuild_tables(progress=False) == 10
    assert older.table("words").equals(before)
    assert sorted(_globbed(corpus.path)) == names


def test_manifests_of_format_2_are_replaced(corpus: voxframe.Corpus) -> None:
    """A corpus with manifests without a checksum is rebuilt, and its new format keeps older versions from writing."""
    corpus.add([_raw(name) for name in "abc"])
    corpus.speakers.set("a", {"A": "Ada"})
    (manifest,) = corpus.path.glob("parts/*.json")
    manifest.write_bytes(manifest.read_bytes().partition(b"\n")[0])
    (corpus.path / "format.json").write_text('{"format": 2}')
    later = voxframe.Corpus(corpus.path)
    assert later.table("words").groupby("transcript_id").size().to_dict() == {"a": 3, "b": 3, "c": 3}
    assert later.table("words", "a")["speaker_name"].unique().tolist() == ["Ada"]
    assert sorted(_globbed(corpus.path)) == ["a", "b", "c"]
    assert json.loads((corpus.path / "format.json").read_bytes()) == {"format": 3}


def test_a_damaged_payload_does_not_hide_the_rows_of_others(corpus: voxframe.Corpus) -> None:
    """If a part and one of its payloads are damaged, the other transcripts of the part are rebuilt."""
    for name in "abc":
        corpus.raw.put(name, _raw(name))
    path = raw_file(corpus, "b.json.zst")
    path.write_bytes(path.read_bytes()[:20])
    table_files(corpus, "words")[0].write_bytes(b"PAR1")
    with pytest.warns(CorpusWarning):
        assert voxframe.Corpus(corpus.path).table("words")["transcript_id"].to_list() == ["a"] * 3 + ["c"] * 3


_WRITER = """
import itertools, sys
import voxframe
from tests.corpus.test_parts import _raw
corpus = voxframe.Corpus(sys.argv[1])
print("at work", flush=True)
for turn in itertools.count(int(sys.argv[2])):
    corpus.raw.put(f"n{turn}", _raw(f"n{turn}", 2))
    corpus.raw.put(f"t{turn % 5}", _raw(f"t{turn % 5}", turn % 7 + 1))
    if turn % 3 == 0:
        corpus.forget(f"n{turn}")
"""


@pytest.mark.long
def test_a_glob_sees_each_transcript_once_beside_killed_writers(corpus: voxframe.Corpus) -> None:
    """A program that lists and then reads the files never finds a transcript in two of them."""
    for number in range(5):
        corpus.raw.put(f"t{number}", _raw(f"t{number}"))
    reads = 0
    for life in range(3):
        command = [sys.executable, "-c", _WRITER, str(corpus.path), str(life * 1000)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            try:
                assert writer.stdout.readline() == b"at work\n"
                until = time.monotonic() + 1.0 + 0.137 * life
                while time.monotonic() < until:
                    try:
                        seen = _globbed(corpus.path)
                    except FileNotFoundError:  # a file that was listed has been merged into another one since
                        continue
                    reads += 1
                    assert len(seen) == len(set(seen)), seen
            finally:
                writer.kill()
        seen = _globbed(corpus.path)
        assert len(seen) == len(set(seen)), seen
    assert reads > 5
    again = voxframe.Corpus(corpus.path)
    assert set(again.table("words")["transcript_id"]) == set(again.ids())


def test_a_manifest_is_read_as_it_was_written() -> None:
    """Ids and row groups of a manifest that was read are those that were written, and so is its JSON."""
    count = 512
    groups = [[[*range(n, n + 8)], [9000 + n] * 8] for n in range(0, count, 8)]
    files = {name: TableLayout(7, json.dumps(groups).encode()) for name in TABLES}
    texts = tuple(f"{n:064x}" for n in range(count))
    part = Part("a", "transcript", ids=texts, sources=texts, stamps=texts, statuses=("completed",) * count, files=files)
    manifest = part.to_json()
    read = Part.from_json(manifest)
    assert read.sources[5:7] == [*texts[5:7]]
    assert read.files["words"].groups[1] == ((*range(8, 16),), (9008,) * 8)
    assert read.to_json() == manifest


def test_a_process_that_adds_keeps_little_of_a_large_corpus(tmp_path: Path) -> None:
    """Of 30 parts with 512 transcripts each, less than 10 bytes per transcript are kept between two changes."""
    (tmp_path / "parts").mkdir()
    for number in range(30):
        texts = tuple(f"{number}-{n:032x}" for n in range(512))
        part = Part(f"{number:02}", "transcript", ids=texts, sources=texts, stamps=texts, statuses=("completed",) * 512)
        (tmp_path / "parts" / f"{part.name}.json").write_bytes(part.to_json())
    parts = Parts(tmp_path, [])
    gc.collect()
    tracemalloc.start()
    try:
        parts.refresh()
        parts.release()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 30 * 512 * 10
    finally:
        tracemalloc.stop()
    wanted = [f"7-{3:032x}", f"28-{511:032x}", "7-3"]
    found = parts.find("transcript", wanted)
    assert {part.name: ids for part, ids in found.items()} == {"07": {wanted[0]}, "28": {wanted[1]}}


def test_parts_that_changed_after_their_release_are_read_again(corpus: voxframe.Corpus) -> None:
    """A process that keeps little of the parts sees what another process has replaced, forgotten and merged."""
    corpus.add([_raw(f"t{n:03}") for n in range(600)], progress=False)
    parts = corpus._archive.parts
    parts.refresh()
    parts.release()
    other = voxframe.Corpus(corpus.path)
    other.raw.put("t000", _raw("t000", text="new"))
    other.forget("t001")
    other.add([_raw(f"u{n}") for n in range(20)], progress=False)
    other._archive.wait()
    (part,) = parts.find("transcript", ["t000"])
    assert part.source("t000") == other._archive.source_hash("t000", "transcript")
    assert not parts.find("transcript", ["t001"])
    assert parts.members("transcript").keys() == {*other.ids()}
    assert corpus.table("words")["text"].tolist() == other.table("words")["text"].tolist()


def test_parts_are_read_again_if_an_open_file_has_another_stamp_than_its_path(
    corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may tell another time of a path than of the open file; nothing waits for them to agree."""
    corpus.add([_raw(f"t{n}") for n in range(20)], progress=False)
    corpus._archive.parts.release()
    gc.collect()

    other = Path(os.devnull).stat()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda _: other)
        members = corpus._archive.parts.members("transcript")
    assert members.keys() == {*corpus.ids()}


def test_a_manifest_damaged_after_its_release_is_made_again(corpus: voxframe.Corpus) -> None:
    """Its transcripts are rebuilt, and other programs see each of them once."""
    corpus.add([_raw(f"t{n}") for n in range(40)], progress=False)
    corpus._archive.wait()
    parts = corpus._archive.parts
    parts.release()
    gc.collect()
    for path in (corpus.path / "parts").glob("[!.]*.json"):
        times = path.stat()
        with path.open("r+b") as file:
            file.seek(200)
            file.write(b"#####")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    corpus.add([_raw("t3", text="new")], replace=True, progress=False)
    assert _globbed(corpus.path) == ["t3"]
    assert corpus.table("words", ["t3", "t4"])["text"].tolist() == ["new0", "new1", "new2", "word0", "word1", "word2"]
    assert len(corpus.table("words")) == 3 * 40
    assert sorted(_globbed(corpus.path)) == sorted(corpus.ids())


def test_a_read_makes_no_objects_for_each_transcript(corpus: voxframe.Corpus) -> None:
    """Objects that contain others start the garbage collector, which takes long in a process with many imports."""
    names = [f"t{n:03}" for n in range(800)]
    made = []
    for some in (names[:200], names[200:]):
        corpus.add([_raw(name) for name in some], progress=False)
        corpus._archive.wait()
        other = voxframe.Corpus(corpus.path)
        corpus.table("transcripts")
        gc.disable()
        try:
            before = gc.get_count()[0]
            found = other.table("transcripts")
            made.append(gc.get_count()[0] - before)
        finally:
            gc.enable()
    assert made[1] - made[0] < 300
    assert found["recording"].to_list() == names
