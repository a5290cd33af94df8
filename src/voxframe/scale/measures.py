"""Measures, counts and search on Dask DataFrames of words or turns, with the results that one machine gives.

Every partition must hold whole transcripts, as those of `Corpus.to_dask` and `read_payloads` do. Each partition is
processed on its own; only the results are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from voxframe import analysis, frames
from voxframe.analysis.grouping import PERIODS, By, Calendar, periods
from voxframe.analysis.vocabulary import sorted_counts
from voxframe.corpus.search.concordance import SearchQuery, find_in_context, labelled, speaker_list
from voxframe.corpus.search.counts import GROUPS, group_columns
from voxframe.corpus.search.counts import counts as count_words
from voxframe.corpus.search.index import OpenIndex
from voxframe.corpus.search.segment import IndexSegment, build
from voxframe.errors import OptionError
from voxframe.schema import CONCORDANCE, SPEAKER_NAME, WORDS
from voxframe.validators import shown

if TYPE_CHECKING:
    import dask.dataframe as dd

_INDEXED = ["transcript_id", "word_idx", "utterance_idx", "text", "start_ms", "end_ms", "speaker", "channel"]
#: Columns of a word that determine the name of its speaker.
_WHO = ["transcript_id", "speaker", "channel", "utterance_idx"]


def talk_time(spoken: dd.DataFrame) -> pd.DataFrame:
    """Return the talk time of each speaker per transcript, like `voxframe.analysis.talk_time`.

    Args:
        spoken: Turns or words, such as `corpus.to_dask("utterances")`.

    Returns:
        The columns of `voxframe.analysis.talk_time`, sorted by transcript.
    """
    return each(spoken, analysis.talk_time)


def each(frame: dd.DataFrame, measure: Callable[..., pd.DataFrame], **options: Any) -> pd.DataFrame:
    """Compute a measure of `voxframe.analysis` that has one or more rows per transcript, such as `turn_statistics`.

    A partition holds whole transcripts, so the result is exact. To sum up over groups of transcripts, pass it to
    `voxframe.analysis.rates` or `compare_groups`.

    Args:
        frame: Words, turns or another table, such as `corpus.to_dask("words")`.
        measure: Function of a DataFrame whose result has the column `transcript_id`.
        **options: Options of the function.

    Returns:
        The rows of all transcripts, sorted by transcript.

    Raises:
        OptionError: `frame` is not a Dask DataFrame, or `measure` is not such a function.
    """
    _check(frame)
    if not callable(measure):
        raise OptionError(f"each needs a function such as voxframe.analysis.turn_statistics, got {shown(measure)}")
    meta = measure(frame._meta, **options)
    if "transcript_id" not in getattr(meta, "columns", ()):
        raise OptionError("each needs a measure by transcript_id, whose rows belong to one transcript each")
    result = _map(frame, lambda part: measure(part, **options), meta)
    return result.sort_values("transcript_id", kind="stable", ignore_index=True)


def ngrams(words: dd.DataFrame, n: int = 1, by: By = None) -> pd.DataFrame:
    """Count words, or sequences of n words, by group, like `voxframe.analysis.ngrams`.

    Args:
        words: Words, such as `corpus.to_dask("words")`, with metadata merged into them.
        n: Number of words in a sequence.
        by: Names of columns to group by.

    Returns:
        The table of `voxframe.analysis.ngrams`: counts of partitions are added, so it is exact.

    Raises:
        OptionError: A group is unknown.
    """
    _check(words)
    meta = analysis.ngrams(words._meta, n, by)
    result = _map(words, lambda part: analysis.ngrams(part, n, by), meta)
    names = list(meta.columns[:-2])
    sums = result.groupby(names, dropna=False, sort=True, observed=True)[["count", "transcripts"]].sum().reset_index()
    return sorted_counts(sums.astype(meta.dtypes.to_dict()), names[:-1])


def search(
    words: dd.DataFrame,
    query: str | Iterable[str],
    *,
    context: int = 8,
    slop: int | None = None,
    speaker: str | Iterable[str] | None = None,
) -> pd.DataFrame:
    """Find every occurrence of words or phrases, like `Corpus.search`, without a search index.

    Args:
        words: Words, such as `corpus.to_dask("words")`.
        query: Word or phrase, or a list of them; see `Corpus.search`.
        context: Number of words to show on each side.
        slop: Maximum span of a match in words, in any order; see `Corpus.search`.
        speaker: Only matches with a first word by this speaker: a label, a name, or a list of them.

    Returns:
        The table `concordance`, sorted by query, transcript and word. Unlike the result of `Corpus.search`, it has no
        names of recordings.

    Raises:
        OptionError: An argument is invalid.
    """
    search_query = SearchQuery.check(query, slop)
    speaker = speaker_list(speaker)

    def find(part: pd.DataFrame) -> pd.DataFrame:
        hits = find_in_context(_index(part), search_query, context=context, named=_namer(part), speaker=speaker)
        return frames.to_pandas(hits, "concordance")

    hits = _map(_needed(words), find, frames.to_pandas(CONCORDANCE.empty, "concordance"))
    return _ordered(hits, search_query.texts, ["transcript_id", "word_idx", "last_word_idx"])


def counts(
    words: dd.DataFrame,
    query: str | Iterable[str],
    *,
    by: str | Sequence[str] = "transcript_id",
    slop: int | None = None,
    speaker: str | Iterable[str] | None = None,
    about: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Count occurrences of words or phrases, like `Corpus.counts`, without a search index.

    Args:
        words: Words, such as `corpus.to_dask("words")`. Transcripts without words are not counted.
        query: Word or phrase, or a list of them; see `Corpus.search`.
        by: Columns to group by; see `Corpus.counts`. Any column of `words` is allowed; a phrase lies within one group.
            An empty sequence returns one total.
        slop: Maximum span of a match in words, in any order; see `Corpus.search`.
        speaker: Count only words by this speaker: a label, a name, or a list of them.
        about: DataFrame with `transcript_id` and columns to group by, such as `corpus.metadata.get()`.

    Returns:
        The columns of `Corpus.counts` without `recording`, sorted by query and group.

    Raises:
        OptionError: An argument is invalid.
    """
    search_query = SearchQuery.check(query, slop)
    groups = group_columns(by)
    speaker = speaker_list(speaker)

    columns = list(getattr(words, "columns", ()))
    given = [] if about is None else list(about.columns)
    for name in groups:
        is_period = about is None and name in PERIODS and name not in columns  # else of a date in `about`
        if is_period or (isinstance(name, Calendar) and name in columns and name not in given):
            dates = words.map_partitions(periods, name, meta=periods(words._meta, name))
            words, columns = words.assign(**{str(name): dates}), [*columns, str(name)]
    periods_of_about = () if about is None else PERIODS
    if unknown := [name for name in groups if name not in {*GROUPS, *columns, *given, *periods_of_about}]:
        known = ", ".join(dict.fromkeys([*columns, *given]))
        raise OptionError(f"by must name columns among {known}, got {unknown[0]!r}; about= gives more columns")
    apart = [name for name in groups if name not in GROUPS and (about is None or name not in about)]
    apart = [name for name in apart if name in getattr(words, "columns", ())]  # columns of the words themselves
    rest = [name for name in groups if name not in apart]

    def count_all(part: pd.DataFrame) -> pd.DataFrame:
        return count_words(_index(part), search_query, named=_namer(part), by=rest, speaker=speaker, about=about)

    def count(part: pd.DataFrame) -> pd.DataFrame:
        if not apart:
            return count_all(part)
        parts = [
            count_all(rows).assign(**{name: rows[name].iloc[0] for name in apart})
            for _, rows in part.groupby(apart, dropna=False, observed=True)
        ]
        empty = count_all(part[:0])
        empty = pd.concat([empty, part[apart][:0]], axis=1)
        return pd.concat(parts)[empty.columns].astype(empty.dtypes.to_dict()) if parts else empty

    needed = _needed(words, apart)
    result = _map(needed, count, count(needed._meta))
    sums = result.groupby(["term", *groups], dropna=False, observed=True, sort=True)[["occurrences", "words"]].sum()
    sums = _ordered(sums.reset_index(), search_query.texts, [])
    return sums.assign(per_1000=1000 * sums["occurrences"] / sums["words"].where(sums["words"] > 0))


def _map(frame: dd.DataFrame, function: Callable[[pd.DataFrame], pd.DataFrame], meta: pd.DataFrame) -> pd.DataFrame:
    """Return the results of a function for all partitions."""
    mapped: Any = frame.map_partitions(function, meta=meta, enforce_metadata=False)
    result: pd.DataFrame = mapped.compute().astype(meta.dtypes.to_dict())
    return result


def _check(frame: object) -> None:
    """Raise an OptionError unless the argument is a Dask DataFrame."""
    if not hasattr(frame, "map_partitions"):
        raise OptionError(
            "voxframe.scale needs a Dask DataFrame, such as corpus.to_dask('words'), not one of type "
            f"{type(frame).__name__}; "
            "for a DataFrame in memory use voxframe.analysis, or Corpus.search and Corpus.counts"
        )


def _needed(words: dd.DataFrame, more: Sequence[str] = ()) -> dd.DataFrame:
    _check(words)
    if missing := [name for name in _INDEXED if name not in words.columns]:
        raise OptionError(
            f"search and counts need a frame of words, such as corpus.to_dask('words'); this one lacks "
            f"{', '.join(missing)}"
        )
    return words[[name for name in [*_INDEXED, SPEAKER_NAME.name, *more] if name in words.columns]]


def _ordered(found: pd.DataFrame, texts: Sequence[str], by: list[str]) -> pd.DataFrame:
    """Sort rows by the position of their query, then by other columns."""
    place = found["term"].map({text: n for n, text in enumerate(texts)})
    order = np.lexsort([*(found[name].to_numpy() for name in reversed(by)), place.to_numpy()])
    return found.iloc[order].reset_index(drop=True)


def _index(words: pd.DataFrame) -> OpenIndex:
    """Return a search index of some transcripts, in memory."""
    schema = pa.schema([WORDS.arrow.field(name) for name in _INDEXED])
    words = words.sort_values(["transcript_id", "word_idx"], kind="stable")
    table = pa.Table.from_pandas(words[_INDEXED], schema, preserve_index=False)
    ids, starts = np.unique(words["transcript_id"].to_numpy(), return_index=True)
    limits = zip(starts, [*starts[1:], len(words)], strict=False)
    tables = {str(i): table.slice(start, stop - start) for i, (start, stop) in zip(ids, limits, strict=False)}
    segment = IndexSegment(build(tables))
    return OpenIndex((segment,), (np.arange(len(tables)),), pa.array(list(tables), pa.string()))


def _namer(words: pd.DataFrame) -> Callable[[pa.Table], pa.Table]:
    """Return a function that adds the names of speakers in a DataFrame of words to another table."""
    if SPEAKER_NAME.name not in words.columns:
        return labelled
    known = words[[*_WHO, SPEAKER_NAME.name]].drop_duplicates(_WHO)

    def named(table: pa.Table) -> pa.Table:
        rows: Any = table.select(_WHO).to_pandas().astype(known.dtypes[_WHO].to_dict())
        names = pa.array(rows.merge(known, how="left", on=_WHO)[SPEAKER_NAME.name], pa.string(), from_pandas=True)
        return table.add_column(table.column_names.index("speaker") + 1, SPEAKER_NAME.name, names)

    return named
