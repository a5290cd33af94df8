import copy
import dataclasses
import json
import pickle
import traceback
from pathlib import Path

import pytest

from voxframe.errors import SettingsError
from voxframe.settings import ENVIRONMENT, Secret, resolve

KEY = "k3y-that-must-not-show"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)


def test_arguments_override_the_environment_and_defaults(monkeypatch, tmp_path):
    """Each setting is taken from its argument, else from the environment, else from its default."""
    monkeypatch.setenv("VOXFRAME_BASE_URL", "https://env.example")
    monkeypatch.setenv("VOXFRAME_LLM_PREFIX", "env-llm")
    monkeypatch.setenv("VOXFRAME_API_KEY", "env-key")
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path))
    found = resolve("https://argument.example")
    assert (found.base_url, found.llm_prefix, found.data_dir) == ("https://argument.example", "env-llm", tmp_path)
    assert found.api_key == Secret("env-key")
    assert resolve(api_key="mine").api_key == Secret("mine")


def test_without_configuration_there_is_no_url():
    """Without configuration there is no URL and no key, and the data directory is that of the platform."""
    found = resolve()
    assert (found.base_url, found.stream_url, found.api_key, found.llm_prefix) == (None, None, None, "llm")
    assert found.data_dir.is_absolute()
    assert found.data_dir.name == "voxframe"


@pytest.mark.parametrize(
    ("base", "stream"),
    [
        ("https://host.example", "wss://host.example"),
        ("https://Host.Example/", "wss://host.example"),
        ("http://127.0.0.1:8080/api/", "ws://127.0.0.1:8080/api"),
        ("http://[::1]:80", "ws://[::1]:80"),
        ("http://localhost", "ws://localhost"),
    ],
)
def test_the_streaming_url_follows_the_base_url(base, stream):
    """The scheme changes from http to ws and from https to wss; host and path stay."""
    assert resolve(base).stream_url == stream


def test_a_streaming_url_can_be_given():
    """A service may stream from another host."""
    assert resolve("https://a.example", "wss://b.example").stream_url == "wss://b.example"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("host.example", "is not the URL of a service"),
        ("ftp://host.example", "is not the URL of a service"),
        ("https://", "is not the URL of a service"),
        ("https://host.example/a b", "is not the URL of a service"),
        ("https://user:secret@host.example", "contains a user name or password"),
        ("https://host.example?x=1", "without a query"),
        ("https://host.example/v2", "adds the version"),
        ("https://host.example:port", "is not a valid URL"),
        ("https://user:secret/part@host.example", "is not a valid URL"),
    ],
)
def test_an_invalid_url_is_refused_with_the_reason(address, says):
    """Each kind of invalid URL has its reason and the next step, and no password is repeated."""
    with pytest.raises(SettingsError, match="base_url") as caught:
        resolve(address)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_given_as_url_is_not_repeated():
    """The message for connect(key), an easy mistake, does not show the key."""
    with pytest.raises(SettingsError) as caught:
        resolve(KEY)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("address", ["http://host.example", "http://192.168.1.5:8000"])
def test_a_key_is_not_sent_unencrypted_unless_allowed(address, monkeypatch):
    """Plain http or ws to another machine is refused until it is allowed."""
    with pytest.raises(SettingsError, match="unencrypted"):
        resolve(address)
    with pytest.raises(SettingsError, match="stream_url"):
        resolve("https://host.example", address.replace("http", "ws"))
    assert resolve(address, allow_http=True).base_url == address
    monkeypatch.setenv("VOXFRAME_ALLOW_HTTP", "1")
    assert resolve(address).base_url == address


@pytest.mark.parametrize("prefix", ["a/b", "..", "x y", "?"])
def test_the_language_model_prefix_is_one_path_segment(prefix):
    """A prefix with more than one segment is refused."""
    with pytest.raises(SettingsError, match="llm_prefix"):
        resolve(llm_prefix=prefix)
    assert resolve(llm_prefix="/some-llm/").llm_prefix == "some-llm"


def test_a_home_directory_is_expanded():
    """~ is expanded in the data directory."""
    assert resolve(data_dir="~/x").data_dir == Path.home() / "x"


def test_a_secret_shows_nothing():
    """No repr, str, format, copy, dataclass, traceback, pickle or JSON shows any part of a secret."""
    secret = Secret(f" {KEY}\n")
    assert secret.reveal() == KEY
    settings = dataclasses.replace(resolve("https://host.example"), api_key=secret)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>40}", repr(settings)]
    shown += [
        str(dataclasses.asdict(settings)),
        repr(copy.deepcopy(secret)),
        repr(copy.copy(secret)),
        repr(dir(secret)),
    ]
    for attempt in (pickle.dumps, json.dumps):
        with pytest.raises(TypeError) as caught:
            attempt(secret)
        shown.append(str(caught.value))
    try:
        _fail_with(secret)
    except ZeroDivisionError as error:
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
        shown.append("".join(report.format()))
    shown.append(repr(getattr(secret, "__dict__", "")) + repr([getattr(secret, name, "") for name in secret.__slots__]))
    assert not [text for text in shown if KEY[:6] in text]


def _fail_with(secret):
    return 1 / 0


def test_secrets_compare_by_value():
    """Two secrets of one key are equal; a secret never equals a string."""
    assert Secret(KEY) == Secret(KEY)
    assert hash(Secret(KEY)) == hash(Secret(KEY))
    assert Secret(KEY) != Secret("other")
    assert Secret(KEY) != KEY


@pytest.mark.parametrize("value", ["", "  ", "two words", "line\nbreak", "kéy", "nul\x00"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(value):
    """A key that cannot be part of a header is refused, and the message does not show it."""
    with pytest.raises(SettingsError) as caught:
        Secret(value)
    assert not value.strip() or value.strip() not in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), True, "soon"])
def test_a_time_limit_is_a_number_above_zero(timeout: object) -> None:
    """No other value is a limit; the message names the setting and the variable."""
    with pytest.raises(SettingsError, match=r"timeout must be a number of seconds above 0.*VOXFRAME_TIMEOUT"):
        resolve("https://speech.example", timeout=timeout)


@pytest.mark.parametrize(
    "url", ["https://ann@speech.example", "https://speech.example/#part", "https://a.example/?b=1"]
)
def test_an_address_has_no_user_query_or_fragment(url: str) -> None:
    """These would be lost or sent to the service with each request."""
    with pytest.raises(SettingsError, match="base_url"):
        resolve(url)


def test_names_below_localhost_are_this_machine() -> None:
    """RFC 6761: they resolve to loopback, so a key may travel to them without encryption."""
    assert resolve("http://speech.localhost:8000").base_url == "http://speech.localhost:8000"
    with pytest.raises(SettingsError, match="unencrypted"):
        resolve("http://localhost.example")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"allow_http": "no"}, "allow_http must be True or False, got 'no'"),
        ({"data_dir": 5}, "data_dir must be a str or a Path, got int"),
        ({"timeout": 10**400}, "timeout must be a number of seconds above 0"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(given, message):
    """A text does not count as permission, and no argument gives a raw error."""
    with pytest.raises(SettingsError, match=message):
        resolve("http://192.0.2.1", api_key=KEY, **{"allow_http": True, **given})
