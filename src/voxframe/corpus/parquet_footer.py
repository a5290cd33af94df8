"""Footers of Parquet files: find the descriptions of row groups and put them together, without a Thrift library.

pyarrow can add row groups to a footer but not remove them, and takes 30 times as long, because it parses all of it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

#: First and last bytes of a Parquet file.
MAGIC = b"PAR1"
#: Types of values in the compact protocol of Thrift.
_STRUCT, _LIST = 12, 9


def footer_of(file: Any) -> bytes:
    """Return the footer of a Parquet file: a Thrift structure.

    Raises:
        ValueError: The file ends otherwise.
    """
    size = file.seek(0, os.SEEK_END) if isinstance(file, io.IOBase) else file.size()
    file.seek(max(0, size - 8))
    length, magic = file.read(4), file.read(4)
    if magic != MAGIC or size < int.from_bytes(length, "little") + 12:
        raise ValueError("the file does not end as a Parquet file")
    file.seek(size - 8 - int.from_bytes(length, "little"))
    return bytes(file.read(int.from_bytes(length, "little")))


class RowGroups(NamedTuple):
    """Descriptions of row groups, as in a footer.

    Attributes:
        rows: Number of their rows.
        groups: Number of row groups.
        blocks: Their descriptions, one after the other.
    """

    rows: int
    groups: int
    blocks: bytes


class FooterFormat:
    """The footers of files with one schema, which differ only in their row groups.

    A footer in the compact protocol of Thrift has the fields version, schema, num_rows, row_groups and others, in this
    order. The positions of pages are absolute, so a description of a row group stays valid in a file that starts with
    the same bytes.

    Args:
        empty: Footer of a file without row groups.
    """

    def __init__(self, empty: bytes) -> None:
        (rows_at, _, groups_end), _ = row_group_blocks(empty)
        self._head, self._tail = empty[:rows_at], empty[groups_end:]

    def row_groups(self, footer: bytes) -> RowGroups:
        """Return the row groups of a footer."""
        if footer.startswith(self._head) and footer.endswith(self._tail):  # else another version of pyarrow wrote it
            rows, at = _read_varint(footer, len(self._head))
            count, at = _list_size(footer, at + 1)
            return RowGroups(rows >> 1, count, footer[at : len(footer) - len(self._tail)])
        return row_groups_of(row_group_blocks(footer)[1])

    def footer(self, *groups: RowGroups) -> bytes:
        """Return a footer with these row groups."""
        count = sum(one.groups for one in groups)
        size = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _varint(count)
        # 0x19: the next field, a list
        start = self._head + _varint(sum(one.rows for one in groups) << 1) + b"\x19" + size
        return b"".join([start, *(one.blocks for one in groups), self._tail])


def row_groups_of(blocks: Sequence[bytes]) -> RowGroups:
    """Return row groups with these descriptions."""
    return RowGroups(sum(map(_rows_of, blocks)), len(blocks), b"".join(blocks))


def row_group_blocks(footer: bytes) -> tuple[tuple[int, int, int], list[bytes]]:
    """Return the limits of num_rows and the end of row_groups in a footer, and the description of each row group."""
    at = _skip(footer, 1, 5)  # version, an i32
    at = _skip(footer, at + 1, _LIST)  # schema
    rows_at = at + 1
    rows_end = _skip(footer, rows_at, 6)  # an i64
    if footer[0] != 0x15 or footer[rows_at - 1] != 0x16 or footer[rows_end] != 0x19:
        raise pa.ArrowInvalid("the footer of a Parquet file has an unexpected order of fields")
    at = rows_end + 1
    count, at = _list_size(footer, at)
    found = []
    for _ in range(count):
        end = _skip(footer, at, _STRUCT)
        found.append(footer[at:end])
        at = end
    return (rows_at, rows_end, at), found


def _rows_of(block: bytes) -> int:
    """Return the number of rows in the description of a row group: columns, total_byte_size, num_rows, ..."""
    at = _skip(block, 1, _LIST)
    at = _skip(block, at + 1, 6)
    value, _ = _read_varint(block, at + 1)
    return value >> 1


def _skip(data: bytes, at: int, kind: int) -> int:
    """Return the end of a value in the compact protocol of Thrift."""
    if kind in (4, 5, 6):  # integers
        while data[at] & 0x80:
            at += 1
        return at + 1
    if kind == _STRUCT:
        while header := data[at]:
            at += 1
            if not header & 0xF0:  # the field's number follows
                at = _skip(data, at, 6)
            kind = header & 0x0F
            if kind > 2:  # else a boolean, which the header holds
                at = _skip(data, at, kind)
        return at + 1
    if kind == 8:  # bytes
        length, at = _read_varint(data, at)
        return at + length
    if kind in (_LIST, 10):
        count, end = _list_size(data, at)
        kind = data[at] & 0x0F
        for _ in range(count):
            end = end + 1 if kind <= 3 else _skip(data, end, kind)
        return end
    if kind == 7:  # a double
        return at + 8
    if kind == 3:  # a byte
        return at + 1
    raise pa.ArrowInvalid(f"the footer of a Parquet file has a value of type {kind}")


def _list_size(data: bytes, at: int) -> tuple[int, int]:
    count = data[at] >> 4
    return (count, at + 1) if count < 15 else _read_varint(data, at + 1)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
