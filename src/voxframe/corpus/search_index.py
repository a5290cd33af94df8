"""The search index of a corpus: segments on the disk, and a catalogue of what is in them.

    <corpus>/search/catalogue.json     which segments there are; of each transcript its segment and what it was made of
             search/<sum>-<any>.arrow  segments, never changed once written; their checksum is in their name

It is derived from the tables and can be removed at any time. A search first brings it up to date: the transcripts that
are new or were replaced since go into a new segment, and the catalogue is replaced in one step. Small segments are
merged now and then, by a thread that nobody waits for. A reader that holds an older catalogue goes on with the segments
of that, which stay mapped. Where the directory cannot be written, what is missing is indexed in memory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from voxframe.corpus import search_catalogue
from voxframe.corpus.search_catalogue import Catalogue, Document, Listing
from voxframe.corpus.search_segment import FORMAT, Segment, build, merge, words_of, write
from voxframe.corpus.search_view import View, view_of
from voxframe.corpus.store import Store, stamp, write_atomic
from voxframe.corpus.turns import turn
from voxframe.errors import CorpusError, CorpusWarning, PayloadError, PayloadWarning

_IN_MEMORY = "memory "
_RACY_NS = 2_000_000_000  # a folder changed so short a time ago may change once more and keep its time of change
_MERGED = ".merged"  # behind the name of a segment that is not in the catalogue yet
_LEFTOVER_AGE_S = 3600.0


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
        self._catalogue = Catalogue()
        self._known: tuple[str, Catalogue] | None = None  # the catalogue on the disk, and its file's stamp
        self._tidying: threading.Thread | None = None
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
                self._tidy_later()
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
            self._known = None
            for path in self._folder.glob(f"*{_MERGED}"):  # it may be in there, too
                path.unlink(missing_ok=True)
            try:
                self._merge(catalogue, [document.segment], self._save)
            except (FileNotFoundError, pa.ArrowInvalid):  # gone or damaged: no part of it is worth keeping
                self._folder.joinpath(document.segment).unlink(missing_ok=True)
                self._discard()
                return
            self._finish(catalogue)

    def wait(self) -> None:
        """Wait until no segments are being merged."""
        if self._tidying is not None:
            self._tidying.join()

    def _tidy_later(self) -> None:
        """Merge in a thread of its own what should be merged, so that whoever adds or searches never waits for it."""
        idle = self._tidying is None or not self._tidying.is_alive()
        if idle and not self._is_in_memory and self._catalogue.to_merge():
            self._tidying = threading.Thread(target=self._tidy, name="voxframe search index")
            with contextlib.suppress(RuntimeError):  # the interpreter is about to end
                self._tidying.start()

    @property
    def _is_in_memory(self) -> bool:
        return any(name.startswith(_IN_MEMORY) for name in self._catalogue.segments)

    def _current(self) -> View:
        for attempt in range(5):
            try:
                catalogue = self._read()
                listing = self._store.listing()
                if catalogue is None or catalogue.stamps() != listing:
                    catalogue = self._update(catalogue, listing)
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
            return view_of(catalogue, opened)
        raise CorpusError(f"the search index {self._folder} changes all the time; remove that folder and search again")

    def _segment(self, name: str, catalogue: Catalogue) -> Segment:
        """A segment, once its file is known to be whole: numbers in it are used as addresses in memory."""
        if name in self._open:
            return self._open[name]
        path = self._folder / name
        if catalogue.files.get(name) != _stamp(path) and name[:8] != f"{zlib.crc32(path.read_bytes()):08x}":
            raise pa.ArrowInvalid(f"{name} is not as it was written")
        catalogue.files[name] = _stamp(path)  # of a copied index it is another one
        return Segment.open(path)

    def _read(self) -> Catalogue | None:
        """The catalogue on the disk, the same object while the file is; None where there is none that can be used."""
        path = self._folder / "catalogue.json"
        try:
            now = _stamp(path)
            if self._known is None or self._known[0] != now:
                found = orjson.loads(path.read_bytes())
                if found["format"] != FORMAT:
                    return None
                self._known = now, Catalogue.from_json(found)
            return self._known[1]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _discard(self) -> None:
        """A segment is damaged or gone: have the whole index made again."""
        with contextlib.suppress(OSError):
            (self._folder / "catalogue.json").unlink()

    def _update(self, seen: Catalogue | None, listing: Listing) -> Catalogue:
        """Index what is missing, for all processes where that is possible.

        Args:
            seen: The catalogue as it was before `listing` was made.
            listing: What there is.
        """
        if not listing and not self._folder.exists():
            return Catalogue()  # a corpus that does not exist is not made by looking into it
        try:
            with turn(self._folder / ".lock"):
                catalogue = self._read()
                if catalogue is not seen:  # another process has been here, and may know of more
                    listing = self._store.listing()
                catalogue, self._known = catalogue or Catalogue(), None  # it is none of the disk until it is written
                for _ in self._steps(catalogue, listing, self._save):
                    self._write(catalogue)
                self._finish(catalogue)
                return catalogue
        except FileNotFoundError:
            raise
        except OSError:  # a read-only or full disk
            catalogue = self._catalogue if self._is_in_memory else self._read() or Catalogue()
            self._known = None
            for _ in self._steps(catalogue, listing, self._keep):
                pass
            while group := catalogue.to_merge():
                self._merge(catalogue, group, self._keep)
            return catalogue

    def _steps(self, catalogue: Catalogue, listing: Listing, put: Callable[[pa.Table], str]) -> Iterator[None]:
        """Bring a catalogue up to date; between two steps it can be saved."""
        for name in catalogue.documents.keys() - listing.keys():
            del catalogue.documents[name]
        for n, chunk in enumerate(self._missing(catalogue, listing)):
            if n:
                yield
            name = put(build({transcript_id: words for _, transcript_id, _, words in chunk}))
            catalogue.segments[name] = [sum(words.num_rows for *_, words in chunk), len(chunk)]
            for place, (file, _, content, _) in enumerate(chunk):
                catalogue.documents[file] = Document(name, place, listing[file], content)
        catalogue.drop_dead()

    def _missing(self, catalogue: Catalogue, listing: Listing) -> Iterator[list[tuple[str, str, str, pa.Table]]]:
        """New and replaced transcripts as file name, identifier, content and words, as many as a segment may hold."""
        chunk: list[tuple[str, str, str, pa.Table]] = []
        size = 0
        for file in sorted(listing):  # so that a segment holds transcripts that are listed together
            known = catalogue.documents.get(file)
            if known and known.stamp == listing[file]:
                continue
            try:
                transcript_id = self._store.id_of(file)
                content = self._store.content(transcript_id, "transcript") or ""
                if known and known.content == content:  # copied or touched
                    known.stamp = listing[file]
                    continue
                words = self._words(transcript_id)
            except (CorpusError, PayloadError) as e:
                catalogue.documents.pop(file, None)
                warnings.warn(f"not searched: {e}", PayloadWarning, stacklevel=2)
                continue
            if chunk and size + words.num_rows > search_catalogue.MAX_WORDS:
                yield chunk
                chunk, size = [], 0
            chunk.append((file, transcript_id, content, words))
            size += words.num_rows
        if chunk:
            yield chunk

    def _merge(self, catalogue: Catalogue, group: Sequence[str], put: Callable[[pa.Table], str]) -> None:
        places = catalogue.live(group)
        table = merge(self._parts(catalogue, places))
        catalogue.replace(places, put(table) if any(places.values()) else "", words_of(table))

    def _tidy(self) -> None:
        """Merge what should be merged, beside everything else that goes on."""
        with contextlib.suppress(OSError, pa.ArrowException):  # removed, damaged, full: the next search sees to it
            while self._merge_once():
                pass

    def _merge_once(self) -> bool:
        """Make one segment of several. Segments never change, so nobody has to wait until it is in the catalogue."""
        with self._mutex:
            catalogue = self._read()
            places = catalogue.live(catalogue.to_merge()) if catalogue else {}
            parts = self._parts(catalogue, places) if catalogue else []
        if not parts:
            return False
        table = merge(parts)
        path = self._folder / f"{self._save(table, _MERGED)}{_MERGED}"
        try:
            while not self._put_in_place(path, places, words_of(table)):
                time.sleep(0.05)  # another process is at it; meanwhile this one can be searched
        finally:
            path.unlink(missing_ok=True)
        return True

    def _put_in_place(self, path: Path, merged: Mapping[str, Sequence[int]], words: int) -> bool:
        with self._mutex, turn(self._folder / ".lock", wait=False) as held:
            catalogue = self._read()
            if held and catalogue and merged.keys() <= catalogue.segments.keys():  # else another process was quicker
                self._known = None
                path.rename(path.with_suffix(""))
                catalogue.replace(merged, path.stem, words)
                self._finish(catalogue)
                self._open = {name: self._segment(name, catalogue) for name in catalogue.segments}
                self._catalogue, self._view = catalogue, view_of(catalogue, self._open)
            return held

    def _parts(
        self, catalogue: Catalogue, places: Mapping[str, Sequence[int]]
    ) -> list[tuple[Segment, npt.NDArray[np.bool_]]]:
        opened = {name: self._segment(name, catalogue) for name in places}
        return [(opened[name], np.isin(np.arange(len(opened[name].ids)), places[name])) for name in places]

    def _save(self, table: pa.Table, suffix: str = "") -> str:
        """Write a segment; its name, to which the suffix is not counted."""
        buffer = pa.BufferOutputStream()
        write(table, buffer)
        whole = memoryview(buffer.getvalue())
        name = f"{zlib.crc32(whole):08x}-{secrets.token_hex(4)}.arrow"

        def put(file: IO[bytes]) -> None:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())  # a file of the right length with holes could not be told from a whole one

        write_atomic(self._folder / f"{name}{suffix}", put, durable=False)
        return name

    def _keep(self, table: pa.Table) -> str:
        name = f"{_IN_MEMORY}{secrets.token_hex(8)}"
        self._open[name] = Segment(table)
        return name

    def _write(self, catalogue: Catalogue) -> None:
        catalogue.files = {
            name: catalogue.files.get(name) or _stamp(self._folder / name) for name in catalogue.segments
        }
        whole = orjson.dumps({"format": FORMAT, **catalogue.as_json()})
        write_atomic(self._folder / "catalogue.json", lambda file: file.write(whole), durable=False)

    def _finish(self, catalogue: Catalogue) -> None:
        """Save a catalogue as the one on the disk, and remove what it does not name."""
        self._write(catalogue)
        self._known = _stamp(self._folder / "catalogue.json"), catalogue
        self._sweep(catalogue)

    def _sweep(self, catalogue: Catalogue) -> None:
        """Remove what the catalogue does not name; whoever holds the turn is the only one that writes."""
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):  # Windows removes no file that is mapped
                if path.name not in catalogue.segments and (path.suffix in (".arrow", ".tmp") or _is_left(path)):
                    path.unlink()


def _stamp(path: Path) -> str:
    return stamp(path.stat())


def _is_left(path: Path) -> bool:
    """Whether a merged segment will never be put into the catalogue: whoever made it has died since."""
    return path.suffix == _MERGED and time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S
