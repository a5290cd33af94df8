import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import webvtt

import voxframe
from voxframe.cli import main

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The directory of a corpus of two recordings and one transcript with control characters."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    for name in ("interview", "panel"):
        corpus.raw.put(name, (PAYLOADS / f"{name}.json").read_bytes())
    words = [{"text": text, "start": 0, "end": 9} for text in ("\x1b[31mred", "\u202ezebra", "\nline")]
    corpus.raw.put("odd", json.dumps({"id": "odd", "status": "completed", "words": words}).encode())
    return str(corpus.path)


def test_search_shows_words_in_context(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Matches are aligned below each other, without control characters."""
    assert main(["search", "trees", "zebra", "--corpus", corpus, "--context", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    matches = [line for line in lines if "trees" in line]
    assert len(matches) == len(voxframe.Corpus(corpus).search("trees"))
    assert set.intersection(*({m.start() for m in re.finditer("trees", line)} for line in matches))
    assert lines[-1].split() == ["odd", "0:00", "[31mred", "zebra", "line"]
    assert "\x1b" not in "".join(lines)
    assert main(["search", "nothingofthekind", "--corpus", corpus]) == 0
    assert capsys.readouterr().out == "no matches\n"


def test_right_to_left_text_keeps_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Left, match and right of Arabic text are isolated when printed as text, and unchanged as data."""
    words = [{"text": text, "start": 0, "end": 9} for text in ("هذا", "كتاب", "جديد")]
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("rtl", json.dumps({"id": "rtl", "status": "completed", "words": words}).encode())
    assert main(["search", "كتاب", "--corpus", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.split()[-3:] == ["\u2068هذا\u2069", "\u2068كتاب\u2069", "\u2068جديد\u2069"]  # noqa: RUF001
    assert main(["search", "كتاب", "--corpus", str(tmp_path), "--csv"]) == 0
    assert "\u2068" not in capsys.readouterr().out


def test_search_as_data(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--json and --csv print every column of each match; --rows and --speaker select matches."""
    assert main(["search", "the", "--corpus", corpus, "--json", "--speaker", "B", "--rows", "3"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = voxframe.Corpus(corpus).search("the", speaker="B", limit=3)
    assert [row["start_ms"] for row in rows] == expected["start_ms"].to_list()
    assert list(rows[0]) == expected.columns.to_list()
    assert main(["search", "the", "--corpus", corpus, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(voxframe.Corpus(corpus).search("the"))
    assert main(["search", "the", "--corpus", corpus]) == 0
    assert "there are more matches" in capsys.readouterr().out


def test_counts(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`search --count` prints the occurrences per group."""
    assert main(["search", "the", "trees", "--corpus", corpus, "--count", "--by", "speaker", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["term"] for row in rows} == {"the", "trees"}
    assert sum(row["occurrences"] for row in rows if row["term"] == "the") == len(voxframe.Corpus(corpus).search("the"))
    assert main(["search", "the", "--corpus", corpus, "--count", "--by", "nothing", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_export(corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`export` writes datasets, captions and single files, and prints a summary as text or JSON."""
    assert main(["export", str(tmp_path / "set"), "--corpus", corpus, "--table", "words", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    files = ["_README.md", "_SHA256SUMS", "_croissant.json", "words/part-0.parquet"]
    expected = {"target": str(tmp_path / "set"), "format": "parquet", "files": files}
    assert said == expected | {"losses": {}, "omitted": {}}
    assert len(pl.read_parquet(tmp_path / "set/words/*.parquet")) == len(voxframe.Corpus(corpus).table("words"))
    assert main(["export", str(tmp_path / "vtt"), "--corpus", corpus, "--format", "vtt", "--id", "panel"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'vtt'}: 1 file\n"
    assert len(webvtt.read(str(tmp_path / "vtt/panel.vtt")).captions) > 5
    assert main(["export", str(tmp_path / "all.rttm"), "--corpus", corpus, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "rttm"
    assert (tmp_path / "all.rttm").read_text().count("SPEAKER panel") > 5


def test_warnings_are_one_plain_line(corpus: str) -> None:
    """A warning is a line of the command, without the line of Python code that caused it."""
    command = [sys.executable, "-m", "voxframe", "subtitles", "panel", "--corpus", corpus, "--chars", "4"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert shown.startswith("voxframe subtitles: srt cannot hold every value exactly: ")
    assert len(shown.splitlines()) == 1


def test_exit_status(corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Failed work gives exit status 1, invalid arguments 2, each with one line."""
    (tmp_path / "there.csv").touch()
    target = str(tmp_path / "x")
    wrong = {
        ("search", "the", "--corpus", str(tmp_path)): (1, "there is no corpus at"),
        ("search", "?", "--corpus", corpus): (2, "no word to search for"),
        ("search", "a b", "--slop", "1", "--corpus", corpus): (2, "slop must be a whole number of at least 2"),
        ("export", target, "--corpus", corpus, "--format", "odt"): (2, "there is no 'odt'; choose from"),
        ("export", f"{target}.srt", "--corpus", corpus, "--format", "vtt"): (2, "ends in .srt, which is for srt"),
        ("export", target, "--corpus", corpus, "--pii", "mask"): (2, "without entity_detection"),
        ("export", target, "--corpus", corpus, "--pii-type", "date"): (
            2,
            '--pii-type needs --pii "mask" or --pii "drop"',
        ),
        ("export", target, "--corpus", corpus, "--table", "nope"): (2, "there is no 'nope'; choose from"),
        ("export", str(tmp_path / "there.csv"), "--format", "csv", "--table", "words", "--corpus", corpus): (
            1,
            "already exists",
        ),
    }
    for arguments, (status, said) in wrong.items():
        try:
            ended: object = main(arguments)
        except SystemExit as stop:  # argparse
            ended = stop.code
        assert ended == status, arguments
        shown = capsys.readouterr()
        assert said in shown.err
        assert len(shown.err.splitlines()) == 1
        assert shown.out == ""
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["search", "export"])
def test_help_has_examples_and_exit_status(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help shows examples and the exit status."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"voxframe {command} " in shown
    assert "examples:" in shown
    assert "exit status:" in shown
