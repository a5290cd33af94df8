"""Verify every file of a corpus: payloads, tables, records, catalog and indexes."""

from __future__ import annotations

import contextlib
import warnings
import zlib
from collections.abc import Iterator
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq

from voxframe._text import quantity
from voxframe.corpus.archive import Archive
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.opening import read_file
from voxframe.corpus.records import decoded
from voxframe.corpus.snapshots import open_snapshot
from voxframe.corpus.store import View
from voxframe.corpus.tables import PartDamagedError, PartReplacedError
from voxframe.errors import CorpusError, PayloadError

_REBUILD = "`voxframe doctor --rebuild-ledger` makes {} again from records/ and raw/"


def problems(archive: Archive) -> Iterator[str]:
    """Yield what is missing or damaged in a corpus, each with what to do about it."""
    if not archive.path.is_dir():
        return
    catalog = archive.catalog
    if not catalog.is_sound():
        yield f"{catalog.path} is missing or damaged; {_REBUILD.format('it')}"
        return
    if bad := catalog.bad_rows():
        rows = quantity(sum(map(len, bad.values())), "row")
        yield f"{rows} of {catalog.path} ({', '.join(bad)}) had a wrong checksum; {_REBUILD.format('them')}"
    yield from _records(archive)
    for view in get_args(View):
        yield from _payloads(archive, view)
        yield from _tables(archive, view)
    for part, kind, name in catalog.rows("SELECT part, parts.kind, name FROM parts JOIN layouts USING (part)"):
        if "+" in kind or kind == "edited":
            with contextlib.suppress(PartReplacedError):
                try:
                    archive.files.path(part, name)
                except PartDamagedError as error:
                    yield f"{error}; the next read makes it again"
    yield from _indexes(archive)
    for path in archive.path.glob("snapshots/v=*"):
        try:
            open_snapshot(path).verify()
        except CorpusError as error:
            yield str(error)


def _records(archive: Archive) -> Iterator[str]:
    records = archive.catalog.records
    sizes = records.sizes()
    for name, size in archive.catalog.rows("SELECT file, bytes FROM log"):
        if sizes.get(name, 0) < size:
            yield (
                f"{records.folder / name} is missing or was cut: only the catalog has what was in it; restore it "
                "from a backup"
            )
    for name in sizes:
        path = records.folder / name
        try:
            lines = read_file(path).split(b"\n")
        except CorpusError as error:
            yield str(error)
            continue
        bad = 0
        for line in filter(None, lines):
            try:
                decoded(line)
            except (ValueError, KeyError, TypeError, AttributeError):
                bad += 1
        if bad:
            yield (
                f"{path} has {quantity(bad, 'damaged record')}, which a rebuilt catalog would lack: restore it from a "
                "backup, or set what is missing again"
            )


def _payloads(archive: Archive, view: View) -> Iterator[str]:
    for stem in sorted(archive.store.listing(view)):
        transcript_id = archive.store.id_of(stem)
        try:
            archive.make(transcript_id, view)
        except (CorpusError, PayloadError, OSError) as error:
            yield f"{transcript_id!r}: {error}"


def _tables(archive: Archive, view: View) -> Iterator[str]:
    gone = archive.orphans(view)
    for transcript_id in sorted(gone):
        yield (
            f"the payload ({view}) of {transcript_id!r} is gone: restore it from a backup, get it again with "
            f"Corpus.sync() if it was submitted from here, or delete the rest with Corpus.forget({transcript_id!r})"
        )
    with warnings.catch_warnings(record=True) as caught, clear_errors(archive.path):
        warnings.simplefilter("always")
        stale = [i for i in archive.stale(view, verify=True) if i not in gone]
    yield from (str(warning.message) for warning in caught)
    if stale:
        yield (
            f"the tables of {quantity(len(stale), 'transcript')}, such as {stale[0]!r}, are missing or damaged; "
            "Corpus.raw.rebuild_tables() makes them again, and so does the next read"
        )


def _indexes(archive: Archive) -> Iterator[str]:
    for path in sorted(archive.path.glob("search/*.arrow")):
        with contextlib.suppress(FileNotFoundError):
            try:
                is_damaged = path.name[:8] != f"{zlib.crc32(read_file(path)):08x}"
            except CorpusError:
                is_damaged = True
            if is_damaged:
                yield f"{path} is damaged; the next search makes it again, or delete the folder {path.parent}"
    for path in sorted(archive.path.glob("meaning/*.parquet")):
        try:
            pq.ParquetFile(path, page_checksum_verification=True).read()
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError) as error:
            yield f"{path} is damaged ({str(error).splitlines()[0]}); delete it, the next search makes it again"
