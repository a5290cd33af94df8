"""The files of a corpus: `raw/<id>.json.zst` and `tables/<table>/<id>.parquet`, each put in place in one step.

A raw file is the payload exactly as it came, compressed, followed by a small zstd skippable frame (ignored by every
decompressor) with the identifier and the content hash. A Parquet file carries the schema version and the hash of the
raw payload it was made from; where either differs it is stale and the corpus makes it again.

Tables with no rows are not written for each transcript. Each table's folder holds one `_schema.parquet` with no rows
instead, so that a glob finds a file with the right columns even where no transcript has any row.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
import struct
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from voxframe.errors import CorpusError, CorpusWarning
from voxframe.file_names import file_name, is_plain
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TABLES

#: Answers of a service about a transcript.
View: TypeAlias = Literal["transcript", "sentences", "paragraphs"]

#: Exports of a transcript that are kept beside it, each a table of the same name.
EXPORTS: tuple[View, ...] = ("sentences", "paragraphs")

#: Statuses after which a transcript does not change any more.
FINAL = frozenset({"completed", "error"})

#: How a table of a transcript is found on disk.
State: TypeAlias = Literal["filled", "empty", "stale"]

_OURS = (b"voxframe.content", b"voxframe.schema_version", b"voxframe.tables")
_SKIPPABLE = 0x184D2A50  # magic number of a zstd frame that decompressors skip
_LEFTOVER_AGE_S = 3600.0  # a temporary file older than this belongs to a writer that died


class Store:
    """Raw payloads and tables below one directory.

    Safe with several processes: every file is complete or absent, and a table that does not belong to the raw payload
    beside it is never returned.

    Args:
        root: Directory of the corpus; created at the first write.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prepared = False

    def put_raw(self, transcript_id: str, view: View, raw: bytes) -> str:
        """Keep a payload, replacing an older one.

        Returns:
            Its content hash, to be handed to `put_tables`.
        """
        self._prepare()
        content = content_hash(raw)
        note = json.dumps({"transcript_id": transcript_id, "view": view, "content": content}).encode()
        note += struct.pack("<I", len(note))
        frame = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(raw)
        whole = frame + struct.pack("<II", _SKIPPABLE, len(note)) + note
        write_atomic(self._raw_path(transcript_id, view), lambda file: file.write(whole))
        return content

    def raw(self, transcript_id: str, view: View) -> bytes | None:
        """The payload as it came, or None where there is none.

        Raises:
            CorpusError: The file is damaged.
        """
        path = self._raw_path(transcript_id, view)
        try:
            return decompress(path.read_bytes())
        except FileNotFoundError:
            return None
        except zstandard.ZstdError as e:
            raise CorpusError(
                f"{path} is damaged ({e}). Delete it: Corpus.sync() then fetches again what was submitted from here, "
                f"voxframe.tables({transcript_id!r}, client=client, corpus=corpus, refresh=True) what else a service "
                "has, and Corpus.add(...) takes it from a file"
            ) from None

    def content(self, transcript_id: str, view: View) -> str | None:
        """Content hash of the raw payload, or None where there is none."""
        note = _note(self._raw_path(transcript_id, view))
        if note is not None:
            return note["content"]
        raw = self.raw(transcript_id, view)  # a raw file that was made by other means
        return None if raw is None else content_hash(raw)

    def ids(self) -> list[str]:
        """Identifiers of every transcript that has a raw payload, sorted."""
        return sorted(map(self.id_of, self.listing()))

    def listing(self) -> dict[str, str]:
        """Stem of every transcript's raw file, and a text that changes where the file is replaced."""
        found = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self.root / "raw") as entries:
            for entry in entries:
                stem, _, suffix = entry.name.partition(".")
                if suffix != "json.zst":  # a file being written, or an export
                    continue
                try:
                    stat = entry.stat()
                except FileNotFoundError:
                    continue
                found[stem] = stamp(stat)
        return found

    def changed_ns(self) -> int:
        """When a raw file was last added, replaced or removed, in nanoseconds since 1970; 0 where there is none."""
        try:
            return self.root.joinpath("raw").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def id_of(self, stem: str) -> str:
        """Identifier of the transcript whose raw file has this stem."""
        note = None if is_plain(stem) else _note(self.root / "raw" / f"{stem}.json.zst")
        return note["transcript_id"] if note else stem

    def put_tables(self, transcript_id: str, tables: Mapping[str, pa.Table], content: str) -> None:
        """Write the tables made from one payload, those with rows; the first one always, and last.

        Its metadata names the others, so that a table that is missing can be told from one with no rows, and a writer
        that dies half-way leaves a set that is known to be stale.

        Args:
            transcript_id: Identifier of the transcript.
            tables: Tables by name, the leading one first.
            content: Hash of the raw payload they were made from.
        """
        self._prepare()
        leading, *others = tables
        filled = [name for name in others if tables[name].num_rows]
        for name in others:
            path = self.table_path(transcript_id, name)
            if name in filled:
                _write_table(path, name, tables[name], {"content": content})
            else:
                path.unlink(missing_ok=True)
        extra = {"content": content, "tables": " ".join(filled)}
        _write_table(self.table_path(transcript_id, leading), leading, tables[leading], extra)

    def table(self, transcript_id: str, name: str, content: str, leading: str) -> pa.Table | None:
        """One table of one transcript.

        Args:
            transcript_id: Identifier of the transcript.
            name: Name of the table.
            content: Hash of the raw payload it has to come from.
            leading: First of the tables that are made from that payload.

        Returns:
            None where the table is absent, damaged, or was made from another payload or under another schema.
        """
        path = self.table_path(transcript_id, name)
        if not path.exists():
            is_empty = self.state(transcript_id, name, content, leading) == "empty"
            return CORPUS_TABLES[name].empty if is_empty else None
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                return file.read(use_threads=False) if _is_fresh(file.schema_arrow.metadata, content) else None
        except FileNotFoundError:  # removed since
            return None
        except (pa.ArrowException, OSError) as e:  # pyarrow uses both
            _report_damage(path, e)
            return None

    def remove(self, transcript_id: str) -> None:
        """Delete all files of a transcript, its raw payload last, so that what is interrupted can be done again."""
        for name in stored_tables():
            self.table_path(transcript_id, name).unlink(missing_ok=True)
        for view in reversed(get_args(View)):
            self._raw_path(transcript_id, view).unlink(missing_ok=True)

    def state(self, transcript_id: str, name: str, content: str, leading: str) -> State:
        """How one table of one transcript is found on disk, by its footer alone.

        Args:
            transcript_id: Identifier of the transcript.
            name: Name of the table.
            content: Hash of the raw payload it has to come from.
            leading: First of the tables that are made from that payload.

        Returns:
            "filled" where its file can be used, "empty" where it has no rows and so no file, "stale" where it has to be
            made again.
        """
        path = self.table_path(transcript_id, name)
        if path.exists():
            return "stale" if _filled(path, content) is None else "filled"
        filled = _filled(self.table_path(transcript_id, leading), content)
        return "stale" if filled is None or name in filled or name == leading else "empty"

    def _raw_path(self, transcript_id: str, view: View) -> Path:
        suffix = "" if view == "transcript" else f".{view}"
        return self.root / "raw" / f"{file_name(transcript_id)}{suffix}.json.zst"

    def table_path(self, transcript_id: str, name: str) -> Path:
        """Where the Parquet file of one table of one transcript is, or would be."""
        return self.root / "tables" / name / f"{file_name(transcript_id)}.parquet"

    def _prepare(self) -> None:
        """Make the folders, once a process."""
        if self._prepared:
            return
        try:
            self.root.joinpath("raw").mkdir(parents=True, exist_ok=True)
            _sweep(self.root / "raw")
            for name in stored_tables():
                folder = self.root / "tables" / name
                folder.mkdir(parents=True, exist_ok=True)
                _sweep(folder)
                _write_schema(folder / "_schema.parquet", name)
        except OSError as e:
            raise CorpusError(
                f"cannot write a corpus at {self.root}: {e.strerror or e}; name a directory that can be written"
            ) from None
        self._prepared = True


def stamp(stat: os.stat_result) -> str:
    """What changes where a file is replaced; as text, since Python looks again and again through thousands of lists."""
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def stored_tables() -> list[str]:
    """Names of the tables that a corpus keeps as files."""
    return [
        t.name for t in TABLES.values() if t.source.startswith("GET /v2/transcript/{id}") and t.name != "word_matches"
    ]


def content_hash(raw: bytes) -> str:
    """What tells one payload from another."""
    return hashlib.sha256(raw).hexdigest()


def write_atomic(path: Path, write: Callable[[IO[bytes]], object], *, durable: bool = True) -> None:
    """Make or replace a file in one step that survives a crash: a reader sees the old file or the whole new one.

    Args:
        path: Where it goes.
        write: Called with the open file.
        durable: Whether it is on the disk when this returns; otherwise a power cut may take it away again.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with hidden.open("xb") as file:
            write(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        hidden.replace(path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    if durable and os.name == "posix":  # the rename itself must reach the disk; Windows cannot open a directory
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def decompress(data: bytes) -> bytes:
    """First zstd frame of `data`, whether or not its header says how long it is.

    Raises:
        zstandard.ZstdError: It is no such frame, is damaged, or ends early.
    """
    stream = zstandard.ZstdDecompressor().decompressobj()
    raw = stream.decompress(data)
    if not stream.eof:
        raise zstandard.ZstdError("the file ends early")
    return raw


def _note(path: Path) -> dict[str, str] | None:
    """What `put_raw` wrote behind the payload; None where the file is absent or was made by other means."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4))
            (length,) = struct.unpack("<I", file.read(4))
            file.seek(max(0, size - 12 - length))
            magic, _, body = *struct.unpack("<II", file.read(8)), file.read(length)
            if magic != _SKIPPABLE:
                return None
            note: dict[str, str] = json.loads(body)
            return note
    except (FileNotFoundError, struct.error, ValueError):
        return None


def _filled(path: Path, content: str) -> list[str] | None:
    """The tables with rows that a leading one names, by its footer; None where the file is absent or stale."""
    try:
        stat = path.stat()
        metadata = _footer(str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError) as e:
        _report_damage(path, e)
        return None
    return metadata.get(b"voxframe.tables", b"").decode().split() if _is_fresh(metadata, content) else None


@functools.lru_cache(maxsize=65_536)
def _footer(path: str, *stamp: int) -> Mapping[bytes, bytes]:  # noqa: ARG001  the stamp tells an older file from this
    """What `put_tables` wrote into a file. Asked for once a table, it takes a hundred times as long as a stat."""
    metadata = pq.read_schema(path).metadata or {}
    return {key: value for key, value in metadata.items() if key in _OURS}


def _report_damage(path: Path, error: Exception) -> None:
    warnings.warn(
        f"{path} is damaged ({str(error).splitlines()[0]}) and is made again from the raw payload",
        CorpusWarning,
        stacklevel=2,
    )


def _is_fresh(metadata: Mapping[bytes, bytes] | None, content: str) -> bool:
    return (
        metadata is not None
        and metadata.get(b"voxframe.content") == content.encode()
        and metadata.get(b"voxframe.schema_version") == str(SCHEMA_VERSION).encode()
    )


def _write_table(path: Path, name: str, table: pa.Table, extra: Mapping[str, str]) -> None:
    """Write Parquet under the schema of a corpus: small, and the same types whatever the values are."""
    schema = CORPUS_TABLES[name].arrow
    metadata = {**schema.metadata, **{f"voxframe.{key}": value for key, value in extra.items()}}
    table = table.cast(schema).replace_schema_metadata(metadata)
    options = parquet_options(schema)
    write_atomic(path, lambda file: pq.write_table(table, file, **options))


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """How a table is written: small, and so that a flipped bit is noticed."""
    integers = [f.name for f in schema if pa.types.is_integer(f.type)]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [f.name for f in schema if pa.types.is_string(f.type)],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        "write_page_checksum": True,
    }


def _write_schema(path: Path, name: str) -> None:
    with contextlib.suppress(FileNotFoundError, pa.ArrowException):
        if pq.read_schema(path).equals(CORPUS_TABLES[name].arrow):
            return
    _write_table(path, name, CORPUS_TABLES[name].empty, {})


def _sweep(folder: Path) -> None:
    """Remove what writers that died have left; files of living writers are younger."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
                path.unlink()
