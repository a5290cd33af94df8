"""The embedded service as an ASGI application: its routes, and an error object for everything that goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router, WebSocketRoute

from voxframe.local import openapi, page, redacted, routes, tokens, webhooks
from voxframe.local.deliveries import Deliveries
from voxframe.local.engines import configured
from voxframe.local.engines.configured import Choice
from voxframe.local.faults import Faults
from voxframe.local.gate import LOOPBACK, Gate, failure
from voxframe.local.jobs import Jobs
from voxframe.local.llm import routes as llm_routes
from voxframe.local.llm.answerer import Answerer
from voxframe.local.llm.store import Responses
from voxframe.local.methods import route
from voxframe.local.places import Places
from voxframe.local.ratelimit import RateLimit
from voxframe.local.realtime import Limits, Streaming
from voxframe.local.redacted import RedactedAudio
from voxframe.local.runner import Runner
from voxframe.local.sweep import Keep

#: What is the same for everyone and says nothing of what the service holds needs no key.
_KEYLESS = page.KEYLESS | {"/openapi.json"}


def make_app(
    places: Places,
    key: str,
    *,
    llm_prefix: str = "llm",
    allowed_origins: frozenset[str] = frozenset(),
    hosts: frozenset[str] | None = LOOPBACK,
    base_url: str = "http://127.0.0.1",
    webhook_interval: float = webhooks.INTERVAL,
    answerer: Answerer | None = None,
    llm_requests: int = 30,
    stream_limits: Limits | None = None,
    choice: Choice = configured.DEFAULT,
    keep: Keep | None = None,
) -> Starlette:
    """Make the application. Work on jobs begins and ends with its lifespan.

    Args:
        places: The data directory.
        key: The key every request must carry.
        llm_prefix: First path segment of the language-model endpoints.
        allowed_origins: Origins, as `addresses.origin` spells them, to fetch media from and to notify wherever they
            resolve to.
        hosts: Host names the service answers under; None for any.
        base_url: Address of the service, for notifications.
        webhook_interval: Seconds between two tries of a notification.
        answerer: What answers language-model requests; None quotes, without a model.
        llm_requests: Language-model requests a minute; 0 for no limit.
        stream_limits: Limits of streaming; None: the usual ones.
        choice: The speech engine and its models.
        keep: How much media is kept; None: as much as usual.
    """
    places.make()
    jobs = Jobs(places.database)
    responses = Responses(places.responses)
    redacted_audio = RedactedAudio(places, key)
    courier = webhooks.Courier(
        Deliveries(jobs.database), lambda job_id: redacted_audio.url(job_id, base_url), webhook_interval
    )
    runner = Runner(jobs, places, allowed_origins, courier.wake, choice, keep)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        runner.start()
        courier.start()
        try:
            yield
        finally:
            await run_in_threadpool(runner.stop)
            await run_in_threadpool(courier.stop)
            jobs.close()
            responses.close()

    open_tokens = tokens.Tokens()
    streaming = Streaming(key, open_tokens, stream_limits, choice)

    app = Starlette(
        routes=[
            *page.ROUTES,
            Route("/openapi.json", _description(llm_prefix), methods=["GET"]),
            Route("/v2/upload", routes.upload, methods=["POST"]),
            route("/v2/transcript", get=routes.listing, post=routes.create),
            route("/v2/transcript/{transcript_id}", get=routes.show, delete=routes.delete),
            Route("/v2/transcript/{transcript_id}/{view}", routes.view, methods=["GET"]),
            Route(redacted.PREFIX + "{name}", routes.redacted_file, methods=["GET"]),
            Mount(f"/{llm_prefix}/v3", RateLimit(Router(llm_routes.ROUTES, redirect_slashes=False), llm_requests)),
            Route("/v2/realtime/token", tokens.create, methods=["POST"]),
            WebSocketRoute("/v2/realtime/ws", streaming.endpoint),
        ],
        middleware=[
            Middleware(Faults),
            Middleware(Gate, key=key, hosts=hosts, signed=redacted.PREFIX, keyless=_KEYLESS),
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.tokens = open_tokens
    app.state.service = routes.Service(
        places, jobs, runner, key, hosts, redacted_audio, set(allowed_origins), choice.engine
    )
    app.state.language_model = llm_routes.LanguageModel(answerer, responses)
    return app


def _description(llm_prefix: str) -> Callable[[Request], Response]:
    body = orjson.dumps(openapi.document(llm_prefix))
    return lambda _: Response(body, media_type="application/json")


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "Not found" if error.status_code == 404 and error.detail == "Not Found" else error.detail
    return failure(error.status_code, message, dict(error.headers or {}))
