import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.benchmarks.payloads import payload

import voxframe
from voxframe import analysis, scale
from voxframe.errors import OptionError, PayloadError

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("small_partitions")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two processes. It becomes the scheduler of every computation."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def worker_killed(client: Any) -> Iterator[None]:
    """Kill a worker process as soon as it has finished a task."""
    killed = threading.Event()

    def kill() -> None:
        while not killed.wait(0.01):
            for worker in client.run_on_scheduler(_finished):
                os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
                killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
        assert killed.is_set()
    finally:
        killed.set()
        thread.join()


def _finished(dask_scheduler: Any) -> list[str]:
    """Return the first worker that holds a result while others are computed."""
    is_midway = any(task.state == "processing" for task in dask_scheduler.tasks.values())
    return [address for address, worker in dask_scheduler.workers.items() if worker.has_what and is_midway][:1]


def test_measures_equal_those_of_one_machine(corpus: voxframe.Corpus) -> None:
    """Talk time, search and counts per partition give the results of one machine, with names of speakers."""
    words, turns = corpus.to_dask("words"), corpus.to_dask("utterances")
    table = analysis.talk_time(corpus.table("utterances"))
    pd.testing.assert_frame_equal(scale.talk_time(turns), table)
    queries = ["la*", "ba de", "nowhere"]
    for options in ({}, {"speaker": "Ada"}, {"slop": 6}):
        expected = corpus.search(queries, **options).drop(columns="recording")
        pd.testing.assert_frame_equal(scale.search(words, queries, **options), expected)
    about = pd.DataFrame({"transcript_id": corpus.ids(), "group": ["x", "y", "z"] * 4}).astype({"group": "str"})
    for by in ("transcript_id", "speaker", ["speaker_name"], ["group", "speaker"], []):
        mine, theirs = (source(queries, by=by, about=about) for source in (_counts(words), corpus.counts))
        theirs = theirs.drop(columns="recording", errors="ignore")
        order = ["term", *theirs.columns.intersection(["transcript_id", "group", "speaker", "speaker_name"])]
        mine, theirs = (df.sort_values(order, ignore_index=True)[list(theirs.columns)] for df in (mine, theirs))
        pd.testing.assert_frame_equal(mine, theirs)
    with pytest.raises(OptionError, match=r"by must name columns .*timing.*; about= gives more columns"):
        scale.counts(words, "la*", by="nothing")


@pytest.mark.parametrize("by", ["month", pd.Grouper(key="day", freq="MS")])
def test_counts_by_a_period_of_metadata(corpus: voxframe.Corpus, by: Any) -> None:
    """Periods of a date that is a column of the words give what `Corpus.counts` gives."""
    days = pd.to_datetime([f"2024-0{n % 3 + 1}-15" for n in range(len(corpus))])
    corpus.metadata.set(pd.DataFrame({"transcript_id": corpus.ids(), "day": days}))
    expected = corpus.counts("la*", by=by)
    assert len(expected) == 3
    mine = scale.counts(corpus.to_dask("words", metadata=True), "la*", by=by)
    pd.testing.assert_frame_equal(mine[list(expected.columns)], expected)


def test_measures_by_transcript_and_counts_of_words_are_exact(corpus: voxframe.Corpus) -> None:
    """Turn statistics, delivery and counts of words and pairs over partitions equal those of the whole corpus."""
    words, whole = corpus.to_dask("words"), corpus.table("words")
    assert words.npartitions > 1
    for measure in (analysis.turn_statistics, analysis.delivery, analysis.balance):
        pd.testing.assert_frame_equal(scale.each(words, measure), measure(whole))
    for n, by in ((1, None), (2, "speaker_name"), (1, ["transcript_id", "minute"])):
        pd.testing.assert_frame_equal(scale.ngrams(words, n, by), analysis.ngrams(whole, n, by))
    with pytest.raises(OptionError, match="rows belong to one transcript"):
        scale.each(words, analysis.delivery, by="channel")


def _counts(words: Any) -> Any:
    return lambda *args, **options: scale.counts(words, *args, **options)


def test_a_killed_worker_changes_no_result(corpus: voxframe.Corpus, cluster: Any, tmp_path: Path) -> None:
    """With a worker process killed midway, search and decoding give every row once."""
    with worker_killed(cluster):
        found = scale.search(corpus.to_dask("words"), "la*")
    pd.testing.assert_frame_equal(found, corpus.search("la*").drop(columns="recording"))
    with worker_killed(cluster):
        built = scale.build_tables(str(corpus.path / "raw"), str(tmp_path / "tables")).set_index("table")
    for name in ("words", "transcripts", "chapters"):
        table = corpus.table(name).drop(
            columns=["speaker_name", "recording", "source", "text_original"], errors="ignore"
        )
        read = pd.read_parquet(tmp_path / "tables" / name)
        key = [column for column in table.columns if column == "transcript_id" or column.endswith("_idx")]
        read, table = (df.sort_values(key, ignore_index=True) for df in (read, table))
        pd.testing.assert_frame_equal(read, table)
        assert built.loc[name, "rows"] == len(table)
    decoded = scale.read_payloads(f"{corpus.path}/raw/*/*.json.zst", "utterances")
    assert decoded.npartitions == 6
    assert len(decoded) == len(corpus.table("utterances"))


def test_payloads_in_a_store_are_decoded() -> None:
    """Payloads are read from any URL that fsspec supports; one that cannot be read is named."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for n in range(3):
        memory.pipe_file(f"/calls/{n}.json", payload(100, seed=n))
    words = scale.read_payloads("memory://calls").compute(scheduler="threads")
    expected = voxframe.load_words([payload(100, seed=n) for n in range(3)]).drop(columns="recording")
    pd.testing.assert_frame_equal(words.reset_index(drop=True), expected)
    memory.pipe_file("/calls/9.json", b"{")
    with pytest.raises(PayloadError, match=r"calls/9\.json"):
        scale.read_payloads("memory://calls").compute(scheduler="threads")
    with pytest.raises(OptionError, match="matches no payload file"):
        scale.read_payloads("memory://nothing")
    with pytest.raises(OptionError, match="'nothing://calls' cannot be opened: Protocol not known"):
        scale.read_payloads("nothing://calls")
    with pytest.raises(OptionError, match=r"cannot be opened: .*No such file"):
        scale.read_payloads("zip://*.json::/nowhere.zip")
    with pytest.raises(OptionError, match=r"a path or URL is needed, .*, got None"):
        scale.read_payloads(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["", "/*.json", "/a*.json"])
def test_payloads_below_a_hidden_folder_are_decoded(tmp_path: Path, pattern: str) -> None:
    """Hidden files and folders in the source are left out, but the source may be in a hidden folder."""
    place = tmp_path / ".data" / "calls"
    (place / ".old").mkdir(parents=True)
    for name in ("a.json", ".b.json", ".old/c.json"):
        (place / name).write_bytes(payload(20, seed=len(name)))
    assert scale.read_payloads(f"{place}{pattern}").compute()["transcript_id"].nunique() == 1


def test_payloads_in_a_folder_with_brackets_are_decoded(tmp_path: Path) -> None:
    """A path that exists is not a pattern, although it has brackets."""
    folder = tmp_path / "calls [old]"
    folder.mkdir()
    folder.joinpath("a.json").write_bytes(payload(20))
    for source in (folder, folder / "a.json"):
        assert len(scale.read_payloads(str(source)).compute()) == 20


def test_tables_to_build_are_named(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """A table may be given by its name, and no table is refused."""
    built = scale.build_tables(str(corpus.path / "raw"), str(tmp_path / "built"), "words")
    assert built["table"].to_list() == ["words"]
    with pytest.raises(OptionError, match="tables is an empty list; name tables"):
        scale.build_tables(str(corpus.path / "raw"), str(tmp_path / "none"), [])


def test_a_measure_is_a_function(corpus: voxframe.Corpus) -> None:
    """A name instead of the function is refused."""
    wrong: Any = "turn_statistics"
    with pytest.raises(OptionError, match=r"each needs a function such as .*, got 'turn_statistics'"):
        scale.each(corpus.to_dask("words"), wrong)


def test_frames_without_words_are_refused(corpus: voxframe.Corpus) -> None:
    """Search and counts name the columns of words that a frame lacks, and a measure must return a DataFrame."""
    turns = corpus.to_dask("utterances")
    for call in (scale.search, scale.counts):
        with pytest.raises(OptionError, match=r"need a frame of words, .*; this one lacks word_idx$"):
            call(turns, "hi")
    with pytest.raises(OptionError, match="each needs a measure by transcript_id"):
        scale.each(turns, len)


def test_no_tables_are_written_into_a_corpus(corpus: voxframe.Corpus) -> None:
    """Files beside those of a corpus would give its rows twice."""
    for target in (corpus.path / "tables", corpus.path):
        with pytest.raises(OptionError, match="is inside the corpus"):
            scale.build_tables(str(corpus.path / "raw"), str(target))


def test_a_dataframe_of_pandas_is_refused() -> None:
    """Each function says that it needs a Dask DataFrame, and what takes one in memory."""
    words = pd.DataFrame({"transcript_id": ["a"], "text": ["Hi"]})
    for call in (scale.talk_time, scale.ngrams, lambda df: scale.counts(df, "hi"), lambda df: scale.search(df, "hi")):
        with pytest.raises(OptionError, match=r"needs a Dask DataFrame, .*use voxframe\.analysis"):
            call(words)
