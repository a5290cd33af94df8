"""The endpoints: what each takes from a request, asks of the jobs, and answers."""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypedDict
from urllib.parse import urlencode, urlsplit

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from voxframe.local import asked, captions, redacted, views, wire, word_search
from voxframe.local.addresses import is_known_private, origin
from voxframe.local.bodies import read_json, save_upload
from voxframe.local.gate import host_name
from voxframe.local.jobs import STATUSES, Job, Jobs, Webhook
from voxframe.local.places import Places
from voxframe.local.redacted import RedactedAudio
from voxframe.local.runner import Runner
from voxframe.options import LIST_LIMIT

_log = logging.getLogger("voxframe.local")
_UPLOAD = re.compile(r"/upload/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_DEFAULT_LIMIT = 10
UNKNOWN_ID = "Transcript lookup error, transcript id not found"


@dataclass(frozen=True)
class Service:
    """What the endpoints work with."""

    places: Places
    jobs: Jobs
    runner: Runner
    key: str = field(repr=False)
    hosts: frozenset[str] | None
    redacted: RedactedAudio
    #: Origins that may be notified wherever they resolve to. Whoever started the service may add to them.
    webhook_origins: set[str]
    #: Name of the speech engine.
    engine: str

    @property
    def owner(self) -> str:
        """Stands for the key where uploads are noted."""
        return hashlib.sha256(b"voxframe upload " + self.key.encode()).hexdigest()

    def job(self, job_id: str) -> Job:
        """The job of that id.

        Raises:
            HTTPException: 404, there is none.
        """
        job = self.jobs.get(job_id)
        if job is None:
            raise HTTPException(404, UNKNOWN_ID)
        return job

    def result(self, job: Job) -> dict[str, Any] | None:
        """Result fields of a job that is completed."""
        if job.status != "completed" or job.deleted:
            return None
        try:
            result: dict[str, Any] = orjson.loads(self.places.result(job.id).read_bytes())
        except FileNotFoundError:  # deleted a moment ago, or by hand
            raise HTTPException(404, "the result of this transcript is no longer there") from None
        return result

    def upload_of(self, url: str) -> str | None:
        """The upload that an address of this service names. The port may be that of an earlier start."""
        parts = urlsplit(url)
        ours = self.hosts is None or host_name(parts.netloc) in self.hosts
        match = _UPLOAD.fullmatch(parts.path) if ours else None
        return match[1] if match else None


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _base_url(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers['host']}"


def _json(content: object, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


async def upload(request: Request) -> Response:
    """POST /v2/upload: bytes to a file, answered with its address."""
    service = _service(request)
    upload_id = await save_upload(request, service.places)
    await run_in_threadpool(service.jobs.add_upload, upload_id, service.owner)
    return _json({"upload_url": f"{_base_url(request)}/upload/{upload_id}"})


async def create(request: Request) -> Response:
    """POST /v2/transcript: a job, queued."""
    body = await read_json(request)
    return _json(await run_in_threadpool(_create, _service(request), body))


def _create(service: Service, body: object) -> dict[str, Any]:
    try:
        fields = asked.read(body, service.engine)
    except asked.Refused as refused:
        raise HTTPException(400, str(refused)) from None
    webhook = _webhook(service, fields)
    job = service.jobs.add(fields, service.upload_of(fields["audio_url"]), service.owner, service.places.job, webhook)
    service.runner.wake()
    _log.info("job %s: queued, with %d before it", job.id, service.jobs.ahead(job))
    return wire.transcript(job, None)


def _webhook(service: Service, fields: dict[str, Any]) -> Webhook | None:
    """Whom to notify. The value of the header leaves the request here: it is kept apart, and not for long."""
    header_value = fields.pop("webhook_auth_header_value", None)
    url = fields.get("webhook_url")
    if url is None:
        return None
    try:
        name = origin(url)
        private = is_known_private(url)
    except ValueError as error:
        raise HTTPException(400, f"webhook_url is not an address to connect to: {error}") from None
    allowed = name in service.webhook_origins
    if private and not allowed:
        raise HTTPException(
            400,
            f"webhook_url leads to {name}, which is not on the public internet; this service notifies it only when "
            f"started with --allow-origin {name}",
        )
    events = ("transcript", "redacted_audio") if fields.get("redact_pii_audio") else ("transcript",)
    return Webhook(events, allowed, header_value)


def show(request: Request) -> Response:
    """GET /v2/transcript/{id}."""
    service = _service(request)
    job = service.job(request.path_params["transcript_id"])
    return _json(wire.transcript(job, service.result(job)))


def delete(request: Request) -> Response:
    """DELETE /v2/transcript/{id}: media and result leave the disk; work under way stops."""
    service = _service(request)
    job = service.job(request.path_params["transcript_id"])
    result = service.result(job) if service.places.result(job.id).exists() else None
    unused = service.jobs.delete(job.id, wire.kept(result))
    shutil.rmtree(service.places.job(job.id), ignore_errors=True)
    for media in unused:
        (service.places.root / media).unlink(missing_ok=True)
    service.runner.wake()
    _log.info("job %s: deleted", job.id)
    return _json(wire.transcript(service.job(job.id), None))


def listing(request: Request) -> Response:
    """GET /v2/transcript: a page of jobs, newest first."""
    service, query = _service(request), request.query_params
    filters = _filters(query.get)
    limit = _limit(query.get("limit"))
    before, after = (_place(service, query.get(name), name) for name in ("before_id", "after_id"))
    page = service.jobs.page(limit, **filters, before=before, after=after)
    base = _base_url(request)
    kept = {name: str(value) for name, value in filters.items() if value}

    def link(**more: str) -> str:
        return f"{base}/v2/transcript?{urlencode({'limit': limit, **kept, **more})}"

    here = {name: query[name] for name in ("before_id", "after_id") if query.get(name)}
    return _json(
        {
            "page_details": {
                "limit": limit,
                "result_count": page.total,
                "current_url": link(**here),
                "prev_url": link(before_id=page.jobs[-1].id) if page.older else None,
                "next_url": link(after_id=page.jobs[0].id) if page.newer else None,
            },
            "transcripts": [wire.list_item(job, base) for job in page.jobs],
        }
    )


def _limit(text: str | None) -> int:
    if not text:
        return _DEFAULT_LIMIT
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= LIST_LIMIT:
        raise HTTPException(400, f"limit must be a whole number from 1 to {LIST_LIMIT}, not {text!r}")
    return int(text)


class _Filters(TypedDict):
    status: str | None
    created_on: str | None
    throttled_only: bool


def _filters(given: Callable[[str], str | None]) -> _Filters:
    """The list filters of a query, in the spellings that clients use."""
    status = (given("status") or "").rpartition(".")[2].lower() or None
    if status is not None and status not in STATUSES:
        raise HTTPException(400, f"status must be one of {', '.join(STATUSES)}, not {given('status')!r}")
    created_on = given("created_on") or None
    if created_on is not None:
        try:
            created_on = date.fromisoformat(created_on).isoformat()
        except ValueError:
            raise HTTPException(400, f"created_on must be a date written YYYY-MM-DD, not {created_on!r}") from None
    throttled = (given("throttled_only") or "false").lower()
    if throttled not in ("true", "false", "1", "0"):
        raise HTTPException(400, f"throttled_only must be true or false, not {given('throttled_only')!r}")
    return {"status": status, "created_on": created_on, "throttled_only": throttled in ("true", "1")}


def _place(service: Service, job_id: str | None, name: str) -> int | None:
    if not job_id:
        return None
    job = service.jobs.get(job_id)
    if job is None:
        raise HTTPException(400, f"{name}: {UNKNOWN_ID}")
    return job.seq


def view(request: Request) -> Response:
    """GET /v2/transcript/{id}/{view}: what is derived from a finished transcript."""
    service, name = _service(request), request.path_params["view"]
    job = service.job(request.path_params["transcript_id"])
    if name == "redacted-audio":
        return _redacted_audio(service, job, request)
    make = _VIEWS.get(name)
    if make is None:
        raise HTTPException(404, f"a transcript has no {name!r}; it has {', '.join(_VIEWS)}, redacted-audio")
    if job.deleted or job.status != "completed":
        raise HTTPException(400, f"{name} can be had of a transcript that is completed; {_state(job)}")
    transcript = wire.transcript(job, service.result(job))
    try:
        made = make(transcript, request)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    return made if isinstance(made, Response) else _json(made)


def _state(job: Job) -> str:
    if job.deleted:
        return "this one was deleted"
    return f"its status is {job.status}" + (f": {job.error}" if job.status == "error" else "")


def _subtitles(write: Callable[[dict[str, Any], int], str]) -> Callable[[dict[str, Any], Request], Response]:
    def make(transcript: dict[str, Any], request: Request) -> Response:
        given = request.query_params.get("chars_per_caption") or str(captions.DEFAULT_CHARS)
        if not given.isascii() or not given.isdecimal() or not given.strip("0"):
            raise ValueError(f"chars_per_caption must be a whole number of at least 1, not {given!r}")
        # No caption is longer than nine digits can say, and Python refuses to read thousands of digits.
        return PlainTextResponse(write(transcript, int(given) if len(given) < 10 else 10**9))

    return make


def _word_search(transcript: dict[str, Any], request: Request) -> dict[str, Any]:
    wanted = word_search.terms(request.query_params.getlist("words"))
    matches = word_search.search(transcript["words"] or [], wanted)
    return {"id": transcript["id"], "total_count": sum(match["count"] for match in matches), "matches": matches}


def _redacted_audio(service: Service, job: Job, request: Request) -> Response:
    try:
        ready = service.redacted.view(job, _base_url(request))
    except redacted.NotToBeHad as error:
        raise HTTPException(400, str(error)) from None
    return _json(ready, 200 if ready else 202)


def redacted_file(request: Request) -> Response:
    """GET of a signed address: the redacted audio, whole or in ranges."""
    query = request.query_params
    try:
        path, kind = _service(request).redacted.at(
            request.path_params["name"], query.get("Expires", ""), query.get("Signature", "")
        )
        return FileResponse(path, media_type=kind, headers={"X-Content-Type-Options": "nosniff"})
    except PermissionError as error:
        raise HTTPException(403, str(error)) from None
    except FileNotFoundError as error:
        raise HTTPException(404, str(error)) from None


_VIEWS: dict[str, Callable[[dict[str, Any], Request], Response | dict[str, Any]]] = {
    "srt": _subtitles(captions.srt),
    "vtt": _subtitles(captions.vtt),
    "paragraphs": lambda transcript, _: views.paragraphs(transcript),
    "sentences": lambda transcript, _: views.sentences(transcript),
    "word-search": _word_search,
}
