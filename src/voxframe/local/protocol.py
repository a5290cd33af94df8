"""HTTP as uvicorn speaks it, with an error object for what is no HTTP, and an end to heads that do not end."""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

# What a refused client still sends is read for so long: it would see a reset connection instead of the answer.
_DRAIN_SECONDS = 2.0
_SLICE = 4096


class Protocol(H11Protocol):
    """One connection.

    Attributes:
        head_seconds: From its beginning, or from the first byte of a later request, to the end of a request's head.
    """

    head_seconds = 30.0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._late: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.head_seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take what was sent. A head is as late as it is, however often another byte of it comes."""
        # In slices: h11 counts a head only while it is incomplete, and what arrives at once would be complete.
        while data and self.conn.their_state is h11.IDLE and not self._refused:
            super().data_received(data[:_SLICE])
            data = data[_SLICE:]
        now = self.transport.get_protocol()
        if data and now is not self and isinstance(now, asyncio.Protocol):  # a streaming client did not wait
            now.data_received(data)
        elif data and not self._refused:
            super().data_received(data)
        if self.conn.their_state is not h11.IDLE or self._refused or self.transport.is_closing():
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._forget()
        super().connection_lost(exc)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            return
        if self.conn.trailing_data[0]:
            self._refuse(408, f"the head of the request took longer than {self.head_seconds:g} s")
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has too long a head."""
        status = getattr(sys.exception(), "error_status_hint", 400)
        self._refuse(status, "the head of the request is too long" if status == 431 else msg)

    def _refuse(self, status: int, message: str) -> None:
        body = orjson.dumps({"error": message})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        reason = HTTPStatus(status).phrase.encode()
        for event in (h11.Response(status_code=status, headers=headers, reason=reason), h11.Data(body)):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
        self.transport.write_eof()
        self._refused = True
        self.loop.call_later(_DRAIN_SECONDS, self.transport.close)
