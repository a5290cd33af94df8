"""Search over the words of a corpus: occurrences in context, and counts per group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from voxframe._files import file_name
from voxframe.analysis.grouping import people_of
from voxframe.corpus.archive import Archive
from voxframe.corpus.correction_files import CurrentCorrections
from voxframe.corpus.metadata import Metadata, Wanted, apart, is_named, join, resolve, without_person
from voxframe.corpus.people import People
from voxframe.corpus.reading import Where, to_frame
from voxframe.corpus.recordings import in_where
from voxframe.corpus.search.concordance import Namer, SearchQuery, find, find_in_context, labelled, wanted_ranks
from voxframe.corpus.search.index import SearchIndex
from voxframe.corpus.search.manifest import OpenIndex
from voxframe.corpus.search.meaning import DiscoveredTopics, MeaningSearch
from voxframe.corpus.search.segment import IndexSegment, Ints
from voxframe.corpus.speaker_names import with_names
from voxframe.corpus.speakers import CurrentNames
from voxframe.errors import OptionError
from voxframe.schema import CONCORDANCE, CORPUS_TABLES, SENTENCE_MATCHES, Table

_OF_WORDS = ("speaker", "speaker_name", "channel")
#: Columns to group by that need no metadata.
GROUPS = frozenset({"transcript_id", "person", *_OF_WORDS})
_VOICE = ("speaker", "channel")
#: Columns that determine the name of a speaker.
_FINEST = (*_VOICE, "utterance_idx")
_TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)
_WHO = pa.schema(
    [(name, pa.string()) for name in ("transcript_id", "speaker", "channel")] + [("utterance_idx", pa.int64())]
)


class Search:
    """Search over the words of a corpus. `Corpus` describes the methods.

    Args:
        archive: The transcripts.
        names: Names of their speakers.
        metadata: Columns about the recordings.
        corrections: Corrections of the words.
        people: People across transcripts.
    """

    def __init__(
        self, archive: Archive, names: CurrentNames, metadata: Metadata, corrections: CurrentCorrections, people: People
    ) -> None:
        self._archive, self._names, self._metadata, self._corrections = archive, names, metadata, corrections
        self._people = people

    @cached_property
    def index(self) -> SearchIndex:
        """The search index; loaded when it is first used."""
        return SearchIndex(self._archive.store, self._words, self._corrections.stamps)

    def _words(self, transcript_id: str) -> pa.Table:
        """Return the corrected words of a transcript."""
        made = self._corrections.tables("words", [transcript_id])
        return made.get(transcript_id) or self._archive.table("words", transcript_id)

    def _view(self, *, corrected: bool) -> OpenIndex:
        """Return the index, in which the words of the service replace corrected ones if these are not wanted."""
        view = self.index.view()
        edited = [] if corrected else [i for i in self._corrections.edits() if i in view.known]
        return view.replaced({i: self._archive.table("words", i) for i in edited}) if edited else view

    @cached_property
    def meaning(self) -> MeaningSearch:
        """Search by meaning; loaded when it is first used."""
        return MeaningSearch(self._archive, self._named, self._corrections)

    def __getstate__(self) -> dict[str, object]:
        own = self.__dict__.items()
        return {name: value for name, value in own if name not in ("index", "meaning")}  # a copy opens its own

    def purge(self, transcript_id: str) -> None:
        """Remove a deleted transcript from all indexes."""
        self.index.purge(file_name(transcript_id))
        self.meaning.purge(transcript_id)

    def search(
        self,
        query: SearchQuery,
        context: int,
        speaker: str | Iterable[str] | None,
        ids: str | Iterable[str] | None,
        where: Where | None,
        limit: int | None,
        metadata: Wanted,
        *,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return the occurrences of a query as the table `concordance`, with metadata."""
        ids, where, about = self._resolved(CONCORDANCE, ids, where, metadata)
        view = self._view(corrected=corrected)
        found = find_in_context(
            view, query, context, named=self._named, speaker=speaker, ids=ids, where=where, limit=limit
        )
        return self._with_recordings(CONCORDANCE, found, about, metadata)

    def by_meaning(
        self,
        queries: str | Iterable[str],
        context: int,
        speaker: str | Iterable[str] | None,
        ids: str | Iterable[str] | None,
        where: Where | None,
        limit: int | None,
        metadata: Wanted,
        *,
        without: tuple[str, int] | None = None,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Return the sentences closest to queries as the table `sentence_matches`, with metadata."""
        ids, where, about = self._resolved(SENTENCE_MATCHES, ids, where, metadata)
        found = self.meaning.find(
            queries, context, speaker=speaker, ids=ids, where=where, limit=limit, without=without, progress=progress
        )
        return self._with_recordings(SENTENCE_MATCHES, found, about, metadata)

    def _with_recordings(self, table: Table, found: pa.Table, about: pa.Table | None, metadata: Wanted) -> pd.DataFrame:
        """Return matches as a DataFrame with the names of their recordings, and with metadata."""
        frame = to_frame(table.name, self._archive.recordings.add_to(found, table.name))
        return self._with_columns(frame, about, metadata)

    def _with_columns(self, frame: pd.DataFrame, about: pa.Table | None, metadata: Wanted) -> pd.DataFrame:
        """Return matches with metadata, and with `person` if it is requested."""
        rest, person = without_person(metadata)
        frame = frame if about is None else join(frame, about, rest)
        return frame.assign(person=self._people.of_rows(frame)) if person else frame

    def topics(
        self,
        topics: int | None,
        ids: str | Iterable[str] | None,
        speaker: str | Iterable[str] | None,
        where: Where | None,
        metadata: Wanted,
        words: int,
        seed: int,
        progress: bool | None,
    ) -> DiscoveredTopics:
        """Return clusters of sentences, with metadata."""
        ids, where, about = self._resolved(SENTENCE_MATCHES, ids, where, metadata)
        found = self.meaning.topics(topics, ids, speaker, where, words, seed, progress)
        return found._replace(sentences=self._with_columns(found.sentences, about, metadata))

    def _resolved(
        self, table: Table, ids: str | Iterable[str] | None, where: Where | None, metadata: Wanted
    ) -> tuple[Sequence[str] | None, Where | None, pa.Table | None]:
        """Return the ids and conditions of a search without metadata, and the metadata if they are used."""
        wanted = self._known(ids)
        where = in_where(where, self._archive.recordings.id)
        if not is_named(table.name, None, where, metadata):
            return wanted, where, None
        about = apart(self._metadata.to_arrow(wanted), table.names)
        where, possible = resolve(table.name, where, about)
        about = apart(about, CORPUS_TABLES[table.name].names)
        return wanted if possible is None else sorted(possible), where, about

    def counts(
        self,
        query: SearchQuery,
        by: str | Sequence[str],
        speaker: str | Iterable[str] | None,
        ids: str | Iterable[str] | None,
        about: pd.DataFrame | None,
        *,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return the numbers of occurrences of a query per group."""
        ids = self._known(ids)
        if about is None and not set([by] if isinstance(by, str) else by) <= GROUPS:
            about = self._metadata.get(ids)
        named = self._named if self._names.all() else labelled
        return counts(
            self._view(corrected=corrected),
            query,
            by=by,
            named=named,
            speaker=speaker,
            ids=ids,
            about=about,
            people=self._person,
        )

    def _person(self, cells: pd.DataFrame) -> pd.Series[str]:
        """Return the person of each row; for a label without a person, the label with the recording."""
        about = self._archive.recordings.table(cells["transcript_id"].unique().tolist()).to_pandas()
        recordings = cells["transcript_id"].map(about.set_index("transcript_id")["recording"])
        return people_of(cells.assign(person=self._people.of_rows(cells), recording=recordings)).astype(_TEXT)

    def _known(self, ids: str | Iterable[str] | None) -> list[str] | None:
        """Return the ids as a list, after checking that each is in the corpus."""
        self._archive.report_missing()
        if ids is None:
            return None
        wanted = self._archive.recordings.ids(ids)
        for transcript_id in wanted:
            if not self._archive.has(transcript_id):
                raise self._archive.missing(transcript_id)
        return wanted

    def _named(self, table: pa.Table) -> pa.Table:
        return self._people.add_to(with_names(table, self._names.all()))


def counts(
    view: OpenIndex,
    query: SearchQuery,
    *,
    by: str | Sequence[str],
    named: Namer = labelled,
    speaker: str | Iterable[str] | None = None,
    ids: str | Iterable[str] | None = None,
    about: pd.DataFrame | None = None,
    people: Callable[[pd.DataFrame], pd.Series[str]] | None = None,
) -> pd.DataFrame:
    """Count each term per group. Labels belong to a transcript, so that "speaker" adds "transcript_id".

    Raises:
        OptionError: An argument is invalid.
    """
    groups = [by] if isinstance(by, str) else list(by)
    if about is not None and "transcript_id" not in about.columns:
        raise OptionError("about must be a DataFrame with a column transcript_id and columns to group by")
    if "speaker" in groups and "transcript_id" not in groups:
        groups = ["transcript_id", *groups]
    known = [
        "transcript_id",
        *_OF_WORDS,
        *([] if people is None else ["person"]),
        *(() if about is None else about.columns.drop("transcript_id")),
    ]
    unknown = [name for name in groups if name not in known]
    if unknown:
        raise OptionError(
            f"by must name columns among {', '.join(known)}, got {unknown[0]!r}; corpus.metadata.set adds columns"
        )
    ranks = wanted_ranks(view, ids)
    if groups == ["transcript_id"] and speaker is None:
        return _by_transcript(view, ranks, query)
    by_speaker = speaker is not None or "speaker_name" in groups
    by_person = "person" in groups
    by_name = by_speaker and named is not labelled
    finest: Sequence[str] = [n for n in _VOICE if n in groups or (n == "speaker" and by_speaker)]
    any_transcript = bool(finest) and set(groups) <= set(_OF_WORDS) and not by_name and not by_person
    cells_of = _voices if any_transcript else _cells
    finest = _FINEST if by_name or by_person else finest
    cells = pd.concat(
        [cells_of(segment, rank, query, finest) for segment, rank in zip(view.segments, ranks, strict=True)]
        or [pd.DataFrame(columns=["rank", *finest, "words", *range(len(query.texts))])],
        ignore_index=True,
    )
    if not any_transcript:
        names = view.ids.to_pandas().astype(_TEXT)
        cells = cells.assign(transcript_id=names.take(cells.pop("rank").astype("int64")).array)
    if by_name:
        who = pa.Table.from_pandas(cells[["transcript_id", *_FINEST]], schema=_WHO, preserve_index=False)
        cells["speaker_name"] = named(who)["speaker_name"].to_pandas(types_mapper={pa.string(): _TEXT}.get).array
    elif by_speaker:
        cells["speaker_name"] = cells["speaker"]
    if by_person and people is not None:
        cells["person"] = people(cells)
    if speaker is not None:
        wanted = [speaker] if isinstance(speaker, str) else list(speaker)
        cells = cells[cells["speaker"].isin(wanted) | cells["speaker_name"].isin(wanted)]
    if about is not None and not any_transcript:
        cells = cells.merge(about.drop_duplicates("transcript_id"), how="left", on="transcript_id")
    return _sum(cells, groups, query.texts)


def _by_transcript(view: OpenIndex, ranks: Sequence[Ints], query: SearchQuery) -> pd.DataFrame:
    """Count per transcript, the usual case, without grouping."""
    words = np.full(len(view.ids), -1)
    found = np.zeros((len(query.texts), len(view.ids)), np.int64)
    for segment, rank in zip(view.segments, ranks, strict=True):
        live = rank >= 0
        words[rank[live]] = np.diff(segment.doc_word)[live]
        for n, terms in enumerate(query.terms):
            first, _ = find(segment, terms, query.slop)
            found[n, rank[live]] = np.diff(np.searchsorted(first, segment.doc_token))[live]
    wanted = words >= 0
    names = pa.chunked_array([view.ids.filter(pa.array(wanted)).cast(pa.large_string())])
    number = np.repeat(np.arange(len(query.texts)), len(names))
    count, of_all = found[:, wanted].ravel(), np.tile(words[wanted], len(query.texts))
    texts = pa.chunked_array([pa.array(query.texts, pa.large_string()).take(pa.array(number))])
    return pd.DataFrame(
        {
            "term": _TEXT.__from_arrow__(texts),
            "transcript_id": _TEXT.__from_arrow__(pa.chunked_array(names.chunks * len(query.texts), pa.large_string())),
            "occurrences": count,
            "words": of_all,
            "per_1000": _rate(count, of_all),
        }
    )


def _rate(count: Ints, words: Ints) -> npt.NDArray[np.float64]:
    return np.where(words > 0, 1000 * count / np.maximum(words, 1), np.nan)


def _cells(segment: IndexSegment, rank: Ints, query: SearchQuery, finest: Sequence[str]) -> pd.DataFrame:
    """Count words and occurrences per document, or per span of one speaker and channel."""
    if finest:
        first_word, document = np.append(segment.span_word, segment.words), segment.span_doc
        # Of one type, or searchsorted would copy the long array.
        first_token = np.searchsorted(segment.token_word, first_word.astype(segment.token_word.dtype))
    else:
        first_word, first_token, document = segment.doc_word, segment.doc_token, np.arange(len(rank))
    cells = pd.DataFrame({"rank": rank[document], "words": np.diff(first_word)})
    for name in finest:
        column: pa.Array = getattr(segment, f"span_{name}")
        cells[name] = column.to_pandas().astype("Int64" if name == "utterance_idx" else _TEXT)
    for n, terms in enumerate(query.terms):
        first, _ = find(segment, terms, query.slop)
        cells[n] = np.diff(np.searchsorted(first, first_token))
    return cells[cells["rank"] >= 0]


def _voices(segment: IndexSegment, rank: Ints, query: SearchQuery, finest: Sequence[str]) -> pd.DataFrame:
    """Count per speaker and channel over all transcripts, from sums that the segment caches."""
    voices = segment.voices(tuple(finest))
    size, words, live = len(voices.words), voices.words, rank >= 0
    if not live.all():
        kept = live[segment.span_doc]
        lengths = np.diff(segment.span_word, append=segment.words)[kept]
        words = np.bincount(voices.of_span[kept], lengths, size).astype(np.int64)
    present = np.flatnonzero(words)
    cells: dict[Any, Any] = {"words": words[present]}
    places = np.unravel_index(present, [max(1, len(values)) for values in voices.values])
    for name, values, place in zip(finest, voices.values, places, strict=True):
        cells[name] = values.take(pa.array(place)).to_pandas().astype(_TEXT)
    for n, terms in enumerate(query.terms):
        first, _ = find(segment, terms, query.slop)
        if not live.all():
            first = first[np.repeat(live, np.diff(np.searchsorted(first, segment.doc_token)))]
        cells[n] = np.bincount(voices.of_token[first], minlength=size)[present]
    return pd.DataFrame(cells)


def _sum(cells: pd.DataFrame, groups: list[str], texts: Sequence[str]) -> pd.DataFrame:
    numbers = ["words", *range(len(texts))]
    if groups:
        sums = cells.groupby(groups, dropna=False, observed=True)[numbers].sum().reset_index()
    else:
        sums = cells[numbers].sum().to_frame().T
    tables = []
    for n, text in enumerate(texts):
        table = sums[groups].copy()
        table.insert(0, "term", pd.Series([text] * len(sums), index=sums.index, dtype=_TEXT))
        table["occurrences"] = sums[n].astype("int64")
        table["words"] = sums["words"].astype("int64")
        table["per_1000"] = _rate(table["occurrences"].to_numpy(), table["words"].to_numpy())
        tables.append(table)
    return pd.concat(tables, ignore_index=True).astype(
        {name: _TEXT for name in ("transcript_id", *_OF_WORDS) if name in groups}
    )
