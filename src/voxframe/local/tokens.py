"""Temporary tokens: each opens one streaming session, within its time."""

from __future__ import annotations

import hashlib
import secrets
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from voxframe.local.bodies import read_json
from voxframe.options import TOKEN_SECONDS

_MOST = 10_000


class Tokens:
    """The tokens that are good at the moment, in memory only: those of an earlier start of the service are not.

    Args:
        most: Tokens at a time.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._expiry: dict[bytes, float] = {}

    def issue(self, seconds: float) -> str | None:
        """A new token that is good for so long; None where there are too many."""
        now = time.monotonic()
        if len(self._expiry) >= self._most:
            self._expiry = {token: expiry for token, expiry in self._expiry.items() if expiry > now}
            if len(self._expiry) >= self._most:
                return None
        token = secrets.token_hex(32)
        self._expiry[_digest(token)] = now + seconds
        return token

    def redeem(self, token: str) -> bool:
        """Whether the token is good. It is not any more after this."""
        # Looked up by its digest: how long that takes says nothing about the token.
        expiry = self._expiry.pop(_digest(token), None)
        return expiry is not None and time.monotonic() < expiry


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


async def create(request: Request) -> Response:
    """POST /v2/realtime/token."""
    body = await read_json(request)
    seconds = body.get("expires_in") if isinstance(body, dict) else None
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 10:
        seconds = int(seconds)
    low, high = TOKEN_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not low <= seconds <= high:
        raise HTTPException(400, f"expires_in must be a number of seconds from {low} to {high}")
    tokens: Tokens = request.app.state.tokens
    token = tokens.issue(seconds)
    if token is None:
        raise HTTPException(429, "too many tokens are good at the moment; use them, or wait until they expire")
    return JSONResponse({"token": token})
