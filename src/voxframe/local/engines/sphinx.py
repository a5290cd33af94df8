"""The default engine: pocketsphinx with the English models it brings. Offline, one core, no key."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pocketsphinx import Decoder

from voxframe.local.engines import Heard

_FRAME_MS = 10
_VARIANT = re.compile(r"\(\d+\)$")  # the dictionary numbers the ways a word is said
_FILLED = {"[UM]": "um", "[UH]": "uh", "++UM++": "um", "++UH++": "uh"}


class Sphinx:
    """English read or clearly spoken, without much noise; not telephone speech."""

    name: ClassVar[str] = "sphinx"
    model: ClassVar[str] = "sphinx_en_us"
    languages: ClassVar[frozenset[str]] = frozenset({"en", "en_us", "en_uk", "en_au"})

    def __init__(self) -> None:
        self._decoder = Decoder(loglevel="FATAL", fwdflatbeam=1e-80, fwdflatwbeam=1e-40)

    def transcribe(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Words of the samples."""
        decoder = self._decoder
        decoder.start_utt()
        decoder.process_raw(samples.tobytes(), full_utt=True)
        decoder.end_utt()
        heard = []
        for part in decoder.seg() or ():
            word = _VARIANT.sub("", part.word)
            filler = _FILLED.get(word)
            if filler is None and word[:1] in "<[+":
                continue
            start, end = part.start_frame * _FRAME_MS, (part.end_frame + 1) * _FRAME_MS
            heard.append(Heard(filler or word, start, end, min(1.0, max(0.0, part.prob)), filler is not None))
        return heard
