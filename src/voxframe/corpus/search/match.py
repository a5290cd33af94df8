"""Find the terms of a query in a segment: as a phrase, or near each other in any order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.analysis.search_terms import Term
from voxframe.corpus.search.segment import IndexSegment, Ints

_LAST = chr(0x10FFFF)  # sorts after every letter


def find(segment: IndexSegment, terms: Sequence[Term], slop: int | None = None) -> tuple[Ints, Ints]:
    """Return the first and last token of every match, in order.

    Args:
        segment: The segment.
        terms: The terms.
        slop: None: a phrase. Otherwise the terms may occur in any order within this many tokens, and only the shortest
            spans with all of them count.
    """
    if slop is None:
        first = _phrase(segment, terms)
        last = first + len(terms) - 1
    else:
        first, last = _near(segment, terms, slop)
    if len(terms) > 1:
        end_of_run = np.repeat(segment.run_token[1:], np.diff(np.searchsorted(first, segment.run_token)))
        whole = last < end_of_run
        first, last = first[whole], last[whole]
    return first, last


def _phrase(segment: IndexSegment, terms: Sequence[Term]) -> Ints:
    wanted = [(n, _keys(segment, term)) for n, term in enumerate(terms) if not term.any_word]
    wanted.sort(key=lambda term: _count(segment, term[1]))
    (anchor, keys), *others = wanted
    first = _positions(segment, keys)
    if len(terms) > 1:
        first = first - anchor
        first = first[(first >= 0) & (first <= len(segment.token_key) - len(terms))]
    for n, keys in others:
        if not len(first):
            break
        first = first[_are(segment, segment.token_key[first + n], keys)]
    return first


def _near(segment: IndexSegment, terms: Sequence[Term], slop: int) -> tuple[Ints, Ints]:
    """For each position of a term, find the latest start of a span that ends there and holds all terms."""
    wanted = Counter(terms)
    keys = [_keys(segment, term) for term in wanted]
    places = [_positions(segment, of_term) for of_term in keys]
    if any(len(of_term) < count for of_term, count in zip(places, wanted.values(), strict=True)):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    # Every match contains the rarest term, so most positions of a frequent term need no look.
    rarest = min(places, key=len)
    places = [_around(of_term, rarest, slop) for of_term in places]
    place, kind = _together(places, len(segment.token_key))
    if (
        list(wanted.values()) == [1, 1] and not np.isin(keys[0], keys[1]).any()
    ):  # two words: one directly after the other
        ends = np.flatnonzero((kind[1:] != kind[:-1]) & (np.diff(place) < slop))
        return place[ends], place[ends + 1]
    room = len(terms) - 1  # minimum number of positions before the last one of a span
    last = place[room:][place[room:] - place[: len(place) - room] < slop]
    last = last[np.diff(last, prepend=-1) > 0]  # several times as fast as np.unique
    first = last
    for of_term, count in zip(places, wanted.values(), strict=True):
        nth = np.searchsorted(of_term, last, "right") - count
        first = np.minimum(first, np.where(nth >= 0, of_term[np.maximum(nth, 0)], -1))
    shortest = np.diff(first, prepend=-1) > 0  # the first end of each start; -1 is no start
    shortest &= last - first < slop
    return first[shortest], last[shortest]


def _together(places: Sequence[Ints], tokens: int) -> tuple[Ints, Ints]:
    """Return the positions of several terms in one order, and the term of each."""
    bits = len(places).bit_length()
    number = np.int32 if tokens < 1 << (31 - bits) else np.int64  # half the size sorts in half the time
    both: npt.NDArray[np.signedinteger] = np.concatenate(
        [np.left_shift(of_term, bits, dtype=number) + number(n) for n, of_term in enumerate(places)]
    )
    both.sort()
    return both >> bits, both & ((1 << bits) - 1)


def _around(places: Ints, rarest: Ints, slop: int) -> Ints:
    """Return the positions fewer than `slop` from one of the rarest term; all positions if there are not many more."""
    if len(places) < 8 * len(rarest):  # filtering would cost more than it saves
        return places
    begin = np.searchsorted(places, rarest - slop, "right")
    end = np.searchsorted(places, rarest + slop, "left")
    begin = np.maximum(begin, np.concatenate([[0], np.maximum.accumulate(end)[:-1]]))  # each position once
    lengths = np.maximum(end - begin, 0)
    chosen: Ints = places[np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())]
    return chosen


def _keys(segment: IndexSegment, term: Term) -> Ints:
    """Return the indices of the keys that a term matches, ascending."""
    keys, (head, *tail) = segment.keys, term.parts
    begin = segment.key_from(head)
    if not tail:
        return np.arange(begin, begin + (begin < len(keys) and keys[begin].as_py() == head))
    end = segment.key_from(head + _LAST)
    found = np.arange(begin, end)
    if not any(tail):
        return found
    found = found[pc.ends_with(keys[begin:end], tail[-1]).to_numpy(zero_copy_only=False)]
    pattern = f"^{'.*'.join(map(re.escape, term.parts))}$"
    chosen: Ints = found[pc.match_substring_regex(keys.take(pa.array(found)), pattern).to_numpy(zero_copy_only=False)]
    return chosen


def _count(segment: IndexSegment, keys: Ints) -> int:
    return int((segment.key_first[keys + 1] - segment.key_first[keys]).sum())


def _positions(segment: IndexSegment, keys: Ints) -> Ints:
    """Return the positions of all tokens with these keys, ascending."""
    if not len(keys):
        return segment.postings[:0]
    if len(keys) == keys[-1] - keys[0] + 1:  # adjacent keys have adjacent postings
        found = segment.postings[segment.key_first[keys[0]] : segment.key_first[keys[-1] + 1]]
    else:
        found = np.concatenate([segment.postings[segment.key_first[k] : segment.key_first[k + 1]] for k in keys])
    return found if len(keys) == 1 else np.sort(found)


def _are(segment: IndexSegment, token_keys: Ints, keys: Ints) -> npt.NDArray[np.bool_]:
    """Return a mask of the tokens that have one of these keys."""
    if not len(keys):
        return np.zeros(len(token_keys), bool)
    if len(keys) == keys[-1] - keys[0] + 1:
        return np.asarray((token_keys >= keys[0]) & (token_keys <= keys[-1]))
    wanted = np.zeros(len(segment.keys), bool)
    wanted[keys] = True
    return wanted[token_keys]
