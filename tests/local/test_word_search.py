"""Word search."""

import json

import pytest

from voxframe.local.word_search import search, terms


@pytest.fixture(scope="module")
def words(payload_folder):
    """Words of the interface's example transcript."""
    return json.loads((payload_folder / "transcripts" / "completed.json").read_text())["words"]


def test_finds_what_the_interface_found(words, payload_folder):
    """The interface's own answer on its own transcript, index for index and time for time."""
    example = json.loads((payload_folder / "transcript_word-search.json").read_text())
    found = search(words, terms(["hopkins,wildfires"]))
    assert found == example["matches"]


def test_terms_are_joined_by_commas_or_given_several_times():
    """Both spellings, with blanks, capitals and repeats."""
    assert terms(["smoke, Air  Quality", "smoke", " Canada "]) == ["smoke", "Air Quality", "Canada"]


def test_case_and_punctuation_do_not_matter(words):
    """What was said is found however it is written."""
    lower = search(words, terms(["hopkins"]))[0]
    for spelling in ("Hopkins", "HOPKINS!", "“hopkins”"):
        found = search(words, terms([spelling]))[0]
        assert {**found, "text": "hopkins"} == lower


def test_phrases_up_to_five_words(words):
    """A phrase is found where its words follow one another; it begins with the first and ends with the last."""
    text = [w["text"] for w in words[10:15]]
    found = search(words, terms([" ".join(text).replace(",", "")]))[0]
    assert found["indexes"] == [10]
    assert found["timestamps"] == [[words[10]["start"], words[14]["end"]]]
    with pytest.raises(ValueError, match="at most 5 words"):
        terms(["one two three four five six"])


def test_numbers():
    """A comma between digits is no part of a number; a point is."""
    spoken = [{"text": t, "start": n, "end": n + 1} for n, t in enumerate(["3,000", "3.5", "35", "3.", "it's"])]
    places = {t: [m["indexes"] for m in search(spoken, [t])] for t in ("3000", "3.5", "35", "3", "its")}
    assert places == {"3000": [[0]], "3.5": [[1]], "35": [[2]], "3": [[3]], "its": [[4]]}


def test_word_that_holds_two_words_is_found_by_either():
    """Custom spelling may write one word as two."""
    spoken = [{"text": t, "start": n, "end": n + 1} for n, t in enumerate(["in", "New York", "City"])]
    assert search(spoken, ["york city"])[0]["timestamps"] == [[1, 3]]
    assert search(spoken, ["new"])[0]["indexes"] == [1]


def test_word_that_does_not_occur_is_left_out(words):
    """No match is no entry."""
    assert search(words, terms(["zebra"])) == []


@pytest.mark.parametrize("values", [[], [""], [",,"], ["!?"]])
def test_nothing_to_search_for_is_an_error(values):
    """The message says how to ask."""
    with pytest.raises(ValueError, match="words is required"):
        terms(values)


def test_phrase_is_what_one_channel_says():
    """Where two talk at once, the other's words do not break a phrase, and none is made up of both."""
    texts = [("thank", "1"), ("yes", "2"), ("you", "1"), ("please", "2"), ("thank", "2"), ("you", "2")]
    spoken = [{"text": t, "start": n, "end": n + 1, "channel": c} for n, (t, c) in enumerate(texts)]
    found = search(spoken, ["thank you", "yes please", "you please", "you yes"])
    assert [(m["text"], m["indexes"]) for m in found] == [("thank you", [0, 4]), ("yes please", [1])]
