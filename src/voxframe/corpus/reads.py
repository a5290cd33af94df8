"""The part of a corpus that reads its tables over many transcripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from voxframe.corpus import reading
from voxframe.corpus.metadata import Wanted, is_named, with_metadata
from voxframe.corpus.reading import Where
from voxframe.corpus.store import EXPORTS
from voxframe.errors import CorpusError
from voxframe.schema import TRANSCRIPT_TABLES

if TYPE_CHECKING:
    import polars as pl

    from voxframe.corpus.corpus import Corpus
    from voxframe.corpus.snapshot import Snapshot


class Reads:
    """Tables over many transcripts; `Corpus` is one of these."""

    def tables(self, transcript_id: str) -> dict[str, pd.DataFrame]:
        """Every table of one transcript as DataFrames, by name; sentences and paragraphs where their exports are here.

        Raises:
            CorpusError: The transcript is not here.
        """
        names = [*TRANSCRIPT_TABLES, *(view for view in EXPORTS if self._corpus.has_export(transcript_id, view))]
        return reading.to_frames({name: self._corpus.arrow(name, transcript_id) for name in names})

    def words(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
    ) -> pd.DataFrame:
        """The words of many transcripts; the same as `table("words", ...)`."""
        return self.table("words", ids, columns=columns, where=where, metadata=metadata)

    def table(
        self,
        name: str,
        ids: str | Iterable[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        metadata: Wanted = False,
    ) -> pd.DataFrame:
        """One table over many transcripts. Columns and rows that are not asked for are not brought into memory.

        Args:
            name: Name of the table; `voxframe.describe()` lists them.
            ids: Identifier or identifiers to read, in the order wanted. None reads all that are here (of sentences and
                paragraphs: all whose export is here; `voxframe.load_sentences(corpus.ids(), client=client,
                corpus=corpus)` fetches those of the others).
            columns: Columns to read, in the order wanted, also of the metadata; None reads all of the table.
            where: Rows to read, as `pandas.read_parquet(filters=...)` takes it: (column, operator, value) triples that
                must all hold, or lists of such lists; or an expression of pyarrow, which knows no metadata. Times are
                in milliseconds; what equals None has no value.
            metadata: Columns about the recordings to add: names, or True for all.

        Returns:
            A DataFrame with the dtypes of the data dictionary, also where there are no rows; `speaker` is followed by
            `speaker_name`, which `name_speakers` sets. Metadata stands behind the table's own columns.

        Raises:
            CorpusError: A transcript is not here or no identifier, there is no such table or column, or a condition
                does not fit.

        Example:
            >>> import voxframe
            >>> corpus = voxframe.Corpus()
            >>> first_minute = corpus.table(
            ...     "words", columns=["text", "start_ms"], where=[("speaker", "==", "A"), ("start_ms", "<", 60_000)]
            ... )
        """
        if not is_named(name, columns, where, metadata):
            return self._read(name, ids, columns, where)
        wanted = self.wanted(name, ids)
        return with_metadata(
            lambda ids, columns, where: self._read(name, ids, columns, where),
            name,
            self._corpus.about(wanted),
            columns=columns,
            where=where,
            metadata=metadata,
        )

    def _read(
        self, name: str, ids: str | Iterable[str] | None, columns: Sequence[str] | None, where: Where | None
    ) -> pd.DataFrame:
        try:
            return reading.read(name, self.scan(name, ids), columns, where)
        except (pa.ArrowException, OSError):  # a page is damaged, which the footer does not show
            self._mend(name, ids)
            return reading.read(name, self.scan(name, ids), columns, where)

    def _mend(self, name: str, ids: str | Iterable[str] | None) -> None:
        for transcript_id in self.wanted(name, ids):
            self._corpus.arrow(name, transcript_id)  # says which is damaged, and makes it again

    def scan(self, name: str, ids: str | Iterable[str] | None = None) -> ds.Dataset:
        """One table over many transcripts as a data set of pyarrow, from which nothing was read yet.

        Args:
            name: Name of the table.
            ids: Identifier or identifiers, in the order wanted; None is all that are here.

        Returns:
            A data set with the dictionary's schema and, behind `speaker`, `speaker_name`; its
            `to_table(columns=..., filter=...)`, `to_batches()` and `scanner()` read no more than they are asked for.
            A flipped bit is an error then, which `rebuild(verify=True)` mends.

        Raises:
            CorpusError: A transcript is not here, or there is no such table.
        """
        return reading.dataset(name, [self._corpus.part(name, i) for i in self.wanted(name, ids)])

    def to_polars(self, name: str, ids: str | Iterable[str] | None = None) -> pl.LazyFrame:
        """One table over many transcripts for Polars, read when collected.

        Raises:
            CorpusError: A transcript is not here, or there is no such table.
            MissingExtraError: Polars is not installed.
        """
        return reading.lazy_frame(self.scan(name, ids))

    def sql(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None) -> pd.DataFrame:
        """Answer a query of DuckDB's SQL in which every table of the corpus can be named.

        Args:
            query: The query. It reads `transcripts`, `words` and all the other tables, `jobs`, `metadata` and
                `responses`; `show tables` lists them.
            parameters: Values for its question marks, or by name for its `$name`; never written into the text.

        Returns:
            A DataFrame with the columns of the query: text is str, integers Int64, floats float64.

        Raises:
            CorpusError: The query cannot be answered; the message is DuckDB's.
            MissingExtraError: DuckDB is not installed.

        Example:
            >>> import voxframe
            >>> corpus = voxframe.Corpus()
            >>> said = corpus.sql("select speaker, count(*) as words from words group by speaker order by words desc")
        """
        from voxframe.corpus.sql import DamageError, answer

        tables = [*TRANSCRIPT_TABLES, *EXPORTS]
        others = {
            "jobs": self._corpus.jobs,
            "metadata": self._corpus.about,
            "responses": self._corpus.responses,
        }
        try:
            return answer(query, parameters, tables, self.scan, others)
        except DamageError as damage:
            for name in damage.tables:
                self._mend(name, None)
            return answer(query, parameters, tables, self.scan, others)

    def snapshot(self, *, progress: bool = True) -> Snapshot:
        """Seal all that is here as a new version: sorted, compact, with a manifest. Readers of older ones go on.

        Args:
            progress: Whether to show how far it is.

        Returns:
            The version. Its `table`, `scan`, `manifest` and `verify` are for reading it.

        Raises:
            CorpusError: The disk cannot be written or is full; nothing is left behind.

        Example:
            >>> import tempfile
            >>> import voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> _ = corpus.put("a1", b'{"id": "a1", "status": "completed", "words": []}')
            >>> corpus.snapshot().version, len(corpus.load().table("transcripts"))
            (1, 1)
        """
        from voxframe.corpus.snapshot import write

        return write(self._corpus, progress=progress)

    def load(self, version: int | None = None) -> Snapshot:
        """A sealed version, as it was when `snapshot` made it.

        Args:
            version: Its number; None is the latest.

        Raises:
            CorpusError: There is no such version.
        """
        from voxframe.corpus.snapshot import load

        return load(self._corpus.path, version)

    def versions(self) -> list[int]:
        """Numbers of the sealed versions, lowest first."""
        from voxframe.corpus.snapshot import versions

        return versions(self._corpus.path)

    def rebuild(self, *, verify: bool = False, workers: int | None = None, progress: bool = True) -> int:
        """Make again, from the raw payloads and with no request, every table whose file cannot be used.

        Reading does the same for what it reads; this does it for all, on all cores.

        Args:
            verify: Whether to read every file to its end, which finds damage that its footer does not show.
            workers: Processes to use; None is one a core.
            progress: Whether to show how far it is.

        Returns:
            How many answers of the service had their tables made again.

        Raises:
            CorpusError: A raw payload is damaged (after all others were done), or the disk cannot be written.
        """
        from voxframe.corpus.rebuilding import rebuild

        return rebuild(self._corpus, workers, verify=verify, progress=progress)

    def wanted(self, name: str, ids: str | Iterable[str] | None) -> list[str]:
        """Identifiers a read is about."""
        if name not in TRANSCRIPT_TABLES and name not in EXPORTS:
            known = ", ".join([*TRANSCRIPT_TABLES, *EXPORTS])
            raise CorpusError(f"a corpus has no table {name!r}; it has {known}")
        if ids is not None:
            return reading.identifiers(ids)
        view = next((view for view in EXPORTS if view == name), None)
        return [i for i in self._corpus.ids() if view is None or self._corpus.has_export(i, view)]

    @property
    def _corpus(self) -> Corpus:
        return cast("Corpus", self)
