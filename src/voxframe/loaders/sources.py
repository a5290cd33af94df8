"""Sources that loaders accept: a payload in any form, a payload file, a job handle, or an id."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import pandas as pd

from voxframe.corpus import Corpus
from voxframe.corpus.importing import SUFFIXES, contents, files_at, is_payload_file
from voxframe.corpus.store import View
from voxframe.errors import PayloadError
from voxframe.frames.payloads import encode
from voxframe.importers import converted


class Fetcher(Protocol):
    """The part of a client that loaders need."""

    def fetch(self, transcript_id: str, view: View = "transcript") -> bytes:
        """Fetch the response of the service, byte for byte."""


@runtime_checkable
class Handle(Protocol):
    """The part of a job handle that loaders need."""

    @property
    def done(self) -> bool:
        """True if the job has reached its final status."""

    @property
    def raw(self) -> bytes:
        """The latest response of the service about the job, byte for byte."""

    @property
    def id(self) -> str:
        """Id of the transcript."""

    def fetch(self, view: View = ..., /) -> bytes:
        """Fetch a response of the service about the job."""


#: A pattern of paths, and no JSON text.
_PATTERN = re.compile(r"^(?!\s*[\[{\ufeff]).*[*?\[]", re.DOTALL)

#: One transcript: a handle, an id, a payload (dict or JSON bytes), or the path of a payload file.
Source: TypeAlias = "Handle | str | os.PathLike[str] | bytes | bytearray | memoryview | Mapping[str, Any]"

#: One transcript or several.
Sources: TypeAlias = "Source | pd.DataFrame | Corpus | Iterable[Source]"


@dataclass(frozen=True)
class Remote:
    """A transcript of a service.

    Attributes:
        transcript_id: Id of the transcript.
        fetch: Fetches a view of it from the service; None without a client.
        handle: The handle passed as a source, if any; its own response may suffice.
    """

    transcript_id: str
    fetch: Callable[[View], bytes] | None
    handle: Handle | None = None


def is_one(source: Sources) -> TypeGuard[Source]:
    """Return True for a single source, False for an iterable of sources."""
    return isinstance(source, str | os.PathLike | bytes | bytearray | memoryview | Mapping | Handle)


def each(source: Sources) -> Iterator[Source]:
    """Yield the sources in `source`: itself if it is a single source, otherwise its items. Folders become their files.

    Raises:
        PayloadError: `source` is of another type, a DataFrame has no ids, or a folder has no payload files.
    """
    if is_one(source):
        yield from _files(source)
    elif isinstance(source, pd.DataFrame):
        named = [name for name in ("transcript_id", "recording") if name in source]
        if not named:
            raise PayloadError(
                "a DataFrame must have a column transcript_id or recording; otherwise pass a column of ids or paths"
            )
        yield from cast("Iterable[Source]", source[named[0]].dropna().unique())
    elif isinstance(source, Iterable):
        for one in cast("Iterable[Source]", source):
            yield from _files(one)
    else:
        raise _not_a_source(source)


def _files(source: Source) -> Iterable[Source]:
    """Return the payload files of a folder or a pattern, otherwise the source."""
    if not isinstance(source, str | os.PathLike):
        return [source]
    text = os.fspath(source)
    try:
        is_folder = bool(text.strip()) and Path(text).expanduser().is_dir()
    except (OSError, ValueError):  # too long for a file name, or has a null character
        return [source]
    if not is_folder and not _PATTERN.search(text):
        return [source]
    found = [path for path in files_at(text) if not is_folder or is_payload_file(path.name)]
    if is_folder and not found:
        raise PayloadError(f"the folder {text!r} has no payload files; they end in {', '.join(SUFFIXES)}")
    return found or [source]


def resolve(source: Source, client: Fetcher | None) -> bytes | Remote:
    """Return the payload of a source, or the remote transcript that it refers to.

    Args:
        source: A single source.
        client: Client that fetches ids; None: ids can only be read from a corpus.

    Raises:
        PayloadError: It is not a source, or a file that is missing or cannot be read.
        UnreadableFileError: It is a damaged file.
    """
    if isinstance(source, Mapping):
        return converted(encode(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return converted(bytes(source))
    if isinstance(source, os.PathLike):
        return _read(Path(source))
    if isinstance(source, str):
        if not source.strip():
            raise PayloadError("the transcript id is empty; pass an id, a payload or the path of a .json file")
        if source.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
            raise PayloadError(
                "JSON text must not be a str; pass it as bytes (text.encode()) or as a dict (json.loads(text))"
            )
        if _names_file(source):
            return _read(Path(source))
        return Remote(source, None if client is None else lambda view: client.fetch(source, view))
    if isinstance(source, Handle):
        return Remote(source.id, source.fetch, source)
    raise _not_a_source(source)


def _names_file(text: str) -> bool:
    if is_payload_file(text):
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a file name, or has a null character
        return False


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return converted(contents(file, str(path)), path.name)
    except OSError as e:
        what = "it is a directory; pass the files in it" if path.is_dir() else (e.strerror or str(e)).lower()
        raise PayloadError(f"cannot read the payload file {str(path)!r}: {what}") from None


def _not_a_source(source: object) -> PayloadError:
    return PayloadError(
        f"cannot load from {type(source).__name__}; pass a transcript handle, an id with client=..., a payload (dict "
        "or JSON bytes), the path of a JSON file (.json, .jsonl, with .gz or .zst), or an iterable of these"
    )
