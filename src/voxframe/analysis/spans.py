"""Joins by time: the chapter, topic or turn of each word, and spans that are cut at the limits of time bins."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe.analysis.grouping import durations_ms
from voxframe.analysis.recordings import keeps_recordings
from voxframe.analysis.speaker_turns import floats, require
from voxframe.errors import OptionError
from voxframe.validators import Choice, Integer, Number, checked, name_list, shown

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.intp]
Rule: TypeAlias = Literal["most", "start", "middle", "within", "all"]

_RULES = ("most", "start", "middle", "within", "all")
_CHUNK = 4_000_000  # spans at a time, to limit memory
#: Lengths of windows of time.
WINDOW_S = Number(0.001, 1e9, "seconds")


@takes_frames
@keeps_recordings
def annotate(
    spans: pd.DataFrame,
    others: pd.DataFrame,
    *,
    rule: Rule = "most",
    columns: str | Sequence[str] | None = None,
    on: str | Sequence[str] = "transcript_id",
    prefix: str = "",
) -> pd.DataFrame:
    """Add to each span the columns of the other span that it lies in, such as the chapter of each word.

    Spans are half-open: a word that starts when a chapter ends belongs to the next chapter. The rule decides about
    spans that straddle a boundary:

    - "most" (default): the other span with the longest common time; of equals, the one that starts first.
    - "start", "middle": the other span that contains the start or the middle; of several, the one that starts last.
    - "within": like "start", but only if it contains the whole span.
    - "all": every other span with common time: one row per pair, and `overlap_ms` float64 (ms, NaN without one).

    A span without length, such as a word whose times are equal, lies in the spans that contain its start.

    Args:
        spans: Any rows with `start_ms` and `end_ms`, such as words.
        others: Any rows with `start_ms` and `end_ms`, such as chapters, topics or turns. They may overlap each other.
            Rows without times, or that do not end after their start, are left out.
        rule: Rule for spans that straddle a boundary.
        columns: Column or columns of `others` to add. None (default): all except the times, `extra`, those of `on`,
                and a `recording` that both have.
        on: Column or columns that must be equal in both, such as ["transcript_id", "channel"]. If neither has
            `transcript_id`, all rows belong to one recording.
        prefix: Text to put before the names of the added columns. Needed if `spans` has columns of the same name.

    Returns:
        The rows of `spans` in their order and with their index, and the added columns; null if no other span fits.

    Raises:
        ValueError: A column is missing.
        OptionError: The rule is unknown, or an added column exists already.

    Example:
        >>> words = pd.DataFrame({"start_ms": [0, 900, 1500], "end_ms": [400, 1300, 1900]})
        >>> chapters = pd.DataFrame({"chapter": ["one", "two"], "start_ms": [0, 1000], "end_ms": [1000, 1600]})
        >>> annotate(words, chapters)["chapter"].tolist()
        ['one', 'two', 'two']
        >>> annotate(words, chapters, rule="within")["chapter"].tolist()
        ['one', nan, nan]
    """
    keys = name_list(on, "the columns of on=")
    for df in (spans, others):
        require(df, ("start_ms", "end_ms"), "annotate")
    if keys == ["transcript_id"] and not any("transcript_id" in df.columns for df in (spans, others)):
        keys = []
    for df in (spans, others):
        require(df, tuple(keys), "annotate")
    checked("rule", rule, Choice(_RULES))
    if not isinstance(prefix, str):
        raise OptionError(f"prefix must be a text, got {shown(prefix)}")
    twice = {"recording"} & {*spans.columns} if "transcript_id" in keys else set()
    usual = [name for name in others.columns if name not in {"start_ms", "end_ms", "extra", *keys, *twice}]
    given = usual if columns is None else name_list(columns, "columns to add")
    require(others, tuple(given), "annotate")
    if taken := [prefix + name for name in given if prefix + name in spans.columns]:
        raise OptionError(f"both DataFrames have the column {taken[0]!r}; choose columns=[...], or pass a prefix=")
    # Transcripts follow each other on one axis, so that one sorted array serves all of them.
    starts, ends, low, high = _one_axis(spans, others, keys)
    row, other, shared = _pairs(starts, ends, low, high, rule)
    if rule == "all":
        alone = np.setdiff1d(np.arange(len(spans)), row)
        row, other = np.r_[row, alone], np.r_[other, np.full(len(alone), -1)]
        order = np.lexsort((np.r_[low, np.inf][other], row))
        found, other = spans.iloc[row[order]], other[order]
        extra = {"overlap_ms": np.r_[shared, np.full(len(alone), np.nan)][order]}
    else:
        best = np.full(len(spans), -1)
        best[row] = other
        found, other, extra = spans, best, {}
    added: dict[str, Any] = {prefix + name: _taken(others[name], other) for name in given}
    table: pd.DataFrame = found.assign(**added, **extra)
    return table


def _taken(column: pd.Series[Any], rows: _Ints) -> Any:
    """Return the values at some positions, null for -1, of a nullable dtype if there are nulls."""
    if (rows < 0).any() and column.dtype.kind in "iub":
        column = column.astype("boolean" if column.dtype.kind == "b" else "Int64")
    return column.reset_index(drop=True).reindex(rows).array


def _one_axis(spans: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """Return starts and ends of both on one axis on which recordings follow each other; NaN if unknown."""
    start, end = (np.concatenate([floats(df[name]) for df in (spans, others)]) for name in ("start_ms", "end_ms"))
    known = np.isfinite(start) & np.isfinite(end) & (end >= start)
    code = np.zeros(len(start), np.intp)
    for key in keys:
        codes, values = pd.factorize(pd.concat([spans[key], others[key]], ignore_index=True), use_na_sentinel=False)
        code = code * len(values) + codes
    low = start[known].min(initial=0.0)
    length = end[known].max(initial=0.0) - low + 1
    code = pd.factorize(code)[0] if len(keys) > 1 else code  # keep the axis short, so that times stay exact
    place = np.where(known, code * length - low, np.nan)
    start, end, count = start + place, end + place, len(spans)
    return start[:count], end[:count], start[count:], end[count:]


def _pairs(start: _Floats, end: _Floats, low: _Floats, high: _Floats, rule: str) -> tuple[_Ints, _Ints, _Floats]:
    """Return the rows of spans, the rows of others that fit, and their common time.

    With any rule but "all", each span has at most one pair.
    """
    usable = np.flatnonzero(high > low)
    usable = usable[np.lexsort((high[usable], low[usable]))]
    layer = pack(low[usable], high[usable])
    rows = np.flatnonzero(np.isfinite(start))
    if (np.diff(start[rows]) < 0).any():
        rows = rows[np.argsort(start[rows], kind="stable")]
    begins, reach = start[rows], np.maximum.accumulate(end[rows])
    found: list[tuple[_Ints, _Ints, _Floats]] = [(rows[:0], rows[:0], start[:0])]
    best, score = np.full(len(start), -1), np.full(len(start), -np.inf)
    for n in range(int(layer.max(initial=-1)) + 1):
        of = usable[layer == n]  # sorted, and no two overlap
        left, right = low[of], high[of]
        stop = np.searchsorted(begins, right, "left")
        first = np.maximum(np.searchsorted(reach, left, "left"), np.r_[0, stop[:-1]])
        near = rows[_ranges(first, np.maximum(stop - first, 0))]  # the spans that can meet this layer
        for part in (near[at : at + _CHUNK] for at in range(0, len(near), _CHUNK)):
            row, place, shared = _meetings(part, start[part], end[part], left, right, rule)
            if rule == "all":
                found.append((row, of[place], shared))
                continue
            before = best[row]
            better = (before < 0) | (shared > score[row])
            tied = np.flatnonzero(shared == score[row])
            better[tied] = left[place[tied]] < low[before[tied]]
            best[row[better]], score[row[better]] = of[place[better]], shared[better]
    if rule == "all":
        row, other, common = (np.concatenate(side) for side in zip(*found, strict=True))
        return row, other, common
    row = np.flatnonzero(best >= 0)
    return row, best[row], score[row]


def _meetings(
    row: _Ints, start: _Floats, end: _Floats, left: _Floats, right: _Floats, rule: str
) -> tuple[_Ints, _Ints, _Floats]:
    """Return the rows of spans that meet one of some disjoint sorted spans, its position, and a score.

    The score is the common time, or the start of the other span if the rule goes by a point. Only the rule "all" gives
    more than one pair per row.
    """
    if rule not in ("all", "most"):
        point = (start + end) / 2 if rule == "middle" else start
        place = np.searchsorted(left, point, "right") - 1
        inside = (place >= 0) & (point < right[place])
        if rule == "within":
            inside &= end <= right[place]
        place = place[inside]
        return row[inside], place, left[place]
    first = np.searchsorted(right, start, "right")
    last = np.searchsorted(left, np.maximum(end, np.nextafter(start, np.inf)), "left")
    one, several = np.flatnonzero(last - first == 1), np.flatnonzero(last - first > 1)
    at, place = one, first[one]
    if len(several):
        count = last[several] - first[several]
        again, places = np.repeat(several, count), _ranges(first[several], count)
        if rule == "most":  # the longest first, then the earliest
            common = np.minimum(end[again], right[places]) - np.maximum(start[again], left[places])
            order = np.lexsort((places, -common, again))
            order = order[np.r_[True, np.diff(again[order]) != 0]]
            again, places = again[order], places[order]
        at, place = np.r_[at, again], np.r_[place, places]
    return row[at], place, np.minimum(end[at], right[place]) - np.maximum(start[at], left[place])


def _ranges(first: _Ints, count: _Ints) -> _Ints:
    """Return the integers of ranges that begin at `first` and have `count` members, one range after another.

    Example:
        >>> _ranges(np.array([5, 2]), np.array([2, 1])).tolist()
        [5, 6, 2]
    """
    before = np.cumsum(count) - count
    return np.repeat(first - before, count) + np.arange(count.sum())


def pack(start: _Floats, end: _Floats) -> _Ints:
    """Return a lane for each span, with as few lanes as possible and without overlap within a lane.

    Each span takes the first free lane (interval partitioning: Kleinberg and Tardos, Algorithm Design, 4.1).

    Args:
        start: Starts, ascending.
        end: Ends, in the same unit.

    Example:
        >>> pack(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.0, 4.0, 3.0, 5.0])).tolist()
        [0, 1, 0, 0]
    """
    lanes = np.zeros(len(start), np.intp)
    if not (start[1:] < np.maximum.accumulate(end)[:-1]).any():
        return lanes
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for n, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        lanes[n] = lane
        heapq.heappush(busy, (finish, lane))
    return lanes


@takes_frames
@keeps_recordings
def split_spans(
    spans: pd.DataFrame,
    *,
    window_s: float | None = None,
    parts: int | None = None,
    transcripts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Cut spans at the limits of time bins, so that each piece lies in one bin.

    Args:
        spans: Rows with `transcript_id`, `start_ms` and `end_ms`. Rows without times are left out.
        window_s: Length of a bin in seconds.
        parts: Number of bins of equal length per recording, instead of `window_s`.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.

    Returns:
        One row per piece, in the order of the spans: their columns with the times of the piece, `bin_idx` int64 (counts
        from 0 in each recording) and `first_piece` bool. Pieces keep the index of their span. With `parts`, times are
        rounded to ms.

    Raises:
        ValueError: A column is missing.
        OptionError: Not exactly one of `window_s` and `parts` is given, or it is not allowed.

    Example:
        >>> turns = pd.DataFrame({"transcript_id": "t", "start_ms": [50_000], "end_ms": [130_000]})
        >>> split_spans(turns, window_s=60)[["bin_idx", "start_ms", "end_ms"]].values.tolist()
        [[0, 50000, 60000], [1, 60000, 120000], [2, 120000, 130000]]
    """
    require(spans, ("transcript_id", "start_ms", "end_ms"), "split_spans")
    if (window_s is None) == (parts is None):
        raise OptionError(f"give either window_s or parts, not window_s={window_s!r} and parts={parts!r}")
    start, end = floats(spans["start_ms"]), floats(spans["end_ms"])
    step: Any
    if parts is None:
        step = 1000 * checked("window_s", window_s, WINDOW_S)
    else:
        parts = checked("parts", parts, Integer(1))
        step = durations_ms(spans, transcripts).reindex(spans["transcript_id"]).to_numpy(np.float64) / parts
    step = np.broadcast_to(np.maximum(step, 1e-9), start.shape)
    known = np.flatnonzero(np.isfinite(start) & np.isfinite(end) & (end >= start))
    start, end, step = start[known], end[known], step[known]
    top = np.inf if parts is None else parts - 1
    first = np.minimum(np.floor(start / step + 1e-9), top)
    last = np.maximum(np.minimum(np.ceil(end / step - 1e-9) - 1, top), first)
    count = (last - first).astype(np.intp) + 1
    row = np.repeat(np.arange(len(known)), count)
    piece = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    place = first[row] + piece
    left = np.maximum(start[row], np.where(piece == 0, start[row], place * step[row]))
    right = np.where(piece == count[row] - 1, end[row], (place + 1) * step[row])
    return spans.iloc[known[row]].assign(
        start_ms=np.rint(left).astype(np.int64),
        end_ms=np.rint(right).astype(np.int64),
        bin_idx=place.astype(np.int64),
        first_piece=piece == 0,
    )
