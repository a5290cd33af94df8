"""Whatever goes wrong, an error object says so."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voxframe.local.gate import failure

_log = logging.getLogger("voxframe.local")


class Faults:
    """ASGI middleware that answers 500 where the service itself fails, and keeps the connection.

    Starlette's own raises once more after its answer, at which the server drops the connection; the next request of a
    client that keeps it would be lost. Errors that a library answers in plain text, such as that for a range that
    cannot be had, become error objects too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer it if that fails."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = replaced = False

        async def watched(message: Message) -> None:
            nonlocal started, replaced
            if message["type"] == "http.response.start":
                started = True
                replaced = _is_foreign(message)
                if replaced:
                    await _own(message)(scope, receive, send)
            if not replaced:
                await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if started:
                raise
            # As it was sent: decoded, it may hold a line break, and with it a forged line of the log.
            _log.exception("%s %s failed", scope["method"], scope["raw_path"].decode("latin-1"))
            answer = failure(500, "Server error: the embedded service failed on this request; its log says why")
            await answer(scope, receive, send)


def _is_foreign(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] >= 400 and not kind.startswith("application/json")


def _own(start: Message) -> ASGIApp:
    headers = {
        name: value
        for name, value in Headers(raw=start["headers"]).items()
        if name not in ("content-length", "content-type")
    }
    return failure(start["status"], HTTPStatus(start["status"]).phrase, headers)
