"""Sentences and paragraphs of a finished transcript."""

import json

from hypothesis import given
from hypothesis import strategies as st

from voxframe._text import paragraphs, sentences


def said(*parts: tuple[int, str], speaker: str | None = None, channel: str | None = None) -> list[dict]:
    """Words of 200 ms each; each part is a pause in ms and the words after it."""
    words, at = [], 0
    for pause, text in parts:
        at += pause
        for word in text.split():
            words.append({"text": word, "start": at, "end": at + 200, "confidence": 1.0, "speaker": speaker})
            if channel:
                words[-1]["channel"] = channel
            at += 200
    return words


def texts(groups: list[list[dict]]) -> list[str]:
    return [" ".join(word["text"] for word in group) for group in groups]


def test_marks_end_sentences():
    """Full stops, question and exclamation marks, also before a quotation mark; not the stop of a title."""
    words = said((0, 'Is it? "Yes." Mr. Smith said so! And then'))
    assert texts(sentences(words)) == ["Is it?", '"Yes."', "Mr. Smith said so!", "And then"]


def test_without_any_marks_pauses_do():
    """Without punctuation, a sentence ends at half a second of silence."""
    words = said((0, "good morning"), (600, "thank you"), (300, "for coming"))
    assert texts(sentences(words)) == ["good morning", "thank you for coming"]


def test_somebody_else_begins_a_new_sentence():
    """A change of speaker ends a sentence and a paragraph."""
    words = said((0, "good morning and"), speaker="A") + said((700, "good morning."), speaker="B")
    assert texts(sentences(words)) == ["good morning and", "good morning."]
    assert texts(paragraphs(words)) == ["good morning and", "good morning."]


def test_people_on_two_channels_do_not_break_each_others_sentences():
    """Words of two channels that alternate in time are two sentences."""
    words = said((0, "one two three four."), channel="1") + said((100, "five six seven."), channel="2")
    words.sort(key=lambda word: word["start"])
    assert texts(sentences(words)) == ["one two three four.", "five six seven."]


def test_paragraphs_end_at_long_pauses_and_when_they_are_long():
    """A pause of 1.5 s; 70 words and a short pause; 120 words."""
    assert texts(paragraphs(said((0, "One."), (400, "Two."), (1500, "Three.")))) == ["One. Two.", "Three."]
    long = said(*[(400 if number == 75 else 0, "word.") for number in range(300)])
    assert [len(group) for group in paragraphs(long)] == [75, 120, 105]


def test_no_words_are_no_sentences():
    """An empty transcript."""
    assert sentences([]) == []
    assert paragraphs([]) == []


def test_the_examples_are_cut_as_the_service_cuts_them(payload_folder):
    """The sentences of the interface's own transcript: those of its text, as its marks and capitals have them."""
    words = json.loads((payload_folder / "transcripts" / "completed.json").read_text())["words"]
    expected = json.loads((payload_folder / "SentencesResponse.json").read_text())["sentences"]
    assert texts(sentences(words))[: len(expected)] == [sentence["text"] for sentence in expected]


word = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["a", "b.", "c?"]),
        "start": st.integers(0, 5000),
        "end": st.integers(0, 5000),
        "speaker": st.sampled_from([None, "A", "B"]),
        "channel": st.sampled_from([None, "1"]),
    }
)


@given(st.lists(word, max_size=40))
def test_every_word_is_in_one_sentence_and_one_paragraph(words):
    """Every word occurs exactly once, for any words."""
    for groups in (sentences(words), paragraphs(words)):
        assert sorted(map(id, (word for group in groups for word in group))) == sorted(map(id, words))
        assert all(groups)


def test_sentences_of_unspaced_text_have_no_blanks() -> None:
    """Words of Chinese are joined without blanks, as in the text of the transcript."""
    from voxframe_engine.text import joined

    assert joined([{"text": "今天"}, {"text": "天气。"}]) == "今天天气。"
    assert joined([{"text": "Good"}, {"text": "day."}]) == "Good day."
