"""Search over a corpus: occurrences in context, sentences by meaning, and counts per group."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa

from voxframe._arrow import DTYPES, takes_frames
from voxframe.analysis.grouping import people_of
from voxframe.analysis.rows import add_recordings
from voxframe.corpus.archive import Archive, in_session
from voxframe.corpus.conditions import Wanted, Where, is_named, with_ids, without_person
from voxframe.corpus.metadata import apart, join, metadata_table, resolve
from voxframe.corpus.people import named_rows, people_of_rows, valid_names
from voxframe.corpus.query import Query
from voxframe.corpus.search.concordance import (
    GROUPS,
    SearchQuery,
    counts,
    find_in_context,
    group_columns,
    labelled,
    speaker_list,
)
from voxframe.corpus.search.index import OpenIndex, SearchIndex
from voxframe.corpus.search.meaning import CLOSE, DiscoveredTopics, MeaningSearch
from voxframe.errors import CorpusWarning, OptionError, caller
from voxframe.frames import to_pandas
from voxframe.schema import CONCORDANCE, CORPUS_TABLES, SENTENCE_MATCHES, Table
from voxframe.validators import Integer, Number, checked, nearest

_SHOWN = 10  # speakers named in one warning


class RowFilter(NamedTuple):
    """The rows that a search returns, and the columns that it adds to them; `Corpus.search` describes them."""

    speaker: Sequence[str] | None = None
    ids: Iterable[str] | None = None
    where: Where | None = None
    limit: int | None = None
    metadata: Wanted = False


class Search:
    """Search over the words of a corpus. `Corpus` describes the methods."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._query = archive, Query(archive)

    @cached_property
    def index(self) -> SearchIndex:
        """The search index; loaded when it is first used."""
        return SearchIndex(self._archive)

    def _view(self, *, corrected: bool) -> OpenIndex:
        """Return the index. With corrected=False, it has the words of the service instead of the corrected ones."""
        view = self.index.view()
        edited = [] if corrected else [i for i in self._archive.edits.hashes() if i in view.known]
        return view.replaced({i: self._archive.table("words", i) for i in edited}) if edited else view

    @cached_property
    def meaning(self) -> MeaningSearch:
        """Search by meaning; loaded when it is first used."""
        return MeaningSearch(self._archive)

    def has(self, transcript_id: str) -> bool:
        """Return True if a file of an index holds a transcript."""
        return any([self.index.has(transcript_id), self.meaning.has(transcript_id)])

    def purge(self, transcript_id: str) -> None:
        """Remove a deleted transcript from all indexes."""
        self.index.purge(transcript_id)
        self.meaning.purge(transcript_id)

    def search(
        self,
        query: str | Iterable[str],
        *,
        mode: Literal["words", "meaning"] = "words",
        context: int = 8,
        slop: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        metadata: Wanted = False,
        progress: bool | None = None,
        corrected: bool = True,
        regex: bool = False,
        min_score: float | None = None,
    ) -> pd.DataFrame:
        """Find every occurrence of words or phrases, or the sentences closest in meaning, with the words around it.

        Case, accents and punctuation are ignored. An apostrophe is punctuation: `dont` and `don't` find the same
        matches, as do `bostons` and `boston's`, but `boston` finds neither. A hyphen is a space, and two words find
        their compound: `third party`, `third-party` and `thirdparty` find each other, but a space after a function word
        separates, so that `may be` does not find `maybe`. In scripts without spaces (Chinese, Japanese, Thai, Lao,
        Khmer, Burmese) any string is found: `天气` in 今天天气很好. There, the context and `counts` are in words by
        ICU's dictionaries (extra `scripts`), or in characters if it is not installed. Within a word, `*` matches any
        letters (`econom*`, `*ology`); alone, it matches any word. A phrase is matched within one transcript and
        channel, and may continue from one speaker to the next.

        The search index, stored in `search/` in the corpus, is updated first.

        With `mode="meaning"`, the query is a sentence or a few words in your own words, and the best sentences are
        returned. Closeness is the cosine of sentence vectors (all-MiniLM-L6-v2, made for English; extra `local`). It is
        computed with every sentence. Sentences of new transcripts are encoded first, which takes 2 to 4 ms each and is
        stored in `meaning/` in the corpus. You can interrupt and repeat the call. The vectors stay in memory, 1.5 kB
        per sentence.

        Args:
            query: Word or phrase of any length, or a list of them.
            mode: "words" or "meaning".
            context: Number of words to show on each side.
            slop: Match the words of a query in any order within this many words; a match contains no shorter match.
                None (default): the words in order, next to each other.
            speaker: Only matches with a first word by this speaker: a label, a name, or a list of them.
            ids: Only these transcripts.
            where: Only matching rows, filtered by metadata, `person` or any column except `left`, `match` and `right`;
                as for `table`.
            limit: Maximum number of rows; with "meaning" per query, and 20 by default.
            metadata: Metadata columns to add: a name, a list of names, or True for all.
            progress: Show a progress bar while sentences are encoded. None (default): only in an interactive session,
                after one second.
            corrected: False searches the words as the service sent them; with "words" only.
            regex: Each word of the query is a regular expression (RE2, without case) that matches whole words in the
                form in which they are compared: `colou?r`, or `(climate|weather) chang(e|es|ing)`. With "words" only.
            min_score: Least closeness of a sentence, -1 to 1. None (default): 0.2. With "meaning" only.

        Returns:
            A DataFrame with the columns of the table `concordance`, sorted by query, transcript and word. With
            "meaning", those of `sentence_matches`, which adds `sentence_idx` and `score` (cosine, 1 is the same
            meaning), sorted by query and score.

        Raises:
            OptionError: An argument is invalid, such as a query without words.
            CorpusError: A transcript is not in the corpus, or `where` is invalid.
            MissingExtraError: "meaning" needs the extra `local`.
            ModelError: "meaning" needs a model that is not on this machine; the message says how to get it.

        Warns:
            CorpusWarning: Nothing was found, because the transcripts have no words or none by these speakers.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": t, "start": 0, "end": 9} for t in "It's the Climate, change it".split()]
            >>> corpus.raw.put("a1", json.dumps({"id": "a1", "words": words}).encode())
            >>> corpus.search("climate change", context=1)[["left", "match", "right"]].to_numpy().tolist()
            [['the', 'Climate, change', 'it']]
        """
        selected = None if ids is None else self._archive.recordings.ids(ids)
        rows = RowFilter(speaker_list(speaker), selected, where, limit, metadata)
        if mode == "meaning":
            if regex:
                raise OptionError("regex is for mode='words'; leave it out with mode='meaning'")
            if slop is not None:
                raise OptionError("slop is for mode='words'; leave it out with mode='meaning'")
            if not corrected:
                raise OptionError("corrected=False is for mode='words'; a search by meaning uses the corrected text")
            least = CLOSE if min_score is None else checked("min_score", min_score, Number(-1, 1))
            hits = self._by_meaning(query, context, rows, min_score=least, progress=progress)
            return self._report(hits, rows)
        if mode != "words":
            raise OptionError(f"mode must be 'words' or 'meaning', got {mode!r}")
        if min_score is not None:
            raise OptionError("min_score is for mode='meaning'; leave it out with mode='words'")
        return self._report(
            self.find(SearchQuery.check(query, slop, regex=regex), context, rows, corrected=corrected), rows
        )

    def _report(self, hits: pd.DataFrame, rows: RowFilter) -> pd.DataFrame:
        """Return what was found. If that is nothing because there are no words, warn of the reason."""
        if hits.empty and rows.limit != 0:
            segments = self._view(corrected=True).segments
            if rows.ids is not None or not any(len(segment.word_form) for segment in segments):
                self._query.report_no_rows("words", rows.ids)
            self._report_speakers(rows.speaker)
        return hits

    def _report_speakers(self, speakers: Sequence[str] | None) -> None:
        """Warn if no words are by any of the speakers to choose."""
        segments = self._view(corrected=True).segments if speakers else ()
        if not speakers or not any(len(segment.word_form) for segment in segments):
            return
        labels: set[str] = set()
        for segment in segments:
            labels.update(segment.span_speaker.drop_null().unique().to_pylist())
        for of_transcript in valid_names(self._archive).values():
            labels.update(of_transcript.speakers.values(), map(of_transcript.of_turn, of_transcript.turns))
        if labels.isdisjoint(speakers):
            names = sorted(labels)
            tail = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            listed = f"{', '.join(names[:_SHOWN])}{tail}"
            there = f"the labels and names are {listed}" if names else "no words have a speaker"
            warnings.warn(
                f"no words are by the speaker {' or '.join(map(repr, speakers))}{nearest(speakers[0], names)}; {there}",
                CorpusWarning,
                stacklevel=caller(),
            )

    @in_session
    def find(
        self,
        query: SearchQuery,
        context: int,
        rows: RowFilter,
        *,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return the occurrences of a query as the table `concordance`, with metadata."""
        (speaker, ids, where, limit, metadata), about = self._resolved(CONCORDANCE, rows)
        view = self._view(corrected=corrected)
        named = partial(named_rows, self._archive)
        hits = find_in_context(view, query, context, named=named, speaker=speaker, ids=ids, where=where, limit=limit)
        return self._with_recordings(CONCORDANCE, hits, about, metadata)

    def similar(
        self,
        sentence: str | pd.Series[Any],
        *,
        context: int = 8,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        metadata: Wanted = False,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Find the sentences that say about the same as another sentence.

        Args:
            sentence: The text of a sentence, or a row of `search(mode="meaning")` or of the table `sentences`, which is
                then left out of the result.
            context: As for `search`.
            speaker: As for `search`.
            ids: As for `search`.
            where: As for `search`.
            limit: Maximum number of rows. None (default): 20.
            metadata: As for `search`.
            progress: As for `search`.

        Returns:
            A DataFrame with the columns of the table `sentence_matches`, the closest sentence first.

        Raises:
            VoxframeError: As for `search` with `mode="meaning"`.

        Example:
            >>> found = corpus.search("people complain about the price", mode="meaning")  # doctest: +SKIP
            >>> more = corpus.similar(found.iloc[0])  # doctest: +SKIP
        """
        rows = RowFilter(speaker_list(speaker), ids, where, limit, metadata)
        text: Any = sentence
        without = None
        if isinstance(sentence, pd.Series):
            if missing := {"transcript_id", "sentence_idx"} - {*sentence.index}:
                raise OptionError(
                    f"the row has no {min(missing)}; pass a row of search(mode='meaning') or of the table "
                    "sentences, or the text of a sentence"
                )
            text = sentence.get("match", sentence.get("text"))
            place = checked("sentence_idx", sentence["sentence_idx"], Integer(0))
            without = (str(sentence["transcript_id"]), place)
        return self._by_meaning(text, context, rows, without=without, progress=progress)

    def _by_meaning(
        self,
        queries: str | Iterable[str],
        context: int,
        rows: RowFilter,
        *,
        min_score: float | None = None,
        without: tuple[str, int] | None = None,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Return the sentences closest to queries as the table `sentence_matches`, with metadata."""
        (speaker, ids, where, limit, metadata), about = self._resolved(SENTENCE_MATCHES, rows)
        hits = self.meaning.find(
            queries,
            context,
            speaker=speaker,
            ids=ids,
            where=where,
            limit=limit,
            min_score=min_score,
            without=without,
            progress=progress,
        )
        return self._with_recordings(SENTENCE_MATCHES, hits, about, metadata)

    def _with_recordings(self, table: Table, hits: pa.Table, about: pa.Table | None, metadata: Wanted) -> pd.DataFrame:
        """Return matches as a DataFrame with the names of their recordings, and with metadata."""
        frame = to_pandas(self._archive.recordings.add_to(hits, table.name), table.name)
        return self._with_columns(frame, about, metadata)

    def _with_columns(self, frame: pd.DataFrame, about: pa.Table | None, metadata: Wanted) -> pd.DataFrame:
        """Return matches with metadata, and with `person` if it is requested."""
        about_columns, person = without_person(metadata)
        frame = frame if about is None else join(frame, about, about_columns)
        return frame.assign(person=people_of_rows(self._archive, frame)) if person else frame

    def discover_topics(
        self,
        topics: int | None = None,
        *,
        ids: str | Iterable[str] | None = None,
        speaker: str | Iterable[str] | None = None,
        where: Where | None = None,
        words: int = 10,
        seed: int = 0,
        metadata: Wanted = False,
        progress: bool | None = None,
    ) -> DiscoveredTopics:
        """Group the sentences of the corpus by meaning, and name each group by its typical words.

        Sentences of at least four words are grouped by spherical k-means over their vectors; see
        `search(mode="meaning")` for how they are made. Typical words have the highest class-based TF-IDF; English
        function words are left out. Sources: I. Dhillon and D. Modha, 2001; M. Grootendorst, "BERTopic", 2022. The same
        sentences and seed give the same topics.

        Args:
            topics: Number of topics. None (default): the square root of half the number of sentences, at most 30.
            ids: Only sentences of these transcripts.
            speaker: Only sentences by this speaker: a label, a name, or a list of them.
            where: Only matching sentences, as for `search`.
            words: Number of typical words per topic.
            seed: Seed of the random numbers.
            metadata: Metadata columns to add to the sentences.
            progress: As for `search`.

        Returns:
            Two DataFrames: `topics` with `topic_idx`, `words`, `sentences`, `share` and the most central sentence; and
            `sentences` with the `topic_idx` of each sentence and its `score`, the cosine with the centre of the topic.

        Raises:
            OptionError: An argument is invalid, or there are fewer sentences than topics.
            VoxframeError: As for `search` with `mode="meaning"`.

        Example:
            >>> found = corpus.discover_topics(12, metadata="customer")  # doctest: +SKIP
            >>> pd.crosstab(found.sentences["customer"], found.sentences["topic_idx"])  # doctest: +SKIP
        """
        rows, about = self._resolved(SENTENCE_MATCHES, RowFilter(speaker_list(speaker), ids, where, metadata=metadata))
        discovered = self.meaning.topics(topics, rows.ids, rows.speaker, rows.where, words, seed, progress)
        return discovered._replace(
            sentences=self._with_columns(self._with_names(discovered.sentences), about, rows.metadata)
        )

    def _resolved(self, table: Table, rows: RowFilter) -> tuple[RowFilter, pa.Table | None]:
        """Return the filter with checked ids and without conditions on metadata, and the metadata if they are used."""
        selected = self._known(rows.ids)
        where = with_ids(rows.where, self._archive.recordings.id)
        if not is_named(table.name, None, where, rows.metadata):
            return rows._replace(ids=selected, where=where), None
        about = apart(metadata_table(self._archive, selected), table.names)
        where, possible = resolve(table.name, where, about)
        about = apart(about, CORPUS_TABLES[table.name].names)
        return rows._replace(ids=selected if possible is None else sorted(possible), where=where), about

    @in_session
    @takes_frames
    def counts(
        self,
        query: str | Iterable[str],
        *,
        by: str | Sequence[str] = "transcript_id",
        slop: int | None = None,
        speaker: str | Iterable[str] | None = None,
        ids: str | Iterable[str] | None = None,
        about: pd.DataFrame | None = None,
        limit: int | None = None,
        corrected: bool = True,
        regex: bool = False,
    ) -> pd.DataFrame:
        """Count occurrences of words or phrases by transcript, speaker or any other group.

        Args:
            query: Word or phrase, or a list of them; see `search`.
            by: Columns to group by: "transcript_id", "recording", "speaker", "person", "speaker_name", "channel", and
                columns of the metadata or of `about`. An empty sequence returns one total. A match belongs to the
                speaker of its first word. "speaker" is a label within a transcript, so it adds "transcript_id".
                "person" is one in all recordings (`corpus.speakers.assign`); a label without a person is a group of its
                own, such as "call · A".
            slop: Maximum span of a match in words, in any order; see `search`.
            speaker: Count only words by this speaker: a label, a name, or a list of them.
            ids: Count only in these transcripts. None (default): all transcripts.
            about: DataFrame with `transcript_id` and columns to group by, used instead of the metadata.
            limit: Maximum number of rows: those with the most occurrences, most first. None (default): all rows, sorted
                by query and group.
            corrected: False counts the words as the service sent them.
            regex: As for `search`.

        Returns:
            One row per query and group, including groups without matches: `term`, the columns of `by`, `occurrences`
            int64, `words` int64 (of the group, with a letter or a digit, as `search` counts context) and `per_1000`
            float64 (occurrences per 1,000 words; NaN if the group has no words).

        Raises:
            OptionError: An argument is invalid.
            CorpusError: A transcript is not in the corpus.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": t, "start": 0, "end": 9} for t in "Yes. No. Yes!".split()]
            >>> corpus.raw.put("a1", json.dumps({"id": "a1", "words": words}).encode())
            >>> corpus.counts("yes")[["transcript_id", "occurrences", "words"]].to_numpy().tolist()
            [['a1', 2, 3]]
        """
        limit = None if limit is None else checked("limit", limit, Integer(0))
        ids, speaker = self._known(ids), speaker_list(speaker)
        if about is None and not set(by := group_columns(by)) <= GROUPS:
            about = metadata_table(self._archive, ids).to_pandas(types_mapper=DTYPES.get)
        named = partial(named_rows, self._archive) if valid_names(self._archive) else labelled
        table = counts(
            self._view(corrected=corrected),
            SearchQuery.check(query, slop, regex=regex),
            by=by,
            named=named,
            speaker=speaker,
            ids=ids,
            about=about,
            people=self._person,
        )
        if not table["words"].any():
            self._query.report_no_rows("words", ids)
            self._report_speakers(speaker)
        if limit is not None:
            table = table.sort_values("occurrences", ascending=False, kind="stable").head(limit).reset_index(drop=True)
        return self._with_names(table) if "transcript_id" in table else table

    def _with_names(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the column `recording`."""
        table = table.copy(deep=False)
        add_recordings(table, self._archive.recordings.names(table["transcript_id"].dropna().unique().tolist()))
        return table

    def _person(self, cells: pd.DataFrame) -> pd.Series[str]:
        """Return the person of each row; for a label without a person, the label with the recording."""
        return people_of(self._with_names(cells).assign(person=people_of_rows(self._archive, cells)))

    def _known(self, ids: Iterable[str] | None) -> list[str] | None:
        """Return the ids as a list, after checking that each is in the corpus."""
        self._archive.report_missing()
        if ids is None:
            return None
        selected = self._archive.recordings.ids(ids)
        for transcript_id in selected:
            if not self._archive.has(transcript_id):
                raise self._archive.missing(transcript_id)
        return selected
