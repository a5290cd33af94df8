"""A handle on one transcription job."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self

from voxframe.errors import TranscriptError
from voxframe.html_table import html_table
from voxframe.service.answer import Answer
from voxframe.service.lenient import as_float, as_text
from voxframe.service.listing import Item
from voxframe.service.views import Passages
from voxframe.service.words import Term, WordSearch

if TYPE_CHECKING:
    from voxframe.service.client import Client
    from voxframe.service.redacted import RedactedAudio

#: Statuses that no longer change. Any other, also one not in the interface, is waited on.
FINISHED = ("completed", "error")


class Transcript:
    """A handle on one job: its state, its result, and the views derived from it.

    A failed transcript is a value with `error`; `raise_for_status` is for those who want an exception. A handle made
    from an identifier alone asks the service when it is first looked at.

    Args:
        client: The client it came from.
        transcript_id: Its identifier.
        answer: The service's answer about it, where there is one already.

    Attributes:
        client: As given.
        id: As given.
        label: What the recording is called, where the job was submitted from here; progress shows it.

    Example:
        >>> transcript = client.transcribe("interview.flac", speaker_labels=True)  # doctest: +SKIP
        >>> transcript.text[:20]  # doctest: +SKIP
        'Good morning. Thank '
    """

    def __init__(self, client: Client, transcript_id: str, answer: Answer | None = None) -> None:
        self.client = client
        self.id = transcript_id
        self.label: str | None = None
        self._answer = answer
        self._listed: Item | None = None

    @property
    def known(self) -> bool:
        """Whether its state is known without asking the service."""
        return self._answer is not None or self._listed is not None

    @property
    def fetched(self) -> bool:
        """Whether the service's answer is at hand."""
        return self._answer is not None

    def note(self, item: Item) -> None:
        """Take its state from a list. The result is fetched when it is first looked at."""
        self._listed, self._answer = item, None

    @property
    def raw(self) -> bytes:
        """The service's answer as it came."""
        return self._known().content

    def json(self) -> dict[str, Any]:
        """The service's answer as a new dict."""
        return dict(self._known().data)

    @property
    def status(self) -> str | None:
        """queued, processing, completed, error, or whatever the service says."""
        if self._answer is None and self._listed is not None:
            return self._listed.status
        return as_text(self._known().data.get("status"))

    @property
    def error(self) -> str | None:
        """Why it failed; None where it did not."""
        if self._answer is None and self._listed is not None and self._listed.error:
            return self._listed.error
        return as_text(self._known().data.get("error"))

    @property
    def text(self) -> str | None:
        """The whole text; None until it is completed."""
        return as_text(self._known().data.get("text"))

    @property
    def audio_duration_s(self) -> float | None:
        """Duration of the media in seconds, where the service says it."""
        return as_float(self._known().data.get("audio_duration"))

    @property
    def done(self) -> bool:
        """Whether it is completed or has failed."""
        return self.status in FINISHED

    def raise_for_status(self) -> Self:
        """Return the handle, or raise where the transcript failed.

        Raises:
            TranscriptError: Its status is "error".
        """
        if self.status == "error":
            raise TranscriptError(self.id, self.error)
        return self

    def refresh(self, *, attempts: int | None = None) -> Self:
        """Ask the service for its present state.

        Args:
            attempts: Tries; None is the client's own number.
        """
        self._answer = self.client._view(self.id, attempts=attempts)
        return self

    def wait(self, *, timeout: float | None = None, progress: bool | None = None) -> Self:
        """Wait until it is completed or has failed; see `Client.wait`."""
        self.client.wait(self, timeout=timeout, progress=progress)
        return self

    async def wait_async(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the job's time, not the task's: it goes on at the service
        progress: bool | None = None,
    ) -> Self:
        """As `wait`, awaited."""
        await self.client.wait_async(self, timeout=timeout, progress=progress)
        return self

    def sentences(self) -> Passages:
        """Its sentences."""
        return self.client.sentences(self.id)

    def paragraphs(self) -> Passages:
        """Its paragraphs."""
        return self.client.paragraphs(self.id)

    def subtitles(
        self,
        format: Literal["srt", "vtt"] | None = None,  # noqa: A002 - the interface's word
        *,
        chars_per_caption: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Its captions as SRT or WebVTT text; see `Client.subtitles`."""
        return self.client.subtitles(self.id, format, chars_per_caption=chars_per_caption, path=path)

    def word_search(self, terms: Term | Iterable[Term]) -> WordSearch:
        """Where words and phrases occur in it; see `Client.word_search`."""
        return self.client.word_search(self.id, terms)

    def redacted_audio(self, *, timeout: float | None = None, progress: bool | None = None) -> RedactedAudio:
        """Its recording with personal data beeped out; see `Client.redacted_audio`."""
        return self.client.redacted_audio(self.id, timeout=timeout, progress=progress)

    def delete(self) -> Self:
        """Delete it at the service; the handle then holds what is left: an emptied transcript."""
        self._answer = self.client.delete(self.id)._known()
        return self

    def _known(self) -> Answer:
        if self._answer is None:
            self.refresh()
        assert self._answer is not None
        return self._answer

    def __repr__(self) -> str:
        shown = f", status={self.status!r}" if self.known else ""
        if self.known and self.status == "error":
            shown += f", error={self.error!r}"
        if self._answer is not None and self.audio_duration_s is not None:
            shown += f", audio_duration_s={self.audio_duration_s:g}"
        return f"Transcript({self.id!r}{shown})"

    def _repr_html_(self) -> str:
        """A small table for a notebook; nothing of the service's text is taken for markup."""
        rows = {"transcript": self.id}
        if self._answer is not None:
            duration = self.audio_duration_s
            rows |= {
                "status": self.status or "",
                "error": self.error or "",
                "duration": "" if duration is None else f"{duration:g} s",
                "text": self.text or "",
            }
        return html_table(rows)
