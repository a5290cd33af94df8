"""Small files that decode to large audio, and the limits of worker processes."""

import subprocess
import sys
import wave

import av
import numpy as np
import psutil
import pytest

from voxframe_engine import JobFailed
from voxframe_engine.speech import audio
from voxframe_engine.speech.audio import Audio

HOUR = 3600


def silence(path, hours, *, rate=1000, channels=1):
    """A flac file of silence; an hour takes 300 kB."""
    layout = {1: "mono", 8: "7.1"}[channels]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("flac", rate=rate, layout=layout)
        minute = np.zeros((1, 60 * rate * channels), np.int16)
        for at in range(round(hours * 60)):
            frame = av.AudioFrame.from_ndarray(minute, format="s16", layout=layout)
            frame.sample_rate, frame.pts = rate, at * 60 * rate
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def without_length(path):
    """The same flac file without its length, as written by a streaming encoder."""
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0  # the last 36 bits before the checksum in the block STREAMINFO, which begins at byte 8
    data[22:26] = bytes(4)
    path.write_bytes(data)
    return path


def test_eleven_hours_in_a_small_file_are_refused_before_decoding(tmp_path):
    """A file of eleven hours is refused before decoding, with the limit in the error."""
    path = silence(tmp_path / "a.flac", 11)
    assert path.stat().st_size < 4_000_000
    with pytest.raises(JobFailed, match="Audio duration is too long: at most 10 hours can be transcribed"):
        Audio(path)


def test_a_file_without_a_length_is_refused_at_the_limit(tmp_path, monkeypatch):
    """Decoding of a file without a length stops at the limit, in constant memory."""
    monkeypatch.setattr(audio, "MAX_SECONDS", HOUR // 2)  # ten hours take half a minute
    recording, decoded = Audio(without_length(silence(tmp_path / "a.flac", 1))), list[int]()
    with pytest.raises(JobFailed, match="Audio duration is too long"):
        decoded.extend(block.shape[1] for block in recording.blocks())
    assert 0.98 * HOUR / 2 < sum(decoded) / 16_000 <= HOUR / 2
    assert max(decoded) < 11 * 16_000


def test_ten_hours_are_accepted(tmp_path):
    """A file of exactly ten hours is accepted."""
    assert Audio(silence(tmp_path / "a.flac", 10)).channels == 1


@pytest.mark.parametrize("rate", [1, 999])
def test_a_very_low_sample_rate_is_refused(tmp_path, rate):
    """A sample rate of 1 Hz, which would resample to hours of audio, is refused."""
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(20_000))
    with pytest.raises(JobFailed, match=f"sample rate is {rate} Hz; it must be 1000 to 768000 Hz"):
        list(Audio(path).blocks())


def test_samples_of_all_channels_count(tmp_path, monkeypatch):
    """The limit counts the samples of all channels at their rate."""
    monkeypatch.setattr(audio, "MAX_SAMPLES", 8 * 60 * 96_000 - 1)  # the real one takes minutes to reach
    with pytest.raises(JobFailed, match="too large when decoded; reduce its sample rate"):
        list(Audio(silence(tmp_path / "a.flac", 1 / 60, rate=96_000, channels=8)).blocks())
    assert sum(block.shape[1] for block in Audio(silence(tmp_path / "b.flac", 1 / 60)).blocks()) == 60 * 16_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what a process writes to")
def test_a_process_beyond_its_memory_limit_fails():
    """A process beyond its memory limit gets MemoryError; below the limit it does not."""
    code = (
        "from voxframe_engine.child_process import limit_this_process; limit_this_process(memory_gb=1)\n"
        "held = bytearray(300 << 20)\n"
        "try: more = bytearray(1 << 30)\n"
        "except MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "refused\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the limits of another process")
def test_worker_processes_are_limited(start, web, silent_wav):
    """A worker process has limits on memory and processor time and no core dumps; the server has no limits."""
    service = start("--allow-origin", web.origin)
    service.create(web.slow_page("/a.wav", silent_wav))
    service_process = psutil.Process(service.process.pid)
    while not web.asked:
        pass
    (worker,) = service_process.children()
    assert worker.rlimit(psutil.RLIMIT_DATA) == (1 << 30, 1 << 30)
    assert 0 < worker.rlimit(psutil.RLIMIT_CPU)[0] <= 24 * HOUR
    assert worker.rlimit(psutil.RLIMIT_CORE)[0] == 0
    assert service_process.rlimit(psutil.RLIMIT_DATA) == psutil.Process().rlimit(psutil.RLIMIT_DATA)
