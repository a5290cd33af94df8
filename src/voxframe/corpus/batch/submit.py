"""Plan a batch, submit its recordings in a few threads, and count what was done. The ledger knows each step before."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

from voxframe._progress import Progress
from voxframe._text import html_table, masked, quantity
from voxframe.client.api import create_transcript
from voxframe.client.async_bridge import stopped_by
from voxframe.corpus.batch.sync import claim_listed_job, find_lost_jobs
from voxframe.corpus.batch.worker_pool import UNUSABLE, AdaptiveThrottle, Stopped, is_of_one_job, run_in_threads
from voxframe.corpus.job import LOST, PENDING, Job, State, is_address, marked, merged, new_job, now
from voxframe.corpus.ledger import EMBEDDED, Ledger, ReadsElsewhere, service_name
from voxframe.corpus.media import UNREADABLE, ManyFiles, Media, Recording, identify, opened, signature, unreadable
from voxframe.corpus.metadata import beside, metadata_from_json, metadata_to_json
from voxframe.errors import AudioError, AudioNotFoundError, CorpusWarning, ServiceError
from voxframe.options import LIST_LIMIT

if TYPE_CHECKING:
    from voxframe.client import Client


#: new: never sent. new_options: sent before with other options. pending: planned before and not sent. known: at the
#: service or in the corpus. failed: sent before and failed. uncertain: may have been sent. unreadable: the file is
#: empty or cannot be read.
Verdict: TypeAlias = Literal["new", "new_options", "pending", "known", "failed", "uncertain", "unreadable"]

#: Verdicts of recordings that a batch sends.
TO_SEND: tuple[Verdict, ...] = ("new", "new_options", "pending")

_READERS = 4


@dataclass(frozen=True)
class Step:
    """Plan for one recording."""

    job: Job  # its job, as in the ledger or as it would be added
    verdict: Verdict  # what would happen to it
    source: str  # path or URL, as given


@dataclass(frozen=True)
class Plan:
    """Preview of a batch, returned by `Corpus.plan`.

    Attributes:
        steps: One step per distinct recording, in the order given.
        duplicates: Number of recordings that equal an earlier one, under any name.
        service: Name of the service.
        recovered: Keys of jobs in the ledger whose recording could not be read before and can be read now.
    """

    steps: Sequence[Step] = field(repr=False)
    duplicates: int
    service: str
    recovered: Collection[str] = ()

    def count(self, verdict: Verdict) -> int:
        """Return the number of recordings with a verdict."""
        return sum(step.verdict == verdict for step in self.steps)

    @property
    def new(self) -> int:
        """Recordings that were never sent."""
        return self.count("new")

    @property
    def new_options(self) -> int:
        """Recordings that were sent with other options. They are new jobs, which are charged for."""
        return self.count("new_options")

    @property
    def pending(self) -> int:
        """Recordings that an earlier batch planned and did not send."""
        return self.count("pending")

    @property
    def known(self) -> int:
        """Recordings at the service or in the corpus with these options. They are not sent again."""
        return self.count("known")

    @property
    def failed(self) -> int:
        """Recordings that failed before. `Corpus.retry(failed=True)` sends them again."""
        return self.count("failed")

    @property
    def uncertain(self) -> int:
        """Recordings that may have been sent."""
        return self.count("uncertain")

    @property
    def unreadable(self) -> int:
        """Recordings that are empty or cannot be read. The `error` column of `Corpus.jobs` gives the reason."""
        return self.count("unreadable")

    @property
    def to_send(self) -> int:
        """Number of jobs that the batch would create."""
        return sum(step.verdict in TO_SEND for step in self.steps)

    @property
    def audio_s(self) -> float:
        """Seconds of audio to send, as far as known."""
        return sum(step.job.audio_duration_s or 0.0 for step in self.steps if step.verdict in TO_SEND)

    @property
    def unmeasured(self) -> int:
        """Recordings to send of unknown duration, such as URLs."""
        return sum(step.job.audio_duration_s is None for step in self.steps if step.verdict in TO_SEND)

    @property
    def table(self) -> pd.DataFrame:
        """DataFrame with one row per recording: source, verdict, audio_duration_s, and its metadata."""
        rows = [(masked(step.source), step.verdict, step.job.audio_duration_s) for step in self.steps]
        df = pd.DataFrame(rows, columns=["source", "verdict", "audio_duration_s"])
        return beside(df, [step.job.metadata for step in self.steps])

    def __repr__(self) -> str:
        listed = "".join(f"\n  {count} {label}" for label, count in self._counts().items())
        return f"Plan: {self._summary()}{listed}"

    def _repr_html_(self) -> str:
        counts = {label: f"{count:,}" for label, count in self._counts().items()}
        return html_table({"plan": self._summary(), **counts})

    def _summary(self) -> str:
        service = "the embedded service" if self.service == EMBEDDED else self.service
        return f"{self.to_send} of {quantity(len(self.steps), 'recording')} to send to {service}{self._hours()}"

    def _counts(self) -> dict[str, int]:
        """Return the numbers of recordings by label, without those that are 0."""
        counts = {label: self.count(verdict) for verdict, label in _LABELS.items()}
        counts["identical to another"] = self.duplicates
        return {label: count for label, count in counts.items() if count}

    def _hours(self) -> str:
        if not self.to_send:
            return ""
        if self.unmeasured == self.to_send:
            return ", of unknown length"
        unknown = f" and {self.unmeasured} of unknown length" if self.unmeasured else ""
        length = f"{self.audio_s / 3600:.1f} hours" if self.audio_s >= 3600 else f"{self.audio_s / 60:.1f} minutes"
        return f", {length} of audio{unknown}"


_LABELS: Mapping[Verdict, str] = {
    "new": "new",
    "new_options": "sent before with other options: new jobs",
    "pending": "planned before and not sent",
    "known": "known: not sent again",
    "failed": "failed before: retry(failed=True) sends them again",
    "unreadable": "empty or unreadable: jobs() shows the reason after submit(...)",
    "uncertain": "uncertain: they may have been sent; sync() looks for them",
}


def make_plan(
    ledger: Ledger,
    recordings: Sequence[Recording],
    options: Mapping[str, Any],
    service: str,
    *,
    measure: bool,
    progress: bool | None = None,
) -> Plan:
    """Return the plan of a batch, without a request to a service."""
    notes = [metadata_to_json(recording.metadata) for recording in recordings]
    identified = _identify(ledger, [recording.source for recording in recordings], measure, progress)
    jobs = ledger.jobs(service)
    by_key = {job.key: job for job in jobs}
    sent = {job.media for job in jobs if job.state not in PENDING}
    has_unreadable = any(job.media.startswith(UNREADABLE) for job in jobs)
    recovered: set[str] = set()
    steps: dict[str, Step] = {}
    for recording, note in zip(recordings, notes, strict=True):
        media = identified[recording.source]
        if isinstance(media, AudioError):
            job = new_job(
                recording.source, unreadable(recording.source), options, service, state="error", error=str(media)
            )
            job = replace(by_key.get(job.key, job), error=job.error, metadata=note)
            job = replace(job, recording=recording.name or job.recording)
            steps.setdefault(job.key, Step(job, "unreadable", recording.source))
            continue
        if has_unreadable and not is_address(recording.source):
            before = new_job(recording.source, unreadable(recording.source), options, service)
            recovered |= {before.key} & by_key.keys()
        job = new_job(recording.source, media.identity, options, service, audio_duration_s=media.audio_duration_s)
        old = by_key.get(job.key)
        if old is not None:
            duration_s = old.audio_duration_s or job.audio_duration_s
            job = replace(old, source=job.source, audio_duration_s=duration_s)
        if recording.name is not None:
            job = replace(job, recording=recording.name)
        if note != "{}":  # other columns, such as those of `set_metadata`, stay
            job = replace(job, metadata=merged(job.metadata, note))
        step = steps.setdefault(job.key, Step(job, _verdict(old, sent_before=media.identity in sent), recording.source))
        if step.job.metadata != job.metadata:
            warnings.warn(
                f"{masked(recording.source)!r} is the same recording as {masked(step.source)!r} with different "
                "metadata. The metadata of the latter is kept",
                CorpusWarning,
                stacklevel=4,
            )
    return Plan(list(steps.values()), len(recordings) - len(steps), service, recovered)


def _verdict(old: Job | None, *, sent_before: bool) -> Verdict:
    if old is None:
        return "new_options" if sent_before else "new"
    if old.state in PENDING:
        return "pending"
    if old.state in LOST:
        return "uncertain"
    return "failed" if old.state == "error" else "known"


def _identify(
    ledger: Ledger, sources: Sequence[str], measure: bool, progress: bool | None
) -> dict[str, Media | AudioError]:
    identified: dict[str, Media | AudioError] = {}
    files = ManyFiles(ledger)

    def look(source: str) -> None:
        try:
            identified[source] = identify(source, files, measure=measure)
        except AudioNotFoundError:
            raise
        except AudioError as error:  # does not stop the others
            identified[source] = error

    different = list(dict.fromkeys(sources))
    with Progress("reading recordings", jobs=len(different), show=progress) as bar:
        try:
            run_in_threads(different, look, threads=_READERS, stop=threading.Event(), done=lambda: bar.advance(1))
        finally:
            files.write()
    return identified


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
