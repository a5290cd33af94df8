"""The default engine: pocketsphinx with the English models it brings. Offline, one core, no key."""

from __future__ import annotations

import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pocketsphinx import Decoder

from voxframe.local.engines import NOTHING, Heard, Live, Wanted
from voxframe.local.engines.boosting import as_said, listen_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FRAME_MS = 10
_VARIANT = re.compile(r"\(\d+\)$")  # the dictionary numbers the ways a word is said
_NOT_A_WORD = ("<", "[", "+")  # silence, noise
#: Spellings of the dictionary, by the way they were said, that are not how the word is spoken.
_SPOKEN = {
    "mr": "mister",
    "mr.": "mister",
    "mrs": "missus",
    "mrs.": "missus",
    "dr": "drive",
    "dr(2)": "doctor",
    "dr.": "drive",
    "dr.(2)": "doctor",
    "st": "street",
    "st(2)": "saint",
    "us(2)": "US",
    "ok": "okay",
    "tv": "TV",
}

# Measured: the second pass hears better with wider beams, and where it takes up words that ended in 2 frames, not 4.
SETTINGS = {"fwdflatbeam": 1e-72, "fwdflatwbeam": 1e-36, "fwdflatefwid": 2}


class Sphinx:
    """English that is read or spoken clearly, without much noise; not telephone speech."""

    name: ClassVar[str] = "sphinx"
    model: ClassVar[str] = "sphinx_en_us"
    languages: ClassVar[frozenset[str]] = frozenset({"en", "en_us", "en_uk", "en_au"})

    def __init__(self, wanted: Wanted = NOTHING) -> None:
        self._wanted = wanted

    @cached_property  # who only follows speech has no use for it
    def _decoder(self) -> Decoder:
        return Decoder(loglevel="FATAL", **SETTINGS)

    @cached_property
    def _boosted(self) -> dict[str, str]:
        return listen_for(self._decoder, self._wanted.boost, self._wanted.boost_param)

    def transcribe(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Words of the samples."""
        boosted = self._boosted  # before the decoder begins
        new_stream(self._decoder)
        self._decoder.start_utt()
        self._decoder.process_raw(samples.tobytes(), full_utt=True)
        self._decoder.end_utt()
        return list(as_said(heard(self._decoder), boosted))

    def live(self) -> Live:
        """Follows speech while it is spoken."""
        from voxframe.local.engines.sphinx_live import SphinxLive

        return SphinxLive(self._wanted)


def new_stream(decoder: Decoder) -> None:
    """Forget the noise of what was heard before."""
    with warnings.catch_warnings():
        # Deprecated as unnecessary, yet without it the noise estimate of one stretch changes the words of the next.
        warnings.simplefilter("ignore", DeprecationWarning)
        decoder.start_stream()


def heard(decoder: Decoder) -> list[Heard]:
    """The words a decoder has heard in its utterance so far."""
    return [
        Heard(
            _spoken(part.word),
            part.start_frame * _FRAME_MS,
            (part.end_frame + 1) * _FRAME_MS,
            min(1.0, max(0.0, part.prob)),
        )
        for part in decoder.seg() or ()
        if not part.word.startswith(_NOT_A_WORD)
    ]


def _spoken(entry: str) -> str:
    """The word of a dictionary entry: "u.s." is US, "b." the letter B, "read(2)" read."""
    if entry in _SPOKEN:
        return _SPOKEN[entry]
    word = _VARIANT.sub("", entry)
    if word in _SPOKEN:
        return _SPOKEN[word]
    if "." not in word:
        return word
    letters = word.rstrip(".").split(".")
    return "".join(letters).upper() if all(len(letter) == 1 for letter in letters) else "".join(letters)
