"""The whisper engine with the real models tiny.en and base."""

import os
import re
import wave
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path

import av
import jiwer
import numpy as np
import pytest
from faster_whisper import WhisperModel

from voxframe import models
from voxframe.errors import SettingsError
from voxframe_engine import JobFailed
from voxframe_engine.speech import RATE, EngineOptions, engines, whisper
from voxframe_engine.speech.audio import Audio
from voxframe_engine.speech.whisper import Whisper
from voxframe_engine.transcription import run_job

DATA = Path(__file__).parents[2] / "data"
pytestmark = pytest.mark.speech


SOUNDS = ["silence", "faint noise", "white noise", "hum", "chord", "music"]


@cache
def without_speech() -> dict[str, np.ndarray]:
    """Return one minute each of six sounds without speech, -1 to 1."""
    chance, seconds = np.random.default_rng(1), np.arange(60 * RATE) / RATE
    chord = sum(np.sin(2 * np.pi * hertz * seconds) for hertz in (220, 277.18, 329.63, 440))
    beat = seconds % 0.5  # 120 per minute
    notes = 220 * 2 ** (chance.choice([0, 2, 4, 7, 9, 12], 120)[(seconds // 0.5).astype(int)] / 12)
    bass = 110 * 2 ** (np.array([0, 5, 7, 0])[(seconds // 2).astype(int) % 4] / 12)
    melody = sum(np.sin(2 * np.pi * np.cumsum(notes * k) / RATE) / k for k in (1, 2, 3, 4)) * np.exp(-3 * beat)
    drum = chance.normal(0, 1, len(seconds)) * np.exp(-40 * beat)
    return {
        "silence": np.zeros(len(seconds)),
        "faint noise": chance.normal(0, 0.003, len(seconds)),
        "white noise": chance.normal(0, 0.1, len(seconds)),
        "hum": 0.1 * sum(np.sin(2 * np.pi * 50 * k * seconds) / k for k in (1, 2, 3, 5)),
        "chord": chord * np.exp(-2 * (seconds % 1.0)) / 8,
        "music": 0.15 * melody + 0.1 * np.sin(2 * np.pi * np.cumsum(bass) / RATE) + 0.1 * drum,
    }


@cache
def loaded(model: Path) -> Whisper:
    """Return the engine with a model, loaded once."""
    return Whisper(EngineOptions(str(model), "en"))


def invented(model: Path, sound: np.ndarray) -> list[str]:
    """Return the words that the engine finds in a sound if no detector of speech protects it."""
    samples = (np.clip(sound[: 28 * RATE], -1, 1) * 32767).astype(np.int16)
    return [word.text for word in loaded(model).transcribe(samples)]


@pytest.mark.long
@pytest.mark.parametrize("sound", SOUNDS)
def test_tiny_model_finds_no_words_in_sounds_without_speech(sound, model_folder):
    """Silence, noise, hum, a chord and music give no words."""
    assert invented(model_folder("tiny.en"), without_speech()[sound]) == []


@pytest.mark.long
@pytest.mark.parametrize("sound", SOUNDS)
def test_multilingual_model_finds_no_words_in_sounds_without_speech(sound, model_folder):
    """Silence, noise, hum, a chord and music give no words."""
    assert invented(model_folder("base"), without_speech()[sound]) == []


@pytest.mark.parametrize("speech_model", ["nano", pytest.param("best", marks=pytest.mark.long)])
@pytest.mark.parametrize("sound", SOUNDS)
def test_transcript_of_a_minute_without_speech_is_empty(sound, speech_model, model_folder, tmp_path):
    """Whatever the detector of speech lets through, no words come out."""
    model_folder("tiny.en" if speech_model == "nano" else "base")
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((np.clip(without_speech()[sound], -1, 1) * 32767).astype("<i2").tobytes())
    assert run_job(path, {"speech_model": speech_model}, engine="whisper")["words"] == []


def test_french_is_detected_and_written_as_the_model_writes_it(audio_folder, model_folder):
    """Code and confidence are in the result; the text has the model's accents, apostrophes and full stop."""
    model_folder("base")
    result = run_job(audio_folder / "french.aiff", {"language_detection": True}, engine="whisper")
    assert result["language_code"] == "fr"
    assert result["language_confidence"] > 0.9
    assert result["acoustic_model"] == "whisper:base"
    assert result["text"].lower().startswith("et c'est la dictée numéro")
    assert result["text"].endswith(".")


def test_words_of_other_languages_are_no_english_filled_pauses_or_swear_words(audio_folder, model_folder):
    """German "er" (he) stays, and a list of English swear words masks nothing in French."""
    model_folder("base")
    plain, whole = (
        run_job(audio_folder / "ss-0880.wav", {"language_code": "de", "disfluencies": keep}, engine="whisper")
        for keep in (False, True)
    )
    assert plain["text"] == whole["text"]
    assert plain["words"][0]["text"] == "Er"
    options = {
        "language_detection": True,
        "filter_profanity": True,
        "custom_spelling": [{"from": ["dictée"], "to": "Dick"}],
    }
    assert "Dick" in run_job(audio_folder / "french.aiff", options, engine="whisper")["text"]


def test_mandarin_is_detected_and_a_higher_threshold_refuses_it(audio_folder, model_folder):
    """The text has no spaces; the error names the language, the confidence and the threshold."""
    model_folder("base")
    result = run_job(audio_folder / "chinese.flac", {"language_detection": True}, engine="whisper")
    assert result["language_code"] == "zh"
    assert "自己的脚" in result["text"]  # in simplified characters, without spaces
    assert " ".join(word["text"] for word in result["words"]) != result["text"]
    assert 0.9 < result["language_confidence"] < 0.9999
    options = {"language_detection": True, "language_confidence_threshold": 0.9999}
    with pytest.raises(JobFailed, match=r"language 'zh' has a confidence of 0\.\d+, less than .* of 0\.9999"):
        run_job(audio_folder / "chinese.flac", options, engine="whisper")


def test_nano_uses_the_english_model_and_names_it(audio_folder, model_folder):
    """English with `speech_model` nano is transcribed by tiny.en, other languages by base."""
    model_folder("tiny.en")
    result = run_job(audio_folder / "ss-0930.wav", {"speech_model": "nano"}, engine="whisper")
    assert result["acoustic_model"] == "whisper:tiny.en"
    text = re.sub(r"[^a-z ]", "", result["text"].lower())
    assert jiwer.wer("he might even have been made amiable himself", text) < 0.15
    assert engines.default_model("whisper", "nano", "fr") == "base"
    assert engines.default_model("whisper", "nano", None) == "base"
    assert engines.default_model("whisper", "best", "en_us") == "base"


def test_no_decode_of_fast_speech_ends_at_the_limit_of_tokens(audio_folder, model_folder, monkeypatch):
    """Speech that is twice as fast is transcribed to its end, and no decode of it runs into the limit of tokens."""
    names = ("libri-2412-0.flac", "libri-2412-1.flac", "ss-0870.wav", "ss-0920.wav")
    sound = np.concatenate([np.concatenate(list(Audio(audio_folder / name).blocks()), axis=1)[0] for name in names])
    graph = av.filter.Graph()
    graph.link_nodes(
        graph.add_abuffer(format="s16", sample_rate=RATE, layout="mono", time_base=Fraction(1, RATE)),
        graph.add("atempo", "2.2"),
        graph.add("abuffersink"),
    ).configure()
    frame = av.AudioFrame.from_ndarray(sound[None], format="s16", layout="mono")
    frame.sample_rate, frame.pts = RATE, 0
    graph.push(frame)
    graph.push(None)
    fast = []
    with suppress(EOFError, av.EOFError):
        while True:
            fast.append(graph.pull().to_ndarray()[0])
    model_folder("base")
    decoded, real = [], Whisper._segments
    monkeypatch.setattr(Whisper, "_segments", lambda *a, **how: decoded.append(real(*a, **how)) or decoded[-1])
    words = Whisper(EngineOptions("base", "en")).transcribe(np.concatenate(fast)[: 29 * RATE])
    assert 0 < max(len(segment.tokens) for segments in decoded for segment in segments) < 200
    text = " ".join(word.text for word in words).lower()
    assert all(word in text for word in ("reader", "native", "painful", "design", "strange", "dashwood", "respect"))


def test_small_models_use_one_thread_per_window(model_folder, monkeypatch):
    """As many windows as there are cores are decoded at once, so a second thread would need a core that is busy."""
    threads = []
    real = WhisperModel.__init__
    monkeypatch.setattr(
        WhisperModel, "__init__", lambda *a, **how: threads.append(how["cpu_threads"]) or real(*a, **how)
    )
    whisper._loaded.clear()
    Whisper(EngineOptions(str(model_folder("tiny.en"))))
    assert threads == [1]
    assert not engines.EngineChoice("whisper").uses_all_cores


@pytest.mark.parametrize(("device", "has_card"), [("auto", True), ("cuda", True), ("cuda", False)])
def test_a_card_that_cannot_decode_is_not_used(device, has_card, model_folder, monkeypatch, caplog):
    """The warning has the reason, that of the library if a trial fails, and jobs use the processor."""
    model_folder("tiny.en")
    monkeypatch.setenv("VOXFRAME_DEVICE", device)
    monkeypatch.setattr(whisper, "_has_card", lambda: has_card)  # this machine has none
    whisper._loaded.clear()
    Whisper.check("tiny.en")
    assert len(caplog.messages) == 1
    assert re.search("CUDA" if has_card else "no driver of NVIDIA", caplog.messages[0])
    assert os.environ["VOXFRAME_DEVICE"] == "cpu"
    assert not Whisper.uses_all_cores("tiny.en")
    assert whisper._load("tiny.en").model.device == "cpu"


def test_devices_are_auto_cpu_and_cuda(model_folder, monkeypatch):
    """An unknown device is refused with the allowed ones."""
    model_folder("tiny.en")
    monkeypatch.setenv("VOXFRAME_DEVICE", "gpu")
    with pytest.raises(SettingsError, match="VOXFRAME_DEVICE is 'gpu'; it must be auto, cpu or cuda"):
        Whisper.check("tiny.en")


def test_large_models_are_loaded_once(tmp_path):
    """A model that does not fit into every worker gets all cores for one job."""
    with (tmp_path / "model.bin").open("wb") as file:
        file.truncate(1_500_000_000)  # sparse
    assert engines.EngineChoice("whisper", str(tmp_path)).uses_all_cores
    assert engines.uses_all_cores("whisper", str(tmp_path))


def test_missing_models_without_downloads_are_an_error(monkeypatch, tmp_path):
    """The message names the model, the setting that forbids the download, and the command."""
    for name in (models.CACHE_VARIABLE, "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv(models.OFFLINE_VARIABLE, "1")
    with pytest.raises(SettingsError, match=r"'base' is not on .* VOXFRAME_OFFLINE .*`voxframe models get base`"):
        engines.select_engine("whisper")


def test_server_without_models_starts_and_says_so(monkeypatch, tmp_path, caplog):
    """Without a choice of engine, the log says once what cannot be done and which command helps."""
    for name in (models.CACHE_VARIABLE, "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("HF_HUB_CACHE", "VOXFRAME_ENGINE", "VOXFRAME_MODEL", "VOXFRAME_MODEL_NANO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(models.OFFLINE_VARIABLE, "1")
    assert engines.select_engine() == engines.EngineChoice("whisper")
    (said,) = caplog.messages
    assert "`voxframe models get base`" in said
    assert "nothing can be transcribed" in said


def test_one_model_is_enough_for_english(monkeypatch, tmp_path, model_folder, caplog):
    """If only tiny.en is on this machine, English is transcribed with it, and the log names the other model."""
    (tmp_path / "tiny.en").symlink_to(model_folder("tiny.en"))
    for name in (models.CACHE_VARIABLE, "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv(models.OFFLINE_VARIABLE, "1")
    assert engines.select_engine("whisper").engine == "whisper"
    assert "'base' is not on this machine" in caplog.text
    assert engines.default_model("whisper", "best", "en_us") == "tiny.en"
    assert engines.default_model("whisper", None, "fr") == "base"


def test_service_starts_without_naming_a_model(start, audio_folder, model_folder):
    """`--engine whisper` alone transcribes with the models of the store."""
    cache = {models.CACHE_VARIABLE: str(model_folder("tiny.en").parent), models.OFFLINE_VARIABLE: "1"}
    model_folder("base")
    service = start("--engine", "whisper", environment=cache)
    upload = service.upload((audio_folder / "ss-0930.wav").read_bytes())
    done = service.wait(service.create(upload, speech_model="nano")["id"])
    assert done["acoustic_model"] == "whisper:tiny.en"
    assert done["text"].lower().strip(".") == "he might even have been made amiable himself"
