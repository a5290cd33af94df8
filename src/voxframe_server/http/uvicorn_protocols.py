"""Uvicorn protocols for HTTP and WebSocket that limit slow and abusive clients."""

from __future__ import annotations

import asyncio
import logging
import sys
from http import HTTPStatus
from typing import Any

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

_log = logging.getLogger("voxframe_server")

# Data of a refused client is read for this long; it would see a connection reset instead of the response.
_DRAIN_SECONDS = 2.0
#: Maximum number of bytes parsed before other connections are served. Short frames cost as much as long ones.
_SLICE = 4096
_WINDOW_SECONDS = 1.0


class HTTPProtocol(H11Protocol):
    """An HTTP connection that answers malformed requests with a JSON error and limits the time to read headers.

    Attributes:
        head_seconds: Maximum time to receive the headers of a request, from the start of the connection, or from the
            first byte of a later request.
    """

    head_seconds = 30.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.head_seconds, self._time_out)

    def data_received(self, data: bytes) -> None:
        """Parse received data. Further bytes of a header do not extend its time limit."""
        # In slices, because h11 limits the size of a header only while it is incomplete.
        while data and self.conn.their_state is h11.IDLE and not self._refused:
            super().data_received(data[:_SLICE])
            data = data[_SLICE:]
        now = self.transport.get_protocol()
        if now is not self and isinstance(now, asyncio.Protocol):  # early data of a WebSocket client
            now.data_received(self.conn.trailing_data[0] + data)
        elif data and not self._refused:
            super().data_received(data)
        if self.conn.their_state is not h11.IDLE or self._refused or self.transport.is_closing():
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self._time_out)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        self._deadline = None
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            return
        if self.conn.trailing_data[0]:
            self._refuse(408, f"the headers of the request took longer than {self.head_seconds:g} s")
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP, or one with too large headers."""
        status = getattr(sys.exception(), "error_status_hint", 400)
        self._refuse(status, "the headers of the request are too large" if status == 431 else msg)

    def _refuse(self, status: int, message: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # the response has begun, or is complete
            self.transport.close()
            return
        if self.cycle is not None and not self.cycle.response_complete:  # the handler must not respond too
            self.cycle.disconnected = True
            self.cycle.message_event.set()
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


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A streaming connection that closes if its client does not read, or sends floods of control frames.

    Attributes:
        most_frames: Maximum number of pings, pongs and continuation frames per second. Clients send a ping every few
            seconds.
    """

    unread_seconds = 10.0
    most_frames = 500

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unread: asyncio.TimerHandle | None = None
        self._window_end = 0.0
        self._frames = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report unread data at once."""
        super().connection_made(transport)
        # asyncio then calls pause_writing as soon as the client's system accepts no more data.
        self.transport.set_write_buffer_limits(0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._cancel_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the time limit for unread data."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.unread_seconds, self._abort)

    def resume_writing(self) -> None:
        """Cancel the time limit: all data was read."""
        self._cancel_unread()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse received data in slices."""
        for start in range(0, len(data), _SLICE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _SLICE])

    def handle_ping(self) -> None:
        """Answer a ping."""
        if self._counted():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Accept a pong, requested or not."""
        if self._counted():
            super().handle_pong(event)

    def handle_cont(self, event: Frame) -> None:
        """Accept a part of a message; it may be empty."""
        if self._counted():
            super().handle_cont(event)

    def _counted(self) -> bool:
        """Count a frame. Return False and close the connection if there were too many."""
        now = self.loop.time()
        if now >= self._window_end:
            self._window_end, self._frames = now + _WINDOW_SECONDS, 0
        self._frames += 1
        if self._frames <= self.most_frames:
            return True
        if not self.close_sent:
            _log.warning("stream: closed, the client sent more than %d control frames in a second", self.most_frames)
            self.conn.fail(1008, f"more than {self.most_frames} control frames in a second")
            self.handle_parser_exception()
        return False

    def _abort(self) -> None:
        self._unread = None
        _log.warning("stream: closed, the client has not read sent data for %g s", self.unread_seconds)
        self.transport.abort()

    def _cancel_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
