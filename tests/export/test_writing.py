"""Targets of exports, and tables read back by other tools."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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
    assert written.files == [
        *(f"{name}/part-0.parquet" for name in tables),
        "_croissant.json",
        "_README.md",
        "_SHA256SUMS",
    ]
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


@pytest.mark.long
def test_a_column_split_makes_splits(tmp_path: Path) -> None:
    """`datasets.load_dataset` has one split per value, and rows without a value are in the split "other"."""
    datasets = pytest.importorskip("datasets")
    df = pd.DataFrame({"text": list("abcd"), "split": ["train", "test set", "train", None]})
    export.write({"words": df}, tmp_path / "hf", "huggingface")
    loaded = datasets.load_dataset(str(tmp_path / "hf"), "words", cache_dir=str(tmp_path / "cache"))
    assert {name: rows["text"] for name, rows in loaded.items()} == {
        "train": ["a", "c"],
        "test_set": ["b"],
        "other": ["d"],
    }


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
    names = [
        name for name in files(tmp_path) if name.rpartition("/")[2] not in ("README.md", "SHA256SUMS", "croissant.json")
    ]
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


def test_a_failed_export_to_a_store_changes_nothing(tables: dict[str, pd.DataFrame]) -> None:
    """An existing file or directory is complete after a failure, no partial one appears, and a repetition works."""
    store = fsspec.filesystem("memory")
    words, bad = tables["words"], tables["words"].assign(start_ms="soon")
    export.write({"words": words, "turns": tables["utterances"]}, "memory://failed/set", "csv")
    export.write(words, "memory://failed/captions", "srt")
    export.write({"words": words}, "memory://failed/w.csv")
    before = {path: store.cat(path) for path in store.find("/failed")}
    for target, data, form in (
        ("set", {"turns": tables["utterances"].head(1), "words": bad}, "csv"),
        ("captions", bad, "srt"),
        ("w.csv", {"words": pd.concat([words, words[["text"]]], axis=1)}, "csv"),
        ("new.csv", {"words": pd.concat([words, words[["text"]]], axis=1)}, "csv"),
    ):
        with pytest.raises(OptionError, match=r"does not fit|needs numbers|unique column names"):
            export.write(data, f"memory://failed/{target}", form, overwrite=True)
    assert {path: store.cat(path) for path in store.find("/failed")} == before
    export.write({"words": words.head(1)}, "memory://failed/set", "csv", overwrite=True)
    assert [name.rpartition("/")[2] for name in store.find("/failed/set")] == [
        "README.md",
        "SHA256SUMS",
        "croissant.json",
        "words.csv",
    ]


def test_an_interrupted_upload_can_be_repeated(
    tables: dict[str, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that fails while the files are uploaded leaves a directory that overwrite=True replaces."""
    store = fsspec.filesystem("memory")
    puts = store.put_file

    def put_file(here: str, there: str, **options: object) -> None:
        if there.endswith("b.csv"):
            raise OSError("the store is gone")
        puts(here, there, **options)

    given = dict.fromkeys("abc", tables["words"])
    with monkeypatch.context() as patch:
        patch.setattr(store, "put_file", put_file)
        with pytest.raises(ExportError, match="the store is gone"):
            export.write(given, "memory://interrupted/set", "csv")
    assert "/interrupted/set/a.csv" in store.find("/interrupted/set")
    assert "/interrupted/set/c.csv" not in store.find("/interrupted/set")
    export.write(given, "memory://interrupted/set", "csv", overwrite=True)
    assert len(store.find("/interrupted/set")) == 6


_KILLED = """
import os, sys, pandas as pd
from voxframe.export import targets
def write(target, kind):
    with getattr(targets, kind)(target) as into:
        (into.write("a.txt", "a") if kind == "folder" else into.write(b"a"))
        os._exit(9)
write(*sys.argv[1:])
"""


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_a_killed_export_left_is_deleted_after_a_day(tmp_path: Path, kind: str) -> None:
    """A later export to the same target deletes it once it is too old to be of a running export."""
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "x"), kind], check=False)
        assert killed.returncode == 9
    old, young = sorted(tmp_path.iterdir())
    assert old.name.startswith(".x.")
    tmp_path.joinpath(".x.mine.tmp").touch()
    for path in (old, *old.rglob("*"), tmp_path / ".x.mine.tmp"):
        os.utime(path, (time.time() - 2 * 86_400,) * 2)
    with getattr(targets, kind)(tmp_path / "x") as into:
        into.write("b.txt", "b") if kind == "folder" else into.write(b"b")
    assert {path.name for path in tmp_path.iterdir()} == {"x", young.name, ".x.mine.tmp"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_directory_that_cannot_be_replaced_is_restored(
    tables: dict[str, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """If the new directory cannot be moved into place, also because of Ctrl-C, the old one is there as before."""
    export.write(tables["words"], tmp_path / "set", "srt")
    before = files(tmp_path)
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.suffix == ".tmp":
            raise error
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises((KeyboardInterrupt, ExportError)):
            export.write(tables["words"].head(1), tmp_path / "set", "srt", overwrite=True)
    assert files(tmp_path) == before


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
    assert files(tmp_path) == ["old.csv", "old/README.md", "old/SHA256SUMS", "old/croissant.json", "old/turns.csv"]
    assert (tmp_path / "old.csv").read_text().startswith("transcript_id")


def test_new_files_are_on_the_disk_before_old_ones_are_removed(
    tables: dict[str, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every new file and folder is flushed before the old directory is renamed."""
    export.write({"words": tables["words"]}, tmp_path / "set", "parquet")
    flushed: set[int] = set()  # noted, because a power cut cannot be caused here
    flush, rename = os.fsync, Path.rename
    at_first_rename: list[set[int]] = []

    def noted(descriptor: int) -> None:
        flush(descriptor)
        flushed.add(os.fstat(descriptor).st_ino)

    def renamed(path: Path, target: Path) -> Path:
        at_first_rename.append({*flushed})
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "rename", renamed)
    export.write({"turns": tables["utterances"]}, tmp_path / "set", "parquet", overwrite=True)
    new = {path.stat().st_ino for path in [tmp_path / "set", *(tmp_path / "set").rglob("*")]}
    assert len(new) == 6  # the directory, that of the table, its file, the metadata, the card and the hashes
    assert new <= at_first_rename[0]
    assert tmp_path.stat().st_ino in flushed


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
    """The message names usual formats, and where all are."""
    with pytest.raises(OptionError, match="no format 'odt' of exports; formats are csv, parquet"):
        export.write(tables["words"], tmp_path / "x", "odt")
    with pytest.raises(OptionError, match="srt needs one DataFrame"):
        export.write(tables, tmp_path / "x", "srt")
    with pytest.raises(OptionError, match="one file holds one table"):
        export.write(tables, tmp_path / "x.csv", "csv")


@pytest.mark.parametrize("data", [None, 3, ["words"], {"words": [1]}])
@pytest.mark.parametrize("target", ["x", "x.csv"])
def test_only_dataframes_are_written(tmp_path: Path, data: Any, target: str) -> None:
    """Anything but a DataFrame or a dict of them is refused before a file is made."""
    with pytest.raises(OptionError, match=r"an export needs a DataFrame, .*, not of type (NoneType|int|list)$"):
        export.write(data, tmp_path / target, "csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../words", "a/b", "", "..", "a\\b", 3])
def test_a_table_is_written_inside_the_directory(tables: dict[str, pd.DataFrame], tmp_path: Path, name: Any) -> None:
    """The name of a table cannot lead to another directory."""
    with pytest.raises(OptionError, match="the name of a table is text without slashes"):
        export.write({name: tables["words"]}, tmp_path / "deep" / "set", "csv")
    assert list(tmp_path.iterdir()) == []


def test_targets_that_are_no_paths(tables: dict[str, pd.DataFrame]) -> None:
    """A NUL character, the home directory of an unknown user, and a flag that is no boolean are refused."""
    for target in ("~nobody-of-this-name/x", "~nobody-of-this-name/x.csv"):
        with pytest.raises(OptionError, match=r"the home directory in '~nobody-of-this-name/x.* is unknown"):
            export.write(tables["words"], target)
    with pytest.raises(OptionError, match=r"a path or URL is needed, .*, got 'a\\x00b'"):
        export.write(tables["words"], "a\0b")
    flag: Any = "no"
    with pytest.raises(OptionError, match="escape_formulas must be True or False, got 'no'"):
        export.write(tables["words"], "x", "csv", escape_formulas=flag)
