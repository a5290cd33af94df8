"""Wait for transcription jobs: poll one of them, or follow many through the list of transcripts.

A wait is written once as a generator of steps: seconds to pause, and requests to send. `run` performs the steps one
after the other; `run_async` does the same without blocking the event loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol, TypeAlias

from voxframe.client import api, embedded
from voxframe.client.async_bridge import Workers, keep_loop_awake
from voxframe.client.failures import LONGEST_WAIT_S
from voxframe.client.http import Transport
from voxframe.client.progress import Progress
from voxframe.client.response import HTTPResponse, clean
from voxframe.client.results import TranscriptItem
from voxframe.errors import ServiceError, ServiceTimeoutError
from voxframe.options import LIST_LIMIT
from voxframe.settings import is_loopback
from voxframe.validators import checked_timeout

Steps: TypeAlias = "Generator[float | Callable[[], object], None, None]"


class RunningJob(Protocol):
    """A transcription job as a wait sees it: a `Transcript`."""

    id: str
    label: str | None
    _response: HTTPResponse | None
    _listed: TranscriptItem | None

    @property
    def status(self) -> str | None:
        """Status, or None if the service sent none."""

    @property
    def done(self) -> bool:
        """True if the job is completed or has failed."""

    @property
    def audio_duration_s(self) -> float | None:
        """Duration of the media in seconds, or None if unknown."""

    @property
    def _has_state(self) -> bool: ...
    def _poll(self) -> None: ...
    def _update(self, item: TranscriptItem) -> None: ...


#: Seconds without a response after which a wait ends; the job continues during an outage.
OUTAGE_S = 120.0
LOCAL_OUTAGE_S = 10.0


def run(steps: Steps, sleep: Callable[[float], None]) -> None:
    """Perform the steps of a wait."""
    try:
        for step in steps:
            if callable(step):
                step()
            else:
                sleep(step)
    finally:
        steps.close()


async def run_async(steps: Steps, workers: Workers) -> None:
    """Perform the steps of a wait on an event loop, with requests sent in threads."""
    try:
        with keep_loop_awake():
            for step in steps:
                await (workers.call(step) if callable(step) else asyncio.sleep(step))
    finally:
        steps.close()


def interval(waited_s: float, audio_s: float | None = None, *, local: bool = False, first: bool = False) -> float:
    """Return seconds until the next request about a job.

    The interval is a tenth of the time waited so far, or a hundredth of the audio duration if that is longer. So long
    recordings are polled rarely, and a result is late by at most a tenth. The limits are 1 to 15 seconds, or 1 to 1.5
    for a server on this machine, which is first polled after half a second.
    """
    if local and first:
        return 0.5
    proposed_s = max(0.1 * waited_s, 0.01 * (audio_s or 0.0))
    return min(1.4 if local else 13.5, max(1.1, proposed_s)) * random.uniform(1.0, 1.1)  # noqa: S311 - not a secret


class PollState:
    """Time spent in a wait, and the tolerance for a service that does not respond."""

    def __init__(self, timeout_s: float | None, *, local: bool) -> None:
        self._started = time.monotonic()
        self._timeout_s = checked_timeout(timeout_s)
        self._outage_s = LOCAL_OUTAGE_S if local else OUTAGE_S
        self._away_since: float | None = None
        self._asked_s = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds waited so far."""
        return time.monotonic() - self._started

    @property
    def away(self) -> bool:
        """True if the service did not respond to the last request."""
        return self._away_since is not None

    def pause(self, wanted_s: float, what: str) -> float:
        """Return seconds to pause now.

        Args:
            wanted_s: Minimum seconds; more if the service requests more.
        """
        wanted_s = max(wanted_s, min(self._asked_s, LONGEST_WAIT_S))
        self._asked_s = 0.0
        if self._timeout_s is None:
            return wanted_s
        remaining_s = self._timeout_s - self.waited_s
        if remaining_s <= 0:
            raise ServiceTimeoutError(f"{what} after {self._timeout_s:g} s")
        return min(wanted_s, remaining_s)

    def tolerate(self, ask: Callable[[], object]) -> Callable[[], None]:
        """Return `ask` as a step that tolerates outages."""

        def step() -> None:
            try:
                ask()
                self._away_since = None
            except ServiceError as error:
                if not error.transient:
                    raise
                now = time.monotonic()
                self._away_since = self._away_since or now
                if now - self._away_since > self._outage_s:
                    raise
                self._asked_s = error.retry_after or 0.0

        return step


#: Up to this many jobs are polled one by one.
FEW = 3
#: Number of jobs missing from the list that are polled one by one in each round.
_UNLISTED_PER_ROUND = 10
#: Seconds between two requests for the position in the queue.
_QUEUE_S = 10.0


def wait(http: Transport, transcript: RunningJob, timeout: float | None, progress: bool | None) -> None:
    """Wait until a job is completed or has failed."""
    try:
        run(steps_for_one(http, transcript, timeout, progress), http.sleep)
    except (KeyboardInterrupt, ServiceError) as error:
        error.add_note(how_to_continue(http, transcript))
        raise


async def wait_async(
    http: Transport,
    transcript: RunningJob,
    timeout: float | None,
    progress: bool | None,
) -> None:
    """Async version of `wait`."""
    try:
        await run_async(steps_for_one(http, transcript, timeout, progress), http.workers)
    except ServiceError as error:
        error.add_note(how_to_continue(http, transcript))
        raise


def steps_for_one(http: Transport, transcript: RunningJob, timeout: float | None, progress: bool | None) -> Steps:
    """Poll a job until it is finished."""
    local = is_loopback(http.base_url)
    poll = PollState(timeout, local=local)
    first = transcript._has_state
    queue = _QueuePosition(http, transcript, poll)
    with Progress(f"transcribing {transcript.label or transcript.id[:8]}", show=progress) as bar:
        while not transcript._has_state:
            yield poll.tolerate(transcript._poll)
            if poll.away:
                bar.say("no response from the service")
                yield poll.pause(
                    interval(poll.waited_s, local=local), f"transcript {transcript.id} has no known status"
                )
        while not transcript.done:
            if bar.shown and queue.due:
                yield poll.tolerate(queue.update)
            bar.say("no response from the service" if poll.away else queue.state)
            seconds = interval(poll.waited_s, transcript.audio_duration_s, local=local, first=first)
            yield poll.pause(seconds, f"transcript {transcript.id} is still {transcript.status!r}")
            yield poll.tolerate(transcript._poll)
            first = False


def steps_for_many(
    http: Transport, transcripts: Sequence[RunningJob], timeout: float | None, progress: bool | None
) -> Steps:
    """Follow many jobs through the list of transcripts until all are finished.

    Jobs that the list does not show are polled one by one.
    """
    local = is_loopback(http.base_url)
    poll = PollState(timeout, local=local)
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
                for one, followed in same:
                    one._response, one._listed = followed._response, followed._listed
                return
            bar.say(_summary(pending.values()))
            # A round of several requests is followed by a longer pause.
            wanted_s = max(interval(poll.waited_s, local=local), 0.3 * len(polled))
            yield poll.pause(wanted_s, f"{len(pending)} of {total} transcripts are not finished")


def how_to_continue(http: Transport, transcript: RunningJob) -> str:
    """Return a note for the user if the wait ended before the job."""
    if embedded.has_ended(http.base_url):
        return f"The job continues after the next connect(); then client.wait({transcript.id!r}) waits for it."
    return f"The job continues at the service; client.wait({transcript.id!r}) waits for it again."


class _QueuePosition:
    """The state of a job for the progress bar. For a queued job: its waiting time and the number of jobs before it."""

    def __init__(self, http: Transport, transcript: RunningJob, poll: PollState) -> None:
        self._http, self._transcript, self._poll_state = http, transcript, poll
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
        count = sum(item.status == "queued" for item in api.list_transcripts(self._http, params))
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


def _summary(transcripts: Iterable[RunningJob]) -> str:
    """Count the jobs by status, such as "3 queued, 1 processing"."""
    counts = Counter(clean(str(t.status), 40) for t in transcripts if t._has_state)
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=str, reverse=True))
