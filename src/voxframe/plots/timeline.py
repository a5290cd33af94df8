"""Timeline: who speaks when, one lane a speaker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.columns import require, voices
from voxframe.plots.style import clock_axis, name_lanes, new_axes, voice_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Spans nearer than this part of the whole cannot be told apart on a screen or a page; drawn as one, a million words
# take as long as a thousand turns.
_RESOLUTION = 1 / 4000


def timeline(
    df: pd.DataFrame,
    ax: Axes | None = None,
    *,
    speakers: Sequence[str] | None = None,
    colors: Sequence[str] | None = None,
) -> Axes:
    """Draw who speaks when: one lane a speaker, one bar a row.

    Args:
        df: Rows of one transcript with `start_ms`, `end_ms` (ms) and `speaker` (or `channel`): words, utterances,
            sentences. Rows with no time are left out.
        ax: Where to draw; None makes a new figure.
        speakers: Lanes from top to bottom; None takes the speakers in the order they first speak. Others are left out.
        colors: A colour a lane, used again from the first where there are more lanes.

    Returns:
        The Axes; the x axis counts seconds. Bars closer than 1/4000 of the whole time are drawn as one.

    Raises:
        ValueError: A column is missing, or the rows belong to several transcripts.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 0, "end": 400, "speaker": "A"}]})
        >>> ax = voxframe.plots.timeline(words)
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['A']
    """
    from matplotlib.collections import PolyCollection

    require(df, ("start_ms", "end_ms"), "timeline")
    if "transcript_id" in df.columns and (count := df["transcript_id"].nunique()) > 1:
        raise ValueError(
            f"timeline draws one transcript, the DataFrame has {count}; pick one, as in df[df['transcript_id'] == id]"
        )
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan) / 1000
    end = df["end_ms"].to_numpy(np.float64, na_value=np.nan) / 1000
    lane, names = pd.factorize(voices(df), use_na_sentinel=False)
    if speakers is None:
        order = np.argsort(_first_start(lane, start, len(names)), kind="stable").tolist()
        shown = [names[n] for n in order]
    else:
        order = [list(names).index(name) if name in set(names) else -1 for name in speakers]
        shown = list(speakers)

    known = np.isfinite(start) & np.isfinite(end) & (end >= start)
    last = float(end[known].max()) if known.any() else 0.0
    ax = ax if ax is not None else new_axes(10, 1.2 + 0.45 * max(1, len(shown)))
    palette = voice_colors(shown) if colors is None else list(colors)
    for y, n in enumerate(order):
        rows = known & (lane == n)
        bars = _bars(start[rows], end[rows], y, last * _RESOLUTION)
        ax.add_collection(PolyCollection(list(bars), facecolors=palette[y % len(palette)], linewidths=0), autolim=False)
    name_lanes(ax, shown)
    clock_axis(ax, last)
    ax.set_xlim(0, last or 1)
    ax.set_xlabel("time (min:s)" if last < 3600 else "time (h:min:s)")
    return ax


def _first_start(lane: npt.NDArray[np.intp], start: npt.NDArray[np.float64], lanes: int) -> npt.NDArray[np.float64]:
    """When each lane's first bar begins."""
    first = np.full(lanes, np.inf)
    np.fmin.at(first, lane, start)
    return first


def _bars(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], y: int, resolution: float
) -> npt.NDArray[np.float64]:
    """Corners of the bars of one lane, shape (bars, 4, 2), bars closer than `resolution` (s) joined."""
    if (np.diff(start) < 0).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end) if len(end) else end
    first = np.flatnonzero(np.r_[True, start[1:] - reach[:-1] > resolution]) if len(start) else np.empty(0, np.intp)
    left = start[first]
    right = np.maximum(reach[np.r_[first[1:], len(start)] - 1] if len(first) else left, left + resolution)
    top, bottom = np.full_like(left, y - 0.36), np.full_like(left, y + 0.36)
    return np.stack([np.stack(c, -1) for c in ((left, bottom), (left, top), (right, top), (right, bottom))], 1)
