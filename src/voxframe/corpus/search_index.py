"""The search index of a corpus: segments on the disk, and a catalogue of what is in them.

    <corpus>/search/catalogue.json     which segments there are; of each transcript its segment and what it was made of
             search/<sum>-<any>.arrow  segments, never changed once written; their checksum is in their name

It is derived from the tables and can be removed at any time. A search first brings it up to date: the transcripts that
are new or were replaced since go into a new segment, small segments are merged now and then, and the catalogue is
replaced in one step. A reader that holds an older one goes on with the segments of that, which stay mapped. Where the
directory cannot be written, what is missing is indexed in memory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from voxframe.corpus.search_segment import FORMAT, Segment, build, merge, write
from voxframe.corpus.store import Store, write_atomic
from voxframe.corpus.turns import turn
from voxframe.errors import CorpusError, CorpusWarning, PayloadError, PayloadWarning

#: Most words of a segment; it bounds the memory that building and merging take.
MAX_WORDS = 2_000_000
#: So many segments of about one size become one.
FAN = 8
_LEAST_TIER = 20_000  # words; segments below are all of one size

_IN_MEMORY = "memory "
_RACY_NS = 2_000_000_000  # a folder changed so short a time ago may change once more and keep its time of change


@dataclass(frozen=True)
class View:
    """The index at one moment.

    Attributes:
        segments: Its segments.
        ranks: For each, of every document its place in the order of all transcripts; -1 where it was replaced or
            removed since.
        ids: Identifiers of all transcripts, sorted.
    """

    segments: tuple[Segment, ...]
    ranks: tuple[npt.NDArray[np.int64], ...]
    ids: pa.Array


@dataclass
class _Document:
    """Where a transcript is, and the raw payload that it was made of."""

    segment: str
    place: int
    stamp: list[int]
    content: str


@dataclass
class _Catalogue:
    segments: dict[str, list[int]] = field(default_factory=dict)  # words and documents of each
    documents: dict[str, _Document] = field(default_factory=dict)  # by file name
    files: dict[str, list[int]] = field(default_factory=dict)  # of each segment what changes when its file does


class Index:
    """The search index of a corpus, brought up to date when it is asked for. Threads and processes may share it.

    Args:
        store: Files of the corpus.
        words: Gives the table `words` of a transcript.
    """

    def __init__(self, store: Store, words: Callable[[str], pa.Table]) -> None:
        self._store = store
        self._words = words
        self._folder = store.root / "search"
        self._mutex = threading.Lock()
        self._open: dict[str, Segment] = {}
        self._catalogue = _Catalogue()
        self._view: View | None = None
        self._seen = -1

    def view(self) -> View:
        """The index as it is now.

        Warns:
            PayloadWarning: A transcript cannot be read; it is left out.
            CorpusWarning: A file of the index is damaged; all of it is made again.
        """
        with self._mutex:
            changed = self._store.changed_ns()
            if self._view is None or changed != self._seen:
                settled = time.time_ns() - changed > _RACY_NS
                self._view = self._current()
                self._seen = changed if settled else -1
            return self._view

    def purge(self, stem: str) -> None:
        """Write the segment of a transcript that is no longer here again, without its words.

        Args:
            stem: Stem of the raw file that the transcript had.
        """
        if not self._folder.exists():
            return
        with self._mutex, turn(self._folder / ".lock"):
            catalogue = self._read()
            document = catalogue.documents.pop(stem, None) if catalogue else None
            if catalogue is None or document is None:
                return
            try:
                self._merge(catalogue, [document.segment], self._save)
            except (FileNotFoundError, pa.ArrowInvalid):  # gone or damaged: no part of it is worth keeping
                self._folder.joinpath(document.segment).unlink(missing_ok=True)
                self._discard()
                return
            self._write(catalogue)
            self._sweep(catalogue)

    def _current(self) -> View:
        for attempt in range(5):
            try:
                catalogue = self._read()
                if catalogue is None or _stamps(catalogue) != self._store.listing():
                    catalogue = self._update()
                opened = {name: self._segment(name, catalogue) for name in catalogue.segments}
            except FileNotFoundError:  # merged away by another process since the catalogue was read, or removed
                if attempt:
                    self._discard()
                continue
            except pa.ArrowInvalid as e:
                warnings.warn(f"the search index {self._folder} is damaged ({e}) and is made again", CorpusWarning, 2)
                self._discard()
                continue
            self._open, self._catalogue = opened, catalogue
            return _view(catalogue, opened)
        raise CorpusError(f"the search index {self._folder} changes all the time; remove that folder and search again")

    def _segment(self, name: str, catalogue: _Catalogue) -> Segment:
        """A segment, once its file is known to be whole: numbers in it are used as addresses in memory."""
        if name in self._open:
            return self._open[name]
        path = self._folder / name
        if catalogue.files.get(name) != _stamp(path) and name[:8] != f"{zlib.crc32(path.read_bytes()):08x}":
            raise pa.ArrowInvalid(f"{name} is not as it was written")
        return Segment.open(path)

    def _read(self) -> _Catalogue | None:
        """The catalogue on the disk; None where there is none that can be used."""
        try:
            found = orjson.loads((self._folder / "catalogue.json").read_bytes())
            if found["format"] != FORMAT:
                return None
            documents = {name: _Document(*d) for name, d in found["documents"].items()}
            return _Catalogue(found["segments"], documents, found["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _discard(self) -> None:
        """A segment is damaged or gone: have the whole index made again."""
        with contextlib.suppress(OSError):
            (self._folder / "catalogue.json").unlink()

    def _update(self) -> _Catalogue:
        """Index what is missing, for all processes where that is possible."""
        if not self._store.listing() and not self._folder.exists():
            return _Catalogue()  # a corpus that does not exist is not made by looking into it
        try:
            with turn(self._folder / ".lock"):
                catalogue = self._read() or _Catalogue()
                for _ in self._steps(catalogue, self._save):
                    self._write(catalogue)
                self._sweep(catalogue)
                return catalogue
        except FileNotFoundError:
            raise
        except OSError:  # a read-only or full disk
            in_memory = any(name.startswith(_IN_MEMORY) for name in self._catalogue.segments)
            catalogue = self._catalogue if in_memory else self._read() or _Catalogue()
            for _ in self._steps(catalogue, self._keep):
                pass
            return catalogue

    def _steps(self, catalogue: _Catalogue, put: Callable[[pa.Table], str]) -> Iterator[None]:
        """Bring a catalogue up to date; after each step it can be saved."""
        listing = self._store.listing()
        for name in catalogue.documents.keys() - listing.keys():
            del catalogue.documents[name]
        for chunk in self._missing(catalogue, listing):
            name = put(build({transcript_id: words for _, transcript_id, _, words in chunk}))
            catalogue.segments[name] = [sum(words.num_rows for *_, words in chunk), len(chunk)]
            for place, (file, _, content, _) in enumerate(chunk):
                catalogue.documents[file] = _Document(name, place, listing[file], content)
            yield
        while group := _to_merge(catalogue):
            self._merge(catalogue, group, put)
        yield

    def _missing(
        self, catalogue: _Catalogue, listing: dict[str, list[int]]
    ) -> Iterator[list[tuple[str, str, str, pa.Table]]]:
        """New and replaced transcripts as file name, identifier, content and words, as many as a segment may hold."""
        chunk: list[tuple[str, str, str, pa.Table]] = []
        size = 0
        for file, stamp in listing.items():
            known = catalogue.documents.get(file)
            if known and known.stamp == stamp:
                continue
            try:
                transcript_id = self._store.id_of(file)
                content = self._store.content(transcript_id, "transcript") or ""
                if known and known.content == content:  # copied or touched
                    known.stamp = stamp
                    continue
                words = self._words(transcript_id)
            except (CorpusError, PayloadError) as e:
                catalogue.documents.pop(file, None)
                warnings.warn(f"not searched: {e}", PayloadWarning, stacklevel=2)
                continue
            if chunk and size + words.num_rows > MAX_WORDS:
                yield chunk
                chunk, size = [], 0
            chunk.append((file, transcript_id, content, words))
            size += words.num_rows
        if chunk:
            yield chunk

    def _merge(self, catalogue: _Catalogue, group: list[str], put: Callable[[pa.Table], str]) -> None:
        by_segment: dict[str, list[_Document]] = {name: [] for name in group}
        for document in catalogue.documents.values():
            if document.segment in by_segment:
                by_segment[document.segment].append(document)
        parts, moved = [], []
        for name, documents in by_segment.items():
            segment = self._segment(name, catalogue)
            documents.sort(key=lambda d: d.place)
            parts.append((segment, np.isin(np.arange(len(segment.ids)), [d.place for d in documents])))
            moved += documents
            del catalogue.segments[name]
        if not moved:
            return
        table = merge(parts)
        merged = put(table)
        for place, document in enumerate(moved):
            document.segment, document.place = merged, place
        catalogue.segments[merged] = [len(table["word_form"].chunk(0).values), len(moved)]

    def _save(self, table: pa.Table) -> str:
        buffer = pa.BufferOutputStream()
        write(table, buffer)
        whole = memoryview(buffer.getvalue())
        name = f"{zlib.crc32(whole):08x}-{secrets.token_hex(4)}.arrow"

        def put(file: IO[bytes]) -> None:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())  # a file of the right length with holes could not be told from a whole one

        write_atomic(self._folder / name, put, durable=False)
        return name

    def _keep(self, table: pa.Table) -> str:
        name = f"{_IN_MEMORY}{secrets.token_hex(8)}"
        self._open[name] = Segment(table)
        return name

    def _write(self, catalogue: _Catalogue) -> None:
        catalogue.files = {
            name: catalogue.files.get(name) or _stamp(self._folder / name) for name in catalogue.segments
        }
        documents = {name: [d.segment, d.place, d.stamp, d.content] for name, d in catalogue.documents.items()}
        whole = orjson.dumps(
            {"format": FORMAT, "segments": catalogue.segments, "files": catalogue.files, "documents": documents}
        )
        write_atomic(self._folder / "catalogue.json", lambda file: file.write(whole), durable=False)

    def _sweep(self, catalogue: _Catalogue) -> None:
        """Remove what the catalogue does not name; whoever holds the turn is the only one that writes."""
        for path in self._folder.iterdir():
            if path.name not in catalogue.segments and path.suffix in (".arrow", ".tmp"):
                with contextlib.suppress(OSError):  # Windows removes no file that is mapped
                    path.unlink()


def _stamp(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_mtime_ns, stat.st_size, stat.st_ino]


def _stamps(catalogue: _Catalogue) -> dict[str, list[int]]:
    return {name: document.stamp for name, document in catalogue.documents.items()}


def _to_merge(catalogue: _Catalogue) -> list[str]:
    """Segments that should become one: one that is dead for the most part, or many of about one size."""
    live = Counter(document.segment for document in catalogue.documents.values())
    tiers: dict[int, list[str]] = {}
    for name, (words, documents) in sorted(catalogue.segments.items(), key=lambda item: item[1]):
        if 2 * live[name] < documents:
            return [name]
        tiers.setdefault(_tier(words), []).append(name)
    for group in tiers.values():
        totals = accumulate(catalogue.segments[name][0] for name in group)
        fitting = [name for name, total in zip(group, totals, strict=True) if total <= MAX_WORDS]
        if len(group) >= FAN and len(fitting) > 1:
            return fitting
    return []


def _tier(words: int) -> int:
    tier = 0
    while words > _LEAST_TIER * FAN**tier:
        tier += 1
    return tier


def _view(catalogue: _Catalogue, opened: dict[str, Segment]) -> View:
    names = list(catalogue.segments)
    documents = [(opened[d.segment].ids[d.place].as_py(), d.segment, d.place) for d in catalogue.documents.values()]
    documents.sort()
    ranks = {name: np.full(len(opened[name].ids), -1) for name in names}
    for rank, (_, name, place) in enumerate(documents):
        ranks[name][place] = rank
    ids: Any = pa.array([transcript_id for transcript_id, _, _ in documents], pa.string())
    return View(tuple(opened[name] for name in names), tuple(ranks[name] for name in names), ids)
