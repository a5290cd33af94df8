"""Voice activity detection and the cuts between stretches."""

import json
from pathlib import Path

import numpy as np
import pytest

from voxframe_engine.speech import RATE
from voxframe_engine.speech.audio import Audio
from voxframe_engine.speech.vad import Segmenter, Stretch

DATA = Path(__file__).parents[2] / "data"


def sound(name: str) -> np.ndarray:
    """First channel of a sample recording."""
    return np.concatenate(list(Audio(DATA / f"{name}.flac", separate_channels=True).blocks()), axis=1)[0]


def stretches(samples: np.ndarray, block: int = 10 * RATE) -> list[Stretch]:
    segmenter = Segmenter()
    found = [stretch for at in range(0, len(samples), block) for stretch in segmenter.feed(samples[at : at + block])]
    return [*found, *segmenter.finish()]


@pytest.fixture(scope="module")
def panel() -> np.ndarray:
    """Half a minute of four speakers."""
    return sound("panel")[: 30 * RATE]


@pytest.fixture(scope="module")
def found(panel) -> list[Stretch]:
    """Its stretches of speech."""
    return stretches(panel)


def test_every_true_word_is_in_a_stretch(found):
    """The middle of each word of the panel lies in a stretch; at most one in a hundred does not."""
    words = [
        (word["start_ms"] + word["end_ms"]) / 2000 * RATE
        for turn in json.loads((DATA / "panel.json").read_text())["turns"]
        for word in turn["words"]
        if word["end_ms"] < 29_000
    ]
    spans = [(stretch.start, stretch.start + len(stretch.samples)) for stretch in found]
    inside = [any(start <= middle < end for start, end in spans) for middle in words]
    assert np.mean(inside) >= 0.99


def test_stretches_hold_the_samples_of_their_place_in_order_and_apart(panel, found):
    """A stretch is a copy of what was fed; stretches do not overlap."""
    for stretch in found:
        assert np.array_equal(stretch.samples, panel[stretch.start : stretch.start + len(stretch.samples)])
    ends = [stretch.start + len(stretch.samples) for stretch in found]
    assert all(end <= after.start for end, after in zip(ends[:-1], found[1:], strict=True))


def test_how_the_samples_come_makes_no_difference(panel, found):
    """Blocks of 0.1 s, of a prime number of samples, or all at once: the same stretches."""
    for block in (RATE // 10, 7919):
        again = stretches(panel, block)
        assert [s.start for s in again] == [s.start for s in found]
        assert all(np.array_equal(a.samples, b.samples) for a, b in zip(again, found, strict=True))


def test_speech_without_a_pause_is_cut_where_it_is_quiet(panel):
    """The words of the panel without what is between them are cut before 28 s, at a place quieter than most."""
    words = [word for turn in json.loads((DATA / "panel.json").read_text())["turns"] for word in turn["words"]]
    said = [panel[16 * word["start_ms"] : 16 * word["end_ms"]] for word in words]
    spoken = np.concatenate([*said, *said, *said])
    cut = stretches(spoken)
    assert len(spoken) > 60 * RATE
    assert max(len(stretch.samples) for stretch in cut) <= 28.1 * RATE
    long = [stretch for stretch in cut[:-1] if len(stretch.samples) > 13.5 * RATE]
    assert long
    loudness = np.sqrt(np.mean(spoken[: len(spoken) // 160 * 160].reshape(-1, 160).astype(float) ** 2, axis=1))
    for stretch in long:
        edge = np.sqrt(np.mean(stretch.samples[-160:].astype(float) ** 2))
        assert edge < np.median(loudness)


@pytest.mark.parametrize("level", [0, 30])
def test_silence_and_hiss_hold_no_speech(level):
    """Nothing, and quiet noise, give no stretch and count no speech."""
    segmenter = Segmenter()
    hiss = (np.random.default_rng(2).normal(0, 1, 20 * RATE) * level).astype(np.int16)
    assert [*segmenter.feed(hiss), *segmenter.finish()] == []
    assert segmenter.speech / segmenter.frames < 0.02


def test_a_long_recording_is_not_held(panel):
    """Of two minutes of silence, no more than a few seconds are kept."""
    segmenter = Segmenter()
    for _ in range(12):
        list(segmenter.feed(np.zeros(10 * RATE, np.int16)))
    assert len(segmenter._samples) < 15 * RATE
    assert len(segmenter._chances) < 15 * RATE / 512
