"""A job with every option."""

import json
from pathlib import Path

import numpy as np
import pytest
import requests

from voxframe._text import search_form
from voxframe_engine.analyses import OPTIONS
from voxframe_engine.analyses.lexicon import stem
from voxframe_engine.speech.audio import TONE_HZ, Audio

pytestmark = [pytest.mark.speech, pytest.mark.long]
RECORDING = Path(__file__).parents[2] / "data" / "interview.flac"
#: Personal words of the first 25 s, as the engine hears them.
PERSONAL = ("tuesday", "march", "baker", "susan", "river", "foundation", "11 weeks")
SENT = dict.fromkeys(OPTIONS, True) | {
    "topics": ["street trees", "swimming"],
    "audio_end_at": 25_000,
    "speaker_labels": True,
    "speakers_expected": 2,
    "filter_profanity": True,
    "disfluencies": True,
    "redact_pii_audio": True,
    "redact_pii_audio_quality": "wav",
    "content_safety_confidence": 40,
    "summary_type": "paragraph",
    "summary_model": "conversational",
    "speech_threshold": 0.2,
    "custom_spelling": [{"from": ["street"], "to": "STREET"}],
}


@pytest.fixture(scope="module")
def transcripts(service) -> dict[str, dict]:
    """The beginning of the interview three times: with every option, with names replaced, and plain."""
    url = service.upload(RECORDING.read_bytes())
    names = {"redact_pii": True, "redact_pii_policies": ["person_name"], "redact_pii_sub": "entity_type"}
    jobs = {
        "everything": service.create(url, **SENT),
        "named": service.create(url, **names, redact_pii_audio=True, audio_end_at=10_000),
        "bare": service.create(url, audio_end_at=25_000),
    }
    done = {name: service.wait(job["id"]) for name, job in jobs.items()}
    assert {name: job.get("error") for name, job in done.items()} == dict.fromkeys(done)
    return done


@pytest.fixture
def everything(transcripts) -> dict:
    """The transcript with every option; its redacted audio is wav."""
    return transcripts["everything"]


@pytest.fixture
def named(transcripts) -> dict:
    """Ten seconds with names replaced by their entity type; the redacted audio is mp3."""
    return transcripts["named"]


def test_every_setting_is_echoed_and_every_result_is_there(everything):
    """No requested result is null, and there are no internal fields."""
    assert {name: everything[name] for name in SENT} == SENT
    results = (
        "text words utterances confidence audio_duration language_code language_model acoustic_model "
        "auto_highlights_result content_safety_labels entities chapters iab_categories_result custom_topics_results "
        "sentiment_analysis_results summary"
    )
    assert [name for name in results.split() if everything[name] is None] == []
    assert not [name for name in everything if "span" in name]


def test_results_are_of_this_recording(everything):
    """The results mention trees, two speakers, and times within the transcribed part."""
    assert "trees" in {phrase["text"].split()[-1] for phrase in everything["auto_highlights_result"]["results"]}
    assert everything["custom_topics_results"]["summary"].keys() == {"street trees"}
    assert {turn["speaker"] for turn in everything["utterances"]} == {"A", "B"}
    assert {part[:3] for part in everything["summary"].replace(" B: ", "\nB: ").split("\n")} <= {"A: ", "B: "}
    kinds = [entity["entity_type"] for entity in everything["entities"]]
    assert kinds == ["date", "person_name", "person_name", "organization", "duration"]
    assert everything["chapters"][0]["start"] == everything["words"][0]["start"]
    assert everything["chapters"][-1]["end"] == everything["words"][-1]["end"] <= 25_000
    assert "Good morning, #####." in {item["text"][:20] for item in everything["sentiment_analysis_results"]}
    assert "STREET" in everything["text"]


def test_analyses_point_at_the_words(everything):
    """The times of key phrases and entities are those of their words."""
    words = everything["words"]
    for phrase in everything["auto_highlights_result"]["results"]:
        for span in phrase["timestamps"]:
            said = [word["text"] for word in words if span["start"] <= word["start"] and word["end"] <= span["end"]]
            assert [stem(search_form(text)) for text in said] == [
                stem(search_form(text)) for text in phrase["text"].split()
            ]
    for entity in everything["entities"]:
        assert entity["start"] in {word["start"] for word in words}
        assert entity["end"] in {word["end"] for word in words}


def test_no_endpoint_returns_redacted_words(service, everything):
    """No endpoint returns a redacted word."""
    base = f"/v2/transcript/{everything['id']}"
    answers = [service.get(f"{base}{view}") for view in ("", "/sentences", "/paragraphs", "/srt", "/vtt")]
    asked = {"transcript_ids": [everything["id"]]}
    for task, more in (
        ("summary", {}),
        ("task", {"prompt": "List every name, date and organization that is mentioned."}),
        ("question-answer", {"questions": [{"question": "Who is being interviewed, and on what day?"}]}),
        ("action-items", {}),
    ):
        answers.append(service.request("POST", f"/llm/v3/generate/{task}", json={**asked, **more}))
        answers.append(service.get(f"/llm/v3/{answers[-1].json()['request_id']}"))
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert [word for word in PERSONAL if word in answer.text.lower()] == [], answer.url
    found = service.get(f"{base}/word-search", params={"words": ",".join((*PERSONAL, "paul baker"))}).json()
    assert (found["total_count"], found["matches"]) == (0, [])
    assert [word for word in PERSONAL if word in service.log.read_text().lower()] == []


def test_redacted_words_were_recognized(transcripts):
    """The same recording without redaction contains the redacted words."""
    text = transcripts["bare"]["text"].lower()  # its words may differ in form: a boosted word is a hint for the decoder
    assert [word for word in PERSONAL if word not in text] == []


def test_a_name_is_replaced_by_its_entity_type(named):
    """A whole name becomes one entity type, for the requested policies only."""
    assert "[PERSON_NAME]" in named["text"].split()
    assert "Tuesday" in named["text"]
    assert named["redact_pii_sub"] == "entity_name"
    assert "baker" not in json.dumps(named).lower()


def _fetched(service, transcript: dict, path: Path) -> tuple[str, np.ndarray]:
    """Return the media type and the samples of a transcript's redacted audio."""
    ready = service.get(f"/v2/transcript/{transcript['id']}/redacted-audio")
    assert ready.json()["status"] == "redacted_audio_ready"
    answer = requests.get(ready.json()["redacted_audio_url"], timeout=10)
    path.write_bytes(answer.content)
    return answer.headers["content-type"], _samples(path)


def _samples(path: Path) -> np.ndarray:
    return np.concatenate(list(Audio(path, keep_rate=True).blocks()), axis=1)[0]


def _tone(sound: np.ndarray, start_ms: int, end_ms: int) -> float:
    """Return the share of the tone's frequency in the power of a span."""
    part = sound[start_ms * 16 : end_ms * 16].astype(float)
    power = np.abs(np.fft.rfft(part * np.hanning(len(part)))) ** 2
    at = np.abs(np.fft.rfftfreq(len(part), 1 / 16_000) - TONE_HZ) < 30
    return power[at].sum() / power.sum()


def test_audio_is_covered_where_it_is_personal_and_nowhere_else(service, everything, tmp_path):
    """As wav, the tone covers entities and untranscribed parts; all other samples are unchanged."""
    kind, sound = _fetched(service, everything, tmp_path / "a.wav")
    original = _samples(RECORDING)
    assert kind == "audio/wav"
    assert len(sound) == len(original)
    spans = [(entity["start"], entity["end"]) for entity in everything["entities"]]
    assert min(_tone(sound, *span) for span in [*spans, (26_000, 27_000)]) > 0.99
    assert max(_tone(original, *span) for span in spans) < 0.5
    covered = np.zeros(len(sound), bool)
    for start, end in [*spans, (25_000, 10**6)]:
        covered[max(0, start - 100) * 16 : (end + 100) * 16] = True
    assert (sound[~covered] == original[~covered]).all()
    assert 0.5 < (~covered[: 25_000 * 16]).mean() < 0.9


def test_audio_as_mp3_is_as_long_and_covered_too(service, named, tmp_path):
    """As mp3, the tone covers the name, and the duration is that of the recording."""
    kind, sound = _fetched(service, named, tmp_path / "a.mp3")
    assert kind == "audio/mpeg"
    assert abs(len(sound) - len(_samples(RECORDING))) / 16 < 100
    name = next(word for word in named["words"] if word["text"].startswith("[PERSON"))
    assert _tone(sound, name["start"] + 50, name["end"]) > 0.98
    tuesday = next(word for word in named["words"] if word["text"].startswith("Tuesday"))
    assert _tone(sound, tuesday["start"], tuesday["end"]) < 0.5
