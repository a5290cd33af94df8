# ruff: noqa: INP001 a module of a script, not a package
"""Sentences spoken by flite voices, with the times of the words.

The command `flite` prints segments, not words, so this module calls the library behind it (Debian: `libflite1`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

RATE = 16_000

_WORD_START = b"R:SylStructure.daughter1.daughter1.R:Segment.p.end"
_WORD_END = b"R:SylStructure.daughtern.daughtern.R:Segment.end"


@dataclass(frozen=True)
class Spoken:
    """A spoken sentence.

    Attributes:
        samples: int16 samples at `RATE`, with the voice's own silence at both ends.
        words: The word as written, its start in s and its end in s, for each word.
    """

    samples: np.ndarray
    words: list[tuple[str, float, float]]


class _Wave(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    )


_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_SIGNATURES = {
    "flite_init": (ctypes.c_int, []),
    "flite_synth_text": (_POINTER, [_TEXT, _POINTER]),
    "utt_relation": (_POINTER, [_POINTER, _TEXT]),
    "utt_wave": (ctypes.POINTER(_Wave), [_POINTER]),
    "relation_head": (_POINTER, [_POINTER]),
    "item_next": (_POINTER, [_POINTER]),
    "ffeature_string": (_TEXT, [_POINTER, _TEXT]),
    "ffeature_float": (ctypes.c_float, [_POINTER, _TEXT]),
    "delete_utterance": (None, [_POINTER]),
}


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libflite.so.1")
    except OSError as error:
        raise SystemExit(f"the flite library is not installed (Debian: apt-get install flite): {error}") from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.flite_init()
    return library


@functools.cache
def _voice(name: str) -> int:
    _library()  # must be loaded before a voice
    register = getattr(ctypes.CDLL(f"libflite_cmu_us_{name}.so.1"), f"register_cmu_us_{name}")
    register.restype, register.argtypes = _POINTER, [_POINTER]
    return register(None)


def _items(utterance: int, relation: bytes) -> Iterator[int]:
    library = _library()
    item = library.relation_head(library.utt_relation(utterance, relation))
    while item:
        yield item
        item = library.item_next(item)


def speak(sentence: str, voice: str) -> Spoken:
    """Speak one sentence.

    Args:
        sentence: Words as they are spoken, with numbers written out and without contractions: each written word must
            be one spoken word.
        voice: Name of a flite voice: slt, rms, awb or kal16.

    Raises:
        ValueError: The voice speaks a written word as several words, so the word has no time of its own.
    """
    library = _library()
    utterance = library.flite_synth_text(sentence.encode("ascii"), _voice(voice))
    try:
        wave = library.utt_wave(utterance).contents
        if (wave.sample_rate, wave.num_channels) != (RATE, 1):
            raise ValueError(f"voice {voice} speaks at {wave.sample_rate} Hz; choose one that speaks at {RATE} Hz")
        samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).copy()
        said = [
            (
                library.ffeature_string(item, b"name").decode(),
                library.ffeature_float(item, _WORD_START),
                library.ffeature_float(item, _WORD_END),
            )
            for item in _items(utterance, b"Word")
        ]
    finally:
        library.delete_utterance(utterance)
    written = sentence.split()
    if [w.strip(".,?!").lower() for w in written] != [w for w, _, _ in said]:
        raise ValueError(f"{sentence!r} is spoken as {[w for w, _, _ in said]}; write it the way it is spoken")
    return Spoken(samples, [(w, start, end) for w, (_, start, end) in zip(written, said, strict=True)])
