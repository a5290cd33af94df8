"""So many requests in a window of a minute, told in headers, and 429 for those beyond."""

from __future__ import annotations

import math
import threading
import time
from typing import NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voxframe.local.gate import drain, failure

#: Length of the window, in seconds.
WINDOW = 60.0


class Turn(NamedTuple):
    """What a request got.

    Attributes:
        allowed: Whether it may go on.
        remaining: Requests left in the window.
        reset: Seconds until all are left again.
    """

    allowed: bool
    remaining: int
    reset: int


class Window:
    """Counts requests. A window begins with its first one.

    Args:
        limit: Requests allowed in it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._end = 0.0
        self._used = 0

    def take(self) -> Turn:
        """Take one, if one is left."""
        with self._lock:
            now = time.monotonic()
            if now >= self._end:
                self._end, self._used = now + WINDOW, 0
            allowed = self._used < self.limit
            self._used += allowed
            return Turn(allowed, self.limit - self._used, math.ceil(self._end - now))


class RateLimit:
    """ASGI middleware that lets a request through or answers 429. It adds the headers of the limit to every answer.

    Args:
        app: What lies behind.
        limit: Requests a minute; 0 is no limit, and no headers.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._window = Window(limit) if limit else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if self._window is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        turn = self._window.take()
        told = {
            "X-RateLimit-Limit": str(self._window.limit),
            "X-RateLimit-Remaining": str(turn.remaining),
            "X-RateLimit-Reset": str(turn.reset),
        }

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(told)
            await send(message)

        if turn.allowed:
            await self._app(scope, receive, with_headers)
            return
        await drain(Request(scope, receive).stream())
        refusal = failure(
            429,
            f"Too Many Requests: {self._window.limit} a minute are allowed here; the next ones in {turn.reset} s",
            {"Retry-After": str(turn.reset)},
        )
        await refusal(scope, receive, with_headers)
