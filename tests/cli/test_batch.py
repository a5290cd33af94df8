import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.cli.conftest import run
from tests.corpus.conftest import peer  # noqa: F401  a fixture
from tests.server.conftest import Service

import voxframe
from voxframe.cli import main


@pytest.fixture
def calls(peer, tmp_path: Path, monkeypatch) -> Path:  # noqa: F811
    """A working directory with three recordings, and a configured service."""
    for n in range(3):
        tmp_path.joinpath(f"{n}.mp3").write_bytes(bytes([n]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXFRAME_BASE_URL", peer.base_url)
    monkeypatch.setenv("VOXFRAME_API_KEY", "test-key")
    return tmp_path


def test_submit_sync_and_jobs(peer, calls: Path, capsys) -> None:  # noqa: F811
    """A batch is planned, submitted once, fetched and listed, and each command prints what it did."""
    batch = ("submit", "*.mp3", "--corpus", "c", "--speakers", "2")
    status, said = run(capsys, *batch, "--plan")
    assert (status, peer.asked) == (0, [])
    assert "3 of 3 recordings to send" in said
    waiting = "  waiting: `voxframe sync --wait` waits until they are finished and fetches them"
    assert run(capsys, *batch) == (0, f"3 sent, 3 waiting\n{waiting}\nin {calls / 'c'}\n")
    assert peer.asked_for["t1"]["speakers_expected"] == 2
    status, said = run(capsys, *batch, "--json")
    assert json.loads(said)["known"] == 3
    status, said = run(capsys, "sync", "--corpus", "c", "--wait", "--json")
    assert (status, json.loads(said)["fetched"]) == (0, 3)
    status, said = run(capsys, "jobs", "--corpus", "c")
    assert status == 0
    assert said.count("completed") == 3
    status, said = run(capsys, "jobs", "--corpus", "c", "--json", "--rows", "1")
    assert json.loads(said)["transcript_id"] in ("t1", "t2", "t3")


def test_fields_that_voxframe_does_not_know_are_sent(peer, calls: Path, capsys) -> None:  # noqa: F811
    """`-o extra_body={...}` reaches the service beside the options, and another value is another job."""
    assert run(capsys, "submit", "0.mp3", "--corpus", "c", "-o", 'extra_body={"tier": 2}')[0] == 0
    assert (peer.asked_for["t1"]["tier"], peer.asked_for["t1"]["speaker_labels"]) == (2, True)
    assert run(capsys, "submit", "0.mp3", "--corpus", "c", "-o", 'extra_body={"tier": 1}')[0] == 0
    assert peer.asked_for["t2"]["tier"] == 1


@pytest.mark.speech
def test_an_option_that_the_service_ignores_is_one_plain_line(service: Service, tmp_path: Path) -> None:
    """A warning of a submission is a line of the command, without the line of Python code that caused it."""
    command = [sys.executable, "-m", "voxframe", "submit", "data/call.flac", "--corpus", str(tmp_path / "c")]
    done = subprocess.run([*command, "-o", "disfluencies=true"], capture_output=True, text=True, check=True)
    (said,) = [line for line in done.stderr.splitlines() if "ignores" in line]
    assert said == "voxframe submit: the service ignores these options: disfluencies that the model leaves out"
    assert ".py:" not in done.stderr


def test_options_are_listed(capsys) -> None:
    """`voxframe options` prints what `voxframe.describe("options")` shows; --json prints an object per option."""
    described = str(voxframe.describe("options")).replace(
        'voxframe.describe("language_code")', "`voxframe options language_code`"
    )
    assert run(capsys, "options") == (0, f"{described}\n")
    first = json.loads(run(capsys, "options", "--json")[1].splitlines()[3])
    assert (first["option"], first["values"]) == ("speech_model", "best, nano")


def test_the_values_of_an_option_are_listed(capsys) -> None:
    """`voxframe options NAME` prints one option, also one with the name of a table, with a row per value."""
    assert "\nde     German\n" in run(capsys, "options", "language_code")[1]
    first = json.loads(run(capsys, "options", "redact_pii_policies", "--json")[1].splitlines()[0])
    assert first == {"value": "account_number"}
    assert run(capsys, "options", "topics")[1].startswith("option topics\n")
    assert main(["options", "languge_code"]) == 2
    assert "there is no option 'languge_code' (did you mean 'language_code'?); `voxframe options` lists them all" in (
        capsys.readouterr().err
    )


def test_other_columns_of_a_table_become_metadata(peer, calls: Path, capsys) -> None:  # noqa: F811
    """Columns of a CSV other than the sources are metadata of the jobs."""
    calls.joinpath("calls.csv").write_text("path,customer\n0.mp3,A\n1.mp3,B\n")
    assert run(capsys, "submit", "--sources", "calls.csv", "--corpus", "c")[0] == 0
    found = [json.loads(line) for line in run(capsys, "jobs", "--corpus", "c", "--json")[1].splitlines()]
    assert sorted(job["customer"] for job in found) == ["A", "B"]


@pytest.mark.parametrize("sign", [";", "\t"])
def test_columns_may_be_separated_as_spreadsheets_do(peer, calls: Path, capsys, sign: str) -> None:  # noqa: F811
    """A CSV with semicolons or tabs between its columns is read, also with commas in its values."""
    calls.joinpath("calls.csv").write_text(f"path{sign}customer\n0.mp3{sign}Acme, Inc\n")
    assert run(capsys, "submit", "--sources", "calls.csv", "--corpus", "c")[0] == 0
    (job,) = [json.loads(line) for line in run(capsys, "jobs", "--corpus", "c", "--json")[1].splitlines()]
    assert job["customer"] == "Acme, Inc"


def test_failed_jobs_are_submitted_again_on_request(peer, calls: Path, capsys) -> None:  # noqa: F811
    """The exit status is 1 while a job has failed, and 0 after `submit --failed` has succeeded."""
    peer.outcome = "error"
    assert run(capsys, "submit", "0.mp3", "--corpus", "c")[0] == 0
    status, said = run(capsys, "sync", "--corpus", "c")
    assert status == 1
    assert said.startswith("1 failed")
    assert "no audio" in run(capsys, "jobs", "--corpus", "c", "--state", "error")[1]
    assert "completed" not in run(capsys, "jobs", "--corpus", "c", "--state", "completed")[1]
    peer.outcome = "completed"
    assert json.loads(run(capsys, "submit", "--failed", "--corpus", "c", "--json")[1])["sent"] == 1
    assert run(capsys, "sync", "--corpus", "c")[0] == 0


def test_uncertain_jobs_are_submitted_again_on_request(peer, calls: Path, capsys) -> None:  # noqa: F811
    """A job with a lost response gives exit status 1 until `submit --uncertain` sends it again."""
    peer.drop_submissions = 1
    status, said = run(capsys, "submit", "0.mp3", "--corpus", "c")
    assert status == 1
    assert "1 uncertain" in said
    assert run(capsys, "submit", "--uncertain", "--corpus", "c")[0] == 0
    assert len(peer.statuses) == 1


def test_sync_adopts_jobs_of_another_corpus(peer, calls: Path, capsys) -> None:  # noqa: F811
    """`sync --adopt` fetches a transcript that another corpus submitted."""
    run(capsys, "submit", "0.mp3", "--corpus", "c")
    status, said = run(capsys, "sync", "--adopt", "--corpus", "other", "--json")
    assert (status, json.loads(said)["adopted"]) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "none/*.mp3"], "matches no recording"),
        (["submit", "0.mp3", "--sources", "calls.csv"], "only one of the two"),
        (["submit", "--sources", "none.csv"], "No such file"),
        (["submit", "--sources", "taken.csv"], "Rename the column, or remove it from the file\n"),
        (["submit", "--sources", "unnamed.csv"], "the file given as --sources must have one column of paths"),
        (["submit", "--plan"], "--plan requires recordings"),
        (["submit", "0.mp3", "-o", "speaker_label=true"], "speaker_labels"),
        (["submit", "0.mp3", "--concurrency", "0"], "concurrency"),
    ],
)
def test_invalid_arguments_send_nothing(peer, calls: Path, capsys, arguments: list[str], message: str) -> None:  # noqa: F811
    """Invalid arguments give exit status 2 and a message, and nothing is sent."""
    calls.joinpath("taken.csv").write_text("audio,attempts\n0.mp3,3\n")
    calls.joinpath("unnamed.csv").write_text("a,b\n0.mp3,3\n")
    assert main([*arguments, "--corpus", "c"]) == 2
    assert message in capsys.readouterr().err
    assert peer.count("POST") == 0


def test_jobs_of_a_missing_corpus(calls: Path, capsys) -> None:
    """`jobs` reports that the directory has no corpus."""
    assert main(["jobs", "--corpus", "none"]) == 1
    assert f"no corpus at {calls / 'none'}" in capsys.readouterr().err


def test_ctrl_c_ends_submit_and_the_next_run_continues(peer, calls: Path, capsys) -> None:  # noqa: F811
    """An interrupted `submit` exits with 130 and one line, and the next run sends the rest."""
    reached, go_on = threading.Event(), threading.Event()
    answer = peer.answer

    def slow(method: str, path: str, body: bytes) -> tuple[int, dict] | None:
        if method == "POST" and path == "/v2/transcript":
            reached.set()
            go_on.wait(20)
        return answer(method, path, body)

    peer.answer = slow
    command = [sys.executable, "-m", "voxframe", "submit", "*.mp3", "--corpus", "c", "--concurrency", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as batch:
        assert reached.wait(20)
        batch.send_signal(signal.SIGINT)
        threading.Timer(0.3, go_on.set).start()
        said = batch.communicate(timeout=20)[1]
    assert batch.returncode == 130
    assert said == "\nvoxframe submit: interrupted; run the command again to continue\n"
    assert json.loads(run(capsys, "submit", "--corpus", "c", "--json")[1])["sent"] == 2
    assert len(peer.statuses) == 3


def test_sources_may_stand_before_and_after_options(peer, calls: Path, capsys) -> None:  # noqa: F811
    """All recordings of a command are taken, wherever they stand among its options; so are queries."""
    plan = run(capsys, "submit", "--plan", "0.mp3", "--corpus", "c", "1.mp3", "--json", "2.mp3")[1]
    assert json.loads(plan)["new"] == 3
    assert run(capsys, "submit", "0.mp3", "--corpus", "c")[0] == 0
    assert run(capsys, "sync", "--corpus", "c")[0] == 0
    found = run(capsys, "search", "hello", "--corpus", "c", "nothing", "--count", "--by", "nothing", "--json")[1]
    assert [json.loads(line)["term"] for line in found.splitlines()] == ["hello", "nothing"]
    with pytest.raises(SystemExit) as left:
        main(["submit", "0.mp3", "--corpus", "c", "--recursive", "1.mp3"])
    assert left.value.code == 2
    assert "voxframe submit: unknown argument --recursive" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::voxframe.errors.CorpusWarning")  # printed by the command
def test_mistyped_directories_and_numbers_create_nothing(peer, calls: Path, capsys) -> None:  # noqa: F811
    """A mistyped corpus, a negative --rows and a concurrency of 0 are errors, and no file is written."""
    for command in (
        ["sync", "--corpus", "nowhere"],
        ["jobs", "--corpus", "nowhere"],
        ["tables", "--corpus", "nowhere"],
    ):
        assert main(command) in (1, 2)
        assert "there is no corpus" in capsys.readouterr().err
    assert main(["submit", "0.mp3", "--corpus", "c", "--concurrency", "0"]) == 2
    assert not (calls / "c").exists()
    assert run(capsys, "submit", "0.mp3", "--corpus", "c")[0] == 0
    for command in (["jobs", "--corpus", "c"], ["search", "x", "--corpus", "c"]):
        with pytest.raises(SystemExit) as left:
            main([*command, "--rows", "-1"])
        assert left.value.code == 2
    run(capsys, "sync", "--corpus", "c")
    assert run(capsys, "jobs", "--corpus", "c", "--rows", "0")[1].startswith("... 1 more row;")
    assert run(capsys, "tables", "--corpus", "c", "--table", "topics") == (0, "no rows\n")
