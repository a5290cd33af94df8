from typing import Any

import pytest

from voxframe.errors import AuthenticationError, OptionError, UnreadableAnswerError


def test_a_token_is_asked_for(client: Any, peer: Any) -> None:
    """The request carries the seconds, the answer is the token."""
    peer.on("POST", "/v2/realtime/token", {"token": "t-1"})
    assert client.token(480) == "t-1"
    assert peer.made("POST", "/v2/realtime/token")[0].json == {"expires_in": 480}


@pytest.mark.parametrize("seconds", [59, 360_001, 60.5, True, "60"])
def test_the_time_is_checked_before_asking(client: Any, peer: Any, seconds: Any) -> None:
    """Seconds out of range are refused with the range, and nothing is sent."""
    with pytest.raises(OptionError, match="from 60 to 360000"):
        client.token(seconds)
    assert peer.requests == []


def test_an_answer_without_a_token_is_unreadable(client: Any, peer: Any) -> None:
    """A service that answers something else is not taken at its word."""
    peer.on("POST", "/v2/realtime/token", {"tokens": []})
    with pytest.raises(UnreadableAnswerError):
        client.token()


def test_a_refused_key_is_an_authentication_error(client: Any, peer: Any, reply: Any) -> None:
    """A wrong key is the same error as elsewhere."""
    peer.on("POST", "/v2/realtime/token", reply({"error": "no"}, 401))
    with pytest.raises(AuthenticationError):
        client.token()
