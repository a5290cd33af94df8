"""Submit one recording and wait for its transcript."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Unpack, get_args

from voxframe.corpus.archive import Archive
from voxframe.corpus.batch.media import identify
from voxframe.corpus.batch.reconcile import reconcile
from voxframe.corpus.batch.submission import EMBEDDED, Sender
from voxframe.corpus.batch.sync import keep
from voxframe.corpus.batch.worker_pool import AdaptiveThrottle
from voxframe.corpus.job import LOST, PENDING, Job, State, new_job
from voxframe.corpus.ledger import Ledger
from voxframe.errors import CorpusError, NotFoundError
from voxframe.options import TranscriptOptions, check

if TYPE_CHECKING:
    from voxframe.client import Client

#: Every state, to send a job whatever its state.
ANY: tuple[State, ...] = get_args(State)


def planned(ledger: Ledger, audio: str | os.PathLike[str], service: str, **options: Unpack[TranscriptOptions]) -> Job:
    """Return the job of a recording that is not sent yet.

    Args:
        ledger: Caches file hashes.
        audio: Path of a file, or an http or https URL.
        service: Name of the service.
        **options: Options of the job.

    Raises:
        OptionError: An option is invalid.
        AudioError: The file cannot be read.
    """
    body = check(**options)
    return new_job(os.fspath(audio), identify(os.fspath(audio), ledger).identity, body, service)


def transcribe(
    archive: Archive,
    ledger: Ledger,
    client: Client,
    job: Job,
    source: str,
    *,
    force: bool,
    **options: Unpack[TranscriptOptions],
) -> str:
    """Send a recording, or find that it was sent, and wait for its transcript.

    Args:
        archive: Stores the payload.
        ledger: The submissions.
        client: The service.
        job: The submission, as `planned` made it.
        source: Path or address of the recording.
        force: Send it again even where it was or may have been sent.
        **options: What `planned` was given.

    Returns:
        Identifier of the transcript, which is in the corpus then.

    Raises:
        CorpusError: It may have been sent before, and nobody knows; or it was, and the service has it no longer.
        ServiceError: The service, or the way to it, failed.
    """
    sent = _send(ledger, client, job, source, force=force, **options)
    if sent.state == "completed" and archive.is_finished(str(sent.transcript_id)):
        return str(sent.transcript_id)
    try:
        handle = client.wait(str(sent.transcript_id))
    except NotFoundError:  # the service has lost or deleted what an earlier process sent
        if job.service != EMBEDDED:
            raise CorpusError(
                f"{job.source} was sent to {job.service} before, as {sent.transcript_id}, which it has no longer; "
                "force=True (--force) sends it again, which a hosted service charges for"
            ) from None
        sent = _send(ledger, client, job, source, force=True, **options)
        handle = client.wait(str(sent.transcript_id))
    keep(archive, ledger, sent, handle)
    return handle.id


def _send(
    ledger: Ledger, client: Client, job: Job, source: str, *, force: bool, **options: Unpack[TranscriptOptions]
) -> Job:
    states: tuple[State, ...] = (*PENDING, "error")
    known = ledger.find(job.key)
    if known is not None and known.state in LOST and not force:
        reconcile(ledger, client)
    if force:
        states = ANY
    elif job.service == EMBEDDED:  # charges nothing
        states += LOST
    stop = threading.Event()
    sent = Sender(ledger, client, AdaptiveThrottle(1, stop), stop).send(job, source, check(**options), states)
    if sent.state in LOST:
        raise CorpusError(
            f"{job.source} may have been sent to {job.service} before: a process or a connection ended before an "
            "identifier came back, and the service does not list it (yet). sync() looks again. Only if "
            "client.list() shows that it has none, force=True (--force) sends it again; else both are charged for"
        )
    return sent
