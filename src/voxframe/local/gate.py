"""Who may talk to the service: the right key, a host name that is ours, and no foreign web page."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterable
from contextlib import suppress

from anyio import move_on_after
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

#: Names under which a service that is bound to loopback answers. A foreign name that points here is a web page's trick.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# A refused body is read up to here before the answer: a client that still sends would see a reset connection instead.
_DRAIN_BYTES, _DRAIN_SECONDS = 64 << 20, 5.0


def host_name(host: str) -> str:
    """The name in a Host header, without the port.

    Example:
        >>> host_name("[::1]:8000"), host_name("LOCALHOST:8000")
        ('::1', 'localhost')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def failure(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error answer of the interface."""
    return JSONResponse({"error": message}, status, headers)


async def drain(chunks: AsyncIterable[bytes]) -> None:
    """Read the rest of a request body and forget it, within bounds."""
    size = 0
    with move_on_after(_DRAIN_SECONDS), suppress(ClientDisconnect):
        async for chunk in chunks:
            size += len(chunk)
            if size > _DRAIN_BYTES:
                return


class Gate:
    """ASGI middleware that lets a request through or answers 400, 401 or 403.

    Args:
        app: What lies behind.
        key: The key that every request must carry as its `Authorization` header.
        hosts: Host names the service answers under; None for any.
        signed: Paths with this beginning need no key: what lies behind checks a signature.
        keyless: Paths that need none either: what lies behind is nobody's secret.
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
        """Answer a request, or pass it on."""
        refusal = None
        if scope["type"] == "http":
            refusal = self._refusal(scope)
        elif scope["type"] == "websocket":  # it takes the key or a temporary token, and looks at that itself
            refusal = self._foreign(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await refusal(scope, receive, send)
            return
        request = Request(scope, receive)
        if "expect" not in request.headers:  # who asks before sending waits for the answer
            await drain(request.stream())
        await refusal(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        foreign = self._foreign(scope)
        path = scope["path"]
        if foreign is not None or path in self._keyless or (self._signed is not None and path.startswith(self._signed)):
            return foreign
        if not hmac.compare_digest(dict(scope["headers"]).get(b"authorization", b""), self._key):
            return failure(401, "Authentication error, API token missing/invalid")
        return None

    def _foreign(self, scope: Scope) -> JSONResponse | None:
        """The answer to a request under a foreign name, or from a foreign page."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not host_name(host):
            return failure(400, "a request needs a Host header")
        if self._hosts is not None and host_name(host) not in self._hosts:
            allowed = ", ".join(sorted(self._hosts))
            return failure(
                400, f"this service answers under the host names {allowed} only, not under the one in the Host header"
            )
        origin = headers.get(b"origin")
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        if origin is not None and origin.decode("latin-1") != f"{scheme}://{host}":
            return failure(403, "a web page of another origin may not use this service")
        return None
