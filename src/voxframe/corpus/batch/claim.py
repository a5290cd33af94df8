"""Match a submission whose response was lost with a job in the service's list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from voxframe.corpus.batch.worker_pool import UNUSABLE
from voxframe.corpus.job import LOST, Job
from voxframe.corpus.ledger import Ledger
from voxframe.errors import NotFoundError
from voxframe.options import DEFAULTS, FIELDS, normalise

if TYPE_CHECKING:
    from voxframe.client import Client
    from voxframe.client.listing import TranscriptItem

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


def claim_listed_job(ledger: Ledger, client: Client, job: Job, listed: Iterable[TranscriptItem]) -> Job | None:
    """Find the job of a submission in the service's list and record its id in the ledger.

    The job has the audio URL of the submission, belongs to no other submission, and echoes no option that contradicts a
    requested one. Some services give equal audio the same URL. If the job could also belong to another submission whose
    response was lost, the one with more confirmed options gets it. Otherwise it stays unassigned.

    Args:
        ledger: The ledger.
        client: The service.
        job: The submission, locked by the caller.
        listed: Transcripts of the service's list.

    Returns:
        The submission with its transcript id, or None.

    Raises:
        ServiceError: The options of a transcript could not be fetched.
    """
    same = {item.id: item for item in listed if item.audio_url is not None and item.audio_url == job.address}
    if not same:
        return None
    others = [other for other in ledger.jobs(job.service) if other.key != job.key]  # read after the list
    rivals = [other for other in others if other.state in LOST and other.address == job.address]
    owned = {other.transcript_id for other in others}
    for transcript_id in same:
        if transcript_id in owned:
            continue
        try:
            echoed = client.transcript(transcript_id).json()
        except NotFoundError:
            continue
        except UNUSABLE:  # its options are unknown; an address that no other submission has is enough
            if any(other.address == job.address for other in others):
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
    """Return True if a transcript echoes an option with another value than the submission requested.

    Args:
        job: The submission.
        answer: The transcript as returned by the service.
    """
    asked = json.loads(job.options)
    echoed = normalise(answer)
    detected = asked.get("language_detection") or echoed.get("language_detection")
    for name, value in echoed.items():
        if name in _IGNORED or (name in _FILLED_IN and name not in asked) or (name == "language_code" and detected):
            continue
        if not _same(name, asked.get(name, DEFAULTS.get(name)), value):
            return True
    return False


def _confirmed(job: Job, answer: Mapping[str, Any]) -> int:
    """Return how many requested options the service echoes with the same value."""
    asked, echoed = json.loads(job.options), normalise(answer)
    return sum(name in echoed and _same(name, value, echoed[name]) for name, value in asked.items())


def _same(name: str, asked: Any, echoed: Any) -> bool:
    if asked in _UNSET and echoed in _UNSET:
        return True
    if name == "language_code":  # a service may return en_us for en
        return str(echoed).startswith(str(asked)) or str(asked).startswith(str(echoed))
    if FIELDS[name].choices and isinstance(asked, list | tuple) and isinstance(echoed, list | tuple):
        return sorted(asked) == sorted(echoed)
    return bool(asked == echoed)
