"""REST interface of the embedded server. This module has what endpoints share: state, and the bodies of requests."""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from io import BufferedWriter
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
from anyio import fail_after
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from voxframe import options
from voxframe._files import put_in_place
from voxframe_engine import RequestRefused, analyses
from voxframe_engine.speech import engines
from voxframe_server.http.middleware import drain, host_name
from voxframe_server.jobs import JobRecord, JobStore
from voxframe_server.jobs.data_dir import DataDir, RedactedAudioStore, upload_id
from voxframe_server.jobs.scheduler import JobScheduler
from voxframe_server.realtime import TokenStore

UNKNOWN_ID = "Transcript lookup error, transcript id not found"


@dataclass(frozen=True)
class ServerState:
    """State of the endpoints.

    Attributes:
        webhook_origins: Origins that may be notified although they are not public. The parent process may add some.
    """

    data_dir: DataDir
    jobs: JobStore
    scheduler: JobScheduler
    key: str = field(repr=False)
    hosts: frozenset[str] | None
    redacted: RedactedAudioStore
    webhook_origins: set[str]
    engine: str
    tokens: TokenStore

    @property
    def owner(self) -> str:
        """Hash of the key, recorded as the owner of uploads."""
        return hashlib.sha256(b"voxframe upload " + self.key.encode()).hexdigest()

    def job(self, job_id: str) -> JobRecord:
        """Return a job."""
        job = self.jobs.get(job_id)
        if job is None:
            raise HTTPException(404, UNKNOWN_ID)
        return job

    def result(self, job: JobRecord) -> dict[str, Any] | None:
        """Return the result fields of a completed job; None for any other job."""
        if job.status != "completed" or job.deleted:
            return None
        try:
            result: dict[str, Any] = orjson.loads(self.data_dir.result(job.id).read_bytes())
        except FileNotFoundError:  # deleted a moment ago, or by hand
            raise HTTPException(404, "the result of this transcript no longer exists") from None
        return result

    def upload_of(self, url: str) -> str | None:
        """Return the id in an upload URL of this server, or None. The port may be that of an earlier start."""
        ours = self.hosts is None or host_name(urlsplit(url).netloc) in self.hosts
        return upload_id(url) if ours else None


def server_state(request: Request) -> ServerState:
    """Return the state of the server that received a request."""
    state: ServerState = request.app.state.server
    return state


def json_response(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response; bytes are sent as they are."""
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    return Response(body, status, headers, media_type="application/json")


def route(path: str, **handlers: Callable[[Request], Any]) -> Route:
    """Return one route for all methods of a path, so that a 405 response names all of them. GET includes HEAD."""

    async def endpoint(request: Request) -> Response:  # not a class, whose exceptions pass the middleware of a mount
        handler = handlers["get" if request.method == "HEAD" else request.method.lower()]
        work = handler(request) if iscoroutinefunction(handler) else run_in_threadpool(handler, request)
        response: Response = await work
        return response

    return Route(path, endpoint, methods=list(handlers))


_log = logging.getLogger("voxframe_server")

#: Maximum size of a JSON body and of an upload in bytes.
MAX_JSON = 5 * 10**6
MAX_UPLOAD = 2_200_000_000
#: Maximum wait for the next part of a body in seconds.
STALLED = 60.0
_WRITE = 1 << 20
HEADER = "X-Unknown-Fields"
_MAX_NAMES, _MAX_CHARS = 20, 60
#: Request fields that are for English alone.
_ENGLISH = (*analyses.OPTIONS, "filter_profanity")
#: Maximum number of boosted words and phrases, and maximum length of one in characters.
BOOSTED, BOOSTED_CHARS = 1000, 100
#: Headers that control the framing of a request, which a client may not set.
_FRAMING = frozenset(
    "connection content-encoding content-length content-type expect host keep-alive te trailer transfer-encoding "
    "upgrade".split()
)


async def read_json(request: Request) -> object:
    """Return the JSON body of a request."""
    body = bytearray()
    async for chunk in _limited(request, MAX_JSON, "a JSON body"):
        body += chunk
    try:
        return orjson.loads(bytes(body).removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None


async def save_upload(request: Request, data_dir: DataDir, limit: int = MAX_UPLOAD) -> str:
    """Stream a request body to disk."""
    upload_id = str(uuid.uuid4())
    part = data_dir.uploads / f".{upload_id}"
    size, buffer = 0, bytearray()
    try:
        with part.open("wb") as file:
            async for chunk in _limited(request, limit, "an upload"):
                size += len(chunk)
                buffer += chunk
                if len(buffer) >= _WRITE:
                    await run_in_threadpool(file.write, buffer)
                    buffer = bytearray()
            await run_in_threadpool(file.write, buffer)
            await run_in_threadpool(_sync, file)
        if not size:
            raise HTTPException(400, "the upload is empty: send the bytes of the media file as the body")
        await run_in_threadpool(put_in_place, part, data_dir.upload(upload_id))
    finally:
        part.unlink(missing_ok=True)
    return upload_id


def _sync(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


async def _limited(request: Request, limit: int, kind: str) -> AsyncIterator[bytes]:
    """Yield the body of a request; refuse it if its Content-Length, or its actual size, exceeds the limit."""
    chunks, size = request.stream(), 0
    too_large = HTTPException(413, f"{kind} may have at most {limit / 1e6:g} MB")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limit:
        if "expect" not in request.headers:
            await drain(chunks)
        raise too_large
    while True:
        try:
            with fail_after(STALLED):
                chunk = await anext(chunks, None)
        except TimeoutError:
            message = f"the body of the request stalled for {STALLED:g} s"
            raise HTTPException(408, message, {"Connection": "close"}) from None
        except ClientDisconnect:
            raise HTTPException(400, "the body ended before it was complete") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > limit:
            await drain(chunks)
            raise too_large
        yield chunk


def unknown_fields(
    request: str, body: object, allowed: Iterable[str], nested: Mapping[str, Iterable[str]] | None = None
) -> dict[str, str]:
    """Log the names of unknown fields, and return the response header that names them; empty if there are none.

    Names are percent-encoded because they may contain any character. Values are never shown.

    Example:
        >>> unknown_fields("transcript", {"audio_url": "...", "speaker labels": True}, ["audio_url"])
        {'X-Unknown-Fields': 'speaker%20labels'}
        >>> unknown_fields("token", {"expires_in": 60, "": 1}, ["expires_in"])
        {'X-Unknown-Fields': '(empty)'}
    """
    if not isinstance(body, Mapping):
        return {}
    allowed = set(allowed)
    names = [name for name in body if name not in allowed]
    for parent, fields in (nested or {}).items():
        entries = body.get(parent)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                names += [f"{parent}.{name}" for name in entry if name not in fields]
    names = list(dict.fromkeys(names))
    if not names:
        return {}
    # A header value must not end with a space, which an empty name would leave there.
    listed = [quote(name[:_MAX_CHARS], safe="") or "(empty)" for name in names[:_MAX_NAMES]]
    rest_count = [f"and-{len(names) - _MAX_NAMES}-more"] if len(names) > _MAX_NAMES else []
    text = ", ".join(listed + rest_count)
    _log.warning("%s: unknown fields were ignored: %s", request, text)
    return {HEADER: text}


@contextmanager
def reports_unknown_fields(header: Mapping[str, str]) -> Iterator[None]:
    """Add the header to error responses too: a missing field may be one with a misspelled name."""
    try:
        yield
    except HTTPException as error:
        raise HTTPException(error.status_code, error.detail, {**(error.headers or {}), **header}) from None


def validated(body: object, engine: str = engines.DEFAULT) -> dict[str, Any]:
    """Return the known fields of a request body in a normalized form, without nulls."""
    if not isinstance(body, Mapping):
        raise RequestRefused("the body must be a JSON object with at least audio_url")
    problems = options.problems(body)
    if body.get("audio_url") is None:
        problems.insert(0, "audio_url is required: an http or https URL of the media, or an upload_url of this server")
    fields = options.normalise(body)
    if fields.get("webhook_auth_header_name", "").lower() in _FRAMING:
        problems.append(
            f"webhook_auth_header_name may not be {fields['webhook_auth_header_name']}, which frames a request"
        )
    if fields.get("redact_pii_audio") and not fields.get("redact_pii"):
        problems.append("redact_pii_audio requires redact_pii, which finds the personal data to cover")
    boost = fields.get("word_boost", ())
    if len(boost) > BOOSTED or any(len(term) > BOOSTED_CHARS for term in boost):
        problems.append(
            f"word_boost may have at most {BOOSTED} words or phrases of at most {BOOSTED_CHARS} characters each"
        )
    problems += _language(fields, engine)
    if problems:
        raise RequestRefused("; ".join(problems))
    return fields


def _language(request: Mapping[str, Any], engine: str) -> list[str]:
    """Return the problems with the language options."""
    if request.get("language_detection"):
        # The language is known only later; results of analyses that do not support it have the status unavailable.
        return [] if engines.detects_language(engine) else [engines.no_detection(engine)]
    language = request.get("language_code")
    if language is None or language in analyses.LANGUAGES:
        return []
    if not engines.supports(language, engine):
        return [engines.refusal(language, engine)]
    english = [name for name in _ENGLISH if request.get(name)]
    return [f"The following models are not available in this language: {', '.join(english)}"] if english else []
