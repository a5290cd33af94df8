"""The client against the embedded service: two halves written apart, one wire."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from voxframe.errors import NotFoundError
from voxframe.service import Client, Transcript, connect
from voxframe.settings import ENVIRONMENT

pytestmark = pytest.mark.speech
AUDIO = Path(__file__).parents[2] / "data" / "interview.flac"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ENVIRONMENT.values():
            patch.delenv(name, raising=False)
        with connect(data_dir=tmp_path_factory.mktemp("embedded")) as client:
            yield client


@pytest.fixture(scope="module")
def transcript(embedded: Client) -> Transcript:
    """Ten seconds of the interview."""
    return embedded.transcribe(AUDIO, audio_start_from=1000, audio_end_at=11_000, timeout=120)


def test_a_job_and_every_view_of_it(embedded: Client, transcript: Transcript) -> None:
    """Text, sentences, paragraphs, captions and word search agree on the words."""
    assert (transcript.status, transcript.error) == ("completed", None)
    words = transcript.json()["words"]
    assert len(words) > 10
    assert all(1000 <= word["start"] < word["end"] <= 11_000 for word in words)
    for passages in (transcript.sentences(), transcript.paragraphs()):
        assert [w.text for p in passages for w in p.words] == [w["text"] for w in words]
        assert passages.audio_duration_s == transcript.audio_duration_s
    vtt = transcript.subtitles("vtt", chars_per_caption=24)
    assert vtt.startswith("WEBVTT\n\n00:0")
    assert " --> " in transcript.subtitles()
    wanted = words[3]["text"].strip(".,?!").lower()
    found = transcript.word_search([wanted, "nosuchwordatall"])
    hit = next(match for match in found.matches if match.text.lower() == wanted)
    assert 3 in hit.indexes
    assert (words[3]["start"], words[3]["end"]) in hit.spans_ms
    assert embedded.fetch(transcript.id) == transcript.raw


def test_it_is_in_the_list(embedded: Client, transcript: Transcript) -> None:
    """Listed with its times, under its status and its day, and in the walk through history."""
    item = next(item for item in embedded.list(status="completed") if item.id == transcript.id)
    assert item.created is not None
    assert item.completed is not None
    assert item.created < item.completed <= datetime.now(UTC)
    assert transcript.id in [i.id for i in embedded.transcripts(created_on=item.created.date(), page_size=1)]
    assert transcript.id not in [i.id for i in embedded.transcripts(status="error")]


def test_failed_jobs_are_values(embedded: Client) -> None:
    """What is no audio, and audio that is too short, are waited for together and have their reasons."""
    page = embedded.submit(b"<!DOCTYPE html><html><body>no audio</body></html>")
    noise = [embedded.submit(b"no audio at all" * n) for n in range(1, 5)]
    done = embedded.wait_all([page, *(n.id for n in noise)], timeout=60)
    assert [t.status for t in done] == ["error"] * 5
    assert "does not appear to contain audio" in (done[0].error or "")


def test_deleting(embedded: Client) -> None:
    """A deleted transcript is emptied and stays listed; an unknown one is not found."""
    job = embedded.transcribe(b"no audio", timeout=60)
    assert job.delete().json()["audio_url"] == "http://deleted_by_user"
    assert job.id in [item.id for item in embedded.list(limit=200)]
    with pytest.raises(NotFoundError):
        embedded.delete("6d1cc5ab-0000-4000-8000-000000000000")
