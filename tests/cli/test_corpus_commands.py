"""`voxframe summarize`, `snapshot` and `doctor` on a corpus, and selection by metadata."""

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.server.conftest import Service

import voxframe
from voxframe.cli import main
from voxframe.errors import CorpusError

WORDS = [
    {"text": word, "start": 300 * n, "end": 300 * n + 200, "speaker": "A"}
    for n, word in enumerate("The new bridge opens on the third of May. I will send you the drawings.".split())
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of two transcripts of different customers, with speaker names."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    for name in ("t1", "t2"):
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed", "words": WORDS}).encode())
        corpus.speakers.set(name, {"A": "Maria"})
    corpus.metadata.set(
        pd.DataFrame({"transcript_id": ["t1", "t2"], "customer": ["Acme", "Böhm"], "year": [2025, 2026]})
    )
    return str(corpus.path)


def test_summarize_and_doctor_with_a_service(directory: str, service: Service, tmp_path: Path, capsys) -> None:
    """Summaries, answers and action items are printed and cached, and every check of `doctor` passes.

    Below answers that are quotations, it says how they get better.
    """
    assert main(["summarize", "--corpus", directory, "--where", "customer=Acme", "--format", "one sentence"]) == 0
    printed = capsys.readouterr()
    assert "bridge" in printed.out
    assert "key sentences, quoted from the transcripts" in printed.err
    question = ["summarize", "--corpus", directory, "--question", "When does the bridge open?", "--json"]
    found = []
    for _ in range(2):
        assert main(question) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert "third of May" in found[0]["replies"][0]["answer"]
    assert found[0]["transcript_ids"] == ["t1", "t2"]
    assert found[0] == found[1]
    assert main(question[:-1]) == 0
    assert "third of May" in capsys.readouterr().out
    assert main(["summarize", "--corpus", directory, "--action-items"]) == 0
    assert "drawings" in capsys.readouterr().out
    assert main(["summarize", "--corpus", directory, "--prompt", "Say it.", "--question", "What?"]) == 2
    assert "exclude each other" in capsys.readouterr().err
    assert main(["summarize", "--corpus", directory, "--question", "What?", "--format", "one sentence"]) == 2
    assert "--format is for summaries" in capsys.readouterr().err
    assert main(["doctor", "--corpus", directory, "--json"]) == 0
    checks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(check["ok"] for check in checks)
    assert any("2 transcripts" in check["check"] for check in checks)
    service.stop()
    assert main(question) == 0  # kept


def test_files_are_added_and_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`add` stores transcripts of any kind and says what it left out; `metadata` sets columns from a table."""
    corpus, files = str(tmp_path / "corpus"), tmp_path / "files"
    files.mkdir()
    (files / "call.json").write_text(json.dumps({"id": "t1", "status": "completed", "words": WORDS}))
    (files / "talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nGood morning.\n")
    assert main(["add", str(files), "--corpus", corpus]) == 0
    assert "2 transcripts added" in capsys.readouterr().out
    assert voxframe.Corpus(corpus)["talk"]["words"]["text"].to_list() == ["Good", "morning."]
    (files / "bad.json").write_text("{")
    assert main(["add", str(files), "--corpus", corpus, "-q"]) == 1
    said = capsys.readouterr().out
    assert "2 payloads known, 1 left out" in said
    assert "bad.json" in said
    (tmp_path / "about.csv").write_text("recording;customer\ncall;Acme\n")
    assert main(["metadata", str(tmp_path / "about.csv"), "--corpus", corpus, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["recording"]: row["customer"] for row in rows} == {"call": "Acme", "talk": None}
    assert main(["metadata", "--corpus", corpus]) == 0
    assert "Acme" in capsys.readouterr().out
    (files / "0012.json").write_text(json.dumps({"id": "34", "status": "completed", "words": WORDS}))
    assert main(["add", str(files / "0012.json"), "--corpus", corpus]) == 0
    for column, name in (("recording", "0012"), ("transcript_id", "34")):
        (tmp_path / "about.csv").write_text(f"{column},year\n{name},2026\n")
        assert main(["metadata", str(tmp_path / "about.csv"), "--corpus", corpus]) == 0
    assert voxframe.Corpus(corpus).metadata.get("34")["year"].to_list() == [2026]
    (tmp_path / "about.csv").write_text("name,year\n0012,2026\n")
    capsys.readouterr()
    assert main(["metadata", str(tmp_path / "about.csv"), "--corpus", corpus]) == 2
    assert capsys.readouterr().err.startswith("voxframe metadata: FILE must have a column transcript_id or recording")
    assert main(["metadata", str(tmp_path / "none.csv"), "--corpus", corpus]) == 2
    assert "FILE" in capsys.readouterr().err


def test_metadata_selects_and_groups(directory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--where selects transcripts, --by groups counts, and --metadata and --partition-by add columns to an export."""
    assert main(["search", "bridge", "--corpus", directory, "--where", "year=2026", "--json"]) == 0
    assert [json.loads(line)["transcript_id"] for line in capsys.readouterr().out.splitlines()] == ["t2"]
    assert main(["search", "the", "--corpus", directory, "--count", "--by", "customer", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["customer"], row["occurrences"]) for row in rows] == [("Acme", 3), ("Böhm", 3)]
    target = str(tmp_path / "set")
    chosen = ["--table", "words", "--metadata", "year", "--partition-by", "customer"]
    assert main(["export", target, "--corpus", directory, *chosen]) == 0
    assert pd.read_parquet(target)["year"].unique().tolist() == [2025, 2026]
    assert main(["search", "the", "--corpus", directory, "--where", "region=x"]) == 1
    assert main(["search", "the", "--corpus", directory, "--where", "region"]) == 1
    assert (
        "there is no metadata column 'region'; the columns are: recording, source, customer, year"
        in capsys.readouterr().err
    )


@pytest.mark.filterwarnings("default::voxframe.errors.CorpusWarning")  # printed by the command
def test_conditions_select_rows_and_transcripts(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--where takes the text of `Corpus.table(where=)`: for the rows of --table, and otherwise for transcripts."""

    def rows(*arguments: str) -> list[dict[str, object]]:
        assert main([*arguments, "--corpus", directory, "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    words = ("tables", "--table", "words", "--where")
    first = [("t1", "The"), ("t1", "new"), ("t2", "The"), ("t2", "new")]
    assert [(row["transcript_id"], row["text"]) for row in rows(*words, "start_ms < 600")] == first
    assert [row["text"] for row in rows(*words, "year=2026", "--where", "start_ms < 300 or text == 'May.'")] == [
        "The",
        "May.",
    ]
    both = rows(*words, "start_ms < 300 or year == 2026", "--where", "text in ['The', 'the']")
    assert [(row["transcript_id"], row["text"]) for row in both] == [
        ("t1", "The"),
        ("t2", "The"),
        ("t2", "the"),
        ("t2", "the"),
    ]
    assert {row["table"]: row["rows"] for row in rows("tables", "--where", "year > 2025")}["transcripts"] == 1
    assert {row["transcript_id"] for row in rows("search", "bridge", "--where", "customer == 'Acme'")} == {"t1"}


@pytest.mark.parametrize("condition", ["confidence <", "year = 2026", "nothing < 1", "confidence < text"])
def test_invalid_conditions_have_the_error_of_the_corpus(directory: str, capsys, condition: str) -> None:
    """--where reports the errors of `Corpus.table(where=)`, with the name of the option."""
    with pytest.raises(CorpusError) as error:
        voxframe.Corpus(directory).table("words", where=condition)
    assert main(["tables", "--corpus", directory, "--table", "words", "--where", condition]) == 1
    said = str(error.value).replace("where=", "--where ")
    assert capsys.readouterr().err == f"voxframe tables: {said}\n"


def test_tables_as_json(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`tables --json` prints one object per line, with speaker names."""
    assert main(["tables", "--corpus", directory, "--table", "words", "--json", "--rows", "1"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["text"], row["speaker"], row["speaker_name"]) == ("The", "A", "Maria")


def test_snapshots(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Snapshots are created, listed and verified; a damaged or missing version gives exit status 1."""
    assert main(["snapshot", "--corpus", directory]) == 0
    assert capsys.readouterr().out.startswith("version 1 created: 2 transcripts, ")
    assert main(["snapshot", "--corpus", directory, "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["version"], manifest["tables"]["metadata"]["rows"]) == (2, 2)
    assert main(["snapshot", "--corpus", directory, "--list", "--json"]) == 0
    assert [json.loads(line)["version"] for line in capsys.readouterr().out.splitlines()] == [1, 2]
    assert main(["snapshot", "--corpus", directory, "--verify"]) == 0
    assert "version 2 is unchanged" in capsys.readouterr().out
    (Path(directory) / "snapshots/v=1/words/part-0.parquet").write_bytes(b"PAR1")
    assert main(["snapshot", "--corpus", directory, "--verify", "1"]) == 1
    assert "missing or damaged" in capsys.readouterr().err
    assert main(["snapshot", "--corpus", directory, "--verify", "9"]) == 1
    assert main(["snapshot", "--corpus", directory, "--verify", "0"]) == 2
    assert "--verify must be a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::voxframe.errors.CorpusWarning")
def test_doctor_finds_damaged_files(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` prints a line with the next step for a damaged file and a missing directory."""
    monkeypatch.setenv("VOXFRAME_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("VOXFRAME_API_KEY", "hidden")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", json.dumps({"id": "t1", "words": WORDS}).encode())
    (raw,) = corpus.path.glob("raw/*/t1.json.zst")
    raw.write_bytes(raw.read_bytes()[:20])
    corpus._ledger.path.write_bytes(b"no database, however long it is")
    assert main(["doctor", "--corpus", str(corpus.path)]) == 1
    printed = capsys.readouterr()
    assert "was damaged. It was rebuilt" in printed.err
    wrong = [line for line in printed.out.splitlines() if line.startswith("no")]
    assert "t1.json.zst is damaged" in wrong[0]
    assert "127.0.0.1:9" in wrong[1]
    whole = voxframe.Corpus(tmp_path / "whole")
    whole.raw.put("t1", json.dumps({"id": "t1", "words": WORDS}).encode())
    sealed = whole.snapshots.create(progress=False)
    (sealed.path / "words/part-0.parquet").write_bytes(b"PAR1")
    next(whole.path.glob("tables/words/[!_]*.parquet")).write_bytes(b"PAR1")
    assert main(["doctor", "--corpus", str(whole.path)]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no")]
    assert "tables/words/" in wrong[0]
    assert "v=1/words/part-0.parquet is missing or damaged; `voxframe snapshot`" in wrong[1]
    assert main(["doctor", "--corpus", str(tmp_path / "none")]) == 1
    assert "the directory does not exist" in capsys.readouterr().out
    (tmp_path / "call.mp3").touch()
    assert main(["doctor", "--corpus", str(tmp_path / "call.mp3"), "--rebuild-ledger"]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no")]
    assert "call.mp3' is a file; a corpus is a directory" in wrong[0]
    assert len(wrong) == 2  # and the service


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (["customer=acme"], "no transcript meets customer=acme (did you mean 'Acme'?); the values are Acme, Böhm"),
        (["customer=Acme", "year=2026"], "no transcript meets customer=Acme and year=2026; change or leave out"),
        (["customer == 'acme'"], "no transcript meets customer == 'acme'; change or leave out"),
    ],
)
@pytest.mark.parametrize("command", ["search bridge", "tables", "people", "export {}/out"])
def test_a_selection_of_no_transcript_is_an_error(
    directory: str, tmp_path: Path, capsys, command: str, conditions: list[str], said: str
) -> None:
    """If no transcript meets --where, the message names the condition and the values, and nothing is written."""
    where = [text for condition in conditions for text in ("--where", condition)]
    assert main([*command.format(tmp_path).split(), "--corpus", directory, *where]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"voxframe {command.split(maxsplit=1)[0]}: {said}")
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_tables_name_a_failed_job_once(tmp_path: Path, capsys) -> None:
    """The overview of a corpus with a failed transcript has one line about it, not one per empty table."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("t1", b'{"id": "t1", "status": "error", "error": "no speech"}')
    assert main(["tables", "--corpus", str(tmp_path), "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[0]) == {"table": "transcripts", "rows": 1}
    assert shown.err == (
        "voxframe tables: no words in transcripts that are not completed: 't1' (error); "
        "`voxframe tables --table transcripts` has status and error\n"
    )


def test_people_are_named_and_assigned(tmp_path: Path, capsys) -> None:
    """`voxframe people` names speakers and assigns people by label, name and metadata; the last one is undone."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in ("t1", "t2"):
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed", "words": WORDS}).encode())
    corpus.metadata.set(pd.DataFrame({"recording": ["t1", "t2"], "agent": ["Ben", None]}))

    def people(*arguments: str) -> list[tuple[str | None, str | None]]:
        assert main(["people", "--corpus", str(corpus.path), "--json", *arguments]) == 0
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        return [(row["speaker_name"], row["person"]) for row in rows]

    assert people("--id", "t1", "--name", "A=Maria", "--by-name") == [("Maria", "Maria")]
    assert people("--id", "t2", "--person", "A=Cleo") == [(None, "Cleo")]
    assert people("--by-metadata", "A=agent") == [("Maria", "Ben"), (None, "Cleo")]
    assert people("--undo") == [("Maria", "Maria"), (None, "Cleo")]
    for wrong, message in ((["--name", "A=Zoe"], "need --id"), (["--id", "t1", "--person", "A"], "LABEL=VALUE")):
        assert main(["people", "--corpus", str(corpus.path), *wrong]) == 2
        assert message in capsys.readouterr().err


def test_doctor_verify_reads_every_class_of_file(tmp_path: Path) -> None:
    """A flipped bit in a payload, a table, corrected rows, a record, an index or the catalog is named."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", json.dumps({"id": "t1", "status": "completed", "words": WORDS}).encode())
    corpus.speakers.set("t1", {WORDS[0]["speaker"]: "Ada"})
    corpus.corrections.set("t1", {0: "other words"})
    assert len(corpus.search("other")) == 1
    assert corpus.raw.verify() == []
    for pattern in ("raw/*/*.zst", "tables/words/[!_]*", "current/words/*", "records/*", "search/*.arrow"):
        (path,) = corpus.path.glob(pattern)
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        problems = voxframe.Corpus(corpus.path).raw.verify()
        assert problems, pattern
        assert path.name.split(".")[0] in " ".join(problems), pattern
        if path.exists():
            path.write_bytes(content)
        else:
            assert len(voxframe.Corpus(corpus.path).words()) == 2  # made again
