"""Recognition confidence, sentiment, and disagreements of two transcripts over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe.analysis.recordings import distinct_names, uses
from voxframe.analysis.speaker_turns import floats, label_names, require, speaker_codes
from voxframe.colors import COLORS, GREY, NEGATIVE, POSITIVE, legend_colors, themed
from voxframe.compare.alignment import disagreements as places_of
from voxframe.plots import style
from voxframe.plots.spans import (
    RESOLUTION,
    corners,
    kind_of,
    lane_names,
    lane_values,
    seconds,
    several_transcripts,
    spans,
    transcript_names,
    transcripts_of,
)
from voxframe.validators import Number, checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Above this number of rows, dots are left out: they would blur into a cloud.
_MOST_DOTS = 5_000


#: Label, direction from the middle of the lane, and colour.
_KINDS = (("POSITIVE", -1, POSITIVE), ("NEGATIVE", 1, NEGATIVE), ("NEUTRAL", 0, GREY))
_HALF, _THIN = 0.42, 0.05


@takes_frames
@uses("start_ms", "confidence")
def confidence(
    df: pd.DataFrame, ax: Axes | None = None, *, by: str | None = None, window_s: float | None = None
) -> Axes:
    """Draw confidence over time: one dot per row, and a line with the mean of each time window.

    Args:
        df: Words, utterances or sentences, with `start_ms` (ms) and `confidence` (0-1). Rows without either value are
            left out.
        ax: Axes to draw on. None (default): a new figure.
        by: Column to draw one line per value of. "speaker" falls back to `channel` if the speaker is null. None
            (default): one line per transcript.
        window_s: Length of a window in seconds, at least 0.001. None (default): a round length that gives about forty
            windows.

    Returns:
        The Axes, with seconds on the x axis. Each point of a line is the mean of the rows that start in its window,
        drawn at the middle of the window. Windows without rows leave a gap in the line.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or `window_s` is invalid.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> words = pd.DataFrame({"start_ms": [0, 500, 1200], "confidence": [1.0, 0.5, 0.25]})
        >>> line, = voxframe.plots.confidence(words, window_s=1).lines
        >>> line.get_xdata().tolist(), line.get_ydata().tolist()
        ([0.5, 1.5], [0.75, 0.25])
    """
    from voxframe.plots.time_axis import step

    require(df, ("start_ms", "confidence", *([by] if by not in (None, "speaker") else [])), "confidence")
    kind, column = kind_of(by or "transcript_id"), by
    if several_transcripts(df) and by in (None, "transcript_id", "speaker"):
        df = df.assign(line=lane_names(df) if by == "speaker" else transcript_names(df, last=""))
        by = "line"
    if window_s is not None:
        window_s = checked("window_s", window_s, Number(0.001, 1e9))
    start, sure = seconds(df["start_ms"]), floats(df["confidence"])
    code, names = _groups(df, by)
    ids = transcripts_of(df, code, names, column) if kind == "person" else None
    finite = np.isfinite(start) & np.isfinite(sure)
    start, sure, code = start[finite], sure[finite], code[finite]
    last = float(start.max()) if len(start) else 0.0
    window = window_s if window_s is not None else max(1.0, float(step(last or 1.0, 40)))

    ax = style.given_or_new(ax, 10, 3 + (style.legend_height(names, 9) if by else 0.0))
    named = label_names(df) if by in ("speaker", "speaker_name") else None
    colors: Any = [style.ink(ax)]
    if by:
        colors = legend_colors(names, named, kind=kind, transcripts=ids, dark=style.is_dark(ax))
    lines, until = [], last
    for n, (color, dash) in enumerate(zip(colors, style.by_color(colors, style.LINES), strict=True)):
        of = code == n
        if 0 < len(start) <= _MOST_DOTS:
            ax.scatter(start[of], sure[of], s=5, color=color, alpha=0.35, linewidths=0)
        middle, mean = _means(start[of], sure[of], window)
        # A window without neighbours makes a line of zero length, so it gets a marker.
        alone = np.isfinite(mean) & ~np.isfinite(np.r_[np.nan, mean[:-1]]) & ~np.isfinite(np.r_[mean[1:], np.nan])
        grey = color == GREY
        lines += ax.plot(
            middle,
            mean,
            color=color,
            linestyle=dash,
            linewidth=0.6 if grey else 1.8,
            zorder=1.9 if grey else 2,
            marker="o",
            markersize=3,
            markevery=alone.tolist(),
        )
        until = max(until, middle.max(initial=0.0))
    style.clock_axis(ax, 0, until)
    low, high = sure.min(initial=1), max(1, sure.max(initial=1))
    ax.set_ylim(math.floor(10 * min(low, 0.9)) / 10, high + 0.02 * max(high - low, 0.1))
    ax.set_ylabel("confidence")
    ax.spines[["right", "top"]].set_visible(False)
    if by:
        style.add_legend(ax, [line if len(line.get_xdata()) else None for line in lines], names)  # type: ignore[arg-type]
    return ax


def _groups(df: pd.DataFrame, by: str | None) -> tuple[np.ndarray, list[str | None]]:
    """Return the line index of each row, and the names of the lines."""
    if by is None:
        return np.zeros(len(df), np.intp), [None]
    if by == "speaker":
        code, names = speaker_codes(df)
    else:
        code, lanes = pd.factorize(lane_values(df, by), use_na_sentinel=False)
        names = [None if pd.isna(name) else str(name) for name in lanes]
    order = sorted(range(len(names)), key=lambda n: (names[n] is None, names[n] or ""))
    return np.argsort(order)[code] if names else code, [names[n] for n in order]


def _means(at: np.ndarray, values: np.ndarray, window: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of each window and the mean of its rows, NaN for a window without rows."""
    if not len(at):
        return at, values
    place = np.floor(at / window).astype(np.intp)
    first = int(place.min())
    count = np.bincount(place - first)
    mean = np.full(len(count), np.nan)
    np.divide(np.bincount(place - first, values), count, out=mean, where=count > 0)
    return (first + np.arange(len(count)) + 0.5) * window, mean


@takes_frames
@uses("start_ms")
def sentiment(df: pd.DataFrame, ax: Axes | None = None, *, by: str | None = None) -> Axes:
    """Draw sentiment over time: one bar per sentence, up if positive, down if negative, with the confidence as height.

    Args:
        df: Result of `voxframe.load_sentiments`: `start_ms`, `end_ms` (ms), `sentiment` and optionally `confidence`
            (0-1). Rows without times are left out.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one lane per value. None (default): one lane per speaker of each transcript.

    Returns:
        The Axes, with seconds on the x axis. Sentences that are neutral or have another label are thin grey bars. A
        sentence without a confidence is drawn at full height.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 lanes.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> rows = [{"text": "Lovely.", "start": 0, "end": 900, "sentiment": "POSITIVE", "confidence": 0.9}]
        >>> ax = voxframe.plots.sentiment(voxframe.load_sentiments({"id": "a", "sentiment_analysis_results": rows}))
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['positive']
    """
    from matplotlib.collections import PolyCollection

    require(df, ("sentiment",), "sentiment")
    found = spans(df, by, "sentiment")
    style.check_lanes(len(found.names), "lanes", "choose another by=")
    label = df["sentiment"].astype("string").str.upper().fillna("").to_numpy(object)[found.row]
    kinds = {kind for kind, _, _ in _KINDS[:2]}
    sure = np.ones(len(label))
    if "confidence" in df.columns:
        sure = floats(df["confidence"])[found.row]
        sure = np.clip(np.where(np.isfinite(sure), sure, 1.0), 0, 1)

    ax = style.given_or_new(ax, 10, style.lanes_height(len(found.names)) + style.legend_height([""], 9))
    dark, last = style.is_dark(ax), found.last
    ax.hlines(np.arange(len(found.names)), 0, last, color=GREY, linewidth=0.6, alpha=0.6, zorder=0)
    drawn = []
    for kind, direction, color in _KINDS:
        of = label == kind if direction else ~np.isin(label, list(kinds))
        middle = found.code[of].astype(float)
        low, high = (middle, middle + direction * _HALF * sure[of]) if direction else (middle - _THIN, middle + _THIN)
        right = np.maximum(found.end[of], found.start[of] + last * RESOLUTION)
        bars = PolyCollection(
            list(corners(found.start[of], right, low, high)), facecolors=themed(color, dark=dark), linewidths=0
        )
        ax.add_collection(bars, autolim=False)
        drawn.append(bars if of.any() else None)
    style.name_lanes(ax, found.names)
    style.clock_axis(ax, 0, last)
    style.add_legend(ax, drawn, [kind.lower() if direction else "neutral or other" for kind, direction, _ in _KINDS])
    return ax


#: Kinds of places, and the index of their colour.
_LEVELS = {"substitution": 1, "deletion": 0, "insertion": 2}
_LEAST = 0.002  # width of a bar as a share of the longest recording, so that a short word is visible


@takes_frames
def disagreements(df: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw where two transcripts differ: one lane per recording, one bar per place, coloured by the kind of edit.

    Args:
        df: Result of `voxframe.compare.align` or of `voxframe.compare.disagreements`, of one recording or many.
        ax: Axes to draw on. None (default): a new figure.

    Returns:
        The Axes, with seconds on the x axis. The lane of a recording ends with its last word, or its last disagreement
        if `df` has only these.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 recordings.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> heard = pd.DataFrame({"text": ["good", "dog"], "start_ms": [0, 400], "end_ms": [300, 900]})
        >>> ax = voxframe.plots.disagreements(voxframe.compare.align("good day", heard))
        >>> len(ax.collections[1].get_paths())
        1
    """
    from matplotlib.collections import PolyCollection

    require(df, ("recording", "edit"), "disagreements")
    places = places_of(df) if "hyp_end_ms" in df.columns else df
    require(places, ("start_ms", "end_ms"), "disagreements")
    ends = {name: seconds(df[name]) for name in ("ref_end_ms", "hyp_end_ms", "end_ms") if name in df.columns}
    latest = pd.DataFrame(ends, df.index).max(axis=1)
    lasts = latest.groupby(df["recording"].fillna(""), sort=False).max().fillna(0)
    style.check_lanes(len(lasts), "recordings", "select some of them")
    ax = style.given_or_new(ax, 10, style.lanes_height(len(lasts)) + style.legend_height([*_LEVELS], 9))
    dark = style.is_dark(ax)
    high = float(lasts.max()) if len(lasts) else 0.0
    outline = corners(
        np.zeros(len(lasts)), lasts.to_numpy(float), np.arange(len(lasts)) - 0.36, np.arange(len(lasts)) + 0.36
    )
    ax.add_collection(PolyCollection(list(outline), facecolors=GREY, alpha=0.18, linewidths=0), autolim=False)
    timed = places[places["start_ms"].notna()]
    lane = lasts.index.get_indexer(pd.Index(timed["recording"].fillna("")))
    start, end = seconds(timed["start_ms"]), seconds(timed["end_ms"])
    end = np.maximum(end, start + high * max(_LEAST, RESOLUTION))
    bars = []
    for kind, color in _LEVELS.items():
        of = (timed["edit"] == kind).to_numpy(bool)
        paths = corners(start[of], end[of], lane[of] - 0.36, lane[of] + 0.36)
        face = themed(COLORS[color], dark=dark)
        bars.append(PolyCollection(list(paths), facecolors=face, linewidths=0, label=kind))
        ax.add_collection(bars[-1], autolim=False)
    style.name_lanes(ax, distinct_names(list(lasts.index), df))
    style.clock_axis(ax, 0.0, high)
    style.add_legend(ax, [bar if len(bar.get_paths()) else None for bar in bars], [*_LEVELS])
    return ax
