"""Packing of stretches of speech into windows, and times of words in them."""

import numpy as np
import pytest

from voxframe_engine.speech import RATE
from voxframe_engine.speech.vad import Stretch, Window, WindowPacker


def stretch(start_s: float, end_s: float) -> Stretch:
    """Return a stretch whose samples count from its start."""
    start, end = round(start_s * RATE), round(end_s * RATE)
    return Stretch(start, (np.arange(start, end) % 30_000).astype(np.int16))


def packed(stretches: list[Stretch]) -> list[Window]:
    packer = WindowPacker()
    return [*(window for each in stretches for window in packer.feed(each)), *packer.finish()]


def test_windows_are_cut_at_the_longest_pause_of_their_second_half():
    """Ten stretches of 4 s are two windows: the cut is at the pause of 3 s after the fifth, not where 29 s are full."""
    starts = [4.5 * n + (2.5 if n >= 5 else 0) for n in range(10)]
    windows = packed([stretch(start, start + 4) for start in starts])
    assert [len(window.stretches) for window in windows] == [5, 5]
    assert all(len(window.samples) <= 29 * RATE for window in windows)


def test_every_stretch_is_in_one_window():
    """No sound is lost or repeated, whatever the lengths are."""
    lengths, at, stretches = np.random.default_rng(3).uniform(0.2, 28, 60), 0.0, []
    for length in lengths:
        stretches.append(stretch(at, at + length))
        at += length + 0.1 + length % 3
    windows = packed(stretches)
    assert [each for window in windows for each in window.stretches] == stretches
    assert max(len(window.samples) for window in windows) <= 29 * RATE


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ((500, 900), (1500, 1900)),  # in the first stretch, from 1 s on
        ((2500, 2900), (60_500, 60_900)),  # in the second, from 60 s on
        ((1900, 2050), (2900, 3000)),  # mostly in the first, which ends at 3 s
        ((1950, 2400), (60_000, 60_400)),  # mostly in the second
        ((3900, 4100), (61_900, 62_000)),  # beyond the end of the sound
    ],
)
def test_a_word_has_the_time_of_its_stretch_in_the_recording(word, place):
    """The shortened pause is put back, and no word lies in it."""
    assert Window((stretch(1, 3), stretch(60, 62))).span_ms(*word) == place
