import json

import av
import numpy as np
import pytest

import voxframe
from voxframe_engine.speech.vad import UtteranceDetector

RATE = 16_000


@pytest.fixture(scope="module")
def phrases() -> list[np.ndarray]:
    """Return three phrases of real turns, two seconds each."""
    path = voxframe.sample("interview")
    with av.open(str(path)) as file:
        audio = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)]).astype(np.int16)
    turns = json.loads(path.with_suffix(".json").read_text())["turns"][:3]
    return [audio[turn["start_ms"] * 16 :][: 2 * RATE] for turn in turns]


def quiet(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), np.int16)


def follow(utterances: UtteranceDetector, audio: np.ndarray) -> list[tuple[float, str]]:
    """Return the times at which stretches were complete and utterances ended, in seconds of audio."""
    return [
        ((at + 1600) / RATE, "stretch" if event is not None else "end")
        for at in range(0, len(audio), 1600)
        for event in utterances.feed(audio[at : at + 1600])
    ]


def test_an_utterance_ends_after_the_silence_that_is_wanted(phrases: list[np.ndarray]) -> None:
    """An utterance ends after the requested silence, within the time that speech takes to fade."""
    audio = np.concatenate([quiet(0.5), phrases[0], quiet(4)])
    for silence_ms in (300, 700, 2000):
        ends = [when for when, what in follow(UtteranceDetector(silence_ms), audio) if what == "end"]
        assert len(ends) == 1
        assert 2.5 + silence_ms / 1000 - 0.4 <= ends[0] <= 2.5 + silence_ms / 1000 + 0.4


def test_pauses_shorter_than_that_belong_to_it(phrases: list[np.ndarray]) -> None:
    """Three phrases one second apart are three utterances or one, depending on the requested silence."""
    audio = np.concatenate([part for phrase in phrases for part in (quiet(1), phrase)] + [quiet(6)])
    assert [what for _, what in follow(UtteranceDetector(800), audio)].count("end") == 3
    assert [what for _, what in follow(UtteranceDetector(2500), audio)].count("end") == 1


def test_the_silence_can_be_changed_on_the_way(phrases: list[np.ndarray]) -> None:
    """A new threshold applies immediately."""
    utterances = UtteranceDetector(20_000)
    assert not [what for _, what in follow(utterances, np.concatenate([phrases[0], quiet(3)])) if what == "end"]
    utterances.silence_ms = 500
    assert [what for _, what in follow(utterances, quiet(0.2))] == ["end"]


def test_it_can_be_ended_in_the_middle(phrases: list[np.ndarray]) -> None:
    """An utterance ended on request contains all speech so far; without speech there is nothing to end."""
    utterances = UtteranceDetector(700)
    assert list(utterances.end()) == []
    assert list(utterances.feed(np.concatenate([quiet(0.5), phrases[0]]))) == []
    assert utterances.segmenter.speaking is not None
    stretch, end = utterances.end()
    assert end is None
    assert stretch is not None
    assert stretch.start / RATE == pytest.approx(0.4, abs=0.2)
    assert (stretch.start + len(stretch.samples)) / RATE == pytest.approx(2.5, abs=0.04)
    assert utterances.segmenter.speaking is None
    assert list(utterances.end()) == []


def test_long_speech_ends_at_a_short_pause(phrases: list[np.ndarray]) -> None:
    """An utterance of 20 s ends with its stretch, whatever the requested silence."""
    audio = np.concatenate([part for phrase in phrases * 6 for part in (phrase, quiet(0.6))])
    events = follow(UtteranceDetector(20_000), audio)
    ends = [when for when, what in events if what == "end"]
    assert 20 <= ends[0] <= 41


def test_silence_is_nothing() -> None:
    """Silence contains no utterances."""
    utterances = UtteranceDetector(0)
    assert follow(utterances, quiet(3)) == []
    assert list(utterances.finish()) == []
