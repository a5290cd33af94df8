"""Temporary tokens; each opens one streaming session before it expires."""

from __future__ import annotations

import hashlib
import secrets
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from voxframe.options import TOKEN_SECONDS
from voxframe.server.http.request_bodies import read_json, reports_unknown_fields, unknown_fields
from voxframe.server.http.server_state import json_response

_MAX_TOKENS = 10_000


class TokenStore:
    """The valid tokens, in memory only. Tokens of an earlier start of the server are invalid.

    Args:
        max_tokens: Maximum number of valid tokens.
    """

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
        """Use up a token.

        Returns:
            The time of its expiry, for `give_back`; None if the token is invalid.
        """
        # Looked up by its digest, so that the duration reveals nothing about the token.
        expiry = self._expiry.pop(_digest(token), None)
        return expiry if expiry is not None and time.monotonic() < expiry else None

    def give_back(self, token: str, expiry: float) -> None:
        """Make a token valid again because its session did not start."""
        self._expiry[_digest(token)] = expiry


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


async def create(request: Request) -> Response:
    """POST /v2/realtime/token: issue a token."""
    body = await read_json(request)
    unknown = unknown_fields("POST /v2/realtime/token", body, ("expires_in",))
    with reports_unknown_fields(unknown):
        return json_response({"token": _issue(request.app.state.tokens, body)}, headers=unknown)


def _issue(tokens: TokenStore, body: object) -> str:
    seconds = body.get("expires_in") if isinstance(body, dict) else None
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 10:
        seconds = int(seconds)
    low, high = TOKEN_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not low <= seconds <= high:
        raise HTTPException(400, f"expires_in must be a number of seconds from {low} to {high}")
    token = tokens.issue(seconds)
    if token is None:
        raise HTTPException(429, "too many unused tokens; use some of them, or wait until they expire")
    return token
