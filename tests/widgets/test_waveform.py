"""Waveforms of players."""

import wave
from pathlib import Path

import numpy as np

from voxframe.widgets.player_data import PEAK_MS, peaks


def test_peaks_follow_the_loudness(tmp_path: Path) -> None:
    """Each peak is of 20 ms; a tone of half the loudness has half the peak, and silence has none."""
    rate = 4000
    tone = np.sin(2 * np.pi * 200 * np.arange(rate) / rate)
    samples = np.concatenate([tone, 0 * tone, 0.5 * tone])
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((30_000 * samples).astype("<i2").tobytes())
    loud = np.frombuffer(peaks(tmp_path / "a.wav"), np.uint8)
    second = 1000 // PEAK_MS
    assert len(loud) == 3 * second
    assert (loud[:second] > 250).all()
    assert (loud[second : 2 * second] == 0).all()
    assert np.abs(loud[2 * second :].astype(int) - 127).max() <= 3


def test_what_cannot_be_decoded_has_no_waveform(tmp_path: Path) -> None:
    """A file that is no recording gives no peaks and no error."""
    (tmp_path / "a.mp3").write_bytes(b"no sound at all")
    assert peaks(tmp_path / "a.mp3") == b""
