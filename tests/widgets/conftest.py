"""The embedded server, shared by the tests of widgets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.embedded import embedded
from tests.widgets.recordings import DATA, NAMES

import voxframe


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory, model_folder: Callable[[str], Path]) -> Iterator[voxframe.Client]:
    """A client of an embedded server with a data directory of its own and the small model, which is fast."""
    with embedded(tmp_path_factory.mktemp("service"), VOXFRAME_MODEL=str(model_folder("tiny.en"))) as client:
        yield client


def _call(path: Path, seconds: float) -> Path:
    """Write the first seconds of a recording, repeated if it is shorter."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=16_000, layout="mono")
        left = round(seconds * 16_000)
        while left > 0:
            with av.open(str(Path(__file__).parents[2] / "data" / "call.flac")) as read:
                resampler = av.AudioResampler("s16", "mono", 16_000)
                for frame in read.decode(audio=0):
                    for piece in resampler.resample(frame) if left > 0 else ():
                        piece.pts = None
                        left -= piece.samples
                        out.mux(stream.encode(piece))
        out.mux(stream.encode(None))
    return path


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Three seconds of a recording."""
    return _call(tmp_path / "short.wav", 3)


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """One and a half minutes of a recording."""
    return _call(tmp_path / "long.wav", 90)


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """The recordings in data/."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in NAMES:
        corpus.raw.put(name, (DATA / "payloads" / f"{name}.json").read_bytes())
    return corpus
