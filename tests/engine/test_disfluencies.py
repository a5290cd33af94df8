"""Filled pauses are left out unless they were asked for."""

from voxframe_engine.text import Word
from voxframe_engine.text.formatting import split_punctuation, without_filled_pauses


def said(text: str) -> list[Word]:
    return [Word(word, 100 * at, 100 * at + 90, 0.8) for at, word in enumerate(text.split())]


def test_filled_pauses_go_and_answers_stay():
    """Sounds like "um" and "uh" fill a pause; "uh-huh" and "mhm" answer."""
    kept = without_filled_pauses(said("um i uh think Erm so uh-huh mhm huh"))
    assert [word.text for word in kept] == ["i", "think", "so", "uh-huh", "mhm", "huh"]


def test_the_end_of_a_sentence_moves_to_the_word_before():
    """A sentence that trails off in "um" ends all the same."""
    words = said("i think um")
    words[-1].ends_sentence = True
    assert [word.ends_sentence for word in without_filled_pauses(words)] == [False, True]


def test_an_um_of_somebody_else_ends_no_sentence():
    """One speaker's "um" does not end the other's sentence."""
    words = said("i think um")
    words[0].speaker = words[1].speaker = "A"
    words[2].speaker, words[2].ends_sentence = "B", True
    assert [word.ends_sentence for word in without_filled_pauses(words)] == [False, False]


def test_the_capital_of_a_sentence_moves_to_the_word_after():
    """A sentence that begins with "Um" begins with a capital all the same; other words keep their spelling."""
    words = split_punctuation(said("Um, so we went. Uh, um, what? Er, iPhones. Yes Um no."))
    assert [word.text for word in without_filled_pauses(words)] == "So we went What iPhones Yes no".split()
