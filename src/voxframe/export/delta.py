"""Delta tables that are published together, on a file system or in an object store such as S3.

    <target>/<table>/                    one Delta table each, with its own history
             _voxframe/publications/     a Delta table with the version of each table; its own version is the number
                                         of the publication
             _voxframe/sources/          a Delta table with a fingerprint of each published transcript
             README.md                   the data card, on a file system; each commit to `publications` has it, too

A publication appears with one commit to `publications`, which is written last. A reader that takes the versions from
there never sees tables of two publications, also beside a writer and after a writer was killed. What such a writer had
committed is rolled back by the next one. Commits are made by "put if absent", which needs no rename, and each must have
the next version number, so that of two concurrent writers one fails before it publishes anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from voxframe._files import write_atomic
from voxframe.errors import ExportError, MissingExtraError, OptionError
from voxframe.export.targets import CARD_KEY, CARD_MARK, CARDS, check_target, is_remote, store_settings
from voxframe.export.writers import DataCard, name_of
from voxframe.validators import Integer, checked

if TYPE_CHECKING:
    from deltalake import DeltaTable

_PUBLICATIONS, _SOURCES = "_voxframe/publications", "_voxframe/sources"
_SOURCE_SCHEMA = pa.schema([("transcript_id", pa.string()), ("fingerprint", pa.string())])
_OWNER = "voxframe"  # name in the metadata of the tables
#: Operations that keep the rows of a table. A user may run them at any time.
_UPKEEP = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})
#: Colours of a terminal, which deltalake writes into errors of several lines.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def open_delta(
    target: str | os.PathLike[str],
    publication: int | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, DeltaTable]:
    """Open the tables that `Corpus.publish` wrote, all of one publication.

    Args:
        target: Path or URL.
        publication: Number of the publication. None (default): the latest.
        storage_options: Settings of the store, such as keys; see deltalake. None (default): from the environment.

    Returns:
        A `deltalake.DeltaTable` by table name. Its `to_pyarrow_dataset()` can be queried with DuckDB, and its
        `file_uris()` read with Dask; Polars has `scan_delta(table)`. The files of a partitioned table lack the columns
        it is partitioned by. `dask.dataframe.read_parquet` finds their values in the names of folders, but fails if a
        folder is for rows without a value, unless it is told their types:
        `dataset={"partitioning": {"flavor": "hive", "schema": pyarrow.schema([("customer", pyarrow.string())])}}`.

    Raises:
        ExportError: There is no such publication.
        MissingExtraError: deltalake is not installed.
        OptionError: An argument is invalid.
    """
    delta = DeltaTarget(target, storage_options)
    with clear_delta_errors(target):
        return {name: delta.table(name, version) for name, version in delta.versions(publication).items()}


class DeltaTarget:
    """A place with Delta tables that are published together."""

    def __init__(self, target: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> None:
        check_target(target)
        try:
            import deltalake
        except ModuleNotFoundError:
            raise MissingExtraError("delta", "Publishing and reading Delta tables") from None
        self._library = deltalake
        self._url = os.fspath(target).rstrip("/") if is_remote(target) else str(Path(target).expanduser().absolute())
        self._options = store_settings(storage_options, str) or None
        with clear_delta_errors(target):
            self._manifest = self._find(_PUBLICATIONS)
            self.publication = None if self._manifest is None else self._manifest.version()
            self._published = {} if self._manifest is None else self.versions(self.publication)
        self._current = dict(self._published)
        self._open: dict[str, DeltaTable] = {}

    def table(self, name: str, version: int | None = None) -> DeltaTable:
        """Open one table. Version None: the latest."""
        return self._library.DeltaTable(f"{self._url}/{name}", version=version, storage_options=self._options)

    def versions(self, publication: int | None) -> dict[str, int]:
        """Return the version of each published table."""
        if publication is not None:
            publication = checked("publication", publication, Integer(0))
        if self._manifest is None or (publication is not None and publication > self._manifest.version()):
            allowed = "" if self._manifest is None else f"there is 0 to {self._manifest.version()}. "
            asked = "publication" if publication is None or not allowed else f"publication {publication}"
            raise ExportError(f"there is no {asked} at {self._url!r}; {allowed}Corpus.publish makes one")
        rows = self.table(_PUBLICATIONS, publication).to_pyarrow_table().to_pylist()
        return {row["table"]: row["version"] for row in rows if row["table"] != _SOURCES}

    @property
    def tables(self) -> set[str]:
        """The names of the tables of the latest publication."""
        return {*self._published}

    def sources(self) -> dict[str, str]:
        """Return the fingerprint of each transcript of the latest publication."""
        if self._manifest is None:
            return {}
        rows = self._manifest.to_pyarrow_table().to_pylist()
        (version,) = (row["version"] for row in rows if row["table"] == _SOURCES)
        self._current[_SOURCES] = version
        table = self.table(_SOURCES, version).to_pyarrow_table()
        return dict(zip(table["transcript_id"].to_pylist(), table["fingerprint"].to_pylist(), strict=True))

    def partition_columns(self) -> dict[str, pa.DataType]:
        """Return the columns that published tables are partitioned by, with their types."""
        types: dict[str, pa.DataType] = {}
        for table in filter(None, map(self._latest, self._published)):
            schema = pa.schema(table.to_pyarrow_dataset().schema)
            types |= {name: schema.field(name).type for name in table.metadata().partition_columns}
        return types

    def is_continued_by(self, name: str, schema: pa.Schema, partition_by: Sequence[str]) -> bool:
        """Return True if rows with this schema can be added to a published table: no column has changed its type."""
        table = self._latest(name)
        if table is None:
            return False
        here = table.metadata().partition_columns
        if here != [column for column in partition_by if column in schema.names]:
            raise OptionError(
                f"{self._url}/{name} is partitioned by {here}, not by {list(partition_by)}; pass the same columns, or "
                "choose another target"
            )
        if name not in self._published:
            return False
        types = pa.schema(table.to_pyarrow_dataset().schema)
        return all(schema.field(field.name).type == field.type for field in types if field.name in schema.names)

    def write(
        self,
        name: str,
        rows: pa.RecordBatchReader,
        *,
        replaced: Collection[str] | None,
        written: Collection[str],
        partition_by: Sequence[str] = (),
    ) -> None:
        """Commit rows of a table, as one new version that is not published yet.

        The rows of the transcripts `replaced` are removed, all rows if it is None. `written` are those with new rows.
        """
        table = self._latest(name)
        columns = [column for column in partition_by if column in rows.schema.names] or None
        once = self._library.CommitProperties(max_commit_retries=0)  # the next version, or an error
        options: dict[str, object] = {"mode": "append", "schema_mode": "merge"}
        if table is None or replaced is None:
            options = {"mode": "overwrite", "schema_mode": "overwrite"}
        elif replaced:
            ids = ", ".join(_quoted(transcript_id) for transcript_id in sorted({*replaced, *written}))
            options = {"mode": "overwrite", "schema_mode": "merge", "predicate": f"transcript_id IN ({ids})"}
        self._library.write_deltalake(
            table or f"{self._url}/{name}",
            rows,
            partition_by=columns,
            name=_OWNER,
            storage_options=self._options,
            commit_properties=once,
            **options,
        )
        self._open[name] = table or self.table(name)
        self._current[name] = self._open[name].version()

    def write_sources(self, fingerprints: Mapping[str, str], *, replaced: Collection[str] | None) -> None:
        """Commit fingerprints of transcripts; see `write`."""
        columns = [pa.array(list(fingerprints), pa.string()), pa.array(list(fingerprints.values()), pa.string())]
        rows = pa.Table.from_arrays(columns, schema=_SOURCE_SCHEMA).to_reader()
        self.write(_SOURCES, rows, replaced=replaced, written=fingerprints)

    def publish(self, tables: Collection[str], card: DataCard) -> int:
        """Publish the versions that were committed, all at once. Return the number of the publication.

        The data card is in the commit, as `voxframe.data_card`, and on a file system also in README.md.
        """
        names = [*tables, _SOURCES]
        rows = pa.table({"table": names, "version": pa.array([self._current[name] for name in names], pa.int64())})
        about = self._card(card, tables)
        self._library.write_deltalake(
            self._manifest or f"{self._url}/{_PUBLICATIONS}",
            rows,
            mode="overwrite",
            name=_OWNER,
            storage_options=self._options,
            commit_properties=self._library.CommitProperties(
                max_commit_retries=0, custom_metadata={CARD_KEY.decode(): about}
            ),
        )
        self._manifest = self._manifest or self.table(_PUBLICATIONS)
        self.publication = int(self._manifest.version())
        if not is_remote(self._url):
            path = Path(self._url, CARDS[0])
            if not path.exists() or CARD_MARK in path.read_text("utf-8", "replace"):  # otherwise it is the user's own
                write_atomic(path, about.encode("utf-8", "replace"))
        return self.publication

    def _card(self, card: DataCard, tables: Collection[str]) -> str:
        """Return the data card of the versions that were committed."""
        described = {}
        for name in tables:
            table = self.table(name, self._current[name]).to_pyarrow_dataset()
            described[name] = (pa.schema(table.schema), table.count_rows(), dict[str, str]())
        versions = ", ".join(f"{name} {self._current[name]}" for name in tables)
        card.checksums = f"none, because each publication changes the files; versions of the tables: {versions}"
        return card.text(name_of(self._url), "Delta Lake", described)

    def _find(self, name: str) -> DeltaTable | None:
        if not self._library.DeltaTable.is_deltatable(f"{self._url}/{name}", storage_options=self._options):
            return None
        table = self.table(name)
        if table.metadata().name != _OWNER:
            raise ExportError(f"{self._url}/{name} is a Delta table that voxframe did not write; choose another target")
        return table

    def _latest(self, name: str) -> DeltaTable | None:
        """Open a table to write to, after rolling back commits that were never published. None if there is none."""
        if name not in self._open:
            table = self._find(name)
            if table is None:
                return None
            ahead = table.version() - self._current.get(name, table.version())
            if ahead and any(entry["operation"] not in _UPKEEP for entry in table.history(ahead)):
                once = self._library.CommitProperties(max_commit_retries=0)
                table.restore(self._current[name], commit_properties=once)
                table = self.table(name)
            self._open[name] = table
        return self._open[name]


@contextmanager
def clear_delta_errors(target: str | os.PathLike[str]) -> Iterator[None]:
    """Re-raise errors of deltalake as ExportError, naming the target."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as e:
        raise ExportError(
            f"{os.fspath(target)!r} was changed by another process at the same time, and nothing was published; try "
            "again"
        ) from e
    except (ExportError, MissingExtraError, OptionError):
        raise
    except Exception as e:
        if type(e) is not Exception and not isinstance(e, DeltaError | OSError):  # deltalake raises plain ones, too
            raise
        reason = " ".join(_COLOUR.sub("", str(e)).split())
        raise ExportError(f"cannot use the Delta tables at {os.fspath(target)!r}: {reason}") from e


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
