"""Tables of a corpus as plain Parquet files that never change. The catalog lists them, and which rows they hold.

A part is the tables of up to hundreds of transcripts, a file for each table that has rows: in `tables/` as the service
sent them, in `current/` the rows that replace or complete these, because a transcript was edited or has no sentences.
Files are encoded in memory and written to `.incoming/`; when the catalog has committed them, they are moved into place,
and those that they replace are deleted. If the process dies in between, the next one completes this.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from voxframe._files import in_threads, stamp, sync, write_atomic
from voxframe.corpus.catalog import Catalog, Writing
from voxframe.corpus.store import EXPORTS, Stored, folder, read_file, sweep
from voxframe.errors import CorpusError
from voxframe.frames import as_table
from voxframe.frames.corrected import with_original
from voxframe.frames.tables import with_derived
from voxframe.schema import SCHEMA_VERSION, TABLES, TRANSCRIPT_TABLES

#: Kinds of parts. The last three are in `current/`: rows of edited transcripts, and sentences and paragraphs that were
#: corrected, or made from words.
Kind: TypeAlias = Literal["transcript", "sentences", "paragraphs", "edited", "sentences+", "paragraphs+"]
#: Tables of each kind.
KINDS: Mapping[Kind, tuple[str, ...]] = {
    "transcript": TRANSCRIPT_TABLES,
    "sentences": ("sentences",),
    "paragraphs": ("paragraphs",),
    "edited": ("transcripts", "words", "utterances", "utterance_words", "sentiments"),
    "sentences+": ("sentences",),
    "paragraphs+": ("paragraphs",),
}
#: Most transcripts and rows of a part.
LARGEST, MOST_ROWS = 512, 500_000
#: Parts are merged when there are this many of about the same size, and each has fewer transcripts than `_FULL`.
_FAN, _FULL = 8, 384
#: A row group has a multiple of this many transcripts, and at least this many rows or bytes.
_TRANSCRIPTS, _ROWS, _BYTES = 8, 8192, 4 << 20
#: Text columns with few different values. Statistics of long texts would only make the footer large.
_SHORT = frozenset(
    {"transcript_id", "status", "language_code", "speaker", "channel", "label", "entity_type", "sentiment"}
)
_AT_ONCE = 3  # files that are flushed to the disk at the same time


class PartReplacedError(Exception):
    """A part was replaced by another process while it was read."""


class PartDamagedError(Exception):
    """A file of a part is missing or damaged."""

    def __init__(self, part: int, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")
        self.part, self.path = part, path


class Member(NamedTuple):
    """A transcript of a part: its position there, and what its rows were made from."""

    part: int
    place: int
    source: str  # hash of the payloads, and of the edits if there are any
    stamp: str  # size and time of the files of these payloads
    status: str | None  # of the transcript


class NewMember(NamedTuple):
    """A transcript to be added; see `Member`."""

    transcript_id: str
    source: str
    stamp: str
    status: str | None
    tables: Mapping[str, pa.Table]

    def exact_tables(self) -> dict[str, pa.Table]:
        """Return its tables with exactly the schemas of the data dictionary: text in `tables` may be large strings."""
        return {name: as_table(name, table.columns) for name, table in self.tables.items()}


class RowGroup(NamedTuple):
    """The transcripts of a row group, as their positions in the part, with the number of rows of each."""

    members: tuple[int, ...]
    rows: tuple[int, ...]


class _Layout(NamedTuple):
    """A file of a part: its place, its row groups, and the checksum of both, which begins with theirs."""

    place: str
    seed: int
    crc: int
    groups: list[RowGroup]


def _check(content: bytes, layout: _Layout) -> None:
    if zlib.crc32(content, layout.seed) != layout.crc:
        raise ValueError("its checksum does not match")


def new_member(transcript_id: str, tables: Mapping[str, pa.Table]) -> Callable[[Stored], NewMember]:
    """Return a function that returns the tables of a transcript when its payload is stored."""
    status = tables["transcripts"]["status"][0].as_py()
    return lambda stored: NewMember(transcript_id, stored.content, stored.stamp, status, tables)


def kinds_of(table: str) -> tuple[Kind, Kind | None]:
    """Return the kind of the rows of a table as sent, and of those that replace them."""
    if table in EXPORTS:
        return table, f"{table}+"  # type: ignore[return-value]
    return "transcript", "edited" if table in KINDS["edited"] else None


@cache
def stored_schema(name: str, *, current: bool = False) -> pa.Schema:
    """Return the schema of a stored table: that of the data dictionary, in `current/` with the columns of edits."""
    schema = TABLES[name].arrow
    if current:
        empty = with_original(TABLES[name].empty, name)
        schema = (with_derived(empty, derived=True) if name in EXPORTS else empty).schema
    return schema.with_metadata({**TABLES[name].arrow.metadata, b"voxframe.schema_version": SCHEMA_VERSION.encode()})


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Return the options of Parquet files: small, with statistics, and with checksums that detect flipped bits."""
    integers = [f.name for f in schema if pa.types.is_integer(f.type)]
    texts = [f.name for f in schema if pa.types.is_string(f.type)]
    confidences = [f.name for f in schema if f.name == "confidence" and pa.types.is_floating(f.type)]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [*texts, *confidences],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        "write_statistics": [name for name in schema.names if name not in texts or name in _SHORT],
        "write_page_checksum": True,
        "memory_pool": pa.system_memory_pool(),  # the default pool of pyarrow takes new pages for every row group
    }


@cache
def _stored_options(name: str, current: bool) -> dict[str, Any]:
    """Return the options of the files of a stored table: making them for all tables takes 2 ms."""
    options = parquet_options(stored_schema(name, current=current))
    if name == "transcripts":  # many columns with few rows
        options |= {"compression": "none", "compression_level": None, "use_dictionary": False, "column_encoding": None}
    return options


@cache
def _file_without_rows(name: str) -> bytes:
    """Return a Parquet file with the schema of a stored table: making them for all tables takes 25 ms."""
    buffer = io.BytesIO()
    pq.write_table(stored_schema(name).empty_table(), buffer, **_stored_options(name, False))
    return buffer.getvalue()


class _File:
    """One table of a new part, encoded in memory."""

    def __init__(self, name: str, *, current: bool) -> None:
        self.groups: list[RowGroup] = []
        self.rows = 0
        self._name, self._schema = name, stored_schema(name, current=current)
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, self._schema, **_stored_options(name, current))
        self._members: list[int] = []
        self._counts: list[int] = []
        self._tables: list[pa.Table] = []
        self._last: list[pa.Table] = []
        self._bytes = 0

    def add(self, place: int, table: pa.Table) -> None:
        """Add the rows of one transcript."""
        self._members.append(place)
        self._counts.append(table.num_rows)
        self._last.append(table)
        self.rows += table.num_rows
        if len(self._last) < _TRANSCRIPTS:
            return
        if sum(self._counts) < _ROWS:
            self._tables.append(pa.concat_tables(self._last).combine_chunks())  # a slice would keep its whole payload
            self._last = []
            self._bytes += self._tables[-1].nbytes
            if self._bytes < _BYTES:
                return
        self._flush()

    def finish(self) -> pa.Buffer:
        """Return the file."""
        self._flush()
        self._writer.close()
        return self._sink.getvalue()

    def _flush(self) -> None:
        if self._members:
            table = pa.concat_tables([*self._tables, *self._last])
            if not table.schema.equals(self._schema):
                names = self._schema.names
                table = table.select(names) if table.column_names != names else table
                table = pa.Table.from_arrays(table.cast(self._schema).columns, schema=self._schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
            self.groups.append(RowGroup(tuple(self._members), tuple(self._counts)))
            self._members, self._counts, self._tables, self._last, self._bytes = [], [], [], [], 0


class NewPart:
    """A new part, encoded in memory while transcripts are added."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.stem = f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(4)}"
        self.members: dict[str, Member] = {}
        self._files: dict[str, _File] = {}

    @property
    def is_full(self) -> bool:
        """True if it should get no more transcripts."""
        return len(self.members) >= LARGEST or self.rows >= MOST_ROWS

    @property
    def rows(self) -> int:
        """Number of rows of all tables."""
        return sum(file.rows for file in self._files.values())

    def add(self, new: NewMember) -> None:
        """Add a transcript."""
        place = len(self.members)
        self.members[new.transcript_id] = Member(0, place, new.source, new.stamp, new.status)
        for name, table in new.tables.items():
            if table.num_rows:
                if name not in self._files:
                    self._files[name] = _File(name, current=_is_current(self.kind))
                self._files[name].add(place, table)

    def finish(self) -> dict[str, tuple[list[RowGroup], pa.Buffer]]:
        """Return the layout and the content of each file."""
        finish = in_threads if self.rows > _ROWS else map  # for few rows, threads only take time
        contents = [*finish(_File.finish, self._files.values())]
        return {name: (file.groups, c) for (name, file), c in zip(self._files.items(), contents, strict=True)}


class PartBatch:
    """Transcripts that are collected and written in large parts. Threads may share it."""

    def __init__(self, write: Callable[[NewPart], None]) -> None:
        self._write_part = write
        self._mutex = threading.Lock()
        self._parts: dict[Kind, NewPart] = {}

    def add(self, kind: Kind, new: NewMember) -> None:
        """Add a transcript. It can be read from the tables on disk after `close`, or earlier."""
        with self._mutex:
            if kind in self._parts and new.transcript_id in self._parts[kind].members:
                self._write(kind)
            part = self._parts.setdefault(kind, NewPart(kind))
            try:
                part.add(new)
            except BaseException:  # Ctrl-C, too: some tables may have the transcript and others not
                del self._parts[kind]
                raise
            if part.is_full:
                self._write(kind)

    def close(self) -> None:
        """Write what was collected."""
        with self._mutex:
            for kind in [*self._parts]:
                self._write(kind)

    def _write(self, kind: Kind) -> None:
        self._write_part(self._parts.pop(kind))


def _is_current(kind: str) -> bool:
    return kind not in ("transcript", *EXPORTS)


class Tables:
    """The tables of a corpus. Threads and processes may share them."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        self.root, self.catalog = root, catalog
        self._incoming = root / ".incoming"
        self._members: dict[str, tuple[int, dict[str, Member]]] = {}
        self._layouts: dict[tuple[int, str], _Layout | None] = {}
        self._sound: dict[Path, str] = {}
        self._damaged: set[int] = set()
        self._prepared = False

    def place(self, name: str, kind: str) -> Path:
        """Return the folder of the files of a table."""
        return self.root / ("current" if _is_current(kind) else "tables") / name

    def members(self, kind: Kind, ids: Collection[str] | None = None) -> Mapping[str, Member]:
        """Return where the rows of transcripts are, by id; of all transcripts if `ids` is None."""
        columns = "transcript_id, part, place, source, stamp, status"
        of_kind = "members JOIN parts USING (part) WHERE members.kind = ? AND schema = ?"
        if ids is not None:
            among = "transcript_id IN (SELECT value FROM json_each(?))"
            query = f"SELECT {columns} FROM {of_kind} AND {among}"  # noqa: S608  no value in it
            listed = self.catalog.rows(query, [kind, SCHEMA_VERSION, json.dumps([*ids])])
        else:
            version = self.version()
            cached = self._members.get(kind)
            if cached is None or cached[0] != version:
                rows = self.catalog.rows(f"SELECT {columns} FROM {of_kind}", [kind, SCHEMA_VERSION])  # noqa: S608
                cached = self._members[kind] = version, {row[0]: Member(*row[1:]) for row in rows}
            if not self._damaged:
                return cached[1]
            return {i: member for i, member in cached[1].items() if member.part not in self._damaged}
        return {row[0]: Member(*row[1:]) for row in listed if row[1] not in self._damaged}

    def version(self) -> int:
        """Return a number that changes with every change of the tables. Completes a change of a process that died."""
        state = dict(self.catalog.rows("SELECT name, value FROM state"))
        if state.get("unsettled"):
            with contextlib.suppress(Exception):  # a read-only directory, or a writer that is running
                self.settle()
        return int(state.get("version", 0))

    def groups(self, part: int, name: str) -> list[RowGroup]:
        """Return the row groups of a table in a part; none if it has no rows."""
        layout = self._layout(part, name)
        return [] if layout is None else layout.groups

    def is_current(self, part: int, name: str) -> bool:
        """Return True if a part has rows that replace those as sent."""
        layout = self._layout(part, name)
        return layout is not None and layout.place.startswith("current/")

    @staticmethod
    def columns(name: str) -> list[str]:
        """Return the columns of a table in `current/`."""
        return list(stored_schema(name, current=True).names)

    def _layout(self, part: int, name: str) -> _Layout | None:
        """Return where a file is and which rows it has; None if there is none."""
        if (part, name) not in self._layouts:
            query = (
                "SELECT stem, kind, groups, crc FROM parts LEFT JOIN layouts ON layouts.part = parts.part AND name = ?"
            )
            rows = self.catalog.rows(f"{query} WHERE parts.part = ?", [name, part])
            if not rows:
                raise PartReplacedError
            stem, kind, groups, crc = rows[0]
            layout = None
            if groups is not None:
                place = f"{'current' if _is_current(kind) else 'tables'}/{name}/{stem}.parquet"
                try:
                    row_groups = [RowGroup(tuple(m), tuple(n)) for m, n in json.loads(groups)]
                except (ValueError, TypeError) as error:
                    raise PartDamagedError(part, self.root / place, str(error)) from None
                layout = _Layout(place, zlib.crc32(groups.encode()), crc, row_groups)
            self._layouts[part, name] = layout
        return self._layouts[part, name]

    def path(self, part: int, name: str) -> Path:
        """Return the path of a file of a part, after its checksum was verified once."""
        layout = self._layout(part, name)
        assert layout is not None
        path = self.root / layout.place
        for tries_left in (2, 1, 0):
            try:
                now = stamp(path.stat())
                if self._sound.get(path) != now:
                    _check(read_file(path), layout)
                    self._sound[path] = now
            except FileNotFoundError:
                if not self.catalog.rows("SELECT 1 FROM parts WHERE part = ?", [part]):
                    raise PartReplacedError from None
                incoming = self._incoming / f"{name}.{path.name}.{path.parent.parent.name}"
                if incoming.exists():  # committed, and not moved into place yet
                    with contextlib.suppress(CorpusError):
                        self.settle()
                    if not path.exists():
                        return incoming
                elif not tries_left:
                    raise PartDamagedError(part, path, "it is missing") from None
                time.sleep(0.02)
            except (ValueError, OSError, CorpusError) as error:
                raise PartDamagedError(part, path, str(error)) from None
            else:
                return path
        raise PartReplacedError

    def read(self, part: int, name: str, groups: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows of some row groups of a part."""
        path = self.path(part, name)
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True)
            table = file.read_row_groups(list(groups), columns, use_threads=len(groups) > 1)
        except FileNotFoundError:
            raise PartReplacedError from None
        except (pa.ArrowException, OSError) as error:
            raise PartDamagedError(part, path, str(error).splitlines()[0]) from None
        return (table if columns is None else table.select(list(columns))).replace_schema_metadata(None)

    def check_again(self) -> None:
        """Compare every file with its checksum again before it is read."""
        self._sound.clear()

    def transcripts(self, part: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        """Yield the position in the part and the rows of each transcript."""
        for number, group in enumerate(self.groups(part, name)):
            table, start = self.read(part, name, [number]), 0
            for member, rows in zip(*group, strict=True):
                yield member, table.slice(start, rows)
                start += rows

    def add(
        self, new: NewPart, is_current: Callable[[Writing, str, Member], bool], retired: Collection[int] = ()
    ) -> bool:
        """Add a part, and remove its transcripts from others of its kind."""
        contents = new.finish()
        with self.catalog.writing() as tx:
            self._prepare()
            if retired:
                marks = json.dumps([*retired])
                there = tx.rows("SELECT count(*) FROM parts WHERE part IN (SELECT value FROM json_each(?))", [marks])
                if there[0][0] != len(retired):
                    return False
                for part in retired:
                    self._retire(tx, part)
            outdated = [i for i, member in new.members.items() if not is_current(tx, i, member)]
            self.drop(tx, new.kind, new.members.keys() - outdated)
            part = self._insert(tx, new, contents)
            if outdated:
                self.drop(tx, new.kind, outdated, only=part)
            self._note(tx)
        self.settle()
        return True

    def drop(self, tx: Writing, kind: Kind, ids: Collection[str], only: int | None = None) -> None:
        """Remove the rows of transcripts, physically when `settle` is called."""
        query = "SELECT part, transcript_id, place FROM members WHERE kind = ? AND transcript_id = ?"
        affected: dict[int, dict[str, int]] = {}
        for transcript_id in ids:
            for part, i, place in tx.rows(query, [kind, transcript_id]):
                if only in (None, part):
                    affected.setdefault(part, {})[i] = place
        for part, gone in affected.items():
            rows = tx.rows("SELECT transcript_id, place, source, stamp, status FROM members WHERE part = ?", [part])
            remaining = {place: (i, *about) for i, place, *about in rows if i not in gone}
            is_same = tx.rows("SELECT 1 FROM parts WHERE part = ? AND schema = ?", [part, SCHEMA_VERSION])
            if remaining and is_same:
                with contextlib.suppress(PartDamagedError, PartReplacedError):  # the next read makes the rest again
                    self._copy(tx, kind, [(part, remaining)])
            self._retire(tx, part)
        if affected:
            self._note(tx)

    def discard(self, part: int) -> None:
        """Treat a damaged part as absent, and delete it if possible: its transcripts are made again."""
        self._damaged.add(part)
        with contextlib.suppress(Exception), self.catalog.writing() as tx:
            self._retire(tx, part)
            self._note(tx)
        with contextlib.suppress(Exception):
            self.settle()

    def to_merge(self) -> tuple[Kind, list[int]] | None:
        """Return parts of one kind to merge; None if there are few enough."""
        kinds: dict[Kind, list[tuple[int, int, int]]] = {}
        for part, kind, count, rows in self.catalog.rows(
            "SELECT part, kind, transcripts, rows FROM parts WHERE schema = ?", [SCHEMA_VERSION]
        ):
            kinds.setdefault(kind, []).append((part, count, rows))
        for kind, parts in kinds.items():
            if group := to_merge([(count, rows) for _, count, rows in parts]):
                return kind, [parts[n][0] for n in group]
        return None

    def merge(self) -> None:
        """Merge small parts until there are few."""
        while (group := self.to_merge()) is not None:
            kind, parts = group
            new = NewPart(kind)
            try:
                for part in parts:
                    rows = self.catalog.rows(
                        "SELECT transcript_id, place, source, stamp, status FROM members WHERE part = ?", [part]
                    )
                    self._read_into(new, part, {place: (i, *about) for i, place, *about in rows})
            except (PartDamagedError, PartReplacedError, pa.ArrowException):
                return
            if not self.add(new, lambda *_: True, parts):
                return

    def _copy(self, tx: Writing, kind: Kind, parts: Iterable[tuple[int, Mapping[int, Any]]]) -> None:
        new = NewPart(kind)
        for part, members in parts:
            self._read_into(new, part, members)
        contents = new.finish()
        for transcript_id in new.members:
            tx.drop("members", kind=kind, transcript_id=transcript_id)
        self._insert(tx, new, contents)

    def _read_into(self, new: NewPart, part: int, members: Mapping[int, Any]) -> None:
        """Add transcripts of a part, given by their positions, to a new one."""
        rows: dict[int, dict[str, pa.Table]] = {place: {} for place in members}
        for name in KINDS[new.kind]:
            for place, table in self.transcripts(part, name):
                if place in rows:
                    rows[place][name] = table
        for place in sorted(rows):
            transcript_id, source, mark, status = members[place]
            new.add(NewMember(transcript_id, source, mark, status, rows[place]))

    def _insert(self, tx: Writing, new: NewPart, contents: Mapping[str, tuple[list[RowGroup], pa.Buffer]]) -> int:
        """Write the files of a part where no reader looks for them, and list it in the catalog."""
        folder(self._incoming)
        side = self.place("x", new.kind).parent.name

        def write(item: tuple[str, tuple[list[RowGroup], pa.Buffer]]) -> tuple[str, int]:
            """Return the layout of a file, and the checksum of the layout and the content."""
            name, (row_groups, content) = item
            groups = json.dumps(row_groups)
            path = self._incoming / f"{name}.{new.stem}.parquet.{side}"
            with path.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return groups, zlib.crc32(content, zlib.crc32(groups.encode()))

        sums = in_threads(write, contents.items(), _AT_ONCE)
        if contents:
            sync(self._incoming)
        part = time.time_ns()  # never used again, as a count would be after the catalog was made again
        about = {"part": part, "stem": new.stem, "kind": new.kind, "schema": SCHEMA_VERSION}
        tx.put("parts", [about | {"transcripts": len(new.members), "rows": new.rows}])
        layouts = [
            {"part": part, "name": name, "groups": groups, "crc": crc}
            for name, (groups, crc) in zip(contents, sums, strict=True)
        ]
        tx.put("layouts", layouts)
        members = [
            {"kind": new.kind, "transcript_id": i, **member._asdict(), "part": part}
            for i, member in new.members.items()
        ]
        tx.put("members", members)
        return part

    def _retire(self, tx: Writing, part: int) -> None:
        for table in ("members", "layouts", "parts"):
            tx.drop(table, part=part)

    def _note(self, tx: Writing) -> None:
        """Note that the tables have changed, and that files are to be moved and deleted."""
        tx.put("state", [{"name": "version", "value": time.time_ns()}, {"name": "unsettled", "value": 1}])

    def settle(self) -> None:
        """Move committed files into place, and delete files that the catalog does not list. It may be repeated."""
        with self.catalog.writing() as tx:
            if not tx.rows("SELECT 1 FROM state WHERE name = 'unsettled' AND value = 1"):
                return
            self._settle(tx)
            tx.put("state", [{"name": "unsettled", "value": 0}])
            self._members.clear()
            self._layouts.clear()

    def delete_retired(self, tx: Writing) -> None:
        """Delete the files of parts that were retired before this is committed, so that no other program reads them."""
        for place in self._delete_others(self._listed(tx)):
            sync(place)

    @staticmethod
    def _listed(tx: Writing) -> set[str]:
        return {
            f"{'current' if _is_current(kind) else 'tables'}/{name}/{stem}.parquet"
            for stem, kind, name in tx.rows("SELECT stem, kind, name FROM parts JOIN layouts USING (part)")
        }

    def _delete_others(self, listed: Collection[str]) -> set[Path]:
        changed = set[Path]()
        for side in ("tables", "current"):
            for path in (self.root / side).glob("*/[!_.]*.parquet"):
                if f"{side}/{path.parent.name}/{path.name}" not in listed:
                    path.unlink(missing_ok=True)
                    changed.add(path.parent)
        return changed

    def _settle(self, tx: Writing) -> None:
        listed = self._listed(tx)
        changed = self._delete_others(listed)
        with contextlib.suppress(FileNotFoundError):
            for entry in sorted(self._incoming.iterdir()):
                name, stem, _, side = (*entry.name.split("."), "", "", "")[:4]
                place = self.root / side / name
                if f"{side}/{name}/{stem}.parquet" in listed:
                    folder(place.parent)
                    folder(place)
                    entry.replace(place / f"{stem}.parquet")
                    changed.add(place)
                else:
                    entry.unlink(missing_ok=True)
        for place in changed:
            sync(place)

    def _prepare(self) -> None:
        """Create the folders, and files without rows, so that a glob finds a file with the right columns."""
        places = [self.place(name, kind) for kind, names in KINDS.items() if not _is_current(kind) for name in names]
        if self._prepared and all(os.path.isdir(place) for place in places):  # noqa: PTH112  fast
            return
        self.write_schemas()
        for place in places:
            sweep(place)
        with self.catalog.writing() as tx:
            tx.put("state", [{"name": "unsettled", "value": 1}])
            self._settle(tx)
        self._prepared = True

    def write_schemas(self) -> None:
        """Write the files without rows that are missing or damaged."""
        folder(self.root / "tables")
        for name in [*TRANSCRIPT_TABLES, *EXPORTS]:
            place = self.root / "tables" / name
            folder(place)
            path = place / "_schema.parquet"
            content = _file_without_rows(name)
            with contextlib.suppress(FileNotFoundError, pa.ArrowException):
                if path.read_bytes() == content or pq.read_schema(path).equals(
                    stored_schema(name), check_metadata=True
                ):
                    continue
            write_atomic(path, content)


def to_merge(parts: Sequence[tuple[int, int]]) -> list[int]:
    """Return which parts to merge, given their numbers of transcripts and rows: the smallest of a size with 8 parts."""
    for low, high in pairwise((0, 1, _FAN, _FAN**2, _FULL - 1)):
        same = [n for n, (count, rows) in enumerate(parts) if low < count <= high and rows < MOST_ROWS * 3 // 4]
        same.sort(key=parts.__getitem__)
        if len(same) >= _FAN:
            totals = accumulate(parts[n][0] for n in same)
            rows = accumulate(parts[n][1] for n in same)
            fitting = 1 + sum(t < LARGEST and r < MOST_ROWS for t, r in zip(totals, rows, strict=True))
            if fitting > 1:
                return same[:fitting]
    return []
