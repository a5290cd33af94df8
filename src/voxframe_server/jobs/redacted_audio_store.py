"""Redacted audio files, and signed URLs that are valid for an hour and need no key."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from voxframe._files import put_in_place, sync
from voxframe.validators import LARGEST_INTEGER
from voxframe_engine import JobFailed
from voxframe_server.data_dir import DataDir
from voxframe_server.jobs.job_store import JobRecord

#: Prefix of signed URLs, which need no key.
PREFIX = "/redacted-audio/"
#: Validity of a signed URL in seconds.
GOOD_FOR = 3600
_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(mp3|wav)")


class RedactedAudioUnavailable(ValueError):  # noqa: N818 - the result of a request, not a fault
    """There is no redacted audio; the message is for the client."""


@dataclass(frozen=True)
class RedactedAudioStore:
    """The redacted audio of one data directory.

    Attributes:
        key: The API key. URLs are signed with a key derived from it, so they stay valid after a restart.
    """

    data_dir: DataDir
    key: str = field(repr=False)

    @staticmethod
    def make(
        data_dir: DataDir, job_id: str, media: Path, spans: Sequence[Sequence[int]] | None, options: Mapping[str, Any]
    ) -> None:
        """Write the redacted audio of a job atomically.

        Args:
            spans: Spans to cover, [start, end] in ms; None if nothing was searched for. Audio before `audio_start_from`
                and after `audio_end_at` was not transcribed and is covered too.
        """
        from voxframe_engine.speech.audio import redact_audio

        if spans is None:
            raise JobFailed("Redacted audio requires redact_pii, which finds the personal data to cover.")
        kind = options.get("redact_pii_audio_quality") or "mp3"
        target = data_dir.redacted(job_id, kind)
        part = target.with_name(f".{target.name}.part")
        redact_audio(media, [*spans, *_not_transcribed(options)], part, kind)
        sync(part)
        put_in_place(part, target)

    def file(self, job_id: str) -> Path | None:
        """Return the file of a job, or None if there is none."""
        return next((path for kind in _TYPES if (path := self.data_dir.redacted(job_id, kind)).exists()), None)

    def url(self, job_id: str, base_url: str) -> str | None:
        """Return a new signed URL of the file, or None if there is none."""
        path = self.file(job_id)
        if path is None:
            return None
        name, until = job_id + path.suffix, str(int(time.time()) + GOOD_FOR)
        return f"{base_url}{PREFIX}{name}?{urlencode({'Expires': until, 'Signature': self._signature(name, until)})}"

    def at(self, name: str, until: str, signature: str) -> tuple[Path, str]:
        """Return the file of a signed URL and its media type."""
        match = _NAME.fullmatch(name)
        signed = hmac.compare_digest(signature.encode(), self._signature(name, until).encode())
        if not match or not signed:
            raise PermissionError("the signature of this URL is invalid; use the URL exactly as it was returned")
        if time.time() >= int(until):
            raise PermissionError("this URL has expired; request redacted-audio again for a new one")
        path = self.data_dir.redacted(match[1], match[2])
        if not path.exists():
            raise FileNotFoundError("this file no longer exists")
        return path, _TYPES[match[2]]

    def _signature(self, name: str, until: str) -> str:
        secret = hashlib.sha256(b"voxframe redacted audio " + self.key.encode()).digest()
        return hmac.new(secret, f"{name}\n{until}".encode(), "sha256").hexdigest()

    def view(self, job: JobRecord, base_url: str) -> dict[str, Any]:
        """Return the response of the redacted-audio endpoint; empty while the file is not ready."""
        if job.deleted:
            raise RedactedAudioUnavailable("redacted audio was deleted with its transcript")
        if not job.request.get("redact_pii_audio"):
            raise RedactedAudioUnavailable(
                "redacted audio was not requested for this transcript; it requires redact_pii and redact_pii_audio"
            )
        if job.status == "error":
            raise RedactedAudioUnavailable("there is no redacted audio because the transcript failed; see its error")
        if job.status != "completed":
            return {}
        url = self.url(job.id, base_url)
        if url is None:
            raise RedactedAudioUnavailable("the redacted audio has expired: its file is no longer kept")
        return {"redacted_audio_url": url, "status": "redacted_audio_ready"}


def _not_transcribed(options: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the spans of a recording that were not transcribed, and therefore not searched."""
    start, end = options.get("audio_start_from"), options.get("audio_end_at")
    before = [(0, start)] if start else []
    return before if end is None else [*before, (end, LARGEST_INTEGER)]
