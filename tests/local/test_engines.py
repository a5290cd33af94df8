"""Speech engines and the languages they know."""

import numpy as np
import pytest

from voxframe.local import engines


def test_sphinx_is_built_in_and_knows_english():
    """The four English codes, and the interface's default for none."""
    assert "sphinx" in engines.names()
    assert engines.find().name == "sphinx"
    assert all(engines.supports(code) for code in (None, "en", "en_us", "en_uk", "en_au"))
    assert not any(engines.supports(code) for code in ("es", "de", "ja", "nonsense"))


def test_a_refusal_names_the_language_the_engine_and_the_way_on():
    """Whoever asks for Spanish hears what this engine can do, and what would know Spanish."""
    text = engines.refusal("es")
    assert "'es'" in text
    assert "sphinx engine transcribes en, en_au, en_uk, en_us only" in text
    assert "install one that does" in text
    assert "base_url" in text


def test_an_unknown_engine_is_an_error_that_lists_those_there_are():
    """A name that is not installed."""
    with pytest.raises(LookupError, match=r"'nosuch'; installed are .*sphinx"):
        engines.find("nosuch")


def test_another_package_adds_an_engine(tmp_path, monkeypatch):
    """A class named in the entry point group is found, and a refusal of its language points to it."""
    (tmp_path / "echo_engine.py").write_text(
        "from voxframe.local.engines import Heard\n"
        "class Echo:\n"
        "    name, model, languages = 'echo', 'echo', frozenset({'es'})\n"
        "    def transcribe(self, samples):\n"
        "        return [Heard('hola', 0, 100, 1.0)]\n"
    )
    metadata = tmp_path / "echo_engine-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-engine\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[voxframe.engines]\necho = echo_engine:Echo\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert engines.names() == ["echo", "sphinx"]
    assert engines.find("echo")().transcribe(np.zeros(1, np.int16)) == [engines.Heard("hola", 0, 100, 1.0)]
    assert engines.supports("es", "echo")
    assert engines.refusal("es").endswith("start the service with an engine that knows it: echo")


def test_an_entry_of_the_dictionary_becomes_the_word_that_was_spoken():
    """Numbered variants, initials, letters and abbreviations are written as they are said."""
    from voxframe.local.engines.sphinx import _spoken

    entries = ["read(2)", "u.s.", "b.", "mr", "dr(2)", "dr", "us(2)", "us", "i'm", "u.s.a.(2)"]
    assert [_spoken(entry) for entry in entries] == [
        *("read", "US", "B", "mister", "doctor", "drive", "US", "us", "i'm", "USA")
    ]
