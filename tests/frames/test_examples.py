"""Payloads that others made, and the project's own: every value in them is found again in the tables."""

import json
import re
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.payloads import transcript
from tests.frames.two_ways import check

from voxframe.frames import passage_table, to_pandas, transcript_tables, word_match_table
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
    "TranscriptUtterance.json": ("utterances[]", {"utterances", "words"}),
}
EXPORTS = {
    "SentencesResponse.json": (partial(passage_table, name="sentences"), "sentences"),
    "ParagraphsResponse.json": (partial(passage_table, name="paragraphs"), "paragraphs"),
    "WordSearchResponse.json": (word_match_table, "word_matches"),
    "transcript_word-search.json": (word_match_table, "word_matches"),
}


#: Each table that has an object of the payload per row, and the place of that object.
ROOTS = {
    "words": r"words\[(\d+)\]",
    "utterances": r"utterances\[(\d+)\]",
    "entities": r"entities\[(\d+)\]",
    "chapters": r"chapters\[(\d+)\]",
    "sentiments": r"sentiment_analysis_results\[(\d+)\]",
    "highlight_times": r"auto_highlights_result\.results\[(\d+)\]\.timestamps\[(\d+)\]",
    "highlights": r"auto_highlights_result\.results\[(\d+)\]",
    "content_safety": r"content_safety_labels\.results\[(\d+)\]",
    "content_safety_summary": r"content_safety_labels\.severity_score_summary\.([^.]+)",
    "topics": r"iab_categories_result\.results\[(\d+)\]",
    "custom_topics": r"custom_topics_results\.results\[(\d+)\]",
    "transcripts": "",
}
SEGMENTS = {"content_safety", "topics", "custom_topics"}
JSON_COLUMNS = {"word_boost", "redact_pii_policies", "topics", "custom_spelling"}
ABSENT = object()


class Found:
    """Tables of a transcript, with a lookup of values by their wire path."""

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
            for key, row in self.rows[name].items():
                if list(key[: len(place)]) == place[:depth]:  # what a segment has is in the row of each of its labels
                    yield json.loads(row[column.name] or "null") if column.json else row[column.name]
        if match := re.fullmatch(r"utterances\[(\d+)\]\.words\[(\d+)\]\.(\w+)", path):
            yield self.word_of_turn(int(match[1]), int(match[2]), match[3])

    def unknown(self, path: str) -> list[Any]:
        """The values at a path in the column `extra` of the rows that its object has."""
        match = re.fullmatch(r"utterances\[(\d+)\]\.words\[(\d+)\](.*)", path)
        if match:
            rows, rest = [self.row_of_turn(int(match[1]), int(match[2]))], match[3]
        else:
            name, match = next((n, m) for n, root in ROOTS.items() if (m := re.match(root, path)))
            place = tuple(int(part) if part.isdigit() else part for part in match.groups())
            rest = path[match.end() :]
            if name in SEGMENTS and (label := re.match(r"\.labels\[(\d+)\]", rest)):
                place, rest = (*place, int(label[1])), f".labels{rest[label.end() :]}"
            rows = [row for key, row in self.rows[name].items() if key[: len(place)] == place]
        return [at(json.loads(row["extra"] or "{}"), rest) for row in rows]

    def word_of_turn(self, turn: int, word: int, field: str) -> Any:
        """A field of a word of a turn, from whichever table has it."""
        return self.row_of_turn(turn, word).get({"start": "start_ms", "end": "end_ms"}.get(field, field), ABSENT)

    def row_of_turn(self, turn: int, word: int) -> dict[str, Any]:
        """The row of a word of a turn."""
        start = self.rows["utterances"][turn,]["first_word_idx"]
        row: dict[str, Any] = (
            self.rows["utterance_words"][turn, word] if start is None else self.rows["words"][start + word,]
        )
        return row


def at(value: Any, path: str) -> Any:
    """Return the value at a path in the notation of `leaves`; ABSENT if there is none."""
    for step in re.findall(r"[^.\[\]]+", path):
        try:
            value = value[int(step) if isinstance(value, list) else step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a payload that is no container, with its path; settings that are lists as a whole."""
    if path in JSON_COLUMNS:
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            yield from leaves(child, f"{path}[{i}]")
    else:
        yield path, value


def is_there(found: Found, path: str, value: Any) -> bool:
    """Return True if a value is in the tables. A null may also have no row."""
    there = [v for v in found.values(path) if v is not ABSENT] or found.unknown(path)
    if value is None and all(v is ABSENT for v in there):  # a list or object of the dictionary that is null
        return path.rpartition(".")[2] not in {"new", "new_field", "text2"}
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
    """The same for the payloads that hold one analysis."""
    for path in sorted((payload_folder / "analyses").glob("*.json")):
        assert lost(path.read_bytes()) == [], path.name


@pytest.mark.parametrize("path", [path for path in OWN if path.name.count(".") == 1], ids=lambda path: path.stem)
def test_every_value_of_our_own_payloads_is_found_again(path: Path) -> None:
    """The same for what the embedded service answered about the project's recordings."""
    assert lost(path.read_bytes()) == []


def test_every_value_of_a_long_payload_is_found_again() -> None:
    """The same for a payload with every analysis, thousands of values."""
    payload = transcript(600, seed=11)
    assert len(list(leaves(payload))) > 6000
    assert lost(json.dumps(payload).encode()) == []


def with_unknown(value: Any, path: str = "") -> Any:
    """Return a payload with an unknown field, with its own value, in every object."""
    if path in JSON_COLUMNS:
        return value
    if isinstance(value, list):
        return [with_unknown(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    more = {k: with_unknown(v, f"{path}.{k}".removeprefix(".")) for k, v in value.items()}
    if path.endswith("summary"):  # labels, and the number of each
        return more
    deep = {"at": f"{path}: ½", "list": [1, None, {"deeper": 2**64}]} if len(path) % 7 == 0 else None
    return {"new_field": len(path), **more, "text2": f'"{path}": {{}}', "new": deep}


@pytest.mark.parametrize("way", ["fast", "tolerant"])
@pytest.mark.parametrize("name", ["completed", "generated"])
def test_unknown_fields_are_kept_at_every_level(payload_folder: Path, name: str, way: str) -> None:
    """Every leaf is in its column or in `extra`, also of fields that no dictionary knows, on both ways alike."""
    completed = payload_folder / "transcripts" / "completed.json"
    payload = transcript(150, seed=4) if name == "generated" else json.loads(completed.read_text())
    payload = with_unknown(payload)
    if way == "tolerant":
        payload["audio_start_from"] = "12"  # text where an integer belongs
    raw = json.dumps(payload, ensure_ascii=False).encode()
    assert [path for path in lost(raw) if path != "audio_start_from"] == []
    check(raw)


@pytest.mark.parametrize(("separators", "more"), [((",", ":"), {}), ((" , ", " : "), {"speaker": None})])
def test_an_unknown_field_in_one_of_many_words(separators: tuple[str, str], more: dict[str, Any]) -> None:
    """It is found however the JSON is written, beside colons in texts, nulls, and keys that end like known ones."""
    for key, value in {"x": 1, 'a"speaker': None, "Speaker": "A", 'x\\"text': "y"}.items():
        words: list[dict[str, Any]] = [{"text": f'"{i}": :', "start": i, **more} for i in range(30)]
        words[17][key] = value
        raw = json.dumps({"id": "a", "words": words}, separators=separators).encode()
        extra = transcript_tables(raw, {"words"})["words"]["extra"].to_pylist()
        assert [i for i, text in enumerate(extra) if text] == [17], key
        assert json.loads(extra[17]) == {key: value}


def test_a_lost_value_would_be_noticed() -> None:
    """The search itself fails for a value that no table has, and for one in another row."""
    raw = json.dumps({"id": "a", "unheard": 1, "words": [{"text": "a"}, {"text": "b"}]}).encode()
    found = Found(raw)
    assert is_there(found, "unheard", 1)
    assert not is_there(found, "unheard", 2)
    assert not is_there(found, "words[0].unheard", 1)
    assert is_there(found, "words[1].text", "b")
    assert not is_there(found, "words[1].text", "a")


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_transcript_load(payload_folder: Path, name: str) -> None:
    """An example of one part of a transcript gives rows only in its own tables, with all its values."""
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


#: Unknown fields of consecutive words, as JSON members.
UNKNOWN_MEMBERS = {
    "one name": ['"logprob":-0.5', '"logprob":-1e-7', '"logprob":1.50', '"logprob":3'],
    "absent and null": ['"x":1', "", '"x":null', '"x":"a,b"', '"x":""'],
    "several names in any order": ['"b":1,"a":2', '"a":true,"b":false', '"b":[1,{"c":2}]', ""],
    "objects with known names": ['"x":{"text":"a","start":null}', '"x":{}', '"x":{"x":{"x":1}}'],
    "texts like JSON": ['"x":"\\",\\"y\\": 1"', '"x":"a: b"', '"x":"\\u00e9\\n"'],
    "names like known ones": ['"Text":1', '"texts":2', '" text":3', '"one_long_confidence":4', '"a_long_confidence":5'],
    "names with escapes": ['"a\\"b":1', '"\\u0061":2', '"":3', '"é":4'],
    "more names than are looked for": [f'"n{n}":{n}' for n in range(20)],
    "large numbers": ['"x":18446744073709551616', '"x":9007199254740993', '"x":1e300', '"x":"5e5"'],
    "a name twice": ['"x":1,"x":2', '"x":3'],
}  # fmt: skip


@pytest.mark.parametrize("more", ['"speaker":"A"', '"speaker":null', '"text":"a","confidence":0.25'])
@pytest.mark.parametrize("kind", UNKNOWN_MEMBERS)
def test_unknown_fields_of_words(kind: str, more: str) -> None:
    """The column `extra` has exactly the unknown fields of each word, whatever their names and values."""
    words = [
        f'{{"start":{n},{members}{"," if members else ""}{more}}}' for n, members in enumerate(UNKNOWN_MEMBERS[kind])
    ]
    raw = f'{{"id":"a","words":[{",".join(words)}]}}'.encode()
    found = [json.loads(text or "{}") for text in transcript_tables(raw, {"words"})["words"]["extra"].to_pylist()]
    known = {"text", "start", "end", "confidence", "speaker", "channel"}
    assert found == [{k: v for k, v in json.loads(word).items() if k not in known} for word in words]
    check(raw)
