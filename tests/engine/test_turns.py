"""Turns of speakers."""

from voxframe_engine.text import Word, turns, utterance


def word(text: str, start: int, speaker: str | None = None, channel: str | None = None) -> Word:
    return Word(text, start, start + 200, 0.5, speaker, channel)


def texts(groups: list[list[Word]]) -> list[str]:
    return [" ".join(word.text for word in group) for group in groups]


def test_words_in_a_row_of_one_speaker_are_a_turn():
    """On one channel only a change of speaker ends a turn, not a pause."""
    words = [word("a", 0, "A"), word("b", 5000, "A"), word("c", 5300, "B"), word("d", 5600, "A")]
    assert texts(turns([words])) == ["a b", "c", "d"]


def test_turns_overlap_if_a_speaker_goes_on_meanwhile():
    """A backchannel is a turn of its own inside a turn; a speaker who paused meanwhile has two turns."""
    words = [word("a", 0, "A"), word("b", 300, "A"), word("mhm", 500, "B"), word("c", 700, "A"), word("d", 1000, "A")]
    for spoken, span in zip(words, (0, 0, 1, 0, 0), strict=True):
        spoken.span = span
    assert texts(turns([words])) == ["a b c d", "mhm"]
    words[3].span = words[4].span = 2
    assert texts(turns([words])) == ["a b", "mhm", "c d"]


def test_on_channels_a_turn_ends_where_the_other_answers():
    """A word of the other channel in a pause ends the turn; one that overlaps does not; a long pause does."""
    one = [word("a", 0, "1", "1"), word("b", 200, "1", "1"), word("c", 900, "1", "1"), word("d", 4000, "1", "1")]
    two = [word("x", 600, "2", "2"), word("y", 950, "2", "2")]
    assert texts(turns([one, two])) == ["a b", "x y", "c", "d"]


def test_an_utterance_is_what_the_interface_has():
    """Its words are those of the transcript, its text is theirs, its confidence is their mean."""
    turn = [word("Hello", 0, "A"), word("there.", 300, "A")]
    turn[0].confidence = 1.0
    made = utterance(turn)
    assert made == {
        "confidence": 0.75,
        "start": 0,
        "end": 500,
        "speaker": "A",
        "text": "Hello there.",
        "words": [word.to_dict() for word in turn],
    }
    assert "channel" not in made["words"][0]


def test_no_words_are_no_turns():
    """Silence on every channel."""
    assert turns([[], []]) == []
