"""Files of parts that are damaged, and files that processes left when they died."""

import errno
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from tests.corpus.conftest import table_files

import voxframe
from voxframe import _files
from voxframe.corpus import store
from voxframe.corpus.part import PartWriter, new_member
from voxframe.corpus.part_files import TableFile
from voxframe.corpus.store import Stored
from voxframe.errors import CorpusError, CorpusWarning
from voxframe.frames import transcript_tables


def _raw(name: str, text: str = "word") -> bytes:
    words = [{"text": f"{text}{n}", "start": n, "end": n + 1, "confidence": 0.5, "speaker": "A"} for n in range(3)]
    return json.dumps({"id": name, "status": "completed", "words": words}).encode()


def _seen(corpus: voxframe.Corpus) -> dict[str, list[str]]:
    """Return the words of each transcript as another program reads them."""
    rows = duckdb.sql(f"from '{corpus.path}/tables/words/*.parquet' order by word_idx").fetchall()
    found: dict[str, list[str]] = {}
    for transcript_id, _, _, text, *_ in rows:
        found.setdefault(transcript_id, []).append(text)
    return found


def _unfinished(corpus: voxframe.Corpus) -> list[Path]:
    return [*corpus.path.rglob("*.tmp")]


#: Puts or forgets a transcript in a process that is killed at a step of `Parts`.
_KILLED = """
import os, sys, voxframe
from voxframe.corpus.parts import Parts
path, step, action, *arguments = sys.argv[1:]
setattr(Parts, step, lambda *_: os.kill(os.getpid(), 9))
corpus = voxframe.Corpus(path)
corpus.forget(*arguments) if action == "forget" else corpus.raw.put(arguments[0], arguments[1].encode())
"""


def _killed_at(step: str, corpus: voxframe.Corpus, *action: str) -> None:
    command = [sys.executable, "-c", _KILLED, str(corpus.path), step, *action]
    assert subprocess.run(command, check=False).returncode == -9


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("table", ["words", "transcripts"])
@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.filterwarnings("ignore:.* is damaged:voxframe.errors.CorpusWarning")
def test_a_damaged_part_hinders_no_change(tmp_path: Path, damage: str, table: str) -> None:
    """A transcript is put, replaced and forgotten beside a damaged file, whose part is made again from the payloads."""
    for size, change in ((3, "put"), (3, "replace"), (3, "forget"), (20, "replace"), (20, "forget")):
        corpus = voxframe.Corpus(tmp_path / f"{size} {change}")
        corpus.add([_raw(f"t{n}") for n in range(size)])
        _DAMAGES[damage](table_files(corpus, table)[0])
        other = voxframe.Corpus(corpus.path)
        if change == "forget":
            other.forget("t1")
        else:
            other.raw.put("t1" if change == "replace" else "new", _raw("t1", "other"))
        expected = {f"t{n}": ["word0", "word1", "word2"] for n in range(size)}
        expected |= {"t1" if change == "replace" else "new": ["other0", "other1", "other2"]}
        if change == "forget":
            del expected["t1"], expected["new"]
            assert "t1" not in _seen(corpus)
        found = voxframe.Corpus(corpus.path).table("words")
        assert found.groupby("transcript_id")["text"].agg(list).to_dict() == expected
        assert _seen(corpus) == expected
        assert _unfinished(corpus) == []


def test_a_damaged_file_without_rows_is_made_again(tmp_path: Path) -> None:
    """Other programs can read a folder of tables after all files were verified."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _raw("a"))
    (corpus.path / "tables" / "words" / "_schema.parquet").write_bytes(b"PAR1")
    corpus.raw.rebuild_tables(verify=True)
    assert _seen(corpus) == {"a": ["word0", "word1", "word2"]}


def test_a_put_beside_a_damaged_part_warns(tmp_path: Path) -> None:
    """The file that was damaged is named."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _raw("a"))
    _DAMAGES["cut"](table_files(corpus, "words")[0])
    with pytest.warns(CorpusWarning, match=r"words/.*\.parquet is damaged"):
        voxframe.Corpus(corpus.path).raw.put("b", _raw("b"))


def test_an_old_change_is_completed_by_the_next_write(tmp_path: Path) -> None:
    """The files of a committed change are put in place, however long ago its process died."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([_raw(f"t{n}") for n in range(12)])
    _killed_at("_complete", corpus, "forget", "t3")
    for path in _unfinished(corpus):
        os.utime(path, (1, 1))
    voxframe.Corpus(corpus.path).raw.put("other", _raw("other"))
    assert sorted(_seen(corpus)) == sorted([f"t{n}" for n in range(12) if n != 3] + ["other"])
    assert _unfinished(corpus) == []


@pytest.mark.parametrize("call", ["table", "stale", "rebuild_tables"])
def test_an_interrupted_change_is_completed_by_a_read(tmp_path: Path, call: str) -> None:
    """After a read, other programs see the change, too."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _raw("a"))
    _killed_at("_complete", corpus, "put", "b", _raw("b").decode())
    assert sorted(_seen(corpus)) == ["a"]
    other = voxframe.Corpus(corpus.path)
    if call == "table":
        assert len(other.table("words")) == 6
    else:
        getattr(other.raw, call)()
    assert sorted(_seen(corpus)) == ["a", "b"]


def test_a_read_waits_for_no_running_change(tmp_path: Path) -> None:
    """While another process changes parts, a read returns what is committed."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _raw("a"))
    _killed_at("_complete", corpus, "put", "b", _raw("b").decode())
    holds = (
        "import sys; from pathlib import Path; from voxframe._files import file_lock\n"
        "with file_lock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()\n"
    )
    lock = str(corpus.path / ".locks" / "tables")
    with subprocess.Popen([sys.executable, "-c", holds, lock], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert len(voxframe.Corpus(corpus.path).table("words")) == 6
        assert sorted(_seen(corpus)) == ["a"]


@pytest.mark.parametrize("action", ["put", "correct"])
def test_forget_deletes_the_unfinished_files_of_a_transcript(tmp_path: Path, action: str) -> None:
    """Text that a killed process had not put in place is gone, too."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("other", _raw("other"))
    _killed_at("_commit", corpus, "put", "victim", _raw("victim").decode())
    if action == "correct":
        left = corpus.path / "corrections" / ".victim.json.0123456789ab.tmp"
        left.parent.mkdir(exist_ok=True)
        left.write_text("corrected")
    assert _unfinished(corpus)
    corpus.forget("victim")
    assert _unfinished(corpus) == []
    assert corpus.ids() == ["other"]
    with pytest.raises(CorpusError, match="there is no transcript 'victim'"):
        corpus.forget("victim")


def test_a_payload_is_stored_while_the_transcript_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process deletes the unfinished file of a payload, it is written again."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _raw("a"))

    def later(hidden: Path, path: Path) -> None:
        monkeypatch.undo()
        voxframe.Corpus(corpus.path).forget("a")
        store.put_in_place(hidden, path)

    monkeypatch.setattr(store, "put_in_place", later)
    corpus.raw.put("a", _raw("a", "newer"))
    assert voxframe.Corpus(corpus.path).table("words")["text"].to_list() == ["newer0", "newer1", "newer2"]
    assert _unfinished(corpus) == []


def test_files_of_a_running_writer_are_kept(tmp_path: Path) -> None:
    """Old unfinished files are deleted only if their writer has ended, and then at once."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _raw("a"))
    corpus.forget("a")
    parts = corpus._archive.parts
    writer = PartWriter(parts, "transcript")
    raw = _raw("b")
    writer.add(new_member("b", transcript_tables(raw))(Stored(raw, "hash", "stamp")))
    for path in _unfinished(corpus):
        os.utime(path, (1, 1))
    before = _unfinished(corpus)
    assert len(before) == 2  # words and transcripts
    voxframe.Corpus(corpus.path).raw.put("c", _raw("c"))
    assert _unfinished(corpus) == before
    writer.release()  # as at the end of its process
    voxframe.Corpus(corpus.path).raw.put("d", _raw("d"))
    assert _unfinished(corpus) == []
    writer.discard()
    assert [*(corpus.path / ".locks").iterdir()] == []


def test_a_full_disk_leaves_no_unfinished_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a table of a part cannot be written again, the files of its other tables are deleted."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([_raw(f"t{n}") for n in range(20)])
    close, calls = TableFile.close, []

    def closed(self: TableFile) -> None:
        calls.append(self)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        close(self)

    monkeypatch.setattr(TableFile, "close", closed)
    corpus.forget("t3")
    monkeypatch.undo()
    assert len(calls) == 2
    assert _unfinished(corpus) == []
    assert sorted(corpus.table("words")["transcript_id"].unique()) == sorted(f"t{n}" for n in range(20) if n != 3)


def test_an_addition_keeps_what_was_put_meanwhile(tmp_path: Path) -> None:
    """Of a transcript that is replaced during an addition, other programs see the newer rows."""
    corpus = voxframe.Corpus(tmp_path / "corpus")

    def payloads() -> Iterator[bytes]:
        yield from (_raw(f"t{n}") for n in range(40))
        voxframe.Corpus(corpus.path).raw.put("t0", _raw("t0", "newer"))
        voxframe.Corpus(corpus.path).forget("t1")

    corpus.add(payloads())
    found = _seen(corpus)
    assert found.pop("t0") == ["newer0", "newer1", "newer2"]
    assert found == {f"t{n}": ["word0", "word1", "word2"] for n in range(2, 40)}


def test_ctrl_c_after_a_change_is_committed(corpus: voxframe.Corpus, monkeypatch) -> None:
    """If Ctrl-C comes after a change was committed, the next read completes the change without a warning."""
    corpus.raw.put("t1", _raw("t1"))
    sync, interrupts = _files.sync, [KeyboardInterrupt()]

    def interrupted(path: Path) -> None:
        sync(path)
        if path.name == "parts" and interrupts:
            raise interrupts.pop()

    monkeypatch.setattr(_files, "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        corpus.raw.put("t2", _raw("t2"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(voxframe.Corpus(corpus.path).words()) == 6
    assert _unfinished(corpus) == []
