"""Webhook notifications: parse the body and verify the secret header."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from voxframe.client.client import Client
from voxframe.client.response import as_text, parse_json
from voxframe.client.transcript import Transcript
from voxframe.errors import OptionError, PayloadError, ServiceError
from voxframe.settings import Secret

#: Headers of any framework: a mapping, pairs of str or bytes, or a CGI or WSGI environment.
Headers = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


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
        found = client or self._client
        if found is None:
            raise ServiceError("there is no client; use transcript(client) or webhooks.listen(client=client)")
        if self.transcript_id is None:
            raise ServiceError(
                f"a notification of {self.status!r} has no transcript id; add a parameter to the webhook URL of each "
                "job (receiver.options(job='...')) and read it from .params"
            )
        return found.transcript(self.transcript_id)


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
        OptionError: The value is not a string, for example an unset variable.

    Example:
        >>> verify({"x-hook": "s3cret"}, "X-Hook", "s3cret")
        True
    """
    if not isinstance(value, str | Secret):
        raise OptionError(f"value must be the webhook_auth_header_value of the job as text, got {type(value).__name__}")
    expected = (value.reveal() if isinstance(value, Secret) else value).encode()
    found = [_bytes(given) for given in _values(headers, name)]
    if not expected or not found:
        return False
    return all([hmac.compare_digest(given, expected) for given in found])  # noqa: C419 - constant time: compare all


def carries(headers: Headers, name: str) -> bool:
    """Return True if a request has the header, whatever its value."""
    return bool(_values(headers, name))


def _values(headers: Headers, name: str) -> list[Any]:
    wanted = {name.lower(), "http_" + name.lower().replace("-", "_")}
    pairs = headers.items() if hasattr(headers, "items") else headers
    found: list[Any] = []
    for key, given in pairs:
        if _bytes(key).decode("latin-1").lower() in wanted:
            found += given if isinstance(given, list | tuple) else [given]
    return found


def _bytes(text: Any) -> bytes:
    return bytes(text) if isinstance(text, bytes | bytearray) else str(text).encode("utf-8", "surrogateescape")
