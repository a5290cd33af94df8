"""Speaker diarization."""

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from voxframe_engine.speech.diarization import WIDTH, VoiceFeatures, label_speakers, voice_features
from voxframe_engine.text import Word

DATA = Path(__file__).parents[2] / "data"


def conversation(turns: str, seed: int = 0, words: int = 8) -> tuple[list[Word], list[VoiceFeatures]]:
    """Words of 300 ms, `words` a turn, and voice features drawn from a Gaussian of each speaker's own."""
    rng = np.random.default_rng(seed)
    shapes = {name: (rng.normal(0, 1.5, WIDTH), rng.normal(0, 0.5, (WIDTH, WIDTH))) for name in sorted(set(turns))}
    said, rows, at = [], [], 0
    for name in turns:
        mean, mixing = shapes[name]
        for _ in range(words):
            said.append(Word(name, at, at + 300, 0.9))
            rows.append(mean + rng.normal(0, 1, (30, WIDTH)) @ (np.eye(WIDTH) + mixing))
            at += 300
        rows.append(rng.normal(0, 1, (40, WIDTH)))  # a pause
        at += 400
    return said, [VoiceFeatures(0, np.concatenate(rows).astype(np.float16))]


def labels(turns: str, expected: int | None, **how: int) -> list[str]:
    """The label of each turn; a turn whose words have several is "?"."""
    words, voices = conversation(turns, **how)
    label_speakers(words, voices, expected)
    size = how.get("words", 8)
    found = [{word.speaker for word in words[at : at + size]} for at in range(0, len(words), size)]
    return [names.pop() if len(names) == 1 else "?" for names in found]


@pytest.mark.parametrize("seed", range(5))
def test_labels_follow_the_order_of_appearance(seed):
    """The first speaker is A, for any voices; the same voice has the same label later."""
    assert labels("xyxzyx", 3, seed=seed) == ["A", "B", "A", "C", "B", "A"]


@pytest.mark.parametrize(("turns", "count"), [("xxxxxx", 1), ("xyxyxy", 2), ("xyzxyzxyz", 3), ("vwxyzvwxyz", 5)])
def test_the_number_of_speakers_is_found(turns, count):
    """The number of speakers is estimated correctly if it is not given."""
    assert len(set(labels(turns, None))) == count


def test_no_more_labels_than_expected():
    """Told to look for two among three voices, it gives two labels."""
    assert len(set(labels("xyzxyz", 2))) == 2


def test_more_expected_than_there_are_words_for():
    """Ten speakers in one short turn: labels are still letters from A."""
    words, voices = conversation("x", words=2)
    label_speakers(words, voices, 10)
    assert [word.speaker for word in words] == ["A", "A"]


def test_no_words_and_words_without_sound():
    """An empty transcript, and words too short to have a voice, cause no error."""
    label_speakers([], [], 2)
    words = [Word("a", 0, 10, 0.5), Word("b", 10, 15, 0.5)]
    label_speakers(words, [VoiceFeatures(0, np.zeros((1, WIDTH), np.float16))])
    assert [word.speaker for word in words] == ["A", "A"]


def test_features_tell_vowels_apart_and_not_loudness():
    """The same sound half as loud has nearly the same features; another sound has not."""
    time = np.arange(16_000) / 16_000
    low = sum(np.sin(2 * np.pi * 120 * n * time) / (1 + abs(n - 5)) for n in range(1, 30))
    high = sum(np.sin(2 * np.pi * 120 * n * time) / (1 + abs(n - 18)) for n in range(1, 30))
    loud, soft, other = (
        voice_features((4000 * sound).astype(np.int16)).astype(float) for sound in (low, low / 2, high)
    )
    assert loud.shape == (98, WIDTH)
    same = np.linalg.norm(loud.mean(axis=0) - soft.mean(axis=0))
    different = np.linalg.norm(loud.mean(axis=0) - other.mean(axis=0))
    assert same < 0.1 * different


def test_too_little_sound_has_no_features():
    """Less than one frame of 25 ms."""
    assert voice_features(np.zeros(399, np.int16)).shape == (0, WIDTH)


@pytest.mark.long
@pytest.mark.parametrize("name", ["interview", "panel"])
@pytest.mark.parametrize("told", [True, False])
def test_the_sample_speakers_are_told_apart(name, told):
    """With the true words, at most 3% of their time goes to the wrong speaker, and the count is right."""
    from voxframe_engine.speech.audio import Audio

    truth = json.loads((DATA / f"{name}.json").read_text())
    true, words = [], []
    for turn in truth["turns"]:
        for word in turn["words"]:
            true.append(turn["speaker"])
            words.append(Word(word["text"], word["start_ms"], word["end_ms"], 1.0))
    sound = np.concatenate(list(Audio(DATA / f"{name}.flac").blocks()), axis=1)[0]
    speakers = sorted(set(true))
    label_speakers(words, [VoiceFeatures(0, voice_features(sound))], len(speakers) if told else None)
    given = sorted({word.speaker for word in words})
    assert len(given) == len(speakers)
    shared = np.zeros((len(speakers), len(given)))
    for name_, word in zip(true, words, strict=True):
        shared[speakers.index(name_), given.index(word.speaker)] += word.end - word.start
    best = max(sum(shared[row, column] for row, column in enumerate(way)) for way in permutations(range(len(given))))
    assert best / shared.sum() >= 0.97


def test_many_hours_are_labelled_in_parts(monkeypatch):
    """Features are read a part at a time, to limit memory, and the size of the parts does not change a label."""
    whole = labels("xyxzyx", 3)
    monkeypatch.setattr("voxframe_engine.speech.diarization._CHUNK", 7)
    assert labels("xyxzyx", 3) == whole == ["A", "B", "A", "C", "B", "A"]
