"""The part of a corpus that searches it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from voxframe import frames
from voxframe.corpus.metadata import Wanted, apart, is_named, join, resolve
from voxframe.corpus.name_files import Names
from voxframe.corpus.reading import identifiers
from voxframe.corpus.speaker_names import with_names
from voxframe.corpus.store import Store, View
from voxframe.errors import CorpusError
from voxframe.schema import CONCORDANCE

if TYPE_CHECKING:
    from voxframe.corpus.reading import Where
    from voxframe.corpus.search_index import Index


class Searches(ABC):
    """Search over the words of a corpus; `Corpus` is one of these."""

    _store: Store

    @abstractmethod
    def arrow(self, name: str, transcript_id: str) -> pa.Table:
        """One table of one transcript as Arrow."""

    @abstractmethod
    def content(self, transcript_id: str, view: View) -> str | None:
        """Hash of all that the tables of an answer are made from; None where it is not here."""

    @abstractmethod
    def _names_now(self) -> dict[str, Names]:
        """Names of every transcript that has some, by its identifier."""

    @abstractmethod
    def _absent(self, transcript_id: str, view: View) -> CorpusError:
        """What to raise where a transcript is not here."""

    @abstractmethod
    def about(self, ids: str | Iterable[str] | None = None) -> pa.Table:
        """Columns about recordings as Arrow."""

    @abstractmethod
    def metadata(self, ids: str | Iterable[str] | None = None) -> pd.DataFrame:
        """Columns about recordings."""

    def search(
        self,
        query: str | Iterable[str],
        *,
        context: int = 8,
        within: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        metadata: Wanted = False,
    ) -> pd.DataFrame:
        """Every occurrence of a word or phrase, with the words around it: keyword in context.

        Case, accents and punctuation make no difference. An apostrophe is punctuation: `dont` and `don't` find the
        same, as do `bostons` and `boston's`; `boston` finds neither (ask for both: `["boston", "boston's"]`). In a
        word, `*` stands for any letters (`econom*`, `*ology`); alone, for any word. A phrase is what was said in one
        transcript on one channel; it may go on from one speaker to the next. Apart from accents and `*`, the matches
        are those of the service's own word search.

        The search index below `search/` in the corpus is brought up to date first.

        Args:
            query: Word or phrase of any length, or several, each with rows of its own.
            context: Words to show on each side.
            within: Words of a query may come in any order, within so many words; a match is a stretch with all of
                them that holds no shorter one. None finds them next to each other in the order given.
            speaker: Only matches whose first word this speaker says, or one of these: a label, or a name that
                `name_speakers` gave.
            ids: Only in these transcripts.
            where: Only rows for which this holds, over metadata and all columns but the three texts; as for `table`.
            limit: Only the first so many rows.
            metadata: Columns about the recordings to add: names, or True for all.

        Returns:
            A DataFrame with the columns of the table `concordance`, by query, transcript and word.

        Raises:
            OptionError: An argument is wrong, such as a query with no word in it.
            CorpusError: A transcript is not here; `where` is no condition, or names a column that is not there.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": t, "start": 0, "end": 9} for t in "It's the Climate, change it".split()]
            >>> _ = corpus.put("a1", json.dumps({"id": "a1", "words": words}).encode())
            >>> corpus.search("climate change", context=1)[["left", "match", "right"]].to_numpy().tolist()
            [['the', 'Climate, change', 'it']]
        """
        from voxframe.corpus.search import Query, concordance

        wanted = Query.check(query, within)
        ids = self._here(ids)
        about = apart(self.about(ids), CONCORDANCE.names) if is_named("concordance", None, where, metadata) else None
        if about is not None:
            where, possible = resolve("concordance", where, about)
            ids = ids if possible is None else possible
        found = concordance(
            self._index.view(),
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
        within: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        about: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """How often words or phrases occur, by transcript or any other group.

        Args:
            query: Word or phrase, or several; see `search`.
            by: What to group by: "transcript_id", "speaker", "speaker_name", "channel", columns of the metadata
                (see `set_metadata`) or of `about`, several, or () for one total. A match belongs to the speaker of its
                first word.
            within: See `search`.
            speaker: Count only what this speaker says, or one of these.
            ids: Count only in these transcripts.
            about: More about the transcripts to group by, instead of the metadata: a DataFrame with `transcript_id`.

        Returns:
            One row a query and group, also where nothing was found: `query`, the columns of `by`, `count` int64,
            `words` int64 (all words of the group) and `per_1000` float64 (matches per 1,000 words, NaN where there are
            none).

        Raises:
            OptionError: An argument is wrong.
            CorpusError: A transcript is not here.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": t, "start": 0, "end": 9} for t in "Yes. No. Yes!".split()]
            >>> _ = corpus.put("a1", json.dumps({"id": "a1", "words": words}).encode())
            >>> corpus.counts("yes")[["transcript_id", "count", "words"]].to_numpy().tolist()
            [['a1', 2, 3]]
        """
        from voxframe.corpus.search import Query, labelled
        from voxframe.corpus.search_counts import GROUPS, counts

        wanted = Query.check(query, within)
        ids = self._here(ids)
        if about is None and not set([by] if isinstance(by, str) else by) <= GROUPS:
            about = self.metadata(ids)
        named = self._named if self._names_now() else labelled
        return counts(self._index.view(), wanted, named=named, by=by, speaker=speaker, ids=ids, about=about)

    def _here(self, ids: str | Iterable[str] | None) -> list[str] | None:
        """Identifiers of transcripts; what was mistyped is not taken for what says nothing."""
        if ids is None:
            return None
        wanted = identifiers(ids)
        known = self._index.view().known
        for transcript_id in wanted:
            if transcript_id not in known and self.content(transcript_id, "transcript") is None:
                raise self._absent(transcript_id, "transcript")
        return wanted

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_index"}  # a copy opens its own

    def _named(self, table: pa.Table) -> pa.Table:
        return with_names(table, self._names_now())

    @cached_property
    def _index(self) -> Index:
        from voxframe.corpus.search_index import Index

        return Index(self._store, lambda transcript_id: self.arrow("words", transcript_id))
