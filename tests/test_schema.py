import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import voxframe
from voxframe import dictionary
from voxframe.errors import OptionError
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TABLES, TRANSCRIPT_TABLES, Column, Table

PAGE = Path(__file__).parents[1] / "data" / "dictionary.md"
TRANSCRIPT = "GET /v2/transcript/{id}"


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_a_table_is_whole(table: Table) -> None:
    """Names are unique and plain, the key consists of columns, and every column has a description."""
    assert len(set(table.names)) == len(table.names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in (table.name, *table.names))
    assert set(table.key) <= set(table.names)
    assert table.grain
    assert table.source
    for column in table.columns:
        assert re.fullmatch(r"[A-Za-z].*\.", column.description), column.name
        assert column.dtype


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_conventions_of_the_tables(table: Table) -> None:
    """Times are integer milliseconds, positions in a key are never null, and shares are floats."""
    for column in table.columns:
        if column.name.endswith("_ms"):
            assert (column.type, column.unit) == (pa.int64(), "ms"), column.name
        if column.name.endswith("_idx"):
            assert column.type == pa.int64()
            assert column.nullable is (column.name not in table.key), column.name
        if column.unit == "0-1":
            assert column.type == pa.float64(), column.name
        if column.unit == "s":
            assert column.name.endswith("_s"), column.name
        if pa.types.is_timestamp(column.type):
            assert column.type == pa.timestamp("us", tz="UTC"), column.name


#: Endings of column names that read as a time.
TIME_WORDS = {"start", "end", "begin", "time", "at", "from", "until", "duration"}


@pytest.mark.parametrize("name", sorted({name for table in CORPUS_TABLES.values() for name in table.names}))
def test_no_column_name_misleads(name: str) -> None:
    """Every column is reachable as `df.name`, and no position has a name that reads as a time."""
    assert not hasattr(pd.DataFrame(), name)
    assert name.rpartition("_")[2] not in TIME_WORDS


def test_every_table_about_a_transcript_names_it_first() -> None:
    """The first column is `transcript_id`, except in tables of answers, streams and jobs."""
    others = {name for name, table in TABLES.items() if table.names[0] != "transcript_id"}
    assert others == {"responses", "stream", "stream_words", "jobs"}


def test_tables_of_a_transcript() -> None:
    """`TRANSCRIPT_TABLES` are the tables of the transcript response, in the order of the dictionary."""
    assert list(TRANSCRIPT_TABLES) == [name for name, table in TABLES.items() if table.source == TRANSCRIPT]


def test_metadata_travels_with_the_schema() -> None:
    """Arrow fields carry description, unit and wire path; the schema carries name and version."""
    schema = TABLES["words"].arrow
    assert {k: v for k, v in schema.metadata.items() if k != b"pandas"} == {
        b"voxframe.table": b"words",
        b"voxframe.schema_version": SCHEMA_VERSION.encode(),
    }
    assert schema.field("start_ms").metadata == {
        b"description": b"Start of the word.",
        b"unit": b"ms",
        b"path": b"words[].start",
    }
    assert schema.field("utterance_idx").metadata.keys() == {b"description"}
    assert not schema.field("word_idx").nullable


def test_fields_of_the_interface_have_columns(payload_folder: Path) -> None:
    """Every field of the example transcripts is the wire path of a column."""
    paths = {column.path for column in TABLES["transcripts"].columns}
    for name in (
        "transcripts/completed.json",
        "transcripts/queued.json",
        "transcripts/deleted.json",
        "Transcript.json",
    ):
        payload = json.loads((payload_folder / name).read_text())
        tables = {path.partition("[")[0].partition(".")[0] for t in TRANSCRIPT_TABLES for path in paths_of(TABLES[t])}
        assert set(payload) <= paths | tables, name


def paths_of(table: Table) -> list[str]:
    """Return the wire paths of a table."""
    return [column.path for column in table.columns if column.path]


def test_describe_shows_grain_key_and_columns() -> None:
    """`describe` shows the grain, the key, and one line per column with dtype, unit, wire path and description."""
    text = repr(voxframe.describe("words"))
    assert "one row per: word" in text
    assert "key: transcript_id, word_idx" in text
    line = next(line for line in text.splitlines() if line.startswith("start_ms"))
    assert line.split(maxsplit=4) == ["start_ms", "Int64", "ms", "words[].start", "Start of the word."]
    for table in TABLES.values():
        lines = repr(voxframe.describe(table.name)).splitlines()
        assert [line.split()[0] for line in lines[-len(table.names) :]] == list(table.names)
        assert all(line == line.rstrip() for line in lines)


def test_describe_lists_all_tables() -> None:
    """`describe` without a name lists every table with its grain."""
    found = voxframe.describe()
    assert [row[0] for row in found.rows] == list(TABLES)
    assert [row[1] for row in found.rows] == [table.grain for table in TABLES.values()]
    assert 'describe("words")' in repr(found)


def test_describe_suggests_the_right_name() -> None:
    """The error for an unknown table names the most similar table and all tables."""
    with pytest.raises(
        OptionError, match=r"no table 'utterance' \(did you mean 'utterances'\?\); the tables are transcripts, words"
    ):
        voxframe.describe("utterance")
    for wrong in (7, ["words"]):
        with pytest.raises(
            OptionError, match=r"describe takes the name of a table or of an option, got (7|\['words'\])"
        ):
            voxframe.describe(wrong)  # type: ignore[arg-type]


class Cells(HTMLParser):
    """The texts of the cells of a table, and every tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_describe_in_a_notebook() -> None:
    """The HTML of a description has the same cells as its rows."""
    found = voxframe.describe("topics")
    assert Cells(found._repr_html_()).cells == [text for row in found.rows for text in row]


def test_the_html_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markup in a description is escaped."""
    nasty = "<script>alert('&')</script>"
    column = Column("evil", pa.string(), nasty, nasty, nasty)
    monkeypatch.setitem(TABLES, "evil", Table(nasty, nasty, ("evil",), nasty, (column,)))
    found = Cells(voxframe.describe("evil")._repr_html_())
    assert found.tags == {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.cells == ["evil", "str", nasty, nasty, nasty]


def test_the_page_is_up_to_date() -> None:
    """`data/dictionary.md` is what `python -m voxframe.dictionary` writes."""
    assert PAGE.read_text(encoding="utf-8") == dictionary.page(), "run python -m voxframe.dictionary"


def test_every_column_is_on_the_page() -> None:
    """The page has a section for each table and a row of five cells for each column."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == [*TABLES, "measures"]
    for section, table in zip(sections[:-1], TABLES.values(), strict=True):
        rows = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in section.splitlines() if line.startswith("| `")]
        assert [row[0].strip("`") for row in rows] == list(table.names)
        assert {len(row) for row in rows} == {5}


def test_checking_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` fails for a missing or outdated page, names the command to run, and writes nothing."""
    page = tmp_path / "dictionary.md"
    assert dictionary.main(["--check", str(page)]) == 1
    assert not page.exists()
    page.write_text("old")
    assert dictionary.main(["--check", str(page)]) == 1
    assert "python -m voxframe.dictionary" in capsys.readouterr().err
    assert dictionary.main([str(page)]) == 0
    assert dictionary.main(["--check", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == dictionary.page()
