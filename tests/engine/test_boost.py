"""Words that are listened for: how they are said, and that they are heard."""

import re
import wave
from pathlib import Path

import jiwer
import numpy as np
import pytest
from pocketsphinx import Decoder
from tests.server.local_stream import LocalStream

from voxframe_engine.speech.audio import Audio
from voxframe_engine.speech.engines import EngineOptions, RecognizedWord
from voxframe_engine.speech.engines.sphinx import Sphinx, listen_for, pronunciations, with_terms
from voxframe_engine.transcription import run_job

PANEL = Path(__file__).parents[2] / "data" / "panel.flac"
SAID = ("Main Street", "James", "Andrew")
NOT_SAID = ("Kubernetes", "Boston", "Marchetti", "ibuprofen", "Denver", "Hill Street Bank")
SCRIPT = (
    "good evening everyone tonight we ask one question should cars be kept out of you run a shop there i do and i am "
    "worried half of my customers come by car if they cannot park they will go to the big stores outside the town "
    "you see it another way"
)
WORDS = {"a.": "EY", "w.": "D AH B AH L Y UW", "s.": "EH S", "us": "AH S", "seven": "S EH V AH N", "fox": "F AA K S"}
WORDS |= {"frame": "F R EY M", "us(2)": "Y UW EH S", "river": "R IH V ER", "u.": "Y UW"}


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("river", ["R IH V ER"]),
        ("River  fox", ["R IH V ER F AA K S"]),
        ("foxframe", ["F AA K S F R EY M"]),
        ("rivers", ["R IH V ER Z"]),
        ("fox 7", ["F AA K S S EH V AH N"]),
        ("AWS", ["EY D AH B AH L Y UW EH S"]),
        ("US", ["Y UW EH S", "AH S"]),
        ("us", ["AH S", "Y UW EH S"]),
        ("東京", []),
        ("--", []),
    ],
)
def test_known_words_compounds_letters_and_digits(term, said):
    """From the dictionary, put together, or one by one; nothing for what has no Latin letter or digit."""
    found = pronunciations(term, WORDS.get)
    assert found[: len(said)] == said
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("metformin", "M EH T F AO R M IH N"),
        ("tortellini", "T AO R T EH L IY N IY"),
        ("shale", "SH EY L"),
        ("knight", "N AY T"),
        ("phone", "F OW N"),
        ("marchetti", "M AA R K EH T IY"),
    ],
)
def test_unknown_words_are_said_by_their_letters(word, said):
    """As an English word or as a name from elsewhere; one of both ways is the right one."""
    assert said in pronunciations(word, {}.get)


def test_rules_come_near_to_the_dictionary():
    """At least 70 % of the phones are right if dictionary words are pronounced by rules alone."""
    decoder = Decoder(loglevel="FATAL")
    words = "planet winter garden hotel basket camera tomato mustard elephant number dragon silver perfume".split()
    true = [decoder.lookup_word(word) for word in words]
    made = [
        min(pronunciations(word, {}.get), key=lambda way, right=right: jiwer.wer(right, way))
        for word, right in zip(words, true, strict=True)
    ]
    assert jiwer.wer(true, made) <= 0.3


def test_a_phrase_becomes_its_words_again():
    """They share the time of the phrase; other words stay as they are."""
    heard = [RecognizedWord("a", 0, 100, 0.5), RecognizedWord("boosted:1", 100, 1000, 0.9)]
    assert list(with_terms(heard, {"boosted:1": "Hill Bank x"})) == [
        RecognizedWord("a", 0, 100, 0.5),
        RecognizedWord("Hill", 100, 500, 0.9),
        RecognizedWord("Bank", 500, 900, 0.9),
        RecognizedWord("x", 900, 1000, 0.9),
    ]


def test_terms_of_any_kind_are_taken():
    """Duplicate, unpronounceable and very long terms cause no failure; pronounceable ones get an entry."""
    terms = ["Linnea", "Linnea ", "東京", "", "x" * 3000, "a b c d e f g h", "Linnea's", "<s>", "read(2)", "\ud800"]
    entries = listen_for(Decoder(loglevel="FATAL"), terms)
    assert {"Linnea", "a b c d e f g h", "Linnea's", "<s>"} <= set(entries.values())
    assert len(set(entries.values())) == len(entries)


@pytest.fixture(scope="module")
def heard() -> dict[str | None, str]:
    """The first 20 s of the panel, with nothing boosted, a little and a lot; `default` is between the two."""
    samples = np.concatenate(list(Audio(PANEL).blocks()), axis=1)[0][: 20 * 16_000]
    wanted = {None: EngineOptions()}
    wanted |= {strength: EngineOptions(boost=SAID + NOT_SAID, boost_param=strength) for strength in ("low", "high")}
    return {
        strength: " ".join(word.text for word in Sphinx(how).transcribe(samples)) for strength, how in wanted.items()
    }


@pytest.mark.long
@pytest.mark.speech
def test_boosted_terms_are_heard_and_more_of_them_the_more_they_are_boosted(heard):
    """Terms that are misrecognized without a boost are right with it, in the client's spelling."""
    found = {strength: {term for term in SAID if term in text} for strength, text in heard.items()}
    assert found[None] == set()
    assert len(found["low"]) >= 2
    assert found["low"] < found["high"] == set(SAID)


@pytest.mark.long
@pytest.mark.speech
def test_other_words_are_heard_no_worse(heard):
    """A boost causes no additional errors in other words, and inserts no term that was not spoken."""
    errors = {}
    for strength, text in heard.items():
        rest = re.sub("main ?street|james|andrew", "", text.lower())
        errors[strength] = jiwer.wer(SCRIPT, rest)
        assert [term for term in NOT_SAID if term.lower() in text.lower()] == []
    assert max(errors.values()) == errors[None] <= 0.35


@pytest.mark.long
@pytest.mark.speech
def test_a_live_session_listens_for_them_too():
    """In partials and finals, with the default strength."""
    sound = np.concatenate(list(Audio(PANEL).blocks()), axis=1)[0][: 8 * 16_000]
    stream = LocalStream(Sphinx(EngineOptions(boost=SAID)).transcribe, punctuates=False)
    stream.send(sound, chunk=32_000)
    stream.end()
    for kind in ("Partial", "Final"):
        assert "Main Street" in " ".join(message["text"] for message in stream.of(kind))


@pytest.mark.long
@pytest.mark.speech
def test_a_job_listens_for_the_words_of_its_request(audio_folder):
    """A word of a real recording that is misheard without: with the boost it is in the text, and timed."""
    path = audio_folder / "ss-0870.wav"
    bare, boosted = (
        run_job(path, how, engine="sphinx") for how in ({}, {"word_boost": ["Prudently"], "boost_param": "low"})
    )
    assert "prudently" not in bare["text"].lower()
    word = next(word for word in boosted["words"] if word["text"] == "Prudently")
    with wave.open(str(path)) as file:
        assert 0 < word["start"] < word["end"] < file.getnframes() / file.getframerate() * 1000
