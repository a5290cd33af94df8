import av
import numpy as np
import pytest

from voxframe_engine.speech.audio import StreamDecoder


def tone(rate: int, seconds: float) -> np.ndarray:
    return np.round(12_000 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype("<i2")


def test_mulaw_is_decoded_as_another_decoder_does() -> None:
    """All 256 codes have the values that FFmpeg gives them."""
    codes = bytes(range(256))
    decoder = av.CodecContext.create("pcm_mulaw", "r")
    decoder.sample_rate, decoder.layout = 8000, "mono"
    theirs = np.concatenate([frame.to_ndarray()[0] for frame in decoder.decode(av.Packet(codes))])
    assert StreamDecoder(16_000, "pcm_mulaw").samples(codes).tolist() == theirs.tolist()


def test_samples_at_16_khz_pass_as_they_are() -> None:
    """Samples at 16 kHz are not changed."""
    samples = tone(16_000, 0.5)
    incoming = StreamDecoder(16_000, "pcm_s16le")
    assert incoming.samples(samples.tobytes()).tolist() == samples.tolist()
    assert len(incoming.rest()) == 0


@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 44_100, 48_000])
def test_other_rates_become_16_khz_without_seams(rate: int) -> None:
    """A tone sent in chunks keeps its pitch, duration and loudness, without clicks between chunks."""
    incoming = StreamDecoder(rate, "pcm_s16le")
    data = tone(rate, 2.0).tobytes()
    size = rate // 10 * 2
    pieces = [incoming.samples(data[at : at + size]) for at in range(0, len(data), size)]
    samples = np.concatenate([*pieces, incoming.rest()])
    assert abs(len(samples) - 32_000) < 100
    middle = samples[2000:30_000].astype(float)
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert abs(np.argmax(spectrum) * 16_000 / len(middle) - 440) < 1
    assert abs(np.sqrt(np.mean(middle**2)) - 12_000 / np.sqrt(2)) < 200
    loud = spectrum > spectrum.max() / 1000
    assert loud.sum() < 20
