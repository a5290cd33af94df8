"""Speech engines and the languages they know."""

from pathlib import Path

import numpy as np
import pytest

from voxframe import models
from voxframe.errors import SettingsError
from voxframe.options import LANGUAGE_CODES
from voxframe_engine import JobFailed
from voxframe_engine.speech import RATE, engines


def test_default_engine_knows_all_languages_of_the_interface():
    """Whisper is the default, and an unknown code is not supported."""
    assert engines.find().name == "whisper"
    assert all(engines.supports(code) for code in (None, *LANGUAGE_CODES))
    assert not engines.supports("nonsense")


def test_a_refusal_names_the_language_the_engine_and_the_way_on():
    """The message for French lists the languages of this engine and the engines that support French."""
    text = engines.refusal("fr", "parrot")
    assert "'fr'" in text
    assert "parrot engine transcribes en_us, es only" in text
    assert text.endswith("restart the server with --engine and one of: whisper")


def test_an_unknown_engine_is_an_error_that_lists_those_there_are():
    """A name that is not installed."""
    with pytest.raises(SettingsError, match=r"'nosuch'; installed are .*whisper"):
        engines.find("nosuch")


def test_another_package_adds_an_engine():
    """A class named in the entry point group is found, with the languages that it knows."""
    assert engines.names() == ["parrot", "whisper"]
    assert engines.find("parrot")().transcribe(np.zeros(1, np.int16)) == [engines.RecognizedWord("hola", 0, 100, 1.0)]
    assert engines.supports("es", "parrot")
    assert not engines.supports("fr", "parrot")


def test_a_service_works_with_another_packages_engine(start):
    """Jobs are done by it and say so, in the language it knows; what it cannot do is refused in its name."""
    recording = (Path(__file__).parents[2] / "data" / "call.flac").read_bytes()
    service = start("--engine", "parrot")
    upload = service.upload(recording)
    done = service.wait(service.create(upload, language_code="es", audio_end_at=5000)["id"])
    assert {word["text"].strip("¿?.").lower() for word in done["words"]} == {"hola"}
    assert done["acoustic_model"] == "parrot_1"
    refused = service.request("POST", "/v2/transcript", json={"audio_url": upload, "language_code": "de"})
    assert refused.status_code == 400
    assert "the parrot engine transcribes en_us, es only" in refused.json()["error"]


@pytest.mark.speech
def test_a_service_without_models_says_which_command_gets_one(start, tmp_path):
    """It starts, its log has the command, and so does the error of a job with speech."""
    recording = (Path(__file__).parents[2] / "data" / "call.flac").read_bytes()
    nowhere = dict.fromkeys((models.CACHE_VARIABLE, "HF_HOME", "XDG_CACHE_HOME"), str(tmp_path / "empty"))
    service = start(environment=nowhere | {models.OFFLINE_VARIABLE: "1"})
    assert "`voxframe models get base`" in service.log.read_text()
    failed = service.wait(service.create(service.upload(recording), audio_end_at=5000)["id"])
    assert failed["status"] == "error"
    assert "`voxframe models get base`" in failed["error"]


def test_a_job_from_before_another_engine_was_chosen_fails_with_a_reason():
    """A queued job with language detection meets an engine without it: the way on is told."""
    with pytest.raises(JobFailed, match="language_detection is not available: the parrot engine cannot detect"):
        engines.detect_language("parrot", None, np.zeros(RATE, np.int16))
