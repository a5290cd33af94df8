"""How soon a stream's words are shown, counted in audio: what a busy machine adds is measured by a benchmark."""

import json
from pathlib import Path

import pytest
from tests.benchmarks.streaming import CHUNK, RATE, decoded

from voxframe.local import live
from voxframe.local.engines import sphinx_live
from voxframe.local.records import AUDIO, TERMINATE

pytestmark = pytest.mark.speech

DATA = Path(__file__).parents[2] / "data"


def partials(name, seconds):
    """Partials of the beginning of a recording, each with the milliseconds that were fed when it came."""
    samples = decoded(DATA / f"{name}.flac")[: round(seconds * RATE)]
    fed, found = 0, []

    def tell(message):
        if message["message_type"] == "PartialTranscript":
            found.append((fed * 1000 // RATE, message))

    listener = live.Listener(RATE, "pcm_s16le", "sphinx", partials=True, tell=tell)
    for at in range(0, len(samples), CHUNK):
        fed = at + CHUNK
        listener.take(AUDIO, samples[at : at + CHUNK].tobytes())
    listener.take(TERMINATE)
    return found


@pytest.mark.parametrize("name", ["interview", "call", "panel"])
def test_the_first_partial_takes_less_than_half_a_second_of_speech(name):
    """From the beginning of a session's first word, by the recording's script."""
    script = json.loads((DATA / f"{name}.json").read_text())
    onset = min(word["start_ms"] for turn in script["turns"] for word in turn["words"])
    fed, first = partials(name, 2)[0]
    assert fed - onset <= 400
    assert first["text"]
    assert first["words"][0]["start"] == pytest.approx(onset, abs=300)


def test_an_early_guess_changes_nothing_of_what_follows(monkeypatch):
    """Once a second is heard, partials are those of a decoder that waited for it."""
    early = [message["text"] for fed, message in partials("interview", 5) if fed > 1500]
    monkeypatch.setattr(sphinx_live, "_LEAST", sphinx_live._FIRST)
    waited = partials("interview", 5)
    assert waited[0][0] > 1000
    assert early[-1] == waited[-1][1]["text"]
    assert len(early[-1].split()) > 4
