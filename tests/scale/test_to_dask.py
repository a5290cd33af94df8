import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tests.benchmarks.payloads import payload

import voxframe
from voxframe.errors import CorpusError, MissingExtraError, OptionError


@pytest.mark.long
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("name", ["words", "transcripts", "chapters", "sentences"])
def test_a_dask_frame_is_the_table(corpus: voxframe.Corpus, name: str) -> None:
    """The rows, names of speakers and dtypes are those of `Corpus.table`, also of a table without rows."""
    frame, table = corpus.to_dask(name), corpus.table(name)
    found = frame.compute()
    assert found.index.equals(pd.RangeIndex(len(table)))
    key = [column for column in table.columns if column == "transcript_id" or column.endswith("_idx")]
    found, table = (df.sort_values(key).reset_index(drop=True) for df in (found, table))
    pd.testing.assert_frame_equal(found, table)


@pytest.mark.long
@pytest.mark.usefixtures("small_partitions")
def test_a_dask_frame_has_metadata_and_people(tmp_path: Path) -> None:
    """Columns about recordings and people are those of `Corpus.table`, and words can be counted by them."""
    corpus = voxframe.Corpus(tmp_path)
    recordings = [payload(600, seed=n).replace(b"meeting.mp3", b"meeting%d.mp3" % n) for n in range(5)]
    corpus.add(recordings, progress=False)
    ids = corpus.ids()
    about = {"site": ["N", "S", None, "N", "S"], "calls": [None, None, 3, 4, None], "level": [1, "high", 2, None, 1]}
    corpus.metadata.set(pd.DataFrame({"transcript_id": ids, **about}))
    labels = {"transcript_id": [ids[0], ids[3], ids[3]], "speaker": ["A", "A", "B"], "person": ["Ada", "Ada", "Ben"]}
    corpus.speakers.assign(pd.DataFrame(labels))
    asked = ["site", "person"]
    words, whole = corpus.to_dask("words", metadata=iter(asked)), corpus.table("words", metadata=asked)
    assert words.npartitions > 1
    for by in (["site"], ["person"], ["site", "speaker"]):
        pd.testing.assert_frame_equal(voxframe.scale.ngrams(words, 1, by), voxframe.analysis.ngrams(whole, 1, by))
    assert words[["person", "text"]].compute().columns.to_list() == ["person", "text"]
    numbers, table = corpus.to_dask("words", metadata=True), corpus.table("words", metadata=True)
    assert numbers.dtypes.to_dict() == numbers.compute().dtypes.to_dict() == table.dtypes.to_dict()
    assert numbers["calls"].sum().compute() == table["calls"].sum()
    assert sorted(numbers["level"].dropna().compute()) == sorted(table["level"].dropna())
    with pytest.raises(CorpusError, match="no metadata column 'nothing'"):
        corpus.to_dask("words", metadata="nothing")


@pytest.mark.long
def test_a_dask_frame_without_rows_gives_the_reason(tmp_path: Path) -> None:
    """A table without rows in the whole corpus gives the warning that other reads give."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.add([{"id": "a", "status": "error", "error": "no speech", "words": None}])
    with pytest.warns(match=r"no words in transcripts that are not completed: 'a' \(error\)"):
        assert len(corpus.to_dask("words")) == 0


@pytest.mark.long
@pytest.mark.usefixtures("small_partitions")
def test_divisions_are_true_and_transcripts_whole(corpus: voxframe.Corpus) -> None:
    """Each partition has the rows that its divisions announce, and no transcript is in two partitions."""
    frame = corpus.to_dask("words")
    assert frame.known_divisions
    assert frame.npartitions > 3
    parts = [frame.partitions[n].compute() for n in range(frame.npartitions)]
    assert [part.index[0] for part in parts] == [*frame.divisions[:-1]]
    assert parts[-1].index[-1] == frame.divisions[-1]
    ids = [transcript_id for part in parts for transcript_id in part["transcript_id"].unique()]
    assert sorted(ids) == corpus.ids()
    some = frame.loc[3000:3001][["text", "start_ms"]].compute()
    assert some.equals(pd.concat(parts).loc[3000:3001, ["text", "start_ms"]])


@pytest.mark.long
@pytest.mark.parametrize(("words", "seed"), [(101, 1), (100, 2)])
def test_a_frame_of_replaced_transcripts_is_an_error(tmp_path: Path, words: int, seed: int) -> None:
    """A frame whose transcripts were replaced, even with as many rows, raises an error that says what to do."""
    corpus = voxframe.Corpus(tmp_path)
    corpus.raw.put("a", payload(100, seed=1))
    frame = corpus.to_dask("words")
    assert len(frame.compute()) == 100
    corpus.raw.put("a", payload(words, seed=seed))
    with pytest.raises(CorpusError, match=r"Corpus\.to_dask was called; call it again"):
        frame.compute()


@pytest.mark.filterwarnings("ignore:the corpus has no transcripts yet")
@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("dask", "dask", lambda corpus: corpus.to_dask("words")),
        ("dask", "dask", lambda _: voxframe.scale.read_payloads("raw")),
        (
            "distributed",
            "dask",
            lambda _: voxframe.scale.on_workers(voxframe.connect("http://127.0.0.1:9", api_key="k")),
        ),
        ("deltalake", "delta", lambda corpus: corpus.publish(corpus.path.parent / "published")),
        ("deltalake", "delta", lambda _: voxframe.export.open_delta("published")),
    ],
)
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str, call: Callable[[voxframe.Corpus], object]
) -> None:
    """Without the library, the message says which extra to install."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'voxframe\[{extra}\]'"):
        call(voxframe.Corpus(tmp_path))


@pytest.mark.long
def test_a_missing_cluster_is_reported() -> None:
    """Without a Dask cluster there are no workers, and the message says how to create one."""
    with (
        voxframe.connect("http://127.0.0.1:9", api_key="k") as client,
        pytest.raises(OptionError, match=r"there is no Dask cluster; create a distributed\.Client first"),
    ):
        voxframe.scale.on_workers(client)


def test_a_worker_imports_the_package_alone() -> None:
    """A Dask worker imports `voxframe.scale` before any other part of voxframe."""
    subprocess.run([sys.executable, "-c", "import voxframe.scale"], check=True)
