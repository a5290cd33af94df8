"""One part of a corpus, its manifest, and the files of a new part under hidden names until they are published."""

from __future__ import annotations

import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

import msgspec
import orjson
import pyarrow as pa

from voxframe._files import acquire_lock, in_threads, release_lock
from voxframe.corpus.part_files import TableFile, TableLayout
from voxframe.corpus.store import Stored, View
from voxframe.frames import as_table
from voxframe.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from voxframe.corpus.parts import Parts

_AT_ONCE = 3  # files that are encoded and flushed to the disk at the same time; more threads only wait for each other


class PartReplacedError(Exception):
    """A part was changed by another process while it was read."""


class PartDamagedError(Exception):
    """A file of a part is missing or damaged."""

    def __init__(self, part: Part, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")
        self.part, self.path = part, path


class Texts(Sequence[str]):
    """A list of texts as JSON, parsed on use.

    Access by position keeps the parsed list; iteration does not.

    Args:
        json: The texts as JSON. Some may be null.
    """

    def __init__(self, json: bytes) -> None:
        self.json = json

    @cached_property
    def _texts(self) -> list[Any]:
        return list(iter(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(msgspec.json.decode(self.json, type=list[str | None]))

    def __getitem__(self, place: Any) -> Any:
        return self._texts[place]

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True, eq=False)
class Part:
    """One version of a part.

    Attributes:
        name: Stem of its files.
        view: Kind of response that its tables are made from.
        schema: Version of the data dictionary.
        is_open: True if transcripts may be added.
        ids: Its transcripts by position; None for a removed one.
        sources: For each transcript, the hash of the payloads that its rows are made from.
        stamps: For each transcript, the size and time of these files.
        statuses: For each transcript, its status.
        files: Description of the file of each table.
        moves: Hidden names of new files by table, None for a table that is removed, while the change is under way.
        retired: Names of parts that this one replaces.
    """

    name: str
    view: View
    schema: str = SCHEMA_VERSION
    is_open: bool = False
    ids: Sequence[str | None] = ()
    sources: Sequence[str] = ()
    stamps: Sequence[str] = ()
    statuses: tuple[str | None, ...] = ()
    files: Mapping[str, TableLayout] = field(default_factory=dict)
    moves: Mapping[str, str | None] = field(default_factory=dict)
    retired: tuple[str, ...] = ()

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each transcript."""
        return {transcript_id: place for place, transcript_id in enumerate(self.ids) if transcript_id is not None}

    @cached_property
    def count(self) -> int:
        """Number of transcripts."""
        return sum(transcript_id is not None for transcript_id in self.ids)

    def to_json(self) -> bytes:
        """Return the manifest: a line of JSON, and its CRC-32."""
        files = {name: [layout.checksum, orjson.Fragment(layout.text)] for name, layout in self.files.items()}
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        line = orjson.dumps(own | {"files": files}, lambda texts: orjson.Fragment(texts.json))
        return line + b"\n%d" % zlib.crc32(line)

    def source(self, transcript_id: str) -> str:
        """Return the hash of the payloads that the rows of a transcript are made from."""
        source: str = self.sources[self.places[transcript_id]]
        return source

    def stamp(self, transcript_id: str) -> str:
        """Return the size and time of the files of these payloads."""
        stamp: str = self.stamps[self.places[transcript_id]]
        return stamp

    def status(self, transcript_id: str) -> str | None:
        """Return the status of a transcript."""
        return self.statuses[self.places[transcript_id]]

    @classmethod
    def from_json(cls, raw: bytes) -> Part:
        """Return the part of a manifest.

        Raises:
            ValueError: The manifest is damaged, or from another version.
        """
        line, _, checksum = raw.partition(b"\n")
        if checksum != b"%d" % zlib.crc32(line):
            raise ValueError("the manifest is damaged")
        try:
            found = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            files = msgspec.json.decode(found.pop("files"), type=dict[str, tuple[int, msgspec.Raw]])
            texts = {name: Texts(bytes(found.pop(name))) for name in ("ids", "sources", "stamps")}
            others: dict[str, Any] = {name: msgspec.json.decode(value) for name, value in found.items()}
            others |= texts | {"retired": tuple(others["retired"])}
            others["statuses"] = tuple(status and intern(status) for status in others["statuses"])
            layouts = {name: TableLayout(checksum, bytes(groups)) for name, (checksum, groups) in files.items()}
            return cls(**others, files=layouts)
        except (KeyError, TypeError, msgspec.DecodeError) as e:
            raise ValueError("the manifest has other fields") from e


@dataclass(frozen=True, eq=False)
class NewMember:
    """A transcript to be added: see `Part` for its attributes."""

    transcript_id: str
    source: str
    stamp: str
    status: str | None
    tables: Mapping[str, pa.Table]

    def exact_tables(self) -> dict[str, pa.Table]:
        """Return its tables with exactly the schemas of the data dictionary: text in `tables` may be large strings."""
        return {name: as_table(name, table.columns) for name, table in self.tables.items()}


def new_member(transcript_id: str, tables: Mapping[str, pa.Table]) -> Callable[[Stored], NewMember]:
    """Return a function that returns the tables of a transcript when its payload is stored."""
    status = tables["transcripts"]["status"][0].as_py()
    return lambda own: NewMember(transcript_id, own.content, own.stamp, status, tables)


def _finish(file: TableFile) -> TableLayout:
    layout = file.finish()
    file.close()
    return layout


class PartWriter:
    """A new part, or new transcripts of an open one, as files under hidden names.

    It holds a lock until its files are published or discarded: see `Parts.sweep`.

    Args:
        parts: The parts of the corpus.
        view: Kind of response that its tables are made from.
        base: The open part. None (default): a new part.
    """

    def __init__(self, parts: Parts, view: View, base: Part | None = None) -> None:
        name = f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(4)}"
        self.part = replace(base, moves={}, retired=()) if base else Part(name, view)
        self.is_committed = False
        self._parts, self._base = parts, base
        self._files: dict[str, TableFile] = {}
        self._owner = secrets.token_hex(8)
        self._lock = acquire_lock(parts.lock_of(self._owner))

    def add(self, new: NewMember) -> None:
        """Add a transcript."""
        place = self._append(new.transcript_id, new.source, new.stamp, new.status)
        for name, table in new.tables.items():
            if table.num_rows:
                self._file(name).add(place, table)

    def copy(self, part: Part) -> None:
        """Add the transcripts of another part.

        Raises:
            PartReplacedError, PartDamagedError, pa.ArrowException: The part cannot be read.
        """
        places = {
            place: self._append(transcript_id, part.sources[place], part.stamps[place], part.statuses[place])
            for place, transcript_id in enumerate(part.ids)
            if transcript_id is not None
        }
        for name, layout in part.files.items():
            with self._parts.open(name, part) as file:
                for group in range(len(layout.groups)):
                    for place, rows in file.transcripts(group):
                        self._file(name).add(places[place], rows)

    def finish(self) -> None:
        """Close the files, flushed to the disk.

        The files of one transcript are encoded in threads, so that some are encoded while others wait for the disk.
        Those of many transcripts are not: threads take more memory, and other processes use the other cores.
        """
        files = self._files.values()
        is_one = self.part.count - (self._base.count if self._base else 0) == 1
        layouts = in_threads(_finish, files, _AT_ONCE) if is_one else map(_finish, files)
        changed = dict(zip(self._files, layouts, strict=True))
        moves = {name: file.path.name for name, file in self._files.items()}
        self.part = replace(self.part, files={**self.part.files, **changed}, moves=moves)

    def discard(self) -> None:
        """Delete the files, unless the part was committed."""
        if not self.is_committed:
            for file in self._files.values():
                file.discard()
        self.release()

    def release(self) -> None:
        """Release the lock. It may have been released before."""
        lock, self._lock = self._lock, None
        if lock is not None:
            release_lock(lock)

    def _append(self, transcript_id: str, source: str, mark: str, status: str | None) -> int:
        part = self.part
        self.part = replace(
            part,
            ids=(*part.ids, transcript_id),
            sources=(*part.sources, source),
            stamps=(*part.stamps, mark),
            statuses=(*part.statuses, status),
        )
        return len(part.statuses)

    def _file(self, name: str) -> TableFile:
        if name not in self._files:
            self._files[name] = self._parts.new_file(name, self.part, self._base, owner=self._owner)
        return self._files[name]
