"""Finished jobs into the corpus: found by the pages of the list, fetched by a few threads, the payload kept first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from voxframe.corpus.crew import work_through
from voxframe.corpus.ledger import Job
from voxframe.corpus.outcome import Outcome
from voxframe.corpus.pace import Pace
from voxframe.corpus.reconcile import history, reconcile
from voxframe.corpus.send import service_name
from voxframe.corpus.submit import count
from voxframe.errors import NotFoundError, PayloadError
from voxframe.service.progress import Progress
from voxframe.service.transcript import FINISHED
from voxframe.service.waiting import interval

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus
    from voxframe.service import Client, Transcript

#: Transcripts fetched at once.
CONCURRENCY = 4
#: So few jobs are asked about one by one, without the list; also those that the list does not show, in each round.
_FEW = 3
_UNLISTED_A_ROUND = 20


def sync(corpus: Corpus, client: Client, *, wait: bool = False, progress: bool | None = None) -> Outcome:
    """Fetch what has finished.

    Args:
        corpus: Where it is kept.
        client: The service.
        wait: Whether to go on until nothing is left at the service.
        progress: Whether to show progress.

    Raises:
        CorpusError: The corpus cannot be written.
        ServiceError: The service cannot be used at the moment.
        KeyboardInterrupt: What was fetched is kept.
    """
    adopted = reconcile(corpus.ledger, client)
    service = service_name(client)
    fetching = _Fetching(corpus, client)
    total = len(fetching.pending(service))
    waited_s = 0.0
    with Progress("fetching", jobs=total, show=progress) as bar:
        while pending := fetching.pending(service):
            work_through(
                fetching.finished(pending),
                fetching.fetch,
                threads=CONCURRENCY,
                stop=fetching.stop,
                done=lambda: bar.advance(fetching.ended - bar.count),
            )
            if not wait or not fetching.pending(service):
                break
            pause_s = interval(waited_s, local=client._local)
            time.sleep(pause_s)
            waited_s += pause_s
    counts = count(corpus.ledger.jobs(service))
    return replace(counts, adopted=adopted, fetched=fetching.ended - fetching.failed, failed=fetching.failed)


class _Fetching:
    """What the threads of a sync share."""

    def __init__(self, corpus: Corpus, client: Client) -> None:
        self._corpus, self._client = corpus, client
        self.stop = threading.Event()
        self.ended = self.failed = 0
        self._pace = Pace(CONCURRENCY, self.stop)
        self._lock = threading.Lock()
        self._asked: set[str] = set()  # those that the list does not show, in turn

    def pending(self, service: str) -> list[Job]:
        """Jobs at the service, and those that are over and whose payload is not here."""
        jobs = self._corpus.ledger.jobs(service, ("submitted", "completed"))
        here = set(self._corpus.ids())
        return [job for job in jobs if job.state == "submitted" or job.transcript_id not in here]

    def finished(self, pending: list[Job]) -> Iterator[Job]:
        """Jobs worth asking about."""
        if len(pending) <= _FEW:
            return iter(pending)
        listed = self._pace.patiently(lambda: self._states(pending))
        found = [job for job in pending if listed.get(job.transcript_id or "") in FINISHED]
        unlisted = [job for job in pending if job.transcript_id not in listed]
        if all(job.key in self._asked for job in unlisted):
            self._asked.clear()
        turn = [job for job in unlisted if job.key not in self._asked][:_UNLISTED_A_ROUND]
        self._asked.update(job.key for job in turn)
        return iter([*found, *turn])

    def fetch(self, job: Job) -> None:
        """Bring one transcript into the corpus, unless somebody else is at it."""
        ledger = self._corpus.ledger
        with ledger.turn(job.key, wait=False) as held, self._pace.turn():
            now = ledger.find(job.key) if held else None
            if now is None or now.transcript_id is None or (now.state != "submitted" and now != job):
                return
            identifier = now.transcript_id
            try:
                handle, status = self._pace.patiently(lambda: self._ask(identifier))
            except NotFoundError as missing:
                ledger.save(now, state="uncertain", error=str(missing))
                return
            if status not in FINISHED:
                return
            error, seconds = handle.error, handle.audio_duration_s
            try:
                self._corpus.put(identifier, handle.raw)
            except PayloadError as unreadable:  # it is kept as it came, and that is all that can be done
                error = str(unreadable)
            duration_s = seconds if seconds is not None else now.audio_duration_s
            ledger.save(now, state=status, error=error, audio_duration_s=duration_s)
            with self._lock:
                self.ended += 1
                self.failed += status == "error"

    def _ask(self, transcript_id: str) -> tuple[Transcript, str | None]:
        handle = self._client.transcript(transcript_id)
        return handle, handle.status  # looking at the status reads the answer, which may turn out to be cut short

    def _states(self, pending: list[Job]) -> dict[str, str | None]:
        """Status of each job, as far as the list goes back to them."""
        wanted = {job.transcript_id for job in pending}
        since = min((moment for job in pending if (moment := job.sent or job.created)), default=None)
        found: dict[str, str | None] = {}
        for item in history(self._client, since):
            if item.id in wanted:
                found[item.id] = item.status
                if len(found) == len(wanted):
                    break
        return found
