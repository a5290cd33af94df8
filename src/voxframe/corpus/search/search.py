"""Search over the words of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe.corpus.archive import Archive
from voxframe.corpus.metadata import Metadata, Wanted, apart, is_named, join, resolve
from voxframe.corpus.reading import identifiers
from voxframe.corpus.speaker_names import with_names
from voxframe.corpus.speakers import CurrentNames
from voxframe.schema import CONCORDANCE

if TYPE_CHECKING:
    from voxframe.corpus.reading import Where
    from voxframe.corpus.search.index import SearchIndex


class Search:
    """Search over the words of a corpus.

    Args:
        archive: The transcripts.
        names: Names of their speakers.
        metadata: Columns about the recordings.
    """

    def __init__(self, archive: Archive, names: CurrentNames, metadata: Metadata) -> None:
        self._archive, self._names, self._metadata = archive, names, metadata

    def search(
        self,
        query: str | Iterable[str],
        *,
        context: int = 8,
        slop: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        metadata: Wanted = False,
    ) -> pd.DataFrame:
        """Return every occurrence of words or phrases, with context; see `Corpus.search`."""
        from voxframe.corpus.search.concordance import SearchQuery, concordance

        wanted = SearchQuery.check(query, slop)
        ids = self._here(ids)
        about = (
            apart(self._metadata.to_arrow(ids), CONCORDANCE.names)
            if is_named("concordance", None, where, metadata)
            else None
        )
        if about is not None:
            where, possible = resolve("concordance", where, about)
            ids = ids if possible is None else possible
        found = concordance(
            self.index.view(),
            wanted,
            named=self._named,
            context=context,
            speaker=speaker,
            ids=ids,
            where=where,
            limit=limit,
        )
        frame = frames.to_pandas(found, "concordance")
        return frame if about is None else join(frame, about, metadata)

    def counts(
        self,
        query: str | Iterable[str],
        *,
        by: str | Sequence[str] = "transcript_id",
        slop: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        about: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Return how often words or phrases occur; see `Corpus.counts`."""
        from voxframe.corpus.search.concordance import SearchQuery, labelled
        from voxframe.corpus.search.counts import GROUPS, counts

        wanted = SearchQuery.check(query, slop)
        ids = self._here(ids)
        if about is None and not set([by] if isinstance(by, str) else by) <= GROUPS:
            about = self._metadata.get(ids)
        named = self._named if self._names.all() else labelled
        return counts(self.index.view(), wanted, named=named, by=by, speaker=speaker, ids=ids, about=about)

    def _here(self, ids: str | Iterable[str] | None) -> list[str] | None:
        """Identifiers of transcripts; what was mistyped is not taken for what says nothing."""
        if ids is None:
            return None
        wanted = identifiers(ids)
        known = self.index.view().known
        for transcript_id in wanted:
            if transcript_id not in known and not self._archive.has(transcript_id):
                raise self._archive.missing(transcript_id)
        return wanted

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "index"}  # a copy opens its own

    def _named(self, table: pa.Table) -> pa.Table:
        return with_names(table, self._names.all())

    @cached_property
    def index(self) -> SearchIndex:
        """The search index; loaded when it is first used."""
        from voxframe.corpus.search.index import SearchIndex

        return SearchIndex(self._archive.store, lambda transcript_id: self._archive.table("words", transcript_id))
