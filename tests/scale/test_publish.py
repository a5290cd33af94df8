import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import voxframe
from voxframe.corpus.query import Query
from voxframe.errors import CorpusError, CorpusWarning, ExportError, OptionError
from voxframe.export import open_delta
from voxframe.export.delta import clear_delta_errors

pytestmark = pytest.mark.long

#: An S3 server that kills the process named in a file at its n-th PUT, before it is carried out.
_SERVER = """
import os, signal, sys
from pathlib import Path
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

app, order = DomainDispatcherApplication(create_backend_app), Path(sys.argv[2])

def serve(environ, start):
    if environ["REQUEST_METHOD"] == "PUT" and order.exists():
        pid, puts = map(int, order.read_text().split())
        order.write_text(f"{pid} {puts - 1}")
        if not puts:
            order.unlink()
            os.kill(pid, signal.SIGKILL)
            start("500 Killed", [])
            return []
    return app(environ, start)

run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True)
"""

#: Starts a writer process for each number of PUTs after which the server kills it, and prints its exit status. Writers
#: are forks, so that the libraries are imported once.
_WRITERS = """
import json, os, sys
from pathlib import Path
import deltalake, pyarrow.dataset, voxframe.corpus.export, voxframe.export.delta, voxframe.loaders
path, url, options, order = sys.argv[1:]
for puts in sys.stdin:
    if not (pid := os.fork()):
        Path(order).write_text(f"{os.getpid()} {int(puts)}")
        voxframe.Corpus(path).publish(url, tables=["transcripts", "words"], storage_options=json.loads(options))
        Path(order).unlink()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def _payload(name: str, text: str, words: int = 3) -> bytes:
    said = [{"text": text, "start": n, "end": n + 1, "confidence": 0.5, "speaker": "A"} for n in range(words)]
    return json.dumps({"id": name, "status": "completed", "text": text, "words": said}).encode()


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that tells the server whom to kill, and when."""
    return tmp_path_factory.mktemp("server") / "order"


@pytest.fixture(scope="module")
def store(order: Path) -> Iterator[dict[str, str]]:
    """Settings of an S3 server on loopback with one bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", _SERVER, str(port), str(order)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT"))
                break
            except OSError:
                time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        }  # fmt: skip
    finally:
        server.kill()
        server.wait()


def _state(url: str, store: dict[str, str]) -> dict[str, str]:
    """Return the text of each published transcript, which must be the same in both tables."""
    tables = open_delta(url, storage_options=store)
    texts = tables["transcripts"].to_pyarrow_table(columns=["transcript_id", "text"])
    words = tables["words"].to_pyarrow_table(columns=["transcript_id", "text"]).to_pandas().value_counts()
    found = dict(zip(texts["transcript_id"].to_pylist(), texts["text"].to_pylist(), strict=True))
    assert words.to_dict() == dict.fromkeys(found.items(), 3), "the tables differ"
    assert texts.num_rows == len(found)
    return found


def test_readers_never_see_a_mixture(tmp_path: Path, store: dict[str, str], order: Path) -> None:
    """A reader sees one publication in all tables, beside writers that are killed at each of their PUTs."""
    url, corpus = "s3://bucket/killed", voxframe.Corpus(tmp_path / "corpus")
    for name in "abc":
        corpus.raw.put(name, _payload(name, "0"))
    corpus.publish(url, tables=["transcripts", "words"], storage_options=store)
    seen: list[dict[str, str]] = []
    stop, failed = threading.Event(), []

    def read() -> None:
        try:
            while not stop.wait(0.5):
                seen.append(_state(url, store))
        except Exception as error:  # noqa: BLE001  it is raised in the test
            failed.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    published, puts = {"a": "0", "b": "0", "c": "0"}, 0
    command = [sys.executable, "-c", _WRITERS, str(corpus.path), url, json.dumps(store), str(order)]
    writers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        while True:
            corpus.raw.put("b", _payload("b", str(puts + 1)))
            changed = {**published, "b": str(puts + 1)}
            print(puts, file=writers.stdin, flush=True)
            code = int(writers.stdout.readline())
            state = _state(url, store)
            if code == 0:
                assert state == changed
                break
            assert code == -signal.SIGKILL
            assert state == published
            puts += 1
    finally:
        stop.set()
        reader.join()
        writers.communicate(timeout=60)
    if failed:
        raise failed[0]
    assert puts >= 8  # rows and log of two tables, of the fingerprints, and of the publication
    assert [*dict.fromkeys(state["b"] for state in seen)] in (["0"], ["0", str(puts + 1)])


def test_a_publication_is_incremental_and_old_ones_stay(tmp_path: Path, store: dict[str, str]) -> None:
    """Only changed transcripts are written; a new metadata column is added; earlier publications are readable."""
    url, corpus = "s3://bucket/calls", voxframe.Corpus(tmp_path / "corpus")
    ids = ["a", "b", "it's"]
    for name in ids:
        corpus.raw.put(name, _payload(name, "old"))
    corpus.metadata.set(pd.DataFrame({"transcript_id": ids, "day": [1, 2, None]}))

    def publish() -> tuple[int, int, int]:
        done = corpus.publish(
            url, tables=["transcripts", "words"], metadata=True, partition_by="speaker", storage_options=store
        )
        return done.number, done.written, done.removed

    assert publish() == (0, 3, 0)
    assert publish() == (0, 0, 0)
    corpus.speakers.set("a", {"A": "Ada"})
    corpus.raw.put("it's", _payload("it's", "new", words=2))
    assert publish() == (1, 2, 0)
    corpus.forget("b")
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["a"], "customer": ["Ash"]}))
    assert publish() == (2, 1, 1)
    first = open_delta(url, 0, storage_options=store)["words"].to_pyarrow_table()
    assert first.num_rows == 9
    assert "customer" not in first.column_names
    table = open_delta(url, storage_options=store)["words"]
    expected = corpus.table("words", metadata=True)
    found = {
        "deltalake": table.to_pandas(),
        "polars": pl.scan_delta(table.table_uri, version=table.version(), storage_options=store).collect().to_pandas(),
        "duckdb": duckdb.connect().register("words", table.to_pyarrow_dataset()).sql("from words").df(),
        "dask": _with_dask(table, store),
    }
    for frame in found.values():
        rows = frame.sort_values(["transcript_id", "word_idx"], ignore_index=True)
        for column in ("transcript_id", "text", "start_ms", "confidence", "speaker", "speaker_name", "customer", "day"):
            mine, theirs = (df[column].astype(object).where(df[column].notna(), None) for df in (rows, expected))
            assert mine.to_list() == theirs.to_list()
    assert all("speaker=A/" in uri for uri in table.file_uris())
    with pytest.raises(OptionError, match="is partitioned by"):
        corpus.publish(url, tables=["transcripts", "words"], metadata=True, storage_options=store)
    with pytest.raises(ExportError, match="there is 0 to 2"):
        open_delta(url, 3, storage_options=store)


def test_a_publication_has_a_data_card(tmp_path: Path, store: dict[str, str]) -> None:
    """Each commit to `publications` has the card; on a file system README.md has it, too, unless it is the user's."""
    from deltalake import DeltaTable

    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _payload("a", "old"))
    for target, settings in ((str(tmp_path / "set"), None), ("s3://bucket/card", store)):
        corpus.publish(target, tables=["transcripts", "words"], storage_options=settings, license="CC0-1.0")
        manifest = DeltaTable(f"{target}/_voxframe/publications", storage_options=settings)
        card = manifest.history(1)[0]["voxframe.data_card"]
        assert "| Contents | 1 transcript, 0.00 hours of audio, 3 words |" in card
        assert "| Licence | CC0-1.0 |" in card
        assert "versions of the tables: transcripts 0, words 0" in card
    assert (tmp_path / "set/README.md").read_text().startswith('---\npretty_name: "set"\nlicense: "CC0-1.0"\n')
    (tmp_path / "set/README.md").write_text("mine")
    corpus.raw.put("b", _payload("b", "new"))
    corpus.publish(tmp_path / "set", tables=["transcripts", "words"])
    assert (tmp_path / "set/README.md").read_text() == "mine"


def _with_dask(table: object, store: dict[str, str]) -> pd.DataFrame:
    """Read the files of a Delta table with Dask. The values of partition columns are in the names of folders."""
    import dask.dataframe as dd
    from pyarrow.fs import S3FileSystem

    files = S3FileSystem(
        access_key=store["AWS_ACCESS_KEY_ID"], secret_key=store["AWS_SECRET_ACCESS_KEY"], region=store["AWS_REGION"],
        endpoint_override=store["AWS_ENDPOINT_URL"].removeprefix("http://"), scheme="http",
    )  # fmt: skip
    paths = [uri.removeprefix("s3://") for uri in table.file_uris()]
    return dd.read_parquet(paths, filesystem=files, dataset={"partitioning": "hive"}).compute().reset_index(drop=True)


def test_two_writers_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    """Of two processes that publish to one target at the same time, one fails and publishes nothing."""
    from voxframe.export.delta import DeltaTarget

    corpus, target = voxframe.Corpus(tmp_path / "corpus"), tmp_path / "published"
    corpus.raw.put("a", _payload("a", "old"))
    corpus.publish(target, tables="words")
    late = DeltaTarget(target, None)
    late.sources()
    late.is_continued_by("words", open_delta(target)["words"].to_pyarrow_dataset().schema, [])
    corpus.raw.put("b", _payload("b", "new"))
    corpus.publish(target, tables="words")
    rows = open_delta(target)["words"].to_pyarrow_table()
    with pytest.raises(Exception, match="commit"):
        late.write("words", rows.to_reader(), replaced=set(), written=["b"])
    assert open_delta(target)["words"].to_pyarrow_table().num_rows == 6


def test_a_foreign_delta_table_is_not_overwritten(tmp_path: Path) -> None:
    """A target with a Delta table of another program is refused."""
    import deltalake

    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _payload("a", "old"))
    deltalake.write_deltalake(tmp_path / "lake" / "words", pd.DataFrame({"x": [1]}))
    with pytest.raises(ExportError, match="voxframe did not write"):
        corpus.publish(tmp_path / "lake", tables="words")


@pytest.mark.filterwarnings("ignore:there is no corpus in:voxframe.errors.CorpusWarning")
def test_unknown_tables_and_publications_are_named(tmp_path: Path) -> None:
    """A table that does not exist, and a place without a publication, are clear errors."""
    with pytest.raises(CorpusError, match="has no table 'nope'; it has transcripts"):
        voxframe.Corpus(tmp_path / "corpus").publish(tmp_path / "published", tables="nope")
    with pytest.raises(ExportError, match="there is no publication at"):
        open_delta(tmp_path / "published")


def test_settings_of_a_store_and_publications_are_checked(tmp_path: Path) -> None:
    """Settings that are no dict of texts, which are not shown, and a publication that is no number are refused."""
    secret: Any
    for secret in ("s3cret", {"key": ["s3cret"]}, {5: "s3cret"}):
        with pytest.raises(OptionError, match="of a store") as raised:
            open_delta(tmp_path / "published", storage_options=secret)
        assert "s3cret" not in str(raised.value)
    with pytest.raises(OptionError, match="publication must be a whole number of at least 0, got '1'"):
        open_delta(tmp_path / "published", "1")  # type: ignore[arg-type]


def test_a_publication_has_just_the_named_tables(tmp_path: Path) -> None:
    """Fewer tables are a new publication, although no transcript has changed. The others stay in the older one."""
    corpus, target = voxframe.Corpus(tmp_path / "corpus"), tmp_path / "published"
    corpus.raw.put("t1", _payload("t1", "said"))
    corpus.publish(target, tables=["transcripts", "words"], partition_by="speaker")
    done = corpus.publish(target, tables="transcripts")
    assert (done.number, done.written, done.removed) == (1, 0, 0)
    assert [*open_delta(target)] == ["transcripts"]
    assert len(open_delta(target)["transcripts"].to_pandas()) == 1
    assert [*open_delta(target, 0)] == ["transcripts", "words"]
    assert corpus.publish(target, tables="transcripts").number == 1
    with pytest.raises(OptionError, match=r"words is partitioned by \['speaker'\], not by \[\]"):
        corpus.publish(target, tables=["transcripts", "words"])
    assert corpus.publish(target, tables=["transcripts", "words"], partition_by="speaker").number == 2
    assert len(open_delta(target)["words"].to_pandas()) == 3


def test_dask_reads_partitions_without_a_value(tmp_path: Path) -> None:
    """Told the types of partition columns, Dask reads transcripts that have no value in one."""
    import dask.dataframe as dd

    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in ("t1", "t2"):
        corpus.raw.put(name, _payload(name, "said"))
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"]}))
    corpus.publish(tmp_path / "published", tables="words", partition_by="customer")
    files = open_delta(tmp_path / "published")["words"].file_uris()
    types = {"flavor": "hive", "schema": pa.schema([("customer", pa.string())])}
    found = dd.read_parquet(files, dataset={"partitioning": types}).compute()
    assert found.loc[found["customer"] == "Acme", "transcript_id"].to_list() == ["t1"] * 3
    assert found.loc[found["customer"].isna(), "transcript_id"].to_list() == ["t2"] * 3


def test_errors_of_a_store_are_one_line_without_colours() -> None:
    """Deltalake writes some errors for a terminal, in several lines."""
    from deltalake.exceptions import DeltaError

    with (
        pytest.raises(ExportError, match=r"tables at 's3://calls': S3 error ↳ connection refused$"),
        clear_delta_errors("s3://calls"),
    ):
        raise DeltaError("S3 error\n   \x1b[31m↳\x1b[0m connection refused\n")


def test_another_corpus_is_not_replaced(tmp_path: Path) -> None:
    """A target with transcripts of another corpus is refused and stays as it is."""
    for number, name in enumerate(["a", "b"]):
        voxframe.Corpus(tmp_path / name).raw.put(f"t{number}", _payload(f"t{number}", "old"))
    target = tmp_path / "published"
    voxframe.Corpus(tmp_path / "a").publish(target, tables="words")
    with pytest.raises(ExportError, match=r"has 1 transcript, and the corpus .* has none of them"):
        voxframe.Corpus(tmp_path / "b").publish(target, tables="words")
    assert set(open_delta(target)["words"].to_pandas()["transcript_id"]) == {"t0"}


def test_a_partition_column_without_values_stays(tmp_path: Path) -> None:
    """After the last transcript with a value was forgotten, the rows of the others are published without one."""
    corpus, target = voxframe.Corpus(tmp_path / "corpus"), tmp_path / "published"
    for name in ("t1", "t2"):
        corpus.raw.put(name, _payload(name, "said"))
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t1"], "customer": ["Acme"], "Text": ["a note"]}))
    corpus.publish(target, tables=["words"], partition_by=iter(["customer", "speaker"]), metadata=True)
    first = open_delta(target)["words"].to_pandas().query("transcript_id == 't1'")
    assert first[["customer", "metadata_Text"]].drop_duplicates().to_numpy().tolist() == [["Acme", "a note"]]
    corpus.forget("t1")
    done = corpus.publish(target, tables=["words"], partition_by=["customer", "speaker"], metadata=True)
    assert (done.written, done.removed) == (0, 1)
    left = open_delta(target)["words"].to_pandas()
    assert left[["transcript_id", "speaker"]].to_numpy().tolist() == [["t2", "A"]] * 3
    assert left["customer"].isna().all()
    corpus.forget("t2")
    with pytest.raises(ExportError, match=r"has 1 transcript, and the corpus .* has no transcripts"):
        corpus.publish(target, tables=["words"], partition_by=["customer", "speaker"])


def test_a_transcript_forgotten_meanwhile_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript that is forgotten while rows are written is in no table, and the others are published."""
    corpus, target = voxframe.Corpus(tmp_path / "corpus"), tmp_path / "published"
    for name in "ab":
        corpus.raw.put(name, _payload(name, "old"))
    read = Query.arrow

    def arrow(*args: object, **options: object) -> object:
        if "a" in corpus:
            corpus.forget("a")
        return read(*args, **options)

    monkeypatch.setattr(Query, "arrow", arrow)
    corpus.publish(target, tables=["transcripts", "words"])
    for table in open_delta(target).values():
        assert set(table.to_pandas()["transcript_id"]) == {"b"}


@pytest.mark.filterwarnings("ignore:1 of 2 transcripts cannot be read:voxframe.errors.CorpusWarning")
@pytest.mark.parametrize("view", ["transcript", "sentences"])
def test_a_transcript_that_cannot_be_read_stays_published(tmp_path: Path, view: str) -> None:
    """Its published rows are kept with a warning, while others change, until it is forgotten."""
    corpus, target = voxframe.Corpus(tmp_path / "corpus"), tmp_path / "published"
    tables = ["transcripts", "words", "sentences"]
    said = [{"text": "old", "start": 0, "end": 3, "confidence": 0.5, "words": []}]
    for name in "ab":
        corpus.raw.put(name, _payload(name, "old"))
        corpus.raw.put(name, json.dumps({"id": name, "confidence": 0.5, "sentences": said}).encode(), "sentences")
    corpus.publish(target, tables=tables)
    stem = "a.json.zst" if view == "transcript" else "a.sentences.json.zst"
    (path,) = corpus.path.glob(f"raw/*/{stem}")
    path.write_bytes(path.read_bytes()[:20])
    for text, written in (("old", 0), ("new", 1)):
        corpus.raw.put("b", _payload("b", text))
        with pytest.warns(CorpusWarning, match="such as 'a', so published rows were kept"):
            done = corpus.publish(target, tables=tables)
        assert (done.written, done.removed) == (written, 0)
        for name in ("transcripts", "words", "sentences"):
            rows = open_delta(target)[name].to_pandas().drop_duplicates(["transcript_id", "text"])
            assert set(zip(rows["transcript_id"], rows["text"], strict=True)) >= {("a", "old")}
    if view == "transcript":
        corpus.forget("a")
        assert corpus.publish(target, tables=tables).removed == 1
