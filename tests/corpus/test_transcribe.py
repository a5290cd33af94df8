import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.corpus.conftest import raw_file

import voxframe
from voxframe.corpus.batch import planned
from voxframe.errors import (
    AudioError,
    AudioNotFoundError,
    BadRequestError,
    CorpusError,
    OptionError,
    ServiceUnreachableError,
)


def test_a_recording_is_submitted_once(peer, client, corpus, recording: Path) -> None:
    """The same audio and options send no second request, under any file name."""
    first = corpus.transcribe(recording, client=client, speaker_labels=True)
    assert corpus.table("words", first)["text"].to_list() == ["Good", "morning.", "Hello!"]
    assert peer.count("POST /v2/transcript") == 1
    asked = len(peer.asked)
    again = recording.rename(recording.with_name("another name.mp3"))
    assert corpus.transcribe(again, speaker_labels=True) == first  # the client used last
    assert corpus._batch.find_transcript(again, client, speaker_labels=True, punctuate=True) == first
    assert voxframe.Corpus(corpus.path).transcribe(again, client=client, speaker_labels=True) == first
    assert len(peer.asked) == asked


def test_other_options_are_another_job(peer, client, corpus, recording: Path) -> None:
    """Other options create another job, and so does force."""
    first = corpus.transcribe(recording, client=client)
    second = corpus.transcribe(recording, client=client, punctuate=False)
    third = corpus.transcribe(recording, client=client, force=True)
    assert len({first, second, third}) == 3
    assert corpus._batch.find_transcript(recording, client) == third
    assert corpus.jobs()["state"].to_list() == ["completed"] * 2


def test_a_transcript_that_is_replaced_keeps_its_metadata(peer, client, corpus, recording: Path) -> None:
    """Metadata stay with the transcript of a job that is sent again, even while the new request is uncertain."""
    corpus.submit(pd.DataFrame({"audio": [recording], "customer": ["Acme"]}), client=client)
    corpus.sync(client=client)
    corpus.transcribe(recording, client=client, force=True)
    peer.drop_submissions = 1
    with pytest.raises(ServiceUnreachableError):
        corpus.transcribe(recording, client=client, force=True)
    assert corpus.metadata.get()[["transcript_id", "customer"]].to_numpy().tolist() == [["t1", "Acme"], ["t2", "Acme"]]


def test_a_url_is_not_uploaded(peer, client, corpus) -> None:
    """The service gets the URL."""
    corpus.transcribe("https://audio.example/a.mp3", client=client)
    assert peer.count("POST /v2/upload") == 0
    assert corpus._batch.find_transcript("https://audio.example/a.mp3", client) == "t1"


def test_a_running_job_is_continued(peer, client, corpus, recording: Path, monkeypatch) -> None:
    """A job of a process that ended while waiting is not submitted again."""
    peer.outcome = "processing"
    monkeypatch.setattr(client, "wait", lambda i: voxframe.Client.wait(client, i, timeout=0.2))
    with pytest.raises(TimeoutError):
        corpus.transcribe(recording, client=client)
    monkeypatch.undo()
    assert corpus.jobs()["state"].to_list() == ["submitted"]
    peer.statuses["t1"] = "completed"
    assert corpus.transcribe(recording, client=client) == "t1"
    assert peer.count("POST /v2/transcript") == 1
    assert corpus.jobs()["state"].to_list() == ["completed"]


def test_a_job_lost_by_the_service_is_sent_again_with_force(peer, client, corpus, recording: Path) -> None:
    """If the service no longer has the job, it is submitted again only on demand."""
    corpus.transcribe(recording, client=client)
    peer.statuses = {"other": "completed"}
    for path in corpus.path.glob("raw/*/*"):
        path.unlink()
    with pytest.raises(CorpusError, match=r"as t1, which no longer exists there. force=True"):
        corpus.transcribe(recording, client=client)
    assert peer.count("POST /v2/transcript") == 1
    assert corpus.transcribe(recording, client=client, force=True) == "t2"


def test_a_lost_response_is_found_in_the_list(peer, client, corpus, recording: Path) -> None:
    """A job with a lost response is found by its URL."""
    peer.cut_submissions = 1
    assert corpus.transcribe(recording, client=client) == "t1"
    peer.cut_submissions = 1
    assert corpus.transcribe("https://audio.example/a.mp3#t=9", client=client) == "t2"
    assert peer.audio_urls["t2"].startswith("https://audio.example/a.mp3#t=9&voxframe=")
    assert peer.count("POST /v2/transcript") == 2


def test_a_lost_response_needs_force(peer, client, corpus, recording: Path) -> None:
    """A job that may exist is submitted again only with force."""
    peer.drop_submissions = 1
    with pytest.raises(ServiceUnreachableError):
        corpus.transcribe(recording, client=client)
    assert corpus.jobs()["state"].to_list() == ["uncertain"]
    with pytest.raises(CorpusError, match=r"may have been sent to http://127.*client\.list\(\).*force=True"):
        corpus.transcribe(recording, client=client)
    assert peer.count("POST /v2/transcript") == 1
    assert corpus.transcribe(recording, client=client, force=True) == "t1"


def test_a_killed_submission_is_uncertain(peer, client, corpus, recording: Path) -> None:
    """A process killed between request and response leaves a record that stops the next one."""
    job = planned(corpus._ledger, recording, client.base_url)
    corpus._ledger.save(job, state="submitting", address="https://a.example/upload/1")
    with pytest.raises(CorpusError, match="may have been sent"):
        corpus.transcribe(recording, client=client)
    assert peer.count("POST") == 0


def test_the_embedded_server_needs_no_force(peer, client, corpus, recording: Path, monkeypatch) -> None:
    """On the embedded server, a request that may have been lost is sent again."""
    monkeypatch.setattr("voxframe.corpus.ledger.is_embedded", lambda url: True)
    peer.drop_submissions = 1
    assert corpus.transcribe(recording, client=client) == "t1"
    assert peer.count("POST /v2/transcript") == 2
    assert corpus._batch.find_transcript(recording) == "t1"


def test_a_refused_job_can_be_sent_again(peer, client, corpus, recording: Path) -> None:
    """A refused request created no job, so it can be repeated."""
    peer.refuse_submissions = 1
    with pytest.raises(BadRequestError, match="not like this"):
        corpus.transcribe(recording, client=client)
    assert corpus.jobs()[["state", "transcript_id"]].isna().to_numpy().tolist() == [[False, True]]
    assert corpus.transcribe(recording, client=client) == "t1"


def test_a_failed_transcript_can_be_sent_again(peer, client, corpus, recording: Path) -> None:
    """A failure is stored with its reason, and is not returned as a result by the next call."""
    peer.outcome = "error"
    failed = corpus.transcribe(recording, client=client)
    assert corpus._archive.status(failed) == "error"
    assert corpus.jobs()[["state", "error"]].values.tolist() == [["error", "no audio"]]
    assert corpus._batch.find_transcript(recording, client) is None
    peer.outcome = "completed"
    assert corpus.transcribe(recording, client=client) != failed


def test_a_transcript_without_its_payload_is_not_found(client, corpus, recording: Path) -> None:
    """A completed job does not count as a transcript if its payload is no longer in the corpus."""
    corpus.transcribe(recording, client=client)
    assert corpus._batch.find_transcript(recording, client) == "t1"
    raw_file(corpus, "t1.json.zst").unlink()
    assert corpus._batch.find_transcript(recording, client) is None


def test_concurrent_calls_submit_once(peer, client, corpus, recording: Path) -> None:
    """Threads and processes that need the same recording wait for one another."""
    program = (
        "import sys, voxframe; client = voxframe.connect(sys.argv[2], api_key='k')\n"
        "print(voxframe.Corpus(sys.argv[1]).transcribe(sys.argv[3], client=client))"
    )
    command = [sys.executable, "-c", program, str(corpus.path), peer.base_url, str(recording)]
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(corpus.transcribe(recording, client=client))) for _ in range(3)
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append(other.communicate()[0].strip())
    assert found == ["t1"] * 4
    assert peer.count("POST /v2/transcript") == 1


def test_invalid_arguments_send_nothing(peer, client, corpus, tmp_path: Path) -> None:
    """An invalid option, a missing file and a directory are errors before any request."""
    with pytest.raises(OptionError, match="speaker_labels"):
        corpus.transcribe("https://a.example/a.mp3", client=client, speaker_label=True)
    with pytest.raises(AudioNotFoundError, match="check its path"):
        corpus.transcribe(tmp_path / "none.wav", client=client)
    with pytest.raises(AudioError, match="is a directory"):
        corpus.transcribe(tmp_path, client=client)
    wrong: Any
    for wrong in (None, "", b"a.wav", ["a.wav"]):
        with pytest.raises(OptionError, match="audio must be the path or URL of one recording, got"):
            corpus.transcribe(wrong, client=client)
    wrong = "no"
    with pytest.raises(OptionError, match="force must be True or False, got 'no'"):
        corpus.transcribe(tmp_path / "none.wav", client=client, force=wrong)
    assert peer.asked == []
    assert not corpus.path.exists()
