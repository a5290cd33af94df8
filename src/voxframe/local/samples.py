"""Sound as numbers, and how fast they follow each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Sound: 16-bit samples, of one channel or with a row for each.
Samples = NDArray[np.int16]

#: Samples a second of everything below the decoder.
RATE = 16_000
