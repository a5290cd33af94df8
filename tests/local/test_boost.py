"""Words that are listened for: how they are said, and that they are heard."""

import re
import wave
from pathlib import Path

import jiwer
import numpy as np
import pytest
from pocketsphinx import Decoder
from tests.benchmarks import boost as scores

from voxframe.local.audio import Audio
from voxframe.local.engines import Heard, Wanted
from voxframe.local.engines.boosting import as_said, listen_for
from voxframe.local.engines.pronunciation import pronunciations
from voxframe.local.engines.sphinx import Sphinx
from voxframe.local.live import Listener
from voxframe.local.records import AUDIO, TERMINATE
from voxframe.local.worker import run_job

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
    """Of words that the dictionary has, said by rules alone, at least 70 % of the phones are right."""
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
    heard = [Heard("a", 0, 100, 0.5), Heard("boosted:1", 100, 1000, 0.9)]
    assert list(as_said(heard, {"boosted:1": "Hill Bank x"})) == [
        Heard("a", 0, 100, 0.5),
        Heard("Hill", 100, 500, 0.9),
        Heard("Bank", 500, 900, 0.9),
        Heard("x", 900, 1000, 0.9),
    ]


def test_terms_of_any_kind_are_taken():
    """Twice the same, nothing that can be said, very long: no failure, and an entry for what can be said."""
    terms = ["Linnea", "Linnea ", "東京", "", "x" * 3000, "a b c d e f g h", "Linnea's", "<s>", "read(2)", "\ud800"]
    entries = listen_for(Decoder(loglevel="FATAL"), terms)
    assert {"Linnea", "a b c d e f g h", "Linnea's", "<s>"} <= set(entries.values())
    assert len(set(entries.values())) == len(entries)


@pytest.fixture(scope="module")
def heard() -> dict[str | None, str]:
    """The first 20 s of the panel, with nothing boosted and with each strength."""
    samples = np.concatenate(list(Audio(PANEL).blocks()), axis=1)[0][: 20 * 16_000]
    wanted = {None: Wanted()}
    wanted |= {strength: Wanted(boost=SAID + NOT_SAID, boost_param=strength) for strength in scores.STRENGTHS[1:]}
    return {
        strength: " ".join(word.text for word in Sphinx(how).transcribe(samples)) for strength, how in wanted.items()
    }


@pytest.mark.speech
def test_boosted_terms_are_heard_and_more_of_them_the_more_they_are_boosted(heard):
    """Unknown to nobody else: what is misheard without is right with it, in the client's spelling."""
    found = {strength: {term for term in SAID if term in text} for strength, text in heard.items()}
    assert found[None] == set()
    assert len(found["low"]) >= 2
    assert found["low"] <= found["default"] <= found["high"]
    assert found["low"] < found["high"] == set(SAID)


@pytest.mark.speech
def test_other_words_are_heard_no_worse(heard):
    """Of the rest not more words are wrong than without, and no term is heard that nobody said."""
    errors = {}
    for strength, text in heard.items():
        rest = re.sub("main ?street|james|andrew", "", text.lower())
        errors[strength] = jiwer.wer(SCRIPT, rest)
        assert [term for term in NOT_SAID if term.lower() in text.lower()] == []
    assert max(errors.values()) == errors[None] <= 0.35


@pytest.mark.speech
def test_a_live_session_listens_for_them_too():
    """In partials and finals, with the default strength."""
    sound = np.concatenate(list(Audio(PANEL).blocks()), axis=1)[0][: 12 * 16_000]
    messages = []
    listener = Listener(16_000, "pcm_s16le", "sphinx", Wanted(boost=SAID), partials=True, tell=messages.append)
    for at in range(0, len(sound), 3200):
        listener.take(AUDIO, sound[at : at + 3200].tobytes())
    listener.take(TERMINATE)
    for kind in ("PartialTranscript", "FinalTranscript"):
        text = " ".join(message["text"] for message in messages if message["message_type"] == kind)
        assert "Main Street" in text


@pytest.mark.speech
def test_a_job_listens_for_the_words_of_its_request(audio_folder):
    """A word of a real recording that is misheard without: with the boost it is in the text, and timed."""
    path = audio_folder / "ss-0870.wav"
    bare, boosted = (run_job(path, how) for how in ({}, {"word_boost": ["Prudently"], "boost_param": "low"}))
    assert "prudently" not in bare["text"].lower()
    word = next(word for word in boosted["words"] if word["text"] == "Prudently")
    with wave.open(str(path)) as file:
        assert 0 < word["start"] < word["end"] < file.getnframes() / file.getframerate() * 1000
