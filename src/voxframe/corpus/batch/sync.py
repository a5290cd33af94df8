"""Fetch transcripts from a service in a few threads, and look in its list for submissions whose response was lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from voxframe.client import api
from voxframe.client.async_bridge import stopped_by
from voxframe.client.transcript import FINISHED
from voxframe.corpus.archive import Archive
from voxframe.corpus.batch.worker_pool import UNUSABLE, AdaptiveThrottle, is_of_one_job
from voxframe.corpus.job import LOST, Job, canonical, new_job, now, unmarked
from voxframe.corpus.ledger import Ledger, service_name
from voxframe.corpus.tables import PartBatch
from voxframe.errors import APIError, NotFoundError, PayloadError, ServiceError
from voxframe.options import DEFAULTS, FIELDS, LIST_LIMIT, normalise

if TYPE_CHECKING:
    from voxframe.client import Client, Transcript
    from voxframe.client.api import TranscriptItem, TranscriptPage


#: Seconds after which a request that was cut off can no longer arrive. No gateway holds a request that long.
SETTLE_S = 120.0
#: Options that a service fills in itself if they are not given.
_FILLED_IN = frozenset(
    {
        "language_code",
        "language_confidence_threshold",
        "speech_model",
        "boost_param",
        "redact_pii_audio_quality",
        "redact_pii_sub",
        "content_safety_confidence",
        "summary_model",
        "summary_type",
    }
)
#: Options that do not change the transcript.
_IGNORED = frozenset({"audio_url", "webhook_url", "webhook_auth_header_name", "webhook_auth_header_value"})
#: Values that mean the same as leaving an option out.
_UNSET: tuple[object, ...] = (None, False, 0, "", [], ())


def find_lost_jobs(ledger: Ledger, client: Client) -> int:
    """Look in the service's list for submissions whose response was lost."""
    service = service_name(client)
    lost = ledger.jobs(service, LOST)
    if not lost:
        return 0
    begun, begun_clock_s = now(), time.monotonic()
    history = History(client, ledger.jobs(service), lost)
    listed = {item.id: item for item in history}
    keys = [job.key for job in lost]
    adopted = 0
    while claimed := {key for key in keys if _claim(ledger, client, key, listed)}:  # each may settle another one
        adopted += len(claimed)
        keys = [key for key in keys if key not in claimed]
    jobs = ledger.jobs(service)
    seen_until = _seen_until(jobs, listed) if history.is_whole else 0
    owned = {job.transcript_id for job in jobs}
    unowned = {item.audio_url for item in listed.values() if item.id not in owned}
    for key in keys:
        with _lost(ledger, key) as job:
            if job is None:
                continue
            if _never_arrived(job, seen_until) and job.address not in unowned and _had_time(job, begun, begun_clock_s):
                ledger.save(job, state="planned", error="the request did not reach the service")
            elif job.state == "submitting":
                ledger.save(job, state="uncertain", error="the process ended before the service responded")
    return adopted


@contextmanager
def _lost(ledger: Ledger, key: str) -> Iterator[Job | None]:
    """Lock a submission and yield it. Yields None if it is no longer lost, or is being sent right now."""
    with ledger.lock(key, wait=False) as is_held:
        job = ledger.find(key) if is_held else None
        yield job if job is not None and job.state in LOST else None


def _claim(ledger: Ledger, client: Client, key: str, listed: dict[str, TranscriptItem]) -> bool:
    """Return True if the list shows the job of a submission, after recording it."""
    with _lost(ledger, key) as job:
        if job is None:
            return False
        if job.transcript_id in listed:  # the service had returned 404 for it before
            ledger.save(job, state="submitted", error=None)
            return True
        try:
            return claim_listed_job(ledger, client, job, listed.values()) is not None
        except ServiceError as error:
            if is_of_one_job(error) or (isinstance(error, APIError) and error.transient):
                return False  # the job stays undecided
            raise


class History:
    """The service's list, newest transcript first, read until after a job that is older than the wanted submissions.

    A job is older than a submission if the service had responded to it before that submission was sent. Clocks are not
    used, because that of the service may be hours off. Without such a job the list is read to its end.

    Attributes:
        is_whole: True once everything newer than the oldest wanted submission was listed.
    """

    def __init__(self, client: Client, jobs: Sequence[Job], searched: Sequence[Job]) -> None:
        self._client = client
        first = min(job.sent_order or 0 for job in searched)
        self._older = {
            job.transcript_id for job in jobs if job.answered_order is not None and job.answered_order < first
        }
        self.is_whole = False

    def __iter__(self) -> Iterator[TranscriptItem]:
        """Yield each transcript once, newest first."""
        listed: set[str] = set()
        beyond = 0
        for page in api.iter_pages(self._client.transport, {"limit": LIST_LIMIT}):
            for item in page:
                if item.id in listed:
                    continue
                listed.add(item.id)
                yield item
                beyond += beyond > 0 or item.id in self._older
                if beyond > LIST_LIMIT:  # one page further: jobs of the same second may be in any order
                    break
            self.is_whole = beyond > 0 or (not self._older and _is_last(page, len(listed)))
            if beyond > LIST_LIMIT:
                return


def _is_last(page: TranscriptPage, count: int) -> bool:
    """Return True if the list ends with this page."""
    return not page.prev_url and len(page) < (page.limit or LIST_LIMIT) and count >= (page.result_count or 0)


def _seen_until(jobs: Sequence[Job], listed: dict[str, TranscriptItem]) -> int:
    """Return the position of the latest request whose job is listed under the URL it was sent with."""
    orders = (
        job.sent_order
        for job in jobs
        if job.sent_order is not None
        and job.transcript_id in listed
        and listed[job.transcript_id].audio_url == job.address
    )
    return max(orders, default=0)


def _never_arrived(job: Job, seen_until: int) -> bool:
    return job.transcript_id is None and job.sent_order is not None and job.sent_order < seen_until


def _had_time(job: Job, date: datetime, clock_s: float) -> bool:
    """Return True if a request had time to arrive, according to both the date and the monotonic clock."""
    if job.sent is None or job.sent_clock_s is None:
        return False
    since_s = clock_s - job.sent_clock_s
    if since_s < 0:  # the machine was restarted since
        since_s = clock_s
    return min((date - job.sent).total_seconds(), since_s) >= SETTLE_S


def claim_listed_job(ledger: Ledger, client: Client, job: Job, listed: Iterable[TranscriptItem]) -> Job | None:
    """Find the job of a submission in the service's list and record its id in the ledger."""
    same = {item.id: item for item in listed if item.audio_url is not None and item.audio_url == job.address}
    if not same:
        return None
    other_jobs = [other for other in ledger.jobs(job.service) if other.key != job.key]  # read after the list
    rivals = [other for other in other_jobs if other.state in LOST and other.address == job.address]
    owned = {other.transcript_id for other in other_jobs}
    for transcript_id in same:
        if transcript_id in owned:
            continue
        try:
            echoed = client.transcript(transcript_id).json()
        except NotFoundError:
            continue
        except UNUSABLE:  # its options are unknown; a URL that no other submission has is enough
            if any(other.address == job.address for other in other_jobs):
                continue
            echoed = {}
        if contradicts(job, echoed):
            continue
        if any(not contradicts(r, echoed) and _confirmed(r, echoed) >= _confirmed(job, echoed) for r in rivals):
            continue
        claimed = ledger.claim(job, transcript_id)
        if claimed is not None:
            return claimed
    return None


def contradicts(job: Job, answer: Mapping[str, Any]) -> bool:
    """Return True if a transcript echoes an option with another value than the submission requested."""
    asked = json.loads(job.options)
    echoed = _echoed(asked, answer)
    detected = asked.get("language_detection") or echoed.get("language_detection")
    for name, value in echoed.items():
        if name in _IGNORED or (name in _FILLED_IN and name not in asked) or (name == "language_code" and detected):
            continue
        if not _same(name, asked.get(name, DEFAULTS.get(name)), value):
            return True
    return False


def _confirmed(job: Job, answer: Mapping[str, Any]) -> int:
    """Return how many requested options the service echoes with the same value."""
    asked = json.loads(job.options)
    echoed = _echoed(asked, answer)
    return sum(name in echoed and _same(name, value, echoed[name]) for name, value in asked.items())


def _echoed(asked: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in a transcript, and those fields of `extra_body` that it has."""
    return normalise(answer) | {name: answer[name] for name in asked if name not in FIELDS and name in answer}


def _same(name: str, asked: Any, echoed: Any) -> bool:
    if asked in _UNSET and echoed in _UNSET:
        return True
    if name == "language_code":  # a service may return en_us for en
        return str(echoed).startswith(str(asked)) or str(asked).startswith(str(echoed))
    if name in FIELDS and FIELDS[name].choices and isinstance(asked, list | tuple) and isinstance(echoed, list | tuple):
        return sorted(asked) == sorted(echoed)
    return bool(asked == echoed)


#: Default number of concurrent fetches.
CONCURRENCY = 4
#: Up to this many jobs are requested one by one, without the list.
_FEW = 3
#: Jobs per round that are requested although the list does not show them.
_UNLISTED_A_ROUND = 20
#: Audio URL that the service returns for a deleted transcript.
_DELETED = "http://deleted_by_user"


def keep(archive: Archive, ledger: Ledger, job: Job, handle: Transcript, batch: PartBatch | None = None) -> Job:
    """Store the payload of a finished job, together with the job, and record in the ledger that it is finished."""
    seconds = handle.audio_duration_s
    done = replace(
        job,
        state="error" if handle.status == "error" else "completed",
        transcript_id=handle.id,
        error=handle.error,
        audio_duration_s=job.audio_duration_s if seconds is None else seconds,
    )
    try:
        archive.put(handle.id, handle.raw, job=done, batch=batch)
    except PayloadError as unreadable:  # the payload is stored as received, but has no tables
        done = replace(done, error=str(unreadable))
    return ledger.save(done)


def _request(client: Client, transcript_id: str) -> tuple[Transcript, str | None]:
    handle = client.transcript(transcript_id)
    return handle, handle.status  # the status reads the response, which may be cut short


class Fetching:
    """State shared by the threads of a sync."""

    def __init__(self, archive: Archive, ledger: Ledger, client: Client, concurrency: int) -> None:
        self._archive, self._ledger, self._client = archive, ledger, client
        self.service = service_name(client)
        self.stop = threading.Event()
        self.ended = self.failed = 0  # jobs that ended, and those of them that failed or could not be fetched
        self._throttle = AdaptiveThrottle(concurrency, self.stop)
        self._lock = threading.Lock()
        self._asked: set[str] = set()  # unlisted jobs that were requested in this cycle
        self._refused: set[str] = set()  # jobs that could not be fetched; a later sync tries again

    def pending(self) -> list[Job]:
        """Return the jobs at the service, and finished jobs without a payload in the corpus."""
        jobs = self._ledger.jobs(self.service, ("submitted", "completed"))
        here = set(self._archive.ids())
        return [
            job
            for job in jobs
            if (job.state == "submitted" or job.transcript_id not in here) and job.key not in self._refused
        ]

    def finished(self, pending: list[Job]) -> Iterator[Job]:
        """Return the jobs to request now."""
        if len(pending) <= _FEW:
            return iter(pending)
        listed = self._throttle.retry(lambda: self._states(pending))
        ended = [job for job in pending if listed.get(job.transcript_id or "") in FINISHED]
        unlisted = [job for job in pending if job.transcript_id not in listed]
        if all(job.key in self._asked for job in unlisted):
            self._asked.clear()
        turn = [job for job in unlisted if job.key not in self._asked][:_UNLISTED_A_ROUND]
        self._asked.update(job.key for job in turn)
        return iter([*ended, *turn])

    def fetch(self, batch: PartBatch, job: Job) -> None:
        """Fetch one transcript, unless it is not finished or another process is fetching it."""
        ledger = self._ledger
        with ledger.lock(job.key, wait=False) as is_held, self._throttle.turn():
            now = ledger.find(job.key) if is_held else None
            if now is None or now.transcript_id is None or (now.state != "submitted" and now != job):
                return
            identifier = now.transcript_id
            try:
                with stopped_by(self.stop):
                    handle, status = self._throttle.retry(lambda: _request(self._client, identifier))
            except NotFoundError as missing:
                ledger.save(now, state="uncertain", error=str(missing))
                return
            except ServiceError as refused:
                if not is_of_one_job(refused):
                    raise
                ledger.save(now, error=str(refused))
                with self._lock:
                    self._refused.add(job.key)
                    self.ended += 1
                    self.failed += 1
                return
            if status not in FINISHED:
                return
            keep(self._archive, self._ledger, now, handle, batch)
            with self._lock:
                self.ended += 1
                self.failed += status == "error"

    def _states(self, pending: list[Job]) -> dict[str, str | None]:
        """Return the status of each pending job, as far back as the list goes."""
        ids = {job.transcript_id for job in pending}
        jobs = self._ledger.jobs(pending[0].service)
        states: dict[str, str | None] = {}
        for item in History(self._client, jobs, pending):
            if item.id in ids:
                states[item.id] = item.status
                if len(states) == len(ids):
                    break
        return states


class Adoption:
    """State shared by the threads that fetch the transcripts of jobs that the corpus does not know."""

    def __init__(self, archive: Archive, ledger: Ledger, client: Client) -> None:
        self._archive, self._ledger, self._client = archive, ledger, client
        self.service = service_name(client)
        self.stop = threading.Event()
        self.throttle = AdaptiveThrottle(CONCURRENCY, self.stop)
        self.adopted = self.fetched = 0  # new jobs of the corpus; those of them that are finished and were fetched
        self.refused: dict[str, ServiceError] = {}  # errors of the transcripts that could not be fetched, by id
        self._lock = threading.Lock()

    def unknown(self) -> list[TranscriptItem]:
        """Return the transcripts of the service to fetch, oldest first, without failed and deleted ones."""
        listed = list(self._client.iter_transcripts())
        jobs = self._ledger.jobs(self.service)  # after the list: it may show jobs that were sent in the meantime
        ids = {job.transcript_id for job in jobs}
        passed_over = {_DELETED, *(job.address for job in jobs if job.state == "submitting" and job.address)}
        return [
            item
            for item in reversed(listed)
            if item.id not in ids and item.status != "error" and item.audio_url not in passed_over
        ]

    def take(self, batch: PartBatch, item: TranscriptItem) -> None:
        """Add one transcript. If it is not finished, a later sync fetches it."""
        with self.throttle.turn():
            try:
                handle, status = self.throttle.retry(lambda: _request(self._client, item.id))
            except NotFoundError:  # deleted after the list was read
                return
            except ServiceError as error:
                if not is_of_one_job(error):
                    raise
                with self._lock:
                    self.refused[item.id] = error
                return
        if status == "error":
            return
        job = self._job(handle, item)
        names, sources = self._ledger.recordings([item.id])
        if item.id in names:  # loaded or added before
            job = replace(job, recording=names[item.id], source=sources[item.id] or job.source)
        with self._ledger.lock(job.key), self._lock:
            if any(other.service == self.service for other in self._ledger.of_transcript(item.id)):
                return  # another process has adopted it in the meantime
            stored = self._ledger.find(job.key)
            if stored is not None and stored.transcript_id is not None:  # the same media was submitted more than once
                job = replace(job, key=new_job(item.id, item.id, {}, self.service).key)
            elif stored is not None:
                job = replace(job, source=stored.source, metadata=stored.metadata)
            job = self._ledger.save(job, state="submitted")  # with the name of the recording
            if status in FINISHED:
                keep(self._archive, self._ledger, job, handle, batch)
            self.adopted += 1
            self.fetched += status in FINISHED

    def _job(self, handle: Transcript, item: TranscriptItem) -> Job:
        """Return the job that `submit` would have created for a transcript, if its audio has a URL."""
        answer = handle.json()
        if answer.get("language_detection"):
            answer.pop("language_code", None)  # the detected language, which was not requested
        asked = {k: v for k, v in normalise(answer).items() if k != "audio_url"}
        address = item.audio_url or handle.id
        return new_job(
            unmarked(address),
            canonical(unmarked(address)),
            asked,
            self.service,
            transcript_id=handle.id,
            address=address,
            audio_duration_s=handle.audio_duration_s,
            attempts=1,
            created=item.created,
            sent=item.created,
        )
