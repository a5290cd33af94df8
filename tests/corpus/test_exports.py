"""Corpus.export: a whole corpus, part by part."""

import json
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.dataset
import pytest

import voxframe
from voxframe.corpus import export
from voxframe.errors import CorpusError, ExportError, ExportWarning, OptionError
from voxframe.schema import TRANSCRIPT_TABLES

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    """Three recordings, and a transcript in which entities were looked for."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("recordings"))
    for name in ("call", "interview", "panel"):
        corpus.raw.put(name, (PAYLOADS / f"{name}.json").read_bytes())
    words = [{"text": w, "start": 100 * n, "end": 100 * n + 90} for n, w in enumerate("I am Ann".split())]
    entity = {"entity_type": "person_name", "text": "Ann", "start": 200, "end": 290}
    corpus.raw.put(
        "Ann's",
        json.dumps(
            {"id": "Ann's", "status": "completed", "text": "I am Ann", "words": words, "entity_detection": True}
            | {"entities": [entity]}
        ).encode(),
    )
    return corpus


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts so small that there are several."""
    monkeypatch.setattr(export, "_AT_A_TIME", 2)


def test_a_data_set_of_every_table(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Part by part the same rows and types as the tables of the corpus."""
    written = recordings.export(tmp_path / "set")
    assert written.files == [f"{name}/part-0.parquet" for name in TRANSCRIPT_TABLES]
    for name in TRANSCRIPT_TABLES:
        rows = duckdb.sql(f"select count(*) from '{tmp_path}/set/{name}/*.parquet'").fetchall()
        assert rows == [(len(recordings.table(name)),)]
    read = pd.read_parquet(tmp_path / "set/words")
    assert read["text"].to_list() == recordings.table("words")["text"].to_list()


@pytest.mark.parametrize("form", ["csv", "jsonl", pytest.param("huggingface", marks=pytest.mark.long)])
def test_other_data_sets(recordings: voxframe.Corpus, tmp_path: Path, form: str) -> None:
    """One header, one schema, all rows, in parts."""
    recordings.export(tmp_path / "set", form, tables=["words", "entities"])
    if form == "csv":
        read = pd.read_csv(tmp_path / "set/words.csv", keep_default_na=False)
    elif form == "jsonl":
        read = pd.read_json(tmp_path / "set/words.jsonl", lines=True)
    else:
        import datasets

        read = datasets.load_from_disk(str(tmp_path / "set/words")).to_pandas()
    assert read["text"].to_list() == recordings.table("words")["text"].to_list()


def test_partitions_over_parts(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Parts of one partition stand beside each other."""
    recordings.export(tmp_path / "set", tables="words", partition_by="speaker")
    sql = f"select count(*) from read_parquet('{tmp_path}/set/words/*/*.parquet', hive_partitioning=true)"
    assert duckdb.sql(sql).fetchall() == [(len(recordings.table("words")),)]


def test_speech_and_single_files(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """A file a transcript, or one of all where the format holds several."""
    assert sorted(recordings.export(tmp_path / "captions", "srt", ids=["panel", "call"])) == ["call.srt", "panel.srt"]
    assert len(recordings.export(tmp_path / "grids", "textgrid")) == 4
    recordings.export(tmp_path / "all.ctm", "ctm")
    lines = (tmp_path / "all.ctm").read_text().splitlines()
    assert len(lines) == len(recordings.table("words"))
    recordings.export(tmp_path / "words.parquet", tables="words")
    assert len(pd.read_parquet(tmp_path / "words.parquet")) == len(recordings.table("words"))
    with pytest.raises(OptionError, match="one transcript and the DataFrame holds 4"):
        recordings.export(tmp_path / "all.srt", "srt")


def test_personal_data(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """It is masked in what is written; transcripts nobody looked through are an error and write nothing."""
    recordings.export(tmp_path / "ann.vtt", "vtt", ids="Ann's", pii="mask")
    assert "I am [PERSON_NAME]" in (tmp_path / "ann.vtt").read_text()
    recordings.export(tmp_path / "set", "csv", tables="transcripts", ids="Ann's", pii="drop")
    assert pd.read_csv(tmp_path / "set/transcripts.csv")["text"].to_list() == ["I am"]
    with pytest.raises(OptionError, match="without entity_detection"):
        recordings.export(tmp_path / "other", pii="mask")
    assert not (tmp_path / "other").exists()


def test_nothing_to_export(tmp_path: Path) -> None:
    """An empty corpus is a data set without rows, with every column."""
    voxframe.Corpus(tmp_path / "none").export(tmp_path / "set", tables="words")
    assert pd.read_parquet(tmp_path / "set/words").columns.to_list()[:2] == ["transcript_id", "word_idx"]
    assert voxframe.Corpus(tmp_path / "none").export(tmp_path / "captions", "srt").files == []


def test_what_cannot_be_exported(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Unknown tables, transcripts and formats; a target that is there."""
    with pytest.raises(CorpusError, match="nope"):
        recordings.export(tmp_path / "x", tables="nope")
    with pytest.raises(CorpusError, match="nobody"):
        recordings.export(tmp_path / "x", ids="nobody")
    with pytest.raises(OptionError, match="srt is made of words"):
        recordings.export(tmp_path / "x", "srt", tables="words")
    with pytest.raises(OptionError, match="one file holds one table"):
        recordings.export(tmp_path / "x.csv", "csv")
    with pytest.raises(ExportError, match="already exists"):
        recordings.export(PAYLOADS)
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_takes_the_place_of_the_corpus(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """The corpus, what is in it and what it is in are no targets, whatever overwrite says."""
    link = tmp_path / "link"
    link.symlink_to(recordings.path)
    for target in (recordings.path, recordings.path.parent, recordings.path / "raw", link, link / "new"):
        with pytest.raises(OptionError, match="name a place beside it"):
            recordings.export(target, "vtt", overwrite=True)
    assert len(recordings.ids()) == 4


def test_nulls_in_a_column_of_folders_are_read_as_nulls(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Rows without a value in the column to partition by are neither lost nor named."""
    recordings.export(tmp_path / "set", tables="words", partition_by="speaker")
    expected = recordings.words()["speaker"].isna().sum()
    assert expected > 0
    read = pyarrow.dataset.dataset(tmp_path / "set" / "words", partitioning="hive").to_table().to_pandas()
    assert read["speaker"].isna().sum() == expected
    sql = f"select count(*) from read_parquet('{tmp_path}/set/words/**/*.parquet') where speaker is null"
    assert duckdb.sql(sql).fetchall() == [(expected,)]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", pytest.param("huggingface", marks=pytest.mark.long)])
def test_metadata_has_one_type_in_all_parts(tmp_path: Path, form: str) -> None:
    """A column that is empty in the first part and holds numbers in the next one is a column of numbers."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for n in range(5):
        corpus.raw.put(f"t{n}", json.dumps({"id": f"t{n}", "words": [{"text": "Hi", "start": 0, "end": 90}]}).encode())
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t3"], "age": [41]}))
    corpus.export(tmp_path / "set", form, tables="words", metadata="age")
    if form == "parquet":
        ages = duckdb.sql(f"select age from '{tmp_path}/set/words/*.parquet'").fetchall()
    elif form == "huggingface":
        import datasets

        ages = [(age,) for age in datasets.load_from_disk(str(tmp_path / "set/words"))["age"][:]]
    else:
        ages = duckdb.sql(f"select age from '{tmp_path}/set/words.{form}'").fetchall()
    assert ages == [(None,), (None,), (None,), (41,), (None,)]


def test_the_result_counts_what_the_format_cannot_hold(tmp_path: Path) -> None:
    """Losses of all parts are in the result and in one warning."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for n in range(5):
        words = [{"text": "=1+1", "start": 0, "end": 90}, {"text": "later"}]
        corpus.raw.put(f"t{n}", json.dumps({"id": f"t{n}", "words": words}).encode())
    with pytest.warns(ExportWarning, match="5 rows without times, left out") as warned:
        result = corpus.export(tmp_path / "all", "ctm")
    assert (list(result.losses.values()), len(result), len(warned)) == ([5], 5, 1)
    with pytest.warns(ExportWarning, match="5 texts that a spreadsheet"):
        corpus.export(tmp_path / "safe", "csv", tables="words", escape_formulas=True)
    assert pd.read_csv(tmp_path / "safe/words.csv")["text"].to_list() == ["'=1+1", "later"] * 5
