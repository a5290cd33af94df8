"""Web page of the server at `/`: jobs, their status and their text, updated live.

The page contains no data and needs no key. It loads data through the REST endpoints and `/queue`, with the key that the
user enters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from voxframe_server.http.server_state import json_response, server_state

_FOLDER = Path(__file__).parent
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_FILES = ("page.js", "job.js", "page.css", "icon.svg")
#: Paths of the page, which contain no data.
KEYLESS = frozenset({"/", *(f"/page/{name}" for name in _FILES)})
_HEADERS = {
    # Only these files may run, be shown or be connected to, and no text can become markup.
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
    """GET /: return the page to browsers, and links to other clients."""
    if "text/html" in request.headers.get("accept", ""):
        answer = _file("index.html")
    else:
        answer = json_response({"service": "voxframe", "transcripts": "/v2/transcript"})
    answer.headers["Vary"] = "Accept"
    return answer


def file(request: Request) -> Response:
    """GET /page/{name}: return a file of the page."""
    return _file(request.url.path.rpartition("/")[2])


def queue(request: Request) -> Response:
    """GET /queue: return positions in the queue, from 1, and the progress of jobs and downloads."""
    server = server_state(request)
    page = server.jobs.page(_MOST, status="queued")
    body: dict[str, Any] = {
        "waiting": {job.id: page.total - newer for newer, job in enumerate(page.jobs)},
        "progress": server.scheduler.progress(),
        "downloads": server.scheduler.downloads(),
    }
    return json_response(body)


ROUTES = [Route("/", index), Route("/queue", queue), *(Route(f"/page/{name}", file) for name in _FILES)]
