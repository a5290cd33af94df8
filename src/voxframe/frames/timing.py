"""The best known time of each word: its own, else its share of the time of its turn."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voxframe.schema import INT, TIMING

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = "pa.Array | pa.ChunkedArray"

#: Names of the columns that `timed` returns.
TIMES = ("start_ms", "end_ms", TIMING.name)
_OWN, _SHARED = pa.scalar("word", pa.large_string()), pa.scalar("segment", pa.large_string())


def own_times(rows: int) -> Values:
    """Return the column `timing` of words that all have their own times."""
    return pa.repeat(_OWN, rows)


def lacks_times(start: Values, end: Values) -> bool:
    """Return True if a time is null."""
    return bool(start.null_count or end.null_count)


def given_timing(start: int | None, end: int | None) -> str | None:
    """Return `timing` of a turn with these limits and no words."""
    return None if start is None and end is None else "segment"


def timed(
    text: Values, start: Values, end: Values, owner: Ints, turn_start: Floats, turn_end: Floats
) -> tuple[Values, Values, Values]:
    """Return start, end and `timing` of each word.

    Unknown times between two known ones share that time in proportion to the number of characters. A word begins not
    before its turn and ends not after it. A time stays null if no known time precedes it or none follows.

    Args:
        owner: Turn of each word, -1 if none has it.
    """
    if not lacks_times(start, end):
        return start, end, own_times(len(start))
    times = np.empty((len(start), 2))
    times[:, 0], times[:, 1] = _floats(start), _floats(end)
    unknown = np.isnan(times)
    first = np.r_[True, owner[1:] != owner[:-1]] & (owner >= 0)
    last = np.r_[owner[1:] != owner[:-1], True] & (owner >= 0)
    for side, rows, limits in ((0, first, turn_start), (1, last, turn_end)):
        rows = rows & unknown[:, side]
        times[rows, side] = limits[owner[rows]]
    shared = _shared(times, _floats(pc.utf8_length(pc.coalesce(text, pa.scalar("", text.type)))))
    is_shared = (unknown & ~np.isnan(shared)).any(axis=1)
    columns = [
        pc.coalesce(bounds, pa.array(np.rint(shared[:, side]), INT, from_pandas=True, safe=False))
        for side, bounds in enumerate((start, end))
    ]
    has_times = pa.array(~np.isnan(shared).all(axis=1))
    timing = pc.if_else(has_times, pc.if_else(pa.array(is_shared), _SHARED, _OWN), pa.scalar(None, _OWN.type))
    return columns[0], columns[1], timing


def _shared(times: Floats, letters: Floats) -> Floats:
    """Return starts and ends in which unknown times between two known ones are in proportion to the characters."""
    line = times.ravel()  # start, end, start, end, ...
    reach = np.cumsum(np.maximum(letters, 1))
    place = np.column_stack([np.r_[0.0, reach[:-1]], reach]).ravel()
    places = np.flatnonzero(~np.isnan(line))
    if not len(places):
        return times
    after = np.searchsorted(places, np.arange(len(line)))
    inside = np.isnan(line) & (after > 0) & (after < len(places))
    low, high = places[after[inside] - 1], places[after[inside]]
    gap = place[high] - place[low]
    part = np.divide(place[inside] - place[low], gap, out=np.zeros(len(low)), where=gap > 0)
    line = line.copy()
    line[inside] = line[low] + part * np.maximum(line[high] - line[low], 0)
    return line.reshape(-1, 2)


def turn_times(
    turn_start: Floats, turn_end: Floats, owner: Ints, words: tuple[Values, Values, Values]
) -> list[tuple[int | None, int | None, str | None]]:
    """Return start, end and `timing` of each turn; an unknown time is that of its first or last word.

    Args:
        words: Result of `timed`.
    """
    lacks = np.isnan(turn_start) | np.isnan(turn_end)
    is_shared, is_filled = np.zeros(len(lacks), bool), np.zeros(len(lacks), bool)
    limits = [turn_start, turn_end]
    if lacks.any():
        rows = np.flatnonzero(owner >= 0)
        rows = rows[lacks[owner[rows]]]
        shared = np.asarray(pc.equal(words[2], _SHARED).fill_null(False))
        for side, edge in ((0, np.fmin), (1, np.fmax)):
            result, times = np.full(len(lacks), np.nan), _floats(words[side])
            edge.at(result, owner[rows], times[rows])
            missing = np.isnan(limits[side])
            ends = rows[shared[rows] & (times[rows] == result[owner[rows]])]
            is_shared[owner[ends][missing[owner[ends]]]] = True
            is_filled |= missing & ~np.isnan(result)
            limits[side] = np.where(missing, result, limits[side])
    starts, ends = ([None if np.isnan(time) else int(time) for time in side.tolist()] for side in limits)
    return [
        (start, end, given_timing(start, end) and ("shared" if shared else "word" if filled else "segment"))
        for start, end, shared, filled in zip(starts, ends, is_shared.tolist(), is_filled.tolist(), strict=True)
    ]


def _floats(values: Values) -> Floats:
    floats: Floats = np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))
    return floats
