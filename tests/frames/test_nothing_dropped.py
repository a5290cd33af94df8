"""Rows that a payload without labels, without words or with odd items still gives."""

import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import voxframe
from voxframe.errors import PayloadWarning
from voxframe.frames import transcript_tables


def rows(payload: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Rows of one table."""
    found: list[dict[str, Any]] = transcript_tables(json.dumps(payload).encode(), {name})[name].to_pylist()
    return found


@pytest.mark.parametrize("labels", [[], None])
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("content_safety", "content_safety_labels"),
        ("topics", "iab_categories_result"),
        ("custom_topics", "custom_topics_results"),
    ],
)
def test_a_segment_without_labels_keeps_its_row(name: str, key: str, labels: Any) -> None:
    """Its text and times are in one row with label_idx 0 and a null label, between those of other segments."""
    one = {"text": "Rain.", "labels": [{"label": "a"}, {"label": "b"}], "timestamp": {"start": 0, "end": 9}}
    none = {"text": "Well.", "labels": labels, "timestamp": {"start": 10, "end": 20}}
    found = rows({"id": "a", key: {"results": [none, one, none]}}, name)
    assert [(row["segment_idx"], row["label_idx"], row["label"]) for row in found] == [
        *((0, 0, None), (1, 0, "a"), (1, 1, "b"), (2, 0, None))
    ]
    assert [(row["text"], row["start_ms"], row["end_ms"]) for row in found][::3] == [("Well.", 10, 20)] * 2


def test_custom_topics_have_tables() -> None:
    """Segments, the summary and the status of custom topics are in tables like those of topics."""
    results = [{"text": "T", "labels": [{"label": "mine", "relevance": 0.5}], "timestamp": {"start": 1, "end": 2}}]
    payload = {"id": "a", "custom_topics_results": {"status": "success", "results": results, "summary": {"mine": 0.25}}}
    (row,) = rows(payload, "custom_topics")
    assert (row["text"], row["label"], row["relevance"], row["start_ms"]) == ("T", "mine", 0.5, 1)
    assert [(r["label"], r["relevance"]) for r in rows(payload, "custom_topics_summary")] == [("mine", 0.25)]
    assert rows(payload, "transcripts")[0]["custom_topics_status"] == "success"


@pytest.mark.parametrize("words", [{}, {"words": None}])
def test_words_that_only_turns_have_are_in_words(words: dict[str, Any]) -> None:
    """If `words` is null or absent, the words of the turns are returned, and each turn says which are its own."""
    turns = [{"words": [{"text": "Hi", "start": 1}, {"text": "you"}]}, {"words": None}, {"words": [{"text": "So"}]}]
    payload = {"id": "a", **words, "utterances": turns}
    frame = voxframe.load_words(payload)
    assert frame["text"].to_list() == ["Hi", "you", "So"]
    assert frame["utterance_idx"].to_list() == [0, 0, 2]
    assert [row["first_word_idx"] for row in rows(payload, "utterances")] == [0, None, 2]
    assert rows(payload, "utterance_words") == []


@pytest.mark.parametrize("item", [7, "text", "", [], [1]])
def test_a_list_item_of_the_wrong_shape_gives_a_warning(item: Any) -> None:
    """The warning names its place, also for an empty text or list, and the item keeps its row."""
    with pytest.warns(PayloadWarning, match=r"words\[1\]: .* is not an object"):
        assert len(rows({"id": "a", "words": [{"text": "Hi"}, item]}, "words")) == 2


def test_an_answer_of_a_language_model_of_the_wrong_shape_is_kept() -> None:
    """An answer that is no object is kept as text, with a warning; unknown fields are in `extra`."""
    answer = {"request_id": "r", "model": "m", "response": ["Rain.", {"question": "Why?", "answer": "Sun.", "sure": 1}]}
    with pytest.warns(PayloadWarning, match=r"response\[0\]"):
        found = voxframe.load_responses(answer)
    assert found["response"].to_list() == ["Rain.", "Sun."]
    assert found["extra"].to_list() == ['{"model":"m"}', '{"sure":1}']


def test_words_of_sentences_that_no_table_has_are_in_extra() -> None:
    """They stay with their sentence; what is said of the whole answer is in the first one."""
    words = [{"text": "Hi", "start": 1, "end": 2, "x": 1}]
    export = {"id": "a", "confidence": 0.5, "sentences": [{"text": "Hi", "words": words}, {"text": "So", "words": []}]}
    extra = voxframe.load_sentences(export)["extra"].to_list()
    assert json.loads(extra[0]) == {"confidence": 0.5, "words": words}
    assert pd.isna(extra[1])


def extras(tables: dict[str, pa.Table]) -> dict[str, list[Any]]:
    """Values of the column `extra` by table, without tables that have none."""
    found = {
        name: [json.loads(text or "null") for text in table["extra"].to_pylist()] for name, table in tables.items()
    }
    return {name: values for name, values in found.items() if any(values)}


#: Payloads with values of the wrong type, and the values of `extra` in the rows of each table, as JSON.
MISFITS = [
    (
        '{"confidence": "abc", "text": {"a": [1]}, "zz": 1}',
        {"transcripts": '[{"confidence": "abc", "text": {"a": [1]}, "zz": 1}]'},
    ),
    ('{"words": 5, "entities": "none"}', {"transcripts": '[{"words": 5, "entities": "none"}]'}),
    (
        '{"words": [{"text": [1], "start": 42.5}, 7, "", {"end": 9223372036854775808}]}',
        {"words": '[{"text": [1], "start": 42.5}, {"words": 7}, {"words": ""}, {"end": 9223372036854775808}]'},
    ),
    (
        '{"utterances": [{"start": "x", "words": "y"}, 8]}',
        {"utterances": '[{"start": "x", "words": "y"}, {"utterances": 8}]'},
    ),
    ('{"utterances": [{"words": [{"start": "x"}, 9]}]}', {"words": '[{"start": "x"}, {"words": 9}]'}),
    (
        '{"words": [{"text": "Hi"}], "utterances": [{"words": [{"text": "So", "start": "x"}]}]}',
        {"utterance_words": '[{"start": "x"}]'},
    ),
    (
        (
            '{"auto_highlights_result": {"status": [1], "results": ['
            '{"count": "x", "timestamps": [3, {"end": "y"}]}, {"timestamps": 4}]}}'
        ),
        {
            "transcripts": '[{"auto_highlights_result": {"status": [1]}}]',
            "highlights": '[{"count": "x"}, {"timestamps": 4}]',
            "highlight_times": '[{"timestamps": 3}, {"end": "y"}]',
        },
    ),
    (
        (
            '{"iab_categories_result": {"summary": {"a": "z", "b": 1}, "results": [9, {"labels": 3}, '
            '{"labels": [5, {"relevance": "x", "new": 1}], "timestamp": {"start": "y"}}]}}'
        ),
        {
            "topics": '[{"results": 9}, {"labels": 3}, {"labels": 5, "timestamp": {"start": "y"}}, '
            '{"labels": {"relevance": "x", "new": 1}, "timestamp": {"start": "y"}}]',
            "topics_summary": '[{"summary": "z"}, null]',
        },
    ),
    (
        (
            '{"content_safety_labels": {"summary": {"a": "x", "b": 1}, '
            '"severity_score_summary": {"a": {"low": "y", "new": 1}, "b": 6}}}'
        ),
        {"content_safety_summary": '[{"summary": "x", "low": "y", "new": 1}, {"severity_score_summary": 6}]'},
    ),
    (
        '{"custom_topics_results": {"results": 1, "summary": {"a": "x"}}, "content_safety_labels": 4}',
        {
            "transcripts": '[{"custom_topics_results": {"results": 1}, "content_safety_labels": 4}]',
            "custom_topics_summary": '[{"summary": "x"}]',
        },
    ),
]


@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")
@pytest.mark.parametrize(("payload", "expected"), MISFITS)
def test_a_value_of_the_wrong_type_is_in_extra(payload: str, expected: dict[str, str]) -> None:
    """It stays as it came in the row of its object, under its name, also if only that table is built."""
    raw = payload.encode()
    tables = transcript_tables(raw)
    assert extras(tables) == {name: json.loads(values) for name, values in expected.items()}
    for name, table in tables.items():
        assert transcript_tables(raw, {name})[name].equals(table)


@pytest.mark.parametrize("nothing", [{}, [], "", None])
def test_nothing_in_place_of_a_value_is_not_in_extra(nothing: Any) -> None:
    """Empty lists, objects and texts in place of another value say that there is none."""
    fields = ("words", "utterances", "entities", "auto_highlights_result", "confidence", "audio_duration")
    assert extras(transcript_tables(json.dumps({"id": "a", **dict.fromkeys(fields, nothing)}).encode())) == {}


@pytest.mark.filterwarnings("ignore::voxframe.errors.PayloadWarning")
def test_odd_values_of_other_responses_are_in_extra() -> None:
    """Values of the wrong type in sentences, word matches, answers and stream messages stay in `extra`."""

    def extra(frame: pd.DataFrame) -> list[Any]:
        return [json.loads(text) if isinstance(text, str) else None for text in frame["extra"]]

    words = [{"text": "Hi", "start": "x"}, 7]
    sentences = {"id": "a", "confidence": 1, "sentences": [{"start": "x", "words": words}, 5, {"words": 4}]}
    assert extra(voxframe.load_sentences(sentences)) == [
        {"confidence": 1, "start": "x", "words": words},
        {"sentences": 5},
        {"words": 4},
    ]
    match = {"text": "x", "count": "y", "indexes": ["z", 3], "timestamps": [[1, 2, 3], ["w", 4], 5]}
    answer = {"id": "a", "total_count": "many", "matches": [match, {"text": "none", "count": 0}, 6]}
    found = voxframe.load_word_matches(answer)
    assert extra(found) == [
        {"total_count": "many", "count": "y", "indexes": "z", "timestamps": [1, 2, 3]},
        {"count": "y", "timestamps": ["w", 4]},
        {"count": "y", "timestamps": 5},
        {"matches": 6},
    ]
    assert found["start_ms"].to_list()[:2] == [1, pd.NA]
    asked = {"request_id": "r", "response": [], "usage": {"input_tokens": "few", "output_tokens": 3}}
    assert extra(voxframe.load_responses(asked)) == [{"usage": {"input_tokens": "few"}}]
    message = {"message_type": "FinalTranscript", "text": [1], "audio_start": "x", "words": [{"end": "y"}, 2]}
    assert extra(voxframe.load_stream([message])) == [{"text": [1], "audio_start": "x"}]
    assert extra(voxframe.load_stream_words([message])) == [{"end": "y"}, {"words": 2}]
