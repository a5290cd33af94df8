"""Handles for transcription jobs, and the waits for them: poll one, or follow many through the list."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, Literal, Self

from voxframe._forwarding import forwarded
from voxframe._progress import Progress
from voxframe._text import html_table, masked
from voxframe.client import api, embedded, transfers
from voxframe.client.api import Term, TranscriptItem, TranscriptPassages, View, WordSearchMatches
from voxframe.client.async_bridge import PollState, Steps, run, run_async
from voxframe.client.http import Transport
from voxframe.client.response import HTTPResponse, as_float, as_text, clean
from voxframe.client.transfers import RedactedAudio
from voxframe.errors import ServiceError, TranscriptError
from voxframe.options import LIST_LIMIT

#: Statuses that no longer change. Any other status, known or unknown, means that the job is not finished.
FINISHED = ("completed", "error")


class Transcript:
    """A handle for a transcription job: its state, its result, and its exports.

    A failed transcript is a value with `error`; `raise_for_status` turns it into an exception. A handle made from an id
    fetches the transcript when an attribute is first read.

    Args:
        http: The transport of the client.
        transcript_id: The transcript id.
        response: A response about the transcript, if there is one.

    Attributes:
        id: The transcript id.
        label: Name of the recording for progress bars, if this client submitted the job.
        source: Path or URL of the recording as given, if this client submitted the job. None: media in memory.

    Example:
        >>> transcript = client.transcribe("interview.flac", speaker_labels=True)  # doctest: +SKIP
        >>> transcript.text[:20]  # doctest: +SKIP
        'Good morning. Thank '
    """

    def __init__(self, http: Transport, transcript_id: str, response: HTTPResponse | None = None) -> None:
        self.id = transcript_id
        self.label: str | None = None
        self.source: str | None = None
        self._http = http
        self._response = response
        self._listed: TranscriptItem | None = None

    @property
    def _has_state(self) -> bool:
        """True if the status is known without a request."""
        return self._response is not None or self._listed is not None

    @property
    def _has_result(self) -> bool:
        """True if the response is known without a request."""
        return self._response is not None

    def _update(self, item: TranscriptItem) -> None:
        """Take the status from an item of the list. The response is fetched when it is first read."""
        self._listed, self._response = item, None

    @property
    def raw(self) -> bytes:
        """The response of the service as received."""
        return self._known().content

    def json(self) -> dict[str, Any]:
        """Return the response of the service as a new dict. Changes to it do not change the handle."""
        return deepcopy(self._known().data)

    @property
    def status(self) -> str | None:
        """queued, processing, completed, error, or another value of the service."""
        if self._response is None and self._listed is not None:
            return self._listed.status
        return as_text(self._known().data.get("status"))

    @property
    def error(self) -> str | None:
        """Reason of a failure, or None."""
        if self._response is None and self._listed is not None and self._listed.error:
            return self._listed.error
        return as_text(self._known().data.get("error"))

    @property
    def text(self) -> str | None:
        """The text; None until the job is completed."""
        return as_text(self._known().data.get("text"))

    @property
    def summary(self) -> str | None:
        """The summary; None if none was requested, or until the job is completed."""
        return as_text(self._known().data.get("summary"))

    @property
    def words(self) -> list[dict[str, Any]]:
        """The words, as the service sent them. `voxframe.load_words` returns them as a DataFrame."""
        return self._items("words")

    @property
    def utterances(self) -> list[dict[str, Any]]:
        """The turns of the speakers. This list and those below are empty if the job has no such result."""
        return self._items("utterances")

    @property
    def chapters(self) -> list[dict[str, Any]]:
        """The chapters."""
        return self._items("chapters")

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The names, dates and other entities."""
        return self._items("entities")

    @property
    def sentiments(self) -> list[dict[str, Any]]:
        """The sentences with their sentiment."""
        return self._items("sentiment_analysis_results")

    @property
    def highlights(self) -> list[dict[str, Any]]:
        """The key phrases."""
        return self._items("auto_highlights_result", "results")

    @property
    def topics(self) -> list[dict[str, Any]]:
        """The passages with their topics."""
        return self._items("iab_categories_result", "results")

    @property
    def content_safety(self) -> list[dict[str, Any]]:
        """The passages about sensitive subjects."""
        return self._items("content_safety_labels", "results")

    @property
    def audio_duration_s(self) -> float | None:
        """Duration of the media in seconds, or None if unknown."""
        return as_float(self._known().data.get("audio_duration"))

    @property
    def done(self) -> bool:
        """True if the job is completed or has failed."""
        return self.status in FINISHED

    def raise_for_status(self) -> Self:
        """Return the handle, or raise an error if the job failed.

        Raises:
            TranscriptError: The status is "error".
        """
        if self.status == "error":
            raise TranscriptError(self.id, self.error)
        return self

    def refresh(self, *, attempts: int | None = None) -> Self:
        """Fetch the transcript again.

        Args:
            attempts: Maximum number of requests. None (default) uses the number of the client.
        """
        self._response = api.get_transcript(self._http, self.id, attempts=attempts)
        return self

    def fetch(self, view: View = "transcript") -> bytes:
        """Fetch the response of the service as bytes; see `Client.fetch`."""
        return api.get_transcript(self._http, self.id, view).content

    def _poll(self) -> None:
        """Fetch the current state with one request."""
        self.refresh(attempts=1)
        if self.status is None:
            raise self._known().unreadable()

    def wait(self, *, timeout: float | None = None, progress: bool | None = None) -> Self:
        """Wait until the job is completed or has failed; see `Client.wait`."""
        try:
            run(_steps_for_one(self, timeout, progress), self._http.sleep)
        except (KeyboardInterrupt, ServiceError) as error:
            error.add_note(_how_to_continue(self))
            raise
        return self

    @forwarded(wait)
    async def wait_async(self, *, timeout: float | None = None, progress: bool | None = None) -> Self:
        """Async version of `wait`."""
        try:
            await run_async(_steps_for_one(self, timeout, progress), self._http.workers)
        except ServiceError as error:
            error.add_note(_how_to_continue(self))
            raise
        return self

    def sentences(self) -> TranscriptPassages:
        """Fetch the sentences."""
        return api.get_passages(self._http, self.id, "sentences")

    def paragraphs(self) -> TranscriptPassages:
        """Fetch the paragraphs."""
        return api.get_passages(self._http, self.id, "paragraphs")

    def subtitles(
        self,
        format: Literal["srt", "vtt"] | None = None,  # noqa: A002 - the word of the interface
        *,
        chars_per_caption: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Fetch the captions as SRT or WebVTT; see `Client.subtitles`."""
        return api.get_subtitles(self._http, self.id, format, chars_per_caption, path)

    def word_search(self, terms: Term | Iterable[Term]) -> WordSearchMatches:
        """Search for words and phrases; see `Client.word_search`."""
        return api.search_words(self._http, self.id, terms)

    def redacted_audio(self, *, timeout: float | None = None, progress: bool | None = None) -> RedactedAudio:
        """Wait for the redacted audio; see `Client.redacted_audio`."""
        return transfers.redacted_audio(self._http, self.id, timeout, progress)

    def delete(self) -> Self:
        """Delete the transcript at the service. The handle then holds the emptied transcript.

        A copy in a corpus stays; `corpus.forget` deletes it.
        """
        self._response = api.delete_transcript(self._http, self.id)
        return self

    def _known(self) -> HTTPResponse:
        if self._response is None:
            self.refresh()
        assert self._response is not None
        return self._response

    def _items(self, *path: str) -> list[dict[str, Any]]:
        """Return the objects in the list at a path of the response; none if there is no list."""
        items: Any = self._known().data
        for name in path:
            items = items.get(name) if isinstance(items, dict) else None
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    def __repr__(self) -> str:
        state = f", status={self.status!r}" if self._has_state else ""
        if self._has_state and self.status == "error":
            state += f", error={masked(self.error or '')!r}"
        if self._response is not None and self.audio_duration_s is not None:
            state += f", audio_duration_s={self.audio_duration_s:g}"
        return f"Transcript({self.id!r}{state})"

    def _repr_html_(self) -> str:
        """Return a small table for a notebook. Text of the service is escaped."""
        rows = {"transcript": self.id}
        if self._response is not None:
            duration = self.audio_duration_s
            rows |= {
                "status": self.status or "",
                "error": masked(self.error or ""),
                "duration": "" if duration is None else f"{duration:g} s",
                "text": self.text or "",
            }
        return html_table(rows)


#: Up to this many jobs are polled one by one.
FEW = 3
#: Number of jobs missing from the list that are polled one by one in each round.
_UNLISTED_PER_ROUND = 10
#: Seconds between two requests for the position in the queue.
_QUEUE_S = 10.0


def _steps_for_one(transcript: Transcript, timeout: float | None, progress: bool | None) -> Steps:
    """Poll a job until it is finished."""
    poll = PollState(timeout, local=transcript._http.is_local)
    first = transcript._has_state
    queue = _QueuePosition(transcript, poll)
    with Progress(f"transcribing {transcript.label or transcript.id[:8]}", show=progress) as bar:
        while not transcript._has_state:
            yield poll.tolerate(transcript._poll)
            if poll.away:
                bar.say("no response from the service")
                yield poll.pause(f"transcript {transcript.id} has no known status")
        while not transcript.done:
            if bar.shown and queue.due:
                yield poll.tolerate(queue.update)
            bar.say("no response from the service" if poll.away else queue.state)
            state = f"transcript {transcript.id} is still {transcript.status!r}"
            yield poll.pause(state, audio_s=transcript.audio_duration_s, first=first)
            yield poll.tolerate(transcript._poll)
            first = False


def steps_for_many(
    http: Transport, transcripts: Sequence[Transcript], timeout: float | None, progress: bool | None
) -> Steps:
    """Follow many jobs through the list of transcripts until all are finished.

    Jobs that the list does not show are polled one by one.
    """
    poll = PollState(timeout, local=http.is_local)
    pending = {t.id: t for t in transcripts if not (t._has_state and t.done)}
    same = [(t, pending[t.id]) for t in transcripts if t is not pending.get(t.id, t)]  # several handles of one job
    unlisted: list[str] = []
    total = len({t.id for t in transcripts})

    def walk() -> None:
        """Walk through the list until every pending job was seen."""
        listed_ids = set(pending) - set(unlisted)
        if listed_ids:
            for item in api.iter_transcripts(http, {"limit": LIST_LIMIT}):
                if item.id in listed_ids and item.status is not None:
                    listed_ids.discard(item.id)
                    pending[item.id]._update(item)
                    if not listed_ids:
                        return
        unlisted.extend(sorted(listed_ids))

    with Progress("transcribing", jobs=total, show=progress) as bar:
        while True:
            if len(pending) > FEW:
                yield poll.tolerate(walk)
            polled = list(pending) if len(pending) <= FEW else [unlisted.pop(0) for _ in unlisted[:_UNLISTED_PER_ROUND]]
            for transcript_id in polled:
                yield poll.tolerate(pending[transcript_id]._poll)
            unlisted += [i for i in polled if len(pending) > FEW]
            for transcript_id in [i for i, t in pending.items() if t._has_state and t.done]:
                del pending[transcript_id]
            unlisted[:] = [i for i in unlisted if i in pending]
            bar.advance(total - len(pending) - bar.count)
            if not pending:
                for handle, followed in same:
                    handle._response, handle._listed = followed._response, followed._listed
                return
            bar.say(_summary(pending.values()))
            # A round of several requests is followed by a longer pause.
            yield poll.pause(f"{len(pending)} of {total} transcripts are not finished", least_s=0.3 * len(polled))


def _how_to_continue(transcript: Transcript) -> str:
    """Return a note for the user if the wait ended before the job."""
    if embedded.has_ended(transcript._http.base_url):
        return f"The job continues after the next connect(); then client.wait({transcript.id!r}) waits for it."
    return f"The job continues at the service; client.wait({transcript.id!r}) waits for it again."


class _QueuePosition:
    """The state of a job for the progress bar. For a queued job: its waiting time and the number of jobs before it."""

    def __init__(self, transcript: Transcript, poll: PollState) -> None:
        self._transcript, self._poll_state = transcript, poll
        self._updated_s = 0.0
        self._ahead = ""

    @property
    def due(self) -> bool:
        """True if the job is queued and the position is older than `_QUEUE_S`."""
        return self._transcript.status == "queued" and self._poll_state.waited_s - self._updated_s > _QUEUE_S

    def update(self) -> None:
        """Count the older queued jobs in the list."""
        self._updated_s = self._poll_state.waited_s
        params = {"limit": LIST_LIMIT, "status": "queued", "before_id": self._transcript.id}
        count = sum(item.status == "queued" for item in api.list_transcripts(self._transcript._http, params))
        several = f"{count} others" if count > 1 else "another one"
        self._ahead = ", next in line" if count == 0 else f", behind {several}{' or more' * (count == LIST_LIMIT)}"

    @property
    def state(self) -> str:
        """State of the job in words."""
        status = self._transcript.status
        return (
            f"queued for {self._poll_state.waited_s:.0f} s{self._ahead}"
            if status == "queued"
            else clean(str(status), 40)
        )


def _summary(transcripts: Iterable[Transcript]) -> str:
    """Count the jobs by status, such as "3 queued, 1 processing"."""
    counts = Counter(clean(str(t.status), 40) for t in transcripts if t._has_state)
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=str, reverse=True))
