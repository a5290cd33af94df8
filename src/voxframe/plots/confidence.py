"""Confidence over time: how sure the recognizer was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from voxframe.analysis.columns import require, voice_codes
from voxframe.plots import style
from voxframe.plots.spans import one_transcript, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows beyond which the single ones are no longer shown: they would be a grey cloud.
_MOST_DOTS = 5_000


def confidence(
    df: pd.DataFrame, ax: Axes | None = None, *, by: str | None = None, window_s: float | None = None
) -> Axes:
    """Draw confidence over time: a dot for each word, and the mean over windows of time as a line.

    Args:
        df: Rows of one transcript with `start_ms` (ms) and `confidence` (0-1): words, or turns, sentences. Rows that
            lack either are left out.
        ax: Where to draw; None makes a new figure.
        by: A line for each value of this column, "speaker" (where it is null: `channel`) or another; None draws one.
        window_s: Length of the windows (s); None takes a round time, some forty of which make the whole.

    Returns:
        The Axes; the x axis counts seconds. A point of a line is the mean of the rows that start in the window around
        it; the line is broken where a window has none.

    Raises:
        TypeError: `df` is no DataFrame.
        ValueError: A column is missing, the rows belong to several transcripts, or `window_s` is not above 0.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> words = pd.DataFrame({"start_ms": [0, 500, 1200], "confidence": [1.0, 0.5, 0.25]})
        >>> line, = voxframe.plots.confidence(words, window_s=1).lines
        >>> line.get_xdata().tolist(), line.get_ydata().tolist()
        ([0.5, 1.5], [0.75, 0.25])
    """
    from voxframe.plots.ticks import step

    require(df, ("start_ms", "confidence", *([by] if by and by != "speaker" else [])), "confidence")
    one_transcript(df, "confidence")
    if window_s is not None and not window_s > 0:
        raise ValueError(f"window_s is a number of seconds above 0, not {window_s!r}")
    start = seconds(df["start_ms"])
    sure = df["confidence"].to_numpy(np.float64, na_value=np.nan)
    code, names = _groups(df, by)
    known = np.isfinite(start) & np.isfinite(sure)
    start, sure, code = start[known], sure[known], code[known]
    last = float(start.max()) if len(start) else 0.0
    window = window_s if window_s is not None else max(1.0, float(step(last or 1.0, 40)))

    if ax is None:
        ax = style.new_axes(10, 3 + (style.legend_height(names, 9) if by else 0.0))
    colors = style.legend_colors(names, dark=style.is_dark(ax)) if by else [style.ink(ax)]
    lines, until = [], last
    for n, color in enumerate(colors):
        of = code == n
        if 0 < len(start) <= _MOST_DOTS:
            ax.scatter(start[of], sure[of], s=5, color=color, alpha=0.35, linewidths=0)
        middle, mean = _means(start[of], sure[of], window)
        # A window with none before and after it is a line without length: it is marked.
        alone = np.isfinite(mean) & ~np.isfinite(np.r_[np.nan, mean[:-1]]) & ~np.isfinite(np.r_[mean[1:], np.nan])
        grey = color == style.GREY
        lines += ax.plot(
            middle,
            mean,
            color=color,
            linewidth=0.6 if grey else 1.8,
            zorder=1.9 if grey else 2,
            marker="o",
            markersize=3,
            markevery=alone.tolist(),
        )
        until = max(until, middle.max(initial=0.0))
    style.clock_axis(ax, 0, until)
    ax.set_ylim(min(0, sure.min(initial=0)), max(1, sure.max(initial=1)) * 1.02)
    ax.set_ylabel("confidence")
    ax.spines[["right", "top"]].set_visible(False)
    if by:
        style.add_legend(ax, [line if len(line.get_xdata()) else None for line in lines], names)  # type: ignore[arg-type]
    return ax


def _groups(df: pd.DataFrame, by: str | None) -> tuple[np.ndarray, list[str | None]]:
    """The line of each row, and the names of the lines."""
    if by is None:
        return np.zeros(len(df), np.intp), [None]
    if by == "speaker":
        code, names = voice_codes(df)
    else:
        code, found = pd.factorize(df[by], use_na_sentinel=False)
        names = [None if pd.isna(name) else str(name) for name in found]
    order = sorted(range(len(names)), key=lambda n: (names[n] is None, names[n] or ""))
    return np.argsort(order)[code] if names else code, [names[n] for n in order]


def _means(at: np.ndarray, values: np.ndarray, window: float) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each window from the first to the last with rows, and the mean of its rows; NaN without any."""
    if not len(at):
        return at, values
    place = np.floor(at / window).astype(np.intp)
    first = int(place.min())
    count = np.bincount(place - first)
    mean = np.full(len(count), np.nan)
    np.divide(np.bincount(place - first, values), count, out=mean, where=count > 0)
    return (first + np.arange(len(count)) + 0.5) * window, mean
