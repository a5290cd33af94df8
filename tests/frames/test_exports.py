import json
from typing import Any

import pytest

from voxframe.errors import PayloadError, PayloadWarning
from voxframe.frames import passage_table, transcript_tables, word_match_table
from voxframe.schema import TABLES

TEXTS = ["Good", "morning.", "So", "what", "is", "it?"]
WORDS = [
    {"text": text, "start": 400 * i, "end": 400 * i + 300, "confidence": 0.9, "speaker": "A"}
    for i, text in enumerate(TEXTS)
]
CUTS = [(0, 2), (2, 6)]


def words_table(words: list[dict[str, Any]] = WORDS) -> Any:
    """The `words` table of a transcript."""
    return transcript_tables(json.dumps({"id": "t", "words": words}).encode(), ("words",))["words"]


def export(kind: str, words: list[dict[str, Any]] = WORDS, **more: Any) -> bytes:
    """An export whose passages are the words from 0 to 1 and from 2 to 5."""
    items = [
        {"text": " ".join(TEXTS[a:b]), "start": 400 * a, "end": 400 * b - 100, "confidence": 0.9, "words": words[a:b]}
        for a, b in CUTS
    ]
    return json.dumps({"id": "t", "confidence": 0.9, "audio_duration": 3, kind: items, **more}).encode()


@pytest.mark.parametrize("kind", ["sentences", "paragraphs"])
def test_a_row_per_passage(kind: str) -> None:
    """Text, times and confidence are unchanged; the first word is known if the words are given."""
    table = passage_table(export(kind), kind, words_table())
    assert table.schema.equals(TABLES[kind].arrow, check_metadata=True)
    assert table.select(
        [f"{kind[:-1]}_idx", "text", "start_ms", "end_ms", "first_word_idx", "word_count"]
    ).to_pylist() == [
        {
            f"{kind[:-1]}_idx": 0,
            "text": "Good morning.",
            "start_ms": 0,
            "end_ms": 700,
            "first_word_idx": 0,
            "word_count": 2,
        },
        {
            f"{kind[:-1]}_idx": 1,
            "text": "So what is it?",
            "start_ms": 800,
            "end_ms": 2300,
            "first_word_idx": 2,
            "word_count": 4,
        },
    ]
    assert set(table["transcript_id"].to_pylist()) == {"t"}


@pytest.mark.parametrize("kind", ["sentences", "paragraphs"])
def test_without_the_words_nothing_is_invented(kind: str) -> None:
    """Without the words, the first word of each passage is null and the number of words is known."""
    table = passage_table(export(kind), kind)
    assert table["first_word_idx"].to_pylist() == [None, None]
    assert table["word_count"].to_pylist() == [2, 4]


def test_rounded_confidences_and_missing_speakers_are_the_same_words() -> None:
    """An export gives 1 for 0.99996 and no speaker; texts and times say which word it is."""
    rounded = [
        {"text": w["text"], "start": w["start"], "end": w["end"], "confidence": 1, "speaker": None} for w in WORDS
    ]
    assert passage_table(export("sentences", rounded), "sentences", words_table())["first_word_idx"].to_pylist() == [
        0,
        2,
    ]


@pytest.mark.parametrize("change", [{"text": "evening."}, {"start": 401}, {"end": 702}, {"text": None}])
def test_other_words_are_not_taken_for_the_same(change: dict[str, Any]) -> None:
    """A passage with a word of another text or time has no place among the words; the others keep theirs."""
    table = passage_table(
        export("sentences", [WORDS[0], {**WORDS[1], **change}, *WORDS[2:]]), "sentences", words_table()
    )
    assert table["first_word_idx"].to_pylist() == [None, 2]


def test_an_export_of_a_part_is_found_where_it_is() -> None:
    """Words before the first passage are skipped."""
    table = passage_table(
        export("sentences"), "sentences", words_table([{"text": "Well,", "start": -500, "end": -100}, *WORDS])
    )
    assert table["first_word_idx"].to_pylist() == [1, 3]


def test_speakers_and_channels_of_sentences() -> None:
    """A sentence may have them."""
    raw = json.dumps({"sentences": [{"text": "Hi.", "speaker": "A", "channel": "1"}, {"speaker": None}]}).encode()
    table = passage_table(raw, "sentences", transcript_id="t")
    assert table.select(["transcript_id", "speaker", "channel", "word_count"]).to_pylist() == [
        {"transcript_id": "t", "speaker": "A", "channel": "1", "word_count": None},
        {"transcript_id": "t", "speaker": None, "channel": None, "word_count": None},
    ]


@pytest.mark.parametrize("raw", [b"{}", b'{"sentences": null}', b'{"sentences": {}}', b'{"sentences": []}'])
def test_no_sentences(raw: bytes) -> None:
    """A table without rows."""
    assert passage_table(raw, "sentences", words_table()).num_rows == 0


def test_exports_are_read_tolerantly() -> None:
    """A bad value in a sentence or in one of its words is null, with a warning, and the rest is read."""
    raw = export("sentences").replace(b'"start": 400', b'"start": 400.5')
    with pytest.warns(PayloadWarning, match=r"sentences\[0\]\.words\[1\]\.start: 400\.5 is not an integer"):
        table = passage_table(raw, "sentences", words_table())
    assert table["first_word_idx"].to_pylist() == [None, 2]
    with pytest.raises(PayloadError, match="truncated"):
        passage_table(raw[:-30], "sentences")


def test_a_row_per_occurrence_of_a_searched_word() -> None:
    """Positions and times in the order of the answer; a word that does not occur has no rows."""
    matches = [
        {"text": "smoke", "count": 2, "timestamps": [[250, 650], [49168, 49398]], "indexes": [0, 136]},
        {"text": "fog", "count": 0, "timestamps": [], "indexes": []},
        {"text": "new york", "count": 1, "timestamps": [[10, 20]], "indexes": [7]},
    ]
    table = word_match_table(json.dumps({"id": "t", "total_count": 3, "matches": matches}).encode())
    assert table.schema.equals(TABLES["word_matches"].arrow, check_metadata=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("t", "smoke", 0, 0, 250, 650, 2, 3, None),
        ("t", "smoke", 1, 136, 49168, 49398, 2, 3, None),
        ("t", "new york", 0, 7, 10, 20, 1, 3, None),
    ]


def test_word_matches_with_holes() -> None:
    """Times without positions and positions without times each give a row."""
    raw = (
        b'{"matches": [{"text": "a", "timestamps": [[1, 2], [3], null], "indexes": [5]}, {"indexes": [9, "10"]}, null]}'
    )
    table = word_match_table(raw, transcript_id="t")
    assert [tuple(row.values())[1:6] for row in table.to_pylist()] == [
        ("a", 0, 5, 1, 2),
        ("a", 1, None, 3, None),
        ("a", 2, None, None, None),
        (None, 0, 9, None, None),
        (None, 1, 10, None, None),
    ]
