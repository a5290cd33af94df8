"""Snapshots of a corpus."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import export, payload

import voxframe
from voxframe.corpus import snapshots
from voxframe.corpus.query import Query
from voxframe.errors import CorpusError, CorpusWarning
from voxframe.schema import SCHEMA_VERSION


def _fill(corpus: voxframe.Corpus, count: int, text: str = "Hello!") -> None:
    for number in range(count):
        name = f"t{number:03d}"
        answer = payload(name)
        answer["words"] = [*answer["words"][:2], {**answer["words"][2], "text": text}]
        corpus.raw.put(name, json.dumps(answer).encode())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")  # why a table is empty
def test_a_snapshot_equals_the_corpus(corpus: voxframe.Corpus) -> None:
    """Every table reads the same, sorted by transcript; later changes do not affect it."""
    _fill(corpus, 34)
    corpus.raw.put("t003", json.dumps(export("t003", "sentences")).encode(), "sentences")
    before = {name: corpus.table(name) for name in ("transcripts", "words", "utterances", "sentences", "topics")}
    sealed = corpus.snapshots.create(progress=False)
    _fill(corpus, 3, "Changed.")
    corpus.raw.put("new", json.dumps(payload("new")).encode())
    for name, frame in before.items():
        pd.testing.assert_frame_equal(sealed.table(name), frame)
    assert sealed.table("words", "t001", columns=["text"], where=[("speaker", "==", "B")])["text"].to_list() == [
        "Hello!"
    ]
    second = corpus.snapshots.create(progress=False)
    assert corpus.snapshots.versions() == [1, 2] == [sealed.version, second.version]
    assert "Changed." in set(corpus.snapshots.open().table("words")["text"])
    assert "Changed." not in set(corpus.snapshots.open(1).table("words")["text"])


def test_no_transcripts_give_no_rows(corpus: voxframe.Corpus) -> None:
    """An empty list of ids selects nothing, with metadata and without, and the columns are there."""
    _fill(corpus, 1)
    sealed = corpus.snapshots.create(progress=False)
    for metadata in False, True:
        none = sealed.table("words", [], metadata=metadata)
        assert none.empty
        assert [*none.columns] == [*sealed.table("words", metadata=metadata).columns]


def test_the_manifest_describes_the_files(corpus: voxframe.Corpus) -> None:
    """Schema version, counts and hashes are those of the files; a row group has 32 transcripts."""
    _fill(corpus, 34)
    sealed = corpus.snapshots.create(progress=False)
    manifest = json.loads((corpus.path / "snapshots" / "v=1" / "manifest.json").read_text())
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert manifest["transcripts"] == 34
    for name, entry in manifest["tables"].items():
        path = corpus.path / "snapshots" / "v=1" / name / "part-0.parquet"
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert entry["bytes"] == path.stat().st_size
        assert entry["rows"] == pq.read_metadata(path).num_rows
    words = pq.read_metadata(corpus.path / "snapshots" / "v=1" / "words" / "part-0.parquet")
    assert [words.row_group(n).num_rows for n in range(words.num_row_groups)] == [96, 6]
    sealed.verify()
    path = sealed.path / "words" / "part-0.parquet"
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="missing or damaged"):
        sealed.verify()


def test_nothing_is_sealed_without_a_corpus(tmp_path: Path) -> None:
    """A mistyped path is an error, and no folder is made there."""
    with pytest.raises(CorpusError, match=r"there is no corpus in .*typo"):
        voxframe.Corpus(tmp_path / "typo").snapshots.create()
    assert not (tmp_path / "typo").exists()


def test_missing_snapshots_and_tables_are_named(corpus: voxframe.Corpus) -> None:
    """Errors for a missing snapshot, version, table or manifest name those that exist."""
    with pytest.raises(CorpusError, match="has no snapshot"):
        corpus.snapshots.open()
    _fill(corpus, 1)
    sealed = corpus.snapshots.create()
    with pytest.raises(CorpusError, match="no snapshot 7; it has 1"):
        corpus.snapshots.open(7)
    with pytest.raises(CorpusError, match="no table 'nonsense'"):
        sealed.table("nonsense")
    (sealed.path / "manifest.json").unlink()
    with pytest.raises(CorpusError, match="manifest"):
        corpus.snapshots.open(1)


_WRITER = """
import json, sys, voxframe
corpus = voxframe.Corpus(sys.argv[1])
print("go", flush=True)
while True:
    corpus.snapshots.create(progress=False)
"""


@pytest.mark.long
def test_a_killed_writer_leaves_only_whole_versions(corpus: voxframe.Corpus) -> None:
    """Whenever the process is killed, each snapshot can be verified, and the next one can be created."""
    _fill(corpus, 10)
    corpus.snapshots.create(progress=False)
    for kill in range(4):
        child = subprocess.Popen([sys.executable, "-c", _WRITER, str(corpus.path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.04 * kill)
        child.kill()
        child.wait()
        child.stdout.close()
        for version in corpus.snapshots.versions():
            corpus.snapshots.open(version).verify()
            assert len(corpus.snapshots.open(version).table("words")) == 30
    assert corpus.snapshots.create().version == len(corpus.snapshots.versions())


def test_concurrent_snapshots_get_different_numbers(corpus: voxframe.Corpus) -> None:
    """Snapshots created at the same time do not replace each other."""
    _fill(corpus, 5)
    made: list[int] = []
    threads = [threading.Thread(target=lambda: made.append(corpus.snapshots.create().version)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [1, 2, 3, 4] == corpus.snapshots.versions()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names open files by /proc")
def test_a_snapshot_is_on_disk_before_it_appears(corpus: voxframe.Corpus, monkeypatch) -> None:
    """All its files and folders are flushed before it gets its name, and the folder with its name afterwards."""
    _fill(corpus, 1)
    flushed: list[Path] = []
    moves: list[tuple[Path, set[Path]]] = []
    fsync, rename = os.fsync, Path.rename

    def record_flush(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    def record_move(path: Path, target: Path) -> Path:
        moves.append((path, set(flushed)))
        flushed.clear()
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(Path, "rename", record_move)
    sealed = corpus.snapshots.create(progress=False)
    (hidden, before) = moves[-1]
    assert before >= {hidden, *(hidden / path.relative_to(sealed.path) for path in sealed.path.rglob("*"))}
    assert flushed == [sealed.path.parent]


def test_a_number_that_is_taken_meanwhile_is_not_replaced(corpus: voxframe.Corpus, monkeypatch) -> None:
    """If another process takes the number of a snapshot first, the snapshot gets the next one."""
    _fill(corpus, 1)
    corpus.snapshots.create(progress=False)
    outdated, listed = [[]], snapshots._versions
    monkeypatch.setattr(snapshots, "_versions", lambda folder: outdated.pop() if outdated else listed(folder))
    assert corpus.snapshots.create(progress=False).version == 2
    assert corpus.snapshots.versions() == [1, 2]


@pytest.mark.parametrize("times", [1, 99])
def test_a_transcript_replaced_during_a_snapshot(corpus: voxframe.Corpus, monkeypatch, times: int) -> None:
    """It is read again, so that all its tables are of one payload; if it keeps changing, that is an error."""
    _fill(corpus, 1, "Old.")
    read, texts = Query.arrow, [f"New {n}." for n in range(times)]

    def read_and_replace(query, name, *arguments):
        table = read(query, name, *arguments)
        if name == "words" and texts:
            _fill(corpus, 1, texts.pop())
        return table

    monkeypatch.setattr(Query, "arrow", read_and_replace)
    if times > 1:
        with pytest.raises(CorpusError, match="changes all the time; stop what writes to it"):
            corpus.snapshots.create(progress=False)
        assert list((corpus.path / "snapshots").iterdir()) == []
    else:
        assert corpus.snapshots.create(progress=False).table("words")["text"].iloc[-1] == "New 0."


def test_a_failed_snapshot_leaves_nothing(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """If the folder cannot be created, the error names the corpus and nothing is left."""
    _fill(corpus, 2)
    shutil.rmtree(corpus.path / "snapshots", ignore_errors=True)
    (corpus.path / "snapshots").write_text("in the way")
    with pytest.raises(CorpusError, match="cannot write to the corpus"):
        corpus.snapshots.create()
    assert corpus.snapshots.versions() == []


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "flipped"])
@pytest.mark.parametrize("name", ["words", "metadata"])
def test_a_damaged_snapshot_is_an_error(corpus: voxframe.Corpus, name: str, damage: str) -> None:
    """A damaged file is an error that names it, and none of its rows are returned."""
    _fill(corpus, 2)
    sealed = corpus.snapshots.create(progress=False)
    path = sealed.path / name / "part-0.parquet"
    whole = bytearray(path.read_bytes())
    whole[20] ^= 0xFF
    path.unlink()
    if damage != "gone":
        path.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "flipped": whole}[damage])
    for read in (lambda: corpus.snapshots.open().table("words", metadata=True), sealed.verify):
        with pytest.raises(CorpusError, match=f"{name}/part-0.parquet is missing or damaged; create a new version"):
            read()


def test_forget_names_snapshots_that_contain_the_transcript(corpus: voxframe.Corpus) -> None:
    """Snapshots do not change; the warning of `forget` names those that still contain it."""
    _fill(corpus, 1)
    corpus.snapshots.create(progress=False)
    _fill(corpus, 2)
    corpus.snapshots.create(progress=False)
    with pytest.warns(
        CorpusWarning, match=r"'t001' is deleted from the corpus, but snapshots still contain it: \S+v=2\. Delete these"
    ):
        corpus.forget("t001")
    assert corpus.snapshots.open(1).ids() == ["t000"]
    assert corpus.snapshots.open(2).ids() == ["t000", "t001"]


def test_a_transcript_that_is_deleted_meanwhile_is_not_in_a_snapshot(corpus: voxframe.Corpus, monkeypatch) -> None:
    """If a transcript is deleted while a snapshot is written, the snapshot has the others only."""
    _fill(corpus, 3)
    write = snapshots._write_metadata

    def delete_and_write(*arguments):
        if "t001" in corpus:
            voxframe.Corpus(corpus.path).forget("t001")
        return write(*arguments)

    monkeypatch.setattr(snapshots, "_write_metadata", delete_and_write)
    sealed = corpus.snapshots.create(progress=False)
    assert sealed.ids() == ["t000", "t002"]
    assert sealed.table("words")["transcript_id"].unique().tolist() == ["t000", "t002"]
    assert [path.name for path in (corpus.path / "snapshots").iterdir()] == ["v=1"]


def test_a_version_may_be_a_float(corpus: voxframe.Corpus) -> None:
    """A version from a DataFrame, where it can be a float, is found."""
    _fill(corpus, 1)
    corpus.snapshots.create(progress=False)
    assert corpus.snapshots.open(1.0).version == 1  # type: ignore[arg-type]


def test_many_ids_are_looked_up_in_one_read(corpus: voxframe.Corpus, monkeypatch) -> None:
    """Reading some transcripts reads the names of the recordings once, not once per transcript."""
    _fill(corpus, 5)
    corpus.snapshots.create(progress=False)
    sealed = corpus.snapshots.open()
    read, reads = type(sealed)._about, list[str]()
    monkeypatch.setattr(type(sealed), "_about", lambda self: (reads.append("metadata"), read(self))[1])
    assert len(sealed.table("transcripts", sealed.ids())) == 5
    assert len(reads) == 2  # by `ids`, and for the names
