"""The ASGI application of the embedded server, its endpoints for uploads, transcripts and tokens, and its web page.

The page at `/` shows jobs, their status and their text, updated live. It contains no data and needs no key. It loads
data through the REST endpoints and `/queue`, with the key that the user enters.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, Router, WebSocketRoute

from voxframe import _text, options
from voxframe._text import DEFAULT_CHARS
from voxframe.options import FIELDS, LIST_LIMIT, STATUSES, TOKEN_SECONDS, WORD_SEARCH_WORDS
from voxframe.validators import shown
from voxframe_engine import RequestRefused
from voxframe_engine.answers import Answerer, Report
from voxframe_engine.answers.writer import LocalModel
from voxframe_engine.speech import engines
from voxframe_engine.speech.engines import DEFAULT_CHOICE, EngineChoice
from voxframe_engine.text import passage, srt, vtt
from voxframe_server.http import (
    UNKNOWN_ID,
    ServerState,
    json_response,
    llm_routes,
    read_json,
    reports_unknown_fields,
    route,
    save_upload,
    server_state,
    unknown_fields,
    validated,
)
from voxframe_server.http.llm_routes import ResponseStore
from voxframe_server.http.middleware import (
    LOOPBACK,
    AuthMiddleware,
    ErrorMiddleware,
    RateLimitMiddleware,
    error_response,
)
from voxframe_server.jobs import JobRecord, JobStore, Webhook, webhook_delivery
from voxframe_server.jobs.data_dir import (
    SIGNED_PREFIX,
    DataDir,
    RedactedAudioStore,
    RedactedAudioUnavailable,
    RetentionPolicy,
)
from voxframe_server.jobs.scheduler import JobScheduler, Rewrite
from voxframe_server.jobs.ssrf_guard import is_known_private, origin
from voxframe_server.jobs.webhook_delivery import WebhookQueue, WebhookSender
from voxframe_server.realtime import TokenStore
from voxframe_server.realtime.websocket import StreamEndpoint, StreamLimits

#: Result fields and their values before a job is completed.
RESULTS: dict[str, Any] = dict.fromkeys(
    "text words utterances confidence audio_duration language_model acoustic_model language_confidence "
    "webhook_status_code auto_highlights_result content_safety_labels iab_categories_result custom_topics_results "
    "chapters summary sentiment_analysis_results entities".split()
) | {"content_safety_labels": {}, "iab_categories_result": {}}
#: Settings that are null, instead of their default, unless the other setting was requested.
_ONLY_WITH = {
    "boost_param": "word_boost",
    "redact_pii_audio_quality": "redact_pii_audio",
    "redact_pii_policies": "redact_pii",
    "redact_pii_sub": "redact_pii",
    "summary_model": "summarization",
    "summary_type": "summarization",
    "content_safety_confidence": "content_safety",
    "language_confidence_threshold": "language_detection",
}
#: Result fields that are kept after deletion.
_KEPT = ("audio_duration", "language_model", "acoustic_model")
_FALSE_WHEN_DELETED = (
    "webhook_auth auto_highlights redact_pii auto_chapters summarization disfluencies sentiment_analysis "
    "entity_detection".split()
)
DELETED_TEXT, DELETED_URL = "Deleted by user.", "http://deleted_by_user"


def transcript_fields(job: JobRecord, result: dict[str, Any] | None) -> dict[str, Any]:
    """Return the transcript object of a job."""
    if job.deleted:
        return _deleted(job)
    fields = {"id": job.id, "status": job.status, **_echo(job.request), **RESULTS, **(result or {})}
    fields |= {"throttled": job.throttled, "speed_boost": False, "webhook_status_code": job.webhook_status_code}
    if job.status == "error":
        fields["error"] = job.error
    return fields


def _echo(request: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the request. The value of the webhook header is never among them."""
    echo = {}
    for name, field in options.FIELDS.items():
        if field.secret:
            continue
        value = field.default if name not in _ONLY_WITH or request.get(_ONLY_WITH[name]) else None
        echo[name] = request.get(name, list(value) if isinstance(value, tuple) else value)
    echo["webhook_auth"] = request.get("webhook_auth_header_name") is not None
    return echo


def _kept_fields(result: dict[str, Any] | None) -> dict[str, Any]:
    """Return the result fields that are kept after a transcript is deleted."""
    return {name: (result or {}).get(name) for name in _KEPT}


def _deleted(job: JobRecord) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(
        (*_echo({}), *RESULTS, "throttled", "speed_boost", "speaker_count", "cluster_id")
    )
    fields |= dict.fromkeys(_FALSE_WHEN_DELETED, False)
    fields |= {"id": job.id, "status": job.status, "error": job.error, "text": DELETED_TEXT}
    fields |= {"audio_url": DELETED_URL, "webhook_url": DELETED_URL}
    return fields | job.request


def _list_item(job: JobRecord, base_url: str) -> dict[str, Any]:
    """Return the list entry of a job."""
    return {
        "id": job.id,
        "resource_url": f"{base_url}/v2/transcript/{job.id}",
        "status": job.status,
        "created": job.created,
        "completed": job.completed,
        "audio_url": DELETED_URL if job.deleted else job.request["audio_url"],
        "error": job.error,
    }


def _passages(
    transcript: dict[str, Any], name: str, split: Callable[[list[dict[str, Any]]], list[list[dict[str, Any]]]]
) -> dict[str, Any]:
    return {
        name: [
            {**passage(words), "confidence": sum(word["confidence"] for word in words) / len(words)}
            for words in split(transcript["words"] or [])
        ],
        "id": transcript["id"],
        "confidence": transcript["confidence"],
        "audio_duration": transcript["audio_duration"],
    }


def search_terms(values: Iterable[str]) -> list[str]:
    """Return the search terms in the values of `words=`, which may be comma-separated or repeated."""
    terms: dict[str, str] = {}
    for value in values:
        for term in value.split(","):
            key = " ".join(_tokens(term))
            if key.count(" ") >= WORD_SEARCH_WORDS:
                raise ValueError(f"a phrase may have at most {WORD_SEARCH_WORDS} words; {shown(term.strip())} has more")
            if key:
                terms.setdefault(key, " ".join(term.split()))
    if not terms:
        raise ValueError("words is required: words, numbers or phrases of up to five words, separated by commas")
    return list(terms.values())


def _tokens(text: str) -> list[str]:
    return [token for token in map(_text.search_form, text.split()) if token]


def search_words(words: Sequence[dict[str, Any]], terms: Iterable[str]) -> list[dict[str, Any]]:
    """Return the matches of each term of `search_terms`. A term without a match is left out."""
    # Channel by channel, because the words of simultaneous speakers alternate.
    channels: dict[Any, list[tuple[str, int]]] = {}
    for index, word in enumerate(words):
        channels.setdefault(word.get("channel"), []).extend((token, index) for token in _tokens(word["text"]))
    spoken = [token for channel in channels.values() for token in (*channel, ("", -1))]  # no term contains ""
    positions: dict[str, list[int]] = {}
    for position, (token, _) in enumerate(spoken):
        positions.setdefault(token, []).append(position)
    matches = []
    for term in terms:
        tokens = _tokens(term)
        spans = [
            (spoken[position][1], spoken[position + len(tokens) - 1][1])
            for position in positions.get(tokens[0], ())
            if [token for token, _ in spoken[position : position + len(tokens)]] == tokens
        ]
        spans.sort()
        if spans:
            matches.append(
                {
                    "text": term,
                    "count": len(spans),
                    "timestamps": [[words[first]["start"], words[last]["end"]] for first, last in spans],
                    "indexes": [first for first, _ in spans],
                }
            )
    return matches


_log = logging.getLogger("voxframe_server")
_DEFAULT_LIMIT = 10


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
    writer: LocalModel | None = None,
    llm_requests: int = 30,
    stream_limits: StreamLimits | None = None,
    choice: EngineChoice = DEFAULT_CHOICE,
    retention: RetentionPolicy | None = None,
) -> Starlette:
    """Create the application. Jobs run during its lifespan.

    Parameters without a description are those of `serve`. `allowed_origins` have the form of `ssrf_guard.origin`.
    `hosts` are the allowed host names of the server; None allows any. `base_url` is the URL in notifications. Without
    an `answerer`, responses are written by the `writer`; without that, they quote the transcripts. Without
    `stream_limits`, those of the speech engine apply.
    """
    data_dir.make()
    jobs = JobStore(data_dir.database)
    responses = ResponseStore(data_dir.responses)
    redacted_audio = RedactedAudioStore(data_dir, key)
    sender = WebhookSender(
        WebhookQueue(jobs.database), lambda job_id: redacted_audio.url(job_id, base_url), webhook_interval
    )
    rewrite = None if writer is None else _rewrite_by(writer)
    scheduler = JobScheduler(jobs, data_dir, allowed_origins, sender.wake, choice, retention, rewrite)

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
            if writer is not None:
                await run_in_threadpool(writer.close)
            jobs.close()
            responses.close()

    tokens = TokenStore()
    streaming = StreamEndpoint(key, tokens, stream_limits, choice)
    language_model = Router(llm_routes.ROUTES, redirect_slashes=False)

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/queue", queue),
            *(Route(f"/page/{name}", page_file) for name in _PAGE_FILES),
            Route("/v2/upload", upload, methods=["POST"]),
            route("/v2/transcript", get=listing, post=create),
            route("/v2/transcript/{transcript_id}", get=show, delete=delete),
            Route("/v2/transcript/{transcript_id}/{resource}", derived, methods=["GET"]),
            Route(SIGNED_PREFIX + "{name}", redacted_file, methods=["GET"]),
            Mount(f"/{llm_prefix}/v3", RateLimitMiddleware(language_model, llm_requests)),
            Route("/v2/realtime/token", create_token, methods=["POST"]),
            WebSocketRoute("/v2/realtime/ws", streaming.endpoint),
        ],
        middleware=[
            Middleware(ErrorMiddleware),
            Middleware(AuthMiddleware, key=key, hosts=hosts, signed=SIGNED_PREFIX, keyless=_KEYLESS),
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.server = ServerState(
        data_dir, jobs, scheduler, key, hosts, redacted_audio, set(allowed_origins), choice.engine, tokens
    )
    app.state.llm = llm_routes.LLMState(answerer, writer, responses)
    return app


def _rewrite_by(writer: LocalModel) -> Rewrite:
    def rewrite(result: Mapping[str, Any], request: Mapping[str, Any], report: Report) -> dict[str, Any]:
        from voxframe_engine.answers.evidence import rewrite  # its imports would double the start-up time

        return rewrite(result, request, writer, report)

    return rewrite


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "Not found" if error.status_code == 404 and error.detail == "Not Found" else error.detail
    return error_response(error.status_code, message, dict(error.headers or {}))


def _base_url(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers['host']}"


async def upload(request: Request) -> Response:
    """POST /v2/upload: store a file and return its URL."""
    state = server_state(request)
    upload_id = await save_upload(request, state.data_dir)
    try:
        await run_in_threadpool(state.jobs.add_upload, upload_id, state.owner)
    except sqlite3.Error:
        state.data_dir.upload(upload_id).unlink(missing_ok=True)
        raise
    return json_response({"upload_url": f"{_base_url(request)}/upload/{upload_id}"})


async def create(request: Request) -> Response:
    """POST /v2/transcript: queue a job."""
    body = await read_json(request)
    unknown = unknown_fields("POST /v2/transcript", body, FIELDS, {"custom_spelling": ("from", "to")})
    with reports_unknown_fields(unknown):
        created = await run_in_threadpool(_create, server_state(request), body)
    assert isinstance(body, Mapping)  # otherwise it was refused
    names = engines.ignored_options(server_state(request).engine, body)
    if body.get("language_detection") and body.get("filter_profanity"):
        names.append("filter_profanity unless the speech is English")  # of analyses, the result says it
    ignored = ", ".join(names)
    if ignored:
        _log.warning("job %s: not honoured: %s", created["id"], ignored)
    return json_response(created, headers=unknown | ({"X-Ignored-Options": ignored} if ignored else {}))


def _create(state: ServerState, body: object) -> dict[str, Any]:
    try:
        fields = validated(body, state.engine)
    except RequestRefused as refused:
        raise HTTPException(400, str(refused)) from None
    webhook = _webhook(state, fields)
    job = state.jobs.add(fields, state.upload_of(fields["audio_url"]), state.owner, state.data_dir.job, webhook)
    state.scheduler.wake()
    _log.info("job %s: queued, with %d before it", job.id, state.jobs.ahead(job))
    return transcript_fields(job, None)


def _webhook(state: ServerState, fields: dict[str, Any]) -> Webhook | None:
    """Return the notifications of a job. The header value is removed from the request and stored separately."""
    header_value = fields.pop("webhook_auth_header_value", None)
    url = fields.get("webhook_url")
    if url is None:
        return None
    try:
        name = origin(url)
        private = is_known_private(url)
    except ValueError:  # its text may contain a password
        raise HTTPException(400, "webhook_url must be an http or https URL") from None
    allowed = name in state.webhook_origins
    if private and not allowed:
        raise HTTPException(
            400,
            f"webhook_url leads to {name}, which is not on the public internet; to allow it, start the server with "
            f"--allow-origin {name}",
        )
    events = ("transcript", "redacted_audio") if fields.get("redact_pii_audio") else ("transcript",)
    return Webhook(events, allowed, header_value)


def show(request: Request) -> Response:
    """GET /v2/transcript/{id}: return a transcript."""
    state = server_state(request)
    job = state.job(request.path_params["transcript_id"])
    fields = transcript_fields(job, state.result(job))
    method = fields.get("summary_method")
    return json_response(fields, headers={"X-Summary-Method": method} if method else {})


def delete(request: Request) -> Response:
    """DELETE /v2/transcript/{id}: delete media and result, and stop the job if it is running."""
    state = server_state(request)
    job = state.job(request.path_params["transcript_id"])
    result = state.result(job) if state.data_dir.result(job.id).exists() else None
    unused = state.jobs.delete(job.id, _kept_fields(result))
    shutil.rmtree(state.data_dir.job(job.id), ignore_errors=True)
    for media in unused:
        (state.data_dir.root / media).unlink(missing_ok=True)
    state.scheduler.wake()
    _log.info("job %s: deleted", job.id)
    return json_response(transcript_fields(state.job(job.id), None))


def listing(request: Request) -> Response:
    """GET /v2/transcript: return a page of transcripts, newest first."""
    state, query = server_state(request), request.query_params
    filters = _filters(query.get)
    limit = _limit(query.get("limit"))
    before, after = (_position(state, query.get(name), name) for name in ("before_id", "after_id"))
    listed = state.jobs.page(limit, **filters, before=before, after=after)
    base = _base_url(request)
    selection = {name: str(value) for name, value in filters.items() if value}

    def link(**more: str) -> str:
        return f"{base}/v2/transcript?{urlencode({'limit': limit, **selection, **more})}"

    here = {name: query[name] for name in ("before_id", "after_id") if query.get(name)}
    return json_response(
        {
            "page_details": {
                "limit": limit,
                "result_count": listed.total,
                "current_url": link(**here),
                "prev_url": link(before_id=listed.jobs[-1].id) if listed.older else None,
                "next_url": link(after_id=listed.jobs[0].id) if listed.newer else None,
            },
            "transcripts": [_list_item(job, base) for job in listed.jobs],
        }
    )


def _limit(text: str | None) -> int:
    if not text:
        return _DEFAULT_LIMIT
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= LIST_LIMIT:
        raise HTTPException(400, f"limit must be a whole number from 1 to {LIST_LIMIT}, not {shown(text)}")
    return int(text)


def _filters(parameter: Callable[[str], str | None]) -> dict[str, Any]:
    """Return the list filters of a query, in any spelling used by clients."""
    status = (parameter("status") or "").rpartition(".")[2].lower() or None
    if status is not None and status not in STATUSES:
        raise HTTPException(400, f"status must be one of {', '.join(STATUSES)}, not {shown(parameter('status'))}")
    created_on = parameter("created_on") or None
    if created_on is not None:
        try:
            created_on = date.fromisoformat(created_on).isoformat()
        except ValueError:
            raise HTTPException(400, f"created_on must be a date written YYYY-MM-DD, not {shown(created_on)}") from None
    throttled = (parameter("throttled_only") or "false").lower()
    if throttled not in ("true", "false", "1", "0"):
        raise HTTPException(400, f"throttled_only must be true or false, not {shown(parameter('throttled_only'))}")
    return {"status": status, "created_on": created_on, "throttled_only": throttled in ("true", "1")}


def _position(state: ServerState, job_id: str | None, name: str) -> int | None:
    if not job_id:
        return None
    job = state.jobs.get(job_id)
    if job is None:
        raise HTTPException(400, f"{name}: {UNKNOWN_ID}")
    return job.seq


def derived(request: Request) -> Response:
    """GET /v2/transcript/{id}/{resource}: return a resource derived from a completed transcript."""
    state, name = server_state(request), request.path_params["resource"]
    job = state.job(request.path_params["transcript_id"])
    if name == "redacted-audio":
        return _redacted_audio(state, job, request)
    make = _VIEWS.get(name)
    if make is None:
        raise HTTPException(404, f"a transcript has no {shown(name)}; it has {', '.join(_VIEWS)}, redacted-audio")
    if job.deleted or job.status != "completed":
        raise HTTPException(400, f"{name} requires a completed transcript; {_state(job)}")
    transcript = transcript_fields(job, state.result(job))
    try:
        content = make(transcript, request)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    return content if isinstance(content, Response) else json_response(content)


def _state(job: JobRecord) -> str:
    if job.deleted:
        return "this one was deleted"
    return f"its status is {job.status}" + (f": {job.error}" if job.status == "error" else "")


def _subtitles(write: Callable[[dict[str, Any], int], str]) -> Callable[[dict[str, Any], Request], Response]:
    def make(transcript: dict[str, Any], request: Request) -> Response:
        text = request.query_params.get("chars_per_caption") or str(DEFAULT_CHARS)
        if not text.isascii() or not text.isdecimal() or not text.strip("0"):
            raise ValueError(f"chars_per_caption must be a whole number of at least 1, not {shown(text)}")
        # No caption is longer than nine digits can say, and Python refuses to read thousands of digits.
        return PlainTextResponse(write(transcript, int(text) if len(text) < 10 else 10**9))

    return make


def _word_search(transcript: dict[str, Any], request: Request) -> dict[str, Any]:
    terms = search_terms(request.query_params.getlist("words"))
    matches = search_words(transcript["words"] or [], terms)
    return {"id": transcript["id"], "total_count": sum(match["count"] for match in matches), "matches": matches}


def _redacted_audio(state: ServerState, job: JobRecord, request: Request) -> Response:
    try:
        ready = state.redacted.view(job, _base_url(request))
    except RedactedAudioUnavailable as error:
        raise HTTPException(400, str(error)) from None
    return json_response(ready, 200 if ready else 202)


def redacted_file(request: Request) -> Response:
    """GET /redacted-audio/{name}: return redacted audio, complete or in ranges, if the URL is signed."""
    query = request.query_params
    try:
        path, kind = server_state(request).redacted.at(
            request.path_params["name"], query.get("Expires", ""), query.get("Signature", "")
        )
        return FileResponse(path, media_type=kind, headers={"X-Content-Type-Options": "nosniff"})
    except PermissionError as error:
        raise HTTPException(403, str(error)) from None
    except FileNotFoundError as error:
        raise HTTPException(404, str(error)) from None


async def create_token(request: Request) -> Response:
    """POST /v2/realtime/token: issue a token."""
    body = await read_json(request)
    unknown = unknown_fields("POST /v2/realtime/token", body, ("expires_in",))
    with reports_unknown_fields(unknown):
        return json_response({"token": _issue_token(server_state(request).tokens, body)}, headers=unknown)


def _issue_token(tokens: TokenStore, body: object) -> str:
    seconds = body.get("expires_in") if isinstance(body, dict) else None
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 10:
        seconds = int(seconds)
    low, high = TOKEN_SECONDS
    if not isinstance(seconds, int | float) or not low <= seconds <= high:
        raise HTTPException(400, f"expires_in must be a number of seconds from {low} to {high}, not {shown(seconds)}")
    token = tokens.issue(seconds)
    if token is None:
        raise HTTPException(429, "too many unused tokens; use some of them, or wait until they expire")
    return token


_VIEWS: dict[str, Callable[[dict[str, Any], Request], Response | dict[str, Any]]] = {
    "srt": _subtitles(srt),
    "vtt": _subtitles(vtt),
    "paragraphs": lambda transcript, _: _passages(transcript, "paragraphs", _text.paragraphs),
    "sentences": lambda transcript, _: _passages(transcript, "sentences", _text.sentences),
    "word-search": _word_search,
}


_PAGE = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_PAGE_FILES = ("page.js", "job.js", "page.css", "icon.svg")
#: Paths of the page, which contain no data.
_KEYLESS = frozenset({"/", *(f"/page/{name}" for name in _PAGE_FILES)})
_PAGE_HEADERS = {
    # Only these files may run, be shown or be connected to, and no text can become markup.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_MOST_QUEUED = 200


def _page_file(name: str) -> Response:
    path = _PAGE / name
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers=_PAGE_HEADERS)


def index(request: Request) -> Response:
    """GET /: return the page to browsers, and links to other clients."""
    if "text/html" in request.headers.get("accept", ""):
        answer = _page_file("index.html")
    else:
        answer = json_response({"service": "voxframe", "transcripts": "/v2/transcript"})
    answer.headers["Vary"] = "Accept"
    return answer


def page_file(request: Request) -> Response:
    """GET /page/{name}: return a file of the page."""
    return _page_file(request.url.path.rpartition("/")[2])


def queue(request: Request) -> Response:
    """GET /queue: return positions in the queue, from 1, and the progress of jobs and downloads."""
    server = server_state(request)
    page = server.jobs.page(_MOST_QUEUED, status="queued")
    body: dict[str, Any] = {
        "waiting": {job.id: page.total - newer for newer, job in enumerate(page.jobs)},
        "progress": server.scheduler.progress(),
        "downloads": server.scheduler.downloads(),
    }
    return json_response(body)
