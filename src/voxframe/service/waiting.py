"""Waiting for a job: how often to ask, and what to do while the service is away.

A wait is written once, as steps: seconds to pause, and requests to make. `run` takes them one after the other,
`run_async` does the same without holding up an event loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeAlias

from voxframe.errors import (
    RateLimitError,
    ServerError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    UnreadableAnswerError,
)
from voxframe.options import LIST_LIMIT
from voxframe.service import embedded
from voxframe.service.heartbeat import beating
from voxframe.service.progress import Progress
from voxframe.service.retry import LONGEST_WAIT_S
from voxframe.service.threads import Workers

if TYPE_CHECKING:
    from voxframe.service.transcript import Transcript

Steps: TypeAlias = "Generator[float | Callable[[], object], None, None]"

#: The job goes on while the service cannot be asked about it; this long the wait goes on too.
OUTAGE_S = 120.0
LOCAL_OUTAGE_S = 10.0

# Between two looks at the queue, where somebody watches.
_QUEUE_S = 10.0

_PASSING = (ServiceUnreachableError, ServiceTimeoutError, ServerError, RateLimitError, UnreadableAnswerError)


def run(steps: Steps, sleep: Callable[[float], None]) -> None:
    """Take the steps of a wait."""
    try:
        for step in steps:
            if callable(step):
                step()
            else:
                sleep(step)
    finally:
        steps.close()


async def run_async(steps: Steps, workers: Workers) -> None:
    """Take the steps of a wait, with requests made in a thread."""
    try:
        with beating():
            for step in steps:
                await (workers.call(step) if callable(step) else asyncio.sleep(step))
    finally:
        steps.close()


def interval(waited_s: float, audio_s: float | None = None, *, local: bool = False, first: bool = False) -> float:
    """Seconds until a job is asked about again.

    A tenth of the time waited so far, or a hundredth of the audio's length where it is known: long recordings are asked
    about seldom, and an answer is late by a tenth at most. Never under a second; never over 15, or 1.5 with a service
    on this machine, where the first question comes after half a second.

    Args:
        waited_s: Seconds waited so far.
        audio_s: Duration of the audio in seconds, where the service says it.
        local: Whether the service is on this machine.
        first: Whether the job has not been asked about yet.
    """
    if local and first:
        return 0.5
    wanted = max(0.1 * waited_s, 0.01 * (audio_s or 0.0))
    return min(1.4 if local else 13.5, max(1.1, wanted)) * random.uniform(1.0, 1.1)  # noqa: S311 - spreads load


class Patience:
    """Time spent in a wait, and the patience with a service that is away.

    Args:
        timeout_s: Seconds to wait at most; None waits as long as it takes.
        local: Whether the service is on this machine.
    """

    def __init__(self, timeout_s: float | None, *, local: bool) -> None:
        self._started = time.monotonic()
        self._timeout_s = timeout_s
        self._outage_s = LOCAL_OUTAGE_S if local else OUTAGE_S
        self._away_since: float | None = None
        self._asked_s = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds waited so far."""
        return time.monotonic() - self._started

    @property
    def away(self) -> bool:
        """Whether the service did not answer the last time."""
        return self._away_since is not None

    def pause(self, wanted_s: float, what: str) -> float:
        """Seconds to pause now.

        Args:
            wanted_s: Seconds wanted; a service that asks for more gets more.
            what: What is waited for, for the message.

        Raises:
            ServiceTimeoutError: The time is over.
        """
        wanted_s = max(wanted_s, min(self._asked_s, LONGEST_WAIT_S))
        self._asked_s = 0.0
        if self._timeout_s is None:
            return wanted_s
        left = self._timeout_s - self.waited_s
        if left <= 0:
            raise ServiceTimeoutError(f"{what} after {self._timeout_s:g} s")
        return min(wanted_s, left)

    def tolerate(self, ask: Callable[[], object]) -> Callable[[], None]:
        """`ask` as a step that lets a service be away for a while.

        Raises:
            ServiceError: It is away for too long, or refuses.
        """

        def step() -> None:
            try:
                ask()
                self._away_since = None
            except _PASSING as error:
                now = time.monotonic()
                self._away_since = self._away_since or now
                if now - self._away_since > self._outage_s:
                    raise
                if isinstance(error, RateLimitError):
                    self._asked_s = error.retry_after or 0.0

        return step


def steps(transcript: Transcript, *, timeout_s: float | None, local: bool, show: bool | None) -> Steps:
    """Ask about a job until it is finished.

    Args:
        transcript: The job.
        timeout_s: Seconds to wait at most; None waits as long as it takes.
        local: Whether the service is on this machine.
        show: Whether to show progress; None where somebody looks.

    Raises:
        ServiceTimeoutError: It was not finished in time.
        ServiceError: The service could not be asked for too long, or refused.
    """
    patience = Patience(timeout_s, local=local)
    first = transcript.known
    queue = _Queue(transcript, patience)
    with Progress(f"transcribing {transcript.label or transcript.id[:8]}", show=show) as progress:
        if not transcript.known:
            yield transcript.refresh
        while not transcript.done:
            if progress.shown and queue.due:
                yield patience.tolerate(queue.look)
            progress.say("the service does not answer" if patience.away else queue.state)
            wanted = interval(patience.waited_s, transcript.audio_duration_s, local=local, first=first)
            yield patience.pause(wanted, f"transcript {transcript.id} is still {transcript.status!r}")
            yield patience.tolerate(lambda: transcript.refresh(attempts=1))
            first = False


class _Queue:
    """What somebody who looks is told of a job that has not begun: how long, and behind how many others.

    Args:
        transcript: The job.
        patience: Of the wait.
    """

    def __init__(self, transcript: Transcript, patience: Patience) -> None:
        self._transcript, self._patience = transcript, patience
        self._looked_s: float | None = None
        self._ahead: str = ""

    @property
    def due(self) -> bool:
        """Whether it is time to ask for the queue: not at once, and seldom."""
        last_s = 0.0 if self._looked_s is None else self._looked_s
        return self._transcript.status == "queued" and self._patience.waited_s - last_s > _QUEUE_S

    def look(self) -> None:
        """Ask the list for older jobs that are queued too."""
        self._looked_s = self._patience.waited_s
        page = self._transcript.client.list(status="queued", before_id=self._transcript.id, limit=LIST_LIMIT)
        count = sum(item.status == "queued" for item in page)
        several = f"{count} others" if count > 1 else "another one"
        self._ahead = ", next in line" if count == 0 else f", behind {several}{' or more' * (count == LIST_LIMIT)}"

    @property
    def state(self) -> str:
        """The job's state, in words."""
        status = self._transcript.status
        return f"queued for {self._patience.waited_s:.0f} s{self._ahead}" if status == "queued" else str(status)


def how_to_go_on(transcript: Transcript) -> str:
    """What to tell somebody whose wait ended before the job did."""
    if embedded.has_ended(transcript.client.base_url):
        return f"The job goes on with the next connect(); its client.wait({transcript.id!r}) waits for it again."
    return f"The job goes on at the service; client.wait({transcript.id!r}) waits for it again."
