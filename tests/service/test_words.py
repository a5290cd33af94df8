import json

import pytest

from voxframe.errors import OptionError
from voxframe.service import words


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
def test_words_numbers_and_phrases_are_taken(terms, sent):
    """One or several; a comma parts two, spaces are evened out, repeats are dropped."""
    assert words.check(terms) == sent


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ("one two three four five six", "the phrase 'one two three four five six' has 6 words; up to 5 are allowed"),
        ([], "there is nothing to search for"),
        (" , ", "there is nothing to search for"),
        ([None], "None cannot be searched for"),
        (True, "True cannot be searched for"),
    ],
)
def test_what_cannot_be_searched_for_says_so(terms, message):
    """The limit of five words and empty searches are noticed before anything is sent."""
    with pytest.raises(OptionError) as caught:
        words.check(terms)
    assert message in str(caught.value)


def test_one_joined_value_goes_over_the_wire(client, peer):
    """The terms are one comma-joined parameter, with everything else in it quoted."""
    peer.on("GET", "/v2/transcript/t1/word-search", {"id": "t1", "total_count": 0, "matches": []})
    client.word_search("t1", ["air quality", "R&D", "a=b", "100%", "naïve"])
    assert peer.requests[0].query == {"words": ["air quality,R&D,a=b,100%,naïve"]}


def test_the_example_of_the_interface(client, peer, payload_folder, reply):
    """Matches, spans and word positions are those of the answer, which is kept as it came."""
    raw = (payload_folder / "WordSearchResponse.json").read_bytes()
    peer.on("GET", "/v2/transcript/t1/word-search", reply(raw))
    found = client.word_search("t1", ["smoke", "wildfires"])
    expected = json.loads(raw)
    assert (found.transcript_id, found.total_count, found.raw) == (expected["id"], 10, raw)
    assert [(m.text, m.count, [list(s) for s in m.spans_ms], list(m.indexes)) for m in found.matches] == [
        (m["text"], m["count"], m["timestamps"], m["indexes"]) for m in expected["matches"]
    ]


def test_a_sparse_answer_is_read(client, peer):
    """Missing counts are counted, spans that make no sense are left out."""
    peer.on(
        "GET", "/v2/transcript/t1/word-search", {"matches": [{"text": "a", "timestamps": [[1, 2], None, [3]]}, None]}
    )
    found = client.word_search("t1", "a")
    assert (found.transcript_id, found.total_count, found.matches[0].spans_ms) == ("t1", 1, ((1, 2),))
