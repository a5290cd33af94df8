"""ASGI middleware: access control, activity, error responses, and the rate limit of the language-model endpoints."""

from __future__ import annotations

import hmac
import logging
import math
import time
from collections.abc import AsyncIterable
from contextlib import suppress
from http import HTTPStatus

from anyio import move_on_after
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voxframe_server.jobs import DatabaseBusyError
from voxframe_server.jobs.data_dir import is_disk_full

_log = logging.getLogger("voxframe_server")

#: Length of the rate limit's window in seconds.
RATE_LIMIT_WINDOW = 60.0
#: Host names of a server bound to loopback. Another name that resolves to it is a DNS rebinding attack.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# A refused body is read up to these limits before the response; a client still sending would see a connection reset.
_DRAIN_BYTES, _DRAIN_SECONDS = 64 << 20, 5.0
_RETRY_SECONDS = 2


def host_name(host: str) -> str:
    """Return the name in a Host header in lower case, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def error_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error object as a response."""
    return JSONResponse({"error": message}, status, headers)


async def drain(chunks: AsyncIterable[bytes]) -> None:
    """Read and discard the rest of a request body, within limits."""
    size = 0
    with move_on_after(_DRAIN_SECONDS), suppress(ClientDisconnect):
        async for chunk in chunks:
            size += len(chunk)
            if size > _DRAIN_BYTES:
                return


class ActivityMonitor:
    """ASGI middleware that knows for how long no request and no streaming session was open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = 0
        self._last = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            self.touch()

    def touch(self) -> None:
        """Count the idle time from now."""
        self._last = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 while one is open."""
        return 0.0 if self._open else time.monotonic() - self._last


class AuthMiddleware:
    """ASGI middleware that refuses requests with status 400, 401 or 403.

    Args:
        signed: Prefix of paths that need no key because the endpoint checks a signature.
        keyless: Paths that need no key because their content is public.
    """

    def __init__(
        self,
        app: ASGIApp,
        key: str,
        hosts: frozenset[str] | None = LOOPBACK,
        signed: str | None = None,
        keyless: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._key = key.encode()
        self._hosts = hosts
        self._signed = signed
        self._keyless = keyless

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refusal = None
        if scope["type"] == "http":
            refusal = self._refusal(scope)
        elif scope["type"] == "websocket":  # its endpoint checks the key or a temporary token
            refusal = self._foreign(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await refusal(scope, receive, send)
            return
        request = Request(scope, receive)
        if "expect" not in request.headers:  # a client that sends `Expect` waits for the response first
            await drain(request.stream())
        await refusal(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        foreign = self._foreign(scope)
        path = scope["path"]
        if foreign is not None or path in self._keyless or (self._signed is not None and path.startswith(self._signed)):
            return foreign
        if not hmac.compare_digest(dict(scope["headers"]).get(b"authorization", b""), self._key):
            return error_response(401, "Authentication error, API token missing/invalid")
        return None

    def _foreign(self, scope: Scope) -> JSONResponse | None:
        """Return the refusal of a request with another host name or from a page of another origin, or None."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not host_name(host):
            return error_response(400, "a request needs a Host header")
        if self._hosts is not None and host_name(host) not in self._hosts:
            allowed = ", ".join(sorted(self._hosts))
            return error_response(
                400, f"the Host header must name one of {allowed}; this server accepts no other host name"
            )
        origin = headers.get(b"origin")
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        if origin is not None and origin.decode("latin-1") != f"{scheme}://{host}":
            return error_response(403, "a web page of another origin may not use this server")
        return None


class ErrorMiddleware:
    """Turns exceptions into JSON error responses and keeps the connection open.

    Starlette's own error middleware raises the exception again after its response. The server then closes the
    connection, and the next request of a client that reuses it is lost. Errors that a library answers in plain text,
    such as an invalid range, become error objects too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and send an error response if that fails."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = replaced = False

        async def watched(message: Message) -> None:
            nonlocal started, replaced
            if message["type"] == "http.response.start":
                started = True
                replaced = _is_plain_error(message)
                if replaced:
                    await _as_error_object(message)(scope, receive, send)
            if not replaced:
                await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if started:
                raise
            # The raw path: the decoded one may contain a line break and forge a line of the log.
            request = f"{scope['method']} {scope['raw_path'].decode('latin-1')}"
            await _response_to(error, request)(scope, receive, send)


def _response_to(error: Exception, request: str) -> ASGIApp:
    """Log an exception and return its response."""
    if isinstance(error, DatabaseBusyError):
        _log.warning("%s: 503, the database is locked", request)
        headers = {"Retry-After": str(_RETRY_SECONDS)}
        return error_response(503, f"the server's database is locked; try again in {_RETRY_SECONDS} s", headers)
    if is_disk_full(error):
        _log.error("%s: 507, the disk is full", request)
        return error_response(507, "the server's disk is full, and nothing was changed; free some space and try again")
    _log.error("%s failed", request, exc_info=error)
    return error_response(500, "Server error: the request failed in the embedded server; see its log for the reason")


def _is_plain_error(start: Message) -> bool:
    content_type = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] >= 400 and not content_type.startswith("application/json")


def _as_error_object(start: Message) -> ASGIApp:
    headers = {
        name: value
        for name, value in Headers(raw=start["headers"]).items()
        if name not in ("content-length", "content-type")
    }
    return error_response(start["status"], HTTPStatus(start["status"]).phrase, headers)


class RateLimitMiddleware:
    """Sends a 429 response beyond the limit, and adds the rate-limit headers to every response.

    A window starts with its first request.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._used, self._end = 0, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if not self._limit or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        now = time.monotonic()
        if now >= self._end:
            self._used, self._end = 0, now + RATE_LIMIT_WINDOW
        is_allowed = self._used < self._limit
        self._used += is_allowed
        reset = str(math.ceil(self._end - now))
        headers = {
            "X-RateLimit-Limit": str(self._limit),
            "X-RateLimit-Remaining": str(self._limit - self._used),
            "X-RateLimit-Reset": reset,
        }

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        if is_allowed:
            await self._app(scope, receive, with_headers)
            return
        await drain(Request(scope, receive).stream())
        refusal = error_response(
            429,
            f"Too Many Requests: at most {self._limit} per minute are allowed; try again in {reset} s",
            {"Retry-After": reset},
        )
        await refusal(scope, receive, with_headers)
