import io
import os
import sys
import wave
from collections.abc import AsyncIterable, Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxframe.client.stream import Stream
from voxframe.client.stream.audio import Chunker, Pacer, Samples, encode_mulaw, open_source
from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError, OptionError


def joined(samples: Samples) -> bytes:
    chunks = samples.chunks
    assert isinstance(chunks, Iterable)
    return b"".join(chunks)


def wav(path: Path, samples: np.ndarray, rate: int = 16_000, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def tone(rate: int, seconds: float = 1.0) -> np.ndarray:
    return np.round(12_000 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype(np.int16)


def loudest_hz(samples: np.ndarray, rate: int) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(samples))) * rate / len(samples))


def test_a_plain_wav_needs_no_decoder(tmp_path: Path) -> None:
    """A mono 16-bit wav file is sent with its own samples and rate."""
    path = wav(tmp_path / "a.wav", tone(22_050), 22_050)
    found = open_source(path, None, "pcm_s16le")
    assert found.rate == 22_050
    assert joined(found) == tone(22_050).tobytes()


@pytest.mark.parametrize("form", ["path", "bytes", "file", "memory file"])
def test_an_audio_file_is_recognized_in_any_form(tmp_path: Path, form: str) -> None:
    """A wav file is recognized as a path, as bytes and as an open file."""
    path = wav(tmp_path / "a.wav", tone(16_000))
    forms: dict[str, Any] = {
        "path": str(path),
        "bytes": path.read_bytes(),
        "file": path.open("rb"),
        "memory file": io.BytesIO(path.read_bytes()),
    }
    assert joined(open_source(forms[form], None, "pcm_s16le")) == tone(16_000).tobytes()
    forms["file"].close()


def test_a_stereo_wav_at_another_rate_is_converted(tmp_path: Path) -> None:
    """Stereo audio at another rate is mixed and resampled, and keeps its pitch."""
    both = np.repeat(tone(44_100), 2)
    found = open_source(wav(tmp_path / "a.wav", both, 44_100, 2), 16_000, "pcm_s16le")
    samples = np.frombuffer(joined(found), "<i2")
    assert abs(len(samples) - 16_000) < 100
    assert abs(loudest_hz(samples, 16_000) - 440) < 2


@pytest.mark.parametrize("form", ["path", "bytes", "file"])
def test_a_plain_wav_is_resampled_in_any_form(tmp_path: Path, form: str) -> None:
    """A mono 16-bit wav file at another rate is decoded from its first byte, also from memory or an open file."""
    path = wav(tmp_path / "a.wav", tone(16_000))
    with path.open("rb") as file:
        source: Any = {"path": path, "bytes": path.read_bytes(), "file": file}[form]
        samples = np.frombuffer(joined(open_source(source, 8000, "pcm_s16le")), "<i2")
    assert len(samples) == 8000
    assert abs(loudest_hz(samples, 8000) - 440) < 2


def test_half_a_sample_at_the_end_is_left_out(tmp_path: Path) -> None:
    """A wav file that was cut off inside its last sample is encoded without that sample."""
    path = wav(tmp_path / "a.wav", tone(8000))
    path.write_bytes(path.read_bytes()[:-1])
    assert joined(open_source(path, None, "pcm_mulaw")) == encode_mulaw(tone(8000)[:-1])


def test_a_compressed_file_is_decoded(tmp_path: Path) -> None:
    """A compressed file is decoded at 16 kHz, or at the given rate."""
    import av

    path = tmp_path / "a.flac"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("flac", rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(tone(48_000)[None], format="s16", layout="mono")
        frame.sample_rate = 48_000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            out.mux(packet)
    found = open_source(path, None, "pcm_s16le")
    samples = np.frombuffer(joined(found), "<i2")
    assert found.rate == 16_000
    assert abs(loudest_hz(samples, 16_000) - 440) < 2


def test_a_file_is_encoded_as_mulaw(tmp_path: Path) -> None:
    """With pcm_mulaw, a file is sent with one byte per sample at the given rate."""
    found = open_source(wav(tmp_path / "a.wav", tone(8000), 8000), None, "pcm_mulaw")
    assert found.rate == 8000
    assert joined(found) == encode_mulaw(tone(8000))


def test_mulaw_agrees_with_ffmpeg() -> None:
    """FFmpeg decodes every sample to within half a step, and all 256 codes are used."""
    import av

    samples = np.arange(-32_768, 32_768).astype(np.int16)
    decoder = av.CodecContext.create("pcm_mulaw", "r")
    decoder.sample_rate, decoder.layout = 8000, "mono"
    encoded = encode_mulaw(samples)
    decoded = np.concatenate([frame.to_ndarray()[0] for frame in decoder.decode(av.Packet(encoded))]).astype(int)
    step = np.maximum(8, 2.0 ** np.floor(np.log2(np.minimum(np.abs(samples.astype(int)), 32_635) + 132)) / 16)
    assert (np.abs(decoded - samples) <= step / 2 + 1)[np.abs(samples.astype(int)) <= 32_635].all()
    assert len(set(encoded)) in (255, 256)  # plus and minus nought are two codes


def test_raw_samples_need_a_rate() -> None:
    """Raw samples without a sample rate raise an error."""
    for source in (b"\0" * 64, iter([b"\0" * 64]), io.BytesIO(b"\0" * 64)):
        with pytest.raises(OptionError, match="sample_rate=16000"):
            open_source(source, None, "pcm_s16le")


def test_raw_samples_are_unchanged() -> None:
    """Raw samples are sent unchanged."""
    data = bytes(range(256)) * 1000
    assert joined(open_source(data, 8000, "pcm_mulaw")) == data
    assert joined(open_source(io.BytesIO(data), 16_000, "pcm_s16le")) == data


def test_a_pipe_is_read_without_delay() -> None:
    """Raw samples from a pipe are passed on without waiting for a full block."""
    out, into = os.pipe()
    with os.fdopen(out, "rb") as reader, os.fdopen(into, "wb", buffering=0) as writer:
        writer.write(b"\0\1" * 50)
        found = open_source(reader, 16_000, "pcm_s16le")
        assert isinstance(found.chunks, Iterable)
        chunks = iter(found.chunks)
        assert next(chunks) + next(chunks) == b"\0\1" * 50
        writer.close()
        assert list(chunks) == []


def test_invalid_sources_are_refused(tmp_path: Path) -> None:
    """An invalid source raises an error with the allowed forms."""
    (tmp_path / "page.mp3").write_bytes(b"<html>not audio</html>" * 40)
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(AudioNotFoundError, match="Check the path"):
        open_source(tmp_path / "none.wav", None, "pcm_s16le")
    with pytest.raises(AudioError, match="directory"):
        open_source(tmp_path, None, "pcm_s16le")
    with pytest.raises(AudioError, match="no readable audio"):
        open_source(tmp_path / "page.mp3", None, "pcm_s16le")
    with pytest.raises(OptionError, match="cannot fetch a URL"):
        open_source("https://example.org/a.wav", None, "pcm_s16le")
    with pytest.raises(OptionError, match="microphone"):
        open_source(42, 16_000, "pcm_s16le")  # type: ignore[arg-type]
    with (tmp_path / "text.txt").open() as file, pytest.raises(OptionError, match="'rb'"):
        open_source(file, 16_000, "pcm_s16le")  # type: ignore[arg-type]


def test_without_the_decoder_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the decoder, a plain wav file is streamed; other files name the extra."""
    monkeypatch.setitem(sys.modules, "av", None)
    path = wav(tmp_path / "a.wav", tone(16_000))
    assert joined(open_source(path, 16_000, "pcm_s16le"))
    with pytest.raises(MissingExtraError, match=r"voxframe\[local\]"):
        open_source(path, 8000, "pcm_s16le")


def test_an_async_source_is_passed_on() -> None:
    """An async source is returned unchanged."""

    async def source() -> Any:
        yield b""

    assert isinstance(open_source(source(), 16_000, "pcm_s16le").chunks, AsyncIterable)


@pytest.mark.parametrize(("rate", "encoding"), [(16_000, "pcm_s16le"), (44_100, "pcm_s16le"), (11_025, "pcm_mulaw")])
@pytest.mark.parametrize("message_ms", [100, 250, 2000])
@pytest.mark.parametrize("length", [1, 999, 50_001])
def test_messages_have_the_allowed_length(rate: int, encoding: str, message_ms: int, length: int) -> None:
    """For chunks of any length, messages hold 100 to 2000 ms, and no audio is lost."""
    width = 2 if encoding == "pcm_s16le" else 1
    data = bytes(i * 7 % 256 for i in range(length * width))
    chunker = Chunker(rate, encoding, message_ms)
    messages = [
        m for start in range(0, len(data), 777) for m in chunker.feed(data[start : start + 777])
    ] + chunker.finish()
    for message in messages:
        assert 100 <= len(message) / width / rate * 1000 <= 2000 + 1000 / rate
    sent = b"".join(messages)
    assert sent.startswith(data)
    silence = b"\0" if width == 2 else b"\xff"
    assert sent[len(data) :] == silence * (len(sent) - len(data))


def test_the_pacer_keeps_real_time() -> None:
    """Messages are sent in real time; a short delay is caught up slowly, a long one not at all."""
    pacer, now, sent = Pacer(), 100.0, []
    for i in range(60):
        now += pacer.wait_s(now, 0.2)
        sent.append(now)
        if i == 9:
            now += 1.0  # the source stalls
    steps = np.diff(sent)
    assert sent[0] == 100.0
    assert np.allclose(steps[:9], 0.2)
    assert np.allclose(steps[10:30], 0.16)
    assert np.allclose(sent[59], 100.0 + 59 * 0.2)
    assert pacer.wait_s(now + 1000, 0.2) == 0.0
    assert np.isclose(pacer.wait_s(now + 1000, 0.2), 0.2)


def test_an_array_of_samples_is_streamed(stream: Callable[..., Stream], peer: Any) -> None:
    """A one-dimensional array of int16 is sent unchanged."""
    samples = np.arange(32_000).astype("int16")
    stream(samples, sample_rate=16_000).wait()
    stream(iter([samples[:16_000], samples[16_000:]]), sample_rate=16_000).wait()
    assert [b"".join(session.frames) for session in peer.sessions] == [samples.tobytes()] * 2


def test_other_arrays_are_refused(stream: Callable[..., Stream], peer: Any) -> None:
    """Floats, several channels and wide integers raise an error that shows the conversion."""
    for wrong in (np.zeros(9), np.zeros((2, 9), "int16"), np.zeros(9, "int32"), np.zeros(9, ">i2")):
        with pytest.raises(OptionError, match=r"one-dimensional array of int16.*astype\('int16'\)"):
            stream(wrong, sample_rate=16_000)
    for array, encoding, needed in ((np.zeros(9, "uint8"), "pcm_s16le", "int16"), (tone(9), "pcm_mulaw", "uint8")):
        with pytest.raises(OptionError, match=f"{encoding} needs a one-dimensional array of {needed}"):
            stream(array, sample_rate=16_000, encoding=encoding)
    with pytest.raises(OptionError, match="the source returned a ndarray of float32; it must return bytes"):
        stream(iter([np.zeros(1600, "float32")]), sample_rate=16_000).wait()
    assert not any(session.frames for session in peer.sessions)
