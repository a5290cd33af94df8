"""Audio to words and speakers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # the server process handles no samples, and starts faster without numpy
    import numpy as np
    from numpy.typing import NDArray

#: 16-bit samples: one channel, or one row per channel.
Samples: TypeAlias = "NDArray[np.int16]"

#: Sample rate after decoding, in Hz.
RATE = 16_000
