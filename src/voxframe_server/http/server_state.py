"""State and functions shared by the endpoints of all modules."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from voxframe_server.data_dir import DataDir, upload_id
from voxframe_server.http.middleware import host_name
from voxframe_server.jobs.job_store import JobRecord, JobStore
from voxframe_server.jobs.redacted_audio_store import RedactedAudioStore
from voxframe_server.jobs.scheduler import JobScheduler

UNKNOWN_ID = "Transcript lookup error, transcript id not found"
_MAX_TOKENS = 10_000


class TokenStore:
    """The valid tokens, in memory only. Tokens of an earlier start of the server are invalid."""

    def __init__(self, max_tokens: int = _MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._expiry: dict[bytes, float] = {}

    def issue(self, seconds: float) -> str | None:
        """Return a new token that is valid for `seconds`, or None if there are too many tokens."""
        now = time.monotonic()
        if len(self._expiry) >= self._max_tokens:
            self._expiry = {token: expiry for token, expiry in self._expiry.items() if expiry > now}
            if len(self._expiry) >= self._max_tokens:
                return None
        token = secrets.token_hex(32)
        self._expiry[_digest(token)] = now + seconds
        return token

    def take(self, token: str) -> float | None:
        """Use up a token."""
        # Looked up by its digest, so that the duration reveals nothing about the token.
        expiry = self._expiry.pop(_digest(token), None)
        return expiry if expiry is not None and time.monotonic() < expiry else None

    def give_back(self, token: str, expiry: float) -> None:
        """Make a token valid again because its session did not start."""
        self._expiry[_digest(token)] = expiry


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


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
    """Return one route for all methods of a path, so that a 405 response names all of them.

    Args:
        **handlers: A sync or async function of the request for each method, in lower case. GET includes HEAD.

    Example:
        >>> sorted(route("/a", get=print, delete=print).methods)
        ['DELETE', 'GET', 'HEAD']
    """

    async def endpoint(request: Request) -> Response:
        handler = handlers["get" if request.method == "HEAD" else request.method.lower()]
        work = handler(request) if iscoroutinefunction(handler) else run_in_threadpool(handler, request)
        response: Response = await work
        return response

    return Route(path, endpoint, methods=list(handlers))
