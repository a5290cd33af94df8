"""Swear words keep their first letter."""

import pytest

from voxframe_engine.text.formatting import masked


@pytest.mark.parametrize(
    ("spoken", "filtered"),
    [
        ("shit", "s***"),
        ("Shit.", "S***."),
        ("fucking", "f******"),
        ("motherfuckers", "m************"),
        ("bullshit?", "b*******?"),
        ("damn", "d***"),
        ("bitch's", "b******"),
    ],
)
def test_a_swear_word_is_masked(spoken, filtered):
    """First letter and punctuation stay, each other letter is an asterisk."""
    assert masked(spoken) == filtered


@pytest.mark.parametrize(
    "word",
    "class assess cocktail peacock Dickens Scunthorpe shiitake niggardly title bass document hello therapist".split(),
)
def test_words_that_contain_one_are_left_alone(word):
    """Innocent words with a swear word inside."""
    assert masked(word) == word
