"""A corpus of a dozen transcripts, in partitions of a few."""

import pytest
from tests.benchmarks.payloads import payload

import voxframe


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    """Twelve transcripts of 500 to 1,050 words, one with named speakers."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("corpus"))
    corpus.add([payload(500 + 50 * n, seed=n) for n in range(12)], progress=False)
    corpus.speakers.set(corpus.ids()[3], {"A": "Ada", "B": "Ben"}, turns={0: "Cy"})
    return corpus


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of few transcripts instead of half a million rows or 64 files."""
    monkeypatch.setattr("voxframe.corpus.query._ROWS", 1500)
    monkeypatch.setattr("voxframe.scale.dataframes._FILES", 2)
