"""The log of what people made or paid for, in `records/<number>.jsonl`, from which a lost catalog is rebuilt.

A line is `{"sum": "<CRC-32>", "record": {...}}`, and a record is a row that was put into a table of the catalog, or the
key of rows that were dropped. Lines are only appended, and a full file is followed by another one. `without` replaces
whole files, because nothing must be left of a forgotten transcript.
"""

from __future__ import annotations

import base64
import contextlib
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from voxframe._files import private_folder, sync, write_atomic
from voxframe.corpus.opening import read_file
from voxframe.corpus.store import folder
from voxframe.errors import CorpusError, CorpusWarning

#: `{"table": name, "row": {...}}` for a row, or `{"table": name, "gone": {...}}` for dropped ones.
Record: TypeAlias = dict[str, Any]

_FULL = 4 << 20  # bytes of a file after which the next one is begun
_HEAD, _TAIL = b'{"sum":"', b"}\n"
_RECORD_AT = len(b'{"sum":"00000000","record":')


def encoded(record: Record) -> bytes:
    """Return a record as a line with its checksum."""
    body = orjson.dumps(record, _bytes_as_text)
    return b'{"sum":"%08x","record":%b}\n' % (zlib.crc32(body), body)


def _bytes_as_text(value: object) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def decoded(line: bytes) -> Record:
    """Return the record of a line."""
    body = line[_RECORD_AT:-1]
    if not line.startswith(_HEAD) or line[8:16] != b"%08x" % zlib.crc32(body):
        raise ValueError("its checksum does not match")
    record: Record = orjson.loads(body)
    for value in record.values():
        if isinstance(value, dict):
            value |= {k: base64.b64decode(v["base64"]) for k, v in value.items() if isinstance(v, dict)}
    return record


class Records:
    """The log of one corpus. The caller holds the lock of the catalog while it appends or removes."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "records"

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file, by name, oldest first; 0 of one that is not a regular file."""
        by_name = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and not entry.name.startswith("."):
                    is_file = entry.is_file(follow_symlinks=False)
                    by_name[entry.name] = entry.stat().st_size if is_file else 0
        return dict(sorted(by_name.items()))

    def append(self, lines: Iterable[bytes]) -> tuple[str, int]:
        """Write lines and flush them to the disk. Return the name of the file and its new size."""
        private_folder(self.folder)
        folder(self.folder)
        name, size = next(reversed(self.sizes().items()), ("000001.jsonl", 0))
        if size >= _FULL or (os.path.lexists(self.folder / name) and not _is_regular(self.folder / name)):
            name, size = f"{int(name.partition('.')[0]) + 1:06}.jsonl", 0
        path = self.folder / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a power cut left half a line
                    file.write(b"\n")
            file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
        if not size:
            sync(self.folder)
        return name, end

    def read(self, name: str, start: int = 0) -> Iterator[Record]:
        """Yield the records of a file from a position. Damaged lines are skipped with a warning that names them."""
        try:
            data = read_file(self.folder / name)
        except CorpusError as error:
            warnings.warn(f"{error}; its records are left out", CorpusWarning, stacklevel=2)
            return
        at = start
        for line in data[start:].split(b"\n"):
            if line:
                try:
                    yield decoded(line)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    warnings.warn(
                        f"a record in {self.folder / name} at byte {at} is damaged ({error}) and is left out",
                        CorpusWarning,
                        stacklevel=2,
                    )
            at += len(line) + 1

    def without(self, needles: Iterable[str], concerned: Callable[[Record], bool]) -> dict[str, int]:
        """Remove records from all files."""
        parts = [orjson.dumps(needle)[1:-1] for needle in needles]
        sizes = {}
        for name in self.sizes():
            path = self.folder / name
            data = read_file(path)
            if not any(part in data for part in parts):
                continue
            lines = [line for line in data.split(b"\n") if line and not _is_concerned(line, parts, concerned)]
            content = b"".join(line + b"\n" for line in lines)
            if content != data:
                write_atomic(path, content)
                sizes[name] = len(content)
        return sizes


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_concerned(line: bytes, parts: Iterable[bytes], concerned: Callable[[Record], bool]) -> bool:
    if not any(part in line for part in parts):
        return False
    try:
        return concerned(decoded(line))
    except (ValueError, KeyError, TypeError, AttributeError):
        return True  # damaged, and it mentions what must go
