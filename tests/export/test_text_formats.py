"""Plain text, Markdown, Word documents and TSV."""

import io
import warnings
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt

import voxframe
from voxframe import export
from voxframe.errors import ExportWarning, OptionError

_TURNS = [
    ("Ada *L*", "2*3 <b> is _6_ & `x` [a](b) $5$ #1", 500, 1_400),
    (None, "Nobody: hm", 61_900, 62_000),
    ("Bob", "1. first", 3_600_000, 3_601_000),
]


@pytest.fixture
def turns() -> pd.DataFrame:
    """Three turns in one transcript, with markup and without a speaker."""
    df = pd.DataFrame(_TURNS, columns=["speaker", "text", "start_ms", "end_ms"])
    return df.assign(transcript_id="t")


@pytest.mark.parametrize("form", [name for name in export.FORMATS if hasattr(export, name)])
def test_nothing_lost_is_no_warning(form: str) -> None:
    """A row that every format can hold gives no warning about values that it cannot."""
    words = {"transcript_id": ["t"], "text": ["Hi!"], "start_ms": [0], "end_ms": [900], "speaker": ["A"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(export, form)(pd.DataFrame(words))


def test_plain_text_has_times_and_speakers(turns: pd.DataFrame, tmp_path: Path) -> None:
    """Each turn is a line that the importer of plain text reads back, with the start in whole seconds."""
    with pytest.warns(ExportWarning, match="1 texts that are read with another speaker"):
        text = export.txt(turns)
    assert text.splitlines()[1:] == ["[0:01:01] Nobody: hm", "[1:00:00] Bob: 1. first"]
    plain = turns.assign(speaker=["Ada L", "Cy", "Bob"])
    (tmp_path / "a.txt").write_text(export.txt(plain))
    read = voxframe.load_utterances(tmp_path / "a.txt")
    assert read["speaker"].to_list() == ["Ada L", "Cy", "Bob"]
    assert read["text"].to_list() == plain["text"].to_list()
    assert read["start_ms"].to_list() == [0, 61_000, 3_600_000]
    assert read["end_ms"].fillna(-1).to_list() == [61_000, 3_600_000, -1]  # each lasts until the next begins


def test_markdown_shows_the_text_as_it_is(turns: pd.DataFrame) -> None:
    """A Markdown parser finds one paragraph per turn, whose only markup is the bold speaker."""
    text = export.md(turns, losses=export.Losses())
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    lines = [token.children for token in tokens if token.type == "inline"]
    plain = ["".join(child.content for child in line) for line in lines]
    assert plain == [
        f"Ada *L* (0:00:00): {_TURNS[0][1]}",
        "(0:01:01): Nobody: hm",
        "Bob (1:00:00): 1. first",
    ]
    kinds = {child.type for line in lines for child in line}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close"}
    assert [token.tag for token in tokens if token.nesting == 1] == ["p"] * 3


def test_words_as_tsv(tmp_path: Path) -> None:
    """Pandas gets the rows back exactly, nulls and quotation marks too. A file can have many transcripts."""
    said = ['"Hi,"', "a\tb", "=1+1", "日本"]
    words = [{"text": t, "start": n, "confidence": 0.1 + n / 7, "speaker": "A"} for n, t in enumerate(said)]
    df = voxframe.load_words([{"id": name, "words": words} for name in "xy"])
    export.write(df, tmp_path / "words.tsv", "tsv")
    read = pd.read_csv(tmp_path / "words.tsv", sep="\t")
    assert read["text"].to_list() == said * 2
    assert read["confidence"].to_list() == df["confidence"].to_list()
    assert read["end_ms"].fillna(-1).to_list() == [1, 2, 3, -1] * 2  # until the next word
    assert (tmp_path / "words.tsv").read_text("utf-8").splitlines()[4] == f"x\t3\t\tA\t\t{0.1 + 3 / 7!r}\t日本"
    with pytest.raises(OptionError, match=r"tsv needs the columns .* lacks start_ms"):
        export.tsv(df.drop(columns="start_ms"))
    assert export.write(df, tmp_path / "each", "tsv").files == ["x.tsv", "y.tsv"]


def test_word_documents(turns: pd.DataFrame, tmp_path: Path) -> None:
    """python-docx reads one paragraph per turn, with the speaker in bold; what XML cannot hold is reported."""
    docx = pytest.importorskip("docx")
    odd = turns.assign(text=turns["text"].str.replace("first", "fir\ufffest"))
    with pytest.warns(ExportWarning, match="1 texts or names with characters that a Word document cannot hold"):
        export.write(odd, tmp_path / "a.docx", "docx")
    document = docx.Document(io.BytesIO((tmp_path / "a.docx").read_bytes()))
    assert [p.text for p in document.paragraphs] == [
        f"Ada *L* (0:00:00): {_TURNS[0][1]}",
        "(0:01:01): Nobody: hm",
        "Bob (1:00:00): 1. first",
    ]
    assert [run.text for p in document.paragraphs for run in p.runs if run.bold] == ["Ada *L* ", "Bob "]
