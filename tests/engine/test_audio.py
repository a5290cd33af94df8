"""Media files become 16 kHz samples."""

import struct
from pathlib import Path

import av
import numpy as np
import pytest

from voxframe_engine import JobFailed
from voxframe_engine.speech import RATE
from voxframe_engine.speech.audio import Audio

SECONDS = 2.0


def tone(hertz: float, seconds: float = SECONDS, rate: int = 44_100) -> np.ndarray:
    """A sine at half of full scale, float32."""
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def write(path: Path, *channels: np.ndarray, codec: str, rate: int = 44_100, form: str | None = None) -> Path:
    """Encode channels of samples into a media file."""
    with av.open(str(path), "w", format=form) as container:
        layout = {1: "mono", 2: "stereo", 4: "quad"}[len(channels)]
        stream = container.add_stream(codec, rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(np.stack(channels), format="fltp", layout=layout)
        frame.sample_rate = rate
        resampler = av.AudioResampler(stream.format, layout, rate, stream.frame_size or None)
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return path


def samples(audio: Audio) -> np.ndarray:
    return np.concatenate(list(audio.blocks()), axis=1)


def pitch(channel: np.ndarray) -> float:
    """The strongest frequency, in Hz."""
    return float(np.argmax(np.abs(np.fft.rfft(channel)))) * RATE / len(channel)


@pytest.mark.parametrize(
    ("name", "codec", "rate"),
    [
        ("a.wav", "pcm_s16le", 44_100),
        ("a.wav", "pcm_mulaw", 8_000),
        ("a.wav", "pcm_f32le", 48_000),
        ("a.mp3", "libmp3lame", 44_100),
        ("a.m4a", "aac", 44_100),
        ("a.mp4", "aac", 44_100),
        ("a.flac", "flac", 22_050),
        ("a.ogg", "libopus", 48_000),
        ("a.webm", "libopus", 48_000),
    ],
)
def test_common_formats_keep_pitch_and_length(tmp_path, name, codec, rate):
    """Every common container and codec gives a tone back at its pitch, loudness and length."""
    path = write(tmp_path / name, tone(440, rate=rate), codec=codec, rate=rate)
    audio = Audio(path)
    sound = samples(audio)
    assert sound.dtype == np.int16
    assert sound.shape[0] == 1
    assert pitch(sound[0]) == pytest.approx(440, abs=1.5)
    assert np.sqrt(np.mean((sound[0] / 32768) ** 2)) == pytest.approx(0.5 / np.sqrt(2), abs=0.02)
    assert audio.seconds == pytest.approx(SECONDS, abs=0.08)


def test_channels_are_mixed_unless_kept_apart(tmp_path):
    """Two channels with a tone each are one channel with both tones, or two channels with one tone each."""
    path = write(tmp_path / "a.flac", tone(440), tone(1000), codec="flac")
    (mixed,) = samples(Audio(path))
    strongest = np.argsort(np.abs(np.fft.rfft(mixed)))[-2:] * RATE / len(mixed)
    assert sorted(strongest) == pytest.approx([440, 1000], abs=2)
    left, right = samples(Audio(path, separate_channels=True))
    assert (pitch(left), pitch(right)) == pytest.approx((440, 1000), abs=2)


def test_channels_that_cancel_each_other_out_are_not_mixed_to_silence(tmp_path):
    """Of stereo with an inverted channel, the first is heard, also with noise; a silent one is mixed as any other."""
    path = write(tmp_path / "a.flac", tone(440), -tone(440), codec="flac")
    (mixed,) = samples(Audio(path))
    left, _ = samples(Audio(path, separate_channels=True))
    assert np.abs(mixed.astype(int) - left).max() <= 1
    noise = np.random.default_rng(0).normal(0, 2**-15, (2, len(tone(440)))).astype(np.float32)
    path = write(tmp_path / "c.wav", tone(440) + noise[0], -tone(440) + noise[1], codec="pcm_s16le")
    (mixed,) = samples(Audio(path))
    left, _ = samples(Audio(path, separate_channels=True))
    assert np.abs(mixed.astype(int) - left).max() <= 1
    path = write(tmp_path / "b.flac", tone(440), 0 * tone(440), codec="flac")
    (mixed,) = samples(Audio(path))
    left, _ = samples(Audio(path, separate_channels=True))
    assert np.abs(mixed - left / 2).max() <= 1


def test_a_span_is_cut_out_and_the_length_is_that_of_the_file(tmp_path):
    """From 0.5 s to 1.25 s of a recording with another tone from 1 s on, both tones have the right position."""
    path = write(tmp_path / "a.wav", np.concatenate([tone(440, 1.0), tone(1000, 1.0)]), codec="pcm_s16le")
    audio = Audio(path, start_ms=500, end_ms=1250)
    (sound,) = samples(audio)
    assert len(sound) == pytest.approx(0.75 * RATE, abs=2)
    assert pitch(sound[: RATE // 2]) == pytest.approx(440, abs=3)
    assert pitch(sound[RATE // 2 :]) == pytest.approx(1000, abs=5)
    assert audio.seconds == pytest.approx(2.0, abs=0.01)
    assert audio.start == 0.5 * RATE


def test_blocks_are_short_however_long_the_recording(tmp_path):
    """Three minutes come in blocks of about ten seconds, so memory does not grow with the recording."""
    path = write(tmp_path / "a.flac", tone(440, 180, rate=8000), codec="flac", rate=8000)
    lengths = [block.shape[1] / RATE for block in Audio(path).blocks()]
    assert max(lengths) < 11
    assert sum(lengths) == pytest.approx(180, abs=0.1)


def late(path: Path, seconds: float) -> Path:
    """A video whose sound, a tone of a second, begins so late."""
    with av.open(str(path), "w") as container:
        picture = container.add_stream("mpeg4", rate=10)
        picture.width = picture.height = 32
        sound = container.add_stream("pcm_s16le", rate=RATE, layout="mono")
        for number in range(20):
            frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8))
            frame.pts = number
            container.mux(picture.encode(frame))
        frame = av.AudioFrame.from_ndarray((tone(440, 1.0, RATE) * 32767).astype(np.int16)[None], "s16", "mono")
        frame.sample_rate, frame.pts = RATE, round(seconds * RATE)
        container.mux(sound.encode(frame))
        container.mux(picture.encode(None))
        container.mux(sound.encode(None))
    return path


def test_sound_that_begins_hours_late_is_no_large_block(tmp_path):
    """The silence before it comes in blocks like all else, so that a time stamp takes no memory."""
    lengths = [block.shape[1] for block in Audio(late(tmp_path / "a.mkv", 7200)).blocks()]
    assert max(lengths) < 11 * RATE
    assert sum(lengths) == pytest.approx(7201 * RATE, abs=RATE // 20)


def test_sound_that_begins_later_than_the_picture_keeps_its_time(tmp_path):
    """A video whose sound starts a second in gives a second of silence first."""
    (heard,) = samples(Audio(late(tmp_path / "a.mkv", 1)))
    assert len(heard) == pytest.approx(2 * RATE, abs=RATE // 20)
    assert np.abs(heard[: int(0.95 * RATE)]).max() == 0
    assert np.abs(heard[int(1.05 * RATE) :]).max() > 10_000


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"<!DOCTYPE html>\n<html><body>Not found</body></html>", "text/html (HTML document)"),
        (b"\n  <html lang='en'>" + b"x" * 60_000, "text/html (HTML document)"),
        (b'{"error": "not found"}', "application/json (JSON text)"),
        (b"just some notes\n" * 100, "text/plain (text)"),
        (b"%PDF-1.7 ...", "application/pdf (PDF document)"),
        (b"", "inode/x-empty (empty)"),
        (bytes(range(256)) * 200, "application/octet-stream (data)"),
    ],
)
def test_what_is_no_audio_is_said_in_the_words_of_the_interface(tmp_path, content, kind):
    """A web page, a document, an empty file: the error names what it seems to be."""
    path = tmp_path / "media"
    path.write_bytes(content)
    with pytest.raises(JobFailed) as caught:
        samples(Audio(path))
    assert caught.value.reason == f"File does not appear to contain audio. File type is {kind}."


def test_the_error_text_is_that_of_the_example(payload_folder, tmp_path):
    """The text begins as the interface's own example of a web page does."""
    import json

    example = json.loads((payload_folder / "failed_not_audio.json").read_text())["error"]
    path = tmp_path / "page"
    path.write_text("<!DOCTYPE html><html></html>")
    with pytest.raises(JobFailed) as caught:
        Audio(path)
    assert caught.value.reason.split(" (")[0] == example.split(" (")[0]


@pytest.mark.parametrize(("milliseconds", "fails"), [(100, True), (159, True), (161, False)])
def test_less_than_160_ms_is_too_short(tmp_path, milliseconds, fails):
    """The limit of the interface, from both sides."""
    path = write(tmp_path / "a.wav", tone(440, milliseconds / 1000, RATE), codec="pcm_s16le", rate=RATE)
    if fails:
        with pytest.raises(JobFailed, match=r"^Audio duration is too short\.$"):
            samples(Audio(path))
    else:
        assert samples(Audio(path)).shape[1] > 0


def test_a_start_beyond_the_end_is_said(tmp_path):
    """Nothing to transcribe is an error that names both times."""
    path = write(tmp_path / "a.wav", tone(440, 1.0, RATE), codec="pcm_s16le", rate=RATE)
    with pytest.raises(JobFailed, match="audio_start_from is 5000 ms, but the audio ends at 1000 ms"):
        samples(Audio(path, start_ms=5000))


def test_a_damaged_middle_does_not_lose_the_rest(tmp_path):
    """Garbage written over a part of an mp3 costs that part."""
    path = write(tmp_path / "a.mp3", tone(440, 10.0), codec="libmp3lame")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 2000] = np.random.default_rng(1).bytes(2000)
    path.write_bytes(content)
    (sound,) = samples(Audio(path))
    assert len(sound) / RATE == pytest.approx(10.0, abs=1.0)


def test_a_file_cut_off_gives_what_it_has(tmp_path):
    """Half of a flac file is half of the recording."""
    path = write(
        tmp_path / "a.flac", tone(440, 10.0) * np.random.default_rng(1).random(441_000, np.float32), codec="flac"
    )
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    (sound,) = samples(Audio(path))
    assert len(sound) / RATE == pytest.approx(5.0, abs=0.3)


@pytest.mark.parametrize("suffix", ["m3u8", "txt", "media"])
def test_a_playlist_is_not_followed(tmp_path, suffix):
    """Files that name other files to read are refused, so that an upload cannot reach beside itself."""
    secret = write(tmp_path / "secret.wav", tone(440), codec="pcm_s16le")
    playlists = [f"#EXTM3U\n#EXTINF:2,\n{secret}\n#EXT-X-ENDLIST\n", f"ffconcat version 1.0\nfile '{secret.name}'\n"]
    for text in playlists:
        path = tmp_path / f"list.{suffix}"
        path.write_text(text)
        with pytest.raises(JobFailed, match="does not appear to contain audio"):
            Audio(path)


def test_too_many_channels_to_keep_apart_are_refused(tmp_path):
    """A file with 32 channels says how many can be kept apart; mixed, it can be read."""
    import wave

    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(32)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(bytes(64 * RATE))
    with pytest.raises(JobFailed, match="32 channels; at most 16"):
        Audio(path, separate_channels=True)
    assert samples(Audio(path)).shape == (1, RATE)


def wav(path: Path, form: int = 1, channels: int = 1, rate: int = RATE) -> Path:
    """A second of 16-bit silence with any numbers in the header."""
    head = struct.pack("<HHIIHH", form, channels, rate, rate * channels * 2, channels * 2, 16)
    data = bytes(2 * rate * channels)
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    return path


@pytest.mark.parametrize("options", [{}, {"separate_channels": True}, {"keep_rate": True}])
def test_an_unknown_codec_is_said(tmp_path, options):
    """A container with a codec that cannot be decoded is a failed job with a reason, not a crash."""
    with pytest.raises(JobFailed, match=r"^The codec of the audio is not supported; convert the file"):
        Audio(wav(tmp_path / "a.wav", form=0x7777), **options)


def test_more_channels_than_can_be_converted_are_said(tmp_path):
    """A header with 200 channels is a failed job that names them."""
    with pytest.raises(JobFailed, match=r"^The audio, of 200 channels at 8000 Hz, cannot be converted\.$"):
        samples(Audio(wav(tmp_path / "a.wav", channels=200, rate=8000)))


def transport_stream(path: Path, seconds: int, tracks: int) -> bytes:
    """An MPEG transport stream with noise, as broadcasters send it."""
    noise = np.random.default_rng(1).normal(0, 3000, (1, 48_000 * seconds)).astype(np.int16)
    with av.open(str(path), "w", format="mpegts") as container:
        for stream in [container.add_stream("mp2", rate=48_000, layout="mono") for _ in range(tracks)]:
            stream.bit_rate = 192_000
            frame = av.AudioFrame.from_ndarray(noise, format="s16", layout="mono")
            frame.sample_rate = 48_000
            for piece in av.AudioResampler(stream.format, "mono", 48_000, 1152).resample(frame):
                container.mux(stream.encode(piece))
            container.mux(stream.encode(None))
    return path.read_bytes()


@pytest.mark.long
def test_a_track_that_is_added_in_the_middle_does_not_lose_the_recording(tmp_path):
    """A broadcast in which a second track appears for two seconds is read to its end."""
    long, short = transport_stream(tmp_path / "a.ts", 250, 1), transport_stream(tmp_path / "b.ts", 2, 2)
    path = tmp_path / "c.ts"
    path.write_bytes(long + short + long)
    assert samples(Audio(path)).shape[1] / RATE == pytest.approx(502, abs=1)
