"""Request bodies: JSON and uploads of limited size, and a report of unknown fields."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter
from urllib.parse import quote

import orjson
from anyio import fail_after
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from voxframe._files import put_in_place
from voxframe.server.data_dir import DataDir
from voxframe.server.http.middleware import drain

#: Maximum size of a JSON body and of an upload in bytes.
MAX_JSON = 5 * 10**6
MAX_UPLOAD = 2_200_000_000
#: Maximum wait for the next part of a body in seconds.
STALLED = 60.0
_WRITE = 1 << 20


async def read_json(request: Request) -> object:
    """Return the JSON body of a request.

    Raises:
        HTTPException: 413 if it is too large, 408 if it stalls, 400 if it is not JSON.
    """
    body = bytearray()
    async for chunk in _limited(request, MAX_JSON, "a JSON body"):
        body += chunk
    try:
        return orjson.loads(bytes(body).removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None


async def save_upload(request: Request, data_dir: DataDir, limit: int = MAX_UPLOAD) -> str:
    """Stream a request body to disk.

    Returns:
        Id of the upload. Its file is complete and synced to disk.

    Raises:
        HTTPException: 413 if it is too large, 408 if it stalls, 400 if it is empty.
    """
    upload_id = str(uuid.uuid4())
    part = data_dir.uploads / f".{upload_id}"
    size, buffer = 0, bytearray()
    try:
        with part.open("wb") as file:
            async for chunk in _limited(request, limit, "an upload"):
                size += len(chunk)
                buffer += chunk
                if len(buffer) >= _WRITE:
                    await run_in_threadpool(file.write, buffer)
                    buffer = bytearray()
            await run_in_threadpool(file.write, buffer)
            await run_in_threadpool(_sync, file)
        if not size:
            raise HTTPException(400, "the upload is empty: send the bytes of the media file as the body")
        await run_in_threadpool(put_in_place, part, data_dir.upload(upload_id))
    finally:
        part.unlink(missing_ok=True)
    return upload_id


def _sync(file: BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


async def _limited(request: Request, limit: int, kind: str) -> AsyncIterator[bytes]:
    """Yield the body of a request; refuse it if its Content-Length, or its actual size, exceeds the limit."""
    chunks, size = request.stream(), 0
    too_large = HTTPException(413, f"{kind} may have at most {limit / 1e6:g} MB")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limit:
        if "expect" not in request.headers:
            await drain(chunks)
        raise too_large
    while True:
        try:
            with fail_after(STALLED):
                chunk = await anext(chunks, None)
        except TimeoutError:
            message = f"the body of the request stalled for {STALLED:g} s"
            raise HTTPException(408, message, {"Connection": "close"}) from None
        except ClientDisconnect:
            raise HTTPException(400, "the body ended before it was complete") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > limit:
            await drain(chunks)
            raise too_large
        yield chunk


_log = logging.getLogger("voxframe.server")

HEADER = "X-Unknown-Fields"
_MAX_NAMES, _MAX_CHARS = 20, 60


def unknown_fields(
    request: str, body: object, known: Iterable[str], nested: Mapping[str, Iterable[str]] | None = None
) -> dict[str, str]:
    """Log the names of unknown fields, and return the response header that names them; empty if there are none.

    Names are percent-encoded because they may contain any character. Values are never shown.

    Args:
        request: Name of the request, for the log.
        body: Body of the request.
        known: Names of the known fields.
        nested: Names of the known fields of objects in lists, by the name of the list.

    Example:
        >>> unknown_fields("transcript", {"audio_url": "...", "speaker labels": True}, ["audio_url"])
        {'X-Unknown-Fields': 'speaker%20labels'}
        >>> unknown_fields("token", {"expires_in": 60, "": 1}, ["expires_in"])
        {'X-Unknown-Fields': '(empty)'}
    """
    if not isinstance(body, Mapping):
        return {}
    known = set(known)
    names = [name for name in body if name not in known]
    for parent, fields in (nested or {}).items():
        entries = body.get(parent)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                names += [f"{parent}.{name}" for name in entry if name not in fields]
    # A header value must not end with a space, which an empty name would leave there.
    shown = [quote(name[:_MAX_CHARS], safe="") or "(empty)" for name in dict.fromkeys(names)]
    if not shown:
        return {}
    more = [f"and-{len(shown) - _MAX_NAMES}-more"] if len(shown) > _MAX_NAMES else []
    text = ", ".join(shown[:_MAX_NAMES] + more)
    _log.warning("%s: unknown fields were ignored: %s", request, text)
    return {HEADER: text}


@contextmanager
def reports_unknown_fields(header: Mapping[str, str]) -> Iterator[None]:
    """Add the header to error responses too: a missing field may be one with a misspelled name."""
    try:
        yield
    except HTTPException as error:
        raise HTTPException(error.status_code, error.detail, {**(error.headers or {}), **header}) from None
