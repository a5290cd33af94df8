"""Import jobs of a service that the corpus does not know, and delete transcripts here and at the service."""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from voxframe._files import file_name
from voxframe.client.progress import Progress
from voxframe.client.transcript import FINISHED, Transcript
from voxframe.corpus.addresses import canonical, unmarked
from voxframe.corpus.archive import Archive
from voxframe.corpus.batch.batch_result import BatchResult
from voxframe.corpus.batch.reconcile import reconcile
from voxframe.corpus.batch.submission import service_name
from voxframe.corpus.batch.submit import count
from voxframe.corpus.batch.sync import CONCURRENCY, keep
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle, is_of_one_job, run_in_threads
from voxframe.corpus.job import Job, new_job
from voxframe.corpus.ledger import Ledger
from voxframe.corpus.table_batch import TableBatch
from voxframe.errors import CorpusError, CorpusWarning, NotFoundError, ServiceError
from voxframe.options import normalise

if TYPE_CHECKING:
    from voxframe.client import Client
    from voxframe.client.listing import TranscriptItem
    from voxframe.corpus.search.index import SearchIndex
    from voxframe.corpus.snapshots import Snapshots

#: Audio URL that the service returns for a deleted transcript.
_DELETED = "http://deleted_by_user"


def adopt(archive: Archive, ledger: Ledger, client: Client, *, progress: bool | None = None) -> BatchResult:
    """Import every transcript of the service that the corpus does not know, except failed and deleted ones.

    Args:
        archive: Stores the payloads.
        ledger: The submissions.
        client: The service.
        progress: Show a progress bar. None (default): only in an interactive session, after one second.

    Raises:
        CorpusError: The corpus cannot be written.
        ServiceError: The service is unavailable. What was fetched is kept.
        KeyboardInterrupt: What was fetched is kept.

    Warns:
        CorpusWarning: Some transcripts could not be fetched. They are counted as failed.
    """
    found = reconcile(ledger, client)
    adoption = _Adoption(archive, ledger, client)
    wanted = list(adoption.throttle.retry(adoption.unknown))
    with Progress("adopting", jobs=len(wanted), show=progress) as bar, archive.batch() as batch:
        take = partial(adoption.take, batch)
        run_in_threads(wanted, take, threads=CONCURRENCY, stop=adoption.stop, done=lambda: bar.advance(1))
    refused = adoption.refused
    if refused:
        warnings.warn(
            f"{len(refused)} of {len(wanted)} transcripts could not be fetched, among them {next(iter(refused))}: "
            f"{next(iter(refused.values()))}. adopt() again tries them again",
            CorpusWarning,
            stacklevel=4,
        )
    counts = count(ledger.jobs(adoption.service))
    return replace(counts, adopted=found + adoption.adopted, fetched=adoption.fetched, failed=len(refused))


class _Adoption:
    """State shared by the threads of an import."""

    def __init__(self, archive: Archive, ledger: Ledger, client: Client) -> None:
        self._archive, self._ledger, self._client = archive, ledger, client
        self.service = service_name(client)
        self.stop = threading.Event()
        self.throttle = AdaptiveThrottle(CONCURRENCY, self.stop)
        self.adopted = self.fetched = 0
        self.refused: dict[str, ServiceError] = {}
        self._lock = threading.Lock()

    def unknown(self) -> list[TranscriptItem]:
        """Transcripts of the service to bring in, the oldest first."""
        known = {job.transcript_id for job in self._ledger.jobs(self.service)}
        listed = [
            item
            for item in self._client.iter_transcripts()
            if item.id not in known and item.status != "error" and item.audio_url != _DELETED
        ]
        return listed[::-1]

    def take(self, batch: TableBatch, item: TranscriptItem) -> None:
        """Import one transcript. If it is not finished, a later sync fetches it."""
        with self.throttle.turn():
            try:
                handle, status = self.throttle.retry(lambda: self._ask(item.id))
            except NotFoundError:  # deleted meanwhile
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
        with self._ledger.lock(job.key), self._lock:
            known = self._ledger.find(job.key)
            if known is not None and known.transcript_id is not None:  # the same media, more than once
                job = replace(job, key=new_job(item.id, item.id, {}, self.service).key)
            elif known is not None:
                job = replace(job, source=known.source, metadata=known.metadata)
            if status in FINISHED:
                keep(self._archive, self._ledger, job, handle, batch)
            else:
                self._ledger.save(job, state="submitted")
            self.adopted += 1
            self.fetched += status in FINISHED

    def _ask(self, transcript_id: str) -> tuple[Transcript, str | None]:
        handle = self._client.transcript(transcript_id)
        return handle, handle.status

    def _job(self, handle: Transcript, item: TranscriptItem) -> Job:
        """Return the job that `submit` would have created for a transcript, if its audio has a URL."""
        answer = handle.json()
        if answer.get("language_detection"):
            answer.pop("language_code", None)  # that is what was detected, not what was asked for
        asked = {k: v for k, v in normalise(answer).items() if k != "audio_url"}
        address = item.audio_url or handle.id
        known = {"transcript_id": handle.id, "address": address, "audio_duration_s": handle.audio_duration_s}
        return new_job(
            unmarked(address),
            canonical(unmarked(address)),
            asked,
            self.service,
            **known,
            attempts=1,
            created=item.created,
            sent=item.created,
        )


def forget(
    archive: Archive,
    ledger: Ledger,
    index: SearchIndex,
    snapshots: Snapshots,
    transcript_id: str,
    client: Client | None,
) -> None:
    """Delete a transcript, first at the service and then here, so that what fails can be done again.

    Args:
        archive: Stores the payload.
        ledger: The submissions.
        index: The search index, which holds the words.
        snapshots: Sealed versions, which are not changed.
        transcript_id: Its identifier.
        client: The service it is deleted at, too; None deletes it here only.

    Raises:
        CorpusError: It is not here, or is another service's.
        ServiceError: It could not be deleted at the service; it is still here.
    """
    jobs = ledger.of_transcript(transcript_id)
    if not jobs and transcript_id not in archive.ids():
        raise archive.missing(transcript_id)
    if client is not None:
        others = {job.service for job in jobs} - {service_name(client)}
        if others:
            raise CorpusError(
                f"transcript {transcript_id!r} is at {', '.join(sorted(others))}, not at {service_name(client)}; give "
                "client=voxframe.connect(...) of that service, or remote=False to delete it here only"
            )
        service = service_name(client)
        for request_id in ledger.requests(service, transcript_id):
            with suppress(NotFoundError):
                client.purge(request_id)
            ledger.drop_request(request_id, service)
        with suppress(NotFoundError):  # it is gone there already
            client.delete(transcript_id)
    archive.remove(transcript_id)
    index.purge(file_name(transcript_id))
    ledger.remove(transcript_id)
    _tell_of_snapshots(archive, snapshots, transcript_id)


def _tell_of_snapshots(archive: Archive, snapshots: Snapshots, transcript_id: str) -> None:
    """Say which sealed versions hold a transcript that was deleted; what is sealed is not changed."""
    left = []
    for version in snapshots.versions():
        with suppress(CorpusError):
            left += [version] * (transcript_id in snapshots.open(version).ids())
    if left:
        places = ", ".join(str(archive.path / "snapshots" / f"v={version}") for version in left)
        warnings.warn(
            f"transcript {transcript_id!r} is deleted, but sealed versions keep it; delete {places} where it must go",
            CorpusWarning,
            stacklevel=4,
        )
