"""Media decoded in a child process."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from voxframe_engine import JobFailed
from voxframe_engine.speech import audio as audio_module
from voxframe_engine.speech.audio import Audio, ChildAudio, MediaProcessError

CALL = Path(__file__).parents[2] / "data" / "call.flac"


def test_a_child_process_gives_the_same_samples():
    """Samples, channels, start and length equal those that this process decodes."""
    options = {"separate_channels": True, "start_ms": 3000, "end_ms": 25_000}
    here, child = Audio(CALL, **options), ChildAudio(CALL, **options)
    assert (child.channels, child.start) == (here.channels, here.start)
    assert child.fraction_before(16_000) == here.fraction_before(16_000)
    pairs = list(zip(here.blocks(), child.blocks(), strict=True))
    assert all(np.array_equal(left, right) for left, right in pairs)
    assert len(pairs) == 3
    assert child.seconds == here.seconds


def test_a_file_without_audio_fails_with_its_reason(tmp_path):
    """The reason of the child is that of the job, at the start and in the middle of the file."""
    (tmp_path / "a.html").write_text("<html>")
    with pytest.raises(JobFailed, match=r"does not appear to contain audio.*text/html"):
        ChildAudio(tmp_path / "a.html")
    with pytest.raises(JobFailed, match="audio_start_from is 900000 ms, but the audio ends at"):
        list(ChildAudio(CALL, start_ms=900_000).blocks())


def test_a_file_that_crashes_the_decoder_ends_only_the_child():
    """A child that is stopped by a signal while it decodes is an error with that signal; the next file is decoded."""
    audio = ChildAudio(CALL)
    blocks = audio.blocks()
    next(blocks)
    os.kill(audio._process.pid, getattr(signal, "SIGSEGV", signal.SIGTERM))
    with pytest.raises(MediaProcessError, match=r"stopped by signal|ended with status"):
        list(blocks)
    assert sum(block.shape[1] for block in ChildAudio(CALL).blocks()) > 0


def test_a_child_is_ended_when_the_rest_of_its_file_is_not_wanted():
    """Closing the blocks ends the process."""
    audio = ChildAudio(CALL)
    blocks = audio.blocks()
    next(blocks)
    blocks.close()
    assert audio._process.exitcode is not None
    assert audio_module._context() is audio_module._context()
