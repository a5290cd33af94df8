import io
import sys

import pytest

import voxframe
from voxframe.errors import SettingsError
from voxframe.service import opening
from voxframe.settings import ENVIRONMENT


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)


def test_address_and_key_are_enough(key):
    """Nothing is sent by connecting, and the key shows nowhere."""
    client = voxframe.connect("https://speech.example/", api_key=key)
    assert client.base_url == "https://speech.example"
    assert key not in repr(client) + repr(client.settings)


def test_a_key_without_an_address_says_what_to_set(key):
    """No default address of a hosted service is known."""
    with pytest.raises(
        SettingsError, match=r"a key but no address.*base_url='https://host'.*VOXFRAME_BASE_URL"
    ) as caught:
        voxframe.connect(api_key=key)
    assert key not in str(caught.value)


def test_an_address_without_a_key_says_what_to_set(monkeypatch):
    """Where nobody can type, the message names argument and variable."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SettingsError, match=r"no key for https://speech\.example.*api_key=.*VOXFRAME_API_KEY"):
        voxframe.connect("https://speech.example")


def test_a_key_is_asked_for_where_somebody_can_type_it(monkeypatch, key, capsys):
    """The prompt does not echo; an empty answer is no key."""
    monkeypatch.setattr(opening, "in_notebook", lambda: True)
    prompts = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: prompts.append(prompt) or key)
    client = voxframe.connect("https://speech.example")
    assert client.settings.api_key.reveal() == key
    assert prompts == ["API key for https://speech.example: "]
    assert key not in "".join(capsys.readouterr())
    monkeypatch.setattr("getpass.getpass", lambda prompt: " ")
    with pytest.raises(SettingsError, match="there is no key"):
        voxframe.connect("https://speech.example")


def test_a_notebook_run_by_a_program_is_not_asked(monkeypatch):
    """A kernel without a front end cannot ask; the message says what to set instead of hanging."""

    def nobody(prompt):
        raise NotImplementedError("raw_input was called, but this frontend does not support input requests")

    monkeypatch.setattr(opening, "in_notebook", lambda: True)
    monkeypatch.setattr("getpass.getpass", nobody)
    with pytest.raises(SettingsError, match="VOXFRAME_API_KEY"):
        voxframe.connect("https://speech.example")


def test_with_nothing_configured_the_embedded_service_is_used_and_said_once(tmp_path, monkeypatch, capsys):
    """It starts, answers with its own key, and one line on stderr says where the data is."""
    monkeypatch.setattr(opening, "_noticed", False)
    monkeypatch.setenv("VOXFRAME_LLM_PREFIX", "some-llm")
    with voxframe.connect(data_dir=tmp_path) as client, voxframe.connect(data_dir=tmp_path) as again:
        assert client.base_url.startswith("http://127.0.0.1:")
        assert again.base_url == client.base_url
        assert client.settings.stream_url == client.base_url.replace("http", "ws")
        assert (client.settings.llm_prefix, client.settings.data_dir) == ("some-llm", tmp_path)
        assert len(client.list()) == 0
        with pytest.raises(voxframe.errors.NotFoundError):
            client.transcript("6d1cc5ab-0000-4000-8000-000000000000")
    said = capsys.readouterr().err
    assert said.count("using the embedded one on this machine") == 1
    assert str(tmp_path) in said
    assert client.settings.api_key.reveal() not in said


def test_a_notebook_shows_that_line_as_ordinary_text(monkeypatch, capsys):
    """What goes to stderr is a red box in a notebook, and nothing is wrong."""
    monkeypatch.setattr(opening, "_noticed", False)
    monkeypatch.setattr(opening, "in_notebook", lambda: True)
    opening._notice("voxframe: using the embedded one\n")
    opening._notice("voxframe: using the embedded one\n")
    assert tuple(capsys.readouterr()) == ("voxframe: using the embedded one\n", "")
