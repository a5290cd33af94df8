import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.corpus.conftest import table_files

import voxframe
from voxframe.client.response import HTTPResponse
from voxframe.client.transcript import Transcript
from voxframe.corpus import archive as module
from voxframe.errors import CorpusError, CorpusWarning, PayloadError
from voxframe.schema import CORPUS_TABLES, TABLES, TRANSCRIPT_TABLES

_WORDS = [
    {"text": "Good", "start": 100, "end": 300, "confidence": 0.9},
    {"text": "day.", "start": 310, "end": 700, "confidence": 0.8},
]


def _raw(transcript_id: str = "t1", words: list = _WORDS, **more: object) -> bytes:
    return json.dumps({"id": transcript_id, "status": "completed", "words": words, "text": "Good day."} | more).encode()


def _files(corpus: voxframe.Corpus) -> list[Path]:
    """List all files but the two that SQLite makes while a database is open."""
    return sorted(p for p in corpus.path.rglob("*") if p.is_file() and not p.name.endswith(("-shm", "-wal")))


def _export(view: str) -> bytes:
    return json.dumps({"id": "t1", view: [{"text": "day.", "start": 310, "end": 700, "words": _WORDS[1:]}]}).encode()


def _glob(corpus: voxframe.Corpus, name: str) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in (corpus.path / "tables" / name).glob("*.parquet")])


def test_a_payload_is_read_back(corpus: voxframe.Corpus) -> None:
    """A payload is returned byte for byte, and its tables equal those of the loaders."""
    corpus.raw.put("t1", _raw())
    assert corpus.raw.get("t1") == _raw()
    assert corpus.ids() == ["t1"]
    assert "t1" in corpus
    expected = voxframe.tables(_raw())
    read = corpus.tables("t1")
    assert list(read) == [*TRANSCRIPT_TABLES, "sentences", "paragraphs"]
    for name, frame in ((name, read[name]) for name in TRANSCRIPT_TABLES):
        assert set(TABLES[name].names) <= set(frame)
        pd.testing.assert_frame_equal(frame[list(expected[name])], expected[name])
        if "speaker" in frame:
            pd.testing.assert_series_equal(frame["speaker_name"], frame["speaker"], check_names=False)


def test_a_transcript_of_a_client_is_added(corpus: voxframe.Corpus) -> None:
    """What `client.transcribe` returns can be added, byte for byte, under the name of its recording."""
    client = voxframe.connect(base_url="http://127.0.0.1:9", api_key="none")
    raws = [_raw("t1"), _raw("t2")]
    first, second = (Transcript(client.transport, "", HTTPResponse(200, {}, raw, "GET", "/")) for raw in raws)
    first.source = "calls/first.mp3"
    corpus.add(first)
    corpus.add([first, second])
    assert [corpus.raw.get(name) for name in ("t1", "t2")] == raws
    assert set(corpus["first"].words["transcript_id"]) == {"t1"}


def test_a_table_is_no_source(corpus: voxframe.Corpus) -> None:
    """The error names the function that converts it."""
    with pytest.raises(PayloadError, match="from_table"):
        corpus.add(pd.DataFrame({"text": ["a"]}))


def test_reading_creates_no_directory(corpus: voxframe.Corpus) -> None:
    """A corpus that is only read creates no directory."""
    assert "t1" not in corpus
    for read in (corpus.ids, lambda: corpus.table("words"), corpus.jobs):
        with pytest.warns(CorpusWarning, match="there is no corpus in"):
            assert len(read()) == 0
    assert not corpus.path.exists()


def test_the_default_corpus_is_in_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path, the directory comes from the settings."""
    monkeypatch.setenv("VOXFRAME_DATA_DIR", str(tmp_path))
    assert voxframe.Corpus().path == tmp_path / "corpus"


def test_a_table_over_many_transcripts(corpus: voxframe.Corpus) -> None:
    """A table contains all transcripts, or the requested ones in the requested order."""
    for name in ("b", "a", "c"):
        corpus.raw.put(name, _raw(name))
    assert corpus.table("words")["transcript_id"].to_list() == ["a", "a", "b", "b", "c", "c"]
    assert corpus.table("transcripts", ["c", "a"])["transcript_id"].to_list() == ["c", "a"]
    assert corpus.table("transcripts", "b")["transcript_id"].to_list() == ["b"]


@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")  # why a table is empty
@pytest.mark.parametrize("name", TRANSCRIPT_TABLES)
def test_empty_tables_have_the_dictionary_dtypes(corpus: voxframe.Corpus, name: str) -> None:
    """A table without rows has all its columns and dtypes."""
    empty = corpus.table(name)
    corpus.raw.put("t1", _raw(words=[]))
    assert list(empty.columns) == list(CORPUS_TABLES[name].names)
    assert corpus.table(name).dtypes.equals(empty.dtypes)


def test_tables_have_the_id_of_the_corpus(corpus: voxframe.Corpus) -> None:
    """Tables have the id that was passed to `put`, even if the payload has none or another one."""
    corpus.raw.put("x/../y", _raw("another", utterances=[]))
    corpus.raw.put("x/../y", _export("sentences"), "sentences")
    assert corpus.ids() == ["x/../y"]
    assert set(corpus.table("words")["transcript_id"]) == {"x/../y"}
    assert set(corpus.table("sentences")["transcript_id"]) == {"x/../y"}


def test_only_a_final_status_counts_as_stored(corpus: voxframe.Corpus) -> None:
    """A payload stored before its transcript was finished does not count as that transcript."""
    for status, final in (("queued", False), ("processing", False), ("completed", True), ("error", True)):
        corpus.raw.put(status, _raw(status, status=status))
        assert (status in corpus) is final
        assert corpus._archive.status(status) == status
    assert 7 not in corpus


def test_exports_know_their_words(corpus: voxframe.Corpus) -> None:
    """Sentences know their first and last word, in whichever order transcript and export were stored."""
    corpus.raw.put("t1", _export("sentences"), "sentences")
    assert corpus.table("sentences", "t1")["first_word_idx"].isna().all()
    corpus.raw.put("t1", _raw())
    assert corpus.table("sentences", "t1")["first_word_idx"].to_list() == [1]
    assert not corpus.tables("t1")["sentences"]["derived"].any()
    assert corpus.tables("t1")["paragraphs"]["derived"].all()


def test_errors_for_missing_data_say_how_to_get_it(corpus: voxframe.Corpus) -> None:
    """Errors for unknown transcripts, exports, tables and views name those that exist."""
    corpus.raw.put("t1", _raw())
    with pytest.raises(CorpusError, match=r"no transcript 'nope' in the corpus '.*ids\(\)"):
        corpus.raw.get("nope")
    with pytest.raises(CorpusError, match=r"no sentences export of 't1'.*load_sentences"):
        corpus.raw.get("t1", "sentences")
    with pytest.raises(CorpusError, match="no transcript 'nope'"):
        corpus.table("sentences", "nope")
    with pytest.raises(CorpusError, match=r"no table 'word' \(did you mean 'words'\?\); it has transcripts, words"):
        corpus.table("word")
    with pytest.raises(CorpusError, match="view must be one of transcript, sentences, paragraphs, got 'srt'"):
        corpus.raw.get("t1", "srt")
    with pytest.raises(CorpusError, match="not empty"):
        corpus.raw.put("", _raw())


def test_an_unreadable_payload_is_stored(corpus: voxframe.Corpus) -> None:
    """A payload is stored even if no table can be made from it."""
    with pytest.raises(PayloadError):
        corpus.raw.put("t1", b"<html>")
    assert corpus.raw.get("t1") == b"<html>"


@pytest.mark.parametrize("damage", ["gone", "cut", "old version"])
@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")
def test_tables_are_rebuilt_from_the_payload(
    corpus: voxframe.Corpus, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file that is missing, truncated or of another version is rebuilt with the same rows."""
    corpus.raw.put("t1", _raw())
    before = corpus.table("words")
    (path,) = table_files(corpus, "words")
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        table = pq.read_table(path)
        metadata = table.schema.metadata | {b"voxframe.schema_version": b"0"}
        pq.write_table(table.slice(0, 0).replace_schema_metadata(metadata), path)
    pd.testing.assert_frame_equal(corpus.table("words"), before)
    monkeypatch.setattr(module.frames, "transcript_tables", None)  # from here on, reading alone must do
    pd.testing.assert_frame_equal(corpus.table("words"), before)


def test_reading_uses_the_stored_tables(corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Current tables are read from Parquet, without the payload."""
    corpus.raw.put("t1", _raw())
    monkeypatch.setattr(module.frames, "transcript_tables", None)
    assert corpus.tables("t1")["words"]["text"].to_list() == ["Good", "day."]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_read_only_disk(corpus: voxframe.Corpus) -> None:
    """Outdated tables are rebuilt in memory; writing is an error that leaves nothing."""
    corpus.raw.put("t1", _raw())
    table_files(corpus, "words")[0].unlink()
    before = _files(corpus)
    script = (
        "import resource, sys, voxframe\n"
        "corpus = voxframe.Corpus(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "shown = corpus.table('words')['text'].to_list()\n"
        "try: corpus.raw.put('t2', b'{}')\n"
        "except voxframe.errors.CorpusError as e: shown.append(str(e))\n"
        "sys.stderr.write(chr(10).join(shown))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(corpus.path)], check=True, stderr=subprocess.PIPE, text=True
    )
    first, second, error = done.stderr.splitlines()
    assert [first, second] == ["Good", "day."]
    assert error == f"cannot write to the corpus {corpus.path}: File too large"
    assert _files(corpus) == before


def test_pandas_duckdb_and_polars_read_it_with_a_glob(corpus: voxframe.Corpus) -> None:
    """All tools read the same rows; columns of nulls keep their type, and empty tables their columns."""
    for name in ("a", "b", "C"):
        corpus.raw.put(name, _raw(name))
    corpus.raw.put("none", _raw("none", words=None))
    pattern = str(corpus.path / "tables/words/*.parquet")
    expected = sorted(corpus.table("words")["text"])
    assert sorted(_glob(corpus, "words")["text"]) == expected
    assert sorted(pd.read_parquet(corpus.path / "tables/words")["text"]) == expected
    assert sorted(pl.read_parquet(pattern)["text"]) == expected
    assert sorted(duckdb.sql(f"select text from '{pattern}'").df()["text"]) == expected
    assert pl.read_parquet(pattern).schema["speaker"] == pl.String
    types = dict(duckdb.sql(f"select column_name, column_type from (describe '{pattern}')").fetchall())
    assert types["speaker"] == types["channel"] == "VARCHAR"
    assert types["utterance_idx"] == types["start_ms"] == "BIGINT"
    for name in (*TRANSCRIPT_TABLES, "sentences", "paragraphs"):
        pattern = str(corpus.path / f"tables/{name}/*.parquet")
        assert tuple(pl.read_parquet(pattern).columns) == TABLES[name].names
        assert tuple(duckdb.sql(f"from '{pattern}'").columns) == TABLES[name].names
        assert set(_glob(corpus, name).columns) == set(TABLES[name].names)


@pytest.mark.long
def test_two_processes_write_and_read_one_corpus(corpus: voxframe.Corpus) -> None:
    """While two processes write the same transcripts, every read returns one complete version."""
    program = (
        "import json, sys, voxframe; corpus = voxframe.Corpus(sys.argv[1])\n"
        "for n in range(12):\n"
        "    words = [{'text': sys.argv[2], 'start': i, 'end': i} for i in range(int(sys.argv[3]))]\n"
        "    payload = {'id': f't{n % 3}', 'status': 'completed', 'words': words}\n"
        "    corpus.raw.put(payload['id'], json.dumps(payload).encode())\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(corpus.path), word, str(count)])
        for word, count in (("one", 40), ("two", 70))
    ]
    reads = 0
    corpus.path.mkdir(exist_ok=True)  # else a read before the first write warns that there is no corpus
    while any(writer.poll() is None for writer in writers):
        for transcript_id in corpus.ids():
            words = corpus.table("words", transcript_id)["text"].to_list()
            assert words in (["one"] * 40, ["two"] * 70)
            reads += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert corpus.ids() == ["t0", "t1", "t2"]
    assert reads > 0
    for transcript_id in corpus.ids():
        words = {word["text"] for word in json.loads(corpus.raw.get(transcript_id))["words"]}
        assert set(corpus.table("words", transcript_id)["text"]) == words


def test_an_id_with_an_unpaired_surrogate_is_refused(tmp_path: Path) -> None:
    """The error comes before anything is stored."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    with pytest.raises(CorpusError, match="surrogate"):
        corpus.raw.put("\ud800", b'{"status": "completed"}')
    assert not corpus.path.exists()


def test_a_damaged_catalog_is_rebuilt_with_a_warning(corpus: voxframe.Corpus) -> None:
    """One warning says so, and what was recorded is there again."""
    words = [{"text": "Good", "start": 0, "end": 5, "speaker": "A"}]
    corpus.raw.put("t1", _raw("t1", words))
    corpus.speakers.set("t1", {"A": "Ada"})
    corpus.path.joinpath("catalog.sqlite").write_bytes(b"junk" * 300)
    with pytest.warns(CorpusWarning, match=r"was damaged\. It was rebuilt with 0 submissions"):
        corpus.jobs()
    assert corpus.table("words")["speaker_name"].to_list() == ["Ada"]


def test_a_relative_directory_that_looks_like_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used as a directory, also after a change of the working directory."""
    monkeypatch.chdir(tmp_path)
    corpus = voxframe.Corpus("file:x")
    corpus.raw.put("t1", _raw())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert corpus.ids() == ["t1"]
    assert len(corpus.tables("t1")["words"]) == len(voxframe.Corpus(tmp_path / "file:x").table("words")) > 0
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    "read",
    [
        lambda c: c.table("words", metadata="person"),
        lambda c: c.search("hi"),
        lambda c: c.counts("hi"),
        lambda c: c.counts("hi", by="source"),
        lambda c: c.scan("words"),
        lambda c: c.to_polars("sentences"),
        lambda c: c.sql("select * from words, sentences, transcripts, jobs, metadata, responses"),
        lambda c: c.export(c.path.parent / "exported"),
        lambda c: c.speakers.table(),
        voxframe.load_words,
        voxframe.load_transcripts,
        voxframe.tables,
    ],
)
def test_reading_a_corpus_that_does_not_exist_warns_once(tmp_path: Path, read) -> None:
    """A mistyped path is named in one warning instead of giving an empty table without a word, and is not created."""
    with pytest.warns(CorpusWarning, match="there is no corpus in '.*mistyped' yet") as given:
        read(voxframe.Corpus(tmp_path / "mistyped"))
    assert len(given) == 1
    assert not (tmp_path / "mistyped").exists()
