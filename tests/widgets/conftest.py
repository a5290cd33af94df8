"""The embedded server, shared by the tests of widgets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.embedded import embedded
from tests.widgets.recordings import DATA, NAMES

import voxframe


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[voxframe.Client]:
    """A client of an embedded server with a data directory of its own."""
    with embedded(tmp_path_factory.mktemp("service")) as client:
        yield client


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Three seconds of a recording."""
    av = pytest.importorskip("av")
    source = Path(__file__).parents[2] / "data" / "call.flac"
    path = tmp_path / "short.wav"
    with av.open(str(source)) as read, av.open(str(path), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=16_000, layout="mono")
        resampler = av.AudioResampler("s16", "mono", 16_000)
        for frame in read.decode(audio=0):
            if frame.time > 3:
                break
            for piece in resampler.resample(frame):
                out.mux(stream.encode(piece))
        out.mux(stream.encode(None))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """The recordings in data/."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in NAMES:
        corpus.raw.put(name, (DATA / "payloads" / f"{name}.json").read_bytes())
    return corpus
