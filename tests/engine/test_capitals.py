"""Capitals in recognized English."""

import pytest

from voxframe_engine.text import Word
from voxframe_engine.text.formatting import add_capitals


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("i know that i'm right", "I know that I'm right"),
        ("on friday paul's train to new york was late", "On Friday Paul's train to New York was late"),
        ("mister john dashwood and missus smith", "Mr John Dashwood and Mrs Smith"),
        ("talking with doctor baker", "Talking with Dr Baker"),
        ("ask the doctor about it", "Ask the doctor about it"),
        ("doctor it hurts", "Doctor it hurts"),
        ("we may march in summer", "We may march in summer"),
        ("iPhone and NASA stay", "iPhone and NASA stay"),
        ("seven", "Seven"),
    ],
)
def test_sentences_names_and_titles(spoken, written):
    """First words, "I", days, people, data_dir and titles have capitals; common words and given spellings are left."""
    words = [Word(text, 0, 0, 1.0) for text in spoken.split()]
    add_capitals(words)
    assert " ".join(word.text for word in words) == written
