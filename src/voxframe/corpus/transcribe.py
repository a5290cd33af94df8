"""A recording to a job at a service, never sent twice: every step is in the ledger before it is taken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from voxframe.corpus.ledger import Job, Ledger, is_address, new_job
from voxframe.errors import AudioError, AudioNotFoundError, CorpusError, ServiceError
from voxframe.options import TranscriptOptions, check
from voxframe.service.embedded import is_embedded

if TYPE_CHECKING:
    from voxframe.service import Client

#: Name of the embedded service in the ledger, whatever port it runs on.
EMBEDDED = "embedded"


def service_name(client: Client | None) -> str:
    """Name of a client's service in the ledger; None is the embedded one."""
    return EMBEDDED if client is None or is_embedded(client.base_url) else client.base_url


def plan(audio: str | os.PathLike[str], client: Client | None, **options: Unpack[TranscriptOptions]) -> Job:
    """The submission of a recording, before anything is sent.

    Args:
        audio: Path of a file, or an http or https address.
        client: The service; None is the embedded one.
        **options: Options of the job.

    Raises:
        OptionError: An option is wrong.
        AudioError: The file cannot be read.
    """
    try:
        return new_job(audio, check(**options), service_name(client))
    except FileNotFoundError:
        raise AudioNotFoundError(f"there is no file {os.fspath(audio)!r}; check its path") from None
    except IsADirectoryError:
        raise AudioError(f"{os.fspath(audio)!r} is a directory; name one recording in it") from None
    except OSError as e:
        raise AudioError(f"{os.fspath(audio)!r} cannot be read: {e.strerror or e}") from None


def send(
    ledger: Ledger,
    job: Job,
    client: Client,
    audio: str | os.PathLike[str],
    *,
    resend: bool = False,
    **options: Unpack[TranscriptOptions],
) -> Job:
    """Bring a submission to a job at the service, going on where an earlier process stopped.

    Call it while holding the ledger's turn for the key.

    Args:
        ledger: Where each step is written down.
        job: The submission, as `plan` made it.
        client: The service.
        audio: What `plan` was given.
        resend: Send it again even where it was or may have been sent.
        **options: What `plan` was given.

    Returns:
        The submission with the identifier of its job.

    Raises:
        CorpusError: It may have been sent before, and nobody knows.
        ServiceError: The service, or the way to it, failed.
    """
    known = None if resend else ledger.find(job.key)
    if known is not None and known.transcript_id is not None and known.state != "error":
        return known
    if known is not None and known.state in ("submitting", "uncertain") and job.service != EMBEDDED:
        ledger.save(known, state="uncertain")
        raise CorpusError(
            f"{job.source} may have been sent to {job.service} before: a process or a connection ended before an "
            "identifier came back. client.list() shows what is there; resend=True (--resend) sends it again, which a "
            "hosted service charges for"
        )
    job = ledger.save(job)
    try:
        media = audio if is_address(os.fspath(audio)) else client.upload(audio)
        job = ledger.save(job, state="submitting")
        handle = client.submit(media, **options)
    except ServiceError as e:
        lost = job.state == "submitting" and e.may_have_arrived  # an upload alone is not charged for
        ledger.save(job, state="uncertain" if lost else "error", error=str(e))
        raise
    return ledger.save(job, state="submitted", transcript_id=handle.id)
