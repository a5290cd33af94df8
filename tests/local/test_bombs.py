"""Files that are small and become large, and what the processes that read them may take."""

import subprocess
import sys
import wave

import av
import numpy as np
import psutil
import pytest

from voxframe.local import audio
from voxframe.local.audio import Audio
from voxframe.local.failed import JobFailed

HOUR = 3600


def silence(path, hours, *, rate=1000, channels=1):
    """A flac file of silence: an hour of it takes 300 kB."""
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
    """The same flac file as a program writes it that cannot go back to its beginning: its length is not told."""
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0  # the last 36 bits before the checksum in the block STREAMINFO, which begins at byte 8
    data[22:26] = bytes(4)
    path.write_bytes(data)
    return path


def test_hours_of_silence_in_a_small_file_are_refused_before_they_are_decoded(tmp_path):
    """Eleven hours in a few megabytes: the error says how much is taken."""
    path = silence(tmp_path / "a.flac", 11)
    assert path.stat().st_size < 4_000_000
    with pytest.raises(JobFailed, match="Audio duration is too long: at most 10 hours can be transcribed"):
        Audio(path)


def test_hours_of_silence_that_do_not_tell_are_refused_at_the_limit(tmp_path, monkeypatch):
    """Decoding stops at the limit, however much there is yet, in memory that does not grow."""
    monkeypatch.setattr(audio, "MAX_SECONDS", HOUR // 2)  # ten hours take half a minute
    recording, decoded = Audio(without_length(silence(tmp_path / "a.flac", 1))), list[int]()
    with pytest.raises(JobFailed, match="Audio duration is too long"):
        decoded.extend(block.shape[1] for block in recording.blocks())
    assert 0.98 * HOUR / 2 < sum(decoded) / 16_000 <= HOUR / 2
    assert max(decoded) < 11 * 16_000


def test_ten_hours_are_taken(tmp_path):
    """The limit itself is not over the limit."""
    assert Audio(silence(tmp_path / "a.flac", 10)).channels == 1


@pytest.mark.parametrize("rate", [1, 999])
def test_a_rate_that_would_blow_a_file_up_is_refused(tmp_path, rate):
    """At one sample a second, a second of work would become hours of sound."""
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(20_000))
    with pytest.raises(JobFailed, match=f"has {rate} samples a second, not 1000 to 768000"):
        list(Audio(path).blocks())


def test_samples_of_all_channels_count(tmp_path, monkeypatch):
    """Many channels at a high rate are more to decode than one; what is too much is said so."""
    monkeypatch.setattr(audio, "MAX_SAMPLES", 8 * 60 * 96_000 - 1)  # the real one takes minutes to reach
    with pytest.raises(JobFailed, match="too large once decoded; a lower rate or fewer channels"):
        list(Audio(silence(tmp_path / "a.flac", 1 / 60, rate=96_000, channels=8)).blocks())
    assert sum(block.shape[1] for block in Audio(silence(tmp_path / "b.flac", 1 / 60)).blocks()) == 60 * 16_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what a process writes to")
def test_a_process_that_takes_too_much_memory_fails_alone():
    """Over its bound there is no more memory; under it there is."""
    code = (
        "from voxframe.local.limits import limit_this_process; limit_this_process(memory_gb=1)\n"
        "held = bytearray(300 << 20)\n"
        "try: more = bytearray(1 << 30)\n"
        "except MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "refused\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the limits of another process")
def test_worker_processes_are_limited(start, web, silent_wav):
    """The process of a job has bounds on memory and processor time, leaves no core dump; the service has none."""
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
