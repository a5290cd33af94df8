"""A copy of a recording with a tone over what nobody should hear."""

import wave
from pathlib import Path

import av
import numpy as np
import pytest

from voxframe_engine import JobFailed
from voxframe_engine.speech.audio import TONE_HZ, Audio, redact_audio

DATA = Path(__file__).parents[2] / "data"
SPANS = [(1000, 1800), (3000, 3250), (9900, 10400)]  # the last lies across two blocks


def heard(path: Path) -> tuple[np.ndarray, int]:
    """All samples of a file as an independent reader gives them, a row a channel, and their rate."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray().astype(float) for frame in container.decode(audio=0)]
        stream = container.streams.audio[0]
        channels, rate = stream.channels, stream.rate
    if frames[0].shape[0] == 1:  # interleaved
        return np.concatenate(frames, axis=1).reshape(-1, channels).T, rate
    return np.concatenate(frames, axis=1), rate


def share_at_tone(sound: np.ndarray, rate: int) -> float:
    """Share of the energy that is within 20 Hz of the tone."""
    power = np.abs(np.fft.rfft(sound * np.hanning(len(sound)))) ** 2
    near = np.abs(np.fft.rfftfreq(len(sound), 1 / rate) - TONE_HZ) < 20
    return float(power[near].sum() / max(power.sum(), 1e-12))


def tone_file(path: Path, rate: int, channels: int, seconds: float, hz: float = 300.0) -> Path:
    """A recording of a quiet tone that is not the covering one."""
    layout = "stereo" if channels == 2 else "mono"
    wave = (np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate) * 8000).astype(np.int16)
    with av.open(str(path), "w") as target:
        stream = target.add_stream("pcm_s16le", rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(np.repeat(wave, channels)[None, :], format="s16", layout=layout)
        frame.sample_rate = rate
        target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return path


@pytest.mark.long
@pytest.mark.parametrize("quality", ["mp3", "wav"])
def test_the_tone_is_where_it_should_be_and_nowhere_else(quality, tmp_path):
    """Covered spans contain only the tone; the rest equals the recording."""
    source = tmp_path / "interview.wav"
    redact_audio(DATA / "interview.flac", [], source, "wav")
    out = tmp_path / f"covered.{quality}"
    redact_audio(DATA / "interview.flac", SPANS, out, quality)
    (original,), rate = heard(source)
    (covered,), _ = heard(out)
    for start, end in SPANS:
        first, last = (start + 30) * rate // 1000, (end - 30) * rate // 1000
        assert share_at_tone(covered[first:last], rate) > 0.99
        assert abs(np.corrcoef(covered[first:last], original[first:last])[0, 1]) < 0.1
    for start, end in [(0, 950), (1900, 2950), (11_000, 20_000)]:
        first, last = start * rate // 1000, end * rate // 1000
        assert share_at_tone(covered[first:last], rate) < 0.3
        assert np.corrcoef(covered[first:last], original[first:last])[0, 1] > 0.95


@pytest.mark.parametrize("quality", ["mp3", "wav"])
@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 44_100])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_copy_is_as_long_as_the_recording(quality, rate, channels, tmp_path):
    """To within one frame of the encoder, at every rate, with both channels."""
    source = tone_file(tmp_path / "in.wav", rate, channels, 4.321)
    out = tmp_path / f"out.{quality}"
    redact_audio(source, [(500, 900)], out, quality)
    sound, out_rate = heard(out)
    assert out_rate == rate
    assert sound.shape[0] == channels
    assert abs(sound.shape[1] / out_rate - 4.321) <= (1152 / rate if quality == "mp3" else 0.001)
    for row in sound:
        assert share_at_tone(row[int(0.55 * rate) : int(0.85 * rate)], rate) > 0.99
        assert share_at_tone(row[int(2 * rate) : int(3 * rate)], rate) < 0.01


def test_the_picture_of_a_video_is_left_out(tmp_path):
    """Only sound is copied."""
    source = tmp_path / "in.mp4"
    with av.open(str(source), "w") as target:
        video = target.add_stream("mpeg4", rate=10)
        video.width = video.height = 64
        video.pix_fmt = "yuv420p"
        audio = target.add_stream("aac", rate=48_000, layout="mono")
        for _ in range(10):
            target.mux(video.encode(av.VideoFrame(64, 64, "yuv420p")))
        target.mux(video.encode(None))
        for at in range(0, 48_000, 1024):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 48_000, at
            target.mux(audio.encode(frame))
        target.mux(audio.encode(None))
    out = tmp_path / "out.mp3"
    redact_audio(source, [(200, 400)], out)
    with av.open(str(out)) as container:
        assert [stream.type for stream in container.streams] == ["audio"]
    audio = Audio(source)
    list(audio.blocks())
    assert heard(out)[0].shape[1] / 48_000 == pytest.approx(audio.seconds, abs=1152 / 48_000)


def test_a_file_without_sound_leaves_no_copy(tmp_path):
    """The reason is the interface's own, and no half of a file stays behind."""
    source = tmp_path / "page.html"
    source.write_text("<!doctype html><html></html>")
    with pytest.raises(JobFailed, match="does not appear to contain audio"):
        redact_audio(source, [(0, 100)], tmp_path / "out.mp3")
    assert not (tmp_path / "out.mp3").exists()


def test_a_wav_copy_has_room_for_the_length_of_many_hours(tmp_path):
    """The header reserves the chunk that becomes "ds64" if the copy has more than 4 GB (EBU Tech 3306, 5.3)."""
    source = tone_file(tmp_path / "in.wav", 16_000, 1, 1.0)
    redact_audio(source, [(0, 100)], tmp_path / "out.wav", "wav")
    assert (tmp_path / "out.wav").read_bytes()[12:20] == b"JUNK" + (28).to_bytes(4, "little")
    with wave.open(str(tmp_path / "out.wav")) as file:
        assert file.getnframes() == 16_000
