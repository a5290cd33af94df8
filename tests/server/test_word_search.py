"""Word search."""

import json

import pytest
from tests.server.test_llm import put

from voxframe_server.http.app import search_terms, search_words


@pytest.fixture(scope="module")
def words(payload_folder):
    """Words of the API's example transcript."""
    return json.loads((payload_folder / "transcripts" / "completed.json").read_text())["words"]


def test_finds_the_matches_of_the_api_example(words, payload_folder):
    """A search returns the indexes and times of the API's example response."""
    example = json.loads((payload_folder / "transcript_word-search.json").read_text())
    found = search_words(words, search_terms(["hopkins,wildfires"]))
    assert found == example["matches"]


def test_terms_are_joined_by_commas_or_given_several_times():
    """Terms may be comma-separated or repeated, with spaces, capitals and duplicates."""
    assert search_terms(["smoke, Air  Quality", "smoke", " Canada "]) == ["smoke", "Air Quality", "Canada"]


def test_case_and_punctuation_do_not_matter(words):
    """Matches ignore case and punctuation."""
    lower = search_words(words, search_terms(["hopkins"]))[0]
    for spelling in ("Hopkins", "HOPKINS!", "“hopkins”"):
        found = search_words(words, search_terms([spelling]))[0]
        assert {**found, "text": "hopkins"} == lower


def test_phrases_up_to_five_words(words):
    """A phrase matches consecutive words, from the start of the first to the end of the last."""
    text = [w["text"] for w in words[10:15]]
    found = search_words(words, search_terms([" ".join(text).replace(",", "")]))[0]
    assert found["indexes"] == [10]
    assert found["timestamps"] == [[words[10]["start"], words[14]["end"]]]
    with pytest.raises(ValueError, match="at most 5 words"):
        search_terms(["one two three four five six"])


def test_numbers():
    """A comma between digits is ignored; a point is not."""
    spoken = [{"text": t, "start": n, "end": n + 1} for n, t in enumerate(["3,000", "3.5", "35", "3.", "it's"])]
    data_dir = {t: [m["indexes"] for m in search_words(spoken, [t])] for t in ("3000", "3.5", "35", "3", "its")}
    assert data_dir == {"3000": [[0]], "3.5": [[1]], "35": [[2]], "3": [[3]], "its": [[4]]}


def test_a_word_of_two_parts_is_found_by_either():
    """A word with two parts, from custom spelling, matches either part."""
    spoken = [{"text": t, "start": n, "end": n + 1} for n, t in enumerate(["in", "New York", "City"])]
    assert search_words(spoken, ["york city"])[0]["timestamps"] == [[1, 3]]
    assert search_words(spoken, ["new"])[0]["indexes"] == [1]


def test_word_that_does_not_occur_is_left_out(words):
    """A term without a match has no entry."""
    assert search_words(words, search_terms(["zebra"])) == []


@pytest.mark.parametrize("values", [[], [""], [",,"], ["!?"]])
def test_a_search_without_terms_is_an_error(values):
    """A search without terms is an error that describes valid ones."""
    with pytest.raises(ValueError, match="words is required"):
        search_terms(values)


def test_a_phrase_is_within_one_channel():
    """Phrases match within one channel only, even if channels alternate."""
    texts = [("thank", "1"), ("yes", "2"), ("you", "1"), ("please", "2"), ("thank", "2"), ("you", "2")]
    spoken = [{"text": t, "start": n, "end": n + 1, "channel": c} for n, (t, c) in enumerate(texts)]
    found = search_words(spoken, ["thank you", "yes please", "you please", "you yes"])
    assert [(m["text"], m["indexes"]) for m in found] == [("thank you", [0, 4]), ("yes please", [1])]


@pytest.fixture(scope="module")
def numbers(service):
    """The id of a transcript of the numbers from one to seven."""
    return put(service, [("A", "One two three four five six seven.")])


@pytest.mark.parametrize(
    "query",
    [
        "words=one two three four five six",
        "words=one,two three four five six seven",
        "words=one&words=one two three four five six",
        "words=%20ONE%20%20two,%20three! four\u00a0five six seven SEVEN",
    ],
)
def test_server_refuses_a_phrase_of_six_words(service, numbers, query):
    """The answer is 400 and names the limit and the phrase, also if other terms of the request are short enough."""
    answer = service.get(f"/v2/transcript/{numbers}/word-search?{query}")
    assert answer.status_code == 400
    assert "at most 5 words" in answer.json()["error"]
    assert "five six" in answer.json()["error"].replace("\u00a0", " ")


def test_server_takes_a_phrase_of_five_words(service, numbers):
    """Five words are within the limit, and punctuation that stands alone is not a word."""
    found = service.get(f"/v2/transcript/{numbers}/word-search", params={"words": "one - two three four five,six"})
    assert found.status_code == 200
    assert [(match["text"], match["indexes"]) for match in found.json()["matches"]] == [
        ("one - two three four five", [0]),
        ("six", [5]),
    ]
