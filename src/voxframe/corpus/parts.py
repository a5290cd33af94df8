"""Parts of a corpus: the tables of hundreds of transcripts each, as plain Parquet files.

    <corpus>/tables/<table>/<part>.parquet    rows of the part's transcripts; no file if there are none
             parts/<part>.json                manifest: its transcripts, and the row groups of its files
             parts/<part>.next                the next manifest, while files are being renamed
             parts/.<part>.<writer>.<x>.tmp   unfinished files, outside the folders that other programs read

A program that lists `tables/<table>/*.parquet` and then reads the files sees a transcript at most once, also beside
writers and after kills. A transcript is in at most one part. These rules hold for every change, which is made under a
lock:

1. A file is replaced by one rename, and its successor holds no transcript that was in another file since this name
   exists. New transcripts are therefore added to an open part only. Removing a transcript from a part closes all open
   parts, so that it can only come back in a part with a new name.
2. Parts are merged, or a transcript moves, by removing the old rows before a new name with these rows appears.

Suppose that a program reads a transcript in two files X and Y, and that X held it first. It was removed from X before
it was in Y, and Y has a name from after the removal. The program listed Y, so it opened X after Y had appeared, and X
did not hold the transcript then. A file that was removed in between is an error in that program, never a wrong answer.

A change is committed when `<part>.next` is written; all its files exist under hidden names by then. If its process
dies, whoever reads or changes the parts next completes it. A file is read only if the checksum of its footer is that of
the manifest, so that a transcript changes in all tables at once. Everything here can be deleted: it is rebuilt from the
raw payloads.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voxframe._files import file_lock, hidden_path, put_in_place, stamp, sync, write_atomic
from voxframe.corpus.part import NewMember, Part, PartDamagedError, PartReplacedError, PartWriter
from voxframe.corpus.part_files import OpenTable, TableFile
from voxframe.corpus.store import View, check_writable
from voxframe.schema import SCHEMA_VERSION

#: Most transcripts of a part that is made from payloads, and of a part that transcripts are added to one by one.
LARGEST, OPEN = 512, 8
#: Parts are merged when there are this many of about the same size, and each has fewer transcripts than `_FULL`.
_FAN, _FULL = 8, 384


class _Manifest:
    """A manifest that was read, with its part until it is released.

    Args:
        mark: Stamp of its file.
        part: Its part.
    """

    __slots__ = ("_hashes", "_held", "_part", "is_open", "mark", "name", "retired", "schema", "view")

    def __init__(self, mark: str, part: Part) -> None:
        self.mark, self.name, self.view, self.schema = mark, part.name, part.view, part.schema
        self.is_open, self.retired = part.is_open, part.retired
        self._hashes: npt.NDArray[np.uint32] | None = None
        self.hold(part)

    @property
    def part(self) -> Part | None:
        """The part. None if it was released, and nobody else has it."""
        return self._part()

    @property
    def count(self) -> int:
        """Number of transcripts."""
        return len(self._known_hashes())

    def may_have(self, hashes: npt.NDArray[np.uint32]) -> bool:
        """Return False if the part has no transcript whose id has one of these hashes."""
        own = self._known_hashes()
        return bool(len(own) and (own.take(own.searchsorted(hashes), mode="clip") == hashes).any())

    def hold(self, part: Part) -> None:
        """Keep the part in memory."""
        self._held: Part | None = part
        self._part = weakref.ref(part)

    def release(self) -> None:
        """Keep four bytes for each transcript instead of the part."""
        if self._held is not None:
            self._known_hashes()
            self._held = None

    def _known_hashes(self) -> npt.NDArray[np.uint32]:
        """Return the hashes of the ids, sorted."""
        if self._hashes is None:
            assert self._held is not None
            self._hashes = np.sort(_hashes(self._held.ids))
        return self._hashes


def _hashes(ids: Iterable[str | None]) -> npt.NDArray[np.uint32]:
    return np.array([zlib.crc32(i.encode()) for i in ids if i is not None], np.uint32)


class Parts:
    """The parts of a corpus. Threads and processes may share them."""

    def __init__(self, root: Path, tables: Collection[str]) -> None:
        self.root = root
        self.tables = tables
        self._folder = root / "parts"
        self._mutex = threading.RLock()
        self._seen: dict[str, _Manifest] = {}
        self._members: dict[str, dict[str, Part]] = {}
        self._indexed: set[Part] = set()
        self._is_held = False
        self._ignored: dict[str, str] = {}
        self._has_strays = False

    def path(self, name: str, part: Part) -> Path:
        """Return the path of the file of a table."""
        return Path(f"{self.root}/tables/{name}/{part.name}.parquet")

    def lock_of(self, owner: str) -> Path:
        """Return the path of the lock that a writer holds as long as it has unfinished files."""
        return self.root / ".locks" / f"writer-{owner}"

    def new_file(
        self, name: str, part: Part, base: Part | None, dropped: Sequence[int] = (), owner: str = "change"
    ) -> TableFile:
        """Create an unfinished file of a part. Programs that read a folder of tables do not find it.

        Args:
            name: Name of the table.
            part: The part.
            base: The version of the part that it continues. None: there is none.
            dropped: Row groups to leave out, by position.
            owner: The writer that holds `lock_of(owner)`, if it works without the lock for changes.

        Raises:
            PartDamagedError: The file to continue is missing or damaged.
        """
        path = hidden_path(self._folder / f"{part.name}.{owner}")
        if base is None or name not in base.files:
            return TableFile(path, name)
        before = self.path(name, base)
        try:
            return TableFile(path, name, before, base.files[name], dropped)
        except (FileNotFoundError, ValueError) as error:
            raise PartDamagedError(base, before, str(error)) from None

    def members(self, view: str) -> Mapping[str, Part]:
        """Return the part of each transcript that is in one, by id."""
        with self._mutex:
            now = [part for part in self.all() if part.schema == SCHEMA_VERSION]
            for part in self._indexed.difference(now):
                members = self._members[part.view]
                for transcript_id in part.places:
                    if members.get(transcript_id) is part:
                        del members[transcript_id]
            for part in [part for part in now if part not in self._indexed]:
                self._members.setdefault(part.view, {}).update(dict.fromkeys(part.places, part))
            self._indexed = {*now}
            return self._members.get(view, {})

    def find(self, view: str, ids: Iterable[str | None]) -> dict[Part, set[str]]:
        """Return which of some transcripts are in each part. Unlike `members`, it builds no index of all of them."""
        wanted = {i for i in ids if i is not None}
        hashes = _hashes(wanted)
        here = self._loaded(
            lambda: [
                one
                for one in self._seen.values()
                if wanted and one.view == view and one.schema == SCHEMA_VERSION and one.may_have(hashes)
            ]
        )
        return {part: found for part in here if (found := wanted.intersection(part.ids))}

    def all(self) -> list[Part]:
        """Return the parts, oldest first."""
        return self._loaded(lambda: [*self._seen.values()])

    def release(self) -> None:
        """Free most of the memory of the parts that are not in use. They are read again when they are needed."""
        with self._mutex:
            for manifest in self._seen.values():
                manifest.release()

    def _loaded(self, chosen: Callable[[], Iterable[_Manifest]]) -> list[Part]:
        with self._mutex:
            while True:
                try:
                    return [self._part(manifest) for manifest in chosen()]
                except PartReplacedError:
                    self.refresh()
                    if self._is_held and self._has_strays:
                        self.sweep()

    def _part(self, manifest: _Manifest) -> Part:
        """Return the part of a manifest; read it again if it was released.

        Raises:
            PartReplacedError: Another process has changed the part, or its manifest is damaged.
        """
        if (part := manifest.part) is not None:
            return part
        is_there = False
        for kind in ("json", "next"):
            with contextlib.suppress(FileNotFoundError), (self._folder / f"{manifest.name}.{kind}").open("rb") as file:
                is_there = True
                if stamp(os.fstat(file.fileno())) == manifest.mark:
                    with contextlib.suppress(ValueError):
                        part = Part.from_json(file.read())
                        manifest.hold(part)
                        return part
        if is_there:  # `refresh` reads it again, whatever its stamp is
            del self._seen[manifest.name]
        raise PartReplacedError

    def refresh(self) -> None:
        """Read the manifests that have changed, and complete a change of a process that died."""
        with self._mutex:
            found: dict[str, _Manifest] = {}
            is_changing = False
            with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):  # .json before .next
                    name, _, kind = entry.name.partition(".")
                    if not name or kind not in ("json", "next"):
                        continue
                    is_changing |= kind == "next"
                    with contextlib.suppress(FileNotFoundError):
                        mark = stamp(os.stat(entry.path))  # noqa: PTH116  fast; entry.stat() has no inode on Windows
                        if self._ignored.get(name) == mark:
                            continue
                        known = self._seen.get(name)
                        if known is not None and known.mark == mark:
                            found[name] = known
                            continue
                        try:
                            found[name] = _Manifest(mark, Part.from_json(Path(entry.path).read_bytes()))
                        except ValueError:
                            self._has_strays = True
            retired = {name for manifest in found.values() for name in manifest.retired}
            for name in retired:
                found.pop(name, None)
            self._has_strays |= not self._seen.keys() <= found.keys() | retired | self._ignored.keys()
            self._seen = found
            if is_changing and not self._is_held:
                with contextlib.suppress(OSError), self.writing(wait=False):
                    pass  # other programs that read the files see the change, too

    def open(self, name: str, part: Part) -> OpenTable:
        """Open the file of a table.

        Raises:
            PartReplacedError: Another process has changed the part.
            PartDamagedError: The file is missing or damaged.
        """
        layout, path = part.files[name], self.path(name, part)
        reason = "it is missing"
        for place in (path, self._folder / (part.moves.get(name) or path.name)):
            try:
                return OpenTable(place, layout)
            except FileNotFoundError:
                continue
            except (ValueError, OSError) as e:
                reason = str(e)
        try:
            with self.writing():  # waits for a change in progress, and completes one of a process that died
                pass
        except OSError:
            time.sleep(0.05)
            self.refresh()
        known = self._seen.get(part.name)
        if known is not None and known.part is part:
            raise PartDamagedError(part, path, reason)
        raise PartReplacedError

    @contextlib.contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock for changes, after completing an interrupted one.

        Args:
            wait: Wait until the lock is free. False: yield False if another process holds it.

        Raises:
            OSError: The directory cannot be written.
        """
        with self._mutex:
            if self._is_held:
                yield True
                return
            check_writable(self.root)
            with file_lock(self.root / ".locks" / "tables", wait=wait) as is_free:
                if not is_free:
                    yield False
                    return
                self._is_held = True
                try:
                    for path in self._folder.glob("*.next"):
                        try:
                            part = Part.from_json(path.read_bytes())
                        except ValueError:
                            path.unlink()  # what it would have changed is made again from the payloads
                            self._has_strays = True
                        else:
                            self._complete(part)
                    self.refresh()
                    if self._has_strays:
                        self.sweep()
                    yield True
                finally:
                    self._is_held = False

    def add(self, view: View, new: NewMember) -> None:
        """Add one transcript, or replace it.

        Raises:
            OSError: The directory cannot be written.
            PartDamagedError: The open part is damaged.
        """
        with self.writing():
            known = self.find(view, [new.transcript_id])
            if any(part.source(new.transcript_id) == new.source for part in known):
                return
            if known:
                self.drop(known)
            elif self._ignored:  # it may be in a damaged part
                self._close_open()
            base = next((part for part in self._open() if part.view == view), None)
            writer = PartWriter(self, view, base)
            try:
                writer.add(new)
                writer.finish()
                writer.is_committed = True
                self._commit(replace(writer.part, is_open=writer.part.count < OPEN))
            finally:
                writer.discard()

    def publish(self, writer: PartWriter, retired: Collection[Part] = ()) -> bool:
        """Add a finished part.

        Args:
            writer: The part.
            retired: Parts with the same transcripts, which it replaces.

        Returns:
            False if a part to be replaced has changed; nothing was done then.
        """
        with self.writing():
            known = [self._seen.get(part.name) for part in retired]
            if any(one is None or one.part is not part for one, part in zip(known, retired, strict=True)):
                return False
            here = self.find(writer.part.view, writer.part.ids)
            self.drop({part: ids for part, ids in here.items() if part not in retired})
            writer.is_committed = True
            self._commit(replace(writer.part, retired=tuple(part.name for part in retired)))
            writer.release()
            self.release()
            return True

    def drop(self, members: Mapping[Part, Collection[str]]) -> None:
        """Remove transcripts from their parts, physically. The lock is held.

        Args:
            members: Ids of transcripts by part.
        """
        for part, ids in members.items():
            if part.count == len(ids):
                self.discard(part)
                continue
            try:
                self._commit(self._without(part, {part.places[transcript_id] for transcript_id in ids}))
            except (PartDamagedError, PartReplacedError, pa.ArrowException, OSError):
                self.discard(part)
        if members:
            self._close_open()

    def _close_open(self) -> None:
        """Add no transcripts to the parts that are open now."""
        for part in self._open():
            self._commit(replace(part, is_open=False, moves={}, retired=()))

    def _open(self) -> list[Part]:
        """Return the parts that transcripts may be added to."""
        return self._loaded(lambda: [one for one in self._seen.values() if one.is_open])

    def discard(self, part: Part) -> None:
        """Delete a part: its files first. The lock is held. Its transcripts must be added again."""
        self._delete(part.name)
        self.refresh()

    def _delete(self, part_name: str) -> None:
        for name in self.tables:
            (self.root / "tables" / name / f"{part_name}.parquet").unlink(missing_ok=True)
        (self._folder / f"{part_name}.json").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete files that belong to no part of this version, and unfinished files. The lock is held.

        An unfinished file belongs to a writer if the lock that it names is held. All others have been put in place, or
        are left from a process that died.
        """
        held: dict[str, bool] = {}
        for path in self._folder.glob(".*.tmp"):
            owner = path.name.split(".")[2]
            if owner not in held:
                with file_lock(self.lock_of(owner), wait=False) as is_free:
                    held[owner] = not is_free
            if not held[owner]:
                path.unlink(missing_ok=True)
        others = self._loaded(lambda: [one for one in self._seen.values() if one.schema != SCHEMA_VERSION])
        for part in others:
            self.discard(part)
        is_changed = bool(others)
        files = {part.name: part.files for part in self.all()}
        for path in self._folder.glob("[!_.]*.json"):
            if path.stem not in self._ignored and path.stem not in self._seen:  # a damaged manifest
                path.unlink(missing_ok=True)
        for name in self.tables:
            for path in (self.root / "tables" / name).glob("[!_.]*.parquet"):
                if path.stem not in self._ignored and name not in files.get(path.stem, ()):
                    path.unlink(missing_ok=True)
                    is_changed = True
        self._has_strays = False
        if is_changed:
            self._close_open()

    def forget(self, part: Part) -> None:
        """Treat a damaged part as absent. The next change deletes it."""
        with self._mutex:
            if part.name in self._seen:
                self._ignored[part.name] = self._seen[part.name].mark
            self.refresh()

    def has_to_merge(self) -> bool:
        """Return True if parts should be merged, as far as this process has seen them."""
        with self._mutex:
            return bool(self._to_merge())

    def merge(self) -> None:
        """Merge small parts until there are few; see `to_merge`."""
        self.refresh()
        while group := self._loaded(self._to_merge):
            writer = PartWriter(self, group[0].view)
            try:
                for part in group:
                    writer.copy(part)
                writer.finish()
                if not self.publish(writer, group):
                    writer.discard()
                    return
            except (PartDamagedError, PartReplacedError, pa.ArrowException):
                writer.discard()
                return
            except BaseException:
                writer.discard()
                raise

    def _to_merge(self) -> list[_Manifest]:
        closed: dict[str, list[_Manifest]] = {}
        for manifest in self._seen.values():
            if not manifest.is_open and manifest.schema == SCHEMA_VERSION:
                closed.setdefault(manifest.view, []).append(manifest)
        for same in closed.values():
            if group := to_merge([manifest.count for manifest in same]):
                return [same[n] for n in group]
        return []

    def _without(self, part: Part, gone: AbstractSet[int]) -> Part:
        """Return a new version of a part without some transcripts, with its new files under hidden names."""
        files, moves = dict(part.files), dict[str, str | None]()
        made: list[TableFile] = []
        try:
            for name, layout in part.files.items():
                groups = [n for n, group in enumerate(layout.groups) if not gone.isdisjoint(group.members)]
                if not groups:
                    continue
                made.append(file := self.new_file(name, part, part, groups))
                with self.open(name, part) as old:
                    for group in groups:
                        for place, rows in old.transcripts(group):
                            if place not in gone:
                                file.add(place, rows)
                files[name], moves[name] = file.finish(), file.path.name
                file.close()
                if not files[name].groups:
                    del files[name]
                    moves[name] = None
                    file.discard()
        except BaseException:
            for file in made:
                file.discard()
            raise
        ids = tuple(None if place in gone else i for place, i in enumerate(part.ids))
        blank = tuple("" if place in gone else source for place, source in enumerate(part.sources))
        return replace(part, ids=ids, sources=blank, files=files, moves=moves, retired=(), is_open=False)

    def _commit(self, part: Part) -> None:
        damaged = [name for name, mark in self._ignored.items() if self._mark(name) == mark]
        part = replace(part, retired=(*part.retired, *damaged))
        change = self._folder / f"{part.name}.next"
        try:
            write_atomic(change, part.to_json())
        except BaseException:
            if not change.exists():  # else Ctrl-C came after the change was committed
                for hidden in filter(None, part.moves.values()):
                    (self._folder / hidden).unlink(missing_ok=True)
            raise
        self._ignored = {}
        self._complete(part)
        self.refresh()

    def _mark(self, part_name: str) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return stamp((self._folder / f"{part_name}.json").stat())
        return None

    def _complete(self, part: Part) -> None:
        """Put the files of a committed change in place, durably. It may have been done in part before."""
        changed = []
        for name in [name for name in self.tables if part.retired or name in part.moves]:
            place, hidden = self.root / "tables" / name, part.moves.get(name)
            gone = [*part.retired, *([part.name] if name in part.moves and hidden is None else [])]
            is_changed = sum(_unlink(place / f"{stem}.parquet") for stem in gone) > 0
            if hidden is not None:
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / hidden).replace(self.path(name, part))
                is_changed = True
            if is_changed:
                changed.append(place)
        for place in changed:  # the first one often flushes all, so threads would take longer
            sync(place)
        for retired in part.retired:
            _unlink(self._folder / f"{retired}.json")
        put_in_place(self._folder / f"{part.name}.next", self._folder / f"{part.name}.json")


def _unlink(path: Path) -> bool:
    """Delete a file. Return False if there is none."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def to_merge(counts: Sequence[int]) -> list[int]:
    """Return which parts to merge, given their numbers of transcripts: the smallest ones of a size with 8 parts.

    The sizes are 1 to 8 transcripts, 9 to 64, and 65 to 383. Together, the chosen parts have just `LARGEST` transcripts
    or more, or they are all of their size.

    - At most 21 parts with fewer than 384 transcripts are left, 7 of each size. So n transcripts are in at most
      n / 384 + 21 parts and an open one, whatever the sizes of the adds: 282 for 100,000.
    - Merged parts have fewer than 512 + 383 transcripts.
    - Each transcript is merged at most 4 times. Eight parts of the first size have 8 transcripts only if each has one,
      and 15 or more the next time; eight of the second size have 72 or more; eight of the third, 520 or more.
    - A part with `LARGEST` transcripts is merged again only after a quarter of them was removed.
    """
    for low, high in pairwise((0, OPEN, OPEN * _FAN, _FULL - 1)):
        same = sorted((n for n, count in enumerate(counts) if low < count <= high), key=counts.__getitem__)
        if len(same) >= _FAN:
            totals = accumulate(counts[n] for n in same)
            return same[: 1 + sum(total < LARGEST for total in totals)]
    return []
