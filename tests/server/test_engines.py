"""Speech engines and the languages they know."""

from pathlib import Path

import numpy as np
import pytest

from voxframe.options import LANGUAGE_CODES
from voxframe_engine.errors import JobFailed
from voxframe_engine.speech import RATE, engines


def test_sphinx_is_built_in_and_knows_english():
    """The four English codes, and the interface's default for none."""
    assert "sphinx" in engines.names()
    assert all(engines.supports(code, "sphinx") for code in (None, "en", "en_us", "en_uk", "en_au"))
    assert not any(engines.supports(code, "sphinx") for code in ("es", "de", "ja", "nonsense"))


def test_default_engine_knows_all_languages_of_the_interface():
    """Whisper is the default, and an unknown code is not supported."""
    assert engines.find().name == "whisper"
    assert all(engines.supports(code) for code in (None, *LANGUAGE_CODES))
    assert not engines.supports("nonsense")


def test_a_refusal_names_the_language_the_engine_and_the_way_on():
    """The message for Spanish lists the languages of this engine and the engines that support Spanish."""
    text = engines.refusal("es", "sphinx")
    assert "'es'" in text
    assert "sphinx engine transcribes en, en_au, en_uk, en_us only" in text
    assert "restart the server with --engine and one of: whisper" in text


def test_an_unknown_engine_is_an_error_that_lists_those_there_are():
    """A name that is not installed."""
    with pytest.raises(LookupError, match=r"'nosuch'; installed are .*sphinx"):
        engines.find("nosuch")


@pytest.fixture
def parrot(tmp_path):
    """Another package's distribution: one file and one entry point; it hears "hola" in everything."""
    (tmp_path / "parrot_engine.py").write_text(
        "from voxframe_engine.speech.engines import DEFAULT_OPTIONS, RecognizedWord\n"
        "class Parrot:\n"
        "    name, model, languages = 'parrot', 'parrot_1', frozenset({'es'})\n"
        "    def __init__(self, wanted=DEFAULT_OPTIONS):\n"
        "        pass\n"
        "    def transcribe(self, samples):\n"
        "        return [RecognizedWord('hola', 0, 100, 1.0)]\n"
    )
    metadata = tmp_path / "parrot_engine-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot-engine\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[voxframe.engines]\nparrot = parrot_engine:Parrot\n")
    return tmp_path


def test_another_package_adds_an_engine(parrot, monkeypatch):
    """A class named in the entry point group is found, and a refusal of its language points to it."""
    monkeypatch.syspath_prepend(parrot)
    assert engines.names() == ["parrot", "sphinx", "whisper"]
    assert engines.find("parrot")().transcribe(np.zeros(1, np.int16)) == [engines.RecognizedWord("hola", 0, 100, 1.0)]
    assert engines.supports("es", "parrot")
    assert engines.refusal("es", "sphinx").endswith("restart the server with --engine and one of: parrot, whisper")


def test_a_service_works_with_another_packages_engine(parrot, start):
    """Jobs are done by it and say so, in the language it knows; what it cannot do is refused in its name."""
    recording = (Path(__file__).parents[2] / "data" / "call.flac").read_bytes()
    service = start("--engine", "parrot", environment={"PYTHONPATH": str(parrot)})
    upload = service.upload(recording)
    done = service.wait(service.create(upload, language_code="es", audio_end_at=5000)["id"])
    assert {word["text"].strip("¿?.").lower() for word in done["words"]} == {"hola"}
    assert done["acoustic_model"] == "parrot_1"
    refused = service.request("POST", "/v2/transcript", json={"audio_url": upload, "language_code": "de"})
    assert refused.status_code == 400
    assert "the parrot engine transcribes es only" in refused.json()["error"]


def test_an_entry_of_the_dictionary_becomes_the_word_that_was_spoken():
    """Numbered variants, initials, letters and abbreviations become the words as spoken."""
    from voxframe_engine.speech.engines.sphinx import _spoken

    entries = ["read(2)", "u.s.", "b.", "mr", "dr(2)", "dr", "us(2)", "us", "i'm", "u.s.a.(2)"]
    assert [_spoken(entry) for entry in entries] == [
        *("read", "US", "B", "mister", "doctor", "drive", "US", "us", "i'm", "USA")
    ]


def test_a_job_from_before_another_engine_was_chosen_fails_with_a_reason():
    """A queued job with language detection meets an engine without it: the way on is told."""
    with pytest.raises(JobFailed, match="language_detection is not available: the sphinx engine cannot detect"):
        engines.detect_language("sphinx", None, np.zeros(RATE, np.int16))
