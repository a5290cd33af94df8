"""The search index on disk: updates, sharing between processes, and rebuilds."""

import contextlib
import json
import pickle
import shutil
import subprocess
import sys
import warnings

import pandas as pd
import pytest
from tests.corpus.conftest import raw_file

import voxframe
from voxframe.corpus.search import index, segment
from voxframe.corpus.tables import Tables
from voxframe.errors import CorpusError, CorpusWarning, OptionError


def say(corpus: voxframe.Corpus, transcript_id: str, text: str) -> None:
    """Store a transcript of these words."""
    words = [{"text": word, "start": n, "end": n} for n, word in enumerate(text.split())]
    corpus.raw.put(transcript_id, json.dumps({"id": transcript_id, "status": "completed", "words": words}).encode())


def matched_ids(corpus: voxframe.Corpus, query: str) -> list[str]:
    """Return the ids of the transcripts with a match, one entry per match."""
    return corpus.search(query)["transcript_id"].to_list()


@pytest.fixture
def segments(corpus: voxframe.Corpus):
    """Return the segment files of the corpus."""
    return lambda: sorted(corpus.path.joinpath("search").glob("*.arrow"))


def test_the_index_follows_changes(corpus: voxframe.Corpus) -> None:
    """Another object, as in another process, sees every change at its next search."""
    other = voxframe.Corpus(corpus.path)
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        assert matched_ids(other, "smoke") == []
    say(corpus, "b", "smoke and fire")
    assert matched_ids(other, "smoke") == ["b"]
    say(corpus, "A/odd id", "no smoke")
    assert matched_ids(other, "smoke") == ["A/odd id", "b"]
    say(corpus, "b", "only fire now")
    assert matched_ids(other, "smoke") == ["A/odd id"]
    assert matched_ids(other, "fire now") == ["b"]
    next(corpus.path.glob("raw/*/A_odd_id~*")).unlink()
    assert matched_ids(other, "smoke") == []
    assert matched_ids(corpus, "fire") == ["b"]


def test_a_new_index_decodes_each_row_group_once(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transcripts with ids in another order than the stored rows share reads of their row groups."""
    ids = [f"{n * 7 % 32:02}" for n in range(32)]
    corpus.add(
        [{"id": i, "status": "completed", "words": [{"text": f"w{i}", "start": 0}]} for i in ids], progress=False
    )
    reads, read = [], Tables.read

    def counted(tables: Tables, part: int, name: str, groups, *arguments: object):
        reads.extend((part, group) for group in groups)
        return read(tables, part, name, groups, *arguments)

    monkeypatch.setattr(Tables, "read", counted)
    assert matched_ids(corpus, "w05") == ["05"]
    assert len(reads) == len(set(reads))
    assert corpus.counts("w05")["transcript_id"].to_list() == sorted(ids)


def test_unchanged_transcripts_are_not_indexed_again(corpus: voxframe.Corpus, segments) -> None:
    """A second search, another object and a copy of the corpus use the existing segments."""
    say(corpus, "a", "smoke")
    say(corpus, "b", "fire")
    matched_ids(corpus, "smoke")
    before = [(path.name, path.stat().st_mtime_ns) for path in segments()]
    assert matched_ids(voxframe.Corpus(corpus.path), "fire") == ["b"]
    assert [(path.name, path.stat().st_mtime_ns) for path in segments()] == before
    copied = voxframe.Corpus(shutil.copytree(corpus.path, corpus.path.with_name("copy")))
    assert matched_ids(copied, "fire") == ["b"]
    assert [path.name for path in copied.path.joinpath("search").glob("*.arrow")] == [name for name, _ in before]


def test_a_corpus_that_was_searched_can_be_sent_to_another_process(corpus: voxframe.Corpus) -> None:
    """It can be pickled, and searches in the other process."""
    say(corpus, "a", "smoke")
    matched_ids(corpus, "smoke")
    assert matched_ids(pickle.loads(pickle.dumps(corpus)), "smoke") == ["a"]


def test_small_segments_are_merged(corpus: voxframe.Corpus, segments, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding transcripts one by one leaves few segments, and replaced ones are soon removed."""
    monkeypatch.setattr(index, "FAN", 3)
    for n in range(8):
        say(corpus, f"t{n}", f"word{n} smoke")
        assert matched_ids(corpus, "smoke") == [f"t{i}" for i in range(n + 1)]
        assert len(segments()) < 3
    for _ in range(6):
        say(corpus, "t0", "smoke again")
        assert matched_ids(corpus, "smoke")[0] == "t0"
    assert sum(len(segment.IndexSegment.open(path).ids) for path in segments()) <= 10
    assert matched_ids(corpus, "word0") == []
    assert matched_ids(corpus, "again") == ["t0"]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_index_behind_a_link_is_not_changed(corpus: voxframe.Corpus, segments, monkeypatch, is_damaged) -> None:
    """If `search` is a symbolic link, segments there are neither merged nor replaced. Searches work in memory then."""
    for n in range(6):
        say(corpus, f"t{n}", "smoke")
        matched_ids(corpus, "smoke")
    if is_damaged:
        segments()[0].write_bytes(b"no segment")
    elsewhere = corpus.path.with_name("elsewhere")
    (corpus.path / "search").rename(elsewhere)
    (corpus.path / "search").symlink_to(elsewhere)
    before = {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    monkeypatch.setattr(index, "FAN", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorpusWarning)  # of the damaged one
        again = voxframe.Corpus(corpus.path)
        for _ in range(2):
            assert matched_ids(again, "smoke") == [f"t{n}" for n in range(6)]
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "rubbish", "old"])
def test_an_unusable_index_is_rebuilt(corpus: voxframe.Corpus, segments, damage: str) -> None:
    """Whatever happens to its files, the next search is correct."""
    say(corpus, "a", "smoke and fire " * 50)
    assert len(matched_ids(corpus, "smoke")) == 50
    (path,) = segments()
    whole = path.read_bytes()
    path.unlink()  # the corpus has it mapped
    if damage == "old":
        path.write_bytes(whole)
        with corpus._archive.catalog.writing() as tx:
            tx.put("state", [{"name": "search", "value": "of another version"}])
    elif damage != "gone":
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "rubbish": b"x" * 999}[damage])
    told = damage in ("cut", "empty", "rubbish")
    with pytest.warns(CorpusWarning, match="is damaged") if told else contextlib.nullcontext():
        assert len(matched_ids(voxframe.Corpus(corpus.path), "smoke")) == 50
    assert len(segments()) == 1


def test_a_flipped_bit_is_noticed_wherever_it_is(corpus: voxframe.Corpus, segments) -> None:
    """Every flipped bit is detected: otherwise a search would be wrong or read outside of memory."""
    say(corpus, "a", "smoke and fire " * 50)
    matched_ids(corpus, "smoke")
    for part in range(20):
        (path,) = segments()
        damaged = bytearray(path.read_bytes())
        damaged[part * len(damaged) // 20] ^= 0xFF
        path.unlink()  # the corpus has it mapped
        path.write_bytes(damaged)
        with pytest.warns(CorpusWarning, match="is damaged"):
            assert len(matched_ids(voxframe.Corpus(corpus.path), "smoke")) == 50


def test_a_read_only_corpus_is_searched(corpus: voxframe.Corpus) -> None:
    """Its index is in memory and follows changes too."""
    say(corpus, "a", "smoke")
    corpus.path.joinpath("search").write_text("a file matched_ids the folder would be")
    assert matched_ids(corpus, "smoke") == ["a"]
    say(corpus, "b", "more smoke")
    assert matched_ids(corpus, "smoke") == ["a", "b"]


def test_a_damaged_transcript_is_left_out_with_a_warning(corpus: voxframe.Corpus) -> None:
    """The others are found, and every search warns."""
    say(corpus, "a", "smoke")
    say(corpus, "b", "smoke")
    path = raw_file(corpus, "a.json.zst")
    path.write_bytes(path.read_bytes()[:30])
    for _ in range(2):
        with pytest.warns(voxframe.errors.PayloadWarning, match=r"not searched: .*a\.json\.zst is damaged"):
            assert matched_ids(voxframe.Corpus(corpus.path), "smoke") == ["b"]
    say(corpus, "a", "smoke")
    assert matched_ids(corpus, "smoke") == ["a", "b"]


_WRITER = """
import json, sys, voxframe
corpus = voxframe.Corpus(sys.argv[1])
for n in range(int(sys.argv[3])):
    words = [{"text": "smoke", "start": 0, "end": 1}]
    corpus.raw.put(f"{sys.argv[2]}{n}", json.dumps({"id": "x", "status": "completed", "words": words}).encode())
    found = corpus.search("smoke")["transcript_id"].to_list()
    assert {f"{sys.argv[2]}{i}" for i in range(n + 1)} <= set(found), (n, found)
    assert len(found) == len(set(found)), (n, found)
"""


@pytest.mark.long
def test_processes_that_write_and_search_at_once(corpus: voxframe.Corpus, segments) -> None:
    """Each of three processes finds at once what it stored, nothing twice, while others merge and remove."""
    command = [sys.executable, "-c", _WRITER, str(corpus.path)]
    running = [subprocess.Popen([*command, name, "12"], stderr=subprocess.PIPE) for name in "abc"]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
    assert matched_ids(corpus, "smoke") == sorted(f"{name}{n}" for name in "abc" for n in range(12))
    assert len(segments()) < 2 * index.FAN


_DYING = """
import os, sys, voxframe
from voxframe.corpus.search import index
index.write_atomic = lambda *_, **__: os._exit(9)
voxframe.Corpus(sys.argv[1]).search("smoke")
"""


@pytest.mark.long
def test_a_killed_writer_leaves_nothing(corpus: voxframe.Corpus, segments) -> None:
    """After a kill before the catalog lists a segment, the next search is correct and removes the remains."""
    say(corpus, "a", "smoke")
    assert subprocess.run([sys.executable, "-c", _DYING, str(corpus.path)], check=False).returncode == 9
    corpus.path.joinpath("search", "orphan.arrow").write_bytes(b"never in the catalog")
    corpus.path.joinpath("search", ".orphan.arrow.00.tmp").write_bytes(b"half")
    assert matched_ids(corpus, "smoke") == ["a"]
    left = sorted(path.name for path in corpus.path.joinpath("search").iterdir() if path.name != ".lock")
    assert left == [segments()[0].name]


@pytest.mark.filterwarnings("ignore:the corpus has no transcripts yet")
@pytest.mark.parametrize("others", [0, 1, 5])
def test_forgotten_transcripts_leave_the_index(corpus: voxframe.Corpus, segments, others: int) -> None:
    """No file contains the words of a deleted transcript, and the others are found as before."""
    for n in range(others):
        say(corpus, f"t{n}", "smoke and fire")
    say(corpus, "secret", "smoke and mirrors")
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["secret"], "customer": ["mirrors and co."]}))
    assert len(matched_ids(corpus, "smoke")) == others + 1
    corpus.forget("secret")
    files = [path.read_bytes() for path in corpus.path.rglob("*") if path.is_file()]
    assert len(files) > len(segments())
    assert not any(b"mirrors" in whole or b"secret" in whole for whole in files)
    assert matched_ids(corpus, "smoke") == [f"t{n}" for n in range(others)]
    assert matched_ids(voxframe.Corpus(corpus.path), "mirrors") == []


def test_an_unknown_transcript_is_an_error(corpus: voxframe.Corpus) -> None:
    """A search in a transcript that is not in the corpus is an error, not an empty result."""
    say(corpus, "a", "smoke")
    for look in (corpus.search, corpus.counts):
        with pytest.raises(CorpusError, match="no transcript 'b'"):
            look("smoke", ids=["a", "b"])
    with pytest.raises(OptionError, match="not 3"):
        corpus.search(3)
