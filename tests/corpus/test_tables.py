import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import export, forget_until, raw_file, table_files

import voxframe
from voxframe.corpus import query
from voxframe.corpus.store import View
from voxframe.corpus.tables import NewMember, NewPart, Tables, to_merge
from voxframe.corpus.views import Located, in_order
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
    found = in_order(tables, *np.array(runs).T)
    expected = [30 * of + n for of, start, count in runs for n in range(start, start + count)]
    assert found["n"].to_pylist() == expected
    assert found["text"].to_pylist() == [texts[n] for n in expected]


def test_transcripts_are_collected_in_few_parts(corpus: voxframe.Corpus) -> None:
    """After 40 puts there are few files, a glob finds each transcript once after every put, and all rows are read."""
    for number in range(40):
        corpus.raw.put(f"t{number:02}", _raw(f"t{number:02}"))
        seen = _globbed(corpus.path)
        assert sorted(seen) == sorted(set(seen))
    corpus._archive.wait()
    ids = [f"t{number:02}" for number in range(40)]
    assert sorted(_globbed(corpus.path)) == ids
    assert len(table_files(corpus, "words")) <= 8
    words = corpus.table("words")
    assert list(dict.fromkeys(words["transcript_id"])) == ids
    assert len(words) == 120
    assert voxframe.Corpus(corpus.path).raw.stale() == []


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
    corpus.raw.put("b", _raw("b", 5, text="after"))
    assert sorted(_globbed(corpus.path)) == ["a", "b", "c"]
    assert corpus.table("words", "b")["text"].to_list() == [f"after{n}" for n in range(5)]
    corpus.raw.put("d", _raw("d"))
    assert sorted(_globbed(corpus.path)) == ["a", "b", "c", "d"]


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
        *("_archive.remove", "_archive.files.drop", "_archive.store.remove", "_archive.files.settle"),
        *("_search.purge", "_archive.catalog.forget"),
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
    assert corpus.raw.stale() == corpus.raw.stale("sentences") == ["t05"]
    if is_rebuilt:
        assert corpus.raw.rebuild_tables(progress=False) == 0
        assert sorted(_globbed(corpus.path)) == corpus.ids()
        assert table_files(corpus, "sentences") == []
        assert corpus.raw.stale() == corpus.raw.stale("sentences") == []
        assert corpus._archive.names.get("t05").speakers == {"A": "Ada"}
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
    corpus.path.joinpath("catalog.sqlite").unlink()
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


@pytest.mark.parametrize(
    "deleted", [["catalog*"], ["tables"], ["catalog*", "tables"], ["catalog*", "tables", "raw"], ["*"]]
)
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


@pytest.mark.parametrize("number", [3, 17])
def test_an_interrupted_addition_stores_whole_transcripts(
    corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """After Ctrl-C between two tables of a transcript, all its tables have the rows of its payload."""
    turn = {"text": "a", "start": 0, "end": 1, "confidence": 0.5, "speaker": "A", "words": []}
    chapter = {"gist": "a", "headline": "a", "summary": "a", "start": 0, "end": 1}
    calls, add = count(), NewPart.add

    def interrupted(self: NewPart, new: NewMember) -> None:
        if next(calls) == number:
            raise KeyboardInterrupt
        add(self, new)

    with monkeypatch.context() as patch:
        patch.setattr(NewPart, "add", interrupted)
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
    for name in ("records", "snapshots", "search"):
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


@pytest.mark.parametrize("name", ["redacted", "search", "raw/*"])
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
from tests.corpus.test_tables import _raw
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


@pytest.mark.parametrize("sizes", [[1] * 300, [7] * 100, [65, 100, 257] * 20, [*range(300, 0, -1)]])
def test_few_parts_are_left_whatever_the_sizes_of_the_adds(sizes: list[int]) -> None:
    """After every add, n transcripts are in at most n / 384 + 36 parts, none of which is much too large."""
    parts: list[tuple[int, int]] = []
    for number, size in enumerate(sizes):
        parts.append((size, size))
        while group := to_merge(parts):
            merged = sum(parts[n][0] for n in group)
            parts = [*(part for n, part in enumerate(parts) if n not in group), (merged, merged)]
        assert len(parts) <= sum(sizes[: number + 1]) / 384 + 36
        assert max(parts)[0] < 512 + 383


def test_a_change_of_a_killed_process_is_completed(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a writer stops after its change was committed, the next read moves the files, and a glob sees the change."""
    corpus.raw.put("a", _raw("a"))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "settle", stop)
        with pytest.raises(KeyboardInterrupt):
            corpus.raw.put("b", _raw("b"))
    assert [*corpus.path.glob(".incoming/*")] != []
    other = voxframe.Corpus(corpus.path)
    assert other.table("words")["transcript_id"].to_list() == ["a"] * 3 + ["b"] * 3
    assert [*corpus.path.glob(".incoming/*")] == []
    assert sorted(_globbed(corpus.path)) == ["a", "b"]


@pytest.mark.parametrize("size", [3, 20])
@pytest.mark.parametrize("damage", ["cut", "empty", "a byte", "gone"])
def test_a_damaged_file_hinders_no_change(corpus: voxframe.Corpus, size: int, damage: str) -> None:
    """Beside a damaged file, transcripts are put, replaced and forgotten, and its rows are made from the payloads."""
    corpus._archive.merges = False
    corpus.add([_raw(f"t{n}") for n in range(size)], progress=False)
    path = table_files(corpus, "words")[0]
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        flipped = (
            content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1 :]
        )
        path.write_bytes({"cut": content[:99], "empty": b"", "a byte": flipped}[damage])
    other = voxframe.Corpus(corpus.path)
    with contextlib.nullcontext() if damage == "gone" else pytest.warns(CorpusWarning, match="is damaged"):
        assert other.table("words")["transcript_id"].nunique() == size
    other.forget("t1")
    other.raw.put("new", _raw("new", text="other"))
    other.raw.put("t0", _raw("t0", text="other"))
    words = voxframe.Corpus(corpus.path).table("words")
    expected = {f"t{n}": "word0" for n in range(2, size)} | {"t0": "other0", "new": "other0"}
    assert words.groupby("transcript_id")["text"].first().to_dict() == expected
    assert sorted(_globbed(corpus.path)) == sorted(expected)
    assert [*corpus.path.rglob("*.tmp"), *corpus.path.glob(".incoming/*")] == []


def test_another_schema_makes_the_tables_again(corpus: voxframe.Corpus) -> None:
    """A corpus whose tables have other columns is made again from its payloads, with names and corrections."""
    corpus.add([_raw(name) for name in "abc"])
    corpus.speakers.set("a", {"A": "Ada"})
    corpus.corrections.set("a", {0: "quite other words"})
    before = corpus.table("words")
    with corpus._archive.catalog.writing() as tx:
        tx.put("parts", [{**row, "schema": "older"} for row in tx.find("parts")])
    later = voxframe.Corpus(corpus.path)
    assert later.raw.stale() == ["a", "b", "c"]
    pd.testing.assert_frame_equal(later.table("words"), before)
    assert sorted(_globbed(corpus.path)) == ["a", "b", "c"]
