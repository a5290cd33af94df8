"""Keyword in context: every occurrence of a word or phrase in a corpus with the words around it, and their counts.

Words are compared without case, accents and punctuation, and a hyphen is a space. A query is a phrase, or
words near each other in any order.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from voxframe._arrow import TEXT
from voxframe._text import UNSPACED, join_words
from voxframe.analysis.grouping import PERIODS, Calendar, periods
from voxframe.analysis.search_terms import Term, Variant, parse, variants
from voxframe.corpus.conditions import Where, expression
from voxframe.corpus.metadata import names_apart
from voxframe.corpus.people import with_names
from voxframe.corpus.search.index import OpenIndex
from voxframe.corpus.search.segment import IndexSegment, Ints
from voxframe.errors import CorpusWarning, OptionError, caller
from voxframe.schema import CONCORDANCE, SPEAKER_NAME
from voxframe.validators import Integer, checked, shown, speaker_label

_TEXTS = ("left", "match", "right")
_KEYS = [name for name in CONCORDANCE.names if name not in _TEXTS]
_LAST = chr(0x10FFFF)  # sorts after every letter
#: Function that adds the column `speaker_name` to a table of words.
Namer: TypeAlias = Callable[[pa.Table], pa.Table]


def labelled(table: pa.Table) -> pa.Table:
    """Add speaker names to a table in which no speaker was renamed."""
    return with_names(table, {})


@dataclass(frozen=True)
class SearchQuery:
    """Checked search terms."""

    texts: tuple[str, ...]  # as given
    terms: tuple[list[Term], ...]  # the parsed words of each
    slop: int | None  # most words from the first to the last, in any order; None: phrases

    @classmethod
    def check(cls, queries: str | Iterable[str], slop: int | None, *, regex: bool = False) -> SearchQuery:
        """Check one term or several."""
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            queries = [queries]  # `parse` raises an error for anything but text
        terms = {text: _expressions(text) if regex else parse(text) for text in queries}
        if not regex and (other := next((text for text in terms if _OPERATORS.search(text)), None)):
            warnings.warn(
                f"{other!r} is searched as words: signs such as |, - and \\w, and OR, AND and NOT, are no operators. "
                "Pass a list of queries to find any of them, or regex=True for regular expressions of words",
                CorpusWarning,
                stacklevel=caller(),
            )
        if not terms:
            raise OptionError("there is no term to search for; pass a word or phrase, or a list of them")
        if slop is not None:
            slop = checked("slop", slop, Integer(max(map(len, terms.values()))))
        return cls(tuple(terms), tuple(terms.values()), slop)


#: What is an operator in other search engines.
_OPERATORS = re.compile(
    r"(?<=\w)\||\\[wdsb]|(?:^|\s)(?:OR|AND|NOT)(?=\s|$)|(?:^|\s)-(?=\w)|\.[*+]|\[\w+\]\w|^\^|\w\$$"
    r"|\w\+(?=\s|$|\w)|\w[\^~]\d*(?=\s|$)|^/.*/$"
)


def _expressions(query: object) -> list[Term]:
    """Return the terms of a query of regular expressions, one for each word."""
    if not isinstance(query, str) or not query.split():
        raise OptionError(f"with regex=True, a query is text with an expression for each word, got {shown(query)}")
    for part in query.split():
        try:
            pc.match_substring_regex(pa.array([""]), f"^(?:{part})$")
        except pa.ArrowInvalid as error:
            raise OptionError(f"{part!r} is not a regular expression (RE2): {error}") from None
    return [Term((part,), regex=part) for part in query.split()]


def find_in_context(
    view: OpenIndex,
    query: SearchQuery,
    context: int,
    *,
    named: Namer = labelled,
    speaker: Sequence[str] | None = None,
    ids: str | Iterable[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
) -> pa.Table:
    """Return every occurrence of a query as the table `concordance`."""
    context = checked("context", context, Integer(0))
    limit = None if limit is None else checked("limit", limit, Integer(0))
    rows_wanted = expression("concordance", where, person=True)
    ranks = wanted_ranks(view, ids)
    tables, rows = [], 0
    for n, terms in enumerate(query.terms):
        enough = None if limit is None or where is not None or speaker is not None else max(0, limit - rows)
        keys = _keys(view, ranks, terms, query.slop, enough)
        keys = keys.append_column("term", pa.array([query.texts[n]]).take(pa.array(np.zeros(len(keys), int))))
        tables.append(select_rows(named(keys), speaker, rows_wanted).slice(0, enough))
        rows += len(tables[-1])
    return _in_context(view, pa.concat_tables(tables).slice(0, limit), context)


def speaker_list(speaker: str | Iterable[str] | None) -> list[str] | None:
    """Return the speakers to choose as a list; None for all."""
    if speaker is None:
        return None
    several = list(speaker) if isinstance(speaker, Iterable) and not isinstance(speaker, str) else [speaker]
    several = [speaker_label(item) for item in several]
    if not all(isinstance(item, str) for item in several):
        raise OptionError(f"speaker must be a label or a name, or a list of them, got {shown(speaker)}")
    return several


def wanted_ranks(view: OpenIndex, ids: str | Iterable[str] | None) -> tuple[Ints, ...]:
    """Return, per segment, the rank of each document among all transcripts, -1 if it is not wanted."""
    if ids is None:
        return view.ranks
    names = pa.array([ids] if isinstance(ids, str) else list(ids), pa.string())
    is_wanted = np.append(pc.is_in(view.ids, names).to_numpy(zero_copy_only=False), False)  # and -1 finds that
    return tuple(np.where(is_wanted[rank], rank, -1) for rank in view.ranks)


def _keys(
    view: OpenIndex, ranks: Sequence[Ints], terms: Sequence[Term], slop: int | None, enough: int | None
) -> pa.Table:
    """Return all columns but the texts, and the positions of the words, sorted: at least the first `enough` rows."""
    hits = [find(segment, terms, slop) for segment in view.segments]
    per_document = [
        np.diff(np.searchsorted(first, segment.doc_token))
        for segment, (first, _) in zip(view.segments, hits, strict=True)
    ]
    last_rank = len(view.ids)
    if enough is not None:
        totals = np.zeros(len(view.ids), np.int64)
        for rank, number in zip(ranks, per_document, strict=True):
            totals[rank[rank >= 0]] = number[rank >= 0]
        last_rank = int(np.searchsorted(np.cumsum(totals), enough))
    tables = [_EMPTY]
    for n, (segment, rank, (first, last)) in enumerate(zip(view.segments, ranks, hits, strict=True)):
        mask = (rank >= 0) & (rank <= last_rank)
        if per_document[n][mask].any():
            selected = np.repeat(mask, per_document[n])
            words = segment.token_word[first[selected]], segment.token_word[last[selected]]
            tables.append(_keys_of_segment(view, n, np.repeat(rank[mask], per_document[n][mask]), *words))
    keys = pa.concat_tables(tables)
    order = np.lexsort([keys[name].to_numpy() for name in ("last_word_idx", "word_idx", "rank")])
    return keys.take(pa.array(order))


def _keys_of_segment(view: OpenIndex, n: int, rank: Ints, first: Ints, last: Ints) -> pa.Table:
    segment = view.segments[n]
    span, last_span = (np.searchsorted(segment.span_word, word, "right") - 1 for word in (first, last))
    of_span = pa.array(span)
    columns = {
        "rank": rank,
        "segment": np.full(len(rank), n),
        "first": first.astype(np.int64),
        "last": last.astype(np.int64),
        "transcript_id": view.ids.take(pa.array(rank)),
        "speaker": segment.span_speaker.take(of_span),
        "channel": segment.span_channel.take(of_span),
        "start_ms": segment.word_start_ms.take(pa.array(first)),
        "end_ms": segment.word_end_ms.take(pa.array(last)),
        "word_idx": segment.span_word_idx[span] + first - segment.span_word[span],
        "last_word_idx": segment.span_word_idx[last_span] + last - segment.span_word[last_span],
        "utterance_idx": segment.span_utterance_idx.take(of_span),
    }
    return pa.table(columns, schema=_EMPTY.schema)


_PLACES = [pa.field(name, pa.int64()) for name in ("rank", "segment", "first", "last")]
_STORED = [name for name in _KEYS if name not in ("term", SPEAKER_NAME.name)]
_EMPTY = pa.schema([*_PLACES, *(pa.field(name, CONCORDANCE.arrow.field(name).type) for name in _STORED)]).empty_table()


def select_rows(keys: pa.Table, speaker: Sequence[str] | None, where: pc.Expression | None) -> pa.Table:
    """Return the rows of matches by a speaker that meet a condition."""
    if speaker is not None:
        labels = pa.array(speaker, pa.string())
        keys = keys.filter(pc.or_(pc.is_in(keys["speaker"], labels), pc.is_in(keys["speaker_name"], labels)))
    if where is None:
        return keys
    try:
        return keys.filter(where)
    except (pa.ArrowException, TypeError, AttributeError) as e:
        raise OptionError(
            f"where must be an expression over {', '.join(_KEYS)}, such as pyarrow.compute.field('start_ms') < 60_000: "
            f"{e}"
        ) from None


def _in_context(view: OpenIndex, keys: pa.Table, context: int) -> pa.Table:
    """Add the texts, segment by segment, and order the columns."""
    number = keys["segment"].to_numpy()
    rows, texts = [], [pa.table({name: pa.array([], pa.string()) for name in _TEXTS})]
    for n in np.unique(number):
        rows.append(np.flatnonzero(number == n))
        first, last = (keys[name].to_numpy()[rows[-1]] for name in ("first", "last"))
        texts.append(_texts(view.segments[n], first, last, context))
    order = np.argsort(np.concatenate([np.empty(0, int), *rows]))
    text = pa.concat_tables(texts).take(pa.array(order, pa.int64()))
    columns = [(text if name in _TEXTS else keys)[name] for name in CONCORDANCE.names]
    return pa.table(columns, schema=CONCORDANCE.arrow)


def _texts(segment: IndexSegment, first: Ints, last: Ints, context: int) -> pa.Table:
    """Return the words before, of and after each match, from the same transcript and channel."""
    run = np.searchsorted(segment.run_word, first, "right")
    begin, end = segment.around(first, last, context)
    begin, end = np.maximum(segment.run_word[run - 1], begin), np.minimum(segment.run_word[run], end)
    edges = ((begin, first), (first, last + 1), (last + 1, end))
    return pa.table(dict(zip(_TEXTS, (_join(segment, *edge) for edge in edges), strict=True)))


def _join(segment: IndexSegment, begin: Ints, end: Ints) -> pa.Array:
    lengths = end - begin
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    words = np.repeat(begin - offsets[:-1], lengths) + np.arange(offsets[-1])
    texts = segment.forms.take(pa.array(segment.word_form[words]))
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts), " ")
    if not pc.any(pc.match_substring_regex(joined, f"{UNSPACED} {UNSPACED}")).as_py():
        return joined
    return pa.array([join_words([text]) for text in joined.to_pylist()], pa.string())


def find(segment: IndexSegment, terms: Sequence[Term], slop: int | None = None) -> tuple[Ints, Ints]:
    """Return the first and last token of every match, in order."""
    if slop is not None:
        first, last = _near(segment, terms, slop)
        return _within_runs(segment, first, last) if len(terms) > 1 else (first, last)
    first, last = _phrase_matches(segment, terms)
    others = [
        _hyphenated(segment, variant, *_phrase_matches(segment, variant.terms))
        for variant in variants(terms, lambda word: bool(len(_matching_keys(segment, Term((word,))))))
    ]
    if not sum(len(begin) for begin, _ in others):
        return first, last
    first, last = (np.concatenate(parts) for parts in zip((first, last), *others, strict=True))
    order = np.lexsort((last, first))
    return first[order], last[order]


def _phrase_matches(segment: IndexSegment, terms: Sequence[Term]) -> tuple[Ints, Ints]:
    first = _phrase(segment, terms)
    last = first + len(terms) - 1
    return _within_runs(segment, first, last) if len(terms) > 1 else (first, last)


def _within_runs(segment: IndexSegment, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the matches whose words are of one transcript and channel."""
    end_of_run = np.repeat(segment.run_token[1:], np.diff(np.searchsorted(first, segment.run_token)))
    fits = last < end_of_run
    return first[fits], last[fits]


def _hyphenated(segment: IndexSegment, variant: Variant, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the matches of a variant, with a hyphen between the words that need one."""
    if variant.hyphen is None:
        return first, last
    place = first + variant.hyphen
    joined = segment.token_word[place] == segment.token_word[place + 1]
    return first[joined], last[joined]


def _phrase(segment: IndexSegment, terms: Sequence[Term]) -> Ints:
    parts = [(n, _matching_keys(segment, term)) for n, term in enumerate(terms) if not term.any_word]
    parts.sort(key=lambda term: _count(segment, term[1]))
    (anchor, keys), *followers = parts
    first = _positions(segment, keys)
    if len(terms) > 1:
        first = first - anchor
        first = first[(first >= 0) & (first <= len(segment.token_key) - len(terms))]
    for n, keys in followers:
        if not len(first):
            break
        first = first[_are(segment, segment.token_key[first + n], keys)]
    return first


def _near(segment: IndexSegment, terms: Sequence[Term], slop: int) -> tuple[Ints, Ints]:
    """For each position of a term, find the latest start of a span that ends there and holds all terms."""
    counts = Counter(terms)
    slop = min(slop, len(segment.token_key) + 1)  # as a number of the type of the positions
    keys = [_matching_keys(segment, term) for term in counts]
    places = [_positions(segment, of_term) for of_term in keys]
    if any(len(of_term) < count for of_term, count in zip(places, counts.values(), strict=True)):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    # Every match contains the rarest term, so most positions of a frequent term need not be checked.
    rarest = min(places, key=len)
    places = [_around(of_term, rarest, slop) for of_term in places]
    place, kind = _together(places, len(segment.token_key))
    # Two words: one directly after the other.
    if list(counts.values()) == [1, 1] and not np.isin(keys[0], keys[1]).any():
        ends = np.flatnonzero((kind[1:] != kind[:-1]) & (np.diff(place) < slop))
        return place[ends], place[ends + 1]
    room = len(terms) - 1  # minimum number of positions before the last one of a span
    last = place[room:][place[room:] - place[: len(place) - room] < slop]
    last = last[np.diff(last, prepend=-1) > 0]  # several times as fast as np.unique
    first = last
    for of_term, count in zip(places, counts.values(), strict=True):
        nth = np.searchsorted(of_term, last, "right") - count
        first = np.minimum(first, np.where(nth >= 0, of_term[np.maximum(nth, 0)], -1))
    shortest = np.diff(first, prepend=-1) > 0  # the first end of each start; -1 is no start
    shortest &= last - first < slop
    return first[shortest], last[shortest]


def _together(places: Sequence[Ints], tokens: int) -> tuple[Ints, Ints]:
    """Return the positions of several terms, sorted, and the index of the term at each position."""
    bits = len(places).bit_length()
    number = np.int32 if tokens < 1 << (31 - bits) else np.int64  # half the size sorts in half the time
    merged: npt.NDArray[np.signedinteger] = np.concatenate(
        [np.left_shift(of_term, bits, dtype=number) + number(n) for n, of_term in enumerate(places)]
    )
    merged.sort()
    return merged >> bits, merged & ((1 << bits) - 1)


def _around(places: Ints, rarest: Ints, slop: int) -> Ints:
    """Return the positions fewer than `slop` from one of the rarest term; all positions if there are not many more."""
    if len(places) < 8 * len(rarest):  # filtering would cost more than it saves
        return places
    begin = np.searchsorted(places, rarest - slop, "right")
    end = np.searchsorted(places, rarest + slop, "left")
    begin = np.maximum(begin, np.concatenate([[0], np.maximum.accumulate(end)[:-1]]))  # each position once
    lengths = np.maximum(end - begin, 0)
    neighbours: Ints = places[np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())]
    return neighbours


def _matching_keys(segment: IndexSegment, term: Term) -> Ints:
    """Return the indices of the keys that a term matches, ascending."""
    keys, (head, *tail) = segment.keys, term.parts
    if term.regex is not None:
        matching = pc.match_substring_regex(keys, f"^(?:{term.regex})$", ignore_case=True)
        return np.flatnonzero(matching.to_numpy(zero_copy_only=False))
    begin = segment.key_from(head)
    if not tail:
        return np.arange(begin, begin + (begin < len(keys) and keys[begin].as_py() == head))
    end = segment.key_from(head + _LAST)
    hits = np.arange(begin, end)
    if not any(tail):
        return hits
    hits = hits[pc.ends_with(keys[begin:end], tail[-1]).to_numpy(zero_copy_only=False)]
    pattern = f"^{'.*'.join(map(re.escape, term.parts))}$"
    matches: Ints = hits[pc.match_substring_regex(keys.take(pa.array(hits)), pattern).to_numpy(zero_copy_only=False)]
    return matches


def _count(segment: IndexSegment, keys: Ints) -> int:
    return int((segment.key_first[keys + 1] - segment.key_first[keys]).sum())


def _positions(segment: IndexSegment, keys: Ints) -> Ints:
    """Return the positions of all tokens with these keys, ascending."""
    if not len(keys):
        return segment.postings[:0]
    if len(keys) == keys[-1] - keys[0] + 1:  # adjacent keys have adjacent postings
        positions = segment.postings[segment.key_first[keys[0]] : segment.key_first[keys[-1] + 1]]
    else:
        positions = np.concatenate([segment.postings[segment.key_first[k] : segment.key_first[k + 1]] for k in keys])
    return positions if len(keys) == 1 else np.sort(positions)


def _are(segment: IndexSegment, token_keys: Ints, keys: Ints) -> npt.NDArray[np.bool_]:
    """Return a mask of the tokens that have one of these keys."""
    if not len(keys):
        return np.zeros(len(token_keys), bool)
    if len(keys) == keys[-1] - keys[0] + 1:
        return np.asarray((token_keys >= keys[0]) & (token_keys <= keys[-1]))
    mask = np.zeros(len(segment.keys), bool)
    mask[keys] = True
    return mask[token_keys]


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
