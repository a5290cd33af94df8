"""Payload files and zips from elsewhere into a corpus."""

from __future__ import annotations

import glob
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import msgspec
import zstandard

from voxframe.corpus.store import View, content_hash
from voxframe.errors import CorpusError, PayloadError
from voxframe.service.answer import parse_json
from voxframe.service.progress import Progress
from voxframe.service.transcript import FINISHED

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus

#: A file, a folder or a pattern, or several.
Payloads: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

#: The largest payload that is read, unpacked; a ten-hour transcript with every analysis takes 25 MB.
MAX_BYTES = 512 * 1024 * 1024
#: The most files of a zip that are looked at.
MAX_MEMBERS = 200_000

_SUFFIXES = (".json", ".json.zst", ".zip")


@dataclass
class Added:
    """What came of an import.

    Attributes:
        added: Payloads that were brought in.
        known: Payloads that were here already, byte for byte.
        left_out: Those that were not brought in: name and reason.
    """

    added: int = 0
    known: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = [f"{self.added} added, {self.known} known, {len(self.left_out)} left out"]
        lines += [f"  {name}: {reason}" for name, reason in self.left_out[:10]]
        if len(self.left_out) > 10:
            lines.append(f"  and {len(self.left_out) - 10} more, in .left_out")
        return "\n".join(lines)


class _Unusable(Exception):  # noqa: N818 - never leaves this file
    """Why something is not brought in."""


class _TooEarly(_Unusable):
    """An export whose transcript is not here."""


class _Head(msgspec.Struct):
    """What tells one kind of payload from another."""

    id: object = None
    status: object = None
    sentences: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    paragraphs: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    words: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def add(corpus: Corpus, sources: Payloads, *, replace: bool, progress: bool | None) -> Added:
    """Bring payloads in.

    Args:
        corpus: Where they are kept.
        sources: Files, folders and patterns.
        replace: Whether a payload replaces a different one of the same identifier.
        progress: Whether to show progress.

    Raises:
        PayloadError: A path or a pattern leads to no file, or is none.
        CorpusError: The corpus cannot be written.
    """
    several = sources if isinstance(sources, Iterable) and not isinstance(sources, str | bytes) else [sources]
    paths = [path for one in several for path in _files(one)]
    found = Added()
    with Progress("adding", jobs=len(paths), show=progress) as bar:
        early = {}
        for path in paths:
            early[path] = _bring(corpus, path, found, replace=replace)
            bar.advance(1)
        for path in filter(early.get, paths):
            _bring(corpus, path, found, replace=replace, only=early[path])
    return found


def _bring(
    corpus: Corpus, path: Path, found: Added, *, replace: bool, only: Collection[str] | None = None
) -> Collection[str]:
    """Bring in what a file holds; names of exports in it that came before their transcript, to be tried again.

    Args:
        corpus: Where it is kept.
        path: The file.
        found: What came of it is added here.
        replace: Whether a payload replaces a different one of the same identifier.
        only: Names of the payloads that are tried again; None is the first time, with all.
    """
    early = set()
    for name, payload in _payloads(path):
        if only is not None and name not in only:
            continue
        try:
            is_new = _take(corpus, payload, replace=replace)
        except _Unusable as reason:
            if isinstance(reason, _TooEarly) and only is None:
                early.add(name)
            else:
                found.left_out.append((name, str(reason)))
        else:
            found.added += is_new
            found.known += not is_new
    return early


def _files(source: object) -> list[Path]:
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise PayloadError(f"payloads are given as files, folders, patterns or zips, not {source!r:.100}")
    path = Path(text).expanduser()
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.name.lower().endswith(_SUFFIXES) and p.is_file())
    elif path.exists():
        found = [path]
    else:
        found = sorted(p for p in map(Path, glob.glob(str(path), recursive=True)) if p.is_file())  # noqa: PTH207
    if not found:
        raise PayloadError(f"{text!r} leads to no payload file; check it (.json, .json.zst and .zip files are read)")
    return found


def _payloads(path: Path) -> Iterator[tuple[str, bytes | _Unusable]]:
    """Name and bytes of each payload of a file, or why it cannot be read."""
    if path.suffix.lower() == ".zip":
        yield from _zipped(path)
        return
    try:
        with path.open("rb") as file:
            data = _bounded(zstandard.ZstdDecompressor().stream_reader(file) if path.suffix.lower() == ".zst" else file)
    except (OSError, zstandard.ZstdError, _Unusable) as error:
        yield str(path), _unusable(error)
        return
    yield from _each(str(path), data)


def _zipped(path: Path) -> Iterator[tuple[str, bytes | _Unusable]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            for info in members[:MAX_MEMBERS]:
                name = f"{path}:{info.filename}"
                if not info.filename.lower().endswith(_SUFFIXES[:2]):
                    inner = info.filename.lower().endswith(".zip")
                    yield name, _Unusable("unpack it first" if inner else "it is no .json or .json.zst file")
                    continue
                try:
                    with archive.open(info) as file:
                        packed = info.filename.lower().endswith(".zst")
                        data = _bounded(zstandard.ZstdDecompressor().stream_reader(file) if packed else file)
                except (OSError, zipfile.BadZipFile, zlib.error, zstandard.ZstdError, RuntimeError, _Unusable) as error:
                    yield name, _unusable(error)  # RuntimeError: it is encrypted
                    continue
                yield from _each(name, data)
            if len(members) > MAX_MEMBERS:
                yield str(path), _Unusable(f"it holds {len(members)} files; the first {MAX_MEMBERS} were looked at")
    except (OSError, zipfile.BadZipFile) as error:
        yield str(path), _unusable(error)


def _bounded(file: IO[bytes] | zstandard.ZstdDecompressionReader) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _Unusable(f"it is larger than {MAX_BYTES // 1024**2} MB unpacked")
    return data


def _unusable(error: Exception) -> _Unusable:
    return error if isinstance(error, _Unusable) else _Unusable(f"it cannot be read: {error}")


def _each(name: str, data: bytes) -> Iterator[tuple[str, bytes | _Unusable]]:
    """The payload, or each of those in a list, byte for byte."""
    if data.lstrip()[:1] != b"[":
        yield name, data
        return
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except msgspec.DecodeError as error:
        yield name, _Unusable(f"it is no JSON: {error}")
        return
    for n, item in enumerate(items):
        yield f"{name}[{n}]", bytes(item)


def _take(corpus: Corpus, data: bytes | _Unusable, *, replace: bool) -> bool:
    """Whether the payload was brought in; False where it was here."""
    if isinstance(data, _Unusable):
        raise data
    transcript_id, view = _look(data)
    if view != "transcript" and not corpus.has_export(transcript_id, "transcript"):
        raise _TooEarly(f"it is an export of transcript {transcript_id!r}, which is not here; add that one first")
    try:
        here: bytes | None = corpus.raw(transcript_id, view)
    except CorpusError:
        here = None  # absent or damaged
    if here is not None:
        if content_hash(here) == content_hash(data):
            return False
        if not replace:
            raise _Unusable(f"another payload of {transcript_id!r} is here; replace=True takes this one instead")
    try:
        corpus.put(transcript_id, data, view)
    except PayloadError as error:
        raise _Unusable(f"it was kept, but cannot be read: {error}") from None
    return True


def _tolerant_head(data: bytes) -> _Head:
    """The same of a payload that is not quite JSON: with a BOM, with NaN, with bytes that are no UTF-8."""
    try:
        found = parse_json(data)
    except ValueError as error:
        raise _Unusable(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _Unusable("it is no transcript, nor an export of one")
    known = {name: found[name] for name in ("id", "status") if name in found}
    return _Head(**known, **{name: msgspec.Raw() for name in ("sentences", "paragraphs", "words") if name in found})


def _look(data: bytes) -> tuple[str, View]:
    """Identifier and kind of a payload."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        head = _tolerant_head(data)
    if not isinstance(head.id, str | int) or isinstance(head.id, bool) or head.id == "":
        raise _Unusable("it has no id, so nothing could be joined to it")
    for view in ("sentences", "paragraphs"):
        if getattr(head, view) is not msgspec.UNSET:
            return str(head.id), view
    if head.status is None and head.words is msgspec.UNSET:
        raise _Unusable("it is no transcript, nor an export of one")
    if head.status is not None and head.status not in FINISHED:
        raise _Unusable(f"its status is {head.status!r}; only finished transcripts are kept")
    return str(head.id), "transcript"
