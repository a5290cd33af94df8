"""A small webhook receiver for notebooks and scripts, with limited resources. It listens on this machine only."""

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
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from voxframe.client import embedded
from voxframe.client.client import Client
from voxframe.client.notification import Notification, carries, parse, verify
from voxframe.errors import OptionError, PayloadError, ServiceError, ServiceTimeoutError, SettingsError
from voxframe.settings import Secret

_MAX_BODY_BYTES = 64 * 1024
_MAX_PENDING = 1000  # unread notifications; further ones are refused, and the service tries again later
_MAX_SEEN = 10_000  # notifications remembered to recognise duplicates
_MAX_CONNECTIONS = 32
_REQUEST_SECONDS = 10.0  # maximum time for a request to arrive
_SLICE_SECONDS = 0.1


class WebhookReceiver:
    """Receives webhook notifications; created by `webhooks.listen`. Iteration waits for the next one without a limit.

    Attributes:
        url: The `webhook_url` of jobs. It contains a secret that others cannot guess.
        refused: Number of requests refused because of a wrong path, a wrong header or an invalid body.
        repeated: Number of duplicate notifications that were dropped.
    """

    def __init__(self, port: int, header: tuple[str, str | Secret] | None, client: Client | None) -> None:
        self._header = header or ("X-Webhook-Secret", Secret(secrets.token_urlsafe(32)))
        self._client = client
        self._path = f"/{secrets.token_urlsafe(24)}"
        self._notifications: queue.Queue[Notification] = queue.Queue(_MAX_PENDING)
        self._seen: OrderedDict[tuple[Any, ...], None] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self.refused = 0
        self.repeated = 0
        try:
            self._server = _Server(("127.0.0.1", port), _WebhookHandler)
        except (OSError, OverflowError, TypeError) as error:
            raise SettingsError(f"cannot listen on port {port!r} ({error}); port=0 uses a free one") from error
        self._server.receiver = self
        self.url = f"http://127.0.0.1:{self._server.server_port}{self._path}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="voxframe-webhooks", daemon=True
        )
        self._thread.start()

    def options(self, **params: str) -> dict[str, Any]:
        """Return the webhook options of a job: the URL, and the name and secret value of the header.

        Args:
            **params: Parameters added to the URL. They are returned in `Notification.params` and identify the job.

        Example:
            >>> job = client.submit(audio, **receiver.options(job="17"))       # doctest: +SKIP
        """
        # An embedded server only connects to loopback addresses that this process allowed.
        embedded.allow_webhooks(self.url)
        name, value = self._header
        return {
            "webhook_url": self.url + (f"?{urlencode(params)}" if params else ""),
            "webhook_auth_header_name": name,
            "webhook_auth_header_value": value.reveal() if isinstance(value, Secret) else value,
        }

    def get(self, timeout: float | None = None) -> Notification:
        """Return the next notification.

        Args:
            timeout: Maximum seconds to wait; None has no limit.

        Raises:
            ServiceTimeoutError: None arrived in time.
            ServiceError: The receiver is closed, and no notification is left.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_SECONDS if until is None else min(_SLICE_SECONDS, until - time.monotonic())
            try:
                return self._notifications.get(timeout=max(0.0, left)) if left > 0 else self._notifications.get_nowait()
            except queue.Empty:
                pass
            if self._closed:
                raise ServiceError("the webhook receiver is closed; read notifications inside its `with` block")
            if until is not None and time.monotonic() >= until:
                raise ServiceTimeoutError(
                    f"no notification in {timeout:g} s; the job may not be finished, or the service cannot reach "
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
        """Stop listening. Notifications already received can still be read."""
        if not self._closed:
            self._closed = True
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "listening"
        return f"WebhookReceiver({state} at {self._server_at}, {self._notifications.qsize()} waiting)"

    @property
    def _server_at(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def _respond(self, target: str, headers: Any, body: bytes) -> int:
        """Process a request and return its HTTP status."""
        parts = urlsplit(target)
        if not hmac.compare_digest(parts.path.encode("utf-8", "replace"), self._path.encode()):
            return self._refuse(404)
        try:
            notification = parse(body, params=dict(parse_qsl(parts.query)))
        except PayloadError:
            return self._refuse(400)
        # The API only guarantees the header for finished transcripts; for redacted audio the secret URL is enough.
        may_lack_it = notification.transcript_id is None and not carries(headers, self._header[0])
        if not may_lack_it and not verify(headers, *self._header):
            return self._refuse(401)
        return self._take(notification)

    def _take(self, notification: Notification) -> int:
        # Each delivery has a new signature in the query of the URL; the rest of the URL is the same.
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
            if len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)
        return 200

    def _refuse(self, status: int) -> int:
        with self._lock:
            self.refused += 1
        return status


def listen(
    port: int = 0, header: tuple[str, str | Secret] | None = None, client: Client | None = None
) -> WebhookReceiver:
    """Listen for webhook notifications on this machine.

    The service must be able to reach the loopback address of this machine: the embedded server, or a service behind a
    tunnel that ends here.

    Args:
        port: Port to listen on; 0 uses a free one.
        header: Name and value of the header that notifications must have. None (default): a fixed name and a new
            secret. `receiver.options()` returns them for a job.
        client: Client used by `notification.transcript()`.

    Returns:
        The receiver, which is also a context manager.

    Raises:
        OptionError: The header is not a pair of strings.
        SettingsError: The port cannot be used.

    Example:
        >>> with listen() as receiver:                                          # doctest: +SKIP
        ...     client.submit("talk.wav", **receiver.options())
        ...     receiver.get(timeout=60).transcript(client).text
    """
    if header is not None:
        pair = isinstance(header, tuple) and len(header) == 2
        if not pair or not isinstance(header[0], str) or not isinstance(header[1], str | Secret) or not all(header):
            raise OptionError("header must be a pair of strings: header=('X-Webhook-Secret', '...')")
    return WebhookReceiver(port, header, client)


class _Server(ThreadingHTTPServer):
    receiver: WebhookReceiver
    daemon_threads = True
    request_queue_size = _MAX_CONNECTIONS
    allow_reuse_address = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)

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
        """Ignore broken connections: the sender repeats the request."""


class _WebhookHandler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "voxframe"
    sys_version = ""
    timeout = _REQUEST_SECONDS

    def setup(self) -> None:
        super().setup()
        # `timeout` only limits each read; this also cuts off a sender that sends a byte now and then.
        self._limit = threading.Timer(_REQUEST_SECONDS, self._cut)
        self._limit.daemon = True
        self._limit.start()

    def finish(self) -> None:
        self._limit.cancel()
        super().finish()

    def _cut(self) -> None:
        with suppress(OSError):  # already closed
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            self._reply(411)
        elif len(length) > 9 or int(length) > _MAX_BODY_BYTES:
            self._reply(413)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                self._reply(self.server.receiver._respond(self.path, self.headers, body))

    def _reply(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Print nothing into a notebook."""
