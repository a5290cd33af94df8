"""Payloads that others made, and the project's own: every value in them is found again in the tables."""

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.benchmarks.payloads import transcript

from voxframe.frames import paragraph_table, sentence_table, to_pandas, transcript_tables, word_match_table
from voxframe.schema import TABLES, TRANSCRIPT_TABLES

OWN = sorted((Path(__file__).parents[2] / "data" / "payloads").glob("*.json"))

#: Examples that are part of a payload: where they belong, and the tables they give rows.
PARTS = {
    "AutoHighlightsResult.json": ("auto_highlights_result", {"highlights", "highlight_times"}),
    "Chapter.json": ("chapters[]", {"chapters"}),
    "ContentSafetyLabelsResult.json": ("content_safety_labels", {"content_safety", "content_safety_summary"}),
    "Entity.json": ("entities[]", {"entities"}),
    "SentimentAnalysisResult.json": ("sentiment_analysis_results[]", {"sentiments"}),
    "TopicDetectionModelResult.json": ("iab_categories_result", {"topics", "topics_summary"}),
    "TranscriptUtterance.json": ("utterances[]", {"utterances", "utterance_words"}),
}
EXPORTS = {
    "SentencesResponse.json": (sentence_table, "sentences"),
    "ParagraphsResponse.json": (paragraph_table, "paragraphs"),
    "WordSearchResponse.json": (word_match_table, "word_matches"),
    "transcript_word-search.json": (word_match_table, "word_matches"),
}


class Found:
    """Tables of a transcript, as a place where values are looked up by their path on the wire."""

    def __init__(self, raw: bytes) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.tables = transcript_tables(raw)
        self.rows = {
            name: {tuple(row[key] for key in TABLES[name].key[1:]): row for row in table.to_pylist()}
            for name, table in self.tables.items()
        }
        self.patterns = [
            (name, column, re.compile(self.pattern(column.path)))
            for name in TRANSCRIPT_TABLES
            for column in TABLES[name].columns
            if column.path
        ]

    @staticmethod
    def pattern(path: str) -> str:
        """`a[].b.*` as a pattern whose groups are positions and names."""
        return re.escape(path).replace(r"\[\]", r"\[(\d+)\]").replace(r"\*", "(.+)") + r"(?:\[(\d+)\])?"

    def values(self, path: str) -> Iterator[Any]:
        """The values at a path, one for each column that says it comes from there."""
        for name, column, pattern in self.patterns:
            match = pattern.fullmatch(path)
            if match is None or name == "utterance_words":
                continue
            place = [int(part) if part.isdigit() else part for part in match.groups() if part is not None]
            depth = len(TABLES[name].key) - 1
            is_list = column.type == pa.list_(pa.string())
            for key, row in self.rows[name].items():
                if list(key[: len(place)]) == place[:depth]:  # what a segment has is in the row of each of its labels
                    yield row[column.name][place[-1]] if is_list and place else row[column.name]
        if match := re.fullmatch(r"utterances\[(\d+)\]\.words\[(\d+)\]\.(\w+)", path):
            yield self.word_of_turn(int(match[1]), int(match[2]), match[3])

    def word_of_turn(self, turn: int, word: int, field: str) -> Any:
        """A field of a word of a turn, from whichever table has it."""
        start = self.rows["utterances"][turn,]["word_start"]
        row = self.rows["utterance_words"][turn, word] if start is None else self.rows["words"][start + word,]
        return row[{"start": "start_ms", "end": "end_ms"}.get(field, field)]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a payload that is no container, with its path; custom spelling as a whole."""
    if path == "custom_spelling":
        yield path, None if value is None else json.dumps(value, ensure_ascii=False)
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            yield from leaves(child, f"{path}[{i}]")
    else:
        yield path, value


def is_there(found: Found, path: str, value: Any) -> bool:
    """Whether a value is in the tables. What is null may also have no row."""
    there = list(found.values(path))
    if value is None and not there:
        return True
    return bool(there) and all(v == value and isinstance(v, bool) == isinstance(value, bool) for v in there)


def lost(raw: bytes) -> list[str]:
    """Paths of values that are not found again."""
    found = Found(raw)
    return [path for path, value in leaves(json.loads(raw)) if not is_there(found, path, value)]


@pytest.mark.parametrize("name", ["transcripts/completed.json", "Transcript.json"])
def test_every_value_of_the_examples_is_found_again(payload_folder: Path, name: str) -> None:
    """Each leaf of the two whole transcripts is in the column whose wire path it has, in its own row."""
    assert lost((payload_folder / name).read_bytes()) == []


def test_every_value_of_the_single_analyses_is_found_again(payload_folder: Path) -> None:
    """The same for the payloads that hold one analysis; the address of redacted audio is no part of a transcript."""
    for path in sorted((payload_folder / "analyses").glob("*.json")):
        expected = ["redacted_audio_url"] if "redacted-audio" in path.name else []
        assert lost(path.read_bytes()) == expected, path.name


@pytest.mark.parametrize("path", [path for path in OWN if path.name.count(".") == 1], ids=lambda path: path.stem)
def test_every_value_of_our_own_payloads_is_found_again(path: Path) -> None:
    """The same for what the embedded service answered about the project's recordings."""
    assert lost(path.read_bytes()) == []


def test_every_value_of_a_long_payload_is_found_again() -> None:
    """The same for a payload with every analysis, thousands of values."""
    payload = transcript(600, seed=11)
    assert len(list(leaves(payload))) > 6000
    assert lost(json.dumps(payload).encode()) == []


def test_a_lost_value_would_be_noticed() -> None:
    """The search itself fails for a value that no table has, and for one in another row."""
    raw = json.dumps({"id": "a", "unheard": 1, "words": [{"text": "a"}, {"text": "b"}]}).encode()
    assert lost(raw) == ["unheard"]
    found = Found(raw)
    assert is_there(found, "words[1].text", "b")
    assert not is_there(found, "words[1].text", "a")


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_transcript_load(payload_folder: Path, name: str) -> None:
    """An example of one part, put where it belongs, gives rows in its tables and nowhere else, with all its values."""
    where, expected = PARTS[name]
    part = json.loads((payload_folder / name).read_text())
    payload = {where.removesuffix("[]"): [part] if where.endswith("[]") else part}
    raw = json.dumps(payload).encode()
    filled = {table for table, rows in transcript_tables(raw).items() if rows.num_rows}
    assert filled == expected | {"transcripts"}
    assert lost(raw) == []


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_load(payload_folder: Path, name: str) -> None:
    """As many rows as the export has items or occurrences."""
    make, table = EXPORTS[name]
    raw = (payload_folder / name).read_bytes()
    payload = json.loads(raw)
    rows = sum(m["count"] for m in payload["matches"]) if table == "word_matches" else len(payload[table])
    made = make(raw)
    assert made.num_rows == rows
    assert set(made["transcript_id"].to_pylist()) == {payload.get("id")}
    assert made.schema.equals(TABLES[table].arrow, check_metadata=True)


def test_every_example_loads(payload_folder: Path) -> None:
    """Whatever the service answers loads as a transcript of one row: errors, failures, lists, other answers."""
    paths = sorted(payload_folder.rglob("*.json"))
    assert len(paths) > 60
    for path in paths:
        payload = json.loads(path.read_text())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a part of a transcript is no transcript: `summary` is no text there
            tables = transcript_tables(path.read_bytes())
        row = tables["transcripts"].to_pylist()
        assert len(row) == 1, path.name
        assert (row[0]["transcript_id"], row[0]["error"]) == (payload.get("id"), payload.get("error")), path.name
        for name, table in tables.items():
            table.validate(full=True)
            assert list(to_pandas(table, name).columns) == list(TABLES[name].names)
