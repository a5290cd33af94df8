"""Audio to words and speakers. This module has what goes into a speech engine and comes out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:  # the server process handles no samples, and starts faster without numpy
    import numpy as np
    from numpy.typing import NDArray

#: 16-bit samples: one channel, or one row per channel.
Samples: TypeAlias = "NDArray[np.int16]"

#: Sample rate after decoding, in Hz.
RATE = 16_000


class RecognizedWord(NamedTuple):
    """A word recognized by an engine.

    Attributes:
        text: The word, with its punctuation if the engine writes it.
        start_ms: Start time, in ms of the samples.
        end_ms: End time.
        confidence: 0 to 1.
    """

    text: str
    start_ms: int
    end_ms: int
    confidence: float


class EngineOptions(NamedTuple):
    """Options of a job for its engine.

    Attributes:
        model: Directory or name of the model. None (default): the engine's own.
        language: Language code of the speech. None (default): unknown, to be detected (see `Engine`).
        boost: Words and phrases to expect.
        boost_param: Strength of the boost: "low", "default" or "high".
    """

    model: str | None = None
    language: str | None = None
    boost: tuple[str, ...] = ()
    boost_param: str = "default"


#: Options of a job that requests nothing in particular.
DEFAULT_OPTIONS = EngineOptions()
