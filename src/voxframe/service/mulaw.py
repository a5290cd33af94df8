"""Linear samples to mu-law (ITU-T G.711)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BIAS, _LOUDEST = 132, 32635


def encode(samples: NDArray[np.int16]) -> bytes:
    """One byte a sample.

    Args:
        samples: 16-bit samples, any shape.

    Example:
        >>> encode(np.array([0, 32767, -32768], np.int16)).hex()
        'ff8000'
    """
    linear = samples.astype(np.int32)
    magnitude = np.minimum(np.abs(linear), _LOUDEST) + _BIAS
    exponent = np.frexp(magnitude.astype(np.float64))[1].astype(np.int32) - 8
    mantissa = (magnitude >> (exponent + 3)) & 0x0F
    sign = np.where(linear < 0, 0x80, 0)
    return bytes((~(sign | (exponent << 4) | mantissa) & 0xFF).astype(np.uint8).tobytes())
