import subprocess
import sys
import threading
from pathlib import Path

import pytest

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


def test_a_recording_is_sent_once(peer, client, corpus, recording: Path) -> None:
    """The second time, the same audio and options ask the service nothing, under whatever file name."""
    first = corpus.transcribe(client, recording, speaker_labels=True)
    assert corpus.table("words", first)["text"].to_list() == ["Good", "morning.", "Hello!"]
    assert peer.count("POST /v2/transcript") == 1
    asked = len(peer.asked)
    again = recording.rename(recording.with_name("another name.mp3"))
    assert corpus._batch.find_transcript(again, client, speaker_labels=True, punctuate=True) == first
    assert voxframe.Corpus(corpus.path).transcribe(client, again, speaker_labels=True) == first
    assert len(peer.asked) == asked


def test_other_options_are_another_job(peer, client, corpus, recording: Path) -> None:
    """Changed options are sent; so is everything with force."""
    first = corpus.transcribe(client, recording)
    second = corpus.transcribe(client, recording, punctuate=False)
    third = corpus.transcribe(client, recording, force=True)
    assert len({first, second, third}) == 3
    assert corpus._batch.find_transcript(recording, client) == third
    assert corpus.jobs()["state"].to_list() == ["completed"] * 2


def test_an_address_is_not_uploaded(peer, client, corpus) -> None:
    """A web address goes to the service as it is."""
    corpus.transcribe(client, "https://audio.example/a.mp3")
    assert peer.count("POST /v2/upload") == 0
    assert corpus._batch.find_transcript("https://audio.example/a.mp3", client) == "t1"


def test_a_job_under_way_is_gone_on_with(peer, client, corpus, recording: Path, monkeypatch) -> None:
    """A process that ended while it waited does not cost a second job."""
    peer.outcome = "processing"
    monkeypatch.setattr(client, "wait", lambda i: voxframe.Client.wait(client, i, timeout=0.2))
    with pytest.raises(TimeoutError):
        corpus.transcribe(client, recording)
    monkeypatch.undo()
    assert corpus.jobs()["state"].to_list() == ["submitted"]
    peer.statuses["t1"] = "completed"
    assert corpus.transcribe(client, recording) == "t1"
    assert peer.count("POST /v2/transcript") == 1
    assert corpus.jobs()["state"].to_list() == ["completed"]


def test_a_job_that_the_service_lost_is_sent_again_when_told(peer, client, corpus, recording: Path) -> None:
    """Where the service no longer knows a job, another one is paid for only where that was asked for."""
    corpus.transcribe(client, recording)
    peer.statuses = {"other": "completed"}
    for path in corpus.path.glob("raw/*/*"):
        path.unlink()
    with pytest.raises(CorpusError, match=r"as t1, which no longer exists there. force=True"):
        corpus.transcribe(client, recording)
    assert peer.count("POST /v2/transcript") == 1
    assert corpus.transcribe(client, recording, force=True) == "t2"


def test_a_lost_answer_is_found_in_the_list(peer, client, corpus, recording: Path) -> None:
    """A job whose answer was lost on the way is known by the address it was sent with."""
    peer.cut_submissions = 1
    assert corpus.transcribe(client, recording) == "t1"
    peer.cut_submissions = 1
    assert corpus.transcribe(client, "https://audio.example/a.mp3#t=9") == "t2"
    assert peer.audio_urls["t2"].startswith("https://audio.example/a.mp3#t=9&voxframe=")
    assert peer.count("POST /v2/transcript") == 2


def test_a_lost_answer_is_not_sent_again_blindly(peer, client, corpus, recording: Path) -> None:
    """Where nobody knows whether the job exists, a person decides; force is that decision."""
    peer.drop_submissions = 1
    with pytest.raises(ServiceUnreachableError):
        corpus.transcribe(client, recording)
    assert corpus.jobs()["state"].to_list() == ["uncertain"]
    with pytest.raises(CorpusError, match=r"may have been sent to http://127.*client\.list\(\).*force=True"):
        corpus.transcribe(client, recording)
    assert peer.count("POST /v2/transcript") == 1
    assert corpus.transcribe(client, recording, force=True) == "t1"


def test_a_killed_submission_is_uncertain(peer, client, corpus, recording: Path) -> None:
    """A process that dies between asking and hearing leaves a trace that stops the next one."""
    job = planned(corpus._ledger, recording, client.base_url)
    corpus._ledger.save(job, state="submitting", address="https://a.example/upload/1")
    with pytest.raises(CorpusError, match="may have been sent"):
        corpus.transcribe(client, recording)
    assert peer.count("POST") == 0


def test_the_embedded_service_charges_nothing(peer, client, corpus, recording: Path, monkeypatch) -> None:
    """On this machine's own service, what may have been lost is simply sent again."""
    monkeypatch.setattr("voxframe.corpus.services.is_embedded", lambda url: True)
    peer.drop_submissions = 1
    assert corpus.transcribe(client, recording) == "t1"
    assert peer.count("POST /v2/transcript") == 2
    assert corpus._batch.find_transcript(recording) == "t1"


def test_a_refused_job_can_be_sent_again(peer, client, corpus, recording: Path) -> None:
    """What the service refused was not done, so trying again is safe."""
    peer.refuse_submissions = 1
    with pytest.raises(BadRequestError, match="not like this"):
        corpus.transcribe(client, recording)
    assert corpus.jobs()[["state", "transcript_id"]].isna().to_numpy().tolist() == [[False, True]]
    assert corpus.transcribe(client, recording) == "t1"


def test_a_failed_transcript_is_kept_and_may_be_sent_again(peer, client, corpus, recording: Path) -> None:
    """A failure is in the corpus with its reason; it is not taken for a result the next time."""
    peer.outcome = "error"
    failed = corpus.transcribe(client, recording)
    assert corpus._archive.status(failed) == "error"
    assert corpus.jobs()[["state", "error"]].values.tolist() == [["error", "no audio"]]
    assert corpus._batch.find_transcript(recording, client) is None
    peer.outcome = "completed"
    assert corpus.transcribe(client, recording) != failed


def test_two_at_once_send_once(peer, client, corpus, recording: Path) -> None:
    """Threads and processes that want the same recording wait for one another."""
    program = (
        "import sys, voxframe; client = voxframe.connect(sys.argv[2], api_key='k')\n"
        "print(voxframe.Corpus(sys.argv[1]).transcribe(client, sys.argv[3]))"
    )
    command = [sys.executable, "-c", program, str(corpus.path), peer.base_url, str(recording)]
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(corpus.transcribe(client, recording))) for _ in range(3)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append(other.communicate()[0].strip())
    assert found == ["t1"] * 4
    assert peer.count("POST /v2/transcript") == 1


def test_what_is_wrong_is_said_before_anything_is_sent(peer, client, corpus, tmp_path: Path) -> None:
    """A wrong option, a missing file and a directory are found without a request and without a trace."""
    with pytest.raises(OptionError, match="speaker_labels"):
        corpus.transcribe(client, "https://a.example/a.mp3", speaker_label=True)
    with pytest.raises(AudioNotFoundError, match="check its path"):
        corpus.transcribe(client, tmp_path / "none.wav")
    with pytest.raises(AudioError, match="is a directory"):
        corpus.transcribe(client, tmp_path)
    assert peer.asked == []
    assert not corpus.path.exists()
