import io
import os
import sys
import wave
from collections.abc import AsyncIterable, Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxframe.errors import AudioError, AudioNotFoundError, MissingExtraError, OptionError
from voxframe.service import mulaw
from voxframe.service.pacing import Clock, Cutter
from voxframe.service.stream import Stream
from voxframe.service.stream_sources import Samples, open_source


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


def test_a_plain_wav_is_read_as_it_is(tmp_path: Path) -> None:
    """A mono 16-bit wav needs no decoder: its samples and its rate are what is sent."""
    path = wav(tmp_path / "a.wav", tone(22_050), 22_050)
    found = open_source(path, None, "pcm_s16le")
    assert found.rate == 22_050
    assert joined(found) == tone(22_050).tobytes()


@pytest.mark.parametrize("form", ["path", "bytes", "file", "memory file"])
def test_an_audio_file_is_known_in_any_form(tmp_path: Path, form: str) -> None:
    """A wav is told from raw samples, whether it comes as a path, as bytes or as an open file."""
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
    """What is not mono, or not at the rate asked for, is mixed and resampled; the pitch stays."""
    both = np.repeat(tone(44_100), 2)
    found = open_source(wav(tmp_path / "a.wav", both, 44_100, 2), 16_000, "pcm_s16le")
    samples = np.frombuffer(joined(found), "<i2")
    assert abs(len(samples) - 16_000) < 100
    assert abs(loudest_hz(samples, 16_000) - 440) < 2


def test_a_compressed_file_is_decoded(tmp_path: Path) -> None:
    """Any file with sound in it can be streamed; its rate is then 16 kHz unless another is asked for."""
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


def test_a_file_is_encoded_to_mulaw_where_that_is_asked_for(tmp_path: Path) -> None:
    """One byte a sample, at the rate asked for."""
    found = open_source(wav(tmp_path / "a.wav", tone(8000), 8000), None, "pcm_mulaw")
    assert found.rate == 8000
    assert joined(found) == mulaw.encode(tone(8000))


def test_mulaw_is_that_of_another_decoder() -> None:
    """FFmpeg's decoder gives every sample back within half a step of its size, and 256 codes are used."""
    import av

    samples = np.arange(-32_768, 32_768).astype(np.int16)
    decoder = av.CodecContext.create("pcm_mulaw", "r")
    decoder.sample_rate, decoder.layout = 8000, "mono"
    encoded = mulaw.encode(samples)
    decoded = np.concatenate([frame.to_ndarray()[0] for frame in decoder.decode(av.Packet(encoded))]).astype(int)
    step = np.maximum(8, 2.0 ** np.floor(np.log2(np.minimum(np.abs(samples.astype(int)), 32_635) + 132)) / 16)
    assert (np.abs(decoded - samples) <= step / 2 + 1)[np.abs(samples.astype(int)) <= 32_635].all()
    assert len(set(encoded)) in (255, 256)  # plus and minus nought are two codes


def test_raw_samples_need_a_rate() -> None:
    """Bytes and chunks do not say how fast they are to be played."""
    for source in (b"\0" * 64, iter([b"\0" * 64]), io.BytesIO(b"\0" * 64)):
        with pytest.raises(OptionError, match="sample_rate=16000"):
            open_source(source, None, "pcm_s16le")


def test_raw_samples_pass_as_they_are() -> None:
    """Raw bytes are not touched."""
    data = bytes(range(256)) * 1000
    assert joined(open_source(data, 8000, "pcm_mulaw")) == data
    assert joined(open_source(io.BytesIO(data), 16_000, "pcm_s16le")) == data


def test_a_pipe_is_read_as_it_comes() -> None:
    """Raw samples from a pipe are passed on without waiting for a whole block."""
    out, into = os.pipe()
    with os.fdopen(out, "rb") as reader, os.fdopen(into, "wb", buffering=0) as writer:
        writer.write(b"\0\1" * 50)
        found = open_source(reader, 16_000, "pcm_s16le")
        assert isinstance(found.chunks, Iterable)
        chunks = iter(found.chunks)
        assert next(chunks) + next(chunks) == b"\0\1" * 50
        writer.close()
        assert list(chunks) == []


def test_what_cannot_be_streamed_says_why(tmp_path: Path) -> None:
    """Each wrong source has an error with what to do."""
    (tmp_path / "page.mp3").write_bytes(b"<html>not audio</html>" * 40)
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(AudioNotFoundError, match="Check the path"):
        open_source(tmp_path / "none.wav", None, "pcm_s16le")
    with pytest.raises(AudioError, match="directory"):
        open_source(tmp_path, None, "pcm_s16le")
    with pytest.raises(AudioError, match="no audio that can be read"):
        open_source(tmp_path / "page.mp3", None, "pcm_s16le")
    with pytest.raises(OptionError, match="fetches no addresses"):
        open_source("https://example.org/a.wav", None, "pcm_s16le")
    with pytest.raises(OptionError, match="microphone"):
        open_source(42, 16_000, "pcm_s16le")  # type: ignore[arg-type]
    with (tmp_path / "text.txt").open() as file, pytest.raises(OptionError, match="'rb'"):
        open_source(file, 16_000, "pcm_s16le")  # type: ignore[arg-type]


def test_without_the_decoder_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain wav streams without the extra; anything else says which extra it needs."""
    monkeypatch.setitem(sys.modules, "av", None)
    path = wav(tmp_path / "a.wav", tone(16_000))
    assert joined(open_source(path, 16_000, "pcm_s16le"))
    with pytest.raises(MissingExtraError, match=r"voxframe\[local\]"):
        open_source(path, 8000, "pcm_s16le")


def test_an_async_source_is_passed_on() -> None:
    """Asynchronous sources stay what they are."""

    async def source() -> Any:
        yield b""

    assert isinstance(open_source(source(), 16_000, "pcm_s16le").chunks, AsyncIterable)


@pytest.mark.parametrize(("rate", "encoding"), [(16_000, "pcm_s16le"), (44_100, "pcm_s16le"), (11_025, "pcm_mulaw")])
@pytest.mark.parametrize("message_ms", [100, 250, 2000])
@pytest.mark.parametrize("length", [1, 999, 50_001])
def test_messages_have_the_length_the_interface_asks_for(
    rate: int, encoding: str, message_ms: int, length: int
) -> None:
    """Whatever the chunks, every message holds 100 to 2000 ms, and the audio comes through whole."""
    width = 2 if encoding == "pcm_s16le" else 1
    data = bytes(i * 7 % 256 for i in range(length * width))
    cutter = Cutter(rate, encoding, message_ms)
    messages = [
        m for start in range(0, len(data), 777) for m in cutter.feed(data[start : start + 777])
    ] + cutter.finish()
    for message in messages:
        assert 100 <= len(message) / width / rate * 1000 <= 2000 + 1000 / rate
    sent = b"".join(messages)
    assert sent.startswith(data)
    silence = b"\0" if width == 2 else b"\xff"
    assert sent[len(data) :] == silence * (len(sent) - len(data))


def test_the_clock_keeps_the_pace() -> None:
    """Messages go out as fast as they were spoken; a delay is caught up with gently, a long one not at all."""
    clock, now, sent = Clock(), 100.0, []
    for i in range(60):
        now += clock.wait_s(now, 0.2)
        sent.append(now)
        if i == 9:
            now += 1.0  # the source stalls
    steps = np.diff(sent)
    assert sent[0] == 100.0
    assert np.allclose(steps[:9], 0.2)
    assert np.allclose(steps[10:30], 0.16)
    assert np.allclose(sent[59], 100.0 + 59 * 0.2)
    assert clock.wait_s(now + 1000, 0.2) == 0.0
    assert np.isclose(clock.wait_s(now + 1000, 0.2), 0.2)


def test_an_array_of_samples_is_streamed(stream: Callable[..., Stream], peer: Any) -> None:
    """A notebook has samples as an array: int16 of one dimension is sent as it is."""
    samples = np.arange(32_000).astype("int16")
    stream(samples, sample_rate=16_000).wait()
    stream(iter([samples[:16_000], samples[16_000:]]), sample_rate=16_000).wait()
    assert [b"".join(session.frames) for session in peer.sessions] == [samples.tobytes()] * 2


def test_an_array_of_anything_else_is_refused(stream: Callable[..., Stream], peer: Any) -> None:
    """Floats, several channels or wide integers would be heard as noise; the error says how to convert."""
    for wrong in (np.zeros(9), np.zeros((2, 9), "int16"), np.zeros(9, "int32"), np.zeros(9, ">i2")):
        with pytest.raises(OptionError, match=r"one-dimensional array of int16.*astype\('int16'\)"):
            stream(wrong, sample_rate=16_000)
    with pytest.raises(OptionError, match="the source gave a ndarray of float32; it must give bytes"):
        stream(iter([np.zeros(1600, "float32")]), sample_rate=16_000).wait()
    assert not any(session.frames for session in peer.sessions)
