import json
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from voxframe.client import Transcript
from voxframe.client.llm import RateLimiter
from voxframe.client.response import HTTPResponse
from voxframe.errors import OptionError, RateLimitError, ServerError, UnreadableAnswerError

TASKS = {
    "summary": ("LlmSummaryResponse", lambda c: c.summarize(["t1", "t2"], answer_format="bullet points")),
    "question-answer": ("LlmQuestionAnswerResponse", lambda c: c.ask("Where are there wildfires?", ["t1", "t2"])),
    "task": ("LlmTaskResponse", lambda c: c.task("List all data_dir.", ["t1", "t2"])),
    "action-items": ("LlmActionItemsResponse", lambda c: c.action_items(["t1", "t2"], answer_format="one line")),
}
OWN = {
    "summary": {"answer_format": "bullet points"},
    "question-answer": {"questions": [{"question": "Where are there wildfires?"}]},
    "task": {"prompt": "List all data_dir."},
    "action-items": {"answer_format": "one line"},
}


def answer(peer, task="summary", *replies):
    peer.on("POST", f"/llm/v3/generate/{task}", *(replies or [{"request_id": "r1", "response": "It burns."}]))


@pytest.mark.parametrize("task", TASKS)
def test_every_task(client, peer, reply, payload_folder, task):
    """Each task sends the documented body and returns the typed result of the documented response."""
    example, call = TASKS[task]
    raw = (payload_folder / f"{example}.json").read_bytes()
    answer(peer, task, reply(raw))
    result = call(client)
    expected = json.loads(raw)
    assert peer.requests[0].json == {"transcript_ids": ["t1", "t2"], **OWN[task]}
    assert (result.request_id, result.task, result.raw) == (expected["request_id"], task, raw)
    assert result.transcript_ids == ("t1", "t2")
    assert result.prompt == OWN[task].get("prompt")
    usage = expected["usage"]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (usage["input_tokens"], usage["output_tokens"])
    if task == "question-answer":
        assert [(r.question, r.answer) for r in result.replies] == [
            (e["question"], e["answer"]) for e in expected["response"]
        ]
        assert result.text == "Where are there wildfires?\nCA, US\n\nIs global warming affecting wildfires?\nyes"
    else:
        assert result.text == expected["response"]
    assert datetime.now(UTC) - result.created < timedelta(seconds=10)


def test_every_option_is_sent(client, peer):
    """Context, model, size and temperature are sent; None is left out."""
    answer(peer)
    client.summarize(
        input_text="A: Hi.",
        context={"about": ["fire", 1]},
        final_model="vendor/model",
        max_output_size=4000,
        temperature=1.0,
        answer_format=None,
    )
    assert peer.requests[0].json == {
        "input_text": "A: Hi.",
        "context": {"about": ["fire", 1]},
        "final_model": "vendor/model",
        "max_output_size": 4000,
        "temperature": 1.0,
    }


def test_questions_are_sent_as_documented(client, peer, payload_folder):
    """Questions with format and options are sent as in the documentation of the API."""
    example = json.loads((payload_folder / "LlmQuestionAnswerParams.json").read_text())
    answer(peer, "question-answer", {"request_id": "r", "response": []})
    given = {k: v for k, v in example.items() if k not in ("transcript_ids", "questions")}
    client.ask(example["questions"], example["transcript_ids"], **given)
    assert peer.requests[0].json == example


def test_none_is_left_out_of_a_question(client, peer):
    """A field of a question that is None, such as in rows of a table, is not sent."""
    answer(peer, "question-answer", {"request_id": "r", "response": []})
    client.ask([{"question": "Why?", "answer_format": None, "context": None}], "t1")
    assert peer.requests[0].json["questions"] == [{"question": "Why?"}]


def test_transcripts_are_accepted_in_every_form(client, peer):
    """Ids, handles, mixtures, columns and tables become a list of ids without duplicates, in order."""
    answer(peer)
    table = pd.DataFrame({"transcript_id": ["t1", "t1", "t2"], "text": ["a", "b", "c"]})
    handle = Transcript(client.transport, "t1")
    for form in ("t1", handle, [handle, "t2", "t1"], table["transcript_id"], table, iter(["t1"])):
        client.summarize(form)
    assert [r.json["transcript_ids"] for r in peer.requests] == [
        ["t1"], ["t1"], ["t1", "t2"], ["t1", "t2"], ["t1", "t2"], ["t1"],
    ]  # fmt: skip


def test_rows_of_a_table_select_transcripts(client, peer):
    """Rows of a pandas, Arrow or Polars table select their transcripts, each once and in order."""
    answer(peer)
    words = pd.DataFrame(
        {
            "transcript_id": ["b", "a", "b", "c"],
            "text": ["smoke", "smoke", "smoke", "rain"],
            "audio_duration_s": [200_000.0, 100_000.0, 200_000.0, float("nan")],  # twice b would be too long
        }
    )
    chosen = words[words["text"] == "smoke"]
    for table in (chosen, chosen.convert_dtypes(), pa.Table.from_pandas(chosen), pl.from_pandas(chosen)):
        assert client.summarize(table).transcript_ids == ("b", "a")
    assert [r.json["transcript_ids"] for r in peer.requests] == [["b", "a"]] * 4
    assert client.summarize(words).transcript_ids == ("b", "a", "c")


def test_a_hundred_transcripts_are_accepted(client, peer):
    """The largest number of transcripts is sent."""
    answer(peer)
    ids = [f"t{n}" for n in range(100)]
    assert client.summarize(ids).transcript_ids == tuple(ids)


def finished(client, peer, identifier, status="completed", **more):
    peer.on("GET", f"/v2/transcript/{identifier}", {"id": identifier, "status": status, **more})
    return client.transcript(identifier)


def test_invalid_requests_are_not_sent(client, peer):
    """A request beyond a limit, or without sense, raises an OptionError before it is sent."""
    long = [finished(client, peer, f"t{n}", audio_duration=180_001) for n in range(2)]
    queued, failed = finished(client, peer, "q", "queued"), finished(client, peer, "f", "error")
    peer.requests.clear()
    cases = [
        (
            {"transcripts": [f"t{n}" for n in range(101)]},
            "more than 100 transcripts were given; a request takes 1 to 100",
        ),
        ({"transcripts": []}, "no transcripts were given; a request takes 1 to 100. Check the selection"),
        (
            {"transcripts": pd.DataFrame({"transcript_id": ["a", "b"], "audio_duration_s": [1.0, 360_000.0]})},
            "the transcripts are 100.0 hours long; a request takes up to 100 hours. Split them into several requests",
        ),
        (
            {"transcripts": pd.DataFrame({"transcript_id": [f"t{n}" for n in range(101)]})},
            "more than 100 transcripts were given",
        ),
        ({"transcripts": pd.DataFrame({"transcript_id": []})}, "no transcripts were given"),
        ({"transcripts": pd.DataFrame({"id": ["t1"]})}, "or a table with a column transcript_id"),
        ({"transcripts": pd.DataFrame({"transcript_id": [None]})}, "None is not a transcript"),
        ({"transcripts": long}, "the transcripts are 100.0 hours long; a request takes up to 100 hours"),
        ({"transcripts": queued}, "transcript q is 'queued'; only completed ones have text. Wait for it"),
        ({"transcripts": failed}, "transcript f is 'error'; only completed ones have text"),
        ({"transcripts": [None]}, "None is not a transcript; give its id or a handle"),
        ({"transcripts": {"id": "t1"}}, "transcripts must be an id, a handle, a list of these, or a table"),
        ({}, "needs either transcripts or input_text, got neither"),
        ({"transcripts": "t1", "input_text": "x"}, "got both"),
        ({"input_text": "  "}, "input_text is '  '; give a string that is not empty"),
        (
            {"input_text": "x", "max_output_size": 4001},
            "max_output_size must be a whole number from 1 to 4000 tokens, got 4001",
        ),
        (
            {"input_text": "x", "max_output_size": 0},
            "max_output_size must be a whole number from 1 to 4000 tokens, got 0",
        ),
        ({"input_text": "x", "temperature": 1.01}, "temperature must be a number from 0 to 1, got 1.01"),
        ({"input_text": "x", "temperature": float("nan")}, "temperature must be a number from 0 to 1, got nan"),
        ({"input_text": "x", "final_model": ""}, "final_model is ''; give a string that is not empty"),
        ({"input_text": "x", "context": {1, 2}}, "context cannot be written as JSON"),
        ({"input_text": "x", "answer_format": 3}, "answer_format is 3; give a string that is not empty"),
        (
            {"input_text": "x", "temprature": 1},
            "there is no option 'temprature' (did you mean 'temperature'?); the options of a language-model request",
        ),
    ]
    for given, message in cases:
        with pytest.raises(OptionError) as caught:
            client.summarize(**given)
        assert message in str(caught.value)
    for questions, message in [
        ([], "there are no questions; give at least one"),
        ([{"question": ""}], "question is ''; give a string that is not empty"),
        (
            [{"ask": "x"}],
            "a question has no field 'ask'; its fields are question, context, answer_format, answer_options",
        ),
        ([{"question": "x", "answer_options": "yes"}], "answer_options is 'yes'; give a list of strings"),
        (5, "questions must be a string, a dict with 'question', or a list, got int"),
    ]:
        with pytest.raises(OptionError) as caught:
            client.ask(questions, "t1")
        assert message in str(caught.value)
    with pytest.raises(OptionError, match="prompt is '';"):
        client.task("", "t1")
    with pytest.raises(OptionError, match="None is not the id of a response"):
        client.purge(None)
    assert peer.requests == []


def test_a_response_is_fetched_again_and_deleted(client, peer, reply, payload_folder):
    """A response is fetched and deleted by its id, below the configured prefix."""
    raw = (payload_folder / "llm_question-answer.json").read_bytes()
    peer.on("GET", "/llm/v3/r1", reply(raw))
    found = client.llm_response("r1")
    assert (found.task, found.replies[0].question) == (None, "What's causing the wildfires?")
    assert found.usage.input_tokens is None
    purged = (payload_folder / "PurgeLlmRequestDataResponse.json").read_bytes()
    peer.on("DELETE", "/llm/v3/r1", reply(purged))
    result = client.purge("r1")
    expected = json.loads(purged)
    assert (result.request_id, result.request_id_to_purge, result.deleted, result.raw) == (
        expected["request_id"], expected["request_id_to_purge"], True, purged,
    )  # fmt: skip


@pytest.mark.parametrize("fault", ["reset", "close", "cut"])
def test_a_lost_response_is_not_requested_again(client, peer, reply, fault):
    """A request with a lost response is not repeated, because it may be charged twice."""
    answer(peer, "summary", reply({"request_id": "r", "response": "x"}, fault=fault))
    with pytest.raises(Exception, match="lost before the response was complete") as caught:
        client.summarize("t1")
    assert caught.value.possibly_delivered
    assert len(peer.requests) == 1


def test_a_server_error_is_not_retried(client, peer, reply):
    """A 500 raises an error with the text of the service, without a retry."""
    answer(peer, "summary", reply({"error": "model failed"}, 500))
    with pytest.raises(ServerError, match=r"model failed.*\(HTTP 500, POST /llm/v3/generate/summary\)"):
        client.summarize("t1")
    assert len(peer.requests) == 1


@pytest.mark.parametrize("body", [{}, {"request_id": "r"}, {"response": "x"}, {"request_id": "r", "response": 5}])
def test_a_response_without_id_or_text_is_an_error(client, peer, body):
    """A response without an id or a text raises an UnreadableAnswerError."""
    answer(peer, "summary", body)
    with pytest.raises(UnreadableAnswerError, match=r"lacks a field .* may be charged twice if you send it again"):
        client.summarize("t1")


@pytest.mark.parametrize(
    ("sent", "deleted"), [(True, True), ("true", True), (False, False), ("False", False), (1, False)]
)
def test_a_flag_in_quotes_is_read(client, peer, sent, deleted):
    """A purge with the text "true" was done."""
    peer.on("DELETE", "/llm/v3/r1", {"deleted": sent})
    assert client.purge("r1").deleted is deleted


def test_replies_that_are_no_objects_are_kept(client, peer):
    """Text among the replies, which the API does not describe, is a reply too."""
    answer(peer, "question-answer", {"request_id": "r", "response": ["Rain.", {"question": "Why?", "answer": "Fire."}]})
    result = client.ask(["What?", "Why?"], "t1")
    assert [(r.question, r.answer) for r in result.replies] == [(None, "Rain."), ("Why?", "Fire.")]


def test_numbers_of_numpy_are_sent(client, peer):
    """Numbers from an array or a table are numbers."""
    answer(peer)
    client.summarize("t1", max_output_size=np.int64(5), temperature=np.float32(0.5))
    assert peer.requests[0].json == {"transcript_ids": ["t1"], "max_output_size": 5, "temperature": 0.5}


def limited(reply, remaining, reset, limit=30, status=200):
    body = {"request_id": "r", "response": "x"} if status == 200 else {"error": "Too Many Requests"}
    headers = {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": str(reset),
    }
    return reply(body, status, headers)


def test_the_rate_limit_is_read_from_headers(client, peer, reply):
    """`rate_limit` is None before the first response, then the limit, the requests left and the reset time."""
    assert client.rate_limit is None
    answer(peer, "summary", limited(reply, 29, 42))
    client.summarize("t1")
    state = client.rate_limit
    assert (state.limit, state.remaining) == (30, 29)
    assert 40 < state.reset_s <= 42


def test_without_headers_there_is_no_rate_limit(client, peer):
    """Without rate-limit headers, requests do not wait."""
    answer(peer)
    client.summarize("t1")
    client.summarize("t1")
    assert client.rate_limit is None


def test_requests_wait_for_the_rate_limit(client, peer, reply):
    """If no request is left, the client waits for the next window."""
    answer(peer, "summary", limited(reply, 1, 50), limited(reply, 0, 1), limited(reply, 29, 60))
    for _ in range(3):
        client.summarize("t1")
    first, second, third = (r.at for r in peer.requests)
    assert second - first < 25
    assert 1.0 <= third - second < 25


def test_threads_share_the_rate_limit(client, peer, reply):
    """Of eight threads with two requests left, six wait for the next window."""
    answer(peer, "summary", limited(reply, 2, 4), lambda request: limited(reply, 25, 60))
    client.summarize("t1")
    threads = [threading.Thread(target=client.summarize, args=("t1",)) for _ in range(8)]
    started = time.monotonic()

    def slow(request):
        time.sleep(0.1)
        return limited(reply, 0, max(0.0, 4 - (time.monotonic() - started)) if len(peer.requests) < 4 else 60, limit=30)

    answer(peer, "summary", slow, slow, lambda request: limited(reply, 20, 60))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = sorted(r.at - started for r in peer.requests[1:])
    assert len([t for t in at if t < 3.5]) == 2
    assert all(t >= 3.6 for t in at[2:])


def test_a_429_without_retry_after_waits_for_the_window(client, peer, reply):
    """After a 429 without Retry-After, the request is retried in the next window."""
    answer(peer, "summary", limited(reply, 0, 1, status=429), limited(reply, 29, 60))
    client.summarize("t1")
    first, second = (r.at for r in peer.requests)
    assert 1.0 <= second - first < 10


def test_a_long_rate_limit_is_an_error(client, peer, reply):
    """A wait of an hour is an error with the time instead."""
    answer(peer, "summary", reply({"error": "Too Many Requests"}, 429, {"Retry-After": "3600"}))
    with pytest.raises(RateLimitError, match=r"Too Many Requests\. Try again in 3600 s") as caught:
        client.summarize("t1")
    assert caught.value.retry_after == 3600
    assert len(peer.requests) == 1


def test_no_request_is_left_after_a_429():
    """A 429 means that no request is left until the time in Retry-After is over."""
    limiter = RateLimiter(lambda _: None)
    limiter.note(HTTPResponse(429, {"retry-after": "5"}, b"", "POST", "/x"))
    assert limiter.state is not None
    assert limiter.state.remaining == 0
