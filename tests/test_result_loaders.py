"""Language-model responses and word searches as DataFrames. Expected rows are worked out by hand from the payloads."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import voxframe
from voxframe.client.api import WordSearchMatches
from voxframe.client.llm import LlmReply, LlmResponse, Usage
from voxframe.errors import PayloadError


def _response(raw: bytes) -> LlmResponse:
    return LlmResponse(
        "r1",
        "question-answer",
        (LlmReply("Rain.", "Why?"),),
        Usage(9, 3),
        transcript_ids=("a", "b"),
        created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        raw=raw,
    )


def test_a_row_for_each_question_with_what_was_asked() -> None:
    """Question-answer gives a row per question; tokens are those of the whole request."""
    raw = json.dumps(
        {
            "request_id": "r1",
            "usage": {"input_tokens": 9, "output_tokens": 3},
            "response": [{"question": "Why?", "answer": "Rain."}, {"question": "Who?", "answer": "Ann."}],
        }
    ).encode()
    df = voxframe.load_responses(_response(raw))
    assert df["answer_idx"].to_list() == [0, 1]
    assert df["prompt"].to_list() == ["Why?", "Who?"]
    assert df["response"].to_list() == ["Rain.", "Ann."]
    assert df["input_tokens"].to_list() == [9, 9]
    assert df["task"].to_list() == ["question-answer"] * 2
    assert df["transcript_ids"].iloc[0] == '["a","b"]'
    assert df["created"].iloc[0].isoformat() == "2026-01-02T03:04:05+00:00"


def test_a_bare_answer_says_nothing_of_what_was_asked() -> None:
    """The JSON of an answer alone has null for task, prompt and time; dtypes are the same."""
    df = voxframe.load_responses([{"request_id": "r", "response": "Rain."}, b'{"request_id": "s", "response": "Sun."}'])
    assert df["response"].to_list() == ["Rain.", "Sun."]
    assert df[["task", "prompt", "created", "input_tokens"]].isna().all(axis=None)
    assert df.dtypes.to_dict() == voxframe.load_responses([]).dtypes.to_dict()


@pytest.mark.parametrize("wrong", [{"error": "no"}, b"<html>", b"[]", "x"])
def test_what_is_no_answer_is_refused(wrong: object) -> None:
    """Anything without a response is an error that says what to pass."""
    with pytest.raises(PayloadError, match="not a language model response"):
        voxframe.load_responses(wrong)  # type: ignore[arg-type]


def test_every_example_of_a_response_loads(payload_folder: Path) -> None:
    """Each answer among the examples of the interface gives its text, or the text of each question."""
    seen = 0
    for path in sorted(payload_folder.glob("[Ll]lm*.json")):
        payload = json.loads(path.read_text())
        if "response" not in payload:
            continue
        df = voxframe.load_responses(path.read_bytes())
        given = payload["response"]
        assert df["response"].to_list() == ([given] if isinstance(given, str) else [r["answer"] for r in given])
        seen += 1
    assert seen >= 6


def test_word_matches_of_several_searches(payload_folder: Path) -> None:
    """A row per occurrence, in the order of the answer, with the word's position and times."""
    raw = (payload_folder / "WordSearchResponse.json").read_bytes()
    payload = json.loads(raw)
    df = voxframe.load_word_matches([WordSearchMatches("mine", 10, (), raw), payload])
    assert len(df) == 2 * payload["total_count"]
    assert df["transcript_id"].unique().tolist() == ["mine", payload["id"]]
    half = df.iloc[: payload["total_count"]]
    assert half["word_idx"].to_list() == [i for match in payload["matches"] for i in match["indexes"]]
    assert half["start_ms"].to_list() == [t[0] for match in payload["matches"] for t in match["timestamps"]]


def test_the_client_s_own_results_are_taken() -> None:
    """The client's classes have what the loaders look for."""
    assert {"raw", "task", "prompt", "transcript_ids", "created"} <= {f.name for f in dataclasses.fields(LlmResponse)}
    assert {"raw", "transcript_id"} <= {f.name for f in dataclasses.fields(WordSearchMatches)}
