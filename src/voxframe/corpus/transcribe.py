"""One recording, sent and waited for."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Unpack, get_args

from voxframe.corpus.ledger import LOST, UNSENT, Job, Ledger, State, new_job
from voxframe.corpus.media import identify
from voxframe.corpus.pace import Pace
from voxframe.corpus.reconcile import reconcile
from voxframe.corpus.send import EMBEDDED, Sender
from voxframe.errors import CorpusError, NotFoundError
from voxframe.options import TranscriptOptions, check

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus
    from voxframe.service import Client

#: Any state: a submission is sent whatever became of it before.
ANY: tuple[State, ...] = get_args(State)


def planned(ledger: Ledger, audio: str | os.PathLike[str], service: str, **options: Unpack[TranscriptOptions]) -> Job:
    """The submission of a recording, before anything is sent.

    Args:
        ledger: Remembers files that were read.
        audio: Path of a file, or an http or https address.
        service: Name of the service.
        **options: Options of the job.

    Raises:
        OptionError: An option is wrong.
        AudioError: The file cannot be read.
    """
    body = check(**options)
    return new_job(os.fspath(audio), identify(os.fspath(audio), ledger).identity, body, service)


def transcribe(
    corpus: Corpus, client: Client, job: Job, source: str, *, resend: bool, **options: Unpack[TranscriptOptions]
) -> str:
    """Send a recording, or find that it was sent, and wait for its transcript.

    Args:
        corpus: Where it is kept.
        client: The service.
        job: The submission, as `planned` made it.
        source: Path or address of the recording.
        resend: Send it again even where it was or may have been sent.
        **options: What `planned` was given.

    Returns:
        Identifier of the transcript, which is in the corpus then.

    Raises:
        CorpusError: It may have been sent before, and nobody knows; or it was, and the service has it no longer.
        ServiceError: The service, or the way to it, failed.
    """
    sent = _send(corpus.ledger, client, job, source, resend=resend, **options)
    if sent.state == "completed" and sent.transcript_id in corpus:
        return str(sent.transcript_id)
    try:
        handle = client.wait(str(sent.transcript_id))
    except NotFoundError:  # the service has lost or deleted what an earlier process sent
        if job.service != EMBEDDED:
            raise CorpusError(
                f"{job.source} was sent to {job.service} before, as {sent.transcript_id}, which it has no longer; "
                "resend=True (--resend) sends it again, which a hosted service charges for"
            ) from None
        sent = _send(corpus.ledger, client, job, source, resend=True, **options)
        handle = client.wait(str(sent.transcript_id))
    corpus.put(handle.id, handle.raw)
    corpus.ledger.save(sent, state=handle.status, error=handle.error, audio_duration_s=handle.audio_duration_s)
    return handle.id


def _send(
    ledger: Ledger, client: Client, job: Job, source: str, *, resend: bool, **options: Unpack[TranscriptOptions]
) -> Job:
    states: tuple[State, ...] = (*UNSENT, "error")
    known = ledger.find(job.key)
    if known is not None and known.state in LOST and not resend:
        reconcile(ledger, client)
    if resend:
        states = ANY
    elif job.service == EMBEDDED:  # charges nothing
        states += LOST
    stop = threading.Event()
    sent = Sender(ledger, client, Pace(1, stop), stop).send(job, source, check(**options), states)
    if sent.state in LOST:
        raise CorpusError(
            f"{job.source} may have been sent to {job.service} before: a process or a connection ended before an "
            "identifier came back, and the service does not list it (yet). client.list() shows what is there; "
            "resend=True (--resend) sends it again, which a hosted service charges for"
        )
    return sent
