"""Parquet files with one table of many transcripts, to which row groups can be added and removed without recoding.

A row group holds whole transcripts: a multiple of 8, and 8,192 rows or 4 MB, except at the end of a file. A file
under a given name only grows: its successor starts with the same bytes, so that a reader with the old footer still
finds its pages. Removed row groups are overwritten with zeros, and the transcripts in them that stay are encoded again.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from voxframe.corpus.parquet_footer import (
    MAGIC,
    FooterFormat,
    RowGroups,
    footer_of,
    row_group_blocks,
    row_groups_of,
)
from voxframe.frames import as_table
from voxframe.schema import SCHEMA_VERSION, TABLES

#: A row group has a multiple of this many transcripts, and at least this many rows or bytes.
_TRANSCRIPTS, _ROWS, _BYTES = 8, 8192, 4 << 20
#: Text columns with few different values. Statistics of long texts would only make the footer large.
_SHORT = frozenset(
    {"transcript_id", "status", "language_code", "speaker", "channel", "label", "entity_type", "sentiment"}
)
_COPIED_AT_ONCE = 1 << 20
_BUFFERED = 1 << 17

#: Verify the checksum of every page that is read: a flipped bit is an error, never a wrong value.
FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class RowGroup(NamedTuple):
    """The transcripts of a row group, as their positions in the part, with the number of rows of each."""

    members: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class TableLayout:
    """Description of one file of a part.

    Attributes:
        checksum: CRC-32 of the footer. It tells whether a file is the described one.
        text: Its row groups as JSON, parsed on use.
    """

    checksum: int
    text: bytes

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The row groups, in order."""
        return msgspec.json.decode(self.text, type=tuple[RowGroup, ...])


@lru_cache(maxsize=len(TABLES))
def stored_schema(name: str) -> pa.Schema:
    """Return the schema of a stored table: that of the data dictionary, with the metadata for pandas."""
    schema = TABLES[name].arrow
    return schema.with_metadata({**schema.metadata, b"voxframe.schema_version": SCHEMA_VERSION.encode()})


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


@lru_cache(maxsize=len(TABLES))
def _stored_options(name: str) -> dict[str, Any]:
    """Return the options of the files of a stored table: making them for all tables takes 2 ms.

    A row of `transcripts` is one long text and many short values. Without compression and with plain encoding, reads of
    the table take two thirds of the time, but payloads and tables together take 8% more space.
    """
    options = parquet_options(stored_schema(name))
    if name == "transcripts":
        options |= {"compression": "none", "compression_level": None, "use_dictionary": False, "column_encoding": None}
    return options


class _Waiting:
    """Rows of the next row group."""

    def __init__(self) -> None:
        self.members: list[int] = []
        self.counts: list[int] = []
        self._bytes = 0
        self._tables: list[pa.Table] = []
        self._last: list[pa.Table] = []

    def add(self, member: int, table: pa.Table) -> bool:
        """Add the rows of one transcript. Return True if the row group is full."""
        self.members.append(member)
        self.counts.append(table.num_rows)
        self._last.append(table)
        if len(self._last) < _TRANSCRIPTS:
            return False
        if sum(self.counts) >= _ROWS:
            return True
        self._tables.append(pa.concat_tables(self._last).combine_chunks())  # a slice would keep its whole payload
        self._last = []
        self._bytes += self._tables[-1].nbytes
        return self._bytes >= _BYTES

    def rows(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables([*self._tables, *self._last])


class TableFile:
    """A new file of a part, written under a temporary name.

    Args:
        path: Its temporary path; see `Parts.new_file`.
        name: Name of the table.
        base: The file that it replaces. None (default): there is none.
        layout: Description of `base`.
        dropped: Row groups of `base` to remove, by position.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        base: Path | None = None,
        layout: TableLayout | None = None,
        dropped: Sequence[int] = (),
    ) -> None:
        self.path = path
        self._name, self._schema = name, stored_schema(name)
        self._groups: list[RowGroup] = []
        self._kept: RowGroups | None = None
        self._waiting = _Waiting()
        self._lock = threading.Lock()  # held while a thread uses the file
        self._file = self.path.open("xb+")  # never through a symbolic link
        try:
            # Writing to the file of Python would take a quarter longer, and other threads could not encode meanwhile.
            self._sink = pa.BufferedOutputStream(pa.OSFile(os.fspath(self.path), "wb"), _BUFFERED)
            self._writer = pq.ParquetWriter(self._sink, self._schema, **_stored_options(name))
        except BaseException:
            self._file.close()
            self.path.unlink(missing_ok=True)
            raise
        if base is not None and layout is not None:  # after the first bytes, which the writer has written
            try:
                self._continue(base, layout, frozenset(dropped))
            except BaseException:
                self.discard()
                raise

    def add(self, member: int, table: pa.Table) -> None:
        """Add the rows of one transcript.

        Args:
            member: Position of the transcript in the part.
            table: Its rows.
        """
        if table.num_rows and self._waiting.add(member, table):
            self.flush()

    def finish(self) -> TableLayout:
        """Write all that is left, but do not flush it: see `close`. Threads may do this for several files."""
        with self._lock:
            return self._finish()

    def _finish(self) -> TableLayout:
        self.flush()
        self._writer.close()
        self._sink.close()
        file = self._file
        footer = footer_of(file)
        if self._kept is not None:
            form = _footer_format(self._name)
            merged = form.footer(self._kept, form.row_groups(footer))
            file.seek(-8 - len(footer), os.SEEK_END)
            file.write(merged + len(merged).to_bytes(4, "little") + MAGIC)
            if len(merged) < len(footer):
                file.truncate()  # takes as long as writing a small file
            footer = merged
        file.flush()
        return TableLayout(zlib.crc32(footer), msgspec.json.encode(self._groups))

    def close(self) -> None:
        """Flush the finished file to the disk. Threads may do this for several files."""
        with self._lock, self._file as file:
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Delete the file, finished or not."""
        with self._lock:
            for one in self._writer, self._sink, self._file:
                with contextlib.suppress(OSError, pa.ArrowException):
                    one.close()
            self._writer.is_open = False  # else its destructor tries again, and prints the error of a full disk
            self.path.unlink(missing_ok=True)

    def flush(self) -> None:
        """Write the rows that wait for a row group to be full."""
        if self._waiting.members:
            whole = self._waiting.rows()
            if not whole.schema.equals(self._schema):
                whole = as_table(self._name, whole.columns).replace_schema_metadata(self._schema.metadata)
            self._writer.write_table(whole, row_group_size=whole.num_rows)
            self._groups.append(RowGroup(tuple(self._waiting.members), tuple(self._waiting.counts)))
            self._waiting = _Waiting()

    def _continue(self, base: Path, layout: TableLayout, dropped: frozenset[int]) -> None:
        """Copy the pages of the old file, with zeros for the row groups to remove."""
        with base.open("rb") as old:
            footer = footer_of(old)
            if zlib.crc32(footer) != layout.checksum:
                raise ValueError(f"{base} is not the file that its part describes")
            end = old.seek(-8 - len(footer), os.SEEK_END)
            old.seek(len(MAGIC))
            for start, stop in [*_pages(base, dropped), (end, end)]:
                while left := start - old.tell():
                    self._sink.write(old.read(min(left, _COPIED_AT_ONCE)))
                self._sink.write(bytes(stop - start))
                old.seek(stop)
        if dropped:
            blocks = row_group_blocks(footer)[1]
            self._kept = row_groups_of([block for place, block in enumerate(blocks) if place not in dropped])
        else:
            self._kept = _footer_format(self._name).row_groups(footer)
        self._groups = [group for place, group in enumerate(layout.groups) if place not in dropped]


@lru_cache(maxsize=len(TABLES))
def file_without_rows(name: str) -> bytes:
    """Return a file of a stored table without rows."""
    buffer = io.BytesIO()
    pq.write_table(stored_schema(name).empty_table(), buffer, **_stored_options(name))
    return buffer.getvalue()


@lru_cache(maxsize=len(TABLES))
def _footer_format(name: str) -> FooterFormat:
    """Return the format of the footers of a stored table."""
    return FooterFormat(footer_of(io.BytesIO(file_without_rows(name))))


def _pages(path: Path, groups: Collection[int]) -> list[tuple[int, int]]:
    """Return the limits of the pages of some row groups, sorted."""
    if not groups:
        return []
    metadata = pq.read_metadata(path)
    found = []
    for group in groups:
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            start = column.dictionary_page_offset or column.data_page_offset
            found.append((start, start + column.total_compressed_size))
    return sorted(found)


class OpenTable:
    """An open file of a part. The footer has been compared with the description of the file.

    Args:
        path: The file.
        layout: Description of it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is another file, for example a newer one.
    """

    def __init__(self, path: Path, layout: TableLayout) -> None:
        self.layout = layout
        self._file = pa.OSFile(os.fspath(path))
        try:
            is_same = zlib.crc32(footer_of(self._file)) == layout.checksum
        except (OSError, pa.ArrowException, ValueError):
            is_same = False
        if not is_same:
            self._file.close()
            raise ValueError(f"{path} is not the file that its part describes")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(
        self, groups: Sequence[int], columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """Return rows of some row groups.

        Args:
            groups: Positions of the row groups.
            columns: Columns to read. None (default): all.
            where: Rows to read. None (default): all. Row groups without such rows are skipped.

        Raises:
            pa.ArrowException, OSError: A page is damaged.
        """
        chosen = None if columns is None else list(columns)
        if where is not None:
            return FORMAT.make_fragment(self._file, row_groups=list(groups)).to_table(columns=chosen, filter=where)
        file = pq.ParquetFile(self._file, page_checksum_verification=True)  # faster than a data set for few rows
        table = file.read_row_groups(list(groups), chosen, use_threads=len(groups) > 1)
        return table if chosen is None else table.select(chosen)

    def transcripts(self, group: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield the transcripts of a row group: position in the part, and rows."""
        whole, start = self.read([group]), 0
        for member, rows in zip(*self.layout.groups[group], strict=True):
            yield member, whole.slice(start, rows)
            start += rows
