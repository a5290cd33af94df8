import json
from typing import Any

import pytest

from voxframe.client import api
from voxframe.errors import AuthenticationError, OptionError, UnreadableAnswerError


@pytest.mark.parametrize(
    ("terms", "sent"),
    [
        ("smoke", ["smoke"]),
        (42, ["42"]),
        (["air  quality", "smoke", "smoke"], ["air quality", "smoke"]),
        ("one two three four five", ["one two three four five"]),
        ("smoke, air quality,", ["smoke", "air quality"]),
        (("Peter's", "naïve café"), ["Peter's", "naïve café"]),
    ],
)
def test_words_numbers_and_phrases_are_accepted(terms, sent):
    """Terms are split at commas, spaces are normalized, and duplicates are dropped."""
    assert api.check_terms(terms) == sent


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ("one two three four five six", "the phrase 'one two three four five six' has 6 words; up to 5 are allowed"),
        ([], "there are no search terms"),
        (" , ", "there are no search terms"),
        ([None], "None cannot be searched for"),
        (True, "True cannot be searched for"),
    ],
)
def test_invalid_terms_are_refused(terms, message):
    """An empty search and a phrase of more than five words are refused before anything is sent."""
    with pytest.raises(OptionError) as caught:
        api.check_terms(terms)
    assert message in str(caught.value)


def test_terms_are_one_parameter(client, peer):
    """The terms are sent as one quoted parameter, joined with commas."""
    peer.on("GET", "/v2/transcript/t1/word-search", {"id": "t1", "total_count": 0, "matches": []})
    client.word_search("t1", ["air quality", "R&D", "a=b", "100%", "naïve"])
    assert peer.requests[0].query == {"words": ["air quality,R&D,a=b,100%,naïve"]}


def test_the_documented_response_is_read(client, peer, payload_folder, reply):
    """Matches, spans and word positions are those of the response, which is kept as received."""
    raw = (payload_folder / "WordSearchResponse.json").read_bytes()
    peer.on("GET", "/v2/transcript/t1/word-search", reply(raw))
    found = client.word_search("t1", ["smoke", "wildfires"])
    expected = json.loads(raw)
    assert (found.transcript_id, found.total_count, found.raw) == (expected["id"], 10, raw)
    assert [(m.text, m.count, [list(s) for s in m.spans_ms], list(m.indexes)) for m in found.matches] == [
        (m["text"], m["count"], m["timestamps"], m["indexes"]) for m in expected["matches"]
    ]


def test_an_incomplete_response_is_read(client, peer):
    """Missing counts are computed, and invalid spans are left out."""
    peer.on(
        "GET", "/v2/transcript/t1/word-search", {"matches": [{"text": "a", "timestamps": [[1, 2], None, [3]]}, None]}
    )
    found = client.word_search("t1", "a")
    assert (found.transcript_id, found.total_count, found.matches[0].spans_ms) == ("t1", 1, ((1, 2),))


@pytest.mark.parametrize("seconds", [60, 480, 360_000])
def test_a_token_is_requested(client: Any, peer: Any, seconds: int) -> None:
    """The request has the lifetime in seconds, and the token of the response is returned."""
    peer.on("POST", "/v2/realtime/token", {"token": "t-1"})
    assert client.token(seconds) == "t-1"
    assert peer.made("POST", "/v2/realtime/token")[0].json == {"expires_in": seconds}


@pytest.mark.parametrize("seconds", [59, 360_001, 60.5, True, "60"])
def test_an_invalid_lifetime_is_refused(client: Any, peer: Any, seconds: Any) -> None:
    """A lifetime out of range is refused with the range, and nothing is sent."""
    with pytest.raises(OptionError, match="from 60 to 360000"):
        client.token(seconds)
    assert peer.requests == []


def test_a_response_without_a_token_is_an_error(client: Any, peer: Any) -> None:
    """A response without a token raises an UnreadableAnswerError."""
    peer.on("POST", "/v2/realtime/token", {"tokens": []})
    with pytest.raises(UnreadableAnswerError):
        client.token()


def test_a_refused_key_is_an_authentication_error(client: Any, peer: Any, reply: Any) -> None:
    """A refused key raises an AuthenticationError."""
    peer.on("POST", "/v2/realtime/token", reply({"error": "no"}, 401))
    with pytest.raises(AuthenticationError):
        client.token()
