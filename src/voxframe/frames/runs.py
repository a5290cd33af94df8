"""Turns and sentences carry copies of their words: where these stand among the words of the transcript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.frames.lists import Columns, RawList
from voxframe.frames.shape import WORD_LIST

Ints: TypeAlias = npt.NDArray[np.int64]

#: Everything a word has.
FIELDS = tuple(column.name for column in WORD_LIST["[]"].values())

_EMPTY = (b"[]", b"null")


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """For lists of so many elements, one after another: the list of each element, and its position there."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) - (np.cumsum(counts) - counts)[of]


def repeated(whole: RawList, parts: Sequence[RawList]) -> bool:
    """Whether parts, one after another, are byte for byte the whole, and there is something in them.

    It costs a small part of decoding the copies, and bytes that are equal are equal in every field.
    """
    views = [memoryview(part) for part in parts if part is not None]
    filled = [view for view in views if view not in _EMPTY]
    if whole is None or not filled:
        return False
    text = bytes(whole)
    at = 0  # the bracket or comma before the next part
    for part in filled:
        if part[0] != ord("[") or (at and text[at] != ord(",")):
            return False
        begin = at + (2 if at and text.startswith(b" ", at + 1) else 1)
        if not text.startswith(part[1:-1], begin):
            return False
        at = begin + len(part) - 2
    return at == len(text) - 1


def runs(words: Columns, copies: Columns, counts: Ints, by: Sequence[str]) -> Ints:
    """Where each part of a text, given as its own copy of the words, stands in the words.

    Args:
        words: Columns of all words.
        copies: Columns of the words of all parts, one part after another.
        counts: How many of them each part has.
        by: Columns in which copy and word must be equal.

    Returns:
        Index in `words` of the first word of each part; -1 where there is no such run, or where the part has no words.
        No word is in two runs.
    """
    part, within = spread(counts)
    found = np.full(len(counts), -1, np.int64)
    total = len(words["start_ms"])
    for guess in _guesses(words, copies, counts):
        looked = (found < 0) & (counts > 0) & (guess >= 0) & (guess + counts <= total)
        if looked.any():
            rows = looked[part]
            at, of = pa.array((guess[part] + within)[rows]), pa.array(rows)
            unequal = ~np.logical_and.reduce([_equal(words[key].take(at), copies[key].filter(of)) for key in by])
            found = np.where(looked & (np.bincount(part[rows], unequal, len(counts)) == 0), guess, found)
        if (found[counts > 0] >= 0).all():
            break
    return _apart(found, counts, total)


def _guesses(words: Columns, copies: Columns, counts: Ints) -> Iterator[Ints]:
    """Where each part may begin: after the one before; else at the first, or the last, word with the same start."""
    firsts = np.cumsum(counts) - counts
    yield firsts
    starts, copied = _numbers(words["start_ms"]), _numbers(copies["start_ms"])
    if len(starts) and len(copied):
        order = np.argsort(starts, kind="stable")
        wanted = copied[np.minimum(firsts, len(copied) - 1)]
        left = np.searchsorted(starts, wanted, "left", order)
        yield order[np.minimum(left, len(order) - 1)]
        yield order[np.searchsorted(starts, wanted, "right", order) - 1]


def _numbers(values: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(values.fill_null(-1))


def _equal(some: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Whether values are equal; null equals null."""
    both_null = np.asarray(some.is_null()) & np.asarray(others.is_null())
    equal: npt.NDArray[np.bool_] = both_null | np.asarray(pc.equal(some, others).fill_null(False))
    return equal


def _apart(found: Ints, counts: Ints, rows: int) -> Ints:
    """Runs without those that share words with an earlier one."""
    free = np.ones(rows, bool)
    for i, (start, count) in enumerate(zip(found.tolist(), counts.tolist(), strict=True)):
        if start >= 0 and not free[start : start + count].all():
            found[i] = -1
        elif start >= 0:
            free[start : start + count] = False
    return found
