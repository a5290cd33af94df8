"""Files in the directory of a corpus that are not what they should be cost their transcript only."""

import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.corpus.conftest import payload, raw_file

import voxframe
from voxframe.corpus import store
from voxframe.errors import CorpusError, CorpusWarning, DamagedFileError


def _folder(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link_loop(path: Path) -> None:
    path.symlink_to(path)


def _deep_json(path: Path) -> None:
    path.write_bytes(zstandard.compress(b'{"id": "t1", "words": ' + b"[" * 200_000))


def _expanding(path: Path) -> None:
    """Write 25 KB that expand to 768 MB, with the size in the header."""
    path.write_bytes(zstandard.compress(b" " * (768 << 20)))


def _expanding_without_size(path: Path) -> None:
    """Write zstd blocks of one repeated byte, which expand to 768 MB."""
    block = (128 << 10 << 3 | 1 << 1).to_bytes(3, "little") + b" "
    last = (1 << 1 | 1).to_bytes(3, "little") + b" "  # of no bytes
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x38" + block * (768 * 8) + last)


UNUSUAL = [_folder, _fifo, _link_loop, _deep_json, _expanding, _expanding_without_size]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `corpus`."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("stored") / "corpus")
    for name in ("t1", "t2"):
        corpus.raw.put(name, json.dumps(payload(name)).encode())
    return corpus.path


@pytest.fixture
def corpus(stored: Path, tmp_path: Path) -> voxframe.Corpus:
    """A corpus with two transcripts."""
    return voxframe.Corpus(shutil.copytree(stored, tmp_path / "corpus"))


@pytest.mark.skipif(sys.platform == "win32", reason="has no FIFOs")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("make", UNUSUAL)
def test_a_payload_that_is_no_payload_costs_its_transcript_only(
    corpus: voxframe.Corpus, make: Callable[[Path], None]
) -> None:
    """The other transcripts are read with a warning; reading this one is an error, and `forget` deletes it."""
    path = raw_file(corpus, "t1.json.zst")
    path.unlink()
    make(path)
    corpus = voxframe.Corpus(corpus.path)
    with pytest.warns(CorpusWarning, match="1 of 2 transcripts cannot be read"):
        words = corpus.table("words")
    assert words["transcript_id"].unique().tolist() == ["t2"]
    with pytest.raises((CorpusError, voxframe.errors.PayloadError)):
        corpus.table("words", "t1")
    assert any("t1" in problem for problem in corpus.raw.verify())
    corpus.forget("t1")
    assert corpus.ids() == ["t2"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no FIFOs")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("make", [_folder, _fifo, _link_loop])
def test_an_unusual_format_file_stops_no_read(corpus: voxframe.Corpus, make: Callable[[Path], None]) -> None:
    """Nothing is read from it, and nothing waits for it."""
    path = corpus.path / "format.json"
    path.unlink()
    make(path)
    assert len(voxframe.Corpus(corpus.path).table("transcripts")) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="has no FIFOs")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("make", [_folder, _fifo, _link_loop])
@pytest.mark.parametrize("name", ["records/000001.jsonl", "search/*.arrow"])
def test_an_unusual_file_beside_the_payloads_stops_no_read(
    corpus: voxframe.Corpus, make: Callable[[Path], None], name: str
) -> None:
    """`verify` names it, all tables and the search work, and what is set next is kept."""
    corpus.speakers.set("t1", {"A": "Ada"})
    corpus.search("good")
    (path,) = corpus.path.glob(name)
    path.unlink()
    make(path)
    corpus = voxframe.Corpus(corpus.path)
    assert any(path.name in problem for problem in corpus.raw.verify())
    corpus.speakers.set("t2", {"A": "Ben"})
    assert [*corpus.table("words")["speaker_name"]] == ["Ada", "Ada", "B", "Ben", "Ben", "B"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorpusWarning)
        assert [*corpus.search("good")["transcript_id"]] == ["t1", "t2"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no FIFOs")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("make", [_folder, _fifo, _link_loop])
def test_a_catalog_that_is_no_file_is_refused(corpus: voxframe.Corpus, make: Callable[[Path], None]) -> None:
    """Every read says so and nothing waits for it; once it is removed, the catalog is made again."""
    path = corpus.path / "catalog.sqlite"
    path.unlink()
    make(path)
    corpus = voxframe.Corpus(corpus.path)
    for read in (lambda: corpus.table("words"), lambda: corpus.words("t1"), corpus.jobs, lambda: corpus.search("good")):
        with pytest.raises(CorpusError, match=r"not a regular file|is a symbolic link"):
            read()
    path.rmdir() if path.is_dir() else path.unlink()
    assert len(voxframe.Corpus(corpus.path).table("words")) == 6


def test_a_payload_that_is_gone_is_named(corpus: voxframe.Corpus) -> None:
    """`verify` says which transcript lost its payload and what to do, and `forget` deletes the rest."""
    raw_file(corpus, "t1.json.zst").unlink()
    corpus = voxframe.Corpus(corpus.path)
    (problem,) = corpus.raw.verify()
    assert "'t1' is gone" in problem
    assert "Corpus.forget('t1')" in problem
    corpus.forget("t1")
    assert voxframe.Corpus(corpus.path).raw.verify() == []


@pytest.mark.parametrize("content", [b"[" * 4000, b'{"format": 1e999}', b'{"format": "\xff"}', b" " * 5000])
def test_a_damaged_format_file_is_written_again(corpus: voxframe.Corpus, content: bytes) -> None:
    """The next write replaces it, and the corpus can be read before."""
    path = corpus.path / "format.json"
    before = path.read_bytes()
    path.write_bytes(content)
    corpus = voxframe.Corpus(corpus.path)
    assert len(corpus.table("transcripts")) == 2
    corpus.raw.put("t3", json.dumps(payload("t3")).encode())
    assert path.read_bytes() == before


def test_lone_surrogates_in_a_payload_are_replaced(corpus: voxframe.Corpus) -> None:
    """The payload stays as received, and its text is read with U+FFFD in their place."""
    raw = json.dumps({**payload("t1"), "text": "a \ud800 b"}).encode()
    raw_file(corpus, "t1.json.zst").write_bytes(zstandard.compress(raw))
    corpus = voxframe.Corpus(corpus.path)
    with pytest.warns(voxframe.errors.PayloadWarning, match="surrogate"):
        texts = corpus.table("transcripts")["text"].tolist()
    assert "a \ufffd b" in texts
    assert corpus.raw.get("t1") == raw


def test_what_is_read_has_a_limit(tmp_path: Path) -> None:
    """A file, and what a frame expands to, may have as many bytes as the limit, and no more."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert store.read_file(path, 100) == b"x" * 100
    with pytest.raises(DamagedFileError, match="at most 99"):
        store.read_file(path, 99)
    stream = zstandard.ZstdCompressor().compressobj()
    for frame in (zstandard.compress(b"x" * 100), stream.compress(b"x" * 100) + stream.flush()):
        assert store.decompress(frame, 100) == b"x" * 100
        with pytest.raises(zstandard.ZstdError, match="more than 99 bytes"):
            store.decompress(frame, 99)
