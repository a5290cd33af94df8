"""Sources that loaders accept: a payload in any form, a payload file, a job handle, or an id.

Tables of a transcript of a service are read from the corpus if they are stored there, otherwise fetched and stored.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import getattr_static
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe._arrow import takes_frames
from voxframe.corpus import Corpus
from voxframe.corpus.importing import ENDINGS, contents, files_at, is_payload_file, name_fetched
from voxframe.corpus.store import FINAL, View
from voxframe.errors import PayloadError, caller
from voxframe.formats.rows import dataset_files, of_folder
from voxframe.frames.payloads import encode
from voxframe.schema import CORPUS_TABLES


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


class Content(NamedTuple):
    """The content of a source, which may have another format than the interface."""

    data: bytes
    file: str = ""


@dataclass(frozen=True)
class Remote:
    """A transcript of a service; `fetch` is None without a client, and the response of a `handle` may suffice."""

    transcript_id: str
    fetch: Callable[[View], bytes] | None
    handle: Handle | None = None


def is_one(source: Sources) -> TypeGuard[Source]:
    """Return True for a single source, False for an iterable of sources."""
    return isinstance(source, str | os.PathLike | bytes | bytearray | memoryview | Mapping) or is_handle(source)


def is_handle(source: object) -> TypeGuard[Handle]:
    """Return True for a job handle.

    Unlike `isinstance` of Python 3.11, this does not read its properties, because they may send requests.
    """
    missing = object()
    return all(getattr_static(source, name, missing) is not missing for name in ("done", "raw", "id", "fetch"))


@takes_frames
def each(source: Sources) -> Iterator[Source]:
    """Yield the sources in `source`: itself if it is one, otherwise its items. Folders become their files."""
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
        for item in cast("Iterable[Source]", source):
            yield from _files(item)
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
    paths = [path for path in files_at(text) if not is_folder or path.is_dir() or is_payload_file(path.name)]
    if is_folder and not paths:
        raise PayloadError(f"the folder {text!r} has no payload files, which have endings {ENDINGS}")
    return paths or [source]


def resolve(source: Source, client: Fetcher | None) -> Content | Remote:
    """Return the content of a source, or the remote transcript that it refers to."""
    if isinstance(source, Mapping):
        return Content(encode(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return Content(bytes(source))
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
    if is_handle(source):
        return Remote(source.id, source.fetch, source)
    raise _not_a_source(source)


def _names_file(text: str) -> bool:
    if is_payload_file(text):
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a file name, or has a null character
        return False


def _read(path: Path) -> Content:
    try:
        if path.is_dir() and dataset_files(path):
            return Content(b"[" + b",".join(encode(payload) for _, payload in of_folder(path)) + b"]")
        with path.open("rb") as file:
            return Content(contents(file, str(path)), str(path))
    except OSError as e:
        what = "it is a directory; pass the files in it" if path.is_dir() else (e.strerror or str(e)).lower()
        raise PayloadError(f"cannot read the payload file {str(path)!r}: {what}") from None


def _not_a_source(source: object) -> PayloadError:
    return PayloadError(
        f"cannot load from {type(source).__name__}; pass a transcript handle, an id with client=..., a payload (dict "
        "or JSON bytes), the path of a JSON file (.json, .jsonl, with .gz or .zst), or an iterable of these"
    )


def cached_tables(
    corpus: Corpus, remote: Remote, names: Collection[str], *, refresh: bool = False, corrected: bool = True
) -> dict[str, pa.Table]:
    """Return tables of a transcript from the corpus, otherwise from the service; unfinished ones are not stored."""
    if not refresh and remote.transcript_id in corpus:
        return corpus.parts.query.arrow_tables(remote.transcript_id, names, corrected=corrected)
    # A finished handle holds the final response; another request would return the same.
    handle = None if refresh else remote.handle
    raw = handle.raw if handle is not None and handle.done else _ask(corpus, remote, "transcript")
    status = frames.transcript_tables(raw, ("transcripts",), remote.transcript_id)["transcripts"]["status"][0].as_py()
    if status in FINAL:
        source = getattr(remote.handle, "source", None)
        record = name_fetched(corpus.parts.archive, remote.transcript_id, raw, source)
        tables = corpus.parts.archive.put(remote.transcript_id, raw, recording=record).exact_tables()
        stored_tables = corpus.parts.query.finished(remote.transcript_id, tables, corrected=corrected)
        return {name: stored_tables[name] for name in names}
    warnings.warn(
        f"transcript {remote.transcript_id} is still {status!r}: it was not stored, and its tables are empty "
        "until it is completed; wait for it with client.wait(id) and load it again",
        stacklevel=caller(),
    )
    tables = frames.transcript_tables(raw, names, remote.transcript_id)
    return {name: corpus.parts.query.complete(name, tables[name]) for name in names}


def cached_export(
    corpus: Corpus, remote: Remote, view: View, *, refresh: bool = False, corrected: bool = True
) -> pa.Table:
    """Return the table of an export from the corpus or the service; no rows if the transcript is not completed."""
    transcripts = cached_tables(corpus, remote, ("transcripts",), corrected=False)["transcripts"]
    if transcripts["status"][0].as_py() != "completed":
        return CORPUS_TABLES[view].empty
    if refresh or (remote.fetch is not None and not corpus.parts.archive.has(remote.transcript_id, view)):
        corpus.parts.archive.put(remote.transcript_id, _ask(corpus, remote, view), view)
    return corpus.parts.query.arrow(view, [remote.transcript_id], asked=True, corrected=corrected)


def _ask(corpus: Corpus, remote: Remote, view: View) -> bytes:
    if remote.fetch is None:
        if remote.transcript_id in corpus:
            what = "it again" if view == "transcript" else f"its {view}, which are not"
            raise PayloadError(
                f"{remote.transcript_id!r} is in {corpus!r}; to fetch {what}, pass client=voxframe.connect()"
            )
        if corpus.parts.archive.has(remote.transcript_id, "transcript"):
            corpus.parts.archive.status(remote.transcript_id)  # raises an error if it is damaged
        raise PayloadError(
            f"{remote.transcript_id!r} is neither a file nor a transcript in {corpus!r}"
            f"{corpus.parts.archive.similar(remote.transcript_id)}; to fetch it from the service "
            "pass client=voxframe.connect(), else pass a payload or the path of a .json file"
        )
    return remote.fetch(view)
