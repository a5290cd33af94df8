"""Notifications of the service: what a request says, and whether it comes from the one who was told the secret."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from voxframe.errors import OptionError, PayloadError, ServiceError
from voxframe.service.answer import parse_json
from voxframe.service.client import Client
from voxframe.service.lenient import as_text
from voxframe.service.transcript import Transcript
from voxframe.settings import Secret

#: Headers as any framework gives them: a mapping, pairs of text or bytes, or a CGI or WSGI environment.
Headers = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


@dataclass(frozen=True)
class Notification:
    """What the service says has happened.

    Attributes:
        transcript_id: The transcript that is finished; None where the notification is of redacted audio, which names
            none: `params` then tells which job it belongs to.
        status: "completed", "error", "redacted_audio_ready", or whatever the service says.
        redacted_audio_url: Where the redacted audio is; the address works for a limited time.
        params: Parameters of the webhook address it came to: the service keeps those it was given.
        raw: The whole body.
    """

    transcript_id: str | None
    status: str | None
    redacted_audio_url: str | None = field(default=None, repr=False)  # whoever knows it can fetch the recording
    params: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _client: Client | None = field(default=None, repr=False, compare=False)

    @property
    def failed(self) -> bool:
        """Whether it says that a job failed."""
        return self.status == "error"

    def transcript(self, client: Client | None = None) -> Transcript:
        """The transcript it is about, fetched from the service. The body is a hint; what the service says counts.

        Args:
            client: A client of the service; default: the one `webhooks.listen` was given.

        Raises:
            ServiceError: It names no transcript, there is no client, or the service fails.
        """
        found = client or self._client
        if found is None:
            raise ServiceError("there is no client to ask; give transcript(client) or webhooks.listen(client=client)")
        if self.transcript_id is None:
            raise ServiceError(
                f"a notification of {self.status!r} names no transcript; tell jobs apart by a parameter in their "
                "webhook address (inbox.options(job='...')), which comes back in .params"
            )
        return found.transcript(self.transcript_id)


def parse(
    body: bytes | bytearray | str | Mapping[str, Any], *, params: Mapping[str, str] | None = None
) -> Notification:
    """What the body of a notification says.

    Args:
        body: The body of the request, or the JSON object a framework has made of it.
        params: Query parameters of the request.

    Raises:
        PayloadError: It is no JSON object, or tells neither of a transcript nor of redacted audio.

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
        raise PayloadError("the body of a notification is a JSON object, and this is none; pass it as it came")
    transcript_id, status, url = (as_text(raw.get(n)) for n in ("transcript_id", "status", "redacted_audio_url"))
    if not transcript_id and not url:
        raise PayloadError("the body names neither a transcript_id nor a redacted_audio_url; it is no notification")
    return Notification(transcript_id or None, status, url or None, dict(params or {}), raw)


def verify(headers: Headers, name: str, value: str | Secret) -> bool:
    """Whether a request carries the secret header that its job was submitted with.

    The comparison takes the same time wherever the values differ. A header that is there twice must be right twice.

    Args:
        headers: Of the request, as any framework gives them: `request.headers`, ASGI's pairs of bytes, `environ`, ...
        name: The `webhook_auth_header_name` of the job; its case does not matter.
        value: The `webhook_auth_header_value` of the job.

    Raises:
        OptionError: The value is no text, such as a variable that is not set.

    Example:
        >>> verify({"x-hook": "s3cret"}, "X-Hook", "s3cret")
        True
    """
    if not isinstance(value, str | Secret):
        raise OptionError(f"the secret is a {type(value).__name__}; give the webhook_auth_header_value of the job")
    expected = (value.reveal() if isinstance(value, Secret) else value).encode()
    found = [_bytes(given) for given in _values(headers, name)]
    if not expected or not found:
        return False
    return all([hmac.compare_digest(given, expected) for given in found])  # noqa: C419 - all of them, at any outcome


def carries(headers: Headers, name: str) -> bool:
    """Whether a request has the header at all."""
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
