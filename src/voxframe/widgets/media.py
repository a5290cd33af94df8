"""Recordings by address, so that a browser fetches the part it plays and no recording is in a notebook.

A file under the folder that Jupyter serves has an address there (`files/...`), which also works from another machine.
Every file has one at a small server in this process, on loopback only: it works where the browser is on the machine
the kernel runs on, in JupyterLab, Voila and editors alike. A player tries the first, then the second.
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
from urllib.parse import quote

from voxframe.errors import AudioError, AudioNotFoundError, OptionError

_log = logging.getLogger("voxframe.widgets")
_CHUNK_BYTES = 1 << 16
#: Types that Python's table has not, or has differently on each system.
_TYPES = {".flac": "audio/flac", ".opus": "audio/ogg", ".oga": "audio/ogg", ".m4a": "audio/mp4", ".wav": "audio/wav"}


def is_address(audio: str) -> bool:
    """Whether a recording is given by address: http, https, or a blob of the page."""
    return audio.lower().startswith(("http://", "https://", "blob:"))


def existing(audio: str | os.PathLike[str]) -> Path:
    """Absolute path of a recording.

    Raises:
        AudioNotFoundError: There is no such file.
        AudioError: It is not a file.
    """
    path = Path(audio).expanduser().resolve()
    if not path.exists():
        raise AudioNotFoundError(f"there is no file {os.fspath(audio)!r}; check its path")
    if not path.is_file():
        raise AudioError(f"{os.fspath(audio)!r} is no file; name one recording")
    return path


def media_type(path: Path) -> str:
    """Media type of a recording, by its name; never one that a browser would run or show as a page."""
    found = _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or ""
    return found if found.startswith(("audio/", "video/")) else "application/octet-stream"


def addresses(audio: str | os.PathLike[str]) -> list[str]:
    """Addresses at which a browser may find a recording, the best first.

    Args:
        audio: Path, or an http or https address.

    Raises:
        AudioNotFoundError: There is no such file.
        AudioError: It is not a file.
    """
    if isinstance(audio, str) and is_address(audio):
        return [audio]
    path = existing(audio)
    at_jupyter = jupyter_address(path)
    return [*([at_jupyter] if at_jupyter else []), _server().address(path)]


def page_addresses(audio: str | os.PathLike[str] | None, page: Path, how: str) -> list[str]:
    """A recording as a page on the disk refers to it.

    Args:
        audio: Path or address; None for none.
        page: Where the page will be.
        how: "link", "embed" or "none".

    Raises:
        OptionError: `how` is none of these, or an address was to be embedded.
        AudioError: The recording cannot be read.
    """
    if how not in ("link", "embed", "none"):
        raise OptionError(f"audio is 'link', 'embed' or 'none', not {how!r}")
    if audio is None or how == "none":
        return []
    if isinstance(audio, str) and is_address(audio):
        if how == "embed":
            raise OptionError(f"only a file can be embedded, not the address {audio!r}; use audio='link'")
        return [audio]
    file = existing(audio)
    if how == "embed":
        kind = media_type(file).replace("application/octet-stream", "audio/mpeg").replace("video/", "audio/")
        return [f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"]
    try:
        near = os.path.relpath(file, page.resolve().parent)
    except ValueError:  # on another drive
        return [file.as_uri()]
    return [quote(Path(near).as_posix())]


def jupyter_address(path: Path) -> str | None:
    """Address of a file at the Jupyter server that started this kernel, without its host; None where it serves it not.

    The server leaves a file that says which folder it serves under which address; its name holds the process.
    """
    parent = os.environ.get("JPY_PARENT_PID")
    if not parent or not parent.isdigit():
        return None
    try:
        from jupyter_core.paths import jupyter_runtime_dir  # every kernel has it

        told = json.loads((Path(jupyter_runtime_dir()) / f"jpserver-{parent}.json").read_text(encoding="utf-8"))
        inside = path.relative_to(Path(told["root_dir"]).resolve())
    except (ImportError, OSError, ValueError, KeyError, TypeError):
        return None  # another kind of server, or a file elsewhere
    if any(part.startswith(".") for part in inside.parts):
        return None  # Jupyter serves no hidden files
    return f"{told.get('base_url', '/')}files/{quote(inside.as_posix())}"


class _MediaServer(ThreadingHTTPServer):
    """Serves the recordings it was told of, each under a path nobody can guess."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, Path] = {}
        self.hosts = {f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}"}

    def address(self, path: Path) -> str:
        """Address of a file, the same each time."""
        known = next((token for token, file in self.files.items() if file == path), None)
        token = known or secrets.token_urlsafe(16)
        self.files[token] = path
        return f"http://127.0.0.1:{self.server_port}/{token}/{quote(path.name)}"

    def file(self, request: str) -> Path | None:
        """The file of a request's path."""
        asked = request.split("/")[1].encode("utf-8", "replace") if "/" in request else b""
        return next((file for token, file in self.files.items() if secrets.compare_digest(token.encode(), asked)), None)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  the base's
        """Log it, where the base prints it into the notebook: most often a browser went away."""
        _log.debug("a request of %s was not answered", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _MediaServer
    timeout = 60

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        # A page elsewhere that got its own name to mean 127.0.0.1 sends that name.
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
            wanted = byte_range(self.headers.get("Range"), size)
            if wanted is None:
                return self._end(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}"})
            begin, end = wanted
            part = self.headers.get("Range") is not None and wanted != (0, size)
            self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
            headers = {
                "Content-Type": media_type(path),
                "Content-Length": str(end - begin),
                "Accept-Ranges": "bytes",
                "Cache-Control": "private, max-age=0",
                "X-Content-Type-Options": "nosniff",
                "Cross-Origin-Resource-Policy": "cross-origin",  # the notebook is at another port
            }
            if part:
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError, TimeoutError):  # a browser leaves when it has enough
                file.seek(begin)
                while body and begin < end and (chunk := file.read(min(_CHUNK_BYTES, end - begin))):
                    self.wfile.write(chunk)
                    begin += len(chunk)
        self.close_connection = self.close_connection or (body and begin < end)  # cut short: no more on this connection
        return None

    def _end(self, status: HTTPStatus, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base's
        """Say nothing: a line a request would fill the notebook."""


def byte_range(asked: str | None, size: int) -> tuple[int, int] | None:
    """First byte, and one past the last, of what a Range header asks for (RFC 9110, 14.2).

    Args:
        asked: The header, or None. Several ranges, or what is no range of bytes, stand for everything.
        size: Size of the file in bytes.

    Returns:
        The range, or None where it lies outside the file.

    Example:
        >>> byte_range("bytes=2-", 10), byte_range("bytes=-3", 10), byte_range("bytes=10-", 10)
        ((2, 10), (7, 10), None)
    """
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", (asked or "").strip(), re.ASCII)
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
    """The one server of this process, started when first needed; ends with the process."""
    with _lock:
        if not _running:
            _running.append(_MediaServer())
            threading.Thread(target=_running[0].serve_forever, name="voxframe-media", daemon=True).start()
        return _running[0]
