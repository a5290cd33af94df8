"""A corpus on a disk that is full or read-only: a clear error, and no damage to stored data."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.corpus.conftest import payload

import voxframe

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits and owners of files are those of POSIX")

#: Runs statements as somebody who may write nothing (argument 2: "nobody") or only files of so many bytes, each with a
#: new `corpus` and `client`, and prints a line of JSON per statement: its value or the CorpusError it gives.
_PROGRAM = """
import json, os, resource, sys, av, voxframe
from voxframe.errors import CorpusError
import voxframe.loaders, voxframe.corpus.search.concordance, voxframe.client.client, tqdm.auto, encodings.idna
path, limit, base_url, *statements = sys.argv[1:]
if limit == "nobody":
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
for statement in statements:
    corpus, client = voxframe.Corpus(path), voxframe.connect(base_url, api_key="k")
    try:
        said = str(eval(statement))
    except CorpusError as error:
        said = f"CorpusError: {error}"
    print(json.dumps(said))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike that of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for path in Path(name).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture
def kept(peer, client, folder: Path) -> voxframe.Corpus:
    """A corpus with two transcripts, one of them submitted."""
    folder.joinpath("a.mp3").write_bytes(b"sound")
    corpus = voxframe.Corpus(folder / "corpus")
    corpus.submit(folder / "a.mp3", client=client)
    corpus.sync(client=client)
    corpus.raw.put("b1", json.dumps(payload("b1")).encode())
    folder.joinpath("new.mp3").write_bytes(b"other sound")
    return corpus


def contents(corpus: voxframe.Corpus) -> dict[str, str]:
    """Return the hash of every file except those of the ledger and the name of the last writer."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(corpus.path.rglob("*"))
        if path.is_file() and "catalog" not in path.name and path.parent.name != "records" and path.name != ".writer"
    }


def run(corpus: voxframe.Corpus, limit: int | str, base_url: str, *statements: str) -> list[str]:
    """Return the value of each statement, or its CorpusError. They run one after the other in one process."""
    command = [sys.executable, "-c", _PROGRAM, str(corpus.path), str(limit), base_url, *statements]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=corpus.path.parent)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_a_directory_that_cannot_be_written(peer, kept) -> None:
    """Reading works; writing is an error that sends no request and leaves no file."""
    before, asked, jobs = contents(kept), len(peer.asked), kept.jobs()
    for path in [kept.path, *kept.path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    reads = (
        "len(corpus.table('words'))",
        "corpus.jobs()['state'].to_list()",
        "corpus.plan('new.mp3', client=client)",
    )
    writes = (
        "corpus.raw.put('c1', b'{\"id\": \"c1\"}')",
        "corpus.submit('new.mp3', client=client)",
        "corpus.transcribe('new.mp3', client=client)",
        "corpus.forget('b1')",
    )
    words, states, plan, *refused = run(kept, "nobody", peer.base_url, *reads, *writes)
    assert (words, states) == ("6", "['completed']")
    assert "1 of 1 recording to send" in plan
    assert len(refused) == len(writes)
    for said in refused:
        assert said.startswith(f"CorpusError: cannot write to the corpus {kept.path}"), said
    assert contents(kept) == before
    assert len(peer.asked) == asked
    kept.path.chmod(0o755)
    assert kept.jobs().equals(jobs)


@pytest.mark.parametrize("limit", [300, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 3_000, 40_000))])
def test_a_full_disk(peer, kept, limit: int) -> None:
    """Wherever the disk becomes full, stored data is intact and nothing is submitted that is not recorded."""
    before, sent = contents(kept), peer.count("POST /v2/transcript")
    words = [{"text": f"word{n * n}", "start": n, "end": n + 1, "confidence": 0.5} for n in range(40_000)]
    kept.path.with_name("big.json").write_text(json.dumps(payload("big") | {"words": words}))
    store = "corpus.raw.put('big', open('big.json', 'rb').read())"
    stored, sent_now = run(kept, limit, peer.base_url, store, "corpus.submit('new.mp3', client=client).sent")
    assert stored.startswith(f"CorpusError: cannot write to the corpus {kept.path}"), stored
    assert sent_now == "1" or sent_now.startswith("CorpusError: cannot write to the corpus"), sent_now
    assert peer.count("POST /v2/transcript") - sent <= 1
    after = contents(kept)
    assert {path: content for path, content in after.items() if path in before} == before
    assert not [path for path in after if path.endswith(".tmp")]
    assert kept.table("words", ["t1", "b1"])["text"].to_list() == ["Good", "morning.", "Hello!"] * 2
    voxframe.Corpus(kept.path).submit(
        kept.path.with_name("new.mp3"), client=voxframe.connect(peer.base_url, api_key="k")
    )
    assert peer.count("POST /v2/transcript") - sent == 1


def test_a_disk_that_becomes_full_in_a_table_gives_a_short_error(peer, kept) -> None:
    """The error names the corpus and the reason in the words of the system, also where pyarrow writes the file."""
    kept.path.with_name("c1.json").write_text(json.dumps(payload("c1")))
    (said,) = run(kept, 20_000, peer.base_url, "corpus.raw.put('c1', open('c1.json', 'rb').read())")
    assert said.startswith(f"CorpusError: cannot write to the corpus {kept.path}: ")
    assert "c1" in kept.raw.stale()
