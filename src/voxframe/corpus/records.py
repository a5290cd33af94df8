"""The log of what people made or paid for, in `records/<number>.jsonl`, from which a lost catalog is rebuilt.

A line is `{"sum": "<CRC-32>", "record": {...}}`, and a record is a row that was put into a table of the catalog, or the
key of rows that were dropped. Lines are only appended, and a full file is followed by another one. `without` replaces
whole files, because nothing must be left of a forgotten transcript. The layout of a corpus before the catalog is read
once, as such rows, and then deleted.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from voxframe._files import private_folder, sync, write_atomic
from voxframe.corpus.store import folder, read_file, read_json
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


Rows: TypeAlias = Iterator[tuple[str, dict[str, Any]]]  # names of tables of the catalog, and rows

_MARKS = ("ledger.sqlite", ".submissions", "parts", "people.json", "names", "corrections")


def has_older_layout(root: Path) -> bool:
    """Return True if a corpus has files of the older layout."""
    return any((root / name).exists() for name in _MARKS)


def older_rows(root: Path, rows_of_ledger: Callable[[Path], Rows]) -> Rows:
    """Yield what people made or paid for. A file that cannot be read is set aside."""
    for path in sorted(root.glob(".submissions/*.json")):
        with _readable(path):
            yield "jobs", read_json(path, dict)
    if (root / "ledger.sqlite").exists():
        with _readable(root / "ledger.sqlite"):
            yield from rows_of_ledger(root / "ledger.sqlite")
    for table, column in ("names", "states"), ("corrections", "edits"):
        for path in sorted(root.glob(f"{table}/*.json")):
            with _readable(path):
                fields = read_json(path, dict)
                for n, value in enumerate(fields[column]):
                    row = {"transcript_id": fields["transcript_id"], "n": n, column[:-1]: json.dumps(value)}
                    yield "names" if table == "names" else "edits", row
    with _readable(root / "people.json"):
        for change, fields in enumerate(read_json(root / "people.json", dict)["changes"]):
            for transcript_id, labels in fields["people"].items():
                yield "people", {"change": change, "transcript_id": transcript_id, "labels": json.dumps(labels)}


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Move a file that cannot be read to `unreadable/` with a warning."""
    try:
        yield
    except FileNotFoundError:
        return
    except (CorpusError, OSError, KeyError, TypeError, AttributeError) as error:
        place = path.parent.joinpath("unreadable") if path.suffix == ".sqlite" or path.name == "people.json" else None
        place = place or path.parents[1] / "unreadable" / path.parent.name
        place.mkdir(parents=True, exist_ok=True)
        path.replace(place / path.name)
        warnings.warn(
            f"{path} of an older version of voxframe cannot be read ({error}); it was moved to {place}, and what it "
            "held is missing: restore it from a backup, or set it again",
            CorpusWarning,
            stacklevel=2,
        )


def remove_older_layout(root: Path) -> None:
    """Delete the files of the older layout; tables and indexes are made again when they are read."""
    if not has_older_layout(root):
        return
    for path in (*root.glob("ledger.sqlite*"), root / "people.json", *root.glob("tables/*/*.parquet")):
        path.unlink(missing_ok=True)
    for name in (".submissions", "parts", "names", "corrections", "search", "meaning"):
        place = root / name
        if place.is_symlink():
            place.unlink()
        else:
            shutil.rmtree(place, ignore_errors=True)
