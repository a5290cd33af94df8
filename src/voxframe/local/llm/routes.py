"""The language-model endpoints: what each takes from a request, and answers."""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import orjson
from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response as HTTPResponse
from starlette.routing import Route

from voxframe.local.asked import Refused
from voxframe.local.bodies import read_json
from voxframe.local.llm import asked as asking
from voxframe.local.llm.answerer import Answerer
from voxframe.local.llm.asked import Asked
from voxframe.local.llm.material import Source, from_text, from_transcript
from voxframe.local.llm.model import ModelFailed
from voxframe.local.llm.store import Responses
from voxframe.local.methods import route
from voxframe.local.routes import Service
from voxframe.options import LLM_HOURS

_log = logging.getLogger("voxframe.local")
_AT_ONCE = 4  # requests that are worked on; the others wait, and the rest of the service does not wait for them
_UNKNOWN = "there is no response of that request id, or it was purged"


@dataclass
class LanguageModel:
    """What the endpoints work with.

    Attributes:
        configured: The model that was configured, if any.
        responses: Answers that were given.
    """

    configured: Answerer | None
    responses: Responses = field(repr=False)

    @cached_property
    def answerer(self) -> Answerer:
        """What answers requests: the model that was configured, else one that quotes."""
        if self.configured is not None:
            return self.configured
        from voxframe.local.llm.extractive import Extractive  # what it needs is half of the service's start

        return Extractive()

    @cached_property
    def turns(self) -> CapacityLimiter:
        """Threads that work on requests."""
        return CapacityLimiter(_AT_ONCE)


def _model(request: Request) -> LanguageModel:
    return cast("LanguageModel", request.app.state.language_model)


def _json(content: bytes | dict[str, Any]) -> HTTPResponse:
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    return HTTPResponse(body, media_type="application/json")


async def generate(request: Request) -> HTTPResponse:
    """POST .../generate/{task}: an answer, kept under its request id."""
    task = request.path_params["task"]
    if task not in asking.TASKS:
        raise HTTPException(404, f"there is no task {task!r}; there are {', '.join(asking.TASKS)}")
    body = await read_json(request)
    model, service = _model(request), cast("Service", request.app.state.service)
    # Abandoned when the service stops: a model may take minutes.
    work = to_thread.run_sync(_generate, service, model, task, body, abandon_on_cancel=True, limiter=model.turns)
    return _json(await work)


def _generate(service: Service, model: LanguageModel, task: asking.Task, body: object) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        asked = asking.read(task, body)
        model.answerer.check(asked.final_model)
        sources = _sources(service, asked)
        answered = model.answerer.answer(asked, sources)
    except Refused as refused:
        raise HTTPException(400, str(refused)) from None
    except ModelFailed as failed:
        _log.warning("language model: %s: %s", task, failed)
        headers = None if failed.retry_after is None else {"Retry-After": str(failed.retry_after)}
        raise HTTPException(failed.status, str(failed), headers) from None
    usage = {"input_tokens": answered.input_tokens, "output_tokens": answered.output_tokens}
    answer = model.responses.add({"response": answered.response, "usage": usage, "model": answered.model})
    _log.info(
        "language model: %s %s: %d tokens read in %.1f s by %s",
        task,
        answer["request_id"],
        answered.input_tokens,
        time.monotonic() - begun,
        answered.model,
    )
    return answer


def _sources(service: Service, asked: Asked) -> list[Source]:
    """The material of a request.

    Raises:
        Refused: A transcript cannot be had, or they are too long.
    """
    if not asked.transcript_ids:
        return [from_text(asked.input_text)]
    sources = [_transcript(service, transcript_id) for transcript_id in asked.transcript_ids]
    hours = sum(source.seconds for source in sources) / 3600
    if hours > LLM_HOURS:
        raise Refused(f"a request may take at most {LLM_HOURS} hours of transcripts, not {hours:.2f}; send several")
    return sources


def _transcript(service: Service, transcript_id: str) -> Source:
    job = service.jobs.get(transcript_id)
    named = f"transcript {transcript_id[:80]!r}"
    if job is None:
        raise Refused(f"{named} is not known here")
    if job.deleted:
        raise Refused(f"{named} was deleted")
    if job.status != "completed":
        if job.status == "error":
            raise Refused(f"{named} has no text, its status is error: {job.error}")
        raise Refused(f"{named} is {job.status}; wait until it is completed")
    result = service.result(job) or {}
    if not result.get("words"):
        raise Refused(f"{named} has no text")
    return from_transcript({"words": result["words"], "audio_duration": result.get("audio_duration")})


async def show(request: Request) -> HTTPResponse:
    """GET .../{request_id}: an answer once more."""
    found = await run_in_threadpool(_model(request).responses.get, request.path_params["request_id"])
    if found is None:
        raise HTTPException(404, _UNKNOWN)
    return _json(found)


async def purge(request: Request) -> HTTPResponse:
    """DELETE .../{request_id}: an answer leaves the disk. What it was made from was never there."""
    request_id = request.path_params["request_id"]
    deleted = await run_in_threadpool(_model(request).responses.purge, request_id)
    if deleted is None:
        raise HTTPException(404, _UNKNOWN)
    if not deleted:
        _log.warning(
            "language model: %s is deleted, but may still be on disk: another process uses the file", request_id
        )
    return _json({"request_id": str(uuid.uuid4()), "request_id_to_purge": request_id, "deleted": deleted})


ROUTES = [
    Route("/generate/{task}", generate, methods=["POST"]),
    route("/{request_id}", get=show, delete=purge),
]
