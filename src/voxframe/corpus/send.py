"""One submission on its way to the service: every step is in the ledger before it is taken."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from voxframe.corpus.addresses import canonical, is_address, marked
from voxframe.corpus.ledger import UNSENT, Job, Ledger, State, now
from voxframe.corpus.media import identify, opened, signature
from voxframe.corpus.pace import Pace, Stopped, passes
from voxframe.errors import APIError, AudioError, AuthenticationError, ServiceError
from voxframe.options import LIST_LIMIT
from voxframe.service.embedded import is_embedded
from voxframe.service.threads import stopped_by
from voxframe.settings import resolve

if TYPE_CHECKING:
    from voxframe.service import Client

#: Name of the embedded service in the ledger, whatever port it runs on.
EMBEDDED = "embedded"


def service_name(client: Client | None) -> str:
    """Name of a client's service in the ledger; None is the one that `voxframe.connect()` would use."""
    address = resolve().base_url if client is None else client.base_url
    return EMBEDDED if address is None or (client is not None and is_embedded(address)) else canonical(address)


class Sender:
    """Brings submissions to jobs at a service. Used from several threads.

    Args:
        ledger: Where each step is written down.
        client: The service.
        pace: How fast.
        stop: Set where the work is not wanted any more.

    Attributes:
        asked: Keys of the submissions that the service was asked for here, and not by another process.
    """

    def __init__(self, ledger: Ledger, client: Client, pace: Pace, stop: threading.Event) -> None:
        self._ledger, self._client, self._pace, self._stop = ledger, client, pace, stop
        self._charged = service_name(client) != EMBEDDED
        self.asked: set[str] = set()

    def send(self, job: Job, source: str, body: Mapping[str, Any], states: Collection[State] = UNSENT) -> Job:
        """Make a job of a submission, unless another process or thread has done so.

        Args:
            job: The submission.
            source: Path or address of the recording.
            body: Options as `voxframe.options.check` returns them.
            states: It is sent only in one of these states.

        Returns:
            The submission as it is now.

        Raises:
            AudioError: The recording cannot be read, or is another one by now.
            ServiceError: The service refused it, or could not be asked, or its answer was lost. What it was is in the
                ledger: "error", "planned" or "uncertain".
            Stopped: The work is not wanted any more.
        """
        with self._turn(job.key):
            job = self._ledger.find(job.key) or job
            if job.state not in states:
                return job
            with self._pace.turn():
                try:
                    return self._ask(job, self._address(job, source), body)
                except Exception as error:
                    self._note(job.key, error)
                    raise

    @contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        while True:
            with self._ledger.turn(key, wait=False) as held:
                if held:
                    yield
                    return
            if self._stop.wait(0.05):
                raise Stopped

    def _address(self, job: Job, source: str) -> str:
        """Where the service finds the audio, after an upload where it must be sent there."""
        if is_address(source):
            return marked(source)
        self._ledger.save(job, state="uploading")
        before = signature(source)
        if job.media not in ("", identify(source, self._ledger).identity):  # "": from a ledger of the first version
            raise _changed(source)

        def upload() -> str:
            with opened(source) as file, stopped_by(self._stop):
                return self._client.upload(file, progress=False)

        address = self._pace.patiently(upload)
        if signature(source) != before:
            raise _changed(source)
        return address

    def _ask(self, job: Job, address: str, body: Mapping[str, Any]) -> Job:
        """Ask for the job. Once this has begun nothing interrupts it but the end of the process."""
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
                handle = self._client._create(address, body, attempts=1)
            except ServiceError as error:
                if error.may_have_arrived:
                    found = self._find(job, error)
                    if found is not None:
                        return found
                    if self._charged:
                        raise
                job = self._ledger.save(job, state="uploading", error=str(error))
                self._pace.wait_out(error)
            else:
                self._pace.good()
                return self._ledger.save(job, state="submitted", transcript_id=handle.id)

    def _find(self, job: Job, error: ServiceError) -> Job | None:
        """The submission whose answer was lost, with its identifier where the service lists it already."""
        job = self._ledger.save(job, state="uncertain", error=str(error))
        try:
            newest = self._pace.patiently(lambda: self._client.list(limit=LIST_LIMIT))
        except ServiceError:
            return None
        found = next((item for item in newest if item.audio_url == job.address), None)
        if found is None:
            return None
        return self._ledger.save(job, state="submitted", transcript_id=found.id, error=None)

    def _note(self, key: str, error: Exception) -> None:
        """Write down what stopped a submission that did not reach the service."""
        job = self._ledger.find(key)
        if job is None:
            return
        if job.state not in ("submitting", "uncertain"):
            final = is_final(error)
            text = None if isinstance(error, Stopped) else str(error)
            self._ledger.save(job, state="error" if final else "planned", error=text)


def is_final(error: Exception) -> bool:
    """Whether a submission failed for a reason of its own, so that others may go on and it need not be tried again."""
    if isinstance(error, APIError):
        return not isinstance(error, AuthenticationError) and not passes(error)
    return isinstance(error, AudioError)


def _changed(source: str) -> AudioError:
    return AudioError(f"{source!r} has changed since it was looked at; submit it again when it is complete")
