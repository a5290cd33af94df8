"""Publication of a corpus as Delta tables. Only transcripts that changed since the last publication are written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from voxframe.corpus.archive import Archive, view_of
from voxframe.corpus.correction_files import CurrentCorrections
from voxframe.corpus.export import check_outside
from voxframe.corpus.metadata import Metadata, Wanted, apart, chosen
from voxframe.corpus.query import Query
from voxframe.corpus.store import View
from voxframe.errors import CorpusError, ExportError, OptionError
from voxframe.export.delta import DeltaTarget, clear_delta_errors
from voxframe.export.writers import names
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION, TRANSCRIPT_TABLES

_AT_A_TIME = 64  # transcripts in memory
_TRIES = 5  # rounds, if transcripts change while they are written


@dataclass(frozen=True)
class Publication:
    """Result of `Corpus.publish`.

    Attributes:
        target: Path or URL.
        number: Number of the publication, which `voxframe.export.open_delta` opens.
        written: Number of transcripts that were new or had changed.
        removed: Number of transcripts that are no longer in the corpus.
    """

    target: str
    number: int
    written: int
    removed: int


class Publisher:
    """Writes a corpus as Delta tables.

    Args:
        archive: The transcripts.
        query: Reads their tables.
        metadata: Columns about the recordings.
        corrections: Corrections of the transcripts.
    """

    def __init__(self, archive: Archive, query: Query, metadata: Metadata, corrections: CurrentCorrections) -> None:
        self._archive, self._query, self._metadata, self._corrections = archive, query, metadata, corrections

    def publish(
        self,
        target: str | os.PathLike[str],
        *,
        tables: str | Sequence[str] | None,
        partition_by: str | Sequence[str],
        metadata: Wanted,
        storage_options: Mapping[str, str] | None,
    ) -> Publication:
        """Write what changed; see `Corpus.publish`."""
        check_outside(target, self._archive.path)
        wanted = list(TRANSCRIPT_TABLES) if tables is None else names(tables)
        columns = names(partition_by)
        delta = DeltaTarget(target, storage_options)
        with clear_delta_errors(target):
            known: dict[str, str] | None = delta.sources()
            before = dict(known or {})
            for attempt in range(_TRIES):
                about = self._about(columns, metadata)
                schemas = {name: _schema(name, about) for name in wanted}
                for column in columns:
                    if not any(column in schema.names for schema in schemas.values()):
                        raise OptionError(f"no table has the column {column!r}; partition_by names columns of tables")
                now = self._fingerprints(wanted, about)
                if before and not before.keys() & now.keys():
                    raise ExportError(
                        f"{os.fspath(target)} has {len(before)} transcripts of another corpus and none of "
                        f"{self._archive.path}; publish to another target, or delete this one first"
                    )
                if attempt and now == known:
                    break
                if not attempt and not all(delta.is_continued_by(n, s, columns) for n, s in schemas.items()):
                    known = None  # the first publication, another choice of tables, or a column with a new type
                elif not attempt and now == known and delta.publication is not None:
                    return Publication(os.fspath(target), delta.publication, 0, 0)
                replaced = None if known is None else {i for i in known if now.get(i) != known[i]}
                written = [i for i in now if known is None or now[i] != known.get(i)]
                for name, schema in schemas.items():
                    rows = pa.RecordBatchReader.from_batches(schema, self._batches(name, written, schema, about))
                    delta.write(name, rows, replaced=replaced, written=written, partition_by=columns)
                delta.write_sources({i: now[i] for i in written}, replaced=replaced)
                known = now
            else:
                raise CorpusError(
                    f"the corpus {self._archive.path} changes all the time; stop what writes to it, then publish it"
                )
            number = delta.publish(wanted)
        changed = sum(1 for i, fingerprint in now.items() if before.get(i) != fingerprint)
        return Publication(os.fspath(target), number, changed, len(before.keys() - now.keys()))

    def _about(self, partition_by: Sequence[str], metadata: Wanted) -> pa.Table:
        """Return the metadata columns to publish, with `transcript_id`."""
        about = self._metadata.to_arrow()
        more = [name for name in partition_by if name in about.column_names and name != "transcript_id"]
        own = {column for table in CORPUS_TABLES.values() for column in table.names}
        about = apart(about.select(["transcript_id", *dict.fromkeys([*chosen(about, metadata), *more])]), own)
        return about.drop_columns([f.name for f in about.schema if pa.types.is_null(f.type)])

    def _fingerprints(self, tables: Sequence[str], about: pa.Table) -> dict[str, str]:
        """Return a hash of everything that the rows of a transcript are made from, by transcript id."""
        given, edits = self._archive.names.all(), self._corrections.edits()
        recordings = {
            row["transcript_id"]: row
            for row in self._archive.recordings.table(about["transcript_id"].to_pylist()).to_pylist()
        }
        rows = {row["transcript_id"]: {n: v for n, v in row.items() if v is not None} for row in about.to_pylist()}
        sources: dict[str, list[str]] = {}
        views: list[View] = ["transcript", *dict.fromkeys(view_of(n) for n in tables if view_of(n) != "transcript")]
        for view in views:
            name = "transcripts" if view == "transcript" else view
            for transcript_id in self._query.readable(name):
                source = self._archive.source_hash(transcript_id, view)
                sources.setdefault(transcript_id, []).append(f"{view} {source}")
        return {
            i: hashlib.sha256(
                repr((SCHEMA_VERSION, of_it, given.get(i), edits.get(i), rows.get(i), recordings.get(i))).encode()
            ).hexdigest()
            for i, of_it in sources.items()
        }

    def _batches(self, name: str, ids: Sequence[str], schema: pa.Schema, about: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of transcripts, with their metadata."""
        here = set(self._query.readable(name))
        ids = [transcript_id for transcript_id in ids if transcript_id in here]
        for at in range(0, len(ids), _AT_A_TIME):
            table = self._query.arrow(name, ids[at : at + _AT_A_TIME])
            place = pc.index_in(table["transcript_id"], about["transcript_id"].combine_chunks())
            for column in about.column_names[1:]:
                table = table.append_column(column, about[column].take(place))
            yield from table.cast(schema).to_batches()


def _schema(name: str, about: pa.Table) -> pa.Schema:
    """Return the schema of a published table. Metadata columns come last."""
    schema = CORPUS_TABLES[name].arrow.remove_metadata()
    for field in about.schema:
        schema = schema if field.name == "transcript_id" else schema.append(field)
    return schema
