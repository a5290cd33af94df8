import io
import sys

import pytest

import voxframe
from voxframe import client as connecting
from voxframe.errors import SettingsError
from voxframe.settings import ENVIRONMENT


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)


def test_url_and_key_are_enough(key):
    """`connect` sends no request, and the client shows the key nowhere."""
    client = voxframe.connect("https://speech.example/", api_key=key)
    assert client.base_url == "https://speech.example"
    assert key not in repr(client) + repr(client.settings)


def test_a_key_without_a_url_is_an_error(key):
    """A key without a URL raises an error that names the argument and the variable."""
    with pytest.raises(SettingsError, match=r"a key but no URL.*base_url='https://host'.*VOXFRAME_BASE_URL") as caught:
        voxframe.connect(api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("given", ["argument", "environment"])
def test_a_url_for_streaming_without_that_of_the_service_is_an_error(given, monkeypatch):
    """A URL for streaming alone is refused, with a message that names base_url: the embedded server would ignore it."""
    if given == "environment":
        monkeypatch.setenv("VOXFRAME_STREAM_URL", "wss://speech.example")
    with pytest.raises(SettingsError, match=r"a URL for streaming but no URL of the service.*VOXFRAME_BASE_URL"):
        voxframe.connect(stream_url="wss://speech.example" if given == "argument" else None)


def test_a_url_without_a_key_is_an_error_in_a_script(monkeypatch):
    """Without a terminal, the error names the argument and the variable."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SettingsError, match=r"no key for https://speech\.example.*api_key=.*VOXFRAME_API_KEY"):
        voxframe.connect("https://speech.example")


def test_an_interactive_session_prompts_for_the_key(monkeypatch, key, capsys):
    """The prompt does not echo the key; empty input raises an error."""
    monkeypatch.setattr(connecting, "in_notebook", lambda: True)
    prompts = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: prompts.append(prompt) or key)
    client = voxframe.connect("https://speech.example")
    assert client.settings.api_key.reveal() == key
    assert prompts == ["API key for https://speech.example: "]
    assert key not in "".join(capsys.readouterr())
    monkeypatch.setattr("getpass.getpass", lambda prompt: " ")
    with pytest.raises(SettingsError, match="there is no key"):
        voxframe.connect("https://speech.example")


def test_a_notebook_run_by_a_program_is_not_prompted(monkeypatch):
    """A kernel without a front end raises an error instead of waiting for input."""

    def nobody(prompt):
        raise NotImplementedError("raw_input was called, but this frontend does not support input requests")

    monkeypatch.setattr(connecting, "in_notebook", lambda: True)
    monkeypatch.setattr("getpass.getpass", nobody)
    with pytest.raises(SettingsError, match="VOXFRAME_API_KEY"):
        voxframe.connect("https://speech.example")


def test_the_embedded_server_is_the_default(tmp_path, monkeypatch, capsys):
    """The embedded server starts with its own key, and one line on stderr names the data directory."""
    monkeypatch.setattr(connecting, "_noticed", False)
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
    assert said.count("using the embedded server") == 1
    assert str(tmp_path) in said
    assert client.settings.api_key.reveal() not in said


def test_a_notebook_shows_the_notice_on_stdout(monkeypatch, capsys):
    """In a notebook the notice goes to stdout, because stderr is shown as a red box."""
    monkeypatch.setattr(connecting, "_noticed", False)
    monkeypatch.setattr(connecting, "in_notebook", lambda: True)
    connecting._notice("voxframe: using the embedded one\n")
    connecting._notice("voxframe: using the embedded one\n")
    assert tuple(capsys.readouterr()) == ("voxframe: using the embedded one\n", "")
