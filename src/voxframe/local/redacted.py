"""Redacted audio: whether it is ready, and its file at an address that is good for an hour and needs no key."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from voxframe.local.failed import JobFailed
from voxframe.local.jobs import Job
from voxframe.local.places import Places, sync_folder
from voxframe.option_values import LARGEST_INTEGER

#: First segment of such an address. The gate asks for no key there: the signature is one.
PREFIX = "/redacted-audio/"
#: For how long an address is good, in seconds.
GOOD_FOR = 3600
_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(mp3|wav)")


class NotToBeHad(ValueError):  # noqa: N818 - the answer to a request, not a fault
    """Why there is no redacted audio; the message is for whoever asked."""


@dataclass(frozen=True)
class RedactedAudio:
    """The redacted audio of one data directory.

    Attributes:
        places: The data directory.
        key: The service's key; addresses are signed with what is made of it, so that they outlive a restart.
    """

    places: Places
    key: str = field(repr=False)

    @staticmethod
    def make(
        places: Places,
        job_id: str,
        media: Path,
        spans: Sequence[Sequence[int]] | None,
        options: Mapping[str, Any],
    ) -> None:
        """Write the file of a job, so that it is there whole or not at all.

        Args:
            places: The data directory.
            job_id: The job.
            media: Its recording.
            spans: Stretches to cover, [start, end] in ms; None where nobody looked for any. What was not transcribed,
                before `audio_start_from` and after `audio_end_at`, is covered too.
            options: Its request.

        Raises:
            JobFailed: It cannot be made. Audio in which nothing was looked for is never given out as redacted.
        """
        from voxframe.local.redact_audio import redact_audio

        if spans is None:
            raise JobFailed("Redacted audio takes redact_pii: without it, nothing is looked for that could be covered.")
        kind = options.get("redact_pii_audio_quality") or "mp3"
        target = places.redacted(job_id, kind)
        part = target.with_name(f".{target.name}.part")
        redact_audio(media, [*spans, *_unheard(options)], part, kind)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
        sync_folder(target.parent)

    def file(self, job_id: str) -> Path | None:
        """The file, where it is there."""
        return next(
            (path for kind in _TYPES if (path := self.places.redacted(job_id, kind)).exists()),
            None,
        )

    def url(self, job_id: str, base_url: str) -> str | None:
        """A new address of the file, where it is there."""
        path = self.file(job_id)
        if path is None:
            return None
        name, until = job_id + path.suffix, str(int(time.time()) + GOOD_FOR)
        return f"{base_url}{PREFIX}{name}?{urlencode({'Expires': until, 'Signature': self._signature(name, until)})}"

    def at(self, name: str, until: str, signature: str) -> tuple[Path, str]:
        """The file at such an address, and its media type.

        Raises:
            PermissionError: It is not an address of ours, or no longer good; the message says which.
            FileNotFoundError: The file is gone.
        """
        match = _NAME.fullmatch(name)
        signed = hmac.compare_digest(signature.encode(), self._signature(name, until).encode())
        if not match or not signed:
            raise PermissionError("this address is not signed by this service; take it as it was given")
        if time.time() >= int(until):
            raise PermissionError("this address has expired; ask for redacted-audio once more to get a new one")
        path = self.places.redacted(match[1], match[2])
        if not path.exists():
            raise FileNotFoundError("this file is no longer there")
        return path, _TYPES[match[2]]

    def _signature(self, name: str, until: str) -> str:
        secret = hashlib.sha256(b"voxframe redacted audio " + self.key.encode()).digest()
        return hmac.new(secret, f"{name}\n{until}".encode(), "sha256").hexdigest()

    def view(self, job: Job, base_url: str) -> dict[str, Any]:
        """What the interface answers; empty while it is not ready.

        Raises:
            NotToBeHad: It was not asked for, its transcript failed, or it is there no more.
        """
        if job.deleted:
            raise NotToBeHad("redacted audio was deleted with its transcript")
        if not job.asked.get("redact_pii_audio"):
            raise NotToBeHad(
                "redacted audio was not asked for with this transcript; it takes redact_pii and redact_pii_audio"
            )
        if job.status == "error":
            raise NotToBeHad("there is no redacted audio: this transcript is an error; see its error")
        if job.status != "completed":
            return {}
        url = self.url(job.id, base_url)
        if url is None:
            raise NotToBeHad("the redacted audio has expired: its file is no longer kept")
        return {"redacted_audio_url": url, "status": "redacted_audio_ready"}


def _unheard(options: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The parts of a recording that were left out of the transcript, so that nothing was looked for in them."""
    start, end = options.get("audio_start_from"), options.get("audio_end_at")
    before = [(0, start)] if start else []
    return before if end is None else [*before, (end, LARGEST_INTEGER)]
