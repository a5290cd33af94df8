"""Sealed versions of a corpus for big reads: `snapshots/v=<n>/<table>/part-0.parquet` and a manifest.

A version holds each table in one file, sorted by transcript, a row group for every 32 transcripts, so that a reader who
wants few of them skips the rest. It is put in place in one step and never changed after.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from voxframe.corpus import reading
from voxframe.corpus.disk import clear_errors
from voxframe.corpus.metadata import Wanted, is_named, to_frame, with_metadata
from voxframe.corpus.reading import Where
from voxframe.corpus.store import EXPORTS, View, parquet_options
from voxframe.errors import CorpusError
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TRANSCRIPT_TABLES

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus

_METADATA = "metadata"
_GROUP = 32  # transcripts a row group
_TRIES = 5  # to read transcripts that another process replaces meanwhile
_LEFTOVER_AGE_S = 24 * 3600.0  # a directory being written that is older belongs to a process that died
_NAME = re.compile(r"v=([1-9]\d*)")
_VIEWS: tuple[View, ...] = ("transcript", *EXPORTS)


@dataclass(frozen=True)
class Snapshot:
    """A sealed version of a corpus.

    Attributes:
        path: Its directory.
        manifest: What it holds: `version`, `created` (UTC), `schema_version`, `transcripts` (how many), and in `tables`
            for each table `rows`, `bytes` and `sha256` of its file.
    """

    path: Path
    manifest: Mapping[str, Any]

    @property
    def version(self) -> int:
        """Its number."""
        return int(self.manifest["version"])

    def __repr__(self) -> str:
        return f"Snapshot({str(self.path)!r}, {self.manifest['transcripts']} transcripts)"

    def table(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
    ) -> pd.DataFrame:
        """One table, sorted by transcript; `columns`, `where` and `metadata` as for `Corpus.table`.

        Raises:
            CorpusError: There is no such transcript, table or column, or a condition does not fit.
        """
        data = self.scan(name)
        wanted = None if ids is None else reading.identifiers(ids)
        if name == _METADATA:
            raise CorpusError("metadata is what Snapshot.metadata() gives, and metadata=... joins to every table")
        if absent := sorted(set(wanted or ()) - set(self.ids() if wanted else ())):
            raise CorpusError(f"there is no transcript {absent[0]!r} in {self!r}; ids() lists what is there")
        if not is_named(name, columns, where, metadata):
            return self._rows(name, data, wanted, columns, where)
        about = self._about()
        if wanted is not None:
            about = about.filter(pc.field("transcript_id").isin(wanted))
        return with_metadata(
            lambda ids, columns, where: self._rows(name, data, ids, columns, where),
            name,
            about,
            columns=columns,
            where=where,
            metadata=metadata,
        )

    def metadata(self) -> pd.DataFrame:
        """Columns about the recordings as they were then; see `Corpus.metadata`."""
        return to_frame(self._about())

    def ids(self) -> list[str]:
        """Identifiers of the transcripts in it, sorted."""
        found: list[str] = self._about()["transcript_id"].to_pylist()
        return found

    def scan(self, name: str) -> ds.Dataset:
        """One table as a data set of pyarrow, from which nothing was read yet.

        Raises:
            CorpusError: There is no such table in it.
        """
        if name not in self.manifest["tables"]:
            raise CorpusError(f"{self!r} has no table {name!r}; it has {', '.join(self.manifest['tables'])}")
        if not self._file(name).exists():
            raise self._damaged(name)
        if name == _METADATA:
            return ds.dataset(self._file(name))
        return reading.dataset(name, [self._file(name)])

    def verify(self) -> None:
        """Compare every file with its hash in the manifest.

        Raises:
            CorpusError: A file is missing or is not what was written.
        """
        for name, entry in self.manifest["tables"].items():
            if not self._file(name).exists() or _sha256(self._file(name)) != entry["sha256"]:
                raise self._damaged(name)

    def _about(self) -> pa.Table:
        try:
            return self.scan(_METADATA).to_table()
        except (pa.ArrowException, OSError):
            raise self._damaged(_METADATA) from None

    def _rows(
        self,
        name: str,
        data: ds.Dataset,
        ids: Sequence[str] | None,
        columns: Sequence[str] | None,
        where: Where | None,
    ) -> pd.DataFrame:
        try:
            return _read(name, data, ids, columns, where)
        except CorpusError:
            try:
                pq.read_metadata(self._file(name))
            except (pa.ArrowException, OSError):
                raise self._damaged(name) from None
            raise
        except (pa.ArrowException, OSError):
            raise self._damaged(name) from None

    def _damaged(self, name: str) -> CorpusError:
        return CorpusError(
            f"{self._file(name)} is missing or damaged; make a new version with Corpus.snapshot(), or read the corpus"
        )

    def _file(self, name: str) -> Path:
        return self.path / name / "part-0.parquet"


def _read(
    name: str, data: ds.Dataset, ids: Sequence[str] | None, columns: Sequence[str] | None, where: Where | None
) -> pd.DataFrame:
    condition = reading.expression(name, where)
    if ids is not None:
        wanted = pc.field("transcript_id").isin(list(ids))
        condition = wanted if condition is None else wanted & condition
    return reading.read(name, data, columns, condition)


def versions(root: Path) -> list[int]:
    """Numbers of the sealed versions below a corpus, lowest first."""
    found = (_NAME.fullmatch(path.name) for path in root.joinpath("snapshots").glob("v=*"))
    return sorted(int(match[1]) for match in found if match)


def load(root: Path, version: int | None) -> Snapshot:
    """A sealed version.

    Args:
        root: Directory of the corpus.
        version: Its number; None is the latest.

    Raises:
        CorpusError: It is not there, or its manifest cannot be read.
    """
    there = versions(root)
    if not there:
        raise CorpusError(f"the corpus {root} has no snapshot; Corpus.snapshot() makes one")
    number = there[-1] if version is None else version
    if number not in there:
        raise CorpusError(f"the corpus {root} has no snapshot {version!r}; it has {', '.join(map(str, there))}")
    path = root / "snapshots" / f"v={number}"
    try:
        manifest = json.loads((path / "manifest.json").read_bytes())
    except (OSError, ValueError) as e:
        raise CorpusError(f"the manifest of {path} cannot be read ({e}); make a new version") from None
    return Snapshot(path, manifest)


def write(corpus: Corpus, *, progress: bool) -> Snapshot:
    """Write a new sealed version of all that is in a corpus.

    Args:
        corpus: The corpus.
        progress: Whether to show how far it is.

    Raises:
        CorpusError: The disk cannot be written or is full; nothing is left behind. Or transcripts change all the time.
    """
    folder = corpus.path / "snapshots"
    with clear_errors(corpus.path):
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        hidden = folder / f".{secrets.token_hex(6)}.tmp"
        hidden.mkdir()
        try:
            ids = corpus.ids()
            rows = _write_tables(corpus, ids, hidden, progress=progress)
            rows[_METADATA] = _write_metadata(corpus.about(ids), hidden)
            tables = {
                name: {"rows": count, "bytes": file.stat().st_size, "sha256": _sha256(file)}
                for name, count in rows.items()
                if (file := hidden / name / "part-0.parquet")
            }
            return _seal(folder, hidden, {"transcripts": len(ids), "tables": tables})
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise


def _write_tables(corpus: Corpus, ids: Sequence[str], folder: Path, *, progress: bool) -> dict[str, int]:
    names = [*TRANSCRIPT_TABLES, *EXPORTS]
    rows = dict.fromkeys(names, 0)
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(tqdm(total=len(ids), desc="snapshot", disable=not progress or len(ids) < 4 * _GROUP))
        writers = {}
        for name in names:
            (folder / name).mkdir()
            path = folder / name / "part-0.parquet"
            writers[name] = stack.enter_context(
                pq.ParquetWriter(path, CORPUS_TABLES[name].arrow, **parquet_options(CORPUS_TABLES[name].arrow))
            )
        for start in range(0, len(ids), _GROUP):
            group = ids[start : start + _GROUP]
            for name, table in _steady(corpus, group, names).items():
                if table.num_rows:
                    writers[name].write_table(table, row_group_size=table.num_rows)
                    rows[name] += table.num_rows
            bar.update(len(group))
    for name in names:
        _sync(folder / name / "part-0.parquet")
        _sync(folder / name)
    return rows


def _write_metadata(about: pa.Table, folder: Path) -> int:
    (folder / _METADATA).mkdir()
    path = folder / _METADATA / "part-0.parquet"
    pq.write_table(about, path, **parquet_options(about.schema))
    _sync(path)
    _sync(path.parent)
    return int(about.num_rows)


def _steady(corpus: Corpus, ids: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """All tables of some transcripts, each transcript's from one and the same payload."""
    for _ in range(_TRIES):
        before = [corpus.content(i, view) for i in ids for view in _VIEWS]
        tables = {}
        for name in names:
            of = [i for i in ids if name not in EXPORTS or corpus.has_export(i, name)]
            tables[name] = corpus.scan(name, of).to_table()
        if before == [corpus.content(i, view) for i in ids for view in _VIEWS]:
            return tables
    raise CorpusError(f"the corpus {corpus.path} changes all the time; stop what writes to it, then make the snapshot")


def _seal(folder: Path, hidden: Path, contents: Mapping[str, Any]) -> Snapshot:
    """Number a version and put it in place; another process may take the same number first."""
    while True:
        number = max(versions(folder.parent), default=0) + 1
        created = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = {"version": number, "created": created, "schema_version": SCHEMA_VERSION, **contents}
        file = hidden / "manifest.json"
        file.write_text(json.dumps(manifest, indent=1) + "\n")
        _sync(file)
        _sync(hidden)
        place = folder / f"v={number}"
        try:
            hidden.rename(place)  # fails where the number is taken: a directory with files is never replaced
        except OSError:
            if place.exists():
                continue
            raise
        _sync(folder)
        return Snapshot(place, manifest)


def _sync(path: Path) -> None:
    """Bring a file or directory to the disk."""
    if path.is_dir() and os.name != "posix":  # Windows cannot open a directory
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sweep(folder: Path) -> None:
    """Remove what a process that died half-way has left."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
                shutil.rmtree(path, ignore_errors=True)
