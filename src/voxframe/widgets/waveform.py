"""The loudness of a recording, to draw its waveform."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np

from voxframe.client.stream.audio_sources import open_source
from voxframe.errors import AudioError, MissingExtraError

#: Length in ms of the sound that a peak is of.
PEAK_MS = 20
_RATE = 4000  # Hz, enough for the loudness of speech


def peaks(path: Path) -> bytes:
    """Return the loudest sample of each 20 ms of a recording as a byte, relative to the loudest of all.

    Empty if the recording cannot be decoded: a browser may play it nevertheless.
    """
    size = _RATE * PEAK_MS // 1000
    loudest, pending = [], np.zeros(0, np.int16)
    try:
        for chunk in cast("Iterable[bytes]", open_source(path, _RATE, "pcm_s16le").chunks):
            pending = np.concatenate([pending, np.frombuffer(chunk, "<i2")])
            complete = len(pending) // size * size
            loudest.append(np.abs(pending[:complete].reshape(-1, size).astype(np.int32)).max(axis=1, initial=0))
            pending = pending[complete:]
    except (AudioError, MissingExtraError):
        return b""
    levels = np.concatenate([*loudest, np.zeros(0, np.int32)])
    return bytes((255 * levels // max(1, levels.max(initial=0))).astype(np.uint8))
