import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from voxframe._files import write_atomic
from voxframe.corpus.store import Store, decompress
from voxframe.errors import CorpusError

_RAW = b'{"id": "t1", "text": "caf\xc3\xa9"}'


def test_raw_payload_comes_back_byte_for_byte(tmp_path: Path) -> None:
    """A payload is returned byte for byte, and any zstd tool can read the file."""
    store = Store(tmp_path)
    store.put("t1", "transcript", _RAW)
    assert store.raw("t1", "transcript") == _RAW
    (path,) = tmp_path.glob("raw/*/t1.json.zst")
    assert zstandard.ZstdDecompressor().decompress(path.read_bytes()) == _RAW
    assert pa.CompressedInputStream(str(path), "zstd").read() == _RAW


def test_exports_have_their_own_files(tmp_path: Path) -> None:
    """An export has its own raw file and is not listed as a transcript."""
    store = Store(tmp_path)
    store.put("t1", "transcript", _RAW)
    store.put("t1", "sentences", b"{}")
    assert len([*tmp_path.glob("raw/*/t1.sentences.json.zst")]) == 1
    assert store.ids() == ["t1"]


def test_any_id_is_listed_as_given(tmp_path: Path) -> None:
    """Ids that are not file names are stored inside the files."""
    store = Store(tmp_path)
    given = ["t1", "T1", "../../up", "a/b", "\ud800", "x" * 3000, "nul"]
    for transcript_id in given:
        store.put(transcript_id, "transcript", transcript_id.encode("utf-8", "surrogatepass"))
    assert store.ids() == sorted(given)
    assert all(store.raw(i, "transcript") == i.encode("utf-8", "surrogatepass") for i in given)
    assert {path.parent.parent for path in tmp_path.rglob("*.zst")} == {tmp_path / "raw"}


def test_damaged_payload_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """A truncated payload is never returned."""
    store = Store(tmp_path)
    store.put("t1", "transcript", _RAW * 1000)
    (path,) = tmp_path.glob("raw/*/t1.json.zst")
    data = path.read_bytes()
    for broken in (data[:30], b"not zstd", data[:20] + b"\xff\xff" + data[22:]):
        path.write_bytes(broken)
        with pytest.raises(CorpusError, match="Delete it"):
            store.raw("t1", "transcript")


def test_a_payload_compressed_by_another_tool_is_read(tmp_path: Path) -> None:
    """It is read even if the frame does not contain its length."""
    store = Store(tmp_path)
    (tmp_path / "raw").mkdir()
    compressor = zstandard.ZstdCompressor().compressobj()
    (tmp_path / "raw/t9.json.zst").write_bytes(compressor.compress(_RAW) + compressor.flush())
    assert store.ids() == ["t9"]
    assert store.raw("t9", "transcript") == _RAW
    before = store.content("t9", "transcript")
    assert before == store.read("t9", "transcript").content
    (tmp_path / "raw/t9.json.zst").write_bytes(zstandard.compress(b"{}"))
    assert store.content("t9", "transcript") not in (None, before)


def test_decompress_refuses_an_early_end() -> None:
    """A truncated frame is an error, not a shorter payload."""
    with pytest.raises(zstandard.ZstdError, match="full frame"):
        decompress(zstandard.compress(_RAW * 100)[:-8])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """A failed write changes nothing."""
    path = tmp_path / "x"
    write_atomic(path, b"old")

    def fail(file: object) -> None:
        file.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomic(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    """Old temporary files are deleted by the first write; recent ones may be in use and stay."""
    folders = [tmp_path, tmp_path / "raw"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name in (".old.json.aa.tmp", ".young.json.bb.tmp"):
            (folder / name).write_bytes(b"half")
        os.utime(folder / ".old.json.aa.tmp", (time.time() - 7200,) * 2)
    store = Store(tmp_path)
    assert store.ids() == []
    store.put("t3", "transcript", _RAW)
    assert sorted(tmp_path.rglob("*.tmp")) == sorted(folder / ".young.json.bb.tmp" for folder in folders)
    assert store.ids() == ["t3"]


def test_payloads_are_listed_after_the_clock_was_set_back(tmp_path: Path) -> None:
    """A payload stored at a time before the last listing is in the next one."""
    store = Store(tmp_path)
    ids = [f"t{number}" for number in range(1000)]  # in all subfolders
    for transcript_id in ids:
        store._raw_path(transcript_id, "transcript").parent.mkdir(parents=True, exist_ok=True)
        store._raw_path(transcript_id, "transcript").write_bytes(b"")
    _set_times(tmp_path / "raw", time.time() - 60)
    assert len(store.listing()) == len(ids)
    store.put("new", "transcript", b"{}")
    _set_times(store._raw_path("new", "transcript").parent, time.time() - 3600)
    assert len(store.listing()) == len(ids) + 1


def test_only_the_folders_that_changed_are_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payload that another process replaced is noticed without listing the other folders."""
    store = Store(tmp_path)
    for number in range(200):
        store._raw_path(f"t{number}", "transcript").parent.mkdir(parents=True, exist_ok=True)
        store._raw_path(f"t{number}", "transcript").write_bytes(b"")
    _set_times(tmp_path / "raw", time.time() - 60)
    before = dict(store.listing())
    Store(tmp_path).put("t7", "transcript", b"{}")
    listed, scandir = [], os.scandir

    def spy(place: str) -> object:
        listed.append(Path(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", spy)
    assert store.listing() == before | {"t7": store.stamp("t7", "transcript")}
    assert set(listed) <= {tmp_path / "raw", store._raw_path("t7", "transcript").parent}


def _set_times(folder: Path, seconds: float) -> None:
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (seconds, seconds))


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file in place of the corpus is an error that names the path."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(CorpusError, match=r"cannot write a corpus at .*file"):
        Store(blocked).put("t1", "transcript", _RAW)


def test_nothing_is_written_through_a_symbolic_link(tmp_path: Path) -> None:
    """A link in place of a subfolder is refused, and its target stays empty."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    store = Store(tmp_path / "corpus")
    store.put("t1", "transcript", _RAW)
    (path,) = tmp_path.glob("corpus/raw/*/t1.json.zst")
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic link"):
        store.put("t1", "transcript", _RAW)
    assert [*elsewhere.iterdir()] == []


def test_both_copies_of_a_payload_are_deleted(tmp_path: Path) -> None:
    """If another program has put a payload directly in raw/ that is also in a subfolder, both files are deleted."""
    store = Store(tmp_path)
    store.put("t1", "transcript", _RAW)
    (path,) = tmp_path.glob("raw/*/t1.json.zst")
    (tmp_path / "raw" / path.name).write_bytes(path.read_bytes())
    store.remove("t1")
    assert store.ids() == []
    assert not store.has("t1", "transcript")
