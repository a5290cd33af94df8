"""A small receiver of notifications, for a notebook or a script: on this machine only, bounded in every direction."""

from __future__ import annotations

import hmac
import queue
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from voxframe.errors import OptionError, PayloadError, ServiceError, ServiceTimeoutError, SettingsError
from voxframe.service import embedded
from voxframe.service.client import Client
from voxframe.service.webhook import Notification, carries, parse, verify
from voxframe.settings import Secret

_LARGEST_BODY = 64 * 1024
_WAITING = 1000  # notifications nobody has taken yet; more are refused, and the service tries again later
_REMEMBERED = 10_000  # notifications a repetition is recognised of
_AT_ONCE = 32  # connections
_SECONDS = 10.0  # for a request to arrive
_SLICE_SECONDS = 0.1


class Inbox:
    """Receives notifications; `webhooks.listen` makes one. Iterating waits for the next for as long as it takes.

    Attributes:
        url: Address to give as `webhook_url`. It holds a secret, so that nobody else finds it.
        refused: Requests that were refused so far: a wrong address or header, or no notification.
        repeated: Notifications that came once more, and were left out.
    """

    def __init__(self, port: int, header: tuple[str, str | Secret] | None, client: Client | None) -> None:
        self._header = header or ("X-Webhook-Secret", Secret(secrets.token_urlsafe(32)))
        self._client = client
        self._path = f"/{secrets.token_urlsafe(24)}"
        self._notifications: queue.Queue[Notification] = queue.Queue(_WAITING)
        self._seen: OrderedDict[tuple[Any, ...], None] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self.refused = 0
        self.repeated = 0
        try:
            self._server = _Server(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError, TypeError) as error:
            raise SettingsError(f"cannot listen at port {port!r} ({error}); port=0 takes a free one") from error
        self._server.inbox = self
        self.url = f"http://127.0.0.1:{self._server.server_port}{self._path}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="voxframe-webhooks", daemon=True
        )
        self._thread.start()

    def options(self, **params: str) -> dict[str, Any]:
        """Options for a job whose notifications are to come here: address, and header with its secret value.

        Args:
            **params: Added to the address; they come back in the notification's `params`, which tells jobs apart.

        Example:
            >>> job = client.submit(audio, **inbox.options(job="17"))       # doctest: +SKIP
        """
        embedded.allow_webhooks(
            self.url
        )  # the service connects to no loopback address unless told so by who started it
        name, value = self._header
        return {
            "webhook_url": self.url + (f"?{urlencode(params)}" if params else ""),
            "webhook_auth_header_name": name,
            "webhook_auth_header_value": value.reveal() if isinstance(value, Secret) else value,
        }

    def get(self, timeout: float | None = None) -> Notification:
        """The next notification.

        Args:
            timeout: Seconds to wait; None waits as long as it takes.

        Raises:
            ServiceTimeoutError: None came in time.
            ServiceError: The inbox is closed, and holds no more.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_SECONDS if until is None else min(_SLICE_SECONDS, until - time.monotonic())
            try:
                return self._notifications.get(timeout=max(0.0, left)) if left > 0 else self._notifications.get_nowait()
            except queue.Empty:
                pass
            if self._closed:
                raise ServiceError("the inbox is closed; take notifications inside its `with` block")
            if until is not None and time.monotonic() >= until:
                raise ServiceTimeoutError(
                    f"no notification in {timeout:g} s; the service may still be at work, or unable to reach "
                    f"{self._server_at}"
                )

    def __iter__(self) -> Iterator[Notification]:
        while not self._closed:
            try:
                yield self.get()
            except ServiceError:
                if self._closed:
                    return
                raise

    def close(self) -> None:
        """Listen no more. What has come can still be taken."""
        if not self._closed:
            self._closed = True
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "listening"
        return f"Inbox({state} at {self._server_at}, {self._notifications.qsize()} waiting)"

    @property
    def _server_at(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def _answer(self, target: str, headers: Any, body: bytes) -> int:
        """HTTP status for a request, after taking what it brings."""
        parts = urlsplit(target)
        if not hmac.compare_digest(parts.path.encode("utf-8", "replace"), self._path.encode()):
            return self._refuse(404)
        try:
            notification = parse(body, params=dict(parse_qsl(parts.query)))
        except PayloadError:
            return self._refuse(400)
        # The interface promises the header for finished transcripts only; redacted audio has the secret address.
        may_lack_it = notification.transcript_id is None and not carries(headers, self._header[0])
        if not may_lack_it and not verify(headers, *self._header):
            return self._refuse(401)
        return self._take(notification)

    def _take(self, notification: Notification) -> int:
        # An address is signed anew for each delivery; what comes before its query stays.
        audio = (notification.redacted_audio_url or "").partition("?")[0]
        sign = (notification.transcript_id, notification.status, audio, tuple(sorted(notification.params.items())))
        with self._lock:
            if sign in self._seen:
                self.repeated += 1
                return 200
            try:
                self._notifications.put_nowait(replace(notification, _client=self._client))
            except queue.Full:
                return 503
            self._seen[sign] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return 200

    def _refuse(self, status: int) -> int:
        with self._lock:
            self.refused += 1
        return status


def listen(port: int = 0, header: tuple[str, str | Secret] | None = None, client: Client | None = None) -> Inbox:
    """Listen for notifications on this machine.

    Only a service that can reach this machine's loopback address can deliver here: the embedded one, or one behind a
    tunnel that ends here.

    Args:
        port: Port to listen at; 0 takes a free one.
        header: Name and value of the header that notifications must carry; default: a name and a new secret value.
            `inbox.options()` has them for a job.
        client: Used by `notification.transcript()`.

    Raises:
        OptionError: The header is no pair of texts.
        SettingsError: The port cannot be had.

    Example:
        >>> with listen() as inbox:                                          # doctest: +SKIP
        ...     client.submit("talk.wav", **inbox.options())
        ...     inbox.get(timeout=60).transcript(client).text
    """
    if header is not None:
        pair = isinstance(header, tuple) and len(header) == 2
        if not pair or not isinstance(header[0], str) or not isinstance(header[1], str | Secret) or not all(header):
            raise OptionError("header is a pair of texts: header=('X-Webhook-Secret', '...')")
    return Inbox(port, header, client)


class _Server(ThreadingHTTPServer):
    inbox: Inbox
    daemon_threads = True
    request_queue_size = _AT_ONCE
    allow_reuse_address = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._slots = threading.BoundedSemaphore(_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # the service tries again later

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is the sender's to repeat; it is no news for a notebook."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "voxframe"
    sys_version = ""
    timeout = _SECONDS

    def setup(self) -> None:
        super().setup()
        # The timeout is for each read; a sender that gives a byte now and then is cut off too.
        self._limit = threading.Timer(_SECONDS, self._cut)
        self._limit.daemon = True
        self._limit.start()

    def finish(self) -> None:
        self._limit.cancel()
        super().finish()

    def _cut(self) -> None:
        with suppress(OSError):  # it is over already
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            self._reply(411)
        elif len(length) > 9 or int(length) > _LARGEST_BODY:
            self._reply(413)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                self._reply(self.server.inbox._answer(self.path, self.headers, body))

    def _reply(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Nothing is printed into a notebook."""
