"""What a loader may be given: a payload in any form, a file of one, a handle on a job, or an identifier."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import orjson
import zstandard

from voxframe.corpus.store import View, decompress
from voxframe.errors import PayloadError


class Fetcher(Protocol):
    """A client, as far as loading needs one."""

    def fetch(self, transcript_id: str, view: View = "transcript") -> bytes:
        """The service's answer, byte for byte."""


@runtime_checkable
class Handle(Protocol):
    """A handle on a job, as far as loading needs one."""

    @property
    def done(self) -> bool:
        """Whether it will not change any more."""

    @property
    def raw(self) -> bytes:
        """The service's answer about it, byte for byte."""

    @property
    def id(self) -> str:
        """Identifier of the transcript."""

    @property
    def client(self) -> Fetcher:
        """The client it came from."""


#: One transcript: a handle, an id, a payload (dict or JSON bytes), or the path of a .json or .json.zst file.
Source: TypeAlias = "Handle | str | os.PathLike[str] | bytes | bytearray | memoryview | Mapping[str, Any]"

#: One transcript or several.
Sources: TypeAlias = "Source | Iterable[Source]"


@dataclass(frozen=True)
class Remote:
    """A transcript at a service.

    Attributes:
        transcript_id: Its identifier.
        client: How to fetch it; None where only a corpus can have it.
        handle: The handle it was given by, whose own answer may do.
    """

    transcript_id: str
    client: Fetcher | None
    handle: Handle | None = None


def is_one(source: Sources) -> TypeGuard[Source]:
    """Whether it is one source, not several."""
    return isinstance(source, str | os.PathLike | bytes | bytearray | memoryview | Mapping | Handle)


def each(source: Sources) -> Iterator[Source]:
    """The sources in `source`: itself where it is one, its items where it is an iterable of them.

    Raises:
        PayloadError: It is neither.
    """
    if is_one(source):
        yield source
    elif hasattr(source, "columns"):
        raise PayloadError("a DataFrame is no source; pass one of its columns, such as df['transcript_id']")
    elif isinstance(source, Iterable):
        yield from cast("Iterable[Source]", source)
    else:
        raise _not_a_source(source)


def resolve(source: Source, client: Fetcher | None) -> bytes | Remote:
    """The payload of a source that has one at hand, else where it is.

    Args:
        source: One source.
        client: What identifiers are fetched with; None where there is none.

    Raises:
        PayloadError: It is no source, or a file that is not there or cannot be read.
    """
    if isinstance(source, Mapping):
        return _encode(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if isinstance(source, os.PathLike):
        return _read(Path(source))
    if isinstance(source, str):
        if not source.strip():
            raise PayloadError("an empty text is no transcript id; pass an id, a payload or the path of a .json file")
        if source.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
            raise PayloadError(
                "JSON text is not taken as a str; pass it as bytes (text.encode()) or as a dict (json.loads(text))"
            )
        if _names_file(source):
            return _read(Path(source))
        return Remote(source, client)
    if isinstance(source, Handle):
        return Remote(source.id, source.client, source)
    raise _not_a_source(source)


def _names_file(text: str) -> bool:
    if text.endswith((".json", ".json.zst")):
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a name, a null character
        return False


def _encode(payload: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(payload)
    except TypeError:  # integers past 64 bits, lone surrogates, mappings that are no dict
        try:
            return json.dumps(dict(payload)).encode()
        except (TypeError, ValueError) as e:
            raise PayloadError(
                f"the dict given is no JSON payload ({e}); pass the service's answer as it came"
            ) from None


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as e:
        what = "it is a directory; name the files in it" if path.is_dir() else (e.strerror or str(e)).lower()
        raise PayloadError(f"cannot read the payload file {str(path)!r}: {what}") from None
    if path.suffix != ".zst":
        return data
    try:
        return decompress(data)
    except zstandard.ZstdError as e:
        raise PayloadError(f"{str(path)!r} is no complete zstd file ({e})") from None


def _not_a_source(source: object) -> PayloadError:
    return PayloadError(
        f"cannot load from {type(source).__name__}; pass a transcript handle, an id with client=..., a payload (dict "
        "or JSON bytes), the path of a .json or .json.zst file, or an iterable of these"
    )
