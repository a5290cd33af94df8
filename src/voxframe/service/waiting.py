"""Waiting for a job: how often to ask, and what to do while the service is away."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from voxframe.errors import (
    RateLimitError,
    ServerError,
    ServiceTimeoutError,
    ServiceUnreachableError,
    UnreadableAnswerError,
)
from voxframe.service.progress import Progress
from voxframe.service.retry import LONGEST_WAIT_S

if TYPE_CHECKING:
    from voxframe.service.transcript import Transcript

#: The job goes on while the service cannot be asked about it; this long the wait goes on too.
OUTAGE_S = 120.0
LOCAL_OUTAGE_S = 10.0

_PASSING = (ServiceUnreachableError, ServiceTimeoutError, ServerError, RateLimitError, UnreadableAnswerError)


def interval(waited_s: float, audio_s: float | None = None, *, local: bool = False) -> float:
    """Seconds until a job is asked about again.

    A tenth of the time waited so far, or a hundredth of the audio's length where it is known: long recordings are asked
    about seldom, and an answer is late by a tenth at most. Never under a second, except in the first seconds with a
    service on this machine; never over 15, or 1.5 with a service on this machine.

    Args:
        waited_s: Seconds waited so far.
        audio_s: Duration of the audio in seconds, where the service says it.
        local: Whether the service is on this machine.
    """
    if local and waited_s < 3.0:
        return 0.6
    wanted = max(0.1 * waited_s, 0.01 * (audio_s or 0.0))
    return min(1.4 if local else 13.5, max(1.1, wanted)) * random.uniform(1.0, 1.1)  # noqa: S311 - spreads load, keeps no secret


def wait(
    transcript: Transcript,
    sleep: Callable[[float], None],
    *,
    timeout_s: float | None,
    local: bool,
    show: bool | None,
) -> None:
    """Ask about a job until it is finished.

    Args:
        transcript: The job.
        sleep: How to wait.
        timeout_s: Seconds to wait at most; None waits as long as it takes.
        local: Whether the service is on this machine.
        show: Whether to show progress; None where somebody looks.

    Raises:
        ServiceTimeoutError: It was not finished in time.
        ServiceError: The service could not be asked for too long, or refused.
    """
    started = time.monotonic()
    away_since: float | None = None
    with Progress(f"transcribing {transcript.id[:8]}", show=show) as progress:
        while not transcript.done:
            waited = time.monotonic() - started
            if timeout_s is not None and waited >= timeout_s:
                raise ServiceTimeoutError(
                    f"transcript {transcript.id} is still {transcript.status!r} after {timeout_s:g} s"
                )
            pause = interval(waited, transcript.audio_duration_s, local=local)
            left = float("inf") if timeout_s is None else timeout_s - waited
            sleep(max(0.0, min(pause, left)))
            try:
                transcript.refresh(attempts=1)
                away_since = None
            except _PASSING as error:
                now = time.monotonic()
                away_since = now if away_since is None else away_since
                if now - away_since > (LOCAL_OUTAGE_S if local else OUTAGE_S):
                    raise
                asked = (error.retry_after or 0.0) if isinstance(error, RateLimitError) else 0.0
                sleep(min(asked, LONGEST_WAIT_S, left))
            progress.say(f" {transcript.status}" if away_since is None else " (the service does not answer)")
