"""Submit recordings in a few threads, and count what was done. Each step is in the ledger before it is taken."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from voxframe._text import html_table
from voxframe.client.api import create_transcript
from voxframe.client.async_bridge import stopped_by
from voxframe.client.progress import Progress
from voxframe.corpus.batch.media import Recording, identify, opened, signature
from voxframe.corpus.batch.plan import TO_SEND, Plan, make_plan
from voxframe.corpus.batch.sync import claim_listed_job, find_lost_jobs
from voxframe.corpus.batch.worker_pool import UNUSABLE, AdaptiveThrottle, Stopped, is_of_one_job, run_in_threads
from voxframe.corpus.job import PENDING, Job, State, is_address, marked, now
from voxframe.corpus.ledger import EMBEDDED, Ledger, ReadsElsewhere, service_name
from voxframe.corpus.metadata import metadata_from_json
from voxframe.errors import AudioError, ServiceError
from voxframe.options import LIST_LIMIT

if TYPE_CHECKING:
    from voxframe.client import Client


class Sender:
    """Submits recordings. Safe to use from several threads."""

    def __init__(
        self,
        ledger: Ledger,
        client: Client,
        throttle: AdaptiveThrottle,
        stop: threading.Event,
        *,
        progress: bool | None = False,  # of an upload
    ) -> None:
        self._ledger, self._client, self._throttle, self._stop = ledger, client, throttle, stop
        self._progress = progress
        self._charged = service_name(client) != EMBEDDED
        self.asked: set[str] = set()  # keys of the jobs that this object requested, and no other process

    def send(self, job: Job, source: str, body: Mapping[str, Any], states: Collection[State] = PENDING) -> Job:
        """Create the job of a submission at the service, unless another process or thread has done so."""
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
            with self._ledger.lock(key, wait=False) as is_held:
                if is_held:
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
            with stopped_by(self._stop):
                if isinstance(self._client, ReadsElsewhere):
                    return self._client.upload_recording(source)
                with opened(source) as file:
                    return self._client.upload(file, progress=self._progress)

        address = self._throttle.retry(upload)
        # A new name or mode changes the signature, too.
        if signature(source) != before and job.media not in ("", identify(source, self._ledger).identity):
            raise _changed(source)
        return address

    def _ask(self, job: Job, address: str, body: Mapping[str, Any]) -> Job:
        """Request the job. After the first request, only the end of the process interrupts it."""
        self.asked.add(job.key)
        replaced = job.transcript_id
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
            if replaced is not None and job.metadata != "{}":  # the transcript had the metadata of its job
                self._ledger.set_metadata({replaced: job.metadata})
            replaced = None
            try:
                transcript_id, _ = create_transcript(self._client.transport, address, body, attempts=1)
            except ServiceError as error:
                if error.possibly_delivered:
                    answered = self._find(job, error)
                    if answered is not None:
                        return answered
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


#: A job, the path or URL of its recording, and its options as sent.
Item: TypeAlias = "tuple[Job, str, Mapping[str, Any]]"

#: Default number of concurrent submissions.
CONCURRENCY = 4
#: Consecutive lost responses that stop a batch, because each may leave a job to search for.
_LOST_IN_A_ROW = 8


@dataclass(frozen=True)
class BatchResult:
    """Result of `submit`, `sync`, `retry` or `adopt`: the work done and the work left.

    Attributes:
        sent: Jobs created at the service.
        known: Recordings that were already at the service or in the corpus.
        adopted: Jobs found at the service that the corpus did not know.
        fetched: Transcripts added to the corpus.
        failed: Jobs that failed or were refused, and transcripts that could not be fetched.
        waiting: Jobs that the service is still working on, or that were not fetched yet.
        pending: Recordings that are not sent yet.
        uncertain: Jobs that the service may or may not have.
    """

    sent: int = 0
    known: int = 0
    adopted: int = 0
    fetched: int = 0
    failed: int = 0
    waiting: int = 0
    pending: int = 0
    uncertain: int = 0

    def __repr__(self) -> str:
        parts = [f"{count} {f.name}" for f in fields(self) if (count := getattr(self, f.name))]
        lines = [", ".join(parts) or "nothing to do"]
        lines += [f"  {name}: {advice}" for name, advice in _ADVICE.items() if getattr(self, name)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        counts = {f.name: getattr(self, f.name) for f in fields(self)}
        rows = {name: f"{count:,}. {_ADVICE.get(name, '')}".rstrip(". ") for name, count in counts.items() if count}
        return html_table(rows or {"jobs": "nothing to do"})

    def after(self, other: BatchResult) -> BatchResult:
        """Return this step combined with an earlier one. Work done is added up; work left is that of this step."""
        done = ("sent", "known", "adopted", "fetched")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in done})

    @property
    def ok(self) -> bool:
        """True if nothing failed, is uncertain or is pending."""
        return not (self.failed or self.uncertain or self.pending)


_ADVICE = {
    "waiting": "sync() fetches them once they are finished",
    "failed": "jobs() shows the reasons; retry(failed=True) submits them again",
    "pending": "submit(...) or retry() submits them",
    "uncertain": (
        "the service may have them under an unknown id; a later sync() looks for them. If client.list() shows that it "
        "does not have them, retry(uncertain=True) submits them again; otherwise they would be charged for twice"
    ),
}


def store_plan(ledger: Ledger, plan: Plan) -> None:
    """Write a plan into the ledger: unreadable recordings as failed, without those that can be read again."""
    if plan.recovered:  # first, because they have the names of the recordings
        ledger.drop_unreadable(plan.recovered)
    ledger.plan([step.job for step in plan.steps if step.verdict != "unreadable"])
    ledger.save_all([step.job for step in plan.steps if step.verdict == "unreadable"])


def read_again(ledger: Ledger, job: Job) -> list[Item]:
    """Return the work for a recording that could not be read before, if it can be read now."""
    options = json.loads(job.options)
    recording = Recording(job.source, metadata_from_json(job.metadata), job.recording)
    try:
        plan = make_plan(ledger, [recording], options, job.service, measure=False, progress=False)
    except AudioError as error:  # still unreadable
        ledger.save(job, error=str(error))
        return []
    store_plan(ledger, plan)
    return [(step.job, step.source, options) for step in plan.steps if step.verdict in TO_SEND]


def send_all(
    ledger: Ledger,
    client: Client,
    items: Sequence[Item],
    *,
    concurrency: int,
    progress: bool | None,
    states: Collection[State] = PENDING,
) -> int:
    """Send several submissions concurrently."""
    batch = _Sending(ledger, client, concurrency, states)
    try:
        with Progress("submitting", jobs=len(items), show=progress) as bar:
            run_in_threads(items, batch.send, threads=concurrency, stop=batch.stop, done=lambda: bar.advance(1))
    except (KeyboardInterrupt, ServiceError) as stopped:
        stopped.add_note("Recordings that were not submitted are in the ledger; submit(...) or retry() submits them.")
        raise
    if batch.lost:
        with suppress(ServiceError):  # then they stay uncertain, which the result shows
            find_lost_jobs(ledger, client)
    return batch.sent


class _Sending:
    """State shared by the threads of a batch."""

    def __init__(self, ledger: Ledger, client: Client, concurrency: int, states: Collection[State]) -> None:
        self.stop = threading.Event()
        self.sent = self.lost = 0
        self._in_a_row = 0
        self._ledger, self._states = ledger, states
        self._sender = Sender(ledger, client, AdaptiveThrottle(concurrency, self.stop), self.stop)
        self._lock = threading.Lock()

    def send(self, item: Item) -> None:
        job, source, body = item
        try:
            job = self._sender.send(job, source, body, self._states)
        except Exception as error:
            if not self._continues_after(job.key, error):
                raise
        else:
            with self._lock:
                self._in_a_row = 0
                self.sent += job.key in self._sender.asked

    def _continues_after(self, key: str, error: Exception) -> bool:
        """Return True if the batch continues after an error of one submission."""
        if isinstance(error, ServiceError) and error.possibly_delivered:
            job = self._ledger.find(key)
            if job is not None and job.state == "uncertain":
                with self._lock:
                    self.lost += 1
                    self._in_a_row += 1
                    return self._in_a_row < _LOST_IN_A_ROW
        return is_final(error)


def count(jobs: Iterable[Job]) -> BatchResult:
    """Count jobs by state."""
    states = [job.state for job in jobs]
    return BatchResult(
        failed=states.count("error"),
        waiting=states.count("submitted"),
        pending=states.count("planned") + states.count("uploading"),
        uncertain=states.count("uncertain") + states.count("submitting"),
    )
