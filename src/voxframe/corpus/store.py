"""Payloads of a corpus as received: `raw/<xx>/<id>.json.zst`, each written atomically.

`<xx>` is derived from the file name, so that no folder becomes large. A file is the compressed payload, followed by a
small zstd skippable frame that decompressors ignore. This frame holds the transcript id, a hash of the compressed
payload, and the record of the submission, if there is one. `corpus.analyze` adds its results in a skippable frame
between the two. Files directly in `raw/` are read as well. `opened` opens any file of a corpus, with a limit of size.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import stat
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import zstandard

from voxframe._files import file_name, hidden_path, is_plain, private_folder, put_in_place, sync, write_atomic
from voxframe._text import quantity
from voxframe.errors import CorpusError, DamagedFileError, NewerCorpusError, PayloadError
from voxframe.frames import payloads

#: Maximum size of a file that is read as a whole, and of a payload after decompression.
MAX_BYTES = 512 << 20
_FED = 4096  # bytes, which zstd can expand to 128 MB


@contextlib.contextmanager
def opened(path: Path, limit: int = MAX_BYTES) -> Iterator[IO[bytes]]:
    """Open a regular file for reading. A missing one raises FileNotFoundError, any other problem DamagedFileError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            os.close(descriptor)
            raise DamagedFileError(f"{path} is not a regular file; remove it")
        with os.fdopen(descriptor, "rb") as file:
            if about.st_size > limit:
                raise DamagedFileError(f"{path} has {about.st_size:,} bytes, and at most {limit:,} are read; remove it")
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error.strerror or error}); check its permissions, or remove it"
        ) from None


def read_file(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file; see `opened`."""
    with opened(path, limit) as file:
        return file.read(limit + 1)


def read_json(path: Path, kind: Any = Any, limit: int = MAX_BYTES) -> Any:
    """Return the content of a JSON file, checked against a type."""
    data = read_file(path, limit)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged ({error}); remove it") from None


def decompress(data: bytes, limit: int = MAX_BYTES) -> bytes:
    """Return the content of the first zstd frame of `data`, even if its header does not state the size."""
    size = zstandard.frame_content_size(data)
    if size > limit:
        raise _too_large(limit)
    if size >= 0:
        return zstandard.ZstdDecompressor().decompress(data)
    stream, parts, total = zstandard.ZstdDecompressor().decompressobj(), list[bytes](), 0
    for at in range(0, len(data), _FED):
        parts.append(stream.decompress(data[at : at + _FED]))
        total += len(parts[-1])
        if total > limit:
            raise _too_large(limit)
        if stream.eof:
            return b"".join(parts)
    raise zstandard.ZstdError("the file ends early")


def _too_large(limit: int) -> zstandard.ZstdError:
    return zstandard.ZstdError(f"it expands to more than {quantity(limit, 'byte')}")


#: Kinds of responses about a transcript.
View: TypeAlias = Literal["transcript", "sentences", "paragraphs"]

#: Exports of a transcript that are stored beside it, each with a table of the same name.
EXPORTS: tuple[View, ...] = ("sentences", "paragraphs")

#: Statuses of transcripts that no longer change.
FINAL = frozenset({"completed", "error"})

#: Statuses of unfinished transcripts. Any other status, even an unknown one, counts as finished.
UNFINISHED = frozenset({"queued", "processing"})

#: A file or folder that changed less than this long ago may change again without a new modification time.
RACY_NS = 2_000_000_000

#: Version of the layout of a corpus. Earlier programs than those of version 4 know no catalog.
FORMAT = 4

_SUFFIX = ".json.zst"
_SKIPPABLE = 0x184D2A50  # magic number of a zstd frame that decompressors skip
_LEFTOVER_AGE_S = 3600.0  # a temporary file older than this belongs to a writer that died
_FORMAT_FILE = "format.json"
_MAX_FORMAT_BYTES = 4096
_TRIES = 10


class Stored(NamedTuple):
    """A payload with the marks of its file."""

    raw: bytes
    content: str  # hash of the compressed payload, or of the file if another program wrote it; and of the analysis
    stamp: str  # a text that changes if the file is replaced
    # Result of `corpus.analyze`, as a JSON object: `fields` of the payload, and what they were made from.
    analysis: bytes | None = None

    @property
    def whole(self) -> bytes:
        """The payload with the fields of the analysis."""
        if self.analysis is None:
            return self.raw
        return payloads.with_fields(self.raw, msgspec.json.decode(self.analysis, type=dict[str, msgspec.Raw])["fields"])


class Store:
    """Payloads in one directory. Several processes can use it at the same time: every file is complete or absent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._raw = root / "raw"
        self._prepared = False
        self._ids: dict[str, str] = {}
        self._unnamed: set[str] = set()
        self._listed: tuple[tuple[int, ...] | None, dict[View, dict[str, str]]] = (None, {})
        self._of_folder: dict[str, tuple[int, dict[View, dict[str, str]]]] = {}

    def put(
        self,
        transcript_id: str,
        view: View,
        raw: bytes,
        submission: Mapping[str, Any] | None = None,
        recording: Mapping[str, Any] | None = None,
    ) -> Stored:
        """Store a payload, replacing an older one."""
        if len(raw) > MAX_BYTES:
            raise CorpusError(f"a payload has at most {MAX_BYTES:,} bytes, got {len(raw):,}; split the recording")
        self.prepare()
        frame = _COMPRESSOR.compress(raw)
        content = _hash(frame)
        path = self._raw_path(transcript_id, view)
        note: dict[str, Any] = {"transcript_id": transcript_id, "view": view, "content": content}
        old = _note(path) or {}
        records = {"submission": submission or old.get("submission"), "recording": recording or old.get("recording")}
        note |= {name: record for name, record in records.items() if record}
        return Stored(raw, content, _put_file(path, frame + _skippable(note)))

    def put_analysis(self, transcript_id: str, analysis: bytes | None) -> None:
        """Store fields beside the payload of a transcript, replacing earlier ones. None removes them."""
        self.prepare()
        path = self._raw_path(transcript_id, "transcript")
        data = read_file(path)
        note = note_in(io.BytesIO(data)) or {"transcript_id": transcript_id, "content": _hash(data)}
        frame = data[: _payload_bytes(data)]
        if analysis is None:
            note.pop("analysis", None)
            _put_file(path, frame + _skippable(note))
            return
        body = _COMPRESSOR.compress(analysis)
        note["analysis"] = {"bytes": len(body), "content": _hash(body)}
        _put_file(path, frame + struct.pack("<II", _SKIPPABLE, len(body)) + body + _skippable(note))

    def raw(self, transcript_id: str, view: View) -> bytes | None:
        """Return the payload as received, or None if it is not stored; see `read`."""
        stored = self.read(transcript_id, view)
        return None if stored is None else stored.raw

    def read(self, transcript_id: str, view: View) -> Stored | None:
        """Return the payload as received with the marks of this very file, or None if it is not stored."""
        path = self._raw_path(transcript_id, view)
        try:
            with opened(path) as file:
                mark = _stamp(os.fstat(file.fileno()))
                data = file.read()
                note = note_in(file)
            return Stored(
                decompress(data), _hash(data) if note is None else _content(note), mark, _analysis(data, note)
            )
        except FileNotFoundError:
            return None
        except zstandard.ZstdError as e:
            raise DamagedFileError(
                f"{path} is damaged ({e}). Delete it and get the transcript again: with Corpus.sync() if it was "
                f"submitted from here, with voxframe.tables({transcript_id!r}, client=client, corpus=corpus, "
                "refresh=True) if a service has it, or with Corpus.add(...) if it is in a file"
            ) from None

    def put_original(self, transcript_id: str, data: bytes) -> None:
        """Store the file in another format that a payload was converted from."""
        self.prepare()
        path = self._original(transcript_id)
        folder(path.parent)
        write_atomic(path, _COMPRESSOR.compress(data))

    def original(self, transcript_id: str) -> bytes | None:
        """Return the file that a payload was converted from, byte for byte; None if the service sent the payload."""
        path = self._original(transcript_id)
        try:
            return decompress(read_file(path))
        except FileNotFoundError:
            return None
        except zstandard.ZstdError as e:
            raise DamagedFileError(f"{path} is damaged ({e}); delete it") from None

    def has(self, transcript_id: str, view: View) -> bool:
        """Return True if the payload is stored, even if it is damaged."""
        return os.path.lexists(self._raw_path(transcript_id, view))

    def content(self, transcript_id: str, view: View) -> str | None:
        """Return a text that differs between different payloads, or None if the payload is not stored."""
        note = _note(self._raw_path(transcript_id, view))
        if note is not None:
            return _content(note)
        stored = self.read(transcript_id, view)  # a file that was written by another program
        return None if stored is None else stored.content

    def submissions(self) -> Iterator[dict[str, Any]]:
        """Yield the records of submissions that are stored with payloads."""
        return self._records("submission")

    def recordings(self) -> Iterator[dict[str, Any]]:
        """Yield the names and sources of recordings that are stored with payloads."""
        return self._records("recording")

    def _records(self, kind: str) -> Iterator[dict[str, Any]]:
        for stem in self.listing():
            record = (_note(self._file("transcript", stem)) or {}).get(kind)
            if isinstance(record, dict):
                yield record

    def ids(self) -> list[str]:
        """Return the ids of all transcripts with a payload, sorted."""
        return sorted(map(self.id_of, self.listing()))

    def listing(self, view: View = "transcript") -> dict[str, str]:
        """Return the stem of every payload file, with a text that changes if the file is replaced."""
        settled = self.settled()
        if settled is None or settled != self._listed[0]:
            self._listed = settled, self._list()
        return self._listed[1][view]

    def _list(self) -> dict[View, dict[str, str]]:
        """Return the files of every folder. A folder that has not changed since it was listed is not listed again."""
        by_view: dict[View, dict[str, str]] = {view: {} for view in get_args(View)}
        listed: dict[str, tuple[int, dict[View, dict[str, str]]]] = {}
        for place in self._folders():
            with contextlib.suppress(FileNotFoundError):
                now, changed = time.time_ns(), os.stat(place).st_mtime_ns  # noqa: PTH116  fast
                cached = self._of_folder.get(place)
                files = cached[1] if cached is not None and cached[0] == changed else _files_in(place)
                if now - changed > RACY_NS:
                    listed[place] = changed, files
                for view, of_view in files.items():
                    by_view[view] |= of_view
        self._of_folder = listed
        return by_view

    def _folders(self) -> list[str]:
        """Return the folders with payloads."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._raw) as entries:
            return [os.fspath(self._raw), *(e.path for e in entries if len(e.name) == 2 and e.is_dir())]
        return []

    def stamp(self, transcript_id: str, view: View) -> str | None:
        """Return a text that changes if the payload file is replaced; None if there is no file."""
        path = self._raw_path(transcript_id, view)
        try:
            return _stamp(path.stat())
        except FileNotFoundError:
            return None
        except OSError:
            return _stamp(path.lstat())

    def settled(self) -> tuple[int, ...] | None:
        """Return a value that differs after a change to the payload files; None if a change may be in progress."""
        changed = tuple(os.stat(place).st_mtime_ns for place in self._folders())  # noqa: PTH116  fast
        return changed if time.time_ns() - max(changed, default=0) > RACY_NS else None

    def id_of(self, stem: str) -> str:
        """Return the id of the transcript with this file stem. It is the stem itself if the file does not tell it."""
        if is_plain(stem):
            return stem
        if stem not in self._ids:
            noted_id = next(
                (transcript_id for transcript_id in self._told(stem) if file_name(transcript_id) == stem), None
            )
            if noted_id is None:
                self._unnamed.add(stem)
                return stem
            self._ids[stem] = noted_id
        return self._ids[stem]

    def _told(self, stem: str) -> Iterator[str]:
        """Yield the id in the note of a payload file, and the id in the payload."""
        path = self._file("transcript", stem)
        yield str((_note(path) or {}).get("transcript_id"))
        with contextlib.suppress(OSError, CorpusError, zstandard.ZstdError, PayloadError):
            yield str(payloads.head(decompress(read_file(path))).id)

    def remove(self, transcript_id: str) -> None:
        """Delete the files of a transcript, its payload first: an interrupted deletion leaves it whole, or gone."""
        for path in self.files(transcript_id):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            sync(path.parent)

    def files(self, transcript_id: str) -> list[Path]:
        """Return the files and folders of a transcript that exist, its payload first, and unfinished files last."""
        stem = file_name(transcript_id)
        payload = self._raw_path(transcript_id, "transcript").name.removesuffix(_SUFFIX)
        places = (self._raw, self._raw / _shard(payload))  # another program may have put one directly in `raw/`
        paths = [
            *(place / f"{payload}{_suffix(view)}" for view in get_args(View) for place in places),
            self._original(transcript_id),
            *self.redacted_audio(transcript_id),
            self.redacted_download(transcript_id),
        ]
        for place in {place for path in paths for place in path.parents if place.parent.is_relative_to(self.root)}:
            check_no_link(place)
        unfinished = [path for place in {path.parent for path in paths} for path in place.glob(f".{stem}.*.tmp")]
        return [*(path for path in paths if os.path.lexists(path)), *unfinished]

    def redacted_audio(self, transcript_id: str) -> list[Path]:
        """Return the paths of the stored redacted recordings of a transcript."""
        stem = self.root / "redacted" / file_name(transcript_id)
        return [path for suffix in (".mp3", ".wav", "") if (path := stem.with_name(stem.name + suffix)).is_file()]

    def redacted_download(self, transcript_id: str) -> Path:
        """Return the folder that holds a redacted recording while it is downloaded."""
        return self.root / "redacted" / f".{file_name(transcript_id)}"

    def _original(self, transcript_id: str) -> Path:
        stem = file_name(transcript_id)
        return self._raw / _shard(stem) / f"{stem}.original.zst"

    def _raw_path(self, transcript_id: str, view: View) -> Path:
        return self._file(view, transcript_id if transcript_id in self._unnamed else file_name(transcript_id))

    def _file(self, view: View, stem: str) -> Path:
        name = f"{stem}{_suffix(view)}"
        flat = f"{self._raw}/{name}"
        return Path(flat if os.path.exists(flat) else f"{self._raw}/{_shard(stem)}/{name}")  # noqa: PTH110  fast

    def prepare(self) -> None:
        """Create the folders and upgrade an older corpus, once per process and if they were deleted."""
        check_writable(self.root)
        if self._prepared and self._raw.is_dir():
            return
        try:
            private_folder(self.root)
            folder(self._raw)
            for place in (self.root, *map(Path, self._folders())):
                sweep(place)
            if _format(self.root) != FORMAT:
                write_atomic(self.root / _FORMAT_FILE, json.dumps({"format": FORMAT}).encode() + b"\n")
        except OSError as e:
            raise CorpusError(
                f"cannot write a corpus at {self.root}: {e.strerror or e}; name a directory that can be written"
            ) from None
        self._prepared = True


def _shard(stem: str) -> str:
    """Return the name of the folder in `raw/` for files with a stem."""
    return f"{zlib.crc32(stem.encode()) & 0xFF:02x}"


def _files_in(place: str) -> dict[View, dict[str, str]]:
    """Return the stem and the stamp of every payload file in a folder."""
    by_view: dict[View, dict[str, str]] = {view: {} for view in get_args(View)}
    views = {_suffix(view).removeprefix("."): by_view[view] for view in by_view}
    with os.scandir(place) as entries:
        for entry in entries:
            stem, _, suffix = entry.name.partition(".")
            if suffix not in views:
                continue  # a temporary file
            try:
                views[suffix][stem] = _stamp(entry.stat())
            except FileNotFoundError:
                continue
            except OSError:  # a loop of links; reading it is the error
                views[suffix][stem] = _stamp(entry.stat(follow_symlinks=False))
    return {view: files for view, files in by_view.items() if files}


def _put_file(path: Path, content: bytes) -> str:
    """Write a payload file. Return its stamp."""
    folder(path.parent)
    for tries_left in reversed(range(_TRIES)):
        hidden = hidden_path(path)
        try:
            with hidden.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                mark = _stamp(os.fstat(file.fileno()))
            put_in_place(hidden, path)
            break
        except FileNotFoundError:  # another process forgot the transcript, and deleted the unfinished file, too
            if not tries_left:
                raise
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
    return mark


def is_corpus(path: Path) -> bool:
    """Return True if a directory is that of a corpus."""
    return (path / _FORMAT_FILE).is_file() and (path / "raw").is_dir()


def is_writable(root: Path) -> bool:
    """Return True if a directory may be changed, by this user and by this version of voxframe."""
    return os.access(root, os.W_OK) and _format(root) <= FORMAT


def check_writable(root: Path) -> None:
    """Check that a corpus may be changed by this version of voxframe."""
    if (number := _format(root)) > FORMAT:
        raise NewerCorpusError(
            f"the corpus {root} has format {number}, which a newer voxframe wrote. This version knows format {FORMAT}: "
            "it can read the corpus but not change it; update voxframe"
        )


def _format(root: Path) -> int:
    """Return the format version of a corpus; 1 if it is not stated."""
    try:
        return int(read_json(root / _FORMAT_FILE, dict, _MAX_FORMAT_BYTES)["format"])
    except (OSError, CorpusError, ValueError, KeyError, TypeError, OverflowError):
        return 1


def _suffix(view: View) -> str:
    return _SUFFIX if view == "transcript" else f".{view}{_SUFFIX}"


def _stamp(stat: os.stat_result) -> str:
    """Return a text that changes if a payload is replaced, and stays the same in a copy that keeps times."""
    return f"{stat.st_mtime_ns}-{stat.st_size}"


def folder(path: Path) -> None:
    """Create a folder of a corpus."""
    check_no_link(path)
    if not path.is_dir():
        path.mkdir(exist_ok=True)
        sync(path.parent)


def check_no_link(path: Path) -> None:
    """Check that a folder is not a symbolic link: writing through it would change files elsewhere."""
    if path.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, f"{path} is a symbolic link, through which nothing is written")


def _hash(frame: bytes) -> str:
    return hashlib.sha256(frame).hexdigest()


class _Compressor(threading.local):
    """A compressor for each thread: creating one takes a tenth of the time of compressing a payload."""

    def __init__(self) -> None:
        # As small as level 3 in three quarters of its time: a payload has most of its words twice, far apart.
        options = zstandard.ZstdCompressionParameters.from_level(2, window_log=21, min_match=7, write_checksum=True)
        self.compress = zstandard.ZstdCompressor(compression_params=options).compress


_COMPRESSOR = _Compressor()


def _skippable(note: Mapping[str, Any]) -> bytes:
    """Return a note as a frame that decompressors skip, which ends with its length."""
    text = json.dumps(note).encode()
    return struct.pack("<II", _SKIPPABLE, len(text) + 4) + text + struct.pack("<I", len(text))


def _content(note: Mapping[str, Any]) -> str:
    return " ".join([str(note["content"]), *([str(note["analysis"]["content"])] if "analysis" in note else [])])


def _payload_bytes(data: bytes) -> int:
    """Return the number of bytes of the compressed payload in a file, before the analysis and the note."""
    note = note_in(io.BytesIO(data))
    if note is None:
        return len(data)
    (length,) = struct.unpack("<I", data[-4:])
    return len(data) - 12 - int(length) - (8 + int(note["analysis"]["bytes"]) if "analysis" in note else 0)


def _analysis(data: bytes, note: Mapping[str, Any] | None) -> bytes | None:
    if note is None or "analysis" not in note:
        return None
    start = _payload_bytes(data) + 8
    body = data[start : start + int(note["analysis"]["bytes"])]
    if _hash(body) != note["analysis"]["content"]:
        raise zstandard.ZstdError("the fields that corpus.analyze added have another checksum")
    return decompress(body)


def _note(path: Path) -> dict[str, Any] | None:
    """Return the note that `put` wrote after the payload. None if the file is absent, cannot be read or has none."""
    try:
        with opened(path) as file:
            return note_in(file)
    except (OSError, CorpusError):
        return None


def note_in(file: IO[bytes]) -> dict[str, Any] | None:
    """Return the note in an open payload file, with the `transcript_id` and the `content`."""
    try:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4))
        (length,) = struct.unpack("<I", file.read(4))
        file.seek(max(0, size - 12 - length))
        magic, _ = struct.unpack("<II", file.read(8))
        note: Any = json.loads(file.read(length)) if magic == _SKIPPABLE else None
    except (struct.error, ValueError, RecursionError):
        return None
    is_whole = isinstance(note, dict) and all(isinstance(note.get(name), str) for name in ("transcript_id", "content"))
    return note if is_whole else None


def sweep(folder: Path) -> None:
    """Delete the temporary files of writers that died; those of running writers are younger."""
    for path in [] if folder.is_symlink() else folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
                path.unlink()
