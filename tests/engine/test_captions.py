"""Subtitles, read back by other parsers, with any text."""

import io
import json
from itertools import pairwise

import pytest
import srt as srt_reader
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from voxframe_engine.text import captions, srt, vtt


def said(*texts, step=400, **more):
    """Return words one after the other."""
    return [{"text": t, "start": n * step, "end": n * step + 350, **more} for n, t in enumerate(texts)]


def unescape(text):
    """Return cue text as a browser shows it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def ms(time):
    """Return a webvtt-py or srt time in milliseconds."""
    return round(time.total_seconds() * 1000)


def read_vtt(text):
    """Return cues as (start, end, shown text)."""
    cues = webvtt.from_buffer(io.BytesIO(text.encode())).captions
    return [(round(c.start_in_seconds * 1000), c.raw_text) for c in cues]


HOSTILE = [
    "a<b>bold</b>",
    "&amp;",
    "-->",
    "00:00.000",
    "--&gt;",
    "<script>alert(1)</script>",
    "R&D",
    "a\n\nb",
    "\x00\x07",
    "NOTE",
    "1",
    "→",
]


def test_example_is_split_into_full_captions(payload_folder):
    """The 856 words of a real transcript are in order, in captions of the requested length, at times of its words."""
    transcript = json.loads((payload_folder / "transcripts" / "completed.json").read_text())
    for chars in (20, 42, 84, 500):
        read = list(srt_reader.parse(srt(transcript, chars)))
        assert " ".join(c.content.replace("\n", " ") for c in read) == " ".join(w["text"] for w in transcript["words"])
        assert max(len(c.content) for c in read) <= chars
        assert {ms(c.start) for c in read} <= {w["start"] for w in transcript["words"]}
        said = iter(transcript["words"])
        for caption in read:  # to the end of its last word, or longer to be read
            last = [next(said) for _ in caption.content.split()][-1]
            assert ms(caption.end) >= last["end"]
        assert [ms(c.start) for c in read] == sorted(ms(c.start) for c in read)
        assert [c.index for c in read] == list(range(1, len(read) + 1))


def test_captions_are_filled(payload_folder):
    """No caption that ends within a sentence and without a pause would fit into one with the next."""
    transcript = json.loads((payload_folder / "transcripts" / "completed.json").read_text())
    made = list(captions(transcript, 42))
    for one, next_one in pairwise(made):
        ends = one.text.endswith((".", "?", "!")) or next_one.start - one.end >= 2000
        assert ends or len(one.text) + 1 + len(next_one.text) > 42


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_do_no_harm_in_srt(text):
    """Three captions stay three, whatever the text of the middle one is."""
    words = said("before", text, "after", step=5000)
    read = list(srt_reader.parse(srt({"words": words})))
    assert [read[0].content, read[-1].content] == ["before", "after"]
    assert len(read) == (2 if text == "\x00\x07" else 3)
    assert "-->" not in "".join(c.content for c in read)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_do_no_harm_in_webvtt(text):
    """Three captions stay three, and the middle one shows its text unchanged."""
    words = said("before", text, "after", step=5000)
    read = read_vtt(vtt({"words": words}))
    assert [read[0][1], read[-1][1]] == ["before", "after"]
    shown = [unescape(raw) for _, raw in read]
    assert shown[1:-1] == ([] if text == "\x00\x07" else [" ".join(text.split())])
    assert not any("<" in raw or ">" in raw for _, raw in read)


_words = st.lists(st.tuples(st.text(min_size=1, max_size=30), st.integers(0, 3000), st.integers(0, 2500)), max_size=30)


@given(_words, st.integers(1, 60))
def test_any_text_is_readable_and_within_its_length(spoken, chars):
    """For any words, both parsers read as many cues as captions, none too long, with increasing times."""
    at, words = 0, []
    for text, length, pause in spoken:
        words.append({"text": text, "start": at, "end": at + length})
        at += length + pause
    transcript = {"words": words}
    made = list(captions(transcript, chars))
    assert all(0 < len(c.text) <= chars and c.end > c.start for c in made)
    if made:
        assert len(read_vtt(vtt(transcript, chars))) == len(made)
    read = list(srt_reader.parse(srt(transcript, chars)))
    assert [(ms(c.start), ms(c.end)) for c in read] == [(c.start, c.end) for c in made]


def test_a_long_word_is_split():
    """A word longer than a caption is split, and its time is divided."""
    made = list(captions({"words": [{"text": "abcdefghij", "start": 1000, "end": 2000}]}, 4))
    assert [cue[:3] for cue in made] == [("abcd", 1000, 1800), ("efgh", 1400, 2200), ("ij", 1800, 2600)]


def test_caption_holds_one_speaker():
    """A new caption starts when the speaker changes."""
    words = [*said("yes", speaker="A"), {"text": "no", "start": 400, "end": 700, "speaker": "B"}]
    assert [c.text for c in captions({"words": words})] == ["yes", "no"]


def test_channels_that_overlap_are_not_shuffled():
    """Each turn of a two-channel call stays complete although its words alternate with those of the other channel."""
    one, two = said("how", "are", "you", channel="1"), said("I", "am", "fine", channel="2")
    mixed = [word for pair in zip(one, two, strict=True) for word in pair]
    turns = [{"words": one}, {"words": two}]
    assert [c.text for c in captions({"words": mixed, "utterances": turns})] == ["how are you", "I am fine"]


@pytest.mark.parametrize("words", [None, []])
def test_no_words_give_an_empty_file(words):
    """A transcript without words has no captions, and WebVTT has its first line."""
    assert srt({"words": words}) == ""
    assert vtt({"words": words}) == "WEBVTT\n\n"


def test_hours_are_written_out():
    """Times beyond an hour are written correctly up to ten hours, the longest recording."""
    assert "09:59:59,999 --> 10:00:00,799" in srt({"words": [{"text": "end", "start": 35_999_999, "end": 36_000_000}]})
