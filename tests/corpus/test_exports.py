"""`Corpus.export`, in batches of transcripts."""

import json
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import voxframe
from voxframe.corpus import export
from voxframe.corpus.job import new_job
from voxframe.corpus.query import Query
from voxframe.errors import CorpusError, CorpusWarning, ExportError, ExportWarning, OptionError
from voxframe.schema import TRANSCRIPT_TABLES

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    """Three recordings, and a transcript with entity detection."""
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
    """Batches so small that there are several."""
    monkeypatch.setattr(export, "_AT_A_TIME", 2)


@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")  # why a table is empty
def test_a_dataset_has_every_table(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """A Parquet dataset has the rows and types of the tables of the corpus."""
    written = recordings.export(tmp_path / "set")
    assert written.files[:-3] == [f"{name}/part-0.parquet" for name in TRANSCRIPT_TABLES]
    for name in TRANSCRIPT_TABLES:
        rows = duckdb.sql(f"select count(*) from '{tmp_path}/set/{name}/*.parquet'").fetchall()
        assert rows == [(len(recordings.table(name)),)]
    read = pd.read_parquet(tmp_path / "set/words")
    assert read["text"].to_list() == recordings.table("words")["text"].to_list()


@pytest.mark.parametrize("form", ["csv", "jsonl", pytest.param("huggingface", marks=pytest.mark.long)])
def test_csv_and_jsonl_datasets(recordings: voxframe.Corpus, tmp_path: Path, form: str) -> None:
    """A dataset written in batches has one header, one schema and all rows."""
    recordings.export(tmp_path / "set", form, tables=["words", "entities"])
    if form == "csv":
        read = pd.read_csv(tmp_path / "set/words.csv", keep_default_na=False)
    elif form == "jsonl":
        read = pd.read_json(tmp_path / "set/words.jsonl", lines=True)
    else:
        import datasets

        cache = str(tmp_path / "cache")
        read = datasets.load_dataset(str(tmp_path / "set"), "words", split="train", cache_dir=cache).to_pandas()
    assert read["text"].to_list() == recordings.table("words")["text"].to_list()


def test_partitions_over_batches(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Files of one partition from several batches are in the same folder, and pandas reads the whole data set."""
    with pytest.warns(ExportWarning, match="readers take for numbers"):  # the channels "1" and "2" of the call
        recordings.export(tmp_path / "set", tables="words", partition_by="speaker")
    recordings.export(tmp_path / "by id", tables="words", partition_by="transcript_id")  # pandas knows no null here
    assert len(pd.read_parquet(tmp_path / "by id")) == len(recordings.table("words"))
    sql = f"select count(*) from read_parquet('{tmp_path}/set/words/*/*.parquet', hive_partitioning=true)"
    assert duckdb.sql(sql).fetchall() == [(len(recordings.table("words")),)]


def test_speech_and_single_files(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Speech formats are one file per transcript, or a single file for all of them."""
    assert sorted(recordings.export(tmp_path / "captions", "srt", ids=["panel", "call"])) == ["call.srt", "panel.srt"]
    assert len(recordings.export(tmp_path / "grids", "textgrid")) == 4
    recordings.export(tmp_path / "all.ctm", "ctm")
    lines = (tmp_path / "all.ctm").read_text().splitlines()
    assert len(lines) == len(recordings.table("words"))
    recordings.export(tmp_path / "words.parquet", tables="words")
    assert len(pd.read_parquet(tmp_path / "words.parquet")) == len(recordings.table("words"))
    with pytest.raises(OptionError, match="srt needs one transcript, got 4"):
        recordings.export(tmp_path / "all.srt", "srt")


def test_the_extension_of_the_target_is_the_format(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Without a format, a file extension that names one decides; any other target is a directory of Parquet."""
    recordings.export(tmp_path / "words.csv", tables="words")
    assert len(pd.read_csv(tmp_path / "words.csv")) == len(recordings.table("words"))
    recordings.export(tmp_path / "call.SRT", ids="call")
    assert (tmp_path / "call.SRT").read_text().startswith("1\n00:00:0")
    for target in ("release.2", "folder.csv/"):
        recordings.export(f"{tmp_path}/{target}", tables="words")
        assert (tmp_path / target / "words/part-0.parquet").is_file()
    for target, form, said in (
        (
            "a.srt",
            "vtt",
            r"a\.srt' ends in \.srt, which is for srt, but the format is vtt; pass format='srt', or a target",
        ),
        ("a.csv", "huggingface", r"ends in \.csv, which is for csv, but the format is huggingface"),
        (
            "a.json",
            None,
            r"which is for labelstudio, but no format is given; pass format='labelstudio', or a target wi",
        ),
        ("a.xlsx", None, r"ends in \.xlsx, which is read but not written; pass a target that ends in \.csv"),
        ("a.csv.gz", None, r"a\.csv\.gz' ends in \.gz, but exports are not compressed; pass a target without \.gz"),
        ("a.txt", "md", r"is for audacity and txt, but the format is md; pass format='audacity' or format='txt', or"),
    ):
        with pytest.raises(OptionError, match=said):
            recordings.export(tmp_path / target, form)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("a.")]


def test_personal_data(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """It is masked in the files; transcripts without entity detection are an error, and nothing is written."""
    recordings.export(tmp_path / "ann.vtt", "vtt", ids="Ann's", pii="mask")
    assert "I am [PERSON_NAME]" in (tmp_path / "ann.vtt").read_text()
    recordings.export(tmp_path / "set", "csv", tables="transcripts", ids="Ann's", pii="drop")
    assert pd.read_csv(tmp_path / "set/transcripts.csv")["text"].to_list() == ["I am"]
    with pytest.raises(OptionError, match="without entity_detection"):
        recordings.export(tmp_path / "other", pii="mask")
    for wrong, reason in (
        ({"pii_types": ["person_name"]}, r'pii_types needs pii="mask" or pii="drop"; without it, nothing is masked'),
        ({"pii": "mask", "pii_types": ["persn_name"]}, "'persn_name' is not a type of personal data"),
        ({"pii": "hide"}, "pii must be 'mask', 'drop' or None, got 'hide'"),
    ):
        with pytest.raises(OptionError, match=reason):
            recordings.export(tmp_path / "other", ids="Ann's", **wrong)
    assert not (tmp_path / "other").exists()


def test_an_empty_corpus_is_exported(tmp_path: Path) -> None:
    """An empty corpus gives a dataset without rows and with every column."""
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        voxframe.Corpus(tmp_path / "none").export(tmp_path / "set", tables="words")
    assert pd.read_parquet(tmp_path / "set/words").columns.to_list()[:3] == [
        "transcript_id",
        "recording",
        "word_idx",
    ]
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        assert voxframe.Corpus(tmp_path / "none").export(tmp_path / "captions", "srt").files == []


def test_invalid_exports_are_refused(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Unknown tables, transcripts and formats, and an existing target, are errors."""
    with pytest.raises(CorpusError, match="nope"):
        recordings.export(tmp_path / "x", tables="nope")
    with pytest.raises(CorpusError, match="nobody"):
        recordings.export(tmp_path / "x", ids="nobody")
    with pytest.raises(OptionError, match="srt contains only words"):
        recordings.export(tmp_path / "x", "srt", tables="words")
    with pytest.raises(OptionError, match="can contain only one table"):
        recordings.export(tmp_path / "x.csv", "csv")
    with pytest.raises(ExportError, match="already exists"):
        recordings.export(PAYLOADS)
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_overwrites_the_corpus(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Targets that are, contain or are inside the corpus are refused, even with overwrite."""
    link = tmp_path / "link"
    link.symlink_to(recordings.path)
    for target in (recordings.path, recordings.path.parent, recordings.path / "raw", link, link / "new"):
        with pytest.raises(OptionError, match="choose a target outside it"):
            recordings.export(target, "vtt", overwrite=True)
    assert len(recordings.ids()) == 4


def test_nulls_in_a_partition_column_are_read_as_nulls(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Rows without a value in the partition column are kept and read as null."""
    with pytest.warns(ExportWarning, match="readers take for numbers"):
        recordings.export(tmp_path / "set", tables="words", partition_by="speaker")
    expected = recordings.words()["speaker"].isna().sum()
    assert expected > 0
    read = pyarrow.dataset.dataset(tmp_path / "set" / "words", partitioning="hive").to_table().to_pandas()
    assert read["speaker"].isna().sum() == expected
    sql = f"select count(*) from read_parquet('{tmp_path}/set/words/**/*.parquet') where speaker is null"
    assert duckdb.sql(sql).fetchall() == [(expected,)]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", pytest.param("huggingface", marks=pytest.mark.long)])
def test_metadata_has_one_type_in_all_batches(tmp_path: Path, form: str) -> None:
    """A column that is empty in the first batch and has numbers in the next one is numeric in both."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for n in range(5):
        corpus.raw.put(f"t{n}", json.dumps({"id": f"t{n}", "words": [{"text": "Hi", "start": 0, "end": 90}]}).encode())
    corpus.metadata.set(pd.DataFrame({"transcript_id": ["t3"], "age": [41]}))
    corpus.export(tmp_path / "set", form, tables="words", metadata="age")
    if form == "parquet":
        ages = duckdb.sql(f"select age from '{tmp_path}/set/words/*.parquet'").fetchall()
    elif form == "huggingface":
        import datasets

        cache = str(tmp_path / "cache")
        loaded = datasets.load_dataset(str(tmp_path / "set"), "words", split="train", cache_dir=cache)
        ages = [(age,) for age in loaded["age"][:]]
    else:
        ages = duckdb.sql(f"select age from '{tmp_path}/set/words.{form}'").fetchall()
    assert ages == [(None,), (None,), (None,), (41,), (None,)]


def test_the_result_counts_unsupported_values(tmp_path: Path) -> None:
    """The result and one warning count the values that the format cannot represent, over all batches."""
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


def test_the_card_of_an_export(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """The card names the corpus and states the redaction, also of tables that are not exported."""
    recordings.export(tmp_path / "set", "csv", tables="words", ids="Ann's", pii="drop", license="CC0-1.0")
    card = (tmp_path / "set/README.md").read_text("utf-8")
    assert f'| Source | the corpus "{recordings.path.name}"; corrections are applied |' in card
    assert "| Personal data | what entity detection found was left out; no transcript was redacted" in card
    assert "| Contents | 1 transcript, 0.00 hours of audio, 2 words |" in card
    assert "| Licence | CC0-1.0 |" in card
    recordings.export(tmp_path / "tags", tables="words", ids="Ann's", pii="mask", pii_types=["person_name"])
    assert "found of the types person_name was replaced by labels" in (tmp_path / "tags/_README.md").read_text("utf-8")


def test_captions_and_one_parquet_file_have_a_card(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """A folder of captions has the card and the hashes beside them; a Parquet file has the card in its metadata."""
    recordings.export(tmp_path / "texts", "md", ids=["call", "panel"], license="CC0-1.0")
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == [
        *("README.txt", "SHA256SUMS", "call.md", "panel.md")
    ]
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path / "texts", check=True)
    card = (tmp_path / "texts/README.txt").read_text("utf-8")
    assert "| Contents | 2 transcripts, 0.04 hours of audio |" in card  # 59 and 102 s
    assert "| Format | md |" in card
    assert "| Licence | CC0-1.0 |" in card
    recordings.export(tmp_path / "words.parquet", tables="words", ids="Ann's", license="CC0-1.0")
    inside = pq.read_schema(tmp_path / "words.parquet").metadata[b"voxframe.data_card"].decode()
    assert "| Contents | 1 transcript, 0.00 hours of audio, 3 words |" in inside
    assert "| Licence | CC0-1.0 |" in inside


def test_the_card_names_the_services(tmp_path: Path) -> None:
    """The embedded service is named in words, and another one by its URL without the password."""
    corpus = voxframe.Corpus(tmp_path / "calls")
    for service in ("embedded", "https://me:secret@speech.example"):
        name = f"t{len(service)}"
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed"}).encode())
        corpus._ledger.save(new_job("a.mp3", name, {}, service, state="completed", transcript_id=name))
    corpus.export(tmp_path / "set", "huggingface")
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert r'| Source | the corpus "calls"; transcribed by https://\*\*\*@speech.example, the embedded service;' in card


def test_recordings_go_into_a_hugging_face_data_set(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """Recordings at hand are bytes of a column for `datasets.Audio`; others are null, counted and reported."""
    sound = (PAYLOADS.parent / "panel.flac").read_bytes()
    with pytest.warns(ExportWarning, match="1 recordings that are not at hand, null"):
        recordings.export(
            tmp_path / "hf",
            "huggingface",
            tables=["transcripts", "words"],
            ids=["panel", "call"],
            audio={"panel": PAYLOADS.parent / "panel.flac", "call": tmp_path / "gone.wav"},
        )
    file = pq.ParquetFile(tmp_path / "hf/transcripts/part-0.parquet")
    assert file.read().column("audio").to_pylist() == [{"bytes": sound, "path": "panel.flac"}, None]
    assert file.num_row_groups == 2
    assert "audio" not in pq.read_schema(tmp_path / "hf/words/part-0.parquet").names
    for wrong in ({"format": "parquet"}, {"pii": "mask"}, {"tables": "words"}):
        with pytest.raises(OptionError, match="audio= needs the format huggingface"):
            recordings.export(tmp_path / "x", **{"format": "huggingface", "audio": True, **wrong})


@pytest.mark.long
def test_datasets_decodes_the_recordings(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """`datasets` takes the column for audio."""
    import datasets

    audio = {"panel": PAYLOADS.parent / "panel.flac"}
    recordings.export(tmp_path / "hf", "huggingface", tables="transcripts", ids="panel", audio=audio)
    cache = str(tmp_path / "cache")
    loaded = datasets.load_dataset(str(tmp_path / "hf"), "transcripts", split="train", cache_dir=cache)
    assert isinstance(loaded.features["audio"], datasets.Audio)
    raw = loaded.cast_column("audio", datasets.Audio(decode=False))[0]["audio"]
    assert raw == {"bytes": audio["panel"].read_bytes(), "path": "panel.flac"}


def _payload(name: str, text: str) -> bytes:
    words = [{"text": text, "start": 0, "end": 90}]
    return json.dumps({"id": name, "status": "completed", "language_model": text, "words": words}).encode()


def _after_table(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Call `change` once, when an export has read the first of its tables."""
    read, changes = Query.table, [change]

    def table(query: Query, name: str, *more: object, **options: object) -> pd.DataFrame:
        found = read(query, name, *more, **options)
        if changes:
            changes.pop()()
        return found

    monkeypatch.setattr(Query, "table", table)


def test_all_tables_have_one_version_of_a_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript that is replaced between the reads of two tables is the new one in all of them."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("a", _payload("a", "v1"))
    _after_table(monkeypatch, lambda: corpus.raw.put("a", _payload("a", "v2")))
    corpus.export(tmp_path / "set", tables=["transcripts", "words"])
    assert pd.read_parquet(tmp_path / "set/transcripts")["language_model"].to_list() == ["v2"]
    assert pd.read_parquet(tmp_path / "set/words")["text"].to_list() == ["v2"]


@pytest.mark.parametrize("forgotten", ["b", "ab"])
def test_a_transcript_forgotten_during_an_export_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    """It is in no table and not in the card, unless it was named: then it is an error."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for ids in (None, ["a", "b"]):
        for name in "ab":
            corpus.raw.put(name, _payload(name, "word"))
        with monkeypatch.context() as patch:
            _after_table(patch, lambda: [corpus.forget(name) for name in forgotten] and None)
            if ids is None:
                corpus.export(tmp_path / "set", tables=["transcripts", "words"])
            else:
                with pytest.raises(CorpusError, match=f"there is no transcript '{forgotten[0]}'"):
                    corpus.export(tmp_path / "other", tables=["transcripts", "words"], ids=ids)
    for table in ("transcripts", "words"):
        left = [name for name in "ab" if name not in forgotten]
        assert pd.read_parquet(tmp_path / "set" / table)["transcript_id"].to_list() == left
    assert f"| Contents | {len(left)} transcript" in (tmp_path / "set/_README.md").read_text("utf-8")


def test_an_export_of_transcripts_that_keep_changing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to do, and nothing is written."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    read, versions = Query.table, count()

    def table(*args: object, **options: object) -> pd.DataFrame:
        corpus.raw.put("a", _payload("a", f"v{next(versions)}"))
        return read(*args, **options)

    corpus.raw.put("a", _payload("a", "v"))
    monkeypatch.setattr(Query, "table", table)
    with pytest.raises(CorpusError, match="changes all the time; stop what writes to it and try again"):
        corpus.export(tmp_path / "set", tables="words")
    assert not (tmp_path / "set").exists()


def test_a_split_of_the_metadata_makes_the_splits_of_a_data_set(recordings: voxframe.Corpus, tmp_path: Path) -> None:
    """The format huggingface takes a column `split` without being asked for it; other formats do not."""
    first = recordings.ids()[0]
    recordings.metadata.set(pd.DataFrame({"transcript_id": [first], "split": ["test"]}))
    files = recordings.export(tmp_path / "set", "huggingface", tables="words").files
    assert {"words/test-0.parquet", "words/other-0.parquet"} <= {*files}
    assert pd.read_parquet(tmp_path / "set/words/test-0.parquet")["transcript_id"].unique().tolist() == [first]
    recordings.export(tmp_path / "plain", "parquet", tables="transcripts")
    assert "split" not in pd.read_parquet(tmp_path / "plain/transcripts").columns
