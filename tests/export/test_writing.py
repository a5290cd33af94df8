"""Targets of exports, and tables read back by other tools."""

import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml

import voxframe
from voxframe import export
from voxframe.errors import ExportError, OptionError
from voxframe.export import targets
from voxframe.schema import SCHEMA_VERSION

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    """Every table of two recordings."""
    return voxframe.tables([PAYLOADS / "interview.json", PAYLOADS / "panel.json"])


def files(folder: Path) -> list[str]:
    """Everything below a directory, hidden or not."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_parquet_as_duckdb_and_polars_read_it(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """A folder a table, with the types of the data dictionary and rows as they were; empty tables too."""
    written = export.write(tables, tmp_path / "set", "parquet")
    assert written.files == [*(f"{name}/part-0.parquet" for name in tables), "_README.md", "_SHA256SUMS"]
    words = pl.read_parquet(tmp_path / "set/words/*.parquet")
    assert words["text"].to_list() == tables["words"]["text"].to_list()
    assert words.schema["start_ms"] == pl.Int64
    sql = f"select speaker, count(*) from '{tmp_path}/set/words/*.parquet' group by 1 order by 1"
    assert duckdb.sql(sql).fetchall() == list(tables["words"].groupby("speaker").size().items())
    assert pl.read_parquet(tmp_path / "set/topics/*.parquet").schema["level_1"] == pl.String


def test_partitions(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """Values become folders that other tools take for columns."""
    written = export.write(tables["words"], tmp_path / "set", "parquet", partition_by=["transcript_id", "speaker"])
    assert sorted(written) == files(tmp_path / "set")
    read = duckdb.sql(f"select transcript_id, speaker, count(*) from read_parquet('{tmp_path}/set/**/*.parquet', hive_partitioning=true) group by all order by all")  # fmt: skip  # noqa: E501
    expected = tables["words"].groupby(["transcript_id", "speaker"]).size()
    assert {(str(a), b): n for a, b, n in read.fetchall()} == expected.to_dict()
    with pytest.raises(OptionError, match="cannot partition by 'customer'"):
        export.write(tables["words"], tmp_path / "other", "parquet", partition_by="customer")
    export.write(tables, tmp_path / "some", "parquet", partition_by="speaker")
    assert files(tmp_path / "some/words") == [f"speaker={one}/part-0.parquet" for one in "ABCD"]
    assert files(tmp_path / "some/chapters") == ["part-0.parquet"]  # a table without speakers is not divided
    shutil.rmtree(tmp_path / "some")
    with pytest.raises(OptionError, match="only parquet can be partitioned, not csv"):
        export.write(tables["words"], tmp_path / "other", "csv", partition_by="speaker")
    assert files(tmp_path) == [f"set/{name}" for name in sorted(written)]


def test_csv_and_json_lines(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """Texts with quotes, line ends and commas are read back unchanged."""
    hard = tables["words"].head(4).assign(text=['a "b", c', "x\ny", "=1+1", "日本\u2028"])
    export.write(hard, tmp_path / "w.csv", "csv")
    assert pl.read_csv(tmp_path / "w.csv")["text"].to_list() == hard["text"].to_list()
    export.write({"words": hard, "entities": tables["entities"]}, tmp_path / "lines", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "lines/words.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert [row["text"] for row in rows] == hard["text"].to_list()
    assert [row["start_ms"] for row in rows] == hard["start_ms"].to_list()
    assert pl.read_ndjson(tmp_path / "lines/words.jsonl")["confidence"].to_list() == hard["confidence"].to_list()
    boosted = tables["transcripts"].assign(
        word_boost=pd.array(['["a","b"]', None], tables["transcripts"]["word_boost"].dtype)
    )
    export.write({"transcripts": boosted}, tmp_path / "boosted", "jsonl")
    (first, second) = (tmp_path / "boosted/transcripts.jsonl").read_text("utf-8").splitlines()
    assert (json.loads(first)["word_boost"], json.loads(second)["word_boost"]) == ('["a","b"]', None)
    export.write(tables, tmp_path / "all", "csv")
    assert len(pl.read_csv(tmp_path / "all/utterances.csv")) == len(tables["utterances"])


@pytest.mark.long
def test_hugging_face_datasets(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """`datasets.load_dataset` loads each table that has rows by its name, with its columns and types."""
    import datasets

    export.write(tables, tmp_path / "hf", "huggingface", license="cc-by-4.0")
    cache = str(tmp_path / "cache")
    with_rows = [name for name, df in tables.items() if len(df)]
    assert sorted(datasets.get_dataset_config_names(str(tmp_path / "hf"))) == sorted(with_rows)
    for name in with_rows:
        loaded = datasets.load_dataset(str(tmp_path / "hf"), name, split="train", cache_dir=cache)
        assert loaded.column_names == tables[name].columns.to_list()
        assert loaded["transcript_id"][:] == tables[name]["transcript_id"].to_list()
    words = datasets.load_dataset(str(tmp_path / "hf"), "words", split="train", cache_dir=cache)
    assert words["text"][:] == tables["words"]["text"].to_list()
    assert (words.features["start_ms"].dtype, words.features["confidence"].dtype) == ("int64", "float64")
    export.write(tables["words"], tmp_path / "one", "huggingface")
    assert len(datasets.load_dataset(str(tmp_path / "one"), split="train", cache_dir=cache)) == len(tables["words"])
    export.write({"words": tables["words"]}, tmp_path / "lines", "jsonl")
    lines = datasets.load_dataset(str(tmp_path / "lines"), "words", split="train", cache_dir=cache)
    assert lines["text"][:] == words["text"][:]


@pytest.mark.parametrize("form", ["parquet", "csv", "huggingface"])
def test_a_data_set_has_a_card_and_checksums(tables: dict[str, pd.DataFrame], tmp_path: Path, form: str) -> None:
    """The card states licence, counts, models, options and redaction, and `sha256sum -c` accepts every other file."""
    odd = tables["transcripts"].assign(
        speech_model=["a|b <i>", "x"],
        redact_pii=[True, False],
        audio_duration_s=1800.0,
        punctuate=[True, True],
        word_boost="[]",
    )
    written = export.write({**tables, "transcripts": odd}, tmp_path / "my set", form, license="CC-BY: 4.0")
    folder, mark = tmp_path / "my set", "_" if form == "parquet" else ""
    assert set(files(folder)) == set(written)
    listed = {line.split("  ", 1)[1] for line in (folder / f"{mark}SHA256SUMS").read_text().splitlines()}
    assert listed == set(written) - {f"{mark}SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", f"{mark}SHA256SUMS"], cwd=folder, check=True)
    card = (folder / f"{mark}README.md").read_text("utf-8")
    about = yaml.safe_load(card.split("---")[1])
    assert (about["pretty_name"], about["license"]) == ("my set", "CC-BY: 4.0")
    assert {one["config_name"] for one in about["configs"]} == {name for name, df in {**tables}.items() if len(df)}
    for one in about["configs"]:
        assert list(folder.glob(one["data_files"][0]["path"]))
    assert f"| Contents | 2 transcripts, 1.00 hours of audio, {len(tables['words'])} words |" in card
    assert "speech_model (a\\|b \\<i\\>: 1, x: 1)" in card
    assert "punctuate (2)" in card
    assert "word_boost (" not in card  # no words were given
    assert "redacted by the service: 1 of 2 transcripts" in card
    assert f"| words | word | {len(tables['words']):,} |" in card
    assert f"| Schema version | {SCHEMA_VERSION} |" in card


def test_a_file_a_transcript(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """An identifier that is no file name becomes one; it leads nowhere else."""
    words = tables["words"]
    odd = words["transcript_id"].mask(words["transcript_id"] == words["transcript_id"].iloc[0], "../../etc/x")
    export.write(words.assign(transcript_id=odd), tmp_path / "deep/captions", "vtt")
    names = [name for name in files(tmp_path) if name.rpartition("/")[2] not in ("README.md", "SHA256SUMS")]
    assert len(names) == 2
    assert all(name.startswith("deep/captions/") and name.endswith(".vtt") for name in names)
    assert export.write(words, tmp_path / "all.rttm").files == [str(tmp_path / "all.rttm")]
    assert export.write(words.head(3), tmp_path / "all.txt", "audacity").files == [str(tmp_path / "all.txt")]


def test_stores_that_fsspec_knows(tables: dict[str, pd.DataFrame]) -> None:
    """An address of another file system is written to in every kind of format."""
    store = fsspec.filesystem("memory")
    export.write({"words": tables["words"]}, "memory://bucket/set", "parquet", partition_by="transcript_id")
    assert len(store.glob("/bucket/set/words/*/*.parquet")) == 2
    export.write(tables["words"], "memory://bucket/captions", "srt")
    assert len(store.ls("/bucket/captions")) == 4  # with the data card and the hashes
    export.write(tables["words"], "memory://bucket/w.csv", "csv")
    assert store.cat("/bucket/w.csv").startswith(b"transcript_id,")
    with pytest.raises(ExportError, match="already exists"):
        export.write(tables["words"], "memory://bucket/w.csv", "csv")
    export.write(tables["words"].head(1), "memory://bucket/captions", "srt", overwrite=True)
    assert {"README.md", "SHA256SUMS"} < {path.rpartition("/")[2] for path in store.find("/bucket/captions")}
    assert len(store.ls("/bucket/captions")) == 3
    store.pipe("/bucket/captions/mine.txt", b"keep")
    with pytest.raises(ExportError, match=r"voxframe did not write 'mine\.txt' in it"):
        export.write(tables["words"], "memory://bucket/captions", "srt", overwrite=True)
    assert store.cat("/bucket/captions/mine.txt") == b"keep"
    with pytest.raises(OptionError, match="nowhere://x"):
        export.write(tables["words"], "nowhere://x", "csv")


@pytest.mark.parametrize("form", ["parquet", "csv", "md"])
def test_an_export_is_replaced_only_when_asked(tables: dict[str, pd.DataFrame], tmp_path: Path, form: str) -> None:
    """An existing file or export is replaced only with overwrite=True, and then completely."""
    (tmp_path / "old.csv").write_text("keep")
    export.write(tables["words"], tmp_path / "old", form)
    before = files(tmp_path)
    for target, kind in (("old", form), ("old.csv", "csv")):
        with pytest.raises(ExportError, match=r"already exists; choose another target, or pass overwrite=True$"):
            export.write(tables["words"], tmp_path / target, kind)
    assert files(tmp_path) == before
    export.write({"turns": tables["utterances"]}, tmp_path / "old", "csv", overwrite=True)
    export.write(tables["words"], tmp_path / "old.csv", "csv", overwrite=True)
    assert files(tmp_path) == ["old.csv", "old/README.md", "old/SHA256SUMS", "old/turns.csv"]
    assert (tmp_path / "old.csv").read_text().startswith("transcript_id")


@pytest.mark.parametrize("form", ["parquet", "csv", "srt"])
def test_own_files_are_never_deleted(tables: dict[str, pd.DataFrame], tmp_path: Path, form: str) -> None:
    """A folder with a file that voxframe did not write is not replaced, even with overwrite=True."""
    own = tmp_path / "own"
    (own / "deep").mkdir(parents=True)
    (own / "deep/notes.parquet").write_text("no Parquet")
    (own / "SHA256SUMS").write_text(f"{'0' * 64}  deep/notes.parquet\n")  # of another program
    (own / "README.md").write_text("my notes")
    export.write(tables["words"], tmp_path / "set", form)
    (tmp_path / "set/mine.txt").write_text("keep")
    (tmp_path / "link").symlink_to(own)
    (tmp_path / "file").write_text("keep")
    before = files(tmp_path)
    for target in ("own", "set", "link", "file", "."):
        with pytest.raises(ExportError, match=r"voxframe did not write|is a file"):
            export.write(tables["words"], tmp_path / target, form, overwrite=True)
    assert files(tmp_path) == before
    (tmp_path / "set/mine.txt").unlink()
    export.write(tables["words"], tmp_path / "set", form, overwrite=True)
    (tmp_path / "empty").mkdir()
    export.write(tables["words"], tmp_path / "empty", form)


@pytest.mark.parametrize("form", ["parquet", "csv", "srt"])
def test_files_that_were_edited_since_are_not_replaced(
    tables: dict[str, pd.DataFrame], tmp_path: Path, form: str
) -> None:
    """An edited file, also the data card, is named in the error and kept; without it, the export is replaced."""
    given = {"words": tables["words"]} if form != "srt" else tables["words"]
    for name in export.write(given, tmp_path / "set", form).files:
        if name.endswith("SHA256SUMS"):
            continue
        file = tmp_path / "set" / name
        before = file.read_bytes()
        file.write_bytes(before.replace(b"e", b"E", 1))
        with pytest.raises(ExportError, match=rf"'{name}' changed since voxframe wrote it; to keep the changes"):
            export.write(given, tmp_path / "set", form, overwrite=True)
        assert file.read_bytes() != before
        file.write_bytes(before)
    export.write(given, tmp_path / "set", form, overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_come_during_an_export_are_kept(tmp_path: Path, *, overwrite: bool) -> None:
    """A folder that another program fills while an export is written is not replaced."""
    own = tmp_path / "out" / "mine.txt"

    def export_slowly() -> None:
        with targets.folder(tmp_path / "out", overwrite=overwrite) as into:
            into.write("ours.txt", "ours")
            own.parent.mkdir()
            own.write_text("keep")

    with pytest.raises(ExportError, match="voxframe did not write" if overwrite else "already exists"):
        export_slowly()
    assert own.read_text() == "keep"
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine.txt"]


def test_one_dataframe_as_parquet_has_its_card_inside(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """Polars reads the folder, because it has no other files; each part has the card in its metadata."""
    export.write(tables["words"], tmp_path / "set", "parquet", partition_by="speaker", license="CC0-1.0")
    assert len(pl.read_parquet(tmp_path / "set")) == len(tables["words"])
    for path in (tmp_path / "set").rglob("*.parquet"):
        card = pq.read_schema(path).metadata[b"voxframe.data_card"].decode()
        assert "| Licence | CC0-1.0 |" in card
        assert f"| data |  | {len(tables['words']):,} |" in card


def test_a_failure_leaves_nothing(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """If a part cannot be written, the existing target is unchanged and no partial one appears."""
    export.write(tables["words"], tmp_path / "out", "srt")
    before = files(tmp_path)
    bad = pd.concat([tables["words"], pd.DataFrame({"transcript_id": ["x"], "text": ["y"]})])
    with pytest.raises(OptionError, match="lacks start_ms"):
        export.write(bad.drop(columns="start_ms"), tmp_path / "out", "srt", overwrite=True)
    assert files(tmp_path) == before
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ExportError, match="cannot write"):
        export.write(tables["words"], tmp_path / "file" / "below", "csv")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_formats_that_are_none(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """The message lists what there is."""
    with pytest.raises(OptionError, match="no format 'odt'; available: parquet, csv"):
        export.write(tables["words"], tmp_path / "x", "odt")
    with pytest.raises(OptionError, match="srt needs one DataFrame"):
        export.write(tables, tmp_path / "x", "srt")
    with pytest.raises(OptionError, match="one file holds one table"):
        export.write(tables, tmp_path / "x.csv", "csv")
