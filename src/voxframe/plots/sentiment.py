"""Sentiment over time: what was said kindly and what was not, a lane a speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from voxframe.analysis.columns import require
from voxframe.plots import style
from voxframe.plots.spans import RESOLUTION, corners, spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Label, direction from the middle of the lane, colour: those of `COLORS` that differ most, and grey.
_KINDS = (("POSITIVE", -1, style.COLORS[0]), ("NEGATIVE", 1, style.COLORS[1]), ("NEUTRAL", 0, style.GREY))
_HALF, _THIN = 0.42, 0.05


def sentiment(df: pd.DataFrame, ax: Axes | None = None, *, by: str | None = None) -> Axes:
    """Draw sentiment over time: a bar a sentence, up for positive and down for negative, as high as confident.

    Args:
        df: What `voxframe.load_sentiments` gives, of one transcript: rows with `start_ms`, `end_ms` (ms), `sentiment`
            and, where it is known, `confidence` (0-1). Rows with no time are left out.
        ax: Where to draw; None makes a new figure.
        by: Column that names the lanes; None takes `speaker` (or `channel`).

    Returns:
        The Axes; the x axis counts seconds. Neutral sentences, and those with any other label, are thin grey bars. A
        sentence whose confidence is not known is drawn at full height.

    Raises:
        TypeError: `df` is no DataFrame.
        ValueError: A column is missing, the rows belong to several transcripts, or there are more than 200 lanes.

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
    if len(found.names) > style.MOST_LANES:
        raise ValueError(
            f"{len(found.names)} lanes are too many to see, {style.MOST_LANES} at most; choose another by="
        )
    label = df["sentiment"].astype("string").str.upper().fillna("").to_numpy(object)[found.row]
    known = {kind for kind, _, _ in _KINDS[:2]}
    sure = np.ones(len(label))
    if "confidence" in df.columns:
        sure = df["confidence"].to_numpy(np.float64, na_value=np.nan)[found.row]
        sure = np.clip(np.where(np.isfinite(sure), sure, 1.0), 0, 1)

    if ax is None:
        ax = style.new_axes(10, style.lanes_height(len(found.names)) + style.legend_height([""], 9))
    dark, last = style.is_dark(ax), found.last
    ax.hlines(np.arange(len(found.names)), 0, last, color=style.GREY, linewidth=0.6, alpha=0.6, zorder=0)
    drawn = []
    for kind, direction, color in _KINDS:
        of = label == kind if direction else ~np.isin(label, list(known))
        middle = found.code[of].astype(float)
        low, high = (middle, middle + direction * _HALF * sure[of]) if direction else (middle - _THIN, middle + _THIN)
        right = np.maximum(found.end[of], found.start[of] + last * RESOLUTION)
        bars = PolyCollection(
            list(corners(found.start[of], right, low, high)), facecolors=style.themed(color, dark=dark), linewidths=0
        )
        ax.add_collection(bars, autolim=False)
        drawn.append(bars if of.any() else None)
    style.name_lanes(ax, found.names)
    style.clock_axis(ax, 0, last)
    style.add_legend(ax, drawn, [kind.lower() if direction else "neutral or other" for kind, direction, _ in _KINDS])
    return ax
