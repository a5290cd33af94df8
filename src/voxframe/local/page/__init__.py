"""The service's own page at `/`: jobs, their state and their text, live, for people with a browser.

The page itself holds no data and needs no key; what it shows it asks for with the key that is typed into it, over the
same endpoints as everyone, and `/queue`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from voxframe.local.routes import Service

_FOLDER = Path(__file__).parent
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_FILES = ("page.js", "job.js", "page.css", "icon.svg")
#: Addresses that hold nothing but the page.
KEYLESS = frozenset({"/", *(f"/page/{name}" for name in _FILES)})
_HEADERS = {
    # Nothing but these files runs, is shown or is talked to, and no text becomes markup, whatever the code does.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_MOST = 200


def _file(name: str) -> Response:
    path = _FOLDER / name
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers=_HEADERS)


def index(request: Request) -> Response:
    """GET /: the page where a browser asks, else where to read on."""
    if "text/html" in request.headers.get("accept", ""):
        answer = _file("index.html")
    else:
        where = {"service": "voxframe", "transcripts": "/v2/transcript", "openapi": "/openapi.json"}
        answer = Response(orjson.dumps(where), media_type="application/json")
    answer.headers["Vary"] = "Accept"
    return answer


def file(request: Request) -> Response:
    """GET /page/{name}."""
    return _file(request.url.path.rpartition("/")[2])


def queue(request: Request) -> Response:
    """GET /queue: what the interface does not say of jobs: their place in the queue, from 1, and how much is done."""
    service = cast("Service", request.app.state.service)
    page = service.jobs.page(_MOST, status="queued")
    body: dict[str, Any] = {
        "waiting": {job.id: page.total - newer for newer, job in enumerate(page.jobs)},
        "progress": service.runner.progress(),
    }
    return Response(orjson.dumps(body), media_type="application/json")


ROUTES = [
    Route("/", index),
    Route("/queue", queue),
    *(Route(f"/page/{name}", file) for name in _FILES),
]
