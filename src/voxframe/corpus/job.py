"""Jobs of the ledger: their states and keys, and the URLs and names of their recordings."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from voxframe._text import storable
from voxframe.errors import OptionError
from voxframe.options import DEFAULTS

_MARK = re.compile(r"[#&]voxframe=[0-9a-f-]{36}$")
_USUAL_PORTS = {"http": ":80", "https": ":443"}
#: Extensions of recordings.
EXTENSIONS = frozenset(
    ".3ga .3gp .8svx .aac .ac3 .aif .aifc .aiff .alac .amr .ape .au .caf .dss .flac .flv .m2ts .m4a .m4b .m4p .m4r "
    ".m4v .mkv .mov .mp2 .mp3 .mp4 .mpeg .mpga .mpg .mts .mxf .oga .ogg .ogv .opus .qcp .ts .tta .voc .wav .webm .wma "
    ".wmv .wv".split()
)
_LONGEST = 120  # characters of a name


def is_address(source: str) -> bool:
    """Return True if a source is an http or https URL, which the service fetches itself."""
    return source.lower().startswith(("http://", "https://"))


def is_remote(source: str) -> bool:
    """Return True if a source is in a remote store that the service cannot fetch from, such as s3://bucket/a.mp3."""
    return "://" in source and not is_address(source)


def marked(address: str) -> str:
    """Return a URL of the same recording that no other submission has. Its tag is a fragment, which is never sent."""
    return f"{address}{'&' if '#' in address else '#'}voxframe={uuid.uuid4()}"


def unmarked(address: str) -> str:
    """Return a URL without the tag that `marked` adds."""
    return _MARK.sub("", address)


def split(address: str) -> SplitResult:
    """Return the parts of a URL. If its host is invalid, as a service may list it, the host is percent-encoded.

    Example:
        >>> split("https://[x/a.mp3").path
        '/a.mp3'
    """
    try:
        return urlsplit(address)
    except ValueError:
        plain = re.sub(r"[\t\r\n]", "", address)  # urlsplit removes them first
        return urlsplit(re.sub(r"(?<=//)[^/?#]*", lambda host: quote(host[0], "@:", errors="replace"), plain, count=1))


def canonical(address: str) -> str:
    """Return a normalized URL, which is equal for all spellings and signatures of one URL.

    Schemes and hosts are case-insensitive, default ports can be omitted, and fragments are not sent to the server.

    Example:
        >>> canonical("HTTPS://B.example:443/a.mp3#t=10") == canonical("https://b.example/a.mp3")
        True
    """
    parts = split(unsigned(address))
    user, at, host = parts.netloc.rpartition("@")
    host = host.lower().removesuffix(_USUAL_PORTS.get(parts.scheme, ""))
    return urlunsplit(parts._replace(netloc=user + at + host, fragment=""))


def unsigned(address: str) -> str:
    """Return a URL without its temporary signature. The same recording can have many signed URLs.

    Recognizes signatures of Amazon S3 and CloudFront, Google Cloud Storage and Azure Blob Storage by the names of their
    query parameters.

    Example:
        >>> unsigned("https://b.example/a.mp3?versionId=3&X-Amz-Date=20240311&X-Amz-Signature=ab12")
        'https://b.example/a.mp3?versionId=3'
    """
    parts = split(address)
    pairs = all_pairs = parts.query.split("&")
    names = {_name(pair) for pair in pairs}
    for needed, prefix, further in _SIGNATURES:
        if needed <= names:
            pairs = [p for p in pairs if not _name(p).startswith(prefix or "\0") and _name(p) not in further]
    return address if len(pairs) == len(all_pairs) else urlunsplit(parts._replace(query="&".join(pairs)))


def _name(pair: str) -> str:
    return pair.partition("=")[0].lower()


#: Signatures as query parameters: the required names, the prefix of further names, and the further names.
_SIGNATURES: tuple[tuple[set[str], str, set[str]], ...] = (
    ({"x-amz-signature"}, "x-amz-", set()),
    ({"x-goog-signature"}, "x-goog-", set()),
    ({"sig", "se"}, "", set("sig se sv sr sp st spr sip ss srt sdd ske skoid sks skt sktid skv".split())),
    ({"signature", "expires"}, "", set("signature expires awsaccesskeyid googleaccessid key-pair-id".split())),
    ({"signature", "policy", "key-pair-id"}, "", set("signature policy key-pair-id".split())),
)


def short_name(source: str) -> str | None:
    """Return the stem of a file name, or the last segment of a URL.

    Example:
        >>> short_name("calls/2024/call 7.wav"), short_name("https://b.example/calls/call%207.mp3?sig=x")
        ('call 7', 'call 7.mp3')
    """
    if "://" in source:
        return tidy(unquote(split(source).path.rstrip("/").rpartition("/")[2])) or None
    return tidy(PurePath(source).stem) or None


def tidy(name: str) -> str:
    """Return a name without control characters, slashes and outer spaces, and not longer than 120 characters."""
    printable = "".join(c if c.isprintable() and c not in "/\\" else " " for c in name)
    return re.sub(r"\s+", " ", printable).strip()[:_LONGEST].rstrip()


def checked_name(value: object) -> str | None:
    """Return the name of a recording that a user gave; None for null."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, str) or not value.strip() or tidy(value) != value.strip():
        raise OptionError(
            f"the name of a recording must be text of 1 to {_LONGEST} characters without slashes, got {value!r:.100}"
        )
    return value.strip()


def job_stem(source: str, transcript_id: str | None, key: str) -> str:
    """Return the wanted name of the recording of a job: from its source, otherwise the id."""
    if source == transcript_id:
        return source
    return short_name(source) or transcript_id or key[:12]


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
