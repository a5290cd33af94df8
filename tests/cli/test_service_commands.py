"""`voxframe list`, `delete`, `subtitles`, `stream` and `server`."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
import srt
import webvtt
from tests.cli.conftest import run
from tests.corpus.conftest import peer  # noqa: F401  a fixture

import voxframe
from voxframe.cli import COMMANDS, _subparsers, build_parser, in_command_terms, main


@pytest.fixture
def calls(peer, tmp_path: Path, monkeypatch, capsys) -> Path:  # noqa: F811
    """A corpus of two transcripts at a configured service."""
    monkeypatch.setenv("VOXFRAME_BASE_URL", peer.base_url)
    monkeypatch.setenv("VOXFRAME_API_KEY", "test-key")
    for n in range(2):
        tmp_path.joinpath(f"{n}.mp3").write_bytes(bytes([n]))
    corpus = tmp_path / "c"
    assert run(capsys, "submit", str(tmp_path / "*.mp3"), "--corpus", str(corpus))[0] == 0
    assert run(capsys, "sync", "--corpus", str(corpus))[0] == 0
    return corpus


def test_transcripts_of_the_service_are_listed(calls: Path, capsys) -> None:
    """`list` prints one row per transcript, newest first, up to --rows, with name, status, length and date first."""
    status, said = run(capsys, "list", "--json")
    assert status == 0
    assert {json.loads(line)["transcript_id"] for line in said.splitlines()} == {"t1", "t2"}
    assert len(run(capsys, "list", "--json", "--rows", "1")[1].splitlines()) == 1
    head, *rows = run(capsys, "list", "--corpus", str(calls))[1].splitlines()
    assert head.split() == ["recording", "status", "length", "created", "error", "id"]
    assert {row.split()[0] for row in rows} == {"0", "1"}
    assert {(row.split()[1], row.split()[-1]) for row in rows} == {("completed", "t1"), ("completed", "t2")}
    assert "there are more transcripts" in run(capsys, "list", "--corpus", str(calls), "--rows", "1")[1]


def test_delete_asks_and_deletes(peer, calls: Path, capsys, monkeypatch) -> None:  # noqa: F811
    """`delete` needs an answer or --yes; only --remote deletes at the service."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["delete", "t1", "--corpus", str(calls)]) == 2
    assert "--yes" in capsys.readouterr().err
    assert run(capsys, "delete", "t1", "--corpus", str(calls), "--yes")[0] == 0
    assert (voxframe.Corpus(calls).ids(), peer.count("DELETE")) == (["t2"], 0)
    assert run(capsys, "delete", "t2", "--corpus", str(calls), "--yes", "--remote")[0] == 0
    assert (voxframe.Corpus(calls).ids(), peer.statuses["t2"]) == ([], "deleted")
    assert main(["delete", "t2", "--corpus", str(calls), "--yes"]) == 1
    assert "`voxframe tables --table transcripts`" in capsys.readouterr().err


def test_quiet_commands_print_only_results_and_errors(peer, calls: Path, tmp_path: Path, capsys) -> None:  # noqa: F811
    """With --quiet, tables, paths and failures are printed, and no summary of what a command did."""
    here = ("--corpus", str(calls), "-q")
    for silent in (
        ("sync", *here),
        ("submit", str(tmp_path / "*.mp3"), *here),
        ("export", str(tmp_path / "set"), *here),
        ("delete", "t2", "--yes", *here),
        ("snapshot", *here),
        ("server", "stop", "-q"),
    ):
        assert main(silent) == 0
        assert capsys.readouterr() == ("", ""), silent
    assert run(capsys, "tables", "--table", "transcripts", "--csv", *here)[1].count("completed") == 1
    assert "is unchanged" in run(capsys, "snapshot", "--verify", *here)[1]
    assert json.loads(run(capsys, "sync", "--json", *here)[1])["fetched"] == 0
    assert run(capsys, "sync", "--corpus", str(calls))[1].startswith("nothing to do")
    (tmp_path / "bad.mp3").touch()
    status, said = run(capsys, "submit", str(tmp_path / "bad.mp3"), *here)
    assert (status, "1 failed" in said) == (1, True)


@pytest.mark.parametrize("confirmed", [[], ["--yes"]])
def test_delete_looks_up_every_name_first(calls: Path, capsys, monkeypatch, confirmed: list[str]) -> None:
    """An unknown name is reported before the question, and then nothing is deleted."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["delete", "t1", "unknown", "--corpus", str(calls), *confirmed]) == 1
    error = capsys.readouterr().err
    assert "'unknown'" in error
    assert "--yes" not in error
    assert sorted(voxframe.Corpus(calls).ids()) == ["t1", "t2"]


def test_a_transcript_named_twice_is_deleted_once(calls: Path, capsys) -> None:
    """Its id and its name stand for one transcript."""
    name = voxframe.Corpus(calls).table("transcripts", "t1")["recording"].item()
    assert run(capsys, "delete", "t1", name, "t1", "--corpus", str(calls), "--yes")[0] == 0
    assert voxframe.Corpus(calls).ids() == ["t2"]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_delete_on_a_terminal_can_be_declined(calls: Path, capsys, monkeypatch, answer: str) -> None:
    """Any answer but y deletes nothing, nor does the end of the input (Ctrl-D)."""
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    status, asked = run(capsys, "delete", "t1", "t2", "--corpus", str(calls))
    assert (status, len(voxframe.Corpus(calls).ids())) == (1, 2)
    assert asked.startswith("Delete 2 transcripts from the corpus")


def test_subtitles_of_a_transcript(calls: Path, capsys) -> None:
    """Other readers find the words of the corpus in SRT and WebVTT, with names of speakers, in captions of --chars."""
    voxframe.Corpus(calls).speakers.set("t1", {"A": "Ada"})
    captions = list(srt.parse(run(capsys, "subtitles", "t1", "--corpus", str(calls))[1]))
    assert [caption.content for caption in captions] == ["Ada: Good morning.", "B: Hello!"]
    options = ("--format", "vtt", "--chars", "8", "--no-speakers")
    told = webvtt.from_string(run(capsys, "subtitles", "t1", "--corpus", str(calls), *options)[1])
    assert [caption.text for caption in told.captions] == ["Good", "morning.", "Hello!"]
    assert main(["subtitles", "t1", "--corpus", str(calls), "--chars", "0"]) == 2
    assert "--chars must be" in capsys.readouterr().err
    assert main(["subtitles", "t9", "--corpus", str(calls)]) == 1


@pytest.mark.speech
def test_a_recording_is_streamed(service, capsys, audio_folder: Path) -> None:
    """`stream` prints the text of each utterance; raw samples on stdin require a rate, and a file must exist."""
    assert main(["stream", "-"]) == 2
    assert "--sample-rate" in capsys.readouterr().err
    assert main(["stream", "nowhere.wav"]) == 2
    status, said = run(capsys, "stream", str(audio_folder / "ss-0880.wav"), "--fast")
    assert status == 0
    assert re.search(r"\bman\b", said)


def test_no_server_is_running(tmp_path: Path, monkeypatch, capsys) -> None:
    """`server status` exits with 1 and `server stop` with 0 if no server is running, and neither creates a folder."""
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path / "data"))
    assert run(capsys, "server", "status", "--json") == (1, '{"running": false}\n')
    assert run(capsys, "server", "stop") == (0, "no server is running\n")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("submit {0}/0.mp3 --concurrency 0", "voxframe submit: --concurrency must be"),
        ("submit {0}/0.mp3 --speakers 11", "voxframe submit: --speakers must be"),
        ("search x --slop 0", "voxframe search: --slop must be"),
        ("search x --count --by nope", "`voxframe metadata` adds columns"),
        ("search x --by speaker", "voxframe search: --by requires --count"),
        ("search x --id nope", "`voxframe sync --adopt` fetches others"),
        ("snapshot --verify", "`voxframe snapshot` creates one"),
        ("export {0}/o --format srt --table words", "voxframe export: --table is for parquet"),
        ("export {0}/o --partition-by nope", "speakers_expected,"),
        ("export {0}/o --pii mask", "-o entity_detection=true"),
        ("export {0}/o --pii mask", "or leave them out with --id"),
        ("export {0}/o --format md --partition-by nope", "leave --partition-by out"),
        ("export {0}/o --format md --escape-formulas", "voxframe export: --escape-formulas works with csv"),
        ("export {0}/o.md --format md", "write one file per transcript with `voxframe export DIRECTORY --format md`"),
        ("export {0}/o.md --format srt", "pass --format 'md', or a target without .md"),
        ("submit {0}/0.mp3 -o nope=1", "`voxframe options` lists them all, and `-o 'extra_body={...}'` sends fields"),
        ("submit {0}/0.mp3 -o nope=1", "there is no option 'nope'"),
        ("subtitles t1 --chars 0", "voxframe subtitles: --chars must be"),
        ("subtitles t1 --chars 0 --remote", "voxframe subtitles: --chars must be"),
        ("export {0}/x.csv --format csv", "select it with --table,"),
    ],
)
def test_messages_name_commands_and_options(calls: Path, capsys, arguments: str, said: str) -> None:
    """A message names what can be typed, but names of columns stay."""
    assert main([*arguments.format(calls.parent).split(), "--corpus", str(calls)]) in (1, 2)
    assert said in capsys.readouterr().err


def test_a_corpus_of_waiting_jobs_names_sync(peer, tmp_path: Path, monkeypatch, capsys) -> None:  # noqa: F811
    """Between `submit` and `sync` there is a corpus, but no transcript in it."""
    monkeypatch.setenv("VOXFRAME_BASE_URL", peer.base_url)
    monkeypatch.setenv("VOXFRAME_API_KEY", "test-key")
    (tmp_path / "a.mp3").write_bytes(b"a")
    assert main(["submit", str(tmp_path / "a.mp3"), "--corpus", str(tmp_path / "c")]) == 0
    assert main(["search", "x", "--corpus", str(tmp_path / "c")]) == 1
    assert "has no transcripts yet; `voxframe sync` fetches them" in capsys.readouterr().err
    assert main(["search", "x", "--corpus", str(tmp_path / "none")]) == 1
    assert "there is no corpus at" in capsys.readouterr().err


@pytest.mark.parametrize(("variable", "given"), [("API_KEY", "a key"), ("STREAM_URL", "a URL for streaming")])
def test_a_setting_without_a_url_of_the_service_names_the_variable(monkeypatch, capsys, variable, given) -> None:
    """The message names the variable to set, and no Python."""
    for name in ("BASE_URL", "API_KEY", "STREAM_URL"):
        monkeypatch.delenv(f"VOXFRAME_{name}", raising=False)
    monkeypatch.setenv(f"VOXFRAME_{variable}", "wss://speech.example")
    assert main(["list"]) in (1, 2)
    assert capsys.readouterr().err == (
        f"voxframe list: there is {given} but no URL of the service; set VOXFRAME_BASE_URL. Without any of them, "
        "voxframe uses the embedded server\n"
    )


def test_every_parameter_with_an_option_is_called_by_it() -> None:
    """The options of a command are enough to rename the parameters of its messages, so that none can be forgotten."""
    for command in COMMANDS:
        options = [o for p in _subparsers(build_parser([command])) for o in p._option_string_actions if o[:2] == "--"]
        for option in options:
            name = option.removeprefix("--").replace("-", "_")
            assert in_command_terms(f"voxframe {command}: {name} must be 1", options).endswith(f": {option} must be 1")
            assert in_command_terms(f"pass {name}=True, or 2", options) == f"pass {option}, or 2"


def test_values_and_columns_with_the_name_of_a_parameter_stay() -> None:
    """Only parameters are renamed: no value in quotes, no word of a sentence, and no part of a URL or path."""
    message = "followed by must: 'word_boost' in the list, GET /v2/transcript?limit=1&by=2, a/word_boost.json"
    assert in_command_terms(message, ["--by", "--limit", "--word-boost"]) == message
