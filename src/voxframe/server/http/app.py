"""The ASGI application of the embedded server."""

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

from voxframe.server.data_dir import DataDir, RetentionPolicy
from voxframe.server.http import openapi, page, routes
from voxframe.server.http.middleware import (
    LOOPBACK,
    AuthMiddleware,
    ErrorMiddleware,
    RateLimitMiddleware,
    error_response,
)
from voxframe.server.http.server_state import ServerState, TokenStore, route
from voxframe.server.jobs import redacted_audio_store, webhook_delivery
from voxframe.server.jobs.job_store import JobStore
from voxframe.server.jobs.redacted_audio_store import RedactedAudioStore
from voxframe.server.jobs.scheduler import JobScheduler
from voxframe.server.jobs.webhook_delivery import WebhookQueue, WebhookSender
from voxframe.server.llm import llm_routes
from voxframe.server.llm.llm_request import Answerer
from voxframe.server.llm.llm_routes import ResponseStore
from voxframe.server.realtime.websocket import StreamEndpoint, StreamLimits
from voxframe.server.speech.engines import DEFAULT_CHOICE, EngineChoice

#: Public content that needs no key and reveals nothing about stored data.
_KEYLESS = page.KEYLESS | {"/openapi.json"}


def make_app(
    data_dir: DataDir,
    key: str,
    *,
    llm_prefix: str = "llm",
    allowed_origins: frozenset[str] = frozenset(),
    hosts: frozenset[str] | None = LOOPBACK,
    base_url: str = "http://127.0.0.1",
    webhook_interval: float = webhook_delivery.INTERVAL,
    answerer: Answerer | None = None,
    llm_requests: int = 30,
    stream_limits: StreamLimits | None = None,
    choice: EngineChoice = DEFAULT_CHOICE,
    retention: RetentionPolicy | None = None,
) -> Starlette:
    """Create the application. Jobs run during its lifespan.

    Args:
        data_dir: The data directory.
        key: The API key.
        llm_prefix: First path segment of the language-model endpoints.
        allowed_origins: Origins, in the form of `ssrf_guard.origin`, that media may be fetched from and that may be
            notified although they are not public.
        hosts: Allowed host names of the server; None for any.
        base_url: URL of the server, used in notifications.
        webhook_interval: Seconds between two attempts of a notification.
        answerer: Answers language-model requests. None (default): the extractive answerer, without a model.
        llm_requests: Language-model requests per minute; 0 for no limit.
        stream_limits: Limits of streaming. None (default): the limits of the speech engine.
        choice: The speech engine and its models.
        retention: How much media is kept. None (default): the default policy.
    """
    data_dir.make()
    jobs = JobStore(data_dir.database)
    responses = ResponseStore(data_dir.responses)
    redacted_audio = RedactedAudioStore(data_dir, key)
    sender = WebhookSender(
        WebhookQueue(jobs.database), lambda job_id: redacted_audio.url(job_id, base_url), webhook_interval
    )
    scheduler = JobScheduler(jobs, data_dir, allowed_origins, sender.wake, choice, retention)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        scheduler.start()
        sender.start()
        try:
            yield
        finally:
            await streaming.close()
            await run_in_threadpool(scheduler.stop)
            await run_in_threadpool(sender.stop)
            jobs.close()
            responses.close()

    tokens = TokenStore()
    streaming = StreamEndpoint(key, tokens, stream_limits, choice)
    language_model = Router(llm_routes.ROUTES, redirect_slashes=False)

    app = Starlette(
        routes=[
            *page.ROUTES,
            Route("/openapi.json", _description(llm_prefix), methods=["GET"]),
            Route("/v2/upload", routes.upload, methods=["POST"]),
            route("/v2/transcript", get=routes.listing, post=routes.create),
            route("/v2/transcript/{transcript_id}", get=routes.show, delete=routes.delete),
            Route("/v2/transcript/{transcript_id}/{resource}", routes.derived, methods=["GET"]),
            Route(redacted_audio_store.PREFIX + "{name}", routes.redacted_file, methods=["GET"]),
            Mount(f"/{llm_prefix}/v3", RateLimitMiddleware(language_model, llm_requests)),
            Route("/v2/realtime/token", routes.create_token, methods=["POST"]),
            WebSocketRoute("/v2/realtime/ws", streaming.endpoint),
        ],
        middleware=[
            Middleware(ErrorMiddleware),
            Middleware(AuthMiddleware, key=key, hosts=hosts, signed=redacted_audio_store.PREFIX, keyless=_KEYLESS),
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.server = ServerState(
        data_dir, jobs, scheduler, key, hosts, redacted_audio, set(allowed_origins), choice.engine, tokens
    )
    app.state.llm = llm_routes.LLMState(answerer, responses)
    return app


def _description(llm_prefix: str) -> Callable[[Request], Response]:
    body = orjson.dumps(openapi.document(llm_prefix))
    return lambda _: Response(body, media_type="application/json")


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "Not found" if error.status_code == 404 and error.detail == "Not Found" else error.detail
    return error_response(error.status_code, message, dict(error.headers or {}))
