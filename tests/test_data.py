"""The recordings in data/ agree with their scripts."""

import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

DATA = Path(__file__).parents[1] / "data"
NAMES = ["interview", "panel", "call", "meeting"]
needs_flite = pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")


def samples(path: Path) -> np.ndarray:
    """Return samples of shape (channels, n)."""
    with av.open(str(path)) as container:
        frames = [f.to_ndarray().reshape(-1, f.layout.nb_channels).T for f in container.decode(audio=0)]
    return np.concatenate(frames, axis=1)


def truth(name: str, folder: Path = DATA) -> dict:
    return json.loads((folder / f"{name}.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_truth_and_file_agree_on_length_rate_and_channels(name):
    """Duration, sample rate and channels in the script are those of the file."""
    said = truth(name)
    with av.open(str(DATA / said["recording"])) as container:
        stream = container.streams.audio[0]
        assert (stream.rate, stream.layout.nb_channels) == (said["sample_rate"], said["channels"])
    assert samples(DATA / said["recording"]).shape[1] == said["duration_ms"] * said["sample_rate"] // 1000


@pytest.mark.parametrize("name", NAMES)
def test_speech_and_silence_agree_with_the_script(name):
    """Every turn has the loudness of speech; nothing sounds more than 0.1 s away from a sentence."""
    said = truth(name)
    audio = samples(DATA / said["recording"]).astype(float)
    per_ms = said["sample_rate"] // 1000
    quiet = np.ones(audio.shape, bool)
    for turn in said["turns"]:
        ends = [w["end_ms"] for w in turn["words"] if w["text"][-1] in ".?!"]
        after = {a["end_ms"]: b["start_ms"] for a, b in pairwise(turn["words"])}
        for start, end in zip([turn["start_ms"], *(after[e] for e in ends[:-1])], ends, strict=True):
            quiet[turn["channel"], (start - 100) * per_ms : (end + 100) * per_ms] = False
        speech = audio[turn["channel"], turn["start_ms"] * per_ms : turn["end_ms"] * per_ms]
        assert np.sqrt(np.mean(speech**2)) > 800
    assert quiet.sum() > 3 * said["sample_rate"]  # there is silence to look at
    assert not audio[quiet].any()


@pytest.mark.parametrize("name", NAMES)
def test_turns_are_their_words_in_order(name):
    """The text and the times of a turn are those of its words, and the words follow each other."""
    for turn in truth(name)["turns"]:
        words = turn["words"]
        assert turn["text"] == " ".join(w["text"] for w in words)
        assert (turn["start_ms"], turn["end_ms"]) == (words[0]["start_ms"], words[-1]["end_ms"])
        assert all(w["start_ms"] < w["end_ms"] for w in words)
        assert all(a["end_ms"] <= b["start_ms"] for a, b in pairwise(words))


def test_turns_overlap_in_the_call_and_in_the_meeting():
    """Turns of one speaker never overlap; some of the call's two channels and of the meeting's speakers do."""
    for name in NAMES:
        said = truth(name)
        for speaker in said["voices"]:
            own = [t for t in said["turns"] if t["speaker"] == speaker]
            assert all(a["end_ms"] + 200 <= b["start_ms"] for a, b in pairwise(own)), name
        overlapping = sum(a["end_ms"] > b["start_ms"] for a, b in pairwise(said["turns"]))
        assert overlapping == {"call": 6, "meeting": 7}.get(name, 0)  # turns marked ~ in the script


@needs_flite
def test_word_times_lie_on_the_boundaries_the_flite_command_prints():
    """The words of a turn's first sentence begin and end at segment boundaries that `flite -psdur` prints."""
    said = truth("panel")
    firsts = {turn["speaker"]: turn for turn in reversed(said["turns"])}
    assert len(firsts) == 4
    for speaker, turn in firsts.items():
        sentence = re.match(r"[^.?!]+[.?!]", turn["text"])[0]
        command = ["flite", "-voice", said["voices"][speaker], "-psdur", "-t", sentence, "-o", "none"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ends = [round(float(part.split(":")[1]) * 1000) for part in printed.split()]
        shift = turn["start_ms"] - ends[0]  # the first segment is the silence before the first word
        for word in turn["words"][: len(sentence.split())]:
            for edge in (word["start_ms"], word["end_ms"]):
                assert min(abs(edge - shift - end) for end in ends) <= 2, (speaker, word)


@pytest.mark.long
@needs_flite
def test_making_the_recordings_again_gives_the_same_samples(tmp_path):
    """data/make.py writes the committed files: the same script and the same samples."""
    subprocess.run([sys.executable, str(DATA / "make.py"), "--to", str(tmp_path)], check=True)
    for name in NAMES:
        assert truth(name, tmp_path) == truth(name)
        np.testing.assert_array_equal(samples(tmp_path / f"{name}.flac"), samples(DATA / f"{name}.flac"))
