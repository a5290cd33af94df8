"""Fetch finished jobs: find them in the pages of the list, and fetch them in a few threads, payload first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from voxframe.client.progress import Progress
from voxframe.client.transcript import FINISHED
from voxframe.client.waiting import interval
from voxframe.corpus.archive import Archive
from voxframe.corpus.batch.batch_result import BatchResult
from voxframe.corpus.batch.reconcile import History, reconcile
from voxframe.corpus.batch.submission import service_name
from voxframe.corpus.batch.submit import count
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, is_of_one_job, run_in_threads
from voxframe.corpus.job import Job
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.table_batch import TableBatch
from voxframe.errors import NotFoundError, PayloadError, ServiceError

if TYPE_CHECKING:
    from voxframe.client import Client, Transcript

#: Number of concurrent fetches.
CONCURRENCY = 4
#: This many jobs are requested one by one, without the list.
_FEW = 3
#: Jobs per round that are requested although the list does not show them.
_UNLISTED_A_ROUND = 20


def sync(
    archive: Archive, ledger: Ledger, client: Client, *, wait: bool = False, progress: bool | None = None
) -> BatchResult:
    """Fetch what has finished.

    Args:
        archive: Stores the payloads.
        ledger: The submissions.
        client: The service.
        wait: Whether to go on until nothing is left at the service.
        progress: Whether to show progress.

    Raises:
        CorpusError: The corpus cannot be written.
        ServiceError: The service cannot be used at the moment.
        KeyboardInterrupt: What was fetched is kept.
    """
    adopted = reconcile(ledger, client)
    service = service_name(client)
    fetching = _Fetching(archive, ledger, client)
    total = len(fetching.pending(service))
    waited_s = 0.0
    with Progress("fetching", jobs=total, show=progress) as bar:
        while pending := fetching.pending(service):
            with archive.batch() as batch:
                run_in_threads(
                    fetching.finished(pending),
                    partial(fetching.fetch, batch),
                    threads=CONCURRENCY,
                    stop=fetching.stop,
                    done=lambda: bar.advance(fetching.ended - bar.count),
                )
            if not wait or not fetching.pending(service):
                break
            pause_s = interval(waited_s, local=client.is_local)
            time.sleep(pause_s)
            waited_s += pause_s
    counts = count(ledger.jobs(service))
    return replace(counts, adopted=adopted, fetched=fetching.ended - fetching.failed, failed=fetching.failed)


def keep(archive: Archive, ledger: Ledger, job: Job, handle: Transcript, batch: TableBatch | None = None) -> Job:
    """Keep the payload of a finished job with the submission that led to it, and note that it is over.

    Args:
        archive: Stores the payloads.
        ledger: The submissions.
        job: The submission.
        handle: Its transcript.
        batch: Collects the tables of many transcripts. None (default): write them now.

    Raises:
        CorpusError: The corpus cannot be written.
    """
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
    except PayloadError as unreadable:  # it is kept as it came, and that is all that can be done
        done = replace(done, error=str(unreadable))
    return ledger.save(done)


class _Fetching:
    """State shared by the threads of a sync."""

    def __init__(self, archive: Archive, ledger: Ledger, client: Client) -> None:
        self._archive, self._ledger, self._client = archive, ledger, client
        self.stop = threading.Event()
        self.ended = self.failed = 0
        self._throttle = AdaptiveThrottle(CONCURRENCY, self.stop)
        self._lock = threading.Lock()
        self._asked: set[str] = set()  # unlisted jobs that were requested in this cycle
        self._refused: set[str] = set()  # transcripts that could not be fetched; a later sync tries again

    def pending(self, service: str) -> list[Job]:
        """Jobs at the service, and those that are over and whose payload is not here."""
        jobs = self._ledger.jobs(service, ("submitted", "completed"))
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
        found = [job for job in pending if listed.get(job.transcript_id or "") in FINISHED]
        unlisted = [job for job in pending if job.transcript_id not in listed]
        if all(job.key in self._asked for job in unlisted):
            self._asked.clear()
        turn = [job for job in unlisted if job.key not in self._asked][:_UNLISTED_A_ROUND]
        self._asked.update(job.key for job in turn)
        return iter([*found, *turn])

    def fetch(self, batch: TableBatch, job: Job) -> None:
        """Bring one transcript into the corpus, unless somebody else is at it."""
        ledger = self._ledger
        with ledger.lock(job.key, wait=False) as held, self._throttle.turn():
            now = ledger.find(job.key) if held else None
            if now is None or now.transcript_id is None or (now.state != "submitted" and now != job):
                return
            identifier = now.transcript_id
            try:
                handle, status = self._throttle.retry(lambda: self._ask(identifier))
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

    def _ask(self, transcript_id: str) -> tuple[Transcript, str | None]:
        handle = self._client.transcript(transcript_id)
        return handle, handle.status  # looking at the status reads the answer, which may turn out to be cut short

    def _states(self, pending: list[Job]) -> dict[str, str | None]:
        """Return the status of each pending job, as far back as the list goes."""
        wanted = {job.transcript_id for job in pending}
        known = self._ledger.jobs(pending[0].service)
        found: dict[str, str | None] = {}
        for item in History(self._client, known, pending):
            if item.id in wanted:
                found[item.id] = item.status
                if len(found) == len(wanted):
                    break
        return found
