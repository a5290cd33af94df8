"""Batches with the embedded server, real recordings, Ctrl-C and a second process."""

import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.embedded import embedded

import voxframe
from voxframe.errors import CorpusWarning

_DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[voxframe.Client]:
    """A client of an embedded server with an empty data directory, and with the engine that starts fastest."""
    with embedded(tmp_path_factory.mktemp("service"), VOXFRAME_ENGINE="parrot") as client:
        yield client


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three recordings of two seconds."""
    av = pytest.importorskip("av")
    folder = tmp_path_factory.mktemp("calls")
    with av.open(str(_DATA / "interview.flac")) as source:
        sound = np.concatenate([frame.to_ndarray().ravel() for frame in source.decode(audio=0)])
        rate = source.streams.audio[0].rate
    for n in range(3):
        with wave.open(str(folder / f"{n}.wav"), "wb") as file:
            file.setparams((1, 2, rate, 0, "NONE", None))
            file.writeframes(sound[n * 2 * rate : (n + 1) * 2 * rate].astype("<i2").tobytes())
    return folder


_STOPPED = """
import os, signal, sys, time, voxframe
upload, uploads = voxframe.Client.upload, []
def press(*arguments, **options):
    uploads.append(arguments)
    if len(uploads) == 2:  # the first job has been submitted
        os.kill(os.getpid(), signal.SIGINT)
    return upload(*arguments, **options)
voxframe.Client.upload = press
voxframe.Corpus(sys.argv[1]).submit(sys.argv[2], concurrency=1, speech_model="nano")
time.sleep(10)
"""


def test_an_interrupted_batch_is_continued(client: voxframe.Client, calls: Path, tmp_path: Path) -> None:
    """After Ctrl-C in one process, two others complete the batch: three jobs, each submitted and counted once."""
    batch = [sys.executable, "-c", _STOPPED, str(tmp_path / "c"), str(calls)]
    stopped = subprocess.run(batch, check=False, capture_output=True, text=True, timeout=60)
    assert "KeyboardInterrupt" in stopped.stderr
    corpus = voxframe.Corpus(tmp_path / "c")
    before = int((corpus.jobs()["state"] == "submitted").sum())
    assert before >= 1
    go_on = "import sys, voxframe; print(voxframe.Corpus(sys.argv[1]).submit(sys.argv[2], speech_model='nano').sent)"
    command = [sys.executable, "-c", go_on, str(corpus.path), str(calls)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    sent = [int(other.communicate(timeout=60)[0]) for other in others]
    assert sum(sent) == 3 - before
    assert corpus.sync(client=client, wait=True).fetched == 3
    assert sorted(item.id for item in client.iter_transcripts()) == corpus.ids()
    assert set(corpus.jobs()["attempts"]) == {1}
    renamed = tmp_path / "another name.wav"
    renamed.write_bytes((calls / "2.wav").read_bytes())
    assert corpus.plan(renamed, client=client, speech_model="nano").known == 1
    assert corpus.plan(calls, client=client).new_options == 3


def test_redacted_audio_is_downloaded_once_and_deleted(client: voxframe.Client, calls: Path, tmp_path: Path) -> None:
    """The file is downloaded once; a damaged one is reported and replaced; `forget` deletes it."""
    av = pytest.importorskip("av")
    corpus = voxframe.Corpus(tmp_path / "c")
    frame = pd.DataFrame({"path": [calls / "0.wav"], "customer": ["Acme"]})
    corpus.submit(frame, client=client, redact_pii=True, redact_pii_audio=True, redact_pii_policies=["date"])
    corpus.sync(client=client, wait=True)
    (wanted,) = corpus.ids()
    path = corpus.raw.redacted_audio(wanted)
    whole = path.read_bytes()
    with av.open(str(path)) as copy:
        assert copy.duration / av.time_base == pytest.approx(2.0, abs=0.2)
    with voxframe.connect("http://127.0.0.1:9", api_key="none") as nobody:
        assert voxframe.Corpus(corpus.path).raw.redacted_audio(wanted, client=nobody) == path
    path.write_bytes(b"damage" + whole[6:])
    with pytest.warns(CorpusWarning, match="is damaged and is fetched again"):
        assert corpus.raw.redacted_audio(wanted).read_bytes() == whole
    assert len(corpus.raw.captions(wanted)) > 20
    corpus.forget(wanted, remote=True)
    assert not path.exists()
    assert client.transcript(wanted).json()["text"] == "Deleted by user."
    assert corpus.adopt(client).fetched == len([i for i in client.iter_transcripts() if i.id != wanted])
    assert wanted not in corpus
