"""Redacted audio: the copy of a recording with personal data beeped out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from voxframe.errors import BadRequestError
from voxframe.service import waiting
from voxframe.service.answer import Answer
from voxframe.service.download import download, refuse_expired
from voxframe.service.endpoints import Endpoints, check_directory, transcript_path
from voxframe.service.lenient import as_path, as_text
from voxframe.service.progress import Progress

if TYPE_CHECKING:
    from voxframe.service.http import Transport


@dataclass(frozen=True)
class RedactedAudio:
    """A redacted copy that is ready.

    Attributes:
        transcript_id: Identifier of the transcript.
        url: Where it is for a while; whoever has the address can listen.
        status: "redacted_audio_ready", or whatever the service says.
        raw: The service's answer as it came.
    """

    transcript_id: str
    url: str = field(repr=False)
    status: str | None
    raw: bytes = field(repr=False)
    _http: Transport = field(repr=False, compare=False)

    def save(self, path: str | os.PathLike[str] | None = None, *, progress: bool | None = None) -> Path:
        """Download it. A broken download goes on where it broke off, also in a later call.

        Args:
            path: File to write, or a directory; default: a file named after the transcript in the working directory.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            The file.

        Raises:
            OptionError: The directory does not exist.
            NotFoundError: The address has expired; ask again with `Client.redacted_audio`.
            ServiceError: It could not be fetched.
        """
        refuse_expired(self.url)
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in self.transcript_id)
        suffix = Path(urlsplit(self.url).path).suffix.lower()
        named = f"{name}.redacted{suffix if suffix in ('.mp3', '.wav') else ''}"
        target = as_path(path or ".")
        target = target / named if target.is_dir() else target
        check_directory(target)
        with Progress(f"downloading {target.name}", 0, show=progress) as shown:
            download(self._http, self.url, target, shown)
        return target

    async def save_async(self, path: str | os.PathLike[str] | None = None, *, progress: bool | None = None) -> Path:
        """As `save`, awaited."""
        return await self._http.workers.call(self.save, path, progress=progress)


class RedactedAudioEndpoint(Endpoints):
    """The endpoint of redacted audio."""

    def redacted_audio(
        self, transcript_id: str, *, timeout: float | None = None, progress: bool | None = None
    ) -> RedactedAudio:
        """The redacted copy of a recording, waited for where it is still made.

        Args:
            transcript_id: A transcript made with `redact_pii=True, redact_pii_audio=True`.
            timeout: Seconds to wait; None waits as long as it takes.
            progress: Whether to show the wait; None shows it where somebody looks, past a second.

        Raises:
            BadRequestError: It was not asked for, or has expired.
            ServiceTimeoutError: It was not ready in time.
            ServiceError: The service, or the way to it, failed.

        Example:
            >>> client.redacted_audio(transcript.id).save("interview.mp3")  # doctest: +SKIP
            PosixPath('interview.mp3')
        """
        found: list[RedactedAudio] = []
        waiting.run(self._redacted_steps(transcript_id, found.append, timeout, progress), self._http.sleep)
        return found[0]

    def _redacted_steps(
        self,
        transcript_id: str,
        found: Callable[[RedactedAudio], object],
        timeout: float | None,
        show: bool | None,
    ) -> waiting.Steps:
        patience = waiting.Patience(timeout, local=self._local)
        path = f"{transcript_path(transcript_id)}/redacted-audio"
        answers: list[Answer] = []

        def look() -> None:
            try:
                answers.append(self._http.request("GET", path, accept="text", attempts=1 if answers else None))
            except BadRequestError as error:
                error.add_note(
                    "Redacted audio is made where a job has redact_pii=True and redact_pii_audio=True, and is kept for "
                    "a while only."
                )
                raise

        with Progress(f"redacting {transcript_id[:8]}", show=show) as progress:
            yield look
            while answers[-1].status == 202:
                what = f"the redacted audio of transcript {transcript_id} is not ready"
                yield patience.pause(waiting.interval(patience.waited_s, local=self._local), what)
                yield patience.tolerate(look)
                progress.say("the service does not answer" if patience.away else "")
        ready = answers[-1]
        url = as_text(ready.data.get("redacted_audio_url"))
        if not url:
            raise ready.unreadable()
        found(RedactedAudio(transcript_id, url, as_text(ready.data.get("status")), ready.content, self._http))
