"""Turns and sentences carry copies of their words: where these stand among the words of the transcript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.frames.words import Ints, WordList


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """For lists of so many elements, one after another: the list of each element, and its position there."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) - (np.cumsum(counts) - counts)[of]


def repeated(whole: WordList, rows: int, parts: Sequence[WordList]) -> Ints | None:
    """How many words each part has, where the parts, one after another, are byte for byte the whole; else None.

    It costs a small part of decoding the copies, and bytes that are equal are equal in every field.

    Args:
        whole: A raw list that was read without complaint.
        rows: How many words were read from it.
        parts: Raw lists that may repeat it.
    """
    filled = [i for i, part in enumerate(parts) if part is not None and len(memoryview(part)) > len(b"null")]
    if whole is None or not filled:
        return None
    text, inner = bytes(whole), [memoryview(parts[i])[1:-1] for i in filled]  # type: ignore[arg-type]
    between = (len(text) - len(b"[]") - sum(map(len, inner))) // max(len(inner) - 1, 1)
    if b"[%b]" % (b"," if between == 1 else b", ").join(inner) != text:
        return None
    # Every word is an object, so with as many braces as words each brace is the beginning of a word.
    braces = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("{"))
    if len(braces) != rows:
        return None
    ends = len(b"[") + np.cumsum([len(part) for part in inner]) + between * np.arange(len(inner))
    counts = np.zeros(len(parts), np.int64)
    counts[filled] = np.diff(np.searchsorted(braces, ends), prepend=0)
    return counts


def runs(words: pa.Table, copies: pa.Table, counts: Ints, by: Sequence[str]) -> Ints:
    """Where each part of a text, given as its own copy of the words, stands in the words.

    Args:
        words: All words.
        copies: The words of all parts, one part after another.
        counts: How many of them each part has.
        by: Columns in which copy and word must be equal.

    Returns:
        Index in `words` of the first word of each part; -1 where there is no such run, or where the part has no words.
        No word is in two runs.
    """
    part, within = spread(counts)
    found = np.full(len(counts), -1, np.int64)
    for guess in _guesses(words, copies, counts):
        looked = (found < 0) & (counts > 0) & (guess >= 0) & (guess + counts <= words.num_rows)
        if looked.any():
            rows = looked[part]
            unequal = ~_equal(words.take((guess[part] + within)[rows]), copies.filter(pa.array(rows)), by)
            found = np.where(looked & (np.bincount(part[rows], unequal, len(counts)) == 0), guess, found)
        if (found[counts > 0] >= 0).all():
            break
    return _apart(found, counts, words.num_rows)


def _guesses(words: pa.Table, copies: pa.Table, counts: Ints) -> Iterator[Ints]:
    """Where each part may begin: after the one before; else at the first, or the last, word with the same start."""
    firsts = np.cumsum(counts) - counts
    yield firsts
    if words.num_rows and copies.num_rows:
        starts = _starts(words)
        order = np.argsort(starts, kind="stable")
        wanted = _starts(copies)[np.minimum(firsts, copies.num_rows - 1)]
        left = np.searchsorted(starts, wanted, "left", order)
        yield order[np.minimum(left, len(order) - 1)]
        yield order[np.searchsorted(starts, wanted, "right", order) - 1]


def _starts(words: pa.Table) -> Ints:
    return words["start_ms"].fill_null(-1).to_numpy()  # type: ignore[no-any-return]


def _equal(some: pa.Table, others: pa.Table, by: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether rows are equal in the columns named; null equals null."""
    equal = np.ones(some.num_rows, bool)
    for name in by:
        a, b = some[name], others[name]
        equal &= pc.equal(a, b).fill_null(False).to_numpy() | (a.is_null().to_numpy() & b.is_null().to_numpy())
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
