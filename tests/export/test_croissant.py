"""Croissant metadata of exported data sets, read by `mlcroissant`, the library of its authors."""

from pathlib import Path

import pytest

import voxframe

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib", "ignore::DeprecationWarning:mlcroissant")
PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("croissant") / "corpus")
    for name in ("call", "interview"):
        corpus.add(PAYLOADS / f"{name}.json")
    return corpus


@pytest.mark.parametrize(
    ("form", "options"),
    [("parquet", {}), ("csv", {}), ("jsonl", {}), ("huggingface", {}), ("parquet", {"partition_by": "language_code"})],
)
def test_tables_are_read_through_it(corpus: voxframe.Corpus, tmp_path: Path, form: str, options: dict) -> None:
    """The metadata is valid, and each table has its rows, columns and values."""
    import mlcroissant  # takes a third of a second, and every process of pytest imports this file

    corpus.export(tmp_path / "set", form, license="cc-by-4.0", **options)
    (file,) = (tmp_path / "set").glob("*croissant.json")
    dataset = mlcroissant.Dataset(jsonld=str(file))
    assert not dataset.metadata.ctx.issues.errors
    assert dataset.metadata.name == "set"
    words = corpus.table("words")
    rows = [*dataset.records("words-rows")]
    assert [row["words/text"].decode() for row in rows] == words["text"].tolist()
    assert [int(row["words/start_ms"]) for row in rows] == words["start_ms"].tolist()
    transcripts = [*dataset.records("transcripts-rows")]
    assert [row["transcripts/transcript_id"].decode() for row in transcripts] == [
        *corpus.table("transcripts")["transcript_id"]
    ]
    assert ("transcripts/language_code" in transcripts[0]) == (not options)  # else it is in the names of folders


def test_the_hash_of_a_file_is_checked(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """A file that was changed after the export is refused."""
    import mlcroissant

    corpus.export(tmp_path / "set", "csv")
    with (tmp_path / "set" / "words.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(mlcroissant.GenerationError, match=r"Download\(words\)"):
        [*mlcroissant.Dataset(jsonld=str(tmp_path / "set" / "croissant.json")).records("words-rows")]
