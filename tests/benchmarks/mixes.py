"""Conversations made of recordings of single readers, with the truth of who speaks when."""

from __future__ import annotations

import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from voxframe_engine.speech.audio import Audio

Samples = NDArray[np.int16]
RATE = 16_000
#: Recordings of each reader.
READERS = {
    "kennedy": ["jfk.mp3"],
    "austen": ["ss-0870.wav", "ss-0880.wav", "ss-0890.wav", "ss-0920.wav", "ss-0930.wav"],
    "libri": ["libri-2412-0.flac", "libri-2412-1.flac"],
    "abbie": ["ami-es2011a.wav"],
    "french": ["french.aiff"],
    "chinese": ["chinese.flac"],
    "vote": ["cv-en.mp3"],
}
_FRAME = RATE // 50
_LOUDNESS = 1500  # root mean square of each reader's speech
_QUIET = 0.1  # of that, below which a frame is a pause
_PAUSE_FRAMES = 15  # that end a piece
_NOISE = 8


class Turn(NamedTuple):
    """A turn of a mix, in seconds."""

    start: float
    end: float
    reader: str


def sound_of(path: Path) -> Samples:
    """Return the sound of a file, mono, 16 kHz."""
    return np.concatenate(list(Audio(path).blocks()), axis=1)[0]


def pieces(sound: Samples) -> list[Samples]:
    """Return the speech of a recording, cut at its pauses, at one loudness."""
    if len(sound) < _FRAME:
        return []
    frames = sound[: len(sound) // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    level = np.sqrt((frames**2).mean(1))
    loud = level > _QUIET * np.sqrt((level**2).mean())
    at = np.nonzero(loud)[0]
    if not len(at):
        return []
    scale = _LOUDNESS / np.sqrt((frames[loud] ** 2).mean())
    groups = np.split(at, np.nonzero(np.diff(at) > _PAUSE_FRAMES)[0] + 1)
    cut = [sound[group[0] * _FRAME : (group[-1] + 1) * _FRAME] for group in groups]
    return [np.clip(piece * scale, -32768, 32767).astype(np.int16) for piece in cut if len(piece) >= RATE // 2]


def readers(folder: Path) -> dict[str, Samples]:
    """Return the speech of each reader in the folder, without pauses."""
    return {
        name: np.concatenate([piece for file in files for piece in pieces(sound_of(folder / file))])
        for name, files in READERS.items()
    }


def mix(
    voices: Mapping[str, Samples], names: Sequence[str], seed: int, seconds: float = 90.0
) -> tuple[Samples, list[Turn]]:
    """Return a conversation of readers, and its turns.

    A third of the turns last about 1 s, the others 2 to 7 s. Between turns are pauses of up to 1.2 s, or, in a third of
    the changes, an overlap: about a tenth of the speech. Each reader has a loudness within 6 dB.
    """
    rng = np.random.default_rng(seed)
    gains = {name: 10 ** (rng.uniform(-3, 3) / 20) for name in names}
    places = {name: int(rng.integers(len(voices[name]))) for name in names}
    sound = rng.normal(0, _NOISE, int((seconds + 10) * RATE))
    turns: list[Turn] = []
    end, last = 0.0, ""
    order = list(rng.permutation(names))
    while end < seconds or order:
        name = order.pop(0) if order else str(rng.choice([each for each in names if each != last]))
        length = rng.uniform(0.8, 1.3) if rng.random() < 1 / 3 and not order else rng.uniform(2, 7)
        voice = voices[name]
        count = int(min(length, len(voice) / RATE) * RATE)
        part = np.take(voice, np.arange(places[name], places[name] + count), mode="wrap")
        places[name] = (places[name] + count) % len(voice)
        overlap = rng.uniform(0.4, 1.6) if turns and rng.random() < 1 / 3 else 0.0
        start = max(0.0, end - min(overlap, 0.6 * count / RATE)) if overlap else end + rng.uniform(0.0, 1.2)
        at = int(start * RATE)
        if at + count > len(sound):
            break
        sound[at : at + count] += part * gains[name]
        turns.append(Turn(start, start + count / RATE, name))
        end, last = max(end, start + count / RATE), name
    return np.clip(sound[: int(end * RATE)], -32768, 32767).astype(np.int16), turns


def write(path: Path, sound: Samples) -> None:
    """Write sound to a WAV file."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(sound.astype("<i2").tobytes())


def wrong_labels(true: Sequence[set[str]], labels: Sequence[str]) -> float:
    """Return the share of words with a wrong speaker, for the best assignment of labels to speakers.

    Args:
        true: Speakers of each word; several if they speak at once.
        labels: Label of each word.
    """
    speakers, given = sorted(set().union(*true)), sorted(set(labels))
    matches = np.zeros((len(speakers), len(given)))
    for names, label in zip(true, labels, strict=True):
        for name in names:
            matches[speakers.index(name), given.index(label)] += 1
    return 1 - matches[linear_sum_assignment(-matches)].sum() / max(1, len(labels))
