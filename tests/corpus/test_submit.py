import os
import re
import subprocess
import sys
import threading
import time
import wave
from dataclasses import replace
from pathlib import Path

import fsspec
import pandas as pd
import pytest

import voxframe
from voxframe.corpus.batch import sync
from voxframe.errors import (
    AudioError,
    AudioNotFoundError,
    AuthenticationError,
    BadRequestError,
    CorpusError,
    OptionError,
    ServiceError,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six recordings; two are identical, and one is an hour of silence according to its header."""
    folder = tmp_path / "calls"
    folder.mkdir()
    for n in range(4):
        folder.joinpath(f"{n}.mp3").write_bytes(f"sound {n}".encode())
    folder.joinpath("again.mp3").write_bytes(b"sound 1")
    with wave.open(str(folder / "long.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(100)
        sound.writeframes(bytes(360_000))
    return folder


def states(corpus) -> dict[str, int]:
    return corpus.jobs()["state"].value_counts().to_dict()


def test_a_folder_is_submitted_once(peer, client, corpus, folder: Path) -> None:
    """Each recording is a job, identical files are one job, and a second call sends nothing."""
    first = corpus.submit(folder, client=client, speaker_labels=True)
    assert (first.sent, first.waiting, first.known) == (5, 5, 0)
    second = corpus.submit(folder, client=client, speaker_labels=True)
    assert (second.sent, second.known) == (0, 5)
    assert peer.count("POST /v2/transcript") == 5
    assert {job["speaker_labels"] for job in peer.asked_for.values()} == {True}


def test_records_of_jobs_are_not_written_through_a_link(peer, client, corpus, folder: Path) -> None:
    """A symbolic link in place of their folder is refused before anything is paid for."""
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    corpus.path.mkdir()
    (corpus.path / "records").symlink_to(elsewhere)
    with pytest.raises(CorpusError, match="is a symbolic link"):
        corpus.submit(folder, client=client)
    assert peer.count("POST /v2/transcript") == 0
    assert [*elsewhere.iterdir()] == []


def test_a_plan_sends_nothing(peer, client, corpus, folder: Path) -> None:
    """New, known, failed, changed and identical recordings are told apart, with hours of audio, without a request."""
    assert corpus.plan(folder, client=client).new == 5
    assert not corpus.path.exists()
    corpus.submit([folder / "0.mp3", folder / "1.mp3"], client=client)
    peer.statuses["t1"] = "error"
    corpus.sync(client=client)
    corpus.submit(folder / "2.mp3", client=client, punctuate=False)
    asked = len(peer.asked)
    plan = corpus.plan(folder, client=client)
    assert len(peer.asked) == asked
    assert (plan.new, plan.known, plan.failed, plan.new_options, plan.duplicates) == (2, 1, 1, 1, 1)
    assert (plan.to_send, plan.audio_s, plan.unmeasured) == (3, 3600.0, 2)
    assert "3 of 5 recordings to send" in repr(plan)
    assert "1.0 hours of audio and 2 of unknown length" in repr(plan)
    assert "1 sent before with other options: new jobs" in repr(plan)
    assert plan.table["verdict"].to_list()[2:4] == ["new_options", "new"]
    assert [(name, value) for name, value in html_rows(plan) if name.startswith(("new", "identical"))] == [
        ("new", "2"),
        ("identical to another", "1"),
    ]


def html_rows(shown) -> list[tuple[str, str]]:
    """Return names and values of the table that a notebook shows."""
    return re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", shown._repr_html_())


def test_the_result_of_a_batch_is_a_table_in_a_notebook(client, corpus, folder: Path) -> None:
    """Counts above 0 are rows, and what is left to do says how; markup in the name of a service is escaped."""
    sent = corpus.submit(folder, client=client)
    assert html_rows(sent) == [("sent", "5"), ("waiting", "5. sync() fetches them once they are finished")]
    assert html_rows(corpus.retry(client=client))[0][0] == "waiting"
    assert "&lt;b&gt;" in replace(corpus.plan(folder, client=client), service="<b>")._repr_html_()


def test_a_second_plan_reads_no_file_again(client, corpus, folder: Path, monkeypatch) -> None:
    """A file is hashed again only if its size or time changes."""
    old = time.time() - 60
    for path in folder.iterdir():
        os.utime(path, (old, old))
    corpus.submit(folder / "0.mp3", client=client)
    corpus.plan(folder, client=client)
    monkeypatch.setattr("voxframe.corpus.media._hash", lambda file: pytest.fail("read again"))
    assert corpus.plan(folder, client=client).known == 1
    monkeypatch.undo()
    folder.joinpath("0.mp3").write_bytes(b"other sound")
    assert corpus.plan(folder, client=client).known == 0


def test_metadata_of_a_dataframe_is_shown_by_jobs(peer, client, corpus, folder: Path) -> None:
    """Other columns of the DataFrame are shown with their job, and can be changed without sending anything."""
    df = pd.DataFrame({"audio": [folder / "0.mp3", folder / "1.mp3"], "customer": ["A", "B"], "day": ["x", None]})
    corpus.submit(df, client=client)
    assert corpus.jobs()["customer"].to_list() == ["A", "B"]
    corpus.submit(df.assign(customer=["A", "C"]), client=client)
    jobs = corpus.jobs()
    assert jobs["customer"].to_list() == ["A", "C"]
    assert jobs["day"].isna().to_list() == [False, True]
    assert peer.count("POST /v2/transcript") == 2


def test_remote_recordings_are_uploaded(peer, client, corpus) -> None:
    """Remote files are uploaded and recognized by their content."""
    store = fsspec.filesystem("memory")
    store.pipe("/batch/a.mp3", b"sound in a store")
    try:
        assert corpus.submit("memory://batch/*.mp3", client=client).sent == 1
        assert corpus.submit("memory://batch", client=client).known == 1
    finally:
        store.rm("/batch", recursive=True)
    assert peer.count("POST /v2/upload") == 1


def test_invalid_arguments_send_nothing(peer, client, corpus, folder: Path) -> None:
    """An invalid option, a missing file and a concurrency of 0 are errors before any request."""
    with pytest.raises(OptionError, match="speaker_labels"):
        corpus.submit(folder, client=client, speaker_label=True)
    with pytest.raises(AudioNotFoundError, match=r"none\.mp3"):
        corpus.submit([folder / "0.mp3", folder / "none.mp3"], client=client)
    with pytest.raises(OptionError, match="concurrency must be a whole number of at least 1, got 0"):
        corpus.submit(folder, client=client, concurrency=0)
    with pytest.raises(AudioError, match=r"'~nobody-of-this-name/a.mp3' cannot be read: Could not determine home"):
        corpus.submit("~nobody-of-this-name/a.mp3", client=client)
    with pytest.raises(AudioError, match=r"'a{300}' cannot be read: File name too long"):
        corpus.submit("a" * 300, client=client)
    assert peer.count("POST") == 0


def test_retry_and_sync_check_their_arguments(peer, client, corpus, folder: Path) -> None:
    """A text such as "no" does not count as True, and keys are texts; nothing is sent."""
    peer.drop_submissions = 1
    corpus.submit(folder / "0.mp3", client=client)
    asked, wrong = len(peer.asked), "no"
    for name in ("failed", "uncertain"):
        with pytest.raises(OptionError, match=f"{name} must be True or False, got 'no'"):
            corpus.retry(client=client, **{name: wrong})
    with pytest.raises(OptionError, match="wait must be True or False, got 'no'"):
        corpus.sync(client=client, wait=wrong)
    with pytest.raises(OptionError, match="keys of jobs are given as a name or a list of names, got 5"):
        corpus.retry(client=client, keys=5)
    for keys in ([5, "a"], [["a"]]):
        with pytest.raises(OptionError, match="there is no job with the key"):
            corpus.retry(client=client, keys=keys)
    assert len(peer.asked) == asked


@pytest.fixture
def broken(folder: Path) -> Path:
    """The folder with an empty file and a link to itself."""
    folder.joinpath("empty.mp3").touch()
    loop = folder.with_name("loop.mp3")
    loop.symlink_to(loop)
    return folder


def test_an_unreadable_file_is_a_failed_row(peer, client, corpus, broken: Path) -> None:
    """An empty or unreadable file does not stop the others, and is submitted once it can be read."""
    loop = broken.with_name("loop.mp3")
    plan = corpus.plan([broken, loop], client=client)
    assert (plan.to_send, plan.unreadable) == (5, 2)
    for _ in range(2):
        done = corpus.submit([broken, loop], client=client)
        assert (done.failed, done.waiting) == (2, 5)
    errors = corpus.jobs().query("state == 'error'").set_index("source")["error"]
    assert "is empty" in errors[str(broken / "empty.mp3")]
    assert "cannot be read" in errors[str(loop)]
    assert peer.count("POST /v2/transcript") == 5
    assert corpus.retry(failed=True, client=client).failed == 2
    broken.joinpath("empty.mp3").write_bytes(b"sound at last")
    assert corpus.submit(broken, client=client).sent == 1
    loop.unlink()
    loop.write_bytes(b"more sound")
    assert corpus.retry(failed=True, client=client).sent == 1
    assert states(corpus) == {"submitted": 7}
    assert corpus.submit([broken, loop], client=client).known == 7


def test_each_choice_of_options_of_an_unreadable_file_is_kept(peer, client, corpus, folder: Path) -> None:
    """A file that can be read again is submitted with the given options; its failed job with other options stays."""
    path = folder / "empty.mp3"
    path.touch()
    for punctuate in (True, False):
        corpus.submit(path, client=client, punctuate=punctuate)
    path.write_bytes(b"sound at last")
    assert corpus.submit(path, client=client).sent == 1
    jobs = corpus.jobs().set_index("options")["state"].to_dict()
    assert jobs == {"{}": "submitted", '{"punctuate": false}': "error"}
    assert corpus.retry(failed=True, client=client).sent == 1
    assert states(corpus) == {"submitted": 2}


def test_a_wav_file_of_unknown_length_is_measured_by_its_size(client, corpus, tmp_path: Path) -> None:
    """A recorder that writes to a pipe enters the largest length in the header; the plan shows that of the file."""
    path = tmp_path / "piped.wav"
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(8000 * 4 * 3))
    header = bytearray(path.read_bytes())
    header[4:8] = header[40:44] = b"\xff" * 4
    path.write_bytes(header)
    assert corpus.plan(path, client=client).audio_s == pytest.approx(3.0, abs=0.01)


def test_changed_bytes_with_the_same_size_and_time_are_noticed(peer, client, corpus, folder: Path) -> None:
    """Resetting the modification time does not hide new content."""
    path = folder / "0.mp3"
    old = time.time() - 60
    os.utime(path, (old, old))
    time.sleep(0.05)
    assert corpus.submit(path, client=client).sent == 1
    before = path.stat()
    time.sleep(0.05)
    with path.open("r+b") as file:
        file.write(b"SOUND")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert corpus.submit(path, client=client).sent == 1


def test_passwords_and_signatures_are_masked(peer, client, corpus, caplog, monkeypatch) -> None:
    """Tables, errors and logs show no password or signature of a URL; the service gets the complete URL."""
    caplog.set_level("DEBUG")
    address = "https://ada:pw1234@b.example/a.mp3?v=1&X-Amz-Date=2024&X-Amz-Signature=sig1234"
    answer = peer.answer
    refused = (400, {"error": f"cannot fetch {address}"})
    monkeypatch.setattr(
        peer, "answer", lambda m, p, b: refused if (m, p) == ("POST", "/v2/transcript") else answer(m, p, b)
    )
    corpus.submit(address, client=client)
    with pytest.raises(BadRequestError) as raised:
        corpus.transcribe(address, client=client)
    shown = [corpus.jobs().to_csv(), repr(raised.value), caplog.text]
    shown.append(corpus.plan(address, client=client).table.to_csv())
    assert not [text for text in shown if "pw1234" in text or "sig1234" in text]
    assert corpus.jobs()["source"][0] == "https://***@b.example/a.mp3?v=1&X-Amz-Date=2024&X-Amz-Signature=***"
    monkeypatch.undo()
    assert corpus.retry(failed=True, client=client).sent == 1
    assert peer.audio_urls["t1"].startswith(address)


def test_one_that_is_refused_does_not_stop_the_others(peer, client, corpus, folder: Path) -> None:
    """A refused recording has the service's error; retry(failed=True) submits it again."""
    peer.refuse_submissions = 1
    done = corpus.submit(folder, client=client)
    assert (done.sent, done.failed) == (4, 1)
    assert "retry(failed=True)" in repr(done)
    assert corpus.jobs()["error"].dropna().str.contains("not like this").to_list() == [True]
    assert corpus.submit(folder, client=client).sent == 0
    assert corpus.retry(failed=True, client=client).sent == 1
    assert states(corpus) == {"submitted": 5}


def test_jobs_are_retried_by_key(peer, client, corpus, folder: Path) -> None:
    """Only the named jobs are submitted; an unknown key is an error."""
    peer.refuse_submissions = 2
    corpus.submit(folder, client=client)
    failed = corpus.jobs().query("state == 'error'")["key"].to_list()
    assert corpus.retry(failed=True, keys=failed[0], client=client).sent == 1
    assert states(corpus) == {"submitted": 4, "error": 1}
    with pytest.raises(OptionError, match="no job with the key 'nope'"):
        corpus.retry(failed=True, keys=[*failed, "nope"], client=client)
    assert states(corpus) == {"submitted": 4, "error": 1}


def test_too_many_requests_slow_a_batch_down(peer, client, corpus, folder: Path) -> None:
    """After a 429 the batch pauses; nothing fails and nothing is sent twice."""
    peer.limit_submissions = 3
    assert corpus.submit(folder, client=client).sent == 5
    assert len(peer.statuses) == 5
    assert corpus.jobs()["attempts"].sum() == 8


def test_lost_responses_are_found(peer, client, corpus, folder: Path) -> None:
    """Jobs with a lost response are adopted from the list, by upload URL or by tag."""
    peer.cut_submissions = 6
    sources = [folder, "https://audio.example/a.mp3"]
    corpus.submit(sources, client=client)
    assert states(corpus) == {"submitted": 6}
    assert len(peer.statuses) == 6


def test_a_job_that_is_found_by_a_later_submit_counts_as_known(peer, client, corpus, folder: Path) -> None:
    """A job that the list shows only later is adopted by the next call, and its recording is known."""
    peer.lagging, peer.cut_submissions = True, 1
    assert corpus.submit(folder / "0.mp3", client=client).uncertain == 1
    peer.catch_up()
    done = corpus.submit(folder / "0.mp3", client=client)
    assert (done.sent, done.adopted, done.known, done.uncertain) == (0, 1, 1, 0)


def test_undecided_jobs_are_uncertain(peer, client, corpus, folder: Path) -> None:
    """A lost request is reported until it is settled, and sent again only on demand."""
    peer.drop_submissions = 1
    done = corpus.submit(folder, client=client, concurrency=1)
    assert (done.sent, done.uncertain) == (4, 1)
    assert "retry(uncertain=True)" in repr(done)
    for again in (corpus.submit(folder, client=client), corpus.sync(client=client), corpus.retry(client=client)):
        assert again.uncertain == 1
    assert peer.count("POST /v2/transcript") == 5
    assert corpus.retry(uncertain=True, client=client).sent == 1
    assert len(peer.statuses) == 5


def test_a_request_that_never_arrived_is_sent_again(peer, client, corpus, folder: Path, monkeypatch) -> None:
    """After enough time, and once a later job is listed, the request is sent again."""
    peer.drop_submissions = 1
    corpus.submit(folder, client=client, concurrency=1)
    monkeypatch.setattr(sync, "SETTLE_S", 0)
    done = corpus.sync(client=client)
    assert (done.uncertain, done.pending) == (0, 1)
    assert corpus.submit(folder, client=client).sent == 1
    assert len(peer.statuses) == 5


def test_a_list_without_known_urls_settles_nothing(peer, client, corpus, folder: Path, monkeypatch) -> None:
    """Another account's list, or a service that changes URLs, leaves a lost job uncertain."""
    peer.drop_submissions = 1
    corpus.submit(folder, client=client, concurrency=1)
    monkeypatch.setattr(sync, "SETTLE_S", 0)
    peer.audio_urls = {}
    assert corpus.sync(client=client).uncertain == 1
    assert corpus.submit(folder, client=client).sent == 0


def test_the_last_job_stays_uncertain(peer, client, corpus, folder: Path, monkeypatch) -> None:
    """If no later job is listed, the list may be outdated."""
    monkeypatch.setattr(sync, "SETTLE_S", 0)
    corpus.submit(folder / "0.mp3", client=client)
    peer.drop_submissions = 1
    corpus.submit(folder / "1.mp3", client=client)
    assert corpus.sync(client=client).uncertain == 1


def test_a_recent_request_stays_uncertain(peer, client, corpus, folder: Path) -> None:
    """A request sent a moment ago may still arrive."""
    corpus.submit(folder / "0.mp3", client=client)
    peer.drop_submissions = 1
    corpus.submit(folder / "1.mp3", client=client)
    corpus.submit(folder / "2.mp3", client=client)
    assert corpus.sync(client=client).uncertain == 1
    lost = next(job for job in corpus._ledger.jobs() if job.state == "uncertain")
    peer.statuses["t9"], peer.audio_urls["t9"] = "completed", lost.address
    assert corpus.sync(client=client).adopted == 1


def test_the_embedded_server_is_asked_again(peer, client, corpus, folder: Path, monkeypatch) -> None:
    """It charges nothing, so requests that may have been lost are sent again."""
    monkeypatch.setattr("voxframe.corpus.ledger.is_embedded", lambda url: True)
    corpus.submit(folder / "0.mp3", client=client)
    job = corpus._ledger.jobs()[0]
    corpus._ledger.save(job, state="submitting", address="gone", transcript_id=None)
    assert corpus.submit(folder / "0.mp3", client=client).sent == 1


def test_a_signed_url_is_known_with_another_signature(peer, client, corpus) -> None:
    """The recording is recognized under a new signature, and the service gets the newest URL."""
    address = "https://b.example/a.mp3?v=1&X-Amz-Date=2024&X-Amz-Signature="
    assert corpus.submit(f"{address}one", client=client).sent == 1
    assert corpus.submit(f"{address}two", client=client).known == 1
    assert corpus.jobs()["source"].to_list() == [f"{address}***"]
    assert corpus.submit("https://b.example/a.mp3?v=2", client=client).sent == 1
    assert peer.audio_urls["t1"].startswith(f"{address}one#voxframe=")


def test_a_batch_stops_after_several_lost_responses(peer, client, corpus, tmp_path: Path) -> None:
    """After a few lost responses in a row the batch stops, and the rest stays planned."""
    for n in range(30):
        tmp_path.joinpath(f"{n}.mp3").write_bytes(bytes([n]))
    peer.drop_submissions = 1000
    with pytest.raises(ServiceError) as stopped:
        corpus.submit(tmp_path, client=client)
    assert "submit(...) or retry() submits them" in stopped.value.__notes__[0]
    found = states(corpus)
    assert found["uncertain"] <= 12
    assert found["uncertain"] + found["planned"] == 30


def test_a_wrong_key_stops_a_batch(peer, corpus, folder: Path, monkeypatch) -> None:
    """A refused key fails no recording; all stay planned."""
    answer = peer.answer
    monkeypatch.setattr(
        peer, "answer", lambda m, p, b: (401, {"error": "no"}) if p == "/v2/upload" else answer(m, p, b)
    )
    with voxframe.connect(peer.base_url, api_key="k") as client, pytest.raises(AuthenticationError):
        corpus.submit(folder, client=client)
    assert states(corpus) == {"planned": 5}


def test_a_changed_file_is_not_sent_as_the_old_one(peer, client, corpus, folder: Path) -> None:
    """A file that changed after it was planned is an error of its job."""
    corpus.submit(folder / "0.mp3", client=client)
    peer.refuse_submissions = 1
    corpus.submit(folder / "1.mp3", client=client)
    folder.joinpath("1.mp3").write_bytes(b"something else")
    assert corpus.retry(failed=True, client=client).sent == 0
    assert corpus.jobs()["error"].dropna().str.contains("changed after it was first read").to_list() == [True]


def test_threads_and_processes_on_one_corpus_send_once(peer, client, corpus, folder: Path) -> None:
    """Each recording is submitted by one of several threads and processes."""
    program = (
        "import sys, voxframe; client = voxframe.connect(sys.argv[2], api_key='k')\n"
        "voxframe.Corpus(sys.argv[1]).submit(sys.argv[3], client=client)"
    )
    command = [sys.executable, "-c", program, str(corpus.path), peer.base_url, str(folder)]
    threads = [threading.Thread(target=corpus.submit, args=(folder,), kwargs={"client": client}) for _ in range(3)]
    with subprocess.Popen(command) as other:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert other.returncode == 0
    assert peer.count("POST /v2/transcript") == 5
    assert not list((corpus.path / ".locks").iterdir())


def test_ctrl_c_stops_cleanly_and_the_rest_is_sent_later(peer, client, corpus, folder: Path) -> None:
    """Running submissions finish, the others stay planned, and a second call sends only those."""
    program = (
        "import sys, voxframe; client = voxframe.connect(sys.argv[2], api_key='k')\n"
        "voxframe.Corpus(sys.argv[1]).submit(sys.argv[3], client=client, concurrency=1)"
    )
    reached, go_on = threading.Event(), threading.Event()
    answer = peer.answer

    def slow(method: str, path: str, body: bytes) -> tuple[int, dict] | None:
        if method == "POST" and path == "/v2/transcript" and len(peer.statuses) == 1:
            reached.set()
            go_on.wait(20)
        return answer(method, path, body)

    peer.answer = slow
    command = [sys.executable, "-c", program, str(corpus.path), peer.base_url, str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as batch:
        assert reached.wait(20)
        batch.send_signal(2)
        time.sleep(0.3)
        go_on.set()
        said = batch.communicate(timeout=20)[1]
    assert "KeyboardInterrupt" in said
    assert "submit(...) or retry() submits them" in said
    assert states(corpus) == {"submitted": 2, "planned": 3}
    assert corpus.submit(folder, client=client).sent == 3
    assert len(peer.statuses) == 5
