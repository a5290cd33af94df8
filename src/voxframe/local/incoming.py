"""Audio as a client streams it, to 16 kHz samples."""

from __future__ import annotations

import av
import numpy as np

from voxframe.local.samples import RATE, Samples


def _mulaw_table() -> Samples:
    """Linear value of each mu-law byte (ITU-T G.711). The module that had it, audioop, is gone from Python 3.13 on."""
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    magnitude = ((((code & 0x0F) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


_MULAW = _mulaw_table()


class Incoming:
    """Decodes and resamples one stream, piece by piece.

    Args:
        rate: Samples a second of what comes.
        encoding: "pcm_s16le" or "pcm_mulaw".
    """

    def __init__(self, rate: int, encoding: str) -> None:
        self._rate = rate
        self._mulaw = encoding == "pcm_mulaw"
        self._resampler = None if rate == RATE else av.AudioResampler(format="s16", layout="mono", rate=RATE)

    def samples(self, data: bytes) -> Samples:
        """Samples at 16 kHz of one piece; a few of its last come with the next."""
        samples = _MULAW[np.frombuffer(data, np.uint8)] if self._mulaw else np.frombuffer(data, "<i2").astype(np.int16)
        if self._resampler is None:
            return samples
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate = self._rate
        return self._joined(frame)

    def rest(self) -> Samples:
        """What was still kept back, at the end of the stream."""
        return np.zeros(0, np.int16) if self._resampler is None else self._joined(None)

    def _joined(self, frame: av.AudioFrame | None) -> Samples:
        assert self._resampler is not None
        pieces = [out.to_ndarray()[0] for out in self._resampler.resample(frame)]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
