"""Request bodies, bounded before they are held: JSON in memory, uploads straight to disk."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
from anyio import fail_after
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from voxframe.local.gate import drain
from voxframe.local.places import Places, sync_folder

#: Largest JSON body and largest upload, in bytes.
MAX_JSON = 5 * 10**6
MAX_UPLOAD = 2_200_000_000
#: Longest wait for the next piece of a body, in seconds.
STALLED = 60.0
_WRITE = 1 << 20


async def read_json(request: Request) -> object:
    """The JSON of a request.

    Raises:
        HTTPException: 413 where it is too large, 408 where it does not end, 400 where it is no JSON.
    """
    body = bytearray()
    async for chunk in _bounded(request, MAX_JSON, "a JSON body"):
        body += chunk
    try:
        return orjson.loads(bytes(body).removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None


async def save_upload(request: Request, places: Places, limit: int = MAX_UPLOAD) -> str:
    """Stream a request body to disk.

    Returns:
        Identifier of the upload; its file is whole and on disk.

    Raises:
        HTTPException: 413 where it is too large, 408 where it does not end, 400 where it is empty.
    """
    upload_id = str(uuid.uuid4())
    part = places.uploads / f".{upload_id}"
    size, held = 0, bytearray()
    try:
        with part.open("wb") as file:
            async for chunk in _bounded(request, limit, "an upload"):
                size += len(chunk)
                held += chunk
                if len(held) >= _WRITE:
                    await run_in_threadpool(file.write, held)
                    held = bytearray()
            await run_in_threadpool(file.write, held)
            await run_in_threadpool(_keep, file.fileno(), file.flush)
        if not size:
            raise HTTPException(400, "the upload is empty: send the bytes of the media file as the body")
        await run_in_threadpool(_rename, part, places.upload(upload_id))
    finally:
        part.unlink(missing_ok=True)
    return upload_id


def _keep(descriptor: int, flush: object) -> None:
    assert callable(flush)
    flush()
    os.fsync(descriptor)


def _rename(part: Path, target: Path) -> None:
    part.replace(target)
    sync_folder(target.parent)


async def _bounded(request: Request, limit: int, what: str) -> AsyncIterator[bytes]:
    """The body of a request, refused by the length it announces or, where it does not, the length it has."""
    chunks, size = request.stream(), 0
    too_large = HTTPException(413, f"{what} may have at most {limit / 1e6:g} MB")
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
            late = f"no more of the body came for {STALLED:g} s"
            raise HTTPException(408, late, {"Connection": "close"}) from None
        except ClientDisconnect:
            raise HTTPException(400, "the body ended before it was complete") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > limit:
            await drain(chunks)
            raise too_large
        yield chunk
