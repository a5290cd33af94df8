"""Addresses of recordings for a browser, which fetches only the parts it plays. Notebooks hold no recording.

1. A file in the folder that Jupyter serves has a URL there (`files/...`), which also works from another machine.
2. Every file has a URL on a small server in this process, on loopback only: for pages of this machine.
3. Any other page (Colab, remote VS Code, JupyterHub) gets the whole file in messages of the widget, when it is played.

A player tries them in this order.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import mimetypes
import os
import re
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from voxframe.corpus.job import is_remote
from voxframe.errors import AudioError, AudioNotFoundError, OptionError

_log = logging.getLogger("voxframe.widgets")
_CHUNK_BYTES = 1 << 16
#: The source that stands for messages of the widget; `KERNEL` in `sound.js`.
KERNEL = "kernel:"
_PART_BYTES = 1 << 20  # of one message
#: Media types that Python's table lacks or that differ between systems.
_TYPES = {".flac": "audio/flac", ".opus": "audio/ogg", ".oga": "audio/ogg", ".m4a": "audio/mp4", ".wav": "audio/wav"}


def is_browser_url(audio: str) -> bool:
    """Return True for an http, https or blob URL."""
    return audio.lower().startswith(("http://", "https://", "blob:"))


def existing_file(audio: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a recording."""
    if is_remote(os.fspath(audio)):
        raise AudioError(
            f"a browser cannot play {os.fspath(audio)!r} from this store; give a local file or an https URL"
        )
    path = Path(audio).expanduser().resolve()
    if not path.exists():
        raise AudioNotFoundError(f"there is no file {os.fspath(audio)!r}; check the path")
    if not path.is_file():
        raise AudioError(f"{os.fspath(audio)!r} is not a file; give the path of one recording")
    return path


def media_type(path: Path) -> str:
    """Return the media type of a recording by its name; never one that a browser would run or render as a page."""
    mime_type = _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or ""
    return mime_type if mime_type.startswith(("audio/", "video/")) else "application/octet-stream"


def media_urls(audio: str | os.PathLike[str]) -> list[str]:
    """Return URLs at which a browser may find a recording, best first, then `KERNEL` for a file."""
    if isinstance(audio, str) and is_browser_url(audio):
        return [audio]
    path = existing_file(audio)
    at_jupyter = jupyter_url(path)
    return [*([at_jupyter] if at_jupyter else []), _server().url(path), KERNEL]


def file_part(path: Path, begin: int) -> tuple[dict[str, Any], bytes]:
    """Return a part of a file and its description, for a message to the browser; no bytes if it cannot be read."""
    size, content = 0, b""
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(begin)
        content = file.read(_PART_BYTES)
    return {"from": begin, "size": size, "type": media_type(path)}, content


def page_urls(audio: str | os.PathLike[str] | None, page: Path, how: str) -> list[str]:
    """Return the URLs of a recording for an exported page; `how` is "link", "embed" or "none"."""
    if how not in ("link", "embed", "none"):
        raise OptionError(f"audio must be 'link', 'embed' or 'none', got {how!r}")
    if audio is None or how == "none":
        return []
    if isinstance(audio, str) and is_browser_url(audio):
        if how == "embed":
            raise OptionError(f"cannot embed {audio!r}: only a local file can be embedded; use audio='link'")
        return [audio]
    file = existing_file(audio)
    if how == "embed":
        kind = media_type(file).replace("application/octet-stream", "audio/mpeg").replace("video/", "audio/")
        return [f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"]
    try:
        near = os.path.relpath(file, page.resolve().parent)
    except ValueError:  # on another drive
        return [file.as_uri()]
    return [_url_path(Path(near))]


def jupyter_url(path: Path) -> str | None:
    """Return the URL path of a file on the Jupyter server that started this kernel; None if it does not serve the file.

    The server writes its folder and base URL to a file named after its process id.
    """
    parent = os.environ.get("JPY_PARENT_PID")
    if not parent or not parent.isdigit():
        return None
    try:
        from jupyter_core.paths import jupyter_runtime_dir  # installed with every kernel

        info = json.loads((Path(jupyter_runtime_dir()) / f"jpserver-{parent}.json").read_text(encoding="utf-8"))
        inside = path.relative_to(Path(info["root_dir"]).resolve())
    except (ImportError, OSError, ValueError, KeyError, TypeError):
        return None  # another kind of server, or a file outside its folder
    if any(part.startswith(".") for part in inside.parts):
        return None  # Jupyter does not serve hidden files
    return f"{info.get('base_url', '/')}files/{_url_path(inside)}"


def _url_path(path: Path) -> str:
    """Return a path for a URL, also if its bytes are not UTF-8."""
    return quote(os.fsencode(path.as_posix()))


class _MediaServer(ThreadingHTTPServer):
    """A server for registered recordings, each under a random path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _MediaHandler)
        self.files: dict[str, Path] = {}
        self.hosts = {f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}"}

    def url(self, path: Path) -> str:
        """Return the URL of a file; the same file always has the same URL."""
        token_of_file = next((token for token, file in self.files.items() if file == path), None)
        token = token_of_file or secrets.token_urlsafe(16)
        self.files = self.files | {token: path}  # a new dict, because requests iterate over it in other threads
        return f"http://127.0.0.1:{self.server_port}/{token}/{_url_path(Path(path.name))}"

    def file(self, request: str) -> Path | None:
        """Return the file for a request path."""
        token_in_path = request.split("/")[1].encode("utf-8", "replace") if "/" in request else b""
        return next(
            (file for token, file in self.files.items() if secrets.compare_digest(token.encode(), token_in_path)), None
        )

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  signature of the base class
        """Log the error, because the base class prints it into the notebook. Usually a browser disconnected."""
        _log.debug("a request from %s failed", client_address, exc_info=True)


class _MediaHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _MediaServer
    timeout = 60

    def do_GET(self) -> None:
        self._respond(body=True)

    def do_HEAD(self) -> None:
        self._respond(body=False)

    def _respond(self, *, body: bool) -> None:
        # DNS rebinding: a page that resolves its own name to 127.0.0.1 sends that name.
        if self.headers.get("Host", "") not in self.server.hosts:
            return self._end(HTTPStatus.MISDIRECTED_REQUEST)
        path = self.server.file(self.path)
        try:
            file = path.open("rb") if path else None
        except OSError:
            file = None
        if path is None or file is None:
            return self._end(HTTPStatus.NOT_FOUND)
        with file:
            size = os.fstat(file.fileno()).st_size
            span = byte_range(self.headers.get("Range"), size)
            if span is None:
                return self._end(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}"})
            begin, end = span
            part = self.headers.get("Range") is not None and span != (0, size)
            self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
            headers = {
                "Content-Type": media_type(path),
                "Content-Length": str(end - begin),
                "Accept-Ranges": "bytes",
                "Cache-Control": "private, max-age=0",
                "X-Content-Type-Options": "nosniff",
                "Cross-Origin-Resource-Policy": "cross-origin",  # the notebook has another port
            }
            if part:
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError, TimeoutError):  # browsers disconnect when they have enough
                file.seek(begin)
                while body and begin < end and (chunk := file.read(min(_CHUNK_BYTES, end - begin))):
                    self.wfile.write(chunk)
                    begin += len(chunk)
        self.close_connection = self.close_connection or (body and begin < end)  # incomplete response
        return None

    def _end(self, status: HTTPStatus, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  name of the base class
        """Log nothing: one line per request would fill the notebook."""


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the first byte and one past the last byte of a Range header (RFC 9110, 14.2); None beyond the end.

    Example:
        >>> byte_range("bytes=2-", 10), byte_range("bytes=-3", 10), byte_range("bytes=10-", 10)
        ((2, 10), (7, 10), None)
    """
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", (header or "").strip(), re.ASCII)
    if match is None or match.groups() == ("", ""):
        return 0, size
    first, last = match.groups()
    if not first:
        return (max(0, size - int(last)), size) if int(last) and size else None
    begin, end = int(first), min(size, int(last) + 1) if last else size
    if last and int(last) < int(first):
        return 0, size
    return (begin, end) if begin < size else None


_lock = threading.Lock()
_running: list[_MediaServer] = []


def _server() -> _MediaServer:
    """Return the server of this process, started on first use."""
    with _lock:
        if not _running:
            _running.append(_MediaServer())
            threading.Thread(target=_running[0].serve_forever, name="voxframe-media", daemon=True).start()
        return _running[0]
