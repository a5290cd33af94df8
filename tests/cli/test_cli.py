import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Callable
from pathlib import Path

import av
import pandas as pd
import pytest
from tests.embedded import shared_server_stopped
from tests.server.conftest import KEY, Service

import voxframe
from voxframe.cli import main


def _voxframe(*arguments: str, encoding: str = "utf-8", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "voxframe", *arguments]
    return subprocess.run(command, capture_output=True, encoding=encoding, check=False, env=os.environ | environment)


def _beginning(path: Path, seconds: int) -> Path:
    """Write the first seconds of the sample as a WAV file."""
    with av.open(str(voxframe.sample())) as sample, wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        for frame in sample.decode(audio=0):
            if frame.time < seconds:
                file.writeframes(frame.to_ndarray().astype("<i2").tobytes())
    return path


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """A payload file with control characters in its text."""
    words = [{"text": f"word{n}\x1b[31m\u202e", "start": n, "end": n + 1, "confidence": 0.5} for n in range(30)]
    path = tmp_path / "payload.json"
    path.write_text(json.dumps({"id": "t1", "status": "completed", "words": words}))
    return path


def test_help_and_version_need_no_pandas() -> None:
    """`--help` and `--version` do not import pandas."""
    code = "import sys; from voxframe.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print('pandas' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"
    assert _voxframe("--version").stdout == f"voxframe {voxframe.__version__}\n"


_COMMANDS = (
    "demo transcribe submit sync jobs options add metadata tables search summarize people export snapshot list delete "
    "subtitles stream server models mcp docs doctor completion"
).split()


@pytest.mark.parametrize("command", [*_COMMANDS, "serve"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command is listed by `voxframe --help` and has a help text of its own."""
    for arguments in (["--help"], [command, "--help"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert not left.value.code
    said = capsys.readouterr().out
    assert re.search(rf"^    {command}\b", said, re.MULTILINE)
    assert f"usage: voxframe {command}" in said


def test_voxframe_alone_shows_commands_to_start_with(capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments, five commands are shown, and each of them exists."""
    assert main([]) == 0
    shown = re.findall(r"^  voxframe (\w+)", capsys.readouterr().out, re.MULTILINE)
    assert len(shown) == 5
    assert set(shown) < set(_COMMANDS)


@pytest.mark.parametrize(("command", "action"), [("models", "list"), ("server", "status")])
def test_a_command_that_shows_something_needs_no_action(command: str, action: str, capsys) -> None:
    """`voxframe models` lists models and `voxframe server` shows the server, also with options alone."""
    for arguments in ([command], [command, "-q"], ["-q", command]):
        status = main([command, action]), capsys.readouterr()
        assert (main(arguments), capsys.readouterr()) == status


def test_verbose_shows_requests_and_no_key(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """-v, before or after the command, prints each request on stderr; the key is not in it."""
    for arguments in (["-v", "list"], ["list", "-v"]):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        assert shown.out == "no rows\n"
        assert "GET /v2/transcript: 200" in shown.err
        assert KEY not in shown.err
    assert main(["list"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("given", ["summarize nosuch", "tables --nosuch a", "search x --nosuch=1"])
def test_an_unknown_argument_is_named(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown argument gives one line with the command's help and exit status 2."""
    with pytest.raises(SystemExit) as ended:
        main(given.split())
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert len(told.splitlines()) == 1
    assert "nosuch" in told
    assert f"`voxframe {given.partition(' ')[0]} --help`" in told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sync --wiat", "voxframe sync: unknown argument --wiat (did you mean '--wait'?)"),
        ("submit calls --speech-model=nano", "unknown argument --speech-model=nano (for jobs: -o speech_model=VALUE)"),
        ("sycn", "there is no 'sycn' (did you mean 'sync'?)"),
        ("jobs --state complete", "--state: there is no 'complete' (did you mean 'completed'?)"),
        ("--verson", "voxframe: unknown argument --verson (did you mean '--version'?)"),
    ],
)
def test_the_nearest_name_is_suggested(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelled command, option or value gives one line with the nearest one."""
    with pytest.raises(SystemExit) as ended:
        main(given.split())
    told = capsys.readouterr().err
    assert (ended.value.code, len(told.splitlines())) == (2, 1)
    assert said in told


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    """Bash runs the output of `completion bash` and completes a command, an option, a directory, a format, a table."""
    script = tmp_path / "completion"
    script.write_text(_voxframe("completion", "bash").stdout)
    (tmp_path / "folder").mkdir()
    asked = """
source completion
complete_it() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); "$handler"; echo "${COMPREPLY[@]}"; }
handler=$(complete -p voxframe | sed 's/.*-F \\([^ ]*\\).*/\\1/')
complete_it voxframe summ
complete_it voxframe search --slo
complete_it voxframe submit --corpus fol
complete_it voxframe export --format textg
complete_it voxframe tables --table chap
"""
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["summarize", "--slop", "folder", "textgrid", "chapters"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-q"], "required: COMMAND"),
        (["dance"], "there is no 'dance'; choose from demo, serve"),
        (["demo", "--speakers", "two"], "--speakers: must be a whole number, got 'two'"),
        (["demo", "--speakers", "11"], "--speakers must be a whole number from 1 to 10, not 11"),
        (["demo", "--out", "text.wav"], "--out must be a directory, but 'text.wav' is a file; name another directory"),
        (["demo", "--out", ""], "--out: must be the path of a directory, got ''"),
        (["demo", "nowhere.wav"], "there is no file 'nowhere.wav'; check its path"),
        (["demo", "."], "'.' is a directory"),
        (["demo", "https://a.example/x.mp3"], "`voxframe transcribe https://a.example/x.mp3`"),
        (["demo", "pipe"], "a pipe or a device"),
        (["demo", "text.wav"], "'text.wav' cannot be transcribed: "),
        (["demo", "empty.mp3"], "'empty.mp3' is empty"),
        (["demo", "short.wav"], "too short"),
        (["transcribe", "text.wav"], "'text.wav' cannot be transcribed: "),
        (["transcribe", "s3://bucket/a.mp3"], "'s3://bucket/a.mp3' is neither a file nor an http(s) URL"),
        (["transcribe", "nowhere.wav"], "there is no file 'nowhere.wav'"),
        (["transcribe", "https://a.example/x.mp3", "-o", "speaker_label=true"], "did you mean 'speaker_labels'?"),
        (
            ["transcribe", "https://a.example/x.mp3", "-o", "speed"],
            "--option must be NAME=VALUE",
        ),
        (["tables", "nowhere.json"], "cannot read the payload file 'nowhere.json': no such file"),
        (["tables", "board call"], "name a transcript or recording of the corpus with --id 'board call'"),
        (["tables", "text.wav"], ""),
        (["tables", "--corpus", ""], "--corpus: must be the path of a directory, got ''"),
        (["docs", "--out", "."], "--out must be a file, but '.' is a directory"),
        (["tables", "--rows", "-3"], "must be a whole number of at least 0, got '-3'"),
    ],
)
def test_invalid_input_is_one_line_and_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    """Invalid input gives one line that names it and exit status 2, and no file is written."""
    (tmp_path / "text.wav").write_text("Dear diary, " * 100)
    (tmp_path / "empty.mp3").touch()
    with wave.open(str(tmp_path / "short.wav"), "wb") as short:
        short.setnchannels(1)
        short.setsampwidth(2)
        short.setframerate(16_000)
        short.writeframes(b"\0\0" * 1600)
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path / "data"))
    try:
        status = main(arguments)
    except SystemExit as stop:  # argparse
        status = stop.code
    error = capsys.readouterr().err
    assert status == 2
    assert said in error
    assert error.startswith("voxframe")
    assert len(error.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--llm-window", "-1", "must be a whole number of at least 0, got '-1'"),
        ("--keep-gb", "much", "must be a number of at least 0, got 'much'"),
        ("--webhook-interval", "0", "must be a number of seconds above 0, got '0'"),
        ("--port", "abc", "invalid int value: 'abc'; `voxframe serve --help` lists the arguments"),
    ],
)
def test_serve_names_an_invalid_value(option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid option of `serve` gives exit status 2 and one line with the value and the allowed range."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", option, value])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert f"{option}: {said}" in error
    assert len(error.splitlines()) == 1


def test_serve_without_the_extra_names_it() -> None:
    """`serve` without the packages of the extra `local` gives exit status 2 and the command that installs them."""
    code = (
        "import sys; sys.modules |= {'starlette': None, 'uvicorn': None, 'anyio': None}\n"
        "from voxframe.cli import main; sys.exit(main(['serve']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "voxframe[local]" in done.stderr
    assert "Traceback" not in done.stderr


def test_tables_of_a_payload(payload: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tables` prints the rows per table, the first 20 rows of one table, or all rows as CSV or JSON lines."""
    assert main(["tables", str(payload)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["words", "30"]
    assert main(["tables", str(payload), "--table", "words"]) == 0
    shown = capsys.readouterr().out
    assert "word19" in shown
    assert "word20" not in shown
    assert "10 more rows" in shown
    assert main(["tables", str(payload), "--table", "words", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 31
    assert main(["tables", str(payload), "--table", "words", "--json", "--rows", "2"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["start_ms"] for line in lines] == [0, 1]


@pytest.mark.parametrize(("form", "export_form"), [("json", "jsonl"), ("csv", "csv")])
def test_tables_and_exports_have_the_same_format(
    tmp_path: Path, form: str, export_form: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """CSV and JSON lines of `tables` equal an exported file, byte for byte."""
    words = [{"text": "", "start": 0, "end": 1, "confidence": 0.12345678901234567}, {"text": "a\rb", "start": 2}]
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"id": "t", "words": words}))
    assert main(["tables", str(path), "--table", "words", f"--{form}"]) == 0
    printed = capfdbinary.readouterr().out
    voxframe.export.write(voxframe.load_words(path), tmp_path / f"w.{export_form}", export_form)
    assert printed == (tmp_path / f"w.{export_form}").read_bytes()
    if form == "json":
        assert [json.loads(line)["confidence"] for line in printed.splitlines()] == [0.12345678901234567, None]
    else:
        assert [row["text"] for row in csv.DictReader(io.StringIO(printed.decode(), newline=""))] == ["", "a\rb"]


def test_control_characters_are_removed(payload: Path) -> None:
    """No control character or direction mark reaches a terminal."""
    done = _voxframe("tables", str(payload), "--table", "words")
    assert "word0[31m" in done.stdout
    assert not set(done.stdout) & {"\x1b", "\u202e"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudoterminals")
def test_data_on_a_terminal_has_no_control_characters(payload: Path) -> None:
    """CSV is unchanged in a file, but has no control characters on a terminal."""
    command = [sys.executable, "-m", "voxframe", "tables", str(payload), "--table", "words", "--csv", "--rows", "2"]
    reader, terminal = os.openpty()
    subprocess.run(command, stdout=terminal, check=True)
    os.close(terminal)
    shown = os.read(reader, 100_000).decode()
    os.close(reader)
    assert "word1[31m" in shown
    assert not set(shown) & {"\x1b", "\u202e"}
    assert "word1\x1b[31m\u202e" in _voxframe(*command[3:]).stdout


@pytest.mark.filterwarnings("default::voxframe.errors.CorpusWarning")  # printed by the command
def test_tables_of_a_corpus(tmp_path: Path, payload: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--corpus is read with sentences made from words; a missing corpus and table are errors, and a corpus as FILE."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", payload.read_bytes())
    assert main(["tables", "--corpus", str(corpus.path), "--csv"]) == 0
    rows = dict(csv.reader(capsys.readouterr().out.splitlines()[1:]))
    assert (rows["words"], rows["sentences"]) == ("30", "1")
    assert main(["tables", "--table", "words", "--corpus", str(corpus.path), "--id", "t1", "--rows", "1"]) == 0
    head, first, _ = capsys.readouterr().out.splitlines()
    assert (head.split()[:2], first.split()[:2]) == (["recording", "word_idx"], ["t1", "0"])
    assert main(["tables", str(corpus.path)]) == 2
    assert f"give it as --corpus {corpus.path}" in capsys.readouterr().err
    assert main(["tables", str(payload), "--corpus", str(corpus.path)]) == 2
    assert "give files or a corpus" in capsys.readouterr().err
    assert main(["tables", "--corpus", str(tmp_path)]) == 1
    assert "there is no corpus at" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["tables", "--corpus", str(corpus.path), "--table", "word"])
    assert "there is no 'word' (did you mean 'words'?)" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error(payload: Path) -> None:
    """`voxframe tables | head` ends without a message, although the output is longer than a pipe holds."""
    words = [{"text": "word", "start": n, "end": n + 1} for n in range(20_000)]
    payload.write_text(json.dumps({"id": "t1", "status": "completed", "words": words}))
    command = f"{sys.executable} -m voxframe tables {payload} --table words --csv | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("transcript_id,")
    assert done.stderr == ""


def test_characters_outside_the_encoding_are_replaced(tmp_path: Path) -> None:
    """A character that the encoding of the terminal cannot represent is printed as a question mark."""
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"id": "t", "words": [{"text": "日本é"}]}))
    done = _voxframe("tables", str(path), "--table", "words", encoding="latin-1", PYTHONIOENCODING="latin-1")
    assert "??é" in done.stdout


@pytest.mark.parametrize(("form", "export_form"), [("json", "jsonl"), ("csv", "csv")])
def test_data_in_a_pipe_is_utf8(tmp_path: Path, form: str, export_form: str) -> None:
    """CSV and JSON lines keep every character, although the encoding of the terminal lacks some."""
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"id": "t", "words": [{"text": "日本é\r"}]}))
    command = [sys.executable, "-m", "voxframe", "tables", str(path), "--table", "words", f"--{form}"]
    done = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    voxframe.export.write(voxframe.load_words(path), tmp_path / f"w.{export_form}", export_form)
    assert done.stdout == (tmp_path / f"w.{export_form}").read_bytes()


def test_doctor_prints_problems_and_next_steps(tmp_path: Path) -> None:
    """`doctor` prints one line per check, and the next step for an invalid setting, but no key."""
    done = _voxframe(
        "doctor", VOXFRAME_DATA_DIR=str(tmp_path), VOXFRAME_BASE_URL="http://127.0.0.1:9", VOXFRAME_API_KEY="hidden-key"
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ok  voxframe ")
    assert lines[-1].startswith("no  http://127.0.0.1:9: no connection")
    assert "hidden-key" not in done.stdout + done.stderr
    blocked = tmp_path / "file"
    blocked.touch()
    done = _voxframe("doctor", VOXFRAME_DATA_DIR=str(blocked / "x"), VOXFRAME_DEVICE="cuda", PATH="")
    assert (
        "no  graphics card: it cannot be used (there is no driver of NVIDIA on this machine); fix this" in done.stdout
    )
    assert "set VOXFRAME_DATA_DIR to a writable directory" in done.stdout


def test_doctor_lists_extras_and_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`doctor` names the extras of the installed metadata, with their missing packages, and each missing model."""
    installed = tmp_path / "voxframe-9.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        """Metadata-Version: 2.4
Name: voxframe
Version: 9
Requires-Dist: pandas>=2.3
Requires-Dist: requests>=2; extra == 'remote'
Requires-Dist: pandas[excel]>=2.3; extra == 'sql'
Requires-Dist: no-such-package>=1; (python_version > '3') and extra == 'sql'
Requires-Dist: nor-this>=1; extra == 'dev'
Provides-Extra: remote
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("VOXFRAME_BASE_URL", "http://127.0.0.1:9")  # no server starts
    monkeypatch.setenv("VOXFRAME_API_KEY", "hidden-key")
    for variable in ("VOXFRAME_MODEL_CACHE", "HF_HUB_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "models"))
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "ok  optional packages: remote" in lines
    assert (
        "ok  optional packages that are not installed: sql (no-such-package); if you need them, run: "
        "pip install 'voxframe[sql]'"
    ) in lines
    for name in ("all-MiniLM-L6-v2", "en_core_web_sm", "voices"):
        said = f"no  model {name} is missing; run `voxframe models get {name}`. "
        assert any(line.startswith(said) for line in lines)


@pytest.mark.long
@pytest.mark.speech
def test_demo_writes_tables_and_a_timeline(tmp_path: Path, model_folder: Callable[[str], Path]) -> None:
    """`demo` prints tables, talk time and conversation and draws a timeline; a second run reads the stored tables."""
    environment = os.environ | {"VOXFRAME_DATA_DIR": str(tmp_path / "data"), "VOXFRAME_BASE_URL": "http://127.0.0.1:9"}
    environment |= {"VOXFRAME_API_KEY": "never-used", "MPLBACKEND": "tkagg", "DISPLAY": ""}
    environment["VOXFRAME_MODEL"] = str(model_folder("tiny.en"))  # it is three times as fast
    (tmp_path / "data").mkdir()
    recording = _beginning(tmp_path / "data" / "interview.wav", seconds=40)
    command = [sys.executable, "-m", "voxframe", "demo", str(recording), "--speakers", "2"]
    first = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert first.returncode == 0, first.stderr
    corpus = voxframe.Corpus(tmp_path / "voxframe-demo")
    (transcript_id,) = corpus.ids()
    tables = corpus.tables(transcript_id)
    for name in ("words", "utterances", "sentences", "paragraphs", "highlights", "sentiments", "entities", "chapters"):
        assert f"{name} " in first.stdout
        assert len(tables[name]) > 0
        assert len(pd.read_parquet(tmp_path / f"voxframe-demo/tables/{name}")) == len(tables[name])
    assert tables["words"]["speaker"].nunique() == 2
    assert (tmp_path / "voxframe-demo/interview.timeline.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "voxframe-demo"]
    second = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert "it was transcribed before" in second.stdout
    assert second.stdout.split("rows per table:")[1] == first.stdout.split("rows per table:")[1]


@pytest.mark.long
@pytest.mark.speech
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.filterwarnings("ignore:there is no corpus in")
def test_ctrl_c_ends_demo_and_the_next_run_continues(tmp_path: Path, model_folder: Callable[[str], Path]) -> None:
    """An interrupted `demo` exits with 130 and one line, and the next run waits for the same job."""
    environment = os.environ | {"VOXFRAME_DATA_DIR": str(tmp_path / "data")}
    environment["VOXFRAME_MODEL"] = str(model_folder("tiny.en"))
    command = [sys.executable, "-m", "voxframe", "demo", str(_beginning(tmp_path / "beginning.wav", seconds=12))]
    corpus = voxframe.Corpus(tmp_path / "voxframe-demo")
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        try:
            until = time.monotonic() + 60
            while "submitted" not in corpus.jobs()["state"].to_list() and time.monotonic() < until:
                time.sleep(0.1)
            demo.send_signal(signal.SIGINT)
            _, said = demo.communicate(timeout=20)
        finally:
            demo.kill()
    assert demo.returncode == 130
    assert said.strip().splitlines() == ["voxframe demo: interrupted; run the command again to continue"]
    (submitted,) = corpus.jobs()["transcript_id"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert submitted in done.stdout
    assert corpus.ids() == [submitted]


@pytest.mark.long
@pytest.mark.speech
def test_transcribe_stores_transcripts(tmp_path: Path, audio_folder: Path) -> None:
    """A recording is stored in the corpus and not sent twice; a failed job gives exit status 1."""
    environment = {"VOXFRAME_DATA_DIR": str(tmp_path / "data"), "VOXFRAME_BASE_URL": ""}
    arguments = ["transcribe", str(audio_folder / "ss-0880.wav"), "--corpus", str(tmp_path / "c"), "--no-speakers"]
    with shared_server_stopped(tmp_path / "data"):
        first, second = _voxframe(*arguments, **environment), _voxframe(*arguments, **environment)
        failed = _voxframe(*arguments, "-o", "speech_threshold=1", **environment)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "man" in first.stdout
    assert first.stdout == second.stdout
    corpus = voxframe.Corpus(tmp_path / "c")
    assert corpus.jobs()["state"].to_list() == ["completed", "error"]
    assert len(corpus.table("sentences")) > 0
    assert failed.returncode == 1
    assert "failed:" in failed.stdout
