"""The language-model endpoints, and storage of the responses until they are purged. Inputs are never stored."""

from __future__ import annotations

import logging
import time
import uuid
from asyncio import create_task, sleep
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import orjson
from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response as HTTPResponse
from starlette.routing import Route

from voxframe.options import LLM_HOURS
from voxframe.validators import shown
from voxframe_engine import RequestRefused, answers
from voxframe_engine.answers import (
    Answerer,
    Cancelled,
    LLMRequest,
    ModelFailed,
    Report,
    Source,
    from_text,
    from_transcript,
)
from voxframe_engine.answers.writer import LocalModel
from voxframe_server.http import (
    ServerState,
    json_response,
    read_json,
    reports_unknown_fields,
    route,
    server_state,
    unknown_fields,
)
from voxframe_server.jobs import Database, now

_SCHEMA = "CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, created TEXT NOT NULL, answer TEXT NOT NULL)"
_VERSION = 1


class ResponseStore:
    """The responses in one data directory. Safe to use from several threads and processes."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA, _VERSION)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Store a response and return it with its request id."""
        response = {"request_id": str(uuid.uuid4()), **answer}
        with self._database.transaction() as run:
            run(
                "INSERT INTO responses VALUES (?, ?, ?)",
                (response["request_id"], now(), orjson.dumps(response).decode()),
            )
        return response

    def get(self, request_id: str) -> bytes | None:
        """Return a stored response as JSON, or None."""
        rows = self._database.rows("SELECT answer FROM responses WHERE id = ?", request_id)
        return rows[0]["answer"].encode() if rows else None

    def purge(self, request_id: str) -> bool:
        """Delete an answer; its traces leave the disk soon after. Return False if there was none."""
        with self._database.transaction() as run:
            row = run("DELETE FROM responses WHERE id = ? RETURNING id", (request_id,)).fetchone()
        if row:
            self._database.wipe_soon()
        return row is not None


_log = logging.getLogger("voxframe_server")
_LONG_S = 5.0  # seconds after which progress is logged
_WATCH_S = 0.5  # seconds between two looks if the client is there
_AT_ONCE = 4  # requests processed at once; further ones wait without blocking other endpoints
_QUOTED = "key sentences, quoted"  # header of answers without a language model
_UNKNOWN = "there is no response of that request id, or it was purged"


@dataclass
class LLMState:
    """State of the endpoints."""

    configured: Answerer | None
    writer: LocalModel | None
    responses: ResponseStore = field(repr=False)

    @cached_property
    def answerer(self) -> Answerer:
        """The configured model, or the writer, or the extractive answerer."""
        if self.configured is not None:
            return self.configured
        if self.writer is not None:
            from voxframe_engine.answers.evidence import CheckedAnswerer

            return CheckedAnswerer(self.writer)
        from voxframe_engine.answers.extractive import ExtractiveAnswerer  # its imports would double the start-up time

        return ExtractiveAnswerer()

    @cached_property
    def turns(self) -> CapacityLimiter:
        """Limit on the number of requests processed at once."""
        return CapacityLimiter(_AT_ONCE)


def _model(request: Request) -> LLMState:
    return cast("LLMState", request.app.state.llm)


async def generate(request: Request) -> HTTPResponse:
    """POST .../generate/{task}: generate a response and store it under its request id."""
    task = request.path_params["task"]
    if task not in answers.TASKS:
        raise HTTPException(404, f"there is no task {shown(task)}; there are {', '.join(answers.TASKS)}")
    body = await read_json(request)
    model, state = _model(request), server_state(request)
    unknown = unknown_fields(f"language model: {task}", body, answers.field_names(task), answers.NESTED)
    progress = _Progress(task)
    with reports_unknown_fields(unknown):
        watch = create_task(_watch(request, progress))
        try:
            # Abandoned when the server stops, because a model may take minutes.
            answer = await to_thread.run_sync(
                _generate, state, model, task, body, progress.report, abandon_on_cancel=True, limiter=model.turns
            )
        finally:
            watch.cancel()
        method = {"X-Answer-Method": _QUOTED} if answer["model"] == answers.QUOTING else {}
        return json_response(answer, headers=unknown | method)


class _Progress:
    """Logs each quarter of a request that takes long, and ends it when the client has gone."""

    def __init__(self, task: str) -> None:
        self._task, self._logged, self._begun = task, 0.0, time.monotonic()
        self.client_has_gone = False

    def report(self, share: float) -> None:
        """Take the completed share."""
        if self.client_has_gone:
            raise Cancelled
        if share >= self._logged + 0.25 and time.monotonic() - self._begun > _LONG_S:
            self._logged = share
            _log.info("language model: %s: %.0f %%", self._task, 100 * share)


async def _watch(request: Request, progress: _Progress) -> None:
    """Wait until the client has gone."""
    while not progress.client_has_gone:
        await sleep(_WATCH_S)
        progress.client_has_gone = await request.is_disconnected()


def _generate(state: ServerState, model: LLMState, task: answers.Task, body: object, report: Report) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        llm_request = answers.read_request(task, body)
        model.answerer.check(llm_request.final_model)
        sources = _sources(state, llm_request)
        answered = model.answerer.answer(llm_request, sources, report)
    except RequestRefused as refused:
        raise HTTPException(400, str(refused)) from None
    except Cancelled:
        _log.info("language model: %s: cancelled, because the client has gone", task)
        raise HTTPException(503, "the client has gone") from None
    except ModelFailed as failed:
        _log.warning("language model: %s: %s", task, failed)
        headers = None if failed.retry_after is None else {"Retry-After": str(failed.retry_after)}
        raise HTTPException(failed.status, str(failed), headers) from None
    usage = {"input_tokens": answered.input_tokens, "output_tokens": answered.output_tokens}
    citations = {} if answered.citations is None else {"citations": answered.citations}
    answer = model.responses.add({"response": answered.response, "usage": usage, "model": answered.model, **citations})
    _log.info(
        "language model: %s %s: %d tokens read in %.1f s by %s",
        task,
        answer["request_id"],
        answered.input_tokens,
        time.monotonic() - begun,
        answered.model,
    )
    return answer


def _sources(state: ServerState, llm_request: LLMRequest) -> list[Source]:
    """Return the transcripts or text of a request."""
    if not llm_request.transcript_ids:
        return [from_text(llm_request.input_text)]
    sources = [_transcript(state, transcript_id) for transcript_id in llm_request.transcript_ids]
    hours = sum(source.seconds for source in sources) / 3600
    if hours > LLM_HOURS:
        raise RequestRefused(
            f"a request may take at most {LLM_HOURS} hours of transcripts, not {hours:.2f}; send several"
        )
    return sources


def _transcript(state: ServerState, transcript_id: str) -> Source:
    job = state.jobs.get(transcript_id)
    named = f"transcript {transcript_id[:80]!r}"
    if job is None:
        raise RequestRefused(f"{named} is not known here")
    if job.deleted:
        raise RequestRefused(f"{named} was deleted")
    if job.status != "completed":
        if job.status == "error":
            raise RequestRefused(f"{named} has no text, its status is error: {job.error}")
        raise RequestRefused(f"{named} is {job.status}; wait until it is completed")
    result = state.result(job) or {}
    if not result.get("words"):
        raise RequestRefused(f"{named} has no text")
    duration = result.get("audio_duration")
    return from_transcript({"id": transcript_id, "words": result["words"], "audio_duration": duration})


async def show(request: Request) -> HTTPResponse:
    """GET .../{request_id}: return a stored response."""
    response = await run_in_threadpool(_model(request).responses.get, request.path_params["request_id"])
    if response is None:
        raise HTTPException(404, _UNKNOWN)
    return json_response(response)


async def purge(request: Request) -> HTTPResponse:
    """DELETE .../{request_id}: delete a stored response. Its input was never stored."""
    request_id = request.path_params["request_id"]
    if not await run_in_threadpool(_model(request).responses.purge, request_id):
        raise HTTPException(404, _UNKNOWN)
    return json_response({"request_id": str(uuid.uuid4()), "request_id_to_purge": request_id, "deleted": True})


ROUTES = [
    Route("/generate/{task}", generate, methods=["POST"]),
    route("/{request_id}", get=show, delete=purge),
]
