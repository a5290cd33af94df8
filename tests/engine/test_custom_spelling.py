"""Custom spellings of words and phrases."""

import time
from itertools import pairwise

from voxframe_engine.text import Word
from voxframe_engine.text.formatting import add_capitals, join_punctuation, respell, split_punctuation


def said(text: str) -> list[Word]:
    """Words of 100 ms each."""
    return [Word(word, 100 * at, 100 * at + 90, 0.8) for at, word in enumerate(text.split())]


def written(words: list[Word]) -> str:
    return " ".join(word.text for word in words)


def test_a_word_is_replaced_in_any_case():
    """The rule of the interface's own example; case does not matter, the spelling is taken as given."""
    assert (
        written(respell(said("peter DiCarlo said"), [{"from": ["dicarlo"], "to": "Decarlo"}])) == "peter Decarlo said"
    )


def test_the_point_of_an_abbreviation_is_replaced_with_it():
    """A phrase is found with and without its point; other punctuation after it stays."""
    rules = [{"from": ["dr."], "to": "Doctor"}, {"from": ["e.g. trees"], "to": "trees"}]
    words = split_punctuation(said("Dr. Baker asked the dr, e.g. trees."))
    join_punctuation(new := respell(words, rules), punctuate=True, format_text=True)
    assert written(new) == "Doctor Baker asked the Doctor, trees."


def test_several_words_become_one_that_spans_their_time():
    """A phrase is matched as a whole; time from the first to the last word, confidence in between."""
    words = said("call dee carlo now")
    words[1].confidence, words[2].confidence = 0.2, 0.6
    new = respell(words, [{"from": ["dee carlo"], "to": "Decarlo"}])
    assert written(new) == "call Decarlo now"
    assert (new[1].start, new[1].end, new[1].confidence) == (100, 290, 0.4)


def test_one_word_becomes_several_that_share_its_time():
    """Each word on the wire is one word, and together they last as long as before."""
    new = respell(said("hello sql"), [{"from": ["sql"], "to": "structured query language"}])
    assert [word.text for word in new] == ["hello", "structured", "query", "language"]
    assert (new[1].start, new[-1].end) == (100, 190)
    assert all(before.end == after.start for before, after in pairwise(new[1:]))


def test_the_longest_phrase_wins():
    """If two rules match at one position, the longer one is used, in any order of rules."""
    rules = [{"from": ["new"], "to": "old"}, {"from": ["new york", "big apple"], "to": "NYC"}]
    assert written(respell(said("new york is new not a big apple"), rules)) == "NYC is old not a NYC"


def test_a_phrase_does_not_reach_over_two_speakers():
    """A phrase never matches words of two speakers."""
    words = said("dee carlo")
    words[0].speaker, words[1].speaker = "A", "B"
    assert written(respell(words, [{"from": ["dee carlo"], "to": "Decarlo"}])) == "dee carlo"


def test_the_end_of_a_sentence_stays_where_it_was():
    """A replaced last word still ends its sentence."""
    words = said("that is all folks")
    words[-1].ends_sentence = True
    new = respell(words, [{"from": ["all folks"], "to": "all of it"}])
    assert [word.ends_sentence for word in new] == [False, False, False, False, True]


def test_a_very_long_phrase_takes_no_longer_than_a_short_one():
    """A rule of 2,000 words is compared with a transcript of 5,000 words within seconds."""
    words, began = said("a " * 5000), time.monotonic()
    assert len(respell(words, [{"from": ["b " * 2000], "to": "c"}])) == 5000
    assert time.monotonic() - began < 20


def test_empty_rules_change_nothing():
    """No rules, an empty phrase, an empty replacement."""
    rules = [{"from": [""], "to": "x"}, {"from": ["a"], "to": " "}, {"from": [], "to": "y"}]
    assert written(respell(said("a b"), rules)) == "a b"
    assert respell([], rules) == []


def test_a_spelling_stays_as_it_is_given_where_a_capital_would_stand():
    """First in its sentence, after a title, and a name: the client's word is the client's; others get capitals."""
    rules = [{"from": ["and roy"], "to": "android"}, {"from": ["john"], "to": "jon"}, {"from": ["i"], "to": "i"}]
    words = respell(said("and roy said i saw mister john in london"), rules)
    add_capitals(words)
    assert written(words) == "android said i saw Mr jon in London"
