from pathlib import Path
from typing import Any

import pytest

from voxframe.errors import OptionError
from voxframe.service.client import Client
from voxframe.settings import Secret, Settings


@pytest.fixture
def client(peer: Any, tmp_path: Path) -> Client:
    """A client whose streaming address is the peer's."""
    return Client(Settings("http://127.0.0.1:9", peer.url, "llm", Secret("a-key-for-the-peer"), tmp_path))


def test_the_client_streams_to_its_streaming_address(client: Client, speech: Path) -> None:
    """`client.stream` takes address and key from the client's settings."""
    with client.stream(speech, realtime=False) as session:
        finals = session.wait()
    assert [final.text for final in finals] == ["second 1", "second 2", "second 3"]


def test_the_key_of_the_client_is_not_needed_with_a_token(client: Client, peer: Any, speech: Path) -> None:
    """With a token the client's key is not sent."""
    peer.tokens.add("t-1")
    client.stream(speech, realtime=False, token="t-1").wait()
    assert "Authorization" not in peer.sessions[0].headers


def test_an_unknown_option_is_named(client: Client, speech: Path) -> None:
    """A misspelled option says what was meant."""
    with pytest.raises(OptionError, match="sample_rate"):
        client.stream(speech, samplerate=8000)  # type: ignore[call-arg]
