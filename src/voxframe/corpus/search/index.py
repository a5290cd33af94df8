"""The search index of a corpus: segments in `search/<crc>-<random>.arrow`, which the catalog lists.

A segment never changes, and its name holds its checksum. The index is derived from the tables and can be deleted at any
time. A search first updates it: new and replaced transcripts go into a new segment, and small segments are merged. A
reader of older contents keeps using their segments, which stay mapped. In a read-only directory, missing transcripts
are indexed in memory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe._files import file_name, stamp, write_atomic
from voxframe.corpus.archive import Archive
from voxframe.corpus.search.segment import FORMAT, WORD_COLUMNS, IndexSegment, build, merge, words_of, write
from voxframe.corpus.store import check_no_link, check_writable, folder, read_file
from voxframe.errors import CorpusError, CorpusWarning, PayloadError, PayloadWarning

#: Maximum number of words in a segment, which bounds the memory for building and merging.
MAX_WORDS = 2_000_000
#: Number of segments of similar size that are merged into one.
FAN = 8
_LEAST_TIER = 20_000  # words; smaller segments count as one size


class Segment(NamedTuple):
    """A segment: its words and documents, including replaced ones, and the stamp of its file, which changes with it."""

    words: int
    documents: int
    stamp: str


class IndexedTranscript(NamedTuple):
    """Segment and position of a transcript, and the payload it was made from."""

    segment: str
    place: int
    stamp: str
    content: str


@dataclass
class Manifest:
    """Contents of the search index: segments by name, and transcripts by the stem of their files."""

    segments: dict[str, Segment] = field(default_factory=dict)
    documents: dict[str, IndexedTranscript] = field(default_factory=dict)

    def copy(self) -> Manifest:
        """Return a copy that can be changed."""
        return Manifest({**self.segments}, {**self.documents})

    def drop_dead(self) -> None:
        """Remove segments without live documents."""
        live = {document.segment for document in self.documents.values()}
        self.segments = {name: segment for name, segment in self.segments.items() if name in live}

    def to_merge(self) -> list[str]:
        """Return segments to merge: one that is mostly dead, or many of similar size."""
        live = Counter(document.segment for document in self.documents.values())
        tiers: dict[int, list[str]] = {}
        for name, segment in sorted(self.segments.items(), key=lambda item: item[1]):
            if 2 * live[name] < segment.documents:
                return [name]
            tiers.setdefault(_tier(segment.words), []).append(name)
        for group in tiers.values():
            totals = accumulate(self.segments[name].words for name in group)
            fitting = [name for name, total in zip(group, totals, strict=True) if total <= MAX_WORDS]
            if len(group) >= FAN and len(fitting) > 1:
                return fitting
        return []

    def live(self, group: Sequence[str]) -> dict[str, list[int]]:
        """Return the positions of live documents in some segments, in order."""
        places: dict[str, list[int]] = {name: [] for name in group}
        for document in self.documents.values():
            if document.segment in places:
                places[document.segment].append(document.place)
        return {name: sorted(of_segment) for name, of_segment in places.items()}

    def replace(self, merged: Mapping[str, Sequence[int]], name: str, words: int, stamp: str = "") -> None:
        """Replace several segments by a merged one."""
        moved = [(segment, place) for segment, places in merged.items() for place in places]
        new_place = {old: place for place, old in enumerate(moved)}
        for file, document in self.documents.items():
            if document.segment in merged:
                place = new_place[document.segment, document.place]
                self.documents[file] = document._replace(segment=name, place=place)
        for segment in merged:
            del self.segments[segment]
        if moved:
            self.segments[name] = Segment(words, len(moved), stamp)


def _tier(words: int) -> int:
    tier = 0
    while words > _LEAST_TIER * FAN**tier:
        tier += 1
    return tier


@dataclass(frozen=True)
class OpenIndex:
    """The search index at one moment."""

    segments: tuple[IndexSegment, ...]
    # For each segment, the rank of every document among all transcripts; -1 if it was replaced or removed.
    ranks: tuple[npt.NDArray[np.int64], ...]
    ids: pa.Array  # ids of all transcripts, sorted

    @cached_property
    def known(self) -> frozenset[str]:
        """The ids as a set."""
        return frozenset(self.ids.to_pylist())

    def replaced(self, words: Mapping[str, pa.Table]) -> OpenIndex:
        """Return the index with other words of some of its transcripts."""
        places = pc.index_in(pa.array(words, pa.string()), self.ids).to_numpy()
        ranks = tuple(np.where(np.isin(rank, places), -1, rank) for rank in self.ranks)
        return OpenIndex((*self.segments, IndexSegment(build(words))), (*ranks, places.astype(np.int64)), self.ids)


def open_index(manifest: Manifest, opened: dict[str, IndexSegment]) -> OpenIndex:
    """Return the index of a manifest, given its open segments."""
    documents = list(manifest.documents.values())
    names = [opened[d.segment].names[d.place] for d in documents]
    ranks = {name: np.full(len(opened[name].ids), -1) for name in manifest.segments}
    order = sorted(range(len(names)), key=names.__getitem__)
    for rank, n in enumerate(order):
        ranks[documents[n].segment][documents[n].place] = rank
    ids: Any = pa.array([names[n] for n in order], pa.string())
    return OpenIndex(tuple(opened[name] for name in ranks), tuple(ranks.values()), ids)


_IN_MEMORY = "memory "


class SearchIndex:
    """The search index of a corpus, updated on use. Threads and processes may share it."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._catalog, self._store = archive, archive.catalog, archive.store
        self._folder = archive.path / "search"
        self._mutex = threading.Lock()
        self._open: dict[str, IndexSegment] = {}
        self._manifest = Manifest()
        self._known: tuple[str | None, Manifest] = None, Manifest()  # the version in the catalog, and its content
        self._ignored = ""  # version with damaged segments
        self._view: OpenIndex | None = None
        self._seen: tuple[tuple[int, ...] | None, Mapping[str, str]] = (None, {})
        self._unread: list[str] = []  # reasons why transcripts are not in the index

    def view(self) -> OpenIndex:
        """Update the index and return it."""
        with self._mutex:
            settled, corrections = self._store.settled(), self._archive.edits.stamps()
            if self._view is None or settled is None or (settled, corrections) != self._seen:
                self._view = self._current()
                self._seen = settled, corrections
            for error in self._unread:  # in every search, not only in the one that updated the index
                warnings.warn(f"not searched: {error}", PayloadWarning, stacklevel=2)
            return self._view

    def has(self, transcript_id: str) -> bool:
        """Return True if a segment holds words of a transcript."""
        check_no_link(self._folder)
        with self._mutex, contextlib.suppress(FileNotFoundError, pa.ArrowInvalid):  # the next search rebuilds it
            return bool(self._holding(self._read(), transcript_id))
        return False

    def _holding(self, manifest: Manifest, transcript_id: str) -> list[str]:
        """Return the segments with words of a transcript, also if these were replaced."""
        return [name for name in manifest.segments if transcript_id in self._segment(name, manifest).names]

    def purge(self, transcript_id: str) -> None:
        """Rewrite the segments of a deleted transcript without its words."""
        check_no_link(self._folder)
        if not self._folder.exists():
            return
        with self._mutex, self._catalog.lock("search"):
            manifest = self._read().copy()
            try:
                holding = self._holding(manifest, transcript_id)
                manifest.documents.pop(file_name(transcript_id), None)
                for name in holding:
                    self._merge(manifest, [name], self._save)
            except (FileNotFoundError, pa.ArrowInvalid):  # gone or damaged, so the index is rebuilt
                self._discard()
                self._sweep(Manifest())
                return
            self._finish(manifest)

    def _current(self) -> OpenIndex:
        for attempt in range(5):
            try:
                manifest = self._read()
                listing = self._listing()
                self._unread = []
                if {file: document.stamp for file, document in manifest.documents.items()} != listing:
                    manifest = self._update(manifest, listing)
                opened = {name: self._segment(name, manifest) for name in manifest.segments}
            except FileNotFoundError:  # another process merged or removed it after the manifest was read
                if attempt:
                    self._discard()
                continue
            except pa.ArrowInvalid as e:
                warnings.warn(f"the search index {self._folder} is damaged ({e}) and is rebuilt", CorpusWarning, 2)
                self._discard()
                continue
            self._open, self._manifest = opened, manifest
            return open_index(manifest, opened)
        raise CorpusError(f"the search index {self._folder} keeps changing; delete that folder and search again")

    def _listing(self) -> dict[str, str]:
        """Return the stems of all transcripts, with a text that changes with the payload or its corrections."""
        listing = self._store.listing()
        edited = {stem: stamp for stem, stamp in self._archive.edits.stamps().items() if stem in listing}
        return listing | {stem: f"{listing[stem]} {stamp}" for stem, stamp in edited.items()}

    def _segment(self, name: str, manifest: Manifest) -> IndexSegment:
        """Open a segment after verifying its file: its numbers are used as offsets into memory."""
        if name in self._open:
            return self._open[name]
        path = self._folder / name
        try:
            is_same = manifest.segments[name].stamp == _stamp(path)  # differs if the index was copied
            if not is_same and name[:8] != f"{zlib.crc32(read_file(path)):08x}":
                raise pa.ArrowInvalid(f"the checksum of {name} does not match")
            return IndexSegment.open(path)
        except FileNotFoundError:
            raise
        except (OSError, CorpusError) as error:
            raise pa.ArrowInvalid(str(error)) from None

    def _read(self) -> Manifest:
        """Return the contents in the catalog, the same object while they are unchanged."""
        rows = self._catalog.rows("SELECT value FROM state WHERE name = 'search'")
        version = rows[0][0] if rows else None
        if version is None or version == self._ignored or not version.startswith(FORMAT):
            return Manifest()
        if self._known[0] != version:
            segments = self._catalog.rows("SELECT name, words, documents, stamp FROM segments")
            documents = self._catalog.rows(
                "SELECT file, segment, place, d.stamp, content FROM documents d JOIN segments ON segment = name"
            )
            self._known = (
                version,
                Manifest(
                    {name: Segment(*row) for name, *row in segments},
                    {file: IndexedTranscript(*row) for file, *row in documents},
                ),
            )
        return self._known[1]

    def _discard(self) -> None:
        """Forget the contents, so that the index is rebuilt: in memory if the disk cannot be written."""
        self._ignored = self._known[0] or ""
        with contextlib.suppress(OSError, CorpusError):
            check_no_link(self._folder)
            self._write(Manifest())

    def _update(self, before: Manifest, listing: dict[str, str]) -> Manifest:
        """Index missing transcripts, on disk if possible."""
        if not listing and not self._folder.exists():
            return Manifest()  # searching does not create a corpus
        try:
            check_writable(self._store.root)
            folder(self._folder)
            with self._catalog.lock("search"):
                manifest = self._read()
                if manifest is not before:  # another process updated it, and may know more transcripts
                    listing = self._listing()
                manifest = manifest.copy()
                for _ in self._steps(manifest, listing, self._save):
                    self._write(manifest)
                self._finish(manifest)
                return manifest
        except FileNotFoundError:
            raise
        except (OSError, CorpusError):  # a read-only or full disk
            is_in_memory = any(name.startswith(_IN_MEMORY) for name in self._manifest.segments)
            manifest = (self._manifest if is_in_memory else self._read()).copy()
            for _ in self._steps(manifest, listing, self._keep):
                pass
            return manifest

    def _steps(self, manifest: Manifest, listing: dict[str, str], put: Callable[[pa.Table], str]) -> Iterator[None]:
        """Update a manifest, yielding between steps so that it can be saved."""
        for name in manifest.documents.keys() - listing.keys():
            del manifest.documents[name]
        for n, chunk in enumerate(self._missing(manifest, listing)):
            if n:
                yield
            name = put(build({transcript_id: words for _, transcript_id, _, words in chunk}))
            words_of_all = sum(words.num_rows for *_, words in chunk)
            manifest.segments[name] = Segment(words_of_all, len(chunk), self._stamp_of(name))
            for place, (file, _, content, _) in enumerate(chunk):
                manifest.documents[file] = IndexedTranscript(name, place, listing[file], content)
        manifest.drop_dead()
        while group := manifest.to_merge():
            self._merge(manifest, group, put)

    def _missing(self, manifest: Manifest, listing: dict[str, str]) -> Iterator[list[tuple[str, str, str, pa.Table]]]:
        """Yield new and replaced transcripts (file name, id, content hash, words) in chunks of one segment."""
        pending: dict[str, tuple[str, str]] = {}
        for file, now in listing.items():
            entry = manifest.documents.get(file)
            if entry and entry.stamp == now:
                continue
            try:
                transcript_id = self._store.id_of(file)
                edited = now.partition(" ")[2]  # of the corrections
                content = f"{self._store.content(transcript_id, 'transcript') or ''} {edited}".rstrip()
            except (CorpusError, PayloadError) as e:
                self._leave_out(manifest, file, e)
                continue
            if entry and entry.content == content:  # copied or touched
                manifest.documents[file] = entry._replace(stamp=now)
            else:
                pending[transcript_id] = file, content
        chunk: list[tuple[str, str, str, pa.Table]] = []
        size = 0
        # In the order of the files, so that neighbours share a segment.
        for transcript_id, words in self._archive.each("words", pending, WORD_COLUMNS):
            file, content = pending[transcript_id]
            if isinstance(words, Exception):
                self._leave_out(manifest, file, words)
                continue
            if chunk and size + words.num_rows > MAX_WORDS:
                yield chunk
                chunk, size = [], 0
            chunk.append((file, transcript_id, content, words))
            size += words.num_rows
        if chunk:
            yield chunk

    def _leave_out(self, manifest: Manifest, file: str, error: Exception) -> None:
        """Note that a transcript cannot be read."""
        manifest.documents.pop(file, None)
        self._unread.append(str(error) if file in str(error) else f"{file!r}: {error}")

    def _merge(self, manifest: Manifest, group: Sequence[str], put: Callable[[pa.Table], str]) -> None:
        """Replace segments by one without the words that do not count any more."""
        places = manifest.live(group)
        opened = {name: self._segment(name, manifest) for name in places}
        table = merge([(part, np.isin(np.arange(len(part.ids)), places[name])) for name, part in opened.items()])
        name = put(table) if any(places.values()) else ""
        manifest.replace(places, name, words_of(table), self._stamp_of(name))

    def _save(self, table: pa.Table) -> str:
        """Write a segment and return its name."""
        buffer = pa.BufferOutputStream()
        write(table, buffer)
        content = memoryview(buffer.getvalue())
        name = f"{zlib.crc32(content):08x}-{secrets.token_hex(4)}.arrow"

        def put(file: IO[bytes]) -> None:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut could leave a file of full length with holes

        write_atomic(self._folder / name, put, durable=False)
        return name

    def _keep(self, table: pa.Table) -> str:
        name = f"{_IN_MEMORY}{secrets.token_hex(8)}"
        self._open[name] = IndexSegment(table)
        return name

    def _stamp_of(self, name: str) -> str:
        """Return the stamp of the file of a segment; nothing if it is in memory."""
        return _stamp(self._folder / name) if name and not name.startswith(_IN_MEMORY) else ""

    def _write(self, manifest: Manifest) -> None:
        """Write contents to the catalog."""
        with self._catalog.writing() as tx:
            before = {
                file: tuple(row) for file, *row in tx.rows("SELECT file, segment, place, stamp, content FROM documents")
            }
            for file in before.keys() - manifest.documents.keys():
                tx.drop("documents", file=file)
            changed = {file: row for file, row in manifest.documents.items() if before.get(file) != row}
            tx.put("documents", [{"file": file, **row._asdict()} for file, row in changed.items()])
            tx.drop("segments")
            tx.put("segments", [{"name": name, **row._asdict()} for name, row in manifest.segments.items()])
            version = f"{FORMAT} {secrets.token_hex(8)}"
            tx.put("state", [{"name": "search", "value": version}])
        self._known = version, manifest.copy()

    def _finish(self, manifest: Manifest) -> None:
        """Write contents and delete files that these do not list."""
        self._write(manifest)
        self._sweep(manifest)

    def _sweep(self, manifest: Manifest) -> None:
        """Delete files that are not listed. Only the holder of the lock writes here."""
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):  # Windows cannot delete a mapped file
                if path.name not in manifest.segments and path.suffix in (".arrow", ".tmp"):
                    path.unlink()


def _stamp(path: Path) -> str:
    return stamp(path.stat())
