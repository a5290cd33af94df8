"""`voxframe summarize`, `snapshot` and `doctor` over a corpus, and what chooses transcripts by their metadata."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from tests.local.conftest import KEY, Service

import voxframe
from voxframe.cli import main

WORDS = [
    {"text": word, "start": 300 * n, "end": 300 * n + 200, "speaker": "A"}
    for n, word in enumerate("The new bridge opens on the third of May. I will send you the drawings.".split())
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of two transcripts of different customers, with names of their speakers."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    for name in ("t1", "t2"):
        corpus.put(name, json.dumps({"id": name, "status": "completed", "words": WORDS}).encode())
        corpus.name_speakers(name, {"A": "Maria"})
    corpus.set_metadata(
        pd.DataFrame({"transcript_id": ["t1", "t2"], "customer": ["Acme", "Böhm"], "year": [2025, 2026]})
    )
    return str(corpus.path)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """The embedded service, as the one that the environment names."""
    running = Service(tmp_path / "data")
    monkeypatch.setenv("VOXFRAME_BASE_URL", running.url)
    monkeypatch.setenv("VOXFRAME_API_KEY", KEY)
    yield running
    running.stop()


def test_summarize_and_doctor_with_a_service(directory: str, service: Service, tmp_path: Path, capsys) -> None:
    """A summary, answers and a task, also as JSON; the second time nothing is asked; doctor finds all well."""
    assert main(["summarize", "--corpus", directory, "--where", "customer=Acme", "--format", "one sentence"]) == 0
    assert "bridge" in capsys.readouterr().out
    question = ["summarize", "--corpus", directory, "--question", "When does the bridge open?", "--json"]
    found = []
    for _ in range(2):
        assert main(question) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert "third of May" in found[0]["replies"][0]["answer"]
    assert found[0]["transcript_ids"] == ["t1", "t2"]
    assert found[0] == found[1]
    assert main(["summarize", "--corpus", directory, "--action-items"]) == 0
    assert "drawings" in capsys.readouterr().out
    assert main(["summarize", "--corpus", directory, "--prompt", "Say it.", "--question", "What?"]) == 2
    assert "one of them" in capsys.readouterr().err
    assert main(["doctor", "--corpus", directory, "--json"]) == 0
    checks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(check["ok"] for check in checks)
    assert any("2 transcripts" in check["check"] for check in checks)
    service.stop()
    assert main(question) == 0  # kept


def test_metadata_chooses_and_groups(directory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--where chooses transcripts, --by groups counts, --metadata and --partition-by go into an export."""
    assert main(["search", "bridge", "--corpus", directory, "--where", "year=2026", "--json"]) == 0
    assert [json.loads(line)["transcript_id"] for line in capsys.readouterr().out.splitlines()] == ["t2"]
    assert main(["search", "the", "--corpus", directory, "--count", "--by", "customer", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["customer"], row["count"]) for row in rows] == [("Acme", 3), ("Böhm", 3)]
    target = str(tmp_path / "set")
    chosen = ["--table", "words", "--metadata", "year", "--partition-by", "customer"]
    assert main(["export", target, "--corpus", directory, *chosen]) == 0
    assert pd.read_parquet(target)["year"].unique().tolist() == [2025, 2026]
    assert main(["search", "the", "--corpus", directory, "--where", "region=x"]) == 1
    assert main(["search", "the", "--corpus", directory, "--where", "region"]) == 2
    assert "there is no metadata 'region'; there is customer, year" in capsys.readouterr().err


def test_tables_as_json(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--json is one object a line, with the names of speakers."""
    assert main(["tables", directory, "--table", "words", "--json", "--rows", "1"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["text"], row["speaker"], row["speaker_name"]) == ("The", "A", "Maria")


def test_snapshots(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A version is sealed, listed and checked; one that is damaged or not there is exit status 1."""
    assert main(["snapshot", "--corpus", directory]) == 0
    assert capsys.readouterr().out.startswith("version 1 sealed: 2 transcripts, ")
    assert main(["snapshot", "--corpus", directory, "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["version"], manifest["tables"]["metadata"]["rows"]) == (2, 2)
    assert main(["snapshot", "--corpus", directory, "--list", "--json"]) == 0
    assert [json.loads(line)["version"] for line in capsys.readouterr().out.splitlines()] == [1, 2]
    assert main(["snapshot", "--corpus", directory, "--verify"]) == 0
    assert "version 2 as it was sealed" in capsys.readouterr().out
    (Path(directory) / "snapshots/v=1/words/part-0.parquet").write_bytes(b"PAR1")
    assert main(["snapshot", "--corpus", directory, "--verify", "1"]) == 1
    assert "missing or damaged" in capsys.readouterr().err
    assert main(["snapshot", "--corpus", directory, "--verify", "9"]) == 1


def test_doctor_tells_what_is_wrong_with_a_corpus(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file, a damaged ledger and a directory that is not there are lines with what to do."""
    monkeypatch.setenv("VOXFRAME_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("VOXFRAME_API_KEY", "hidden")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.put("t1", json.dumps({"id": "t1", "words": WORDS}).encode())
    raw = corpus.path / "raw/t1.json.zst"
    raw.write_bytes(raw.read_bytes()[:20])
    corpus.ledger.path.write_bytes(b"no database, however long it is")
    assert main(["doctor", "--corpus", str(corpus.path)]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no")]
    assert "t1.json.zst is damaged" in wrong[0]
    assert "the ledger of the corpus" in wrong[1]
    assert "127.0.0.1:9" in wrong[2]
    whole = voxframe.Corpus(tmp_path / "whole")
    whole.put("t1", json.dumps({"id": "t1", "words": WORDS}).encode())
    sealed = whole.snapshot(progress=False)
    (sealed.path / "words/part-0.parquet").write_bytes(b"PAR1")
    (whole.path / "tables/words/t1.parquet").write_bytes(b"PAR1")
    assert main(["doctor", "--corpus", str(whole.path)]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no")]
    assert "tables/words/t1.parquet is damaged" in wrong[0]
    assert "v=1/words/part-0.parquet is missing or damaged; `voxframe snapshot`" in wrong[1]
    assert main(["doctor", "--corpus", str(tmp_path / "none")]) == 1
    assert "there is no such directory" in capsys.readouterr().out
