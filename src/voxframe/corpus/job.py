"""Jobs of the ledger: states, keys, and one record file per job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

from voxframe._text import storable
from voxframe.options import DEFAULTS

#: State of a job. planned: not sent. uploading: the audio is being uploaded. submitting: the request is in progress.
#: submitted: the service has it. completed, error: finished. uncertain: the service may or may not have it.
State: TypeAlias = Literal["planned", "uploading", "submitting", "submitted", "completed", "error", "uncertain"]

#: States before the request.
PENDING: tuple[State, ...] = ("planned", "uploading")
#: States in which the request was sent and its response is unknown.
LOST: tuple[State, ...] = ("submitting", "uncertain")


@dataclass(frozen=True)
class Job:
    """One recording submitted with one set of options to one service. The table `jobs` shows its attributes."""

    key: str  # hash of the media, the options and the service
    source: str  # path or URL of the recording
    service: str
    options: str  # as JSON
    state: State = "planned"
    media: str = ""  # identity of the media: the hash of its bytes, or its URL
    transcript_id: str | None = None  # None until the service returns one
    attempts: int = 0  # number of requests that were sent for it
    error: str | None = None  # reason why it failed, or what interrupted the last attempt
    audio_duration_s: float | None = None  # duration of the media in seconds, if known
    address: str | None = None  # the `audio_url` that was sent, unique to this job
    metadata: str = "{}"  # columns about the recording, as JSON
    created: datetime | None = None  # time when it was added to the ledger, UTC
    sent: datetime | None = None  # time of the last request, UTC
    sent_clock_s: float | None = None  # the same by the machine's monotonic clock, which restarts with the machine
    sent_order: int | None = None  # position of the last request among all requests and responses of this ledger
    # Position of the response with the transcript id. It orders requests and responses even if the clock changes.
    answered_order: int | None = None
    updated: datetime | None = None  # time of the last change of state, UTC
    recording: str | None = None  # short name of the recording; the ledger sets it if it is None


JOB_COLUMNS = tuple(f.name for f in fields(Job))
_TIMES = ("created", "sent", "updated")
_STEPS: Mapping[State, int] = {
    "planned": 0,
    "uploading": 0,
    "submitting": 1,
    "uncertain": 1,
    "submitted": 2,
    "completed": 3,
    "error": 3,
}
#: Option values that mean the same as leaving the option out.
_FROM_NOTHING = (("audio_start_from", 0), ("speech_threshold", 0))


def new_job(source: str, media: str, options: Mapping[str, Any], service: str, **columns: Any) -> Job:
    """Return a job that has not been sent."""
    relevant = {k: v for k, v in options.items() if v not in (DEFAULTS.get(k), []) and not k.startswith("webhook_")}
    relevant = {k: v for k, v in relevant.items() if (k, v) not in _FROM_NOTHING}
    spelled = json.dumps(relevant, sort_keys=True, ensure_ascii=False)
    key = hashlib.sha256(json.dumps([media, spelled, service]).encode()).hexdigest()
    return Job(key, storable(source), service, spelled, media=media, **columns)


def merged(metadata: str, later: str) -> str:
    """Return two sets of metadata columns as JSON. Those of `later` win."""
    return json.dumps({**json.loads(metadata), **json.loads(later)}, ensure_ascii=False)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def parse_time(text: str) -> datetime:
    """Return a time of the ledger. One without an offset, as older ledgers have it, is UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def record_of(job: Job) -> dict[str, Any]:
    """Return a job as a JSON object, the form in which it is recorded outside the ledger."""
    return {name: stored(getattr(job, name)) for name in JOB_COLUMNS}


def job_of(record: Mapping[str, Any]) -> Job | None:
    """Return the job of a record, ignoring unknown fields. None if the record is invalid."""
    try:
        job = parse_row(tuple(record.get(name) for name in JOB_COLUMNS))
        json.loads(job.options), json.loads(job.metadata)
    except (TypeError, ValueError):
        return None
    return job if all((job.key, job.source, job.service, job.state in get_args(State))) else None


def progress(job: Job) -> tuple[int, int]:
    """Return a value that sorts jobs by progress: the last request, then the state."""
    return job.sent_order or 0, _STEPS[job.state]


def parse_row(row: tuple[Any, ...]) -> Job:
    """Return the job of a row with the columns `JOB_COLUMNS`."""
    values = dict(zip(JOB_COLUMNS, row, strict=True))
    for name in _TIMES:
        values[name] = parse_time(values[name]) if values[name] else None
    values["attempts"] = values["attempts"] or 0  # these three are null in ledgers of the first version
    values["media"] = values["media"] or ""
    values["metadata"] = values["metadata"] or "{}"
    return Job(**values)


def stored(value: object) -> object:
    """Return a value in the form stored in SQLite and JSON: times become ISO 8601 text."""
    return value.isoformat() if isinstance(value, datetime) else value
