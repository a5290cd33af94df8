"""The whisper engine, on models that the tests make."""

import itertools
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from faster_whisper import WhisperModel
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.tiny_whisper import make
from tests.server.conftest import KEY
from tests.server.local_stream import LocalStream

from voxframe.client import connect
from voxframe.errors import MissingExtraError, SettingsError
from voxframe_engine import JobFailed
from voxframe_engine.speech import EngineOptions, RecognizedWord, engines
from voxframe_engine.speech.whisper import Whisper, fit_into
from voxframe_engine.transcription import run_job

INTERVIEW = Path(__file__).parents[2] / "data" / "interview.flac"
SIX_SECONDS = np.random.default_rng(7).normal(0, 2000, 6 * 16_000).astype(np.int16)
FOUR_SECONDS = SIX_SECONDS[: 4 * 16_000]  # little more than a sentence of seven tokens, at half a second for each
SURE = math.exp(3) / (math.exp(3) + 98)  # of a language that leads 98 others by a logit of 3


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A model that hears "Guten Tag, liebe Welt." in everything."""
    says = [" Guten", " Tag", ",", " lie", "be", " Welt", "."]
    return make(tmp_path_factory.mktemp("models") / "german", says, language="de")


@pytest.fixture(scope="module")
def english_only(tmp_path_factory):
    """A model that knows no language but English."""
    return make(tmp_path_factory.mktemp("models") / "tiny.en", [" Good", " day", "."], multilingual=False)


def test_words_have_the_times_and_confidences_of_the_model(german):
    """Tokens become words with the time of their attention and the confidence of their tokens."""
    words = Whisper(EngineOptions(str(german), "de")).transcribe(FOUR_SECONDS)
    assert [word.text for word in words] == ["Guten", "Tag,", "liebe", "Welt."]
    assert [word.end_ms for word in words] == [1000, 1500, 3000, 3500]
    assert [word.start_ms for word in words[1:]] == [1000, 2000, 3000]
    assert all(word.confidence > 0.99 for word in words)


def test_boosted_words_are_told_to_the_model(german, monkeypatch):
    """Boosted words are passed as hot words; without any, none are."""
    asked = []
    real = WhisperModel.get_prompt
    monkeypatch.setattr(WhisperModel, "get_prompt", lambda *a, **how: asked.append(how["hotwords"]) or real(*a, **how))
    for boost in (("Ilse", "Blaue Berge"), ()):
        assert Whisper(EngineOptions(str(german), "de", boost)).transcribe(FOUR_SECONDS)
    assert asked == ["Ilse, Blaue Berge", None]


def test_options_without_effect_are_named():
    """Whisper leaves out most filled pauses, has no strength of a boost, and a prompt too short for many words."""
    wanted = {"disfluencies": True, "boost_param": "high", "word_boost": ["Ilse"], "speaker_labels": True}
    assert Whisper.ignored(wanted) == ["disfluencies that the model leaves out", "boost_param"]
    assert Whisper.ignored({"word_boost": ["Blaue Berge"] * 100}) == ["word_boost beyond 800 characters"]
    assert engines.ignored_options("parrot", wanted) == []


def test_response_and_client_name_ignored_options(start, german):
    """The header of the response names them, and the client warns; a job without such options has none."""
    service = start("--engine", "whisper", "--model", str(german))
    upload = service.upload(INTERVIEW.read_bytes())
    wanted = {"audio_url": upload, "audio_end_at": 1000}
    answer = service.request("POST", "/v2/transcript", json={**wanted, "disfluencies": True})
    assert answer.headers["X-Ignored-Options"] == "disfluencies that the model leaves out"
    assert "X-Ignored-Options" not in service.request("POST", "/v2/transcript", json=wanted).headers
    masking = {**wanted, "language_detection": True, "filter_profanity": True}
    answer = service.request("POST", "/v2/transcript", json=masking)
    assert answer.headers["X-Ignored-Options"] == "filter_profanity unless the speech is English"
    with (
        connect(service.url, api_key=KEY) as client,
        pytest.warns(UserWarning, match="ignores these options: boost_pa"),
    ):
        client.submit(upload, boost_param="high", audio_end_at=1000)


def test_repetition_loop_is_cut(tmp_path):
    """A sentence that the model repeats until its limit of tokens appears twice."""
    says = [" Guten", " Tag", ",", " lie", "be", " Welt", "."]
    model = make(tmp_path / "loop", says, language="de", loops=True)
    words = Whisper(EngineOptions(str(model), "de")).transcribe(SIX_SECONDS)
    assert [word.text for word in words] == ["Guten", "Tag,", "liebe", "Welt."] * 2


def test_text_that_ends_at_the_limit_of_tokens_is_decoded_in_smaller_pieces(tmp_path, monkeypatch):
    """Each half of the sound is decoded, and each half of that, down to 4 s; no sound is left out."""
    model = make(tmp_path / "loop", [" Guten", " Tag"], language="de", loops=True)
    engine, decoded = Whisper(EngineOptions(str(model), "de")), []
    real = Whisper._segments
    monkeypatch.setattr(Whisper, "_segments", lambda *a, **how: decoded.append(a[2]) or real(*a, **how))
    sound = np.random.default_rng(8).normal(0, 2000, 12 * 16_000).astype(np.int16)
    engine.transcribe(sound)
    pieces = list({piece.tobytes(): piece for piece in decoded}.values())  # each is decoded with two windows
    assert len(pieces[0]) == len(sound)
    assert np.array_equal(np.concatenate([piece for piece in pieces if len(piece) <= 4 * 16_000]), sound)


def test_sound_after_the_end_of_a_text_is_decoded_too(tmp_path):
    """A model may end its text at a pause; the rest is decoded again, and its words have the times of the rest."""
    model = make(tmp_path / "short", [" Guten", " Tag", "."], language="de")
    words = Whisper(EngineOptions(str(model), "de")).transcribe(SIX_SECONDS)
    assert [word.text for word in words] == ["Guten", "Tag."] * (len(words) // 2)
    assert len(words) >= 4
    assert words[2].start_ms >= words[1].end_ms
    assert words[-1].end_ms > 4000


def test_no_word_lies_outside_its_stretch(german):
    """Word times stay within the sound even if the model places words after it."""
    words = Whisper(EngineOptions(str(german), "de")).transcribe(SIX_SECONDS[: 2 * 16_000])
    assert words
    assert all(0 <= word.start_ms <= word.end_ms <= 2000 for word in words)


def test_a_language_is_detected_with_its_probability(german):
    """The language the model takes it for, and the model's own probability of it."""
    language, confidence = Whisper(EngineOptions(str(german))).detect(SIX_SECONDS)
    assert language == "de"
    assert confidence == pytest.approx(SURE, abs=0.005)


def test_every_language_of_the_interface_is_one_of_the_models():
    """The library has a token for every language of the engine."""
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    assert {code.split("_")[0] for code in Whisper.languages} <= set(_LANGUAGE_CODES)
    assert len(Whisper.languages) == 102


def test_a_job_detects_the_language_and_keeps_what_the_model_wrote(german):
    """Result fields of a detected language; capitals and punctuation as the model has them."""
    options = {"language_detection": True, "language_confidence_threshold": 0.1, "audio_end_at": 6000}
    result = run_job(INTERVIEW, options, engine="whisper", model=str(german))
    assert result["text"].startswith("Guten Tag, liebe Welt.")
    assert result["language_code"] == "de"
    assert result["language_confidence"] == pytest.approx(SURE, abs=0.005)
    assert result["acoustic_model"] == "whisper:german"


def test_a_language_that_is_too_unsure_fails_the_job(german):
    """The error names the language, the confidence and the threshold."""
    options = {"language_detection": True, "language_confidence_threshold": 0.9, "audio_end_at": 6000}
    with pytest.raises(JobFailed, match=r"'de' has a confidence of 0\.1\d\d, less than .* of 0\.9"):
        run_job(INTERVIEW, options, engine="whisper", model=str(german))


def test_no_speech_has_no_language(german, silent_wav, tmp_path):
    """Nothing to detect a language by is an error that says what to do."""
    (tmp_path / "silence.wav").write_bytes(silent_wav)
    with pytest.raises(JobFailed, match=r"No speech was found.*send language_code"):
        run_job(tmp_path / "silence.wav", {"language_detection": True}, engine="whisper", model=str(german))


def test_formatting_that_is_not_wanted_is_taken_off(german):
    """`punctuate` and `format_text` false: bare words; custom spellings find words that had a comma."""
    options = {"language_code": "de", "audio_end_at": 6000}
    plain = run_job(
        INTERVIEW, {**options, "punctuate": False, "format_text": False}, engine="whisper", model=str(german)
    )
    assert plain["text"].startswith("guten tag liebe welt")
    spelled = {**options, "custom_spelling": [{"from": ["tag"], "to": "Abend"}]}
    assert run_job(INTERVIEW, spelled, engine="whisper", model=str(german))["text"].startswith("Guten Abend, liebe")


def test_a_stream_ends_with_the_words_of_the_model(german):
    """Finals of a session come from the engine the service was started with."""
    from voxframe_engine.speech.audio import Audio

    sound = np.concatenate([block[0] for block in Audio(INTERVIEW, end_ms=4000).blocks()])
    stream = LocalStream(Whisper(EngineOptions(str(german))).transcribe)
    stream.send(sound, chunk=8000)
    stream.end()
    assert stream.of("Partial")
    assert stream.of("Final")[0]["text"].startswith("Guten Tag, liebe Welt.")


@pytest.mark.long
def test_a_service_maps_best_and_nano_to_models(start, german, tmp_path):
    """`speech_model` chooses between the two; the transcript says which; a language is echoed."""
    small = make(tmp_path / "nano", [" Kurz", "."])
    service = start("--engine", "whisper", "--model", str(german), "--nano-model", str(small))
    upload = service.upload(INTERVIEW.read_bytes())
    asked = {"language_code": "de", "audio_end_at": 4000}
    jobs = [service.create(upload, speech_model=model, **asked)["id"] for model in (None, "best", "nano")]
    made = [service.wait(job) for job in jobs]
    assert [one["status"] for one in made] == ["completed"] * 3
    assert [one["acoustic_model"] for one in made] == ["whisper:german", "whisper:german", "whisper:nano"]
    assert [one["text"].split()[0] for one in made] == ["Guten", "Guten", "Kurz."]
    assert {one["language_code"] for one in made} == {"de"}


def test_an_english_model_refuses_other_languages(english_only):
    """It would take everything for English without a word."""
    words = Whisper(EngineOptions(str(english_only), "en_uk")).transcribe(SIX_SECONDS[: 3 * 16_000])
    assert [word.text for word in words] == ["Good", "day."]
    with pytest.raises(JobFailed, match=r"tiny\.en knows English only, not 'de'"):
        Whisper(EngineOptions(str(english_only), "de"))
    with pytest.raises(JobFailed, match="send language_code instead"):
        Whisper(EngineOptions(str(english_only))).detect(SIX_SECONDS)


def test_what_is_no_model_is_said_so_before_the_service_starts(tmp_path, german):
    """No model named, no such directory, a file, a directory without a model or without one of its files."""
    with pytest.raises(SettingsError, match="neither a directory nor the name of a model"):
        Whisper.check(str(tmp_path / "nowhere"))
    with pytest.raises(SettingsError, match=r"is a file; give --model the directory"):
        Whisper.check(str(german / "model.bin"))
    with pytest.raises(SettingsError, match=r"has no whisper model for CTranslate2; missing: model\.bin, config"):
        Whisper.check(str(tmp_path))
    for name in ("config.json", "tokenizer.json", "vocabulary.json"):
        (tmp_path / name).symlink_to(german / name)
    with pytest.raises(SettingsError, match=r"CTranslate2; missing: model\.bin; convert"):
        Whisper.check(str(tmp_path))
    Whisper.check(str(german))


def test_a_broken_model_fails_the_job_with_a_reason(tmp_path, german):
    """Half a file is no reason to crash."""
    for name in ("config.json", "tokenizer.json", "vocabulary.json"):
        (tmp_path / name).symlink_to(german / name)
    (tmp_path / "model.bin").write_bytes((german / "model.bin").read_bytes()[:1000])
    with pytest.raises(JobFailed, match=r"could not be loaded .* complete"):
        Whisper(EngineOptions(str(tmp_path)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "127.0.0.1:9 cannot be reached (ConnectionError)"),
        ({"VOXFRAME_OFFLINE": "1"}, "VOXFRAME_OFFLINE forbids downloads"),
        ({"HF_ENDPOINT": "silent"}, "did not answer within 5 s"),
    ],
)
def test_a_name_that_cannot_be_downloaded_ends_the_service_soon(tmp_path, more, reason):
    """No network, no permission and a silent hub: the message names model, reason and what to do; nothing is served."""
    environment = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")} | more
    command = ["--port", "0", "--data-dir", str(tmp_path / "data"), "--engine", "whisper", "--model", "some/model"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        if environment["HF_ENDPOINT"] == "silent":
            environment["HF_ENDPOINT"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "voxframe_server", *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "whisper model some/model is not a directory and could not be downloaded" in done.stderr
    assert reason in done.stderr
    assert "pass its directory to --model" in done.stderr


def test_an_unknown_name_is_answered_with_those_there_are():
    """A name without a slash is one of a known list."""
    with pytest.raises(SettingsError, match=r"no directory medum and no whisper model of that name.*medium"):
        Whisper.check("medum")


def test_without_the_extra_its_name_is_given(monkeypatch, german):
    """The error names the extra to install."""
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'voxframe\[local\]'"):
        engines.select_engine("whisper", str(german))


def test_settings_come_from_arguments_then_the_environment(monkeypatch, german):
    """Names of engine and models; a model for an engine that takes none is an error."""
    monkeypatch.setenv("VOXFRAME_ENGINE", "whisper")
    monkeypatch.setenv("VOXFRAME_MODEL", str(german))
    assert engines.select_engine() == engines.EngineChoice("whisper", str(german), None)
    with pytest.raises(SettingsError, match="has a fixed model"):
        engines.select_engine("parrot")
    with pytest.raises(SettingsError, match=r"'nosuch'; installed are .*whisper, and VOXFRAME_ENGINE chooses one"):
        engines.select_engine("nosuch")
    assert engines.detects_language("whisper")
    assert not engines.detects_language("parrot")


@given(st.lists(st.integers(-200, 1300), max_size=40).map(sorted), st.integers(900, 1100))
def test_every_word_has_a_length_within_the_sound(bounds, last):
    """Words that the alignment gives no time, or that lie outside of the sound, get the least time there is."""
    words = [RecognizedWord("word", start, end, 1.0) for start, end in itertools.pairwise(bounds)]
    fitted = fit_into(words, last)
    assert all(0 <= word.start_ms <= word.end_ms - 20 and word.end_ms <= last for word in fitted)
    assert all(word.end_ms <= after.start_ms for word, after in itertools.pairwise(fitted))
