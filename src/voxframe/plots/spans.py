"""Spans of time as arrays, and how many of them become few enough to draw."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.columns import require, voice_codes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

#: Spans nearer than this part of what is in view cannot be told apart on a screen or a page; drawn as one, a million
#: words take as long as a thousand turns.
RESOLUTION = 1 / 4000
#: Spans beyond which those of one label that are too near to be told apart are joined before they are packed.
MOST_PACKED = 10_000


@dataclass(frozen=True)
class Spans:
    """Spans with a known time, by start.

    Attributes:
        start: Seconds.
        end: Seconds, none before its start.
        code: Number of each span's label in `names`.
        row: Position of each span's row in the DataFrame; -1 where spans were joined.
        names: Labels, as text or None, in the order in which they first occur; those without a time come last.
    """

    start: Floats
    end: Floats
    code: Ints
    row: Ints
    names: list[str | None]

    @property
    def last(self) -> float:
        """Where the last span ends, s; 0 without any."""
        return float(self.end.max()) if len(self.end) else 0.0

    def where(self, kept: npt.NDArray[np.bool_]) -> Spans:
        """Some of the spans; all labels are kept."""
        if kept.all():
            return self
        return Spans(self.start[kept], self.end[kept], self.code[kept], self.row[kept], self.names)

    def by_label(self) -> list[Ints]:
        """For each label the positions of its spans."""
        if not self.names:
            return []
        order = np.argsort(self.code.astype(np.uint16), kind="stable")  # short numbers sort many times as fast
        return np.split(order, np.cumsum(np.bincount(self.code, minlength=len(self.names)))[:-1])

    def within(self, low: float, high: float) -> Spans:
        """The spans that touch a stretch of time."""
        return self.where((self.start < high) & (self.end > low))


def spans(df: pd.DataFrame, by: str | None, purpose: str) -> Spans:
    """Spans of a DataFrame, labelled by a column, or by who speaks.

    Args:
        df: Rows with `start_ms` and `end_ms`.
        by: Column with the labels; None takes `speaker`, else `channel`, of one transcript.
        purpose: What they are for, for messages.

    Raises:
        TypeError: It is no DataFrame.
        ValueError: A column is missing, or the rows belong to several transcripts and `by` is None.
    """
    require(df, ("start_ms", "end_ms", *([by] if by else [])), purpose)
    names: list[str | None]
    if by is None:
        one_transcript(df, purpose, 'by="transcript_id" gives each a lane')
        code, names = voice_codes(df)
    else:
        code, labels = pd.factorize(df[by], use_na_sentinel=False)
        names = [None if pd.isna(label) else str(label) for label in labels]
    start, end = seconds(df["start_ms"]), seconds(df["end_ms"])
    found = Spans(start, end, code, np.arange(len(df)), names)
    found = _sorted(found.where(np.isfinite(start) & np.isfinite(end) & (end >= start)))
    code, first = pd.factorize(found.code)
    order = [*first, *(n for n in range(len(names)) if n not in set(first))]
    return Spans(found.start, found.end, code, found.row, [names[n] for n in order])


def _sorted(found: Spans) -> Spans:
    """The spans by start."""
    if not (found.start[1:] < found.start[:-1]).any():
        return found
    start, order = _by_start(found.start)
    # Numbers that are looked up in any order come faster from less memory, and fastest where they are known.
    small = found.code.astype(np.uint16) if len(found.names) < 1 << 16 else found.code
    row = order if found.row[-1] == len(order) - 1 else found.row[order]
    return Spans(start, found.end[order], small[order].astype(np.intp), row, found.names)


def _by_start(start: Floats) -> tuple[Floats, Ints]:
    """Starts in order, and where each was. Whole ms with the place behind them sort three times as fast as places do.

    Example:
        >>> sorted_start, order = _by_start(np.array([2.0, 0.5, 2.0, 1.25]))
        >>> sorted_start.tolist(), order.tolist()
        ([0.5, 1.25, 2.0, 2.0], [1, 3, 0, 2])
    """
    bits, ms = len(start).bit_length(), np.rint(start * 1000)
    if not ((ms / 1000 == start) & (np.abs(ms) < 2.0 ** (62 - bits))).all():
        order = np.argsort(start, kind="stable")
        return start[order], order
    key = ms.astype(np.int64) << bits | np.arange(len(start))
    key.sort()
    return (key >> bits) / 1000, key & ((1 << bits) - 1)


def seconds(times: pd.Series[Any]) -> Floats:
    """Times in ms as seconds; NaN where they are not known."""
    return times.to_numpy(np.float64, na_value=np.nan) / 1000


def one_transcript(df: pd.DataFrame, purpose: str, otherwise: str = "") -> None:
    """Check that rows are of one transcript.

    Args:
        df: The rows.
        purpose: What they are for.
        otherwise: What to do with several, if not to pick one.

    Raises:
        ValueError: They are of several.
    """
    if "transcript_id" not in df.columns or (df["transcript_id"] == df["transcript_id"].head(1).squeeze()).all():
        return  # which is sooner known than how many there are
    if (count := df["transcript_id"].nunique()) > 1:
        raise ValueError(
            f"{purpose} draws one transcript, the DataFrame has {count}; pick one, as in "
            f"df[df['transcript_id'] == id]{'; or ' if otherwise else ''}{otherwise}"
        )


def joined(start: Floats, end: Floats, resolution: float) -> tuple[Floats, Floats]:
    """Spans nearer than `resolution` (s) as one, and none shorter than it.

    Args:
        start: Seconds, ascending.
        end: Seconds.
        resolution: Seconds.

    Example:
        >>> left, right = joined(np.array([0.0, 1.1, 5.0]), np.array([1.0, 2.0, 5.0]), 0.2)
        >>> left.tolist(), right.tolist()
        ([0.0, 5.0], [2.0, 5.2])
    """
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] - reach[:-1] > resolution])
    left = start[first]
    return left, np.maximum(reach[np.r_[first[1:], len(start)] - 1], left + resolution)


def pack(start: Floats, end: Floats) -> Ints:
    """A lane for each span such that no two in a lane overlap, with as few lanes as there can be.

    Each span takes the first free lane (interval partitioning: Kleinberg and Tardos, Algorithm Design, 4.1).

    Args:
        start: Seconds, ascending.
        end: Seconds.

    Example:
        >>> pack(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.0, 4.0, 3.0, 5.0])).tolist()
        [0, 1, 0, 0]
    """
    lanes = np.zeros(len(start), np.intp)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for n, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        lanes[n] = lane
        heapq.heappush(busy, (finish, lane))
    return lanes


def packed(found: Spans, resolution: float) -> tuple[Spans, Ints]:
    """Spans and the lane of each; of very many, those of one label that the eye cannot tell apart are joined first."""
    if len(found.start) > MOST_PACKED:
        parts = [joined(found.start[rows], found.end[rows], resolution) for rows in found.by_label()]
        code = np.repeat(np.arange(len(parts)), [len(left) for left, _ in parts])
        start, end = (np.concatenate(side) for side in zip(*parts, strict=True))
        found = _sorted(Spans(start, end, code, np.full(len(start), -1), found.names))
    return found, pack(found.start, found.end)


def corners(left: Floats, right: Floats, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Corners of bars, shape (bars, 4, 2)."""
    low, high = np.broadcast_to(low, left.shape), np.broadcast_to(high, left.shape)
    return np.stack([np.stack(corner, -1) for corner in ((left, low), (left, high), (right, high), (right, low))], 1)
