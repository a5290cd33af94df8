"""Where the terms of a query are in a segment: as a phrase, or near each other in any order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.analysis.terms import Term
from voxframe.corpus.search_segment import Ints, Segment

_LAST = chr(0x10FFFF)  # comes after every letter


def find(segment: Segment, terms: Sequence[Term], within: int | None = None) -> tuple[Ints, Ints]:
    """First and last token of every match, in order.

    Args:
        segment: Where to look.
        terms: What to look for.
        within: None for a phrase. Else the terms may come in any order within so many tokens; of stretches that hold
            them all, those count that hold no shorter one.
    """
    if within is None:
        first = _phrase(segment, terms)
        last = first + len(terms) - 1
    else:
        first, last = _near(segment, terms, within)
    if len(terms) > 1:
        end_of_run = np.repeat(segment.run_token[1:], np.diff(np.searchsorted(first, segment.run_token)))
        whole = last < end_of_run
        first, last = first[whole], last[whole]
    return first, last


def _phrase(segment: Segment, terms: Sequence[Term]) -> Ints:
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


def _near(segment: Segment, terms: Sequence[Term], within: int) -> tuple[Ints, Ints]:
    """For each place of any term, the latest beginning of a stretch that ends there and holds all of them."""
    wanted = Counter(terms)
    keys = [_keys(segment, term) for term in wanted]
    places = [_positions(segment, of_term) for of_term in keys]
    if any(len(of_term) < count for of_term, count in zip(places, wanted.values(), strict=True)):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    # Only around the rarest term can there be a match: with a frequent term beside it most places need no look.
    rarest = min(places, key=len)
    places = [_around(of_term, rarest, within) for of_term in places]
    place, kind = _together(places, len(segment.token_key))
    if (
        list(wanted.values()) == [1, 1] and not np.isin(keys[0], keys[1]).any()
    ):  # of two words, wherever one comes after the other
        ends = np.flatnonzero((kind[1:] != kind[:-1]) & (np.diff(place) < within))
        return place[ends], place[ends + 1]
    room = len(terms) - 1  # a stretch that ends at a place holds so many places before it
    last = place[room:][place[room:] - place[: len(place) - room] < within]
    last = last[np.diff(last, prepend=-1) > 0]  # several times as fast as np.unique
    first = last
    for of_term, count in zip(places, wanted.values(), strict=True):
        nth = np.searchsorted(of_term, last, "right") - count
        first = np.minimum(first, np.where(nth >= 0, of_term[np.maximum(nth, 0)], -1))
    shortest = np.diff(first, prepend=-1) > 0  # the first end of each beginning; -1 is none
    shortest &= last - first < within
    return first[shortest], last[shortest]


def _together(places: Sequence[Ints], tokens: int) -> tuple[Ints, Ints]:
    """Places of several terms in one order, and of which term each is."""
    bits = len(places).bit_length()
    number = np.int32 if tokens < 1 << (31 - bits) else np.int64  # half the size is sorted in half the time
    both: npt.NDArray[np.signedinteger] = np.concatenate(
        [np.left_shift(of_term, bits, dtype=number) + number(n) for n, of_term in enumerate(places)]
    )
    both.sort()
    return both >> bits, both & ((1 << bits) - 1)


def _around(places: Ints, rarest: Ints, within: int) -> Ints:
    """Those places that are fewer than `within` from one of the rarest term; all where they are not many more."""
    if len(places) < 8 * len(rarest):  # looking costs more than it spares
        return places
    begin = np.searchsorted(places, rarest - within, "right")
    end = np.searchsorted(places, rarest + within, "left")
    begin = np.maximum(begin, np.concatenate([[0], np.maximum.accumulate(end)[:-1]]))  # no place twice
    lengths = np.maximum(end - begin, 0)
    chosen: Ints = places[np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())]
    return chosen


def _keys(segment: Segment, term: Term) -> Ints:
    """Positions of the keys that a term means, ascending."""
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


def _count(segment: Segment, keys: Ints) -> int:
    return int((segment.key_first[keys + 1] - segment.key_first[keys]).sum())


def _positions(segment: Segment, keys: Ints) -> Ints:
    """Positions of all tokens with these keys, ascending."""
    if not len(keys):
        return segment.postings[:0]
    if len(keys) == keys[-1] - keys[0] + 1:  # neighbours, so their postings are too
        found = segment.postings[segment.key_first[keys[0]] : segment.key_first[keys[-1] + 1]]
    else:
        found = np.concatenate([segment.postings[segment.key_first[k] : segment.key_first[k + 1]] for k in keys])
    return found if len(keys) == 1 else np.sort(found)


def _are(segment: Segment, token_keys: Ints, keys: Ints) -> npt.NDArray[np.bool_]:
    """Which of some tokens have one of these keys."""
    if not len(keys):
        return np.zeros(len(token_keys), bool)
    if len(keys) == keys[-1] - keys[0] + 1:
        return np.asarray((token_keys >= keys[0]) & (token_keys <= keys[-1]))
    wanted = np.zeros(len(segment.keys), bool)
    wanted[keys] = True
    return wanted[token_keys]
