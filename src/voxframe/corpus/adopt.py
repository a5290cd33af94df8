"""Jobs that the service has and the corpus does not know of, brought in; and transcripts forgotten here and there."""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING

from voxframe.corpus.addresses import canonical, unmarked
from voxframe.corpus.crew import work_through
from voxframe.corpus.ledger import Job, new_job
from voxframe.corpus.outcome import Outcome
from voxframe.corpus.pace import Pace
from voxframe.corpus.reconcile import reconcile
from voxframe.corpus.send import service_name
from voxframe.corpus.submit import count
from voxframe.corpus.sync import CONCURRENCY
from voxframe.errors import CorpusError, CorpusWarning, NotFoundError, PayloadError
from voxframe.options import normalise
from voxframe.service.progress import Progress
from voxframe.service.transcript import FINISHED, Transcript

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus
    from voxframe.service import Client
    from voxframe.service.listing import Item

#: What the service says of a transcript that was deleted, in place of the address of its audio.
_DELETED = "http://deleted_by_user"


def adopt(corpus: Corpus, client: Client, *, progress: bool | None = None) -> Outcome:
    """Bring in every transcript of the service that the corpus does not know of, but for failed and deleted ones.

    Args:
        corpus: Where they are kept.
        client: The service.
        progress: Whether to show progress.

    Raises:
        CorpusError: The corpus cannot be written.
        ServiceError: The service cannot be used at the moment; what was fetched is kept.
        KeyboardInterrupt: What was fetched is kept.
    """
    found = reconcile(corpus.ledger, client)
    adoption = _Adoption(corpus, client)
    wanted = list(adoption.pace.patiently(adoption.unknown))
    with Progress("adopting", jobs=len(wanted), show=progress) as bar:
        work_through(wanted, adoption.take, threads=CONCURRENCY, stop=adoption.stop, done=lambda: bar.advance(1))
    counts = count(corpus.ledger.jobs(adoption.service))
    return replace(counts, adopted=found + adoption.adopted, fetched=adoption.fetched, failed=0)


class _Adoption:
    """What the threads of an adoption share."""

    def __init__(self, corpus: Corpus, client: Client) -> None:
        self._corpus, self._client = corpus, client
        self.service = service_name(client)
        self.stop = threading.Event()
        self.pace = Pace(CONCURRENCY, self.stop)
        self.adopted = self.fetched = 0
        self._lock = threading.Lock()

    def unknown(self) -> list[Item]:
        """Transcripts of the service to bring in, the oldest first."""
        known = {job.transcript_id for job in self._corpus.ledger.jobs(self.service)}
        listed = [
            item
            for item in self._client.transcripts()
            if item.id not in known and item.status != "error" and item.audio_url != _DELETED
        ]
        return listed[::-1]

    def take(self, item: Item) -> None:
        """Bring one in; one that is not finished is fetched by a later sync."""
        with self.pace.turn():
            try:
                handle, status = self.pace.patiently(lambda: self._ask(item.id))
            except NotFoundError:  # deleted meanwhile
                return
        if status == "error":
            return
        job = self._job(handle, item)
        if status in FINISHED:
            try:
                self._corpus.put(handle.id, handle.raw)
            except PayloadError as unreadable:
                job = replace(job, error=str(unreadable))
        with self._corpus.ledger.turn(job.key), self._lock:
            known = self._corpus.ledger.find(job.key)
            if known is not None and known.transcript_id is not None:  # the same media, more than once
                job = replace(job, key=new_job(item.id, item.id, {}, self.service).key)
            elif known is not None:
                job = replace(job, source=known.source, metadata=known.metadata)
            self._corpus.ledger.save(job, state="completed" if status in FINISHED else "submitted")
            self.adopted += 1
            self.fetched += status in FINISHED

    def _ask(self, transcript_id: str) -> tuple[Transcript, str | None]:
        handle = self._client.transcript(transcript_id)
        return handle, handle.status

    def _job(self, handle: Transcript, item: Item) -> Job:
        """The submission that would have led to a transcript: of an address the same that `submit` would make."""
        answer = handle.json()
        if answer.get("language_detection"):
            answer.pop("language_code", None)  # that is what was detected, not what was asked for
        asked = {k: v for k, v in normalise(answer).items() if k != "audio_url"}
        address = item.audio_url or handle.id
        made = None if item.created is None else item.created.astimezone(UTC).replace(tzinfo=None)
        known = {"transcript_id": handle.id, "address": address, "audio_duration_s": handle.audio_duration_s}
        return new_job(
            unmarked(address),
            canonical(unmarked(address)),
            asked,
            self.service,
            **known,
            attempts=1,
            created=made,
            sent=made,
        )


def forget(corpus: Corpus, transcript_id: str, client: Client | None) -> None:
    """Delete a transcript, first at the service and then here, so that what fails can be done again.

    Args:
        corpus: Where it is kept.
        transcript_id: Its identifier.
        client: The service it is deleted at, too; None deletes it here only.

    Raises:
        CorpusError: It is not here, or is another service's.
        ServiceError: It could not be deleted at the service; it is still here.
    """
    jobs = corpus.ledger.of_transcript(transcript_id)
    if not jobs and transcript_id not in corpus.ids():
        raise CorpusError(f"there is no transcript {transcript_id!r} in {corpus!r}; Corpus.ids() lists what is there")
    if client is not None:
        others = {job.service for job in jobs} - {service_name(client)}
        if others:
            raise CorpusError(
                f"transcript {transcript_id!r} is at {', '.join(sorted(others))}, not at {service_name(client)}; give "
                "client=voxframe.connect(...) of that service, or remote=False to delete it here only"
            )
        service = service_name(client)
        for request_id in corpus.ledger.requests(service, transcript_id):
            with suppress(NotFoundError):
                client.purge(request_id)
            corpus.ledger.drop_request(request_id, service)
        with suppress(NotFoundError):  # it is gone there already
            client.delete(transcript_id)
    corpus.remove(transcript_id)
    corpus.ledger.remove(transcript_id)
    _tell_of_snapshots(corpus, transcript_id)


def _tell_of_snapshots(corpus: Corpus, transcript_id: str) -> None:
    """Say which sealed versions hold a transcript that was deleted; what is sealed is not changed."""
    left = []
    for version in corpus.versions():
        with suppress(CorpusError):
            left += [version] * (transcript_id in corpus.load(version).ids())
    if left:
        places = ", ".join(str(corpus.path / "snapshots" / f"v={version}") for version in left)
        warnings.warn(
            f"transcript {transcript_id!r} is deleted, but sealed versions keep it; delete {places} where it must go",
            CorpusWarning,
            stacklevel=4,
        )
