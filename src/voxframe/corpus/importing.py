"""Import payload files, zips and payloads in memory into a corpus."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import pyarrow as pa

from voxframe import frames
from voxframe._progress import Progress
from voxframe._text import quantity, storable
from voxframe.client.response import as_path
from voxframe.client.transcript import Transcript
from voxframe.corpus.archive import Archive
from voxframe.corpus.job import EXTENSIONS, canonical, is_address, short_name, tidy, unmarked
from voxframe.corpus.store import UNFINISHED, check_writable
from voxframe.corpus.workers import BYTES_TOGETHER, TOGETHER, Result, StoringProcesses, Task
from voxframe.errors import AudioError, CorpusError, MissingExtraError, OptionError, PayloadError
from voxframe.export.targets import CARDS, CHECKSUMS, CROISSANT
from voxframe.formats import SUFFIXES as READ
from voxframe.formats.rows import dataset_files, of_folder
from voxframe.formats.text_readers import is_prose
from voxframe.frames.payloads import Head, Members, encode, head_of, members_of_payloads
from voxframe.importers import converted, recording_of
from voxframe.validators import shown

#: A file, a folder, a pattern, a payload (dict or JSON bytes) or a transcript of a client, or an iterable of these.
Payload: TypeAlias = "str | os.PathLike[str] | bytes | Mapping[str, Any] | Transcript"
_Source: TypeAlias = "Path | bytes | Transcript"
Payloads: TypeAlias = "Payload | Iterable[Payload]"
#: Maximum number of files read from a zip.
MAX_MEMBERS = 200_000
#: Maximum size after decompression. A ten-hour transcript with every analysis takes 25 MB.
MAX_BYTES = 512 * 1024 * 1024

_PACKED = {".gz": "gzip", ".zst": "zstd"}
#: Suffixes of payload files.
_PLAIN = tuple(dict.fromkeys((".json", ".jsonl", ".ndjson", *READ)))
SUFFIXES = tuple(f"{plain}{packed}" for plain in _PLAIN for packed in ("", *_PACKED))
#: The usual ones, for messages: there are thirty.
ENDINGS = f"such as .json, .jsonl, .srt, .vtt, .txt and .csv, also with {' or '.join(_PACKED)}"
#: Data cards of exports, which are in the folder with the transcripts.
_CARDS = frozenset(f"{mark}{name}" for mark in ("", "_") for name in (*CARDS, CROISSANT))
#: Fields of which every transcript has at least one.
_FINISHED = frozenset({"status", "words", "utterances"})


class _Found(NamedTuple):
    """A payload of a source."""

    name: str  # for messages
    payload: bytes | PayloadError  # its bytes, or the reason why it cannot be read
    members: Members = None  # its fields
    original: bytes | None = None  # the bytes it was converted from
    source: str | None = None  # path of its file
    is_alone: bool = True  # true if it is the only payload of the file
    document: Any = None  # result of `frames.decode_transcript`, instead of its fields
    recording: str | None = None  # name of its recording, if it is known


@dataclass
class Added:
    """Result of an import.

    Attributes:
        added: Number of payloads added: transcripts, and their exports of sentences and paragraphs.
        known: Number of payloads that were already in the corpus, byte for byte.
        left_out: Name and reason of each payload that was not added.
        transcripts: Number of transcripts added.
    """

    added: int = 0
    known: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    transcripts: int = 0

    def __repr__(self) -> str:
        payloads = "" if self.added == self.transcripts else f" ({quantity(self.added, 'payload')})"
        added = f"{quantity(self.transcripts, 'transcript')} added{payloads}"
        lines = [f"{added}, {quantity(self.known, 'payload')} known, {len(self.left_out):,} left out"]
        lines += [f"  {name}: {reason}" for name, reason in self.left_out[:10]]
        if len(self.left_out) > 10:
            lines.append(f"  and {len(self.left_out) - 10} more, in .left_out")
        return "\n".join(lines)


class UnreadableFileError(PayloadError):
    """A payload file is damaged, encrypted or too large."""


def is_payload_file(name: str) -> bool:
    """Return True if a file name has the suffix of a payload file."""
    return name.lower().endswith(SUFFIXES)


def contents(file: IO[bytes], name: str) -> bytes:
    """Return the content of a payload file, decompressed if its name ends in .gz or .zst."""
    packing = next((kind for suffix, kind in _PACKED.items() if name.lower().endswith(suffix)), None)
    try:
        stream = file if packing is None else pa.CompressedInputStream(pa.PythonFile(file, "r"), packing)
        data: bytes = stream.read(MAX_BYTES + 1)
    except (pa.ArrowException, OSError) as error:  # pyarrow uses both
        if packing is None:
            raise
        raise UnreadableFileError(f"{name!r} is not a complete {packing} file ({str(error).splitlines()[0]})") from None
    if len(data) > MAX_BYTES:
        raise UnreadableFileError(f"{name!r} is larger than {MAX_BYTES // 1024**2} MB after decompression")
    return data


def add_payloads(archive: Archive, sources: Payloads, *, replace: bool, progress: bool | None) -> Added:
    """Add payloads to a corpus."""
    several: Iterable[object] = [sources]
    if hasattr(sources, "__arrow_c_stream__"):
        raise PayloadError("sources is a table; convert it first: corpus.add(voxframe.importers.from_table(df))")
    if isinstance(sources, Iterable) and not isinstance(sources, str | bytes | Mapping):
        several = sources
    read: Iterable[str | bytes | Transcript] = (source for item in several for source in _sources(item))
    if isinstance(several, Sequence):  # else it may be an iterator over more than fits into memory
        read = list(read)
    total = len(read) if isinstance(read, list) else 0
    check_writable(archive.path)
    with (
        Progress("adding", jobs=total, show=progress) as bar,
        StoringProcesses(archive, expected=total) as workers,
    ):
        adding = _Adding(archive, workers, replace=replace)
        for n, source in enumerate(read):
            adding.add(Path(source) if isinstance(source, str) else source, n)
            bar.advance(1)
        adding.store()
        for n, (early, names) in list(adding.early.items()):
            adding.add(early, n, only=names)
        adding.store()
    return adding.found()


class _Adding:
    """Adds the payloads of sources."""

    def __init__(self, archive: Archive, workers: StoringProcesses, *, replace: bool) -> None:
        self._archive, self._workers, self._replace = archive, workers, replace
        self._added = self._transcripts = self._known = self._count = self._bytes = 0
        self._left_out: list[tuple[tuple[int, int], str, str]] = []
        self._held: list[tuple[Callable[[Result], None], _Found, Head, int, _Source]] = []
        self.early: dict[int, tuple[_Source, set[str]]] = {}  # exports that came before their transcripts

    def found(self) -> Added:
        """Return the result of all sources, in their order."""
        left_out = [(name, reason) for _, name, reason in sorted(self._left_out)]
        return Added(self._added, self._known, left_out, self._transcripts)

    def add(self, source: _Source, number: int, only: Collection[str] | None = None) -> None:
        """Add the payloads of one source, now or with later ones."""
        for item in _payloads(source, number):
            if only is not None and item.name not in only:
                continue
            tell = partial(self._tell, (number, self._count), storable(item.name))
            self._count += 1
            payload = item.payload
            try:
                if isinstance(payload, PayloadError):
                    raise payload
                head = _checked_head(item, payload)
                self._archive.check_id(str(head.id), head.kind)
            except (PayloadError, CorpusError) as reason:
                tell(Result(done=False, error=str(reason)))
                continue
            if head.kind == "transcript":
                tell = partial(self._tell_of_transcript, tell)
            self._held.append((tell, item, head, -1 if only is not None else number, source))
            self._bytes += len(payload)
            if len(self._held) == TOGETHER or self._bytes >= BYTES_TOGETHER:
                self.store()

    def store(self) -> None:
        """Store the payloads that are held together, after naming their recordings in one transaction."""
        batch, self._held, self._bytes = self._held, [], 0
        recordings: dict[str, tuple[str, str | None, str]] = {}
        for _, item, head, _, _ in batch:
            transcript_id = str(head.id)
            is_new = self._replace or not (transcript_id in recordings or self._has(transcript_id))
            if head.kind == "transcript" and is_new:
                recordings[transcript_id] = _recording(item, head)
                if item.original is not None:
                    self._archive.store.put_original(transcript_id, item.original)
        records = self._archive.ledger.name_recordings(recordings) if recordings else {}
        tasks: list[tuple[Task, Callable[[Result], None]]] = []
        size = 0
        batch.reverse()
        while batch:
            tell, item, head, number, source = batch.pop()  # not kept here until the last one is stored
            transcript_id, payload = str(head.id), item.payload
            assert isinstance(payload, bytes)
            if head.kind != "transcript" or size >= BYTES_TOGETHER:
                tasks, size = self._do(tasks), 0  # the transcript of an export may be among them
            if head.kind == "transcript" or self._has(transcript_id):
                record = records.get(transcript_id) if head.kind == "transcript" else None
                task = Task(transcript_id, head.kind, payload, self._replace, record, item.document)
                tasks.append((task, tell))
                size += len(payload)
            elif number >= 0:
                self.early.setdefault(number, (source, set()))[1].add(item.name)
            else:
                why = f"it is an export of transcript {transcript_id!r}, which is not in the corpus; add that first"
                tell(Result(done=False, error=why))
        self._do(tasks)

    def _do(self, tasks: Sequence[tuple[Task, Callable[[Result], None]]]) -> list[Any]:
        """Perform tasks. Return an empty list."""
        if tasks:
            tell = [tell for _, tell in tasks]  # without the payloads
            self._workers.do([task for task, _ in tasks], lambda place, result: tell[place](result))
        return []

    def _has(self, transcript_id: str) -> bool:
        self._workers.settle(transcript_id)
        return self._archive.has(transcript_id)

    def _tell_of_transcript(self, tell: Callable[[Result], None], result: Result) -> None:
        self._transcripts += result.done and result.error is None
        tell(result)

    def _tell(self, number: tuple[int, int], name: str, result: Result) -> None:
        if result.error is not None:
            self._left_out.append((number, name, result.error))
        elif result.done:
            self._added += 1
        else:
            self._known += 1


def files_at(text: str) -> list[Path]:
    """Return the file with this path, or the payload files, zips and data sets in a folder, or files of a pattern."""
    path = as_path(text)
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        return [path]
    return sorted(p for p in map(Path, glob.glob(str(path), recursive=True)) if p.is_file())  # noqa: PTH207


def _in_folder(folder: Path) -> list[Path]:
    """Return the payload files and zips in a folder, and the folders of data sets, each as a whole."""
    tables = dataset_files(folder)
    sources = [folder] if tables else []
    in_tables = {path for paths in tables.values() for path in paths}
    is_export = any((folder / name).exists() for name in (CHECKSUMS, f"_{CHECKSUMS}"))
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            sources += [] if path.is_symlink() or path.name in tables else _in_folder(path)
        elif (is_payload_file(path.name) or _is_zip(path.name)) and path not in in_tables and path.is_file():
            is_card = is_export and path.name in _CARDS
            sources += [] if is_card or _is_prose(path) else [path]
    return sources


def _is_prose(path: Path) -> bool:
    """Return True for Markdown that is no transcript: notes, documentation and licences."""
    if path.suffix.lower() != ".md":
        return False
    try:
        return is_prose(path.read_text("utf-8", "replace"))
    except OSError:
        return False


def _sources(source: object) -> list[str | bytes | Transcript]:
    """Return the files that a path or pattern matches, or the given payload itself."""
    if isinstance(source, Mapping):
        return [encode(source)]
    if isinstance(source, bytes | Transcript):
        return [source]
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise PayloadError(
            f"payloads must be files, folders, patterns, zips, transcripts, dicts or JSON bytes, got {source!r:.100}"
        )
    why = f"check the path. Payload files have endings {ENDINGS}, or are in a .zip"
    try:
        paths = files_at(text)
    except OSError as error:  # it is too long, or a folder may not be read
        paths, why = [], f"check the path ({error.strerror or error})"
    if not paths and text.lstrip().startswith(("{", "[")):
        raise PayloadError(f"{shown(text)} matches no payload file; if it is JSON, pass it as bytes: text.encode()")
    if not paths:
        raise PayloadError(f"{text!r} matches no payload file; {why}")
    return [os.fspath(path) for path in paths]


def _payloads(source: _Source, number: int) -> Iterator[_Found]:
    """Yield name and bytes of each payload of a source, or the reason why it cannot be read."""
    if isinstance(source, bytes):
        yield from _each(f"source {number} (counted from 0)", source, file="")
    elif isinstance(source, Transcript):
        name = short_name(source.source) if source.source else None
        yield from (item._replace(recording=name) for item in _each(f"transcript {source.id}", source.raw, file=""))
    elif _is_zip(source.name):
        yield from _zipped(source)
    elif source.is_dir():
        yield from _in_dataset(source)
    else:
        try:
            with source.open("rb") as file:
                data = contents(file, source.name)
        except (OSError, UnreadableFileError) as error:
            yield _Found(str(source), _unreadable(error))
        else:
            yield from _each(str(source), data)


def _in_dataset(folder: Path) -> Iterator[_Found]:
    """Yield each transcript of a folder with exported tables."""
    try:
        for recording, payload in of_folder(folder):
            for _, raw, members in members_of_payloads(encode(payload)):
                yield _Found(f"{folder}:{payload['id']}", raw, members, recording=recording)
    except PayloadError as error:
        yield _Found(str(folder), error)


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def _zipped(path: Path) -> Iterator[_Found]:
    try:
        zipped = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        yield _Found(str(path), _unreadable(error))
        return
    with zipped:
        members = [info for info in zipped.infolist() if not info.is_dir()]
        for info in members[:MAX_MEMBERS]:
            name = f"{path}:{info.filename}"
            if not is_payload_file(info.filename):
                reason = "unpack it first" if _is_zip(info.filename) else "it is not a payload file, such as .json"
                yield _Found(name, PayloadError(reason))
                continue
            try:
                with zipped.open(info) as file:
                    data = contents(file, info.filename)
            except Exception as error:  # noqa: BLE001  every compression has errors of its own; it may be encrypted
                yield _Found(name, _unreadable(error))
                continue
            yield from _each(name, data)
        if len(members) > MAX_MEMBERS:
            reason = f"it contains {len(members)} files; the first {MAX_MEMBERS} were read"
            yield _Found(str(path), PayloadError(reason))


def _unreadable(error: Exception) -> PayloadError:
    if isinstance(error, PayloadError):
        return error
    return PayloadError(f"it cannot be read: {str(error) or type(error).__name__}")


def _each(name: str, data: bytes, file: str | None = None) -> Iterator[_Found]:
    """Yield the payloads in some bytes, each with its position after the name."""
    source = name if file is None else None
    if (document := frames.decode_transcript(data)) is not None:
        yield _Found(name, data, source=source, document=document)
        return
    try:
        payloads = converted(data, name if file is None else file)
        original = None if payloads is data else data
        for place, payload, members in members_of_payloads(payloads):
            yield _Found(f"{name}{place}", payload, members, original, source, not place)
    except PayloadError as error:
        yield _Found(name, error)


def _checked_head(item: _Found, payload: bytes) -> Head:
    """Return the fields of a payload that identify it."""
    if (document := item.document) is not None:
        head = Head("transcript", document.id, document.status, frozenset({"status"}), document.audio_url)
    else:
        head = head_of(payload, item.members)
    if not head.id:
        raise PayloadError("it has no id")
    if head.kind == "transcript" and not head.fields & _FINISHED:
        raise PayloadError("it is neither a transcript nor an export: it has no status, words or utterances")
    if head.status in UNFINISHED:
        raise PayloadError(f"its status is {head.status!r}; add it when it is finished")
    return head


def _recording(item: _Found, head: Head) -> tuple[str, str | None, str]:
    """Return the wanted name, the source and the identity of the recording of a payload."""
    address = head.audio_url or ""
    of_address = short_name(address) if address else None
    stem = payload_stem(item.source) if item.source else None
    first, second = (stem, of_address) if item.is_alone and stem != head.id else (of_address, stem)
    audio = canonical(unmarked(address)) if is_address(address) and of_address else ""
    source = item.source or head.audio_url
    own = None if item.original is None or item.is_alone else tidy(recording_of(str(head.id), item.original))
    name = item.recording or own or first or second or tidy(str(head.id)) or "transcript"
    return name, None if source is None else storable(source), storable(audio)


def name_fetched(archive: Archive, transcript_id: str, raw: bytes, source: str | None) -> Mapping[str, object] | None:
    """Name the recording of a transcript that was fetched, and return the record to store with the payload."""
    record = _recording(_Found("", raw), replace(frames.payloads.head(raw), id=transcript_id))
    if source is not None:
        from voxframe.corpus.media import identify  # the package `batch` imports this module

        audio = ""
        with contextlib.suppress(AudioError, OptionError, MissingExtraError):  # the file was moved since
            audio = identify(source, archive.ledger).identity
        record = short_name(source) or record[0], storable(source), audio
    return archive.ledger.name_recordings({transcript_id: record}).get(transcript_id)


def payload_stem(path: str) -> str | None:
    """Return the name of a payload file without its suffixes, also without that of a recording before them."""
    name = re.split(r"[/\\]|\.zip:", path)[-1]
    for suffixes in (tuple(_PACKED), SUFFIXES, tuple(EXTENSIONS)):
        name = next((name[: -len(end)] for end in suffixes if name.lower().endswith(end)), name)
    return tidy(name) or None
