"""A Whisper model that encodes a window that fits the sound, instead of the 30 s that the library always encodes.

Encoding takes most of the time of a short utterance. A window that just fits makes the model repeat itself and invent
words. A window of 10 s does not, if the model also predicts times, as it was trained to.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from faster_whisper import WhisperModel
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ctranslate2 import StorageView

_FRAMES_PER_S = 100
_MARGIN_S = 2.0  # silence of the window after the sound; with less, the model repeats itself more often
_QUICK_S = 8.0  # of 500 words in partials, 60 are wrong; with 10 s 57, for 1.25 times the time


class ShortWindowModel(WhisperModel):  # type: ignore[misc]  # the library has no types
    """The model of the library with windows that may be shorter than 30 s.

    Attributes:
        shortest_s: Shortest window, in seconds.
    """

    shortest_s = 10.0

    @cached_property
    def quick(self) -> ShortWindowModel:
        """The same model with a shorter window, for speech that is still spoken."""
        quick = copy.copy(self)
        quick.shortest_s = _QUICK_S
        return quick

    @cached_property
    def full(self) -> ShortWindowModel:
        """The same model with a window of 30 s, for a doubtful result."""
        full = copy.copy(self)
        full.shortest_s = 30.0
        return full

    def encode(self, features: NDArray[np.float32]) -> StorageView:
        """Encode features of shape (bands, frames) without most of the frames of zeros that the library appended."""
        sound = np.flatnonzero(features.any(axis=0))
        frames = (int(sound[-1]) + 1 if len(sound) else 0) + round(_MARGIN_S * _FRAMES_PER_S)
        frames = min(max(frames, round(self.shortest_s * _FRAMES_PER_S)), features.shape[-1]) // 2 * 2
        return super().encode(np.ascontiguousarray(features[:, :frames]))  # the encoder halves their number
