"""Fetch transcripts from a service in a few threads: those of the corpus's jobs, and those that it does not have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from voxframe.client.async_bridge import stopped_by
from voxframe.client.transcript import FINISHED
from voxframe.corpus.addresses import canonical, unmarked
from voxframe.corpus.archive import Archive
from voxframe.corpus.batch.reconcile import History
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, is_of_one_job
from voxframe.corpus.job import Job, new_job
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.services import service_name
from voxframe.corpus.tables import PartBatch
from voxframe.errors import NotFoundError, PayloadError, ServiceError
from voxframe.options import normalise

if TYPE_CHECKING:
    from voxframe.client import Client, Transcript
    from voxframe.client.results import TranscriptItem

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
