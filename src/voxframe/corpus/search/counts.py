"""Counts of words and phrases per group, from the search index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from voxframe._arrow import TEXT
from voxframe.analysis.grouping import PERIODS, Calendar, periods
from voxframe.corpus.metadata import names_apart
from voxframe.corpus.search.concordance import Namer, SearchQuery, find, labelled, wanted_ranks
from voxframe.corpus.search.index import OpenIndex
from voxframe.corpus.search.segment import IndexSegment, Ints
from voxframe.errors import OptionError
from voxframe.validators import shown

_OF_WORDS = ("speaker", "speaker_name", "channel")
#: Columns to group by that need no metadata.
GROUPS = frozenset({"transcript_id", "person", *_OF_WORDS})
#: Columns that every result has, or that are needed to make it.
_OWN = frozenset({"term", "occurrences", "words", "per_1000", "rank", "utterance_idx", *_OF_WORDS})
_VOICE = ("speaker", "channel")
#: Columns that determine the name of a speaker.
_FINEST = (*_VOICE, "utterance_idx")
_WHO = pa.schema(
    [(name, pa.string()) for name in ("transcript_id", "speaker", "channel")] + [("utterance_idx", pa.int64())]
)


def group_columns(by: str | Sequence[str]) -> list[str]:
    """Return the columns to group by as a list. Labels belong to a transcript, so "speaker" adds "transcript_id"."""
    several = [by] if isinstance(by, str) or not isinstance(by, Iterable) else list(by)
    several = [Calendar(name) if isinstance(name, pd.Grouper) else name for name in several]
    if not all(isinstance(name, str) for name in several):
        raise OptionError(f"by must be a column or a list of columns, [] for one total, got {shown(by)}")
    groups = list(dict.fromkeys(several))
    return ["transcript_id", *groups] if "speaker" in groups and "transcript_id" not in groups else groups


def check_about(about: object) -> None:
    """Check metadata to group by, as given by the user; None is allowed."""
    if about is None:
        return
    if not isinstance(about, pd.DataFrame) or "transcript_id" not in about.columns:
        raise OptionError("about must be a DataFrame with a column transcript_id and columns to group by")
    if len(twice := about.columns[about.columns.duplicated()]):
        raise OptionError(f"about has the column {twice[0]!r} more than once; rename or drop one")
    ids = about["transcript_id"]
    if invalid := [value for value in ids.dropna() if not isinstance(value, str)]:
        raise OptionError(f"the column transcript_id of about must contain text, got {shown(invalid[0])}")
    differing = about.loc[ids.duplicated(keep=False)].drop_duplicates()["transcript_id"]
    if differing.duplicated().any():
        raise OptionError(
            f"about has different rows for the transcript {differing[differing.duplicated()].iloc[0]!r}; keep one"
        )


def counts(
    view: OpenIndex,
    query: SearchQuery,
    *,
    by: str | Sequence[str],
    named: Namer = labelled,
    speaker: Sequence[str] | None = None,
    ids: str | Iterable[str] | None = None,
    about: pd.DataFrame | None = None,
    people: Callable[[pd.DataFrame], pd.Series[str]] | None = None,
) -> pd.DataFrame:
    """Count each term per group; see `group_columns`."""
    groups = group_columns(by)
    check_about(about)
    if about is not None:
        allowed = _OWN if people is None else _OWN | {"person"}
        about = about.set_axis(names_apart(list(about.columns), allowed), axis=1)
        for name in groups:
            if isinstance(name, Calendar) or (name in PERIODS and name not in about.columns):
                about = about.assign(**{name: periods(about, name)})
    known = [
        "transcript_id",
        *_OF_WORDS,
        *([] if people is None else ["person"]),
        *(() if about is None else about.columns.drop("transcript_id")),
    ]
    unknown = [name for name in groups if name not in known]
    if unknown:
        advice = "about gives more columns" if people is None else "corpus.metadata.set adds columns"
        raise OptionError(f"by must name columns among {', '.join(known)}, got {unknown[0]!r}; {advice}")
    ranks = wanted_ranks(view, ids)
    if groups == ["transcript_id"] and speaker is None:
        return _by_transcript(view, ranks, query)
    by_speaker = speaker is not None or "speaker_name" in groups
    by_person = "person" in groups
    by_name = by_speaker and named is not labelled
    by_label = not (by_name or by_person)
    voices = tuple(n for n in _VOICE if n in groups or (n == "speaker" and by_speaker))
    any_transcript = bool(voices) and set(groups) <= set(_OF_WORDS) and by_label
    cells_of = partial(_cells, finest=() if by_label else _FINEST)
    if voices and by_label:
        cells_of = partial(_voices, finest=voices, apart=not any_transcript)
    cells = pd.concat(
        [cells_of(segment, rank, query) for segment, rank in zip(view.segments, ranks, strict=True)]
        or [pd.DataFrame(columns=["rank", *_FINEST, "words", *range(len(query.texts))])],
        ignore_index=True,
    )
    if not any_transcript:
        cells["transcript_id"] = _text(view.ids.take(pa.array(cells.pop("rank"), pa.int64())))
    if by_name:
        who = pa.Table.from_pandas(cells[["transcript_id", *_FINEST]], schema=_WHO, preserve_index=False)
        cells["speaker_name"] = named(who)["speaker_name"].to_pandas(types_mapper={pa.string(): TEXT}.get).array
    elif by_speaker:
        cells["speaker_name"] = cells["speaker"]
    if by_person and people is not None:
        cells["person"] = people(cells)
    if speaker is not None:
        cells = cells[cells["speaker"].isin(speaker) | cells["speaker_name"].isin(speaker)]
    if about is not None and not any_transcript:
        cells = cells.merge(about.drop_duplicates("transcript_id"), how="left", on="transcript_id")
    return _sum(cells, groups, query.texts)


def _by_transcript(view: OpenIndex, ranks: Sequence[Ints], query: SearchQuery) -> pd.DataFrame:
    """Count per transcript, the usual case, without grouping."""
    words = np.full(len(view.ids), -1)
    totals = np.zeros((len(query.texts), len(view.ids)), np.int64)
    for segment, rank in zip(view.segments, ranks, strict=True):
        live = rank >= 0
        words[rank[live]] = segment.words_in(segment.doc_token)[live]
        for n, terms in enumerate(query.terms):
            first, _ = find(segment, terms, query.slop)
            totals[n, rank[live]] = np.diff(np.searchsorted(first, segment.doc_token))[live]
    mask = words >= 0
    names = pa.chunked_array([view.ids.filter(pa.array(mask)).cast(pa.large_string())])
    number = np.repeat(np.arange(len(query.texts)), len(names))
    count, of_all = totals[:, mask].ravel(), np.tile(words[mask], len(query.texts))
    texts = pa.chunked_array([pa.array(query.texts, pa.large_string()).take(pa.array(number))])
    return pd.DataFrame(
        {
            "term": TEXT.__from_arrow__(texts),
            "transcript_id": TEXT.__from_arrow__(pa.chunked_array(names.chunks * len(query.texts), pa.large_string())),
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
    cells = pd.DataFrame({"rank": rank[document], "words": segment.words_in(first_token)})
    for name in finest:
        column: pa.Array = getattr(segment, f"span_{name}")
        cells[name] = column.to_pandas().astype("Int64" if name == "utterance_idx" else TEXT)
    for n, terms in enumerate(query.terms):
        first, _ = find(segment, terms, query.slop)
        cells[n] = np.diff(np.searchsorted(first, first_token))
    return cells[cells["rank"] >= 0]


def _voices(
    segment: IndexSegment, rank: Ints, query: SearchQuery, finest: tuple[str, ...], *, apart: bool
) -> pd.DataFrame:
    """Count per speaker and channel, in each document or in all together, with what the segment caches."""
    voices = segment.voices(finest)
    live = rank[voices.doc] >= 0
    code, group = voices.code[live], np.arange(np.count_nonzero(live))
    cells: dict[Any, Any] = {"rank": rank[voices.doc[live]]}
    if not apart:
        code, group = np.unique(code, return_inverse=True)
        cells = {}
    places = np.unravel_index(code, [max(1, len(values)) for values in voices.values])
    for name, values, place in zip(finest, voices.values, places, strict=True):
        cells[name] = _text(values.take(pa.array(place)))
    cells["words"] = np.bincount(group, voices.words[live], len(code)).astype(np.int64)
    for n, terms in enumerate(query.terms):
        first, _ = find(segment, terms, query.slop)
        of_docs = np.diff(np.searchsorted(first, segment.doc_token))
        totals = np.bincount(np.repeat(voices.first, of_docs) + voices.of_token[first], minlength=len(live))
        cells[n] = np.bincount(group, totals[live], len(code)).astype(np.int64)
    return pd.DataFrame(cells)


def _sum(cells: pd.DataFrame, groups: list[str], texts: Sequence[str]) -> pd.DataFrame:
    numbers = ["words", *range(len(texts))]
    if groups:
        sums = cells.groupby(groups, dropna=False, observed=True)[numbers].sum().reset_index()
    else:
        sums = cells[numbers].sum().to_frame().T
    size = len(sums)
    tables = [
        pd.DataFrame(
            {
                "term": _text(pa.array([text]).take(pa.array(np.zeros(size, int)))),
                **{name: sums[name].array for name in groups},
                "occurrences": sums[n].to_numpy("int64"),
                "words": sums["words"].to_numpy("int64"),
                "per_1000": _rate(sums[n].to_numpy("int64"), sums["words"].to_numpy("int64")),
            }
        )
        for n, text in enumerate(texts)
    ]
    table = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    dtypes = {name: TEXT for name in ("transcript_id", *_OF_WORDS) if name in groups and table[name].dtype != TEXT}
    return table.astype(dtypes) if dtypes else table


def _text(values: pa.Array) -> Any:
    """Return text as a pandas array."""
    return TEXT.__from_arrow__(pa.chunked_array([values.cast(pa.large_string())]))
