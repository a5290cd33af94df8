"""The client against the embedded server: two independent implementations of the API."""

import io
import json
import wave
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import av
import pandas as pd
import pytest

import voxframe
from voxframe.client import Client, Transcript, connect
from voxframe.errors import BadRequestError, NotFoundError, OptionError
from voxframe.settings import ENVIRONMENT

pytestmark = pytest.mark.speech
AUDIO = Path(__file__).parents[2] / "data" / "interview.flac"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ENVIRONMENT.values():
            patch.delenv(name, raising=False)
        folder = tmp_path_factory.mktemp("embedded")
        patch.setenv("VOXFRAME_DATA_DIR", str(folder))  # the default corpus is there too
        with connect(llm_prefix="some-llm") as client:
            yield client


@pytest.fixture(scope="module")
def transcript(embedded: Client) -> Transcript:
    """Ten seconds of the interview."""
    return embedded.transcribe(AUDIO, audio_start_from=1000, audio_end_at=11_000, speech_model="nano", timeout=120)


def test_all_exports_have_the_same_words(embedded: Client, transcript: Transcript) -> None:
    """Text, sentences, paragraphs, captions and word search of a job agree on the words."""
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


def test_a_job_is_listed(embedded: Client, transcript: Transcript) -> None:
    """A job is listed with its times, by status and by day, and found by iteration."""
    item = next(item for item in embedded.list(status="completed") if item.id == transcript.id)
    assert item.created is not None
    assert item.completed is not None
    assert item.created < item.completed <= datetime.now(UTC)
    assert transcript.id in [i.id for i in embedded.iter_transcripts(created_on=item.created.date(), page_size=1)]
    assert transcript.id not in [i.id for i in embedded.iter_transcripts(status="error")]


def test_failed_jobs_are_returned(embedded: Client) -> None:
    """Waiting for several jobs returns failed ones with their reasons."""
    page = embedded.submit(b"<!DOCTYPE html><html><body>no audio</body></html>")
    noise = [embedded.submit(b"no audio at all" * n) for n in range(1, 3)]
    done = embedded.wait_all([page, *(n.id for n in noise)], timeout=60)
    assert [t.status for t in done] == ["error"] * 3
    assert "does not appear to contain audio" in (done[0].error or "")


def test_a_deleted_transcript_is_emptied(embedded: Client) -> None:
    """A deleted transcript is emptied but stays listed; an unknown id is a NotFoundError."""
    job = embedded.transcribe(b"no audio", timeout=60)
    assert job.delete().json()["audio_url"] == "http://deleted_by_user"
    assert job.id in [item.id for item in embedded.list(limit=200)]
    with pytest.raises(NotFoundError):
        embedded.delete("6d1cc5ab-0000-4000-8000-000000000000")


def test_transcripts_are_selected_in_every_form(embedded: Client, transcript: Transcript) -> None:
    """An id, a handle and rows of a table of a corpus give the same answer."""
    words = voxframe.load_words(transcript)
    chosen = words[words["text"].str.len() > 3]
    said = transcript.text or ""
    for selection in (transcript, transcript.id, [transcript], chosen, voxframe.load_transcripts(transcript)):
        answer = embedded.summarize(selection, answer_format="one sentence", max_output_size=200)
        assert answer.transcript_ids == (transcript.id,)
        assert answer.task == "summary"
        assert answer.text
        assert set(answer.text.split()) <= set(said.split())  # the embedded service quotes
        assert answer.usage.input_tokens is not None
        assert answer.usage.input_tokens > 10


def test_every_task_of_the_language_model(embedded: Client, transcript: Transcript) -> None:
    """Questions with context and options, a task and action items return typed replies and their usage."""
    text = "Ann: When is the meeting? Bob: The meeting is on Monday at nine. Ann: I will bring the map."
    asked = embedded.ask(
        ["When is the meeting?", {"question": "Is the meeting on Monday?", "answer_options": ["yes", "no"]}],
        input_text=text,
        context={"who": ["Ann", "Bob"]},
        temperature=0.5,
        final_model="basic",
    )
    task = embedded.task("When is the meeting?", input_text=text)
    items = embedded.action_items(input_text=text, answer_format="bullets")
    assert "Monday" in asked.replies[0].answer
    assert asked.replies[1].answer == "yes"
    assert "Monday" in task.text
    assert "map" in items.text
    table = voxframe.load_responses([asked, task, items, embedded.summarize(transcript)])
    assert table["task"].to_list() == ["question-answer", "question-answer", "task", "action-items", "summary"]
    assert table["prompt"].to_list()[:3] == [
        "When is the meeting?",
        "Is the meeting on Monday?",
        "When is the meeting?",
    ]
    assert (table["input_tokens"] > 0).all()
    assert (table["output_tokens"] > 0).all()
    assert json.loads(table["transcript_ids"].iloc[-1]) == [transcript.id]


def test_a_response_is_kept_until_it_is_purged(embedded: Client) -> None:
    """A response can be fetched by its id until it is purged."""
    first = embedded.summarize(input_text="Ann: The bridge opens in May. Bob: It cost eleven million dollars.")
    assert embedded.llm_response(first.request_id).replies == first.replies
    purged = embedded.purge(first.request_id)
    assert (purged.request_id_to_purge, purged.deleted) == (first.request_id, True)
    for again in (embedded.llm_response, embedded.purge):
        with pytest.raises(NotFoundError, match="or it was purged"):
            again(first.request_id)


def test_the_rate_limit_is_updated(embedded: Client) -> None:
    """Each language-model request reduces the number of requests left."""
    left = []
    for _ in range(2):
        embedded.summarize(input_text="Ann: The bridge opens in May.")
        assert embedded.rate_limit is not None
        left.append(embedded.rate_limit.remaining)
    assert left[1] == left[0] - 1
    assert embedded.rate_limit is not None
    assert embedded.rate_limit.limit == 30
    assert 0 < embedded.rate_limit.reset_s <= 60


def test_errors_have_the_message_of_the_service(embedded: Client) -> None:
    """An error has the message of the service, with status, method and path."""
    for given, said in (
        ({"transcripts": "6d1cc5ab-0000-4000-8000-000000000000"}, "is not known here"),
        ({"input_text": "word " * 200_000}, "input_text"),
    ):
        with pytest.raises(BadRequestError, match=said) as caught:
            embedded.summarize(**given)  # type: ignore[arg-type]
        assert str(caught.value).endswith("(HTTP 400, POST /some-llm/v3/generate/summary)")


def test_too_many_hours_are_not_sent(embedded: Client) -> None:
    """More than a hundred hours, counted from durations in a table, are refused before a request is sent."""
    long = pd.DataFrame({"transcript_id": ["a", "b"], "audio_duration_s": [180_000.0, 180_036.0]})
    with pytest.raises(OptionError, match=r"100\.0 hours long; a request takes up to 100 hours"):
        embedded.summarize(long)


@pytest.fixture(scope="module")
def redacted(embedded: Client) -> Transcript:
    """A job with eight seconds of redacted audio that contain a name."""
    return embedded.submit(
        AUDIO,
        audio_end_at=8000,
        speech_model="nano",
        redact_pii=True,
        redact_pii_audio=True,
        redact_pii_audio_quality="wav",
        redact_pii_policies=["person_name", "location", "date"],
    )


def test_redacted_audio_is_downloaded(embedded: Client, redacted: Transcript, tmp_path: Path) -> None:
    """Redacted audio is awaited and saved as a wav file with the duration of the recording."""
    audio = embedded.redacted_audio(redacted.id, timeout=120)
    assert audio.status == "redacted_audio_ready"
    saved = audio.save(tmp_path)
    assert saved.name == f"{redacted.id}.redacted.wav"
    with av.open(str(saved)) as made, av.open(str(AUDIO)) as given:
        assert made.duration == pytest.approx(given.duration, abs=100_000)  # in microseconds
    assert redacted.wait().redacted_audio().save(tmp_path / "again.wav").read_bytes() == saved.read_bytes()


def test_an_interrupted_download_resumes(
    embedded: Client, redacted: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted download requests the missing bytes only, and the file is complete."""
    audio = redacted.wait().redacted_audio()
    whole = audio.save(tmp_path / "whole.wav").read_bytes()
    from voxframe.client.http import Download

    chunks, asked = Download.chunks, []

    def breaks_off(self: Download, size: int) -> Iterator[bytes]:
        asked.append(self.status)
        for count, chunk in enumerate(chunks(self, size)):
            if len(asked) == 1 and count == 2:
                raise ConnectionResetError
            yield chunk

    monkeypatch.setattr(Download, "chunks", breaks_off)
    with pytest.raises(ConnectionResetError):
        audio.save(tmp_path / "broken.wav")
    assert audio.save(tmp_path / "broken.wav").read_bytes() == whole
    assert asked == [200, 206]


def test_an_invalid_or_expired_url_is_refused(
    embedded: Client, redacted: Transcript, transcript: Transcript, tmp_path: Path
) -> None:
    """The error advises to request a new URL; a job without redacted audio names the required options."""
    audio = redacted.wait().redacted_audio()
    parts = urlsplit(audio.url)
    for query in (parts.query + "0", "Expires=1", "Expires=99999999999&Signature=x"):
        object.__setattr__(audio, "url", urlunsplit(parts._replace(query=query)))
        with pytest.raises(NotFoundError, match=r"has expired\. Request a new one with client\.redacted_audio\(id\)"):
            audio.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadRequestError) as caught:
        transcript.redacted_audio()
    assert "redact_pii=True and redact_pii_audio=True" in caught.value.__notes__[0]


def test_a_stream_with_every_option(embedded: Client) -> None:
    """A session with every option and command yields finals that can be read as tables."""
    from voxframe.client.stream.messages import Final, SessionBegins, SessionInformation, SessionTerminated

    with av.open(str(AUDIO)) as given:
        resampler = av.AudioResampler("s16", "mono", 16_000)
        frames = [out.to_ndarray().tobytes() for frame in given.decode(audio=0) for out in resampler.resample(frame)]
    samples = b"".join(frames)[: 5 * 32_000]
    wav = io.BytesIO()
    with wave.open(wav, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples)
    finals: list[str] = []
    with embedded.stream(
        wav.getvalue(),
        encoding="pcm_mulaw",
        token=embedded.token(60),
        word_boost=["trees"],
        partials=False,
        extra_session_information=True,
        end_utterance_silence_threshold=400,
        realtime=False,
        on_final=lambda final: finals.append(final.text),
    ) as session:
        session.silence_threshold(500)
        session.force_end_utterance()
        received = list(session)
    assert [type(m) for m in received if not isinstance(m, Final)] == [
        SessionBegins,
        SessionInformation,
        SessionTerminated,
    ]
    assert received[-2].audio_duration_s == pytest.approx(5.0, abs=0.2)
    assert finals == [final.text for final in session.finals]
    assert len(session.text.split()) > 8
    table, words = voxframe.load_stream(session), voxframe.load_stream_words(session)
    assert table["text"].dropna().to_list() == finals
    assert words["text"].to_list() == session.text.split()
    assert words["end_ms"].max() <= 5200
