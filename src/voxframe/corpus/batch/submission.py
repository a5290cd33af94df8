"""Submit one recording. Each step is in the ledger before it is taken."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from voxframe.client.api import create_transcript
from voxframe.client.async_bridge import stopped_by
from voxframe.corpus.addresses import is_address, marked
from voxframe.corpus.batch.media import identify, opened, signature
from voxframe.corpus.batch.reconcile import claim_listed_job
from voxframe.corpus.batch.worker_pool import UNUSABLE, AdaptiveThrottle, Stopped, is_of_one_job
from voxframe.corpus.job import PENDING, Job, State, now
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.services import EMBEDDED, service_name
from voxframe.errors import AudioError, ServiceError
from voxframe.options import LIST_LIMIT

if TYPE_CHECKING:
    from voxframe.client import Client


class Sender:
    """Submits recordings. Safe to use from several threads.

    Args:
        ledger: Records each step.
        client: The service.
        throttle: Limits the request rate.
        stop: Set when the batch is being stopped.

    Attributes:
        asked: Keys of the jobs that were requested by this object, not by another process.
    """

    def __init__(self, ledger: Ledger, client: Client, throttle: AdaptiveThrottle, stop: threading.Event) -> None:
        self._ledger, self._client, self._throttle, self._stop = ledger, client, throttle, stop
        self._charged = service_name(client) != EMBEDDED
        self.asked: set[str] = set()

    def send(self, job: Job, source: str, body: Mapping[str, Any], states: Collection[State] = PENDING) -> Job:
        """Create the job of a submission at the service, unless another process or thread has done so.

        Args:
            job: The submission.
            source: Path or URL of the recording.
            body: Options as returned by `voxframe.options.check`.
            states: The job is sent only if it is in one of these states.

        Returns:
            The updated job.

        Raises:
            AudioError: The recording cannot be read, or its content has changed.
            ServiceError: The service refused it, is unreachable, or its response was lost. The state in the ledger is
                then "error", "planned" or "uncertain".
            Stopped: The batch is being stopped.
        """
        with self._turn(job.key):
            job = self._ledger.find(job.key) or job
            if job.state not in states:
                return job
            with self._throttle.turn():
                try:
                    return self._ask(job, self._address(job, source), body)
                except Exception as error:
                    self._note(job.key, error)
                    raise

    @contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        while True:
            with self._ledger.lock(key, wait=False) as held:
                if held:
                    yield
                    return
            if self._stop.wait(0.05):
                raise Stopped

    def _address(self, job: Job, source: str) -> str:
        """Return the URL from which the service reads the audio, after an upload if necessary."""
        if is_address(source):
            return marked(source)
        self._ledger.save(job, state="uploading")
        before = signature(source)
        if job.media not in ("", identify(source, self._ledger).identity):  # "": a ledger of version 1
            raise _changed(source)

        def upload() -> str:
            with opened(source) as file, stopped_by(self._stop):
                return self._client.upload(file, progress=False)

        address = self._throttle.retry(upload)
        # A new name or mode changes the signature, too.
        if signature(source) != before and job.media not in ("", identify(source, self._ledger).identity):
            raise _changed(source)
        return address

    def _ask(self, job: Job, address: str, body: Mapping[str, Any]) -> Job:
        """Request the job. After the first request, only the end of the process interrupts it."""
        self.asked.add(job.key)
        while True:
            job = self._ledger.save(
                job,
                state="submitting",
                address=address,
                attempts=job.attempts + 1,
                transcript_id=None,
                error=None,
                sent=now(),
            )
            try:
                transcript_id, _ = create_transcript(self._client.transport, address, body, attempts=1)
            except ServiceError as error:
                if error.possibly_delivered:
                    found = self._find(job, error)
                    if found is not None:
                        return found
                    if self._charged:
                        raise
                job = self._ledger.save(job, state="uploading", error=str(error))
                self._throttle.back_off(error)
            else:
                self._throttle.record_success()
                return self._ledger.save(job, state="submitted", transcript_id=transcript_id)

    def _find(self, job: Job, error: ServiceError) -> Job | None:
        """Return the submission whose response was lost, with its id if the service already lists it."""
        job = self._ledger.save(job, state="uncertain", error=str(error))
        try:
            newest = self._throttle.retry(lambda: self._client.list(limit=LIST_LIMIT))
            return self._throttle.retry(lambda: claim_listed_job(self._ledger, self._client, job, newest))
        except ServiceError:
            return None

    def _note(self, key: str, error: Exception) -> None:
        """Record the error of a submission that did not reach the service."""
        job = self._ledger.find(key)
        if job is None:
            return
        if job.state not in ("submitting", "uncertain"):
            final = is_final(error)
            text = None if isinstance(error, Stopped) else str(error)
            self._ledger.save(job, state="error" if final else "planned", error=text)


def is_final(error: Exception) -> bool:
    """Return True if the error concerns only this recording, and sending it again would not help."""
    if isinstance(error, ServiceError):
        return is_of_one_job(error) and not isinstance(error, UNUSABLE)
    return isinstance(error, AudioError)


def _changed(source: str) -> AudioError:
    return AudioError(f"{source!r} changed after it was first read; submit it again once it is complete")
