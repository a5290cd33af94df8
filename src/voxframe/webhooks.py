"""Webhook notifications, for any web framework or a notebook.

In a web application:

    if not webhooks.verify(request.headers, "X-Webhook-Secret", secret):
        abort(401)
    notification = webhooks.parse(request.body)

In a notebook:

    with webhooks.listen(client=client) as receiver:
        client.submit("talk.wav", **receiver.options())
        transcript = receiver.get(timeout=60).transcript()

A notification may arrive more than once and in any order; a receiver returns each one once.
"""

from __future__ import annotations

import hmac
import queue
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from voxframe.client import embedded
from voxframe.client.client import Client
from voxframe.client.response import as_text, parse_json
from voxframe.client.transcript import Transcript
from voxframe.errors import OptionError, PayloadError, ServiceError, ServiceTimeoutError, SettingsError
from voxframe.settings import Secret
from voxframe.validators import checked_timeout

__all__ = ["Headers", "Notification", "WebhookReceiver", "listen", "parse", "verify"]

#: Headers of any framework: a mapping, pairs of str or bytes, or a CGI or WSGI environment.
Headers = Mapping[Any, Any] | Iterable[tuple[Any, Any]]

_MAX_BODY_BYTES = 64 * 1024
_MAX_PENDING = 1000  # unread notifications; further ones are refused, and the service tries again later
_MAX_SEEN = 10_000  # notifications remembered to recognise duplicates
_MAX_CONNECTIONS = 32
_REQUEST_SECONDS = 10.0  # maximum time for a request to arrive
_SLICE_SECONDS = 0.1


@dataclass(frozen=True)
class Notification:
    """A notification of the service.

    Attributes:
        transcript_id: Id of the finished transcript; None for redacted audio, which has no id: use `params` instead.
        status: "completed", "error", "redacted_audio_ready", or another value of the service.
        redacted_audio_url: URL of the redacted audio, valid for a limited time.
        params: Query parameters of the webhook URL, which identify the job.
        raw: The whole body.
    """

    transcript_id: str | None
    status: str | None
    redacted_audio_url: str | None = field(default=None, repr=False)  # gives access to the recording
    params: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _client: Client | None = field(default=None, repr=False, compare=False)

    @property
    def failed(self) -> bool:
        """True if a job failed."""
        return self.status == "error"

    def transcript(self, client: Client | None = None) -> Transcript:
        """Fetch the transcript from the service, because the body itself is not authoritative.

        Args:
            client: A client of the service. None (default) uses the one passed to `webhooks.listen`.

        Raises:
            ServiceError: There is no transcript id or no client, or the request failed.
        """
        service = client or self._client
        if service is None:
            raise ServiceError("there is no client; use transcript(client) or webhooks.listen(client=client)")
        if self.transcript_id is None:
            raise ServiceError(
                f"a notification of {self.status!r} has no transcript id; add a parameter to the webhook URL of each "
                "job (receiver.options(job='...')) and read it from .params"
            )
        return service.transcript(self.transcript_id)


def parse(
    body: bytes | bytearray | str | Mapping[str, Any], *, params: Mapping[str, str] | None = None
) -> Notification:
    """Parse the body of a notification.

    Args:
        body: Body of the request, or the JSON object parsed by a framework.
        params: Query parameters of the request.

    Raises:
        PayloadError: It is not a JSON object, or has neither a transcript id nor a URL of redacted audio.

    Example:
        >>> parse(b'{"transcript_id": "a1", "status": "completed"}').transcript_id
        'a1'
    """
    raw: Any = body
    if not isinstance(body, Mapping):
        try:
            raw = parse_json(body.encode("utf-8", "replace") if isinstance(body, str) else bytes(memoryview(body)))
        except (ValueError, TypeError):
            raw = None
    if not isinstance(raw, Mapping):
        raise PayloadError("the body of a notification must be a JSON object; pass it as received")
    transcript_id, status, url = (as_text(raw.get(n)) for n in ("transcript_id", "status", "redacted_audio_url"))
    if not transcript_id and not url:
        raise PayloadError("the body has neither a transcript_id nor a redacted_audio_url; it is not a notification")
    return Notification(transcript_id or None, status, url or None, dict(params or {}), raw)


def verify(headers: Headers, name: str, value: str | Secret) -> bool:
    """Return True if a request has the secret header that its job was submitted with.

    The comparison takes constant time. If the header occurs twice, both values must match.

    Args:
        headers: Headers of any framework: `request.headers`, pairs of bytes from ASGI, `environ`, ...
        name: The `webhook_auth_header_name` of the job, in upper or lower case.
        value: The `webhook_auth_header_value` of the job.

    Raises:
        OptionError: The name or the value is not a string, for example an unset variable, or there are no headers.

    Example:
        >>> verify({"x-hook": "s3cret"}, "X-Hook", "s3cret")
        True
    """
    if not isinstance(value, str | Secret):
        raise OptionError(f"value must be the webhook_auth_header_value of the job as text, got {type(value).__name__}")
    if not isinstance(name, str):
        raise OptionError(f"name must be the webhook_auth_header_name of the job as text, got {type(name).__name__}")
    if isinstance(headers, str | bytes) or not (hasattr(headers, "items") or isinstance(headers, Iterable)):
        raise OptionError(f"headers must be a mapping or pairs of the headers, got {type(headers).__name__}")
    expected = (value.reveal() if isinstance(value, Secret) else value).encode()
    values = [_bytes(given) for given in _values(headers, name)]
    if not expected or not values:
        return False
    return all([hmac.compare_digest(given, expected) for given in values])  # noqa: C419 - constant time: compare all


def _values(headers: Headers, name: str) -> list[Any]:
    spellings = {name.lower(), "http_" + name.lower().replace("-", "_")}
    pairs = headers.items() if hasattr(headers, "items") else headers
    values: list[Any] = []
    for key, given in pairs:
        if _bytes(key).decode("latin-1").lower() in spellings:
            values += given if isinstance(given, list | tuple) else [given]
    return values


def _bytes(text: Any) -> bytes:
    return bytes(text) if isinstance(text, bytes | bytearray) else str(text).encode("utf-8", "surrogateescape")


class WebhookReceiver:
    """Receives webhook notifications on this machine; created by `webhooks.listen`.

    Iteration waits for the next notification without a limit.

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
            OptionError: The timeout is not a number of at least 0.
            ServiceTimeoutError: None arrived in time.
            ServiceError: The receiver is closed, and no notification is left.
        """
        checked_timeout(timeout)
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
            notification = parse(body, params=dict(parse_qsl(parts.query, keep_blank_values=True)))
        except PayloadError:
            return self._refuse(400)
        # The API only guarantees the header for finished transcripts; for redacted audio the secret URL is enough.
        may_lack_it = notification.transcript_id is None and not _values(headers, self._header[0])
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
