import json
import threading
import time
from datetime import UTC, datetime, timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from voxframe.errors import OptionError, RateLimitError, ServerError, UnreadableAnswerError
from voxframe.service import Transcript

TASKS = {
    "summary": ("LlmSummaryResponse", lambda c: c.summarize(["t1", "t2"], answer_format="bullet points")),
    "question-answer": ("LlmQuestionAnswerResponse", lambda c: c.ask("Where are there wildfires?", ["t1", "t2"])),
    "task": ("LlmTaskResponse", lambda c: c.task("List all places.", ["t1", "t2"])),
    "action-items": ("LlmActionItemsResponse", lambda c: c.action_items(["t1", "t2"], answer_format="one line")),
}
OWN = {
    "summary": {"answer_format": "bullet points"},
    "question-answer": {"questions": [{"question": "Where are there wildfires?"}]},
    "task": {"prompt": "List all places."},
    "action-items": {"answer_format": "one line"},
}


def answer(peer, task="summary", *replies):
    peer.on("POST", f"/llm/v3/generate/{task}", *(replies or [{"request_id": "r1", "response": "It burns."}]))


@pytest.mark.parametrize("task", TASKS)
def test_every_task_over_the_wire(client, peer, reply, payload_folder, task):
    """Body, path and typed result of each task, with the interface's own example as the answer."""
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


def test_every_option_goes_into_the_body(client, peer):
    """Context of any JSON, model, size and temperature are sent; None is left to the service."""
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


def test_the_example_questions_of_the_interface(client, peer, payload_folder):
    """Questions with format and options go over the wire as in the example."""
    example = json.loads((payload_folder / "LlmQuestionAnswerParams.json").read_text())
    answer(peer, "question-answer", {"request_id": "r", "response": []})
    given = {k: v for k, v in example.items() if k not in ("transcript_ids", "questions")}
    client.ask(example["questions"], example["transcript_ids"], **given)
    assert peer.requests[0].json == example


def test_transcripts_in_every_form(client, peer):
    """An id, a handle, a mixture, a column of a table, a table: ids, each once, in order."""
    answer(peer)
    table = pd.DataFrame({"transcript_id": ["t1", "t1", "t2"], "text": ["a", "b", "c"]})
    handle = Transcript(client, "t1")
    for form in ("t1", handle, [handle, "t2", "t1"], table["transcript_id"], table, iter(["t1"])):
        client.summarize(form)
    assert [r.json["transcript_ids"] for r in peer.requests] == [
        ["t1"], ["t1"], ["t1", "t2"], ["t1", "t2"], ["t1", "t2"], ["t1"],
    ]  # fmt: skip


def test_a_part_of_a_corpus_is_asked_about(client, peer):
    """Rows chosen in any kind of table: their transcripts, each once with its length, in the order of the rows."""
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


def finished(client, peer, identifier, status="completed", **more):
    peer.on("GET", f"/v2/transcript/{identifier}", {"id": identifier, "status": status, **more})
    return client.transcript(identifier)


def test_limits_and_mistakes_are_noticed_before_anything_is_sent(client, peer):
    """Each limit of the interface, and what cannot be meant, with the message a user sees."""
    long = [finished(client, peer, f"t{n}", audio_duration=180_001) for n in range(2)]
    queued, failed = finished(client, peer, "q", "queued"), finished(client, peer, "f", "error")
    peer.requests.clear()
    cases = [
        (
            {"transcripts": [f"t{n}" for n in range(101)]},
            "more than 100 transcripts were given; a request takes 1 to 100",
        ),
        ({"transcripts": []}, "no transcripts were given; a request takes 1 to 100. Check what selected them"),
        (
            {"transcripts": pd.DataFrame({"transcript_id": ["a", "b"], "audio_duration_s": [1.0, 360_000.0]})},
            "the transcripts are 100.0 hours long; a request takes up to 100 hours. Ask in several requests",
        ),
        (
            {"transcripts": pd.DataFrame({"transcript_id": [f"t{n}" for n in range(101)]})},
            "more than 100 transcripts were given",
        ),
        ({"transcripts": pd.DataFrame({"transcript_id": []})}, "no transcripts were given"),
        ({"transcripts": pd.DataFrame({"id": ["t1"]})}, "or a table with a column transcript_id"),
        ({"transcripts": pd.DataFrame({"transcript_id": [None]})}, "None is no transcript"),
        ({"transcripts": long}, "the transcripts are 100.0 hours long; a request takes up to 100 hours"),
        ({"transcripts": queued}, "transcript q is 'queued'; only completed ones have text. Wait for it"),
        ({"transcripts": failed}, "transcript f is 'error'; only completed ones have text"),
        ({"transcripts": [None]}, "None is no transcript; give its id or a handle"),
        ({"transcripts": {"id": "t1"}}, "transcripts is a dict; give an id, a handle, several of these, or a table"),
        ({}, "give either transcripts or input_text: one of them, not both"),
        ({"transcripts": "t1", "input_text": "x"}, "one of them, not both"),
        ({"input_text": "  "}, "input_text is '  '; give a text that is not empty"),
        (
            {"input_text": "x", "max_output_size": 4001},
            "max_output_size is 4001; give a whole number from 1 to 4000 tokens",
        ),
        ({"input_text": "x", "max_output_size": 0}, "max_output_size is 0"),
        ({"input_text": "x", "temperature": 1.01}, "temperature is 1.01; give a number from 0 to 1"),
        ({"input_text": "x", "temperature": float("nan")}, "temperature is nan"),
        ({"input_text": "x", "final_model": ""}, "final_model is ''; give a text that is not empty"),
        ({"input_text": "x", "context": {1, 2}}, "context cannot be written as JSON"),
        ({"input_text": "x", "answer_format": 3}, "answer_format is 3; give a text that is not empty"),
        (
            {"input_text": "x", "temprature": 1},
            "there is no option 'temprature'; the options of a language-model request are",
        ),
    ]
    for given, message in cases:
        with pytest.raises(OptionError) as caught:
            client.summarize(**given)
        assert message in str(caught.value)
    for questions, message in [
        ([], "there is no question; give at least one"),
        ([{"question": ""}], "question is ''; give a text that is not empty"),
        (
            [{"ask": "x"}],
            "a question has no field 'ask'; its fields are question, context, answer_format, answer_options",
        ),
        ([{"question": "x", "answer_options": "yes"}], "answer_options is 'yes'; give a list of texts"),
        (5, "questions is a int; give a text"),
    ]:
        with pytest.raises(OptionError) as caught:
            client.ask(questions, "t1")
        assert message in str(caught.value)
    with pytest.raises(OptionError, match="prompt is '';"):
        client.task("", "t1")
    with pytest.raises(OptionError, match="None is no id of a response"):
        client.purge(None)
    assert peer.requests == []


def test_a_response_is_fetched_again_and_deleted(client, peer, reply, payload_folder):
    """By its id, with the prefix of the settings; the answers are those of the examples."""
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
def test_a_request_that_costs_is_sent_once(client, peer, reply, fault):
    """A lost answer of a model is an error, not a second bill."""
    answer(peer, "summary", reply({"request_id": "r", "response": "x"}, fault=fault))
    with pytest.raises(Exception, match="cut before the whole answer") as caught:
        client.summarize("t1")
    assert caught.value.may_have_arrived
    assert len(peer.requests) == 1


def test_a_server_error_of_a_model_is_not_repeated(client, peer, reply):
    """500 comes through with the service's words."""
    answer(peer, "summary", reply({"error": "model failed"}, 500))
    with pytest.raises(ServerError, match=r"model failed.*\(HTTP 500, POST /llm/v3/generate/summary\)"):
        client.summarize("t1")
    assert len(peer.requests) == 1


@pytest.mark.parametrize("body", [{}, {"request_id": "r"}, {"response": "x"}, {"request_id": "r", "response": 5}])
def test_an_answer_that_is_none(client, peer, body):
    """A response without id or text is not taken for one."""
    answer(peer, "summary", body)
    with pytest.raises(UnreadableAnswerError):
        client.summarize("t1")


def limited(reply, remaining, reset, limit=30, status=200):
    body = {"request_id": "r", "response": "x"} if status == 200 else {"error": "Too Many Requests"}
    headers = {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": str(reset),
    }
    return reply(body, status, headers)


def test_the_rate_limit_is_read_and_shown(client, peer, reply):
    """Nothing is known before the first answer; then limit, what is left, and when it is whole again."""
    assert client.rate_limit is None
    answer(peer, "summary", limited(reply, 29, 42))
    client.summarize("t1")
    state = client.rate_limit
    assert (state.limit, state.remaining) == (30, 29)
    assert 40 < state.reset_s <= 42


def test_an_endpoint_without_such_headers_has_no_limit(client, peer):
    """An answer without them leaves nothing to wait for."""
    answer(peer)
    client.summarize("t1")
    client.summarize("t1")
    assert client.rate_limit is None


def test_the_client_waits_instead_of_running_into_the_limit(client, peer, reply):
    """With none left it waits for the window to end, and the service is never asked too early."""
    answer(peer, "summary", limited(reply, 1, 2), limited(reply, 0, 1), limited(reply, 29, 60))
    for _ in range(3):
        client.summarize("t1")
    first, second, third = (r.at for r in peer.requests)
    assert second - first < 0.5
    assert 1.0 <= third - second < 2.5


def test_threads_share_what_is_left(client, peer, reply):
    """Eight threads and two requests left: two go at once, six wait for the next window."""
    answer(peer, "summary", limited(reply, 2, 1.5), lambda request: limited(reply, 25, 60))
    client.summarize("t1")
    threads = [threading.Thread(target=client.summarize, args=("t1",)) for _ in range(8)]
    started = time.monotonic()

    def slow(request):
        time.sleep(0.1)
        return limited(
            reply, 0, max(0.0, 1.5 - (time.monotonic() - started)) if len(peer.requests) < 4 else 60, limit=30
        )

    answer(peer, "summary", slow, slow, lambda request: limited(reply, 20, 60))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = sorted(r.at - started for r in peer.requests[1:])
    assert len([t for t in at if t < 1.0]) == 2
    assert all(t >= 1.2 for t in at[2:])


def test_a_429_names_no_time_and_the_window_does(client, peer, reply):
    """Without Retry-After the end of the window is waited for, and the request is made again."""
    answer(peer, "summary", limited(reply, 0, 1, status=429), limited(reply, 29, 60))
    client.summarize("t1")
    first, second = (r.at for r in peer.requests)
    assert 1.0 <= second - first < 2.0


def test_a_limit_that_holds_too_long_is_an_error_with_its_time(client, peer, reply):
    """A service that asks for an hour is not waited for; the message says how long."""
    answer(peer, "summary", reply({"error": "Too Many Requests"}, 429, {"Retry-After": "3600"}))
    with pytest.raises(RateLimitError, match=r"Too Many Requests\. Ask again in 3600 s") as caught:
        client.summarize("t1")
    assert caught.value.retry_after == 3600
    assert len(peer.requests) == 1
