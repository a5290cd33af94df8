import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from voxframe.corpus.store import Store, decompress, stored_tables, write_atomic
from voxframe.errors import CorpusError
from voxframe.schema import CORPUS_TABLES

_RAW = b'{"id": "t1", "text": "caf\xc3\xa9"}'


def _table(name: str, **columns: list) -> pa.Table:
    schema = CORPUS_TABLES[name].arrow
    rows = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(field.name, [None] * rows), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _words(count: int, transcript_id: str = "t1") -> pa.Table:
    numbers = list(range(count))
    return _table(
        "words",
        transcript_id=[transcript_id] * count,
        word_idx=numbers,
        text=[f"word{n % 7}" for n in numbers],
        start_ms=[n * 300 for n in numbers],
        end_ms=[n * 300 + 200 for n in numbers],
    )


def _tables(words: pa.Table, transcript_id: str = "t1") -> dict[str, pa.Table]:
    return {
        "transcripts": _table("transcripts", transcript_id=[transcript_id], status=["completed"]),
        "words": words,
        "chapters": CORPUS_TABLES["chapters"].arrow.empty_table(),
    }


def test_raw_payload_comes_back_byte_for_byte(tmp_path: Path) -> None:
    """What was put is what is read, and any zstd tool reads the file too."""
    store = Store(tmp_path)
    store.put_raw("t1", "transcript", _RAW)
    assert store.raw("t1", "transcript") == _RAW
    assert zstandard.ZstdDecompressor().decompress((tmp_path / "raw/t1.json.zst").read_bytes()) == _RAW
    assert pa.CompressedInputStream(str(tmp_path / "raw/t1.json.zst"), "zstd").read() == _RAW


def test_exports_lie_beside_the_transcript(tmp_path: Path) -> None:
    """An export has a raw file of its own and is no transcript in the list."""
    store = Store(tmp_path)
    store.put_raw("t1", "transcript", _RAW)
    store.put_raw("t1", "sentences", b"{}")
    assert (tmp_path / "raw/t1.sentences.json.zst").exists()
    assert store.ids() == ["t1"]


def test_any_identifier_is_listed_as_it_was_given(tmp_path: Path) -> None:
    """Identifiers that are no file names are kept inside the files."""
    store = Store(tmp_path)
    given = ["t1", "T1", "../../up", "a/b", "\ud800", "x" * 3000, "nul"]
    for transcript_id in given:
        store.put_raw(transcript_id, "transcript", transcript_id.encode("utf-8", "surrogatepass"))
    assert store.ids() == sorted(given)
    assert all(store.raw(i, "transcript") == i.encode("utf-8", "surrogatepass") for i in given)
    assert {path.parent for path in tmp_path.rglob("*.zst")} == {tmp_path / "raw"}


def test_tables_come_back_with_types_and_rows(tmp_path: Path) -> None:
    """A table read back equals what was put; an all-null column keeps its type."""
    store = Store(tmp_path)
    content = store.put_raw("t1", "transcript", _RAW)
    words = _words(100)
    store.put_tables("t1", _tables(words), content)
    read = store.table("t1", "words", content, "transcripts")
    assert read.equals(words)
    assert read.schema.field("speaker").type == pa.string()


def test_a_table_with_no_rows_is_told_from_one_that_is_missing(tmp_path: Path) -> None:
    """No file is written for no rows and it reads as empty; a lost file reads as not there."""
    store = Store(tmp_path)
    content = store.put_raw("t1", "transcript", _RAW)
    store.put_tables("t1", _tables(_words(3)), content)
    assert not (tmp_path / "tables/chapters/t1.parquet").exists()
    assert store.table("t1", "chapters", content, "transcripts").equals(CORPUS_TABLES["chapters"].arrow.empty_table())
    (tmp_path / "tables/words/t1.parquet").unlink()
    assert store.table("t1", "words", content, "transcripts") is None


def test_rows_that_are_gone_leave_no_file(tmp_path: Path) -> None:
    """A transcript that was fetched again and lost its words has none afterwards."""
    store = Store(tmp_path)
    store.put_tables("t1", _tables(_words(3)), store.put_raw("t1", "transcript", _RAW))
    content = store.put_raw("t1", "transcript", b"{}")
    store.put_tables("t1", _tables(_words(0)), content)
    assert store.table("t1", "words", content, "transcripts").num_rows == 0
    assert not (tmp_path / "tables/words/t1.parquet").exists()


@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "other content", "other version"])
@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")
def test_a_file_that_cannot_be_trusted_is_not_returned(tmp_path: Path, damage: str) -> None:
    """Damaged tables, and those made from another payload or under another schema, read as not there."""
    store = Store(tmp_path)
    content = store.put_raw("t1", "transcript", _RAW)
    store.put_tables("t1", _tables(_words(100)), content)
    path = tmp_path / "tables/words/t1.parquet"
    data = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "garbage":
        path.write_bytes(os.urandom(len(data)))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "other content":
        content = store.put_raw("t1", "transcript", b"{}")
    else:
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata(table.schema.metadata | {b"voxframe.schema_version": b"0"}), path)
    assert store.table("t1", "words", content, "transcripts") is None


def test_damaged_payload_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """A payload that lost bytes is never handed out as if it were whole."""
    store = Store(tmp_path)
    store.put_raw("t1", "transcript", _RAW * 1000)
    path = tmp_path / "raw/t1.json.zst"
    data = path.read_bytes()
    for broken in (data[:30], b"not zstd", data[:20] + b"\xff\xff" + data[22:]):
        path.write_bytes(broken)
        with pytest.raises(CorpusError, match="Delete it"):
            store.raw("t1", "transcript")


def test_a_payload_put_there_by_other_means_is_read(tmp_path: Path) -> None:
    """A file compressed by any tool counts, also where the frame does not say how long it is."""
    store = Store(tmp_path)
    (tmp_path / "raw").mkdir()
    compressor = zstandard.ZstdCompressor().compressobj()
    (tmp_path / "raw/t9.json.zst").write_bytes(compressor.compress(_RAW) + compressor.flush())
    assert store.ids() == ["t9"]
    assert store.raw("t9", "transcript") == _RAW
    assert store.content("t9", "transcript") == store.put_raw("t1", "transcript", _RAW)


def test_decompress_refuses_an_early_end() -> None:
    """A frame that ends early is an error, not a shorter payload."""
    with pytest.raises(zstandard.ZstdError, match="ends early"):
        decompress(zstandard.compress(_RAW * 100)[:-8])


def test_encodings_are_small_ones(tmp_path: Path) -> None:
    """Ids, text and speakers are dictionaries, times and ordinals are deltas, all is zstd."""
    store = Store(tmp_path)
    store.put_tables("t1", _tables(_words(1000)), store.put_raw("t1", "transcript", _RAW))
    group = pq.read_metadata(tmp_path / "tables/words/t1.parquet").row_group(0)
    columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert all("DELTA_BINARY_PACKED" in columns[name].encodings for name in ("word_idx", "start_ms", "end_ms"))
    assert all("RLE_DICTIONARY" in columns[name].encodings for name in ("transcript_id", "text", "speaker"))


def test_every_table_can_be_globbed_from_the_first_put_on(tmp_path: Path) -> None:
    """A table with no rows in any transcript still has a file with its columns."""
    store = Store(tmp_path)
    store.put_raw("t1", "transcript", _RAW)
    for name in stored_tables():
        (path,) = (tmp_path / "tables" / name).glob("*.parquet")
        assert pq.read_schema(path).equals(CORPUS_TABLES[name].arrow)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """A writer that fails half-way changes nothing."""
    path = tmp_path / "x"
    write_atomic(path, lambda file: file.write(b"old"))

    def fail(file: object) -> None:
        file.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomic(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_dead_writers_are_swept_and_never_listed(tmp_path: Path) -> None:
    """Old temporary files go at the first write; young ones belong to somebody and stay."""
    raw = tmp_path / "raw"
    raw.mkdir()
    old, young = raw / ".t1.json.zst.aa.tmp", raw / ".t2.json.zst.bb.tmp"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    store = Store(tmp_path)
    assert store.ids() == []
    store.put_raw("t3", "transcript", _RAW)
    assert not old.exists()
    assert young.exists()
    assert store.ids() == ["t3"]


def test_killed_writers_leave_nothing_unreadable(tmp_path: Path) -> None:
    """While writers are killed again and again, every table and payload read is whole."""
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_store import _tables, _words; from voxframe.corpus.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for n in range(10**6):\n"
        "    content = store.put_raw('t1', 'transcript', b'x' * (n % 50 * 1000))\n"
        "    store.put_tables('t1', _tables(_words(n % 50 * 20 + 1)), content)\n"
        "    if n == 2: print('writing', flush=True)\n"
    )
    store = Store(tmp_path)
    store.put_tables("t1", _tables(_words(1)), store.put_raw("t1", "transcript", b""))
    whole = reads = 0
    for kill in range(4):
        command = [sys.executable, "-c", program, str(tmp_path), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            try:
                assert writer.stdout.readline() == b"writing\n"
                until = time.monotonic() + 0.4 + kill * 0.037
                while time.monotonic() < until:
                    content = store.content("t1", "transcript")
                    table = store.table("t1", "words", content, "transcripts")
                    assert len(store.raw("t1", "transcript")) % 1000 == 0
                    with pq.ParquetFile(tmp_path / "tables/words/t1.parquet") as file:
                        assert (file.read().num_rows - 1) % 20 == 0
                    reads += 1
                    whole += table is not None
            finally:
                writer.kill()
    assert store.raw("t1", "transcript") is not None
    assert whole > 0
    assert reads > 20


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where the corpus should be is an error that says which path."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CorpusError, match=r"cannot write a corpus at .*file"):
        Store(blocked).put_raw("t1", "transcript", _RAW)
