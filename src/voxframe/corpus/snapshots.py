"""Snapshots: read-only versions of a corpus for fast reads, as `snapshots/v=<n>/<table>/part-0.parquet` and a manifest.

A snapshot holds each table in one file, sorted by transcript, with a row group for every 32 transcripts. Reads of few
transcripts skip the other row groups. A snapshot appears in one step and never changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from voxframe._files import private_folder, sync
from voxframe._text import quantity
from voxframe.corpus import conditions
from voxframe.corpus.archive import Archive, MissingTranscriptError, changing
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.conditions import Wanted, Where, is_named, wanted_names, with_ids
from voxframe.corpus.ledger import identifiers, one_id
from voxframe.corpus.metadata import metadata_table, to_frame, with_metadata
from voxframe.corpus.query import Query
from voxframe.corpus.store import EXPORTS, View, check_writable, read_json
from voxframe.corpus.store import folder as make_folder
from voxframe.corpus.tables import parquet_options
from voxframe.corpus.views import FORMAT
from voxframe.errors import CorpusError, DamagedFileError
from voxframe.frames import to_pandas
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TRANSCRIPT_TABLES, with_pandas
from voxframe.validators import Integer, checked, listed, name_list

_METADATA = "metadata"
_GROUP = 32  # transcripts per row group
_TRIES = 5  # attempts to read transcripts that another process is replacing
_LEFTOVER_AGE_S = 24 * 3600.0  # an older temporary directory belongs to a process that died
_NAME = re.compile(r"v=([1-9]\d*)")
_VIEWS: tuple[View, ...] = ("transcript", *EXPORTS)


@dataclass(frozen=True)
class Snapshot:
    """A read-only version of a corpus.

    Attributes:
        path: Its directory.
        manifest: Its content: `version`, `created` (UTC), `schema_version`, the number of `transcripts`, and in
            `tables` the `rows`, `bytes` and `sha256` of the file of each table.
    """

    path: Path
    manifest: Mapping[str, Any]

    @property
    def version(self) -> int:
        """Number of the version."""
        return int(self.manifest["version"])

    def __repr__(self) -> str:
        return f"Snapshot({str(self.path)!r}, {quantity(self.manifest['transcripts'], 'transcript')})"

    def table(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
    ) -> pd.DataFrame:
        """Return one table, sorted by transcript.

        Args:
            name: Name of the table.
            ids: Only these transcripts. None (default): all.
            columns: Columns to read, as for `Corpus.table`.
            where: Rows to read, as for `Corpus.table`.
            metadata: Metadata columns to add, as for `Corpus.table`.

        Raises:
            CorpusError: A transcript, table or column does not exist, a condition is invalid, or a file is damaged.
        """
        data = self.scan(name)
        if name == _METADATA:
            raise CorpusError("metadata is not a table; use Snapshot.metadata(), or metadata=... to join it to a table")
        selected = None if ids is None else list(dict.fromkeys(map(self._id, identifiers(ids))))
        where = with_ids(where, self._id)
        columns, metadata = None if columns is None else name_list(columns), wanted_names(metadata)
        if absent := [transcript_id for transcript_id in selected or () if transcript_id not in self._names]:
            raise CorpusError(f"{self!r} has no transcript {absent[0]!r}; ids() lists its transcripts")
        if not is_named(name, columns, where, metadata):
            return self._rows(name, data, selected, columns, where)
        about = self._about()
        if selected is not None:
            about = about.filter(pc.field("transcript_id").isin(pa.array(selected, pa.string())))
        return with_metadata(
            lambda ids, columns, where: self._rows(name, data, ids, columns, where),
            name,
            about,
            columns=columns,
            where=where,
            metadata=metadata,
            people=False,
        )

    def metadata(self) -> pd.DataFrame:
        """Return the metadata of the recordings at the time of the snapshot; see `corpus.metadata.get`."""
        return to_frame(self._about())

    @cached_property
    def _names(self) -> dict[str, str]:
        about = self._about()
        names = about["recording" if "recording" in about.column_names else "transcript_id"].to_pylist()
        return dict(zip(about["transcript_id"].to_pylist(), names, strict=True))

    def ids(self) -> list[str]:
        """Return the ids of the transcripts in the snapshot, sorted."""
        transcript_ids: list[str] = self._about()["transcript_id"].to_pylist()
        return transcript_ids

    def scan(self, name: str) -> ds.Dataset:
        """Return one table as a pyarrow dataset, without reading it.

        Raises:
            CorpusError: The snapshot has no such table, or its file is missing.
        """
        if name not in list(self.manifest["tables"]):  # a list also compares values without a hash
            raise CorpusError(f"{self!r} has no table {name!r}; it has {listed(self.manifest['tables'])}")
        if not self._file(name).exists():
            raise self._damaged(name)
        if name == _METADATA:
            return ds.dataset(self._file(name))
        return ds.dataset(self._file(name), schema=CORPUS_TABLES[name].arrow, format=FORMAT)

    def _id(self, text: str) -> str:
        """Return the id of a transcript, given the id or the name of its recording."""
        return one_id(text, self._names.__contains__, lambda name: [i for i, n in self._names.items() if n == name])

    def verify(self) -> None:
        """Compare every file with its hash in the manifest.

        Raises:
            CorpusError: A file is missing or differs from its hash.
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
            condition = conditions.expression(name, where)
            if ids is not None:
                among = pc.field("transcript_id").isin(pa.array(ids, pa.string()))
                condition = among if condition is None else among & condition
            names = conditions.checked_columns(name, columns)
            rows = data.to_table(columns=names, filter=conditions.checked(name, condition))
            return to_pandas(rows, name)
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
            f"{self._file(name)} is missing or damaged; create a new version with corpus.snapshots.create()"
        )

    def _file(self, name: str) -> Path:
        return self.path / name / "part-0.parquet"


class Snapshots:
    """Read-only versions of a corpus, as `corpus.snapshots`."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._query = archive, Query(archive)

    def __repr__(self) -> str:
        return f"Snapshots({str(self._archive.path)!r})"

    def create(self, *, progress: bool = True) -> Snapshot:
        """Write the current state of the corpus as a new read-only version. Older versions stay readable.

        Args:
            progress: Show a progress bar.

        Returns:
            The snapshot. Read it with its `table` and `scan`; check it with `verify`.

        Raises:
            CorpusError: There is no corpus, the disk is full or cannot be written, or transcripts keep changing.
                Nothing is left behind.

        Example:
            >>> import tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> corpus.raw.put("a1", b'{"id": "a1", "status": "completed", "words": []}')
            >>> corpus.snapshots.create().version, len(corpus.snapshots.open().table("transcripts"))
            (1, 1)
        """
        if not self._archive.path.is_dir():
            raise CorpusError(
                f"there is no corpus in {str(self._archive.path)!r}; Corpus.submit and Corpus.add create it"
            )
        folder = self._archive.path / "snapshots"
        with clear_errors(self._archive.path):
            check_writable(self._archive.path)
            private_folder(self._archive.path)
            make_folder(folder)
            _sweep(folder)
            for _ in range(_TRIES):
                with contextlib.suppress(MissingTranscriptError):  # it was deleted meanwhile
                    return self._create(folder, progress=progress)
            raise changing(self._archive.path)

    def _create(self, folder: Path, *, progress: bool) -> Snapshot:
        hidden = folder / f".{secrets.token_hex(6)}.tmp"
        hidden.mkdir()
        try:
            readable = {v: self._query.readable("transcripts" if v == "transcript" else v) for v in _VIEWS}
            ids = list(readable["transcript"])
            rows = self._write_tables(readable, hidden, progress=progress)
            rows[_METADATA] = _write_metadata(metadata_table(self._archive, ids), hidden)
            tables = {
                name: {"rows": count, "bytes": file.stat().st_size, "sha256": _sha256(file)}
                for name, count in rows.items()
                if (file := hidden / name / "part-0.parquet")
            }
            with self._archive.kept(*ids):  # a deletion waits, and then warns of this snapshot
                return _seal(folder, hidden, {"transcripts": len(ids), "tables": tables})
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise

    def open(self, version: int | None = None) -> Snapshot:
        """Open a snapshot.

        Args:
            version: Number of the version. None (default): the latest.

        Raises:
            CorpusError: There is no such version, or its manifest cannot be read.
            OptionError: `version` is not a whole number of at least 1.
        """
        root = self._archive.path
        there = _versions(root / "snapshots")  # the error below is enough if there is no corpus
        if not there:
            raise CorpusError(f"the corpus {root} has no snapshot; corpus.snapshots.create() creates one")
        number = there[-1] if version is None else checked("version", version, Integer(1))
        if number not in there:
            raise CorpusError(f"the corpus {root} has no snapshot {number}; it has {', '.join(map(str, there))}")
        return open_snapshot(root / "snapshots" / f"v={number}")

    def versions(self) -> list[int]:
        """Return the version numbers of the snapshots, lowest first."""
        self._archive.report_missing()
        return _versions(self._archive.path / "snapshots")

    def _tables(self, ids: Mapping[View, Sequence[str]]) -> dict[str, pa.Table]:
        names = [*TRANSCRIPT_TABLES, *EXPORTS]
        return {name: self._query.arrow(name, ids[name if name in EXPORTS else "transcript"]) for name in names}

    def _write_tables(
        self, readable: Mapping[View, Collection[str]], folder: Path, *, progress: bool
    ) -> dict[str, int]:
        ids = list(readable["transcript"])
        views = {view: frozenset(of_view) for view, of_view in readable.items()}
        names = [*TRANSCRIPT_TABLES, *EXPORTS]
        rows = dict.fromkeys(names, 0)
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(
                tqdm(total=len(ids), desc="snapshot", disable=not progress or len(ids) < 4 * _GROUP)
            )
            writers = {}
            for name in names:
                (folder / name).mkdir()
                path = folder / name / "part-0.parquet"
                writers[name] = stack.enter_context(
                    pq.ParquetWriter(path, CORPUS_TABLES[name].arrow, **parquet_options(CORPUS_TABLES[name].arrow))
                )
            for start in range(0, len(ids), _GROUP):
                group = ids[start : start + _GROUP]
                here = {view: [i for i in group if i in views[view]] for view in _VIEWS}
                tables = self._archive.unchanged(here, partial(self._tables, here))
                for name, table in tables.items():
                    if table.num_rows:
                        table = table.cast(CORPUS_TABLES[name].arrow)
                        writers[name].write_table(table, row_group_size=table.num_rows)
                        rows[name] += table.num_rows
                bar.update(len(group))
        for name in names:
            sync(folder / name / "part-0.parquet")
            sync(folder / name)
        return rows


def open_snapshot(path: Path) -> Snapshot:
    """Return the snapshot in a directory."""
    try:
        manifest = read_json(path / "manifest.json", dict[str, Any])
    except (FileNotFoundError, DamagedFileError) as e:
        raise CorpusError(f"the manifest of {path} cannot be read ({e}); create a new version") from None
    return Snapshot(path, manifest)


def snapshots_with(snapshots: Snapshots, transcript_id: str) -> list[Path]:
    """Return the directories of the readable snapshots that contain a transcript."""
    paths = []
    for version in snapshots.versions():
        with contextlib.suppress(CorpusError):
            snapshot = snapshots.open(version)
            paths += [snapshot.path] * (transcript_id in snapshot.ids())
    return paths


def _versions(folder: Path) -> list[int]:
    matches = (_NAME.fullmatch(path.name) for path in folder.glob("v=*"))
    return sorted(int(match[1]) for match in matches if match)


def _write_metadata(about: pa.Table, folder: Path) -> int:
    (folder / _METADATA).mkdir()
    path = folder / _METADATA / "part-0.parquet"
    about = about.replace_schema_metadata(with_pandas(about.schema).metadata)
    pq.write_table(about, path, **parquet_options(about.schema))
    sync(path)
    sync(path.parent)
    return int(about.num_rows)


def _seal(folder: Path, hidden: Path, contents: Mapping[str, Any]) -> Snapshot:
    """Number a snapshot and move it into place. Another process may take the same number first."""
    while True:
        number = max(_versions(folder), default=0) + 1
        created = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = {"version": number, "created": created, "schema_version": SCHEMA_VERSION, **contents}
        file = hidden / "manifest.json"
        file.write_text(json.dumps(manifest, indent=1) + "\n")
        sync(file)
        sync(hidden)
        place = folder / f"v={number}"
        try:
            hidden.rename(place)  # fails if the number is taken: a directory with files is never replaced
        except OSError:
            if place.exists():
                continue
            raise
        sync(folder)
        return Snapshot(place, manifest)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sweep(folder: Path) -> None:
    """Delete the temporary directories of processes that died."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
                shutil.rmtree(path, ignore_errors=True)
