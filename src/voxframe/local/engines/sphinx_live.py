"""What pocketsphinx has heard so far of an utterance that is still spoken: quick, and less sure than the final."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pocketsphinx import Decoder

from voxframe.local.engines import NOTHING, Heard, Wanted
from voxframe.local.engines.boosting import as_said, listen_for
from voxframe.local.engines.sphinx import heard, new_stream
from voxframe.local.samples import RATE

# The decoder levels the sound by a mean that it updates as it goes, and begins with one that fits nobody: on six short
# recordings of real speech 51 % of words were wrong with that, 42 % with the mean of the first second.
_FIRST = RATE
# Until then, words that are less sure are better than none: half a second of speech with the silence before it.
_LEAST = round(0.45 * RATE)
# One pass, and the best path through what it found, which tells how sure it is. Fewer paths at a time halve the work,
# for 1.5 % more wrong words.
_SETTINGS = {"fwdflat": False, "maxhmmpf": 2000}
# The mean of samples is there once they were searched too: for one word only, that takes a quarter of the time.
_LEVEL = "level"


class SphinxLive:
    """Follows one utterance after another. What it heard first, it goes over again once a second has been heard."""

    def __init__(self, wanted: Wanted = NOTHING) -> None:
        self._decoder = Decoder(loglevel="FATAL", **_SETTINGS)
        self._boosted = listen_for(self._decoder, wanted.boost, wanted.boost_param)
        self._search = self._decoder.current_search()
        self._decoder.add_keyphrase(_LEVEL, "yes")
        self._levelled = False
        self._samples: list[NDArray[np.int16]] = []
        self._open = False

    def hear(self, samples: NDArray[np.int16]) -> list[Heard]:
        """Take more of the utterance; give the words so far."""
        self._samples.append(samples)
        length = sum(map(len, self._samples))
        if self._open and not self._levelled and length >= _FIRST:
            self._close()
        if not self._open:
            if not self._levelled and length < _LEAST:
                return []
            if not self._levelled:
                self._level(for_good=length >= _FIRST)
            self._begin()
            samples = np.concatenate(self._samples)
        self._decoder.process_raw(samples.tobytes(), full_utt=False)
        # How sure the decoder is, it can tell of a whole utterance only.
        return [word._replace(confidence=0.0) for word in as_said(heard(self._decoder), self._boosted)]

    def end(self) -> list[Heard]:
        """The utterance is over, the next samples are of another. Its words."""
        if self._samples and not self._open:  # too short to have been shown
            self._level(for_good=False)
            self._begin()
            self._decoder.process_raw(np.concatenate(self._samples).tobytes(), full_utt=False)
        self._close()
        words = list(as_said(heard(self._decoder), self._boosted)) if self._samples else []
        if self._samples:
            self._level(for_good=True)
        self._samples.clear()
        return words

    def _close(self) -> None:
        if self._open:
            self._decoder.end_utt()
            self._open = False

    def _begin(self) -> None:
        new_stream(self._decoder)
        if self._levelled:  # else it goes on from what it has: a mean that is set weighs as much as seconds of sound
            self._decoder.set_cmn(self._mean)
        self._decoder.start_utt()
        self._open = True

    def _level(self, *, for_good: bool) -> None:
        """Note the mean of what has been heard of the utterance; for good where that is enough of it."""
        self._decoder.activate_search(_LEVEL)
        new_stream(self._decoder)
        self._decoder.start_utt()
        self._decoder.process_raw(np.concatenate(self._samples).tobytes(), no_search=True, full_utt=True)
        self._decoder.end_utt()
        self._mean: str = self._decoder.get_cmn(False)
        self._decoder.activate_search(self._search)
        self._levelled = for_good
