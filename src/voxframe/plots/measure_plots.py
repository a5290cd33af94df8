"""Plots of measures and their values over time, of rates of groups, and of distinctive words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from voxframe import analysis
from voxframe._arrow import takes_frames
from voxframe._text import quantity
from voxframe.analysis.rows import distinct_names, floats, label_names, require, speaker_codes, uses
from voxframe.colors import COLORS, GREY, NEGATIVE, POSITIVE, Kind, name_colors, themed
from voxframe.plots import lanes
from voxframe.validators import Integer, Number, checked, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 240  # of a line whose windows the caller does not choose


#: Values above which a difference has a probability below 0.05 if there is none (chi-square with one degree, normal).
_SIGNIFICANT = {"g2": 3.84, "z": 1.96}


@takes_frames
def turn_matrix(df: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw who follows whom: one row per speaker, one column per next speaker, with counts and shares as colours.

    Args:
        df: Turns or words, or the result of `voxframe.analysis.turn_matrix`. Speakers of several transcripts form one
            block per transcript.
        ax: Axes to draw on. None (default): a new figure.

    Returns:
        The Axes. Each cell shows the number of transfers; its colour is their share of the row.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 speakers.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> turns = pd.DataFrame({"transcript_id": "t", "speaker": list("ABA"), "text": "x",
        ...                       "start_ms": [0, 1500, 3000], "end_ms": [1000, 2500, 4000]})
        >>> [text.get_text() for text in voxframe.plots.turn_matrix(turns).texts]
        ['1', '1']
    """
    require(df, (), "turn_matrix")
    table = df if {"previous", "following", "transfers"} <= set(df.columns) else analysis.turn_matrix(df)
    require(table, ("transfer_share",), "turn_matrix")
    of = lanes.transcript_names(table, df)
    sides = [of + table[name].astype(str) for name in ("previous", "following")]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    lanes.check_count(len(names), "speakers", "select some of them")
    shares, labels = floats(table["transfer_share"]), lanes.shown_names(names)
    longest = max(map(len, labels), default=0)
    size = 1.2 + max(2, len(names)) * max(0.25, min(0.55, 6.5 / max(1, len(names))))
    room = 0.09 * longest  # inches, at 10 points
    ax = lanes.axes_or_new(ax, size + max(1.5, room), size + (room if longest >= 4 else 0))
    place = {name: n for n, name in enumerate(names)}
    share = np.full((len(names), len(names)), np.nan)
    for a, b, value in zip(*sides, shares, strict=True):
        share[place[a], place[b]] = value
    dark = lanes.is_dark(ax)
    if names:
        ax.imshow(share, cmap="cividis" if dark else "Blues", vmin=0, vmax=1, aspect="equal")
    else:
        lanes.say_nothing_to_show(ax)
    for a, b, count, value in zip(*sides, table["transfers"], shares, strict=True):
        bright = (value > 0.55) != dark if np.isfinite(value) else dark
        color = ("white" if bright else "black") if np.isfinite(value) else lanes.ink(ax)
        if len(names) <= 40:
            ax.text(place[b], place[a], str(count), ha="center", va="center", color=color)
    ax.set_xticks(range(len(names)), labels, rotation=0 if longest < 4 else 90)
    ax.set_yticks(range(len(names)), labels)
    for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]:
        label.set_parse_math(False)
    ax.set_xlabel("next speaker")
    ax.set_ylabel("speaker")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


@takes_frames
def pace(
    df: pd.DataFrame,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    window_s: float | None = None,
    step_s: float | None = None,
) -> Axes:
    """Draw words per minute over time: one line per transcript, or per other group.

    Args:
        df: Words, or the result of `voxframe.analysis.pace`.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one line per value and transcript, such as "speaker". None (default): one line per transcript.
        window_s: Length of a window in seconds. None (default): 30; longer for recordings of more than two hours, so
            that a line has at most 240 points.
        step_s: Seconds between the starts of windows; see `voxframe.analysis.pace`.

    Returns:
        The Axes, with seconds from the start of each recording on the x axis. Points are at the middle of windows.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers.
        OptionError: A group or a window is invalid.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> words = pd.DataFrame({"transcript_id": "t", "text": "x", "start_ms": [0, 900], "end_ms": [300, 1000]})
        >>> voxframe.plots.pace(words, window_s=1).lines[0].get_ydata().tolist()
        [120.0]
    """
    require(df, (), "pace")
    table = df
    if "window_wpm" not in df.columns:
        window_s = _readable(df, 30) if window_s is None else window_s
        table = analysis.pace(df, by or "transcript_id", window_s=window_s, step_s=step_s)
    ax = _lines(table, df, "window_wpm", ax, "pace")
    highest = np.nanmax(floats(table["window_wpm"]), initial=0)
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.08 * highest) if len(table) else 1)
    ax.set_ylabel("words per minute")
    return ax


@takes_frames
def sentiment_over_time(
    df: pd.DataFrame,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    window_s: float | None = None,
    step_s: float | None = None,
) -> Axes:
    """Draw the balance of positive and negative sentences over time: one line per transcript, or per other group.

    Args:
        df: Result of `voxframe.load_sentiments`, or of `voxframe.analysis.sentiment_over_time`.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one line per value and transcript, such as "speaker". None (default): one line per transcript.
        window_s: Length of a window in seconds. None (default): 60; longer for recordings of more than four hours, so
            that a line has at most 240 points.
        step_s: Seconds between the starts of windows; see `voxframe.analysis.sentiment_over_time`.

    Returns:
        The Axes, with seconds from the start of each recording on the x axis and the polarity, -1 to 1, on the y axis.
        The background above 0 has the colour of positive sentences, below 0 that of negative ones.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers.
        OptionError: A group or a window is invalid.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> rows = pd.DataFrame({"transcript_id": "t", "sentiment": ["POSITIVE"], "start_ms": [0], "end_ms": [900]})
        >>> voxframe.plots.sentiment_over_time(rows).lines[0].get_ydata().tolist()
        [1.0]
    """
    require(df, (), "sentiment_over_time")
    table = df
    if "polarity" not in df.columns:
        window_s = _readable(df, 60) if window_s is None else window_s
        table = analysis.sentiment_over_time(df, by or "transcript_id", window_s=window_s, step_s=step_s)
    ax = _lines(table, df, "polarity", ax, "sentiment_over_time")
    dark = lanes.is_dark(ax)
    for low, high, color in ((0, 1.05, POSITIVE), (-1.05, 0, NEGATIVE)):
        ax.axhspan(low, high, color=themed(color, dark=dark), alpha=0.10, linewidth=0, zorder=0)
    ax.set_ylim(-1.05, 1.05)
    ax.set_yticks([-1, 0, 1], ["negative", "balanced", "positive"])
    return ax


def _readable(df: pd.DataFrame, usual: float) -> float:
    """Return the length of windows: the usual one, or a longer one of which the longest recording has few enough."""
    from voxframe.plots.time_axis import step  # imports matplotlib

    last = float(np.nanmax(lanes.seconds(df["end_ms"]), initial=0.0)) if "end_ms" in df.columns else 0.0
    return max(usual, float(step(last, _MOST_POINTS)))


def _lines(table: pd.DataFrame, source: pd.DataFrame, value: str, ax: Axes | None, purpose: str) -> Axes:
    """Draw one line per group of a table of windows."""
    require(table, ("transcript_id", "start_ms", "end_ms", value), purpose)
    keys = list(table.columns[: list(table.columns).index("start_ms")])
    line_keys = [key for key in keys if key not in ("transcript_id", "recording")]
    many = table["transcript_id"].nunique() > 1
    label = lanes.transcript_names(table, source, last=" · " if line_keys else "")
    for key in line_keys:
        label = label + table[key].astype("string").fillna("(unknown)").astype(str)
    names = sorted(set(label)) or [""]
    end, values = lanes.seconds(table["end_ms"]), floats(table[value])
    middle = (lanes.seconds(table["start_ms"]) + end) / 2
    ax = lanes.axes_or_new(ax, 10, 3 + (lanes.legend_height(names, 9) if many or line_keys else 0.0))
    dark = lanes.is_dark(ax)
    kind: Kind = lanes.kind_of(line_keys[-1]) if line_keys else "group"
    named = label_names(source) if not many and kind == "person" else None
    colors: Any = [lanes.ink(ax)]
    if many or line_keys:
        line = pd.Index(names).get_indexer(pd.Index(label))
        ids = lanes.transcripts_of(table, line, names, line_keys[-1]) if line_keys else None
        colors = name_colors(names, named, kind=kind, transcripts=ids, dark=dark, legend=True)
    lines = []
    for name, color, dash in zip(names, colors, lanes.by_color(colors, lanes.LINES), strict=True):
        of = (label == name).to_numpy(bool)
        lines += ax.plot(middle[of], values[of], color=color, linestyle=dash, marker="o", markersize=3)
    lanes.clock_axis(ax, 0, float(np.nanmax(end, initial=0.0)))
    ax.spines[["right", "top"]].set_visible(False)
    if len(table) and (many or line_keys):
        lanes.add_legend(ax, lines, names)
    return ax


#: Above this number of rows, dots are left out: they would blur into a cloud.
_MOST_DOTS = 5_000


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
    from voxframe.plots.time_axis import step  # imports matplotlib

    require(df, ("start_ms", "confidence", *([by] if by not in (None, "speaker") else [])), "confidence")
    kind, column = lanes.kind_of(by or "transcript_id"), by
    if lanes.several_transcripts(df) and by in (None, "transcript_id", "speaker"):
        df = df.assign(line=lanes.lane_names(df) if by == "speaker" else lanes.transcript_names(df, last=""))
        by = "line"
    if window_s is not None:
        window_s = checked("window_s", window_s, Number(0.001, 1e9))
    start, sure = lanes.seconds(df["start_ms"]), floats(df["confidence"])
    code, names = _groups(df, by)
    ids = lanes.transcripts_of(df, code, names, column) if kind == "person" else None
    finite = np.isfinite(start) & np.isfinite(sure)
    start, sure, code = start[finite], sure[finite], code[finite]
    last = float(start.max()) if len(start) else 0.0
    window = window_s if window_s is not None else max(1.0, float(step(last or 1.0, 40)))

    ax = lanes.axes_or_new(ax, 10, 3 + (lanes.legend_height(names, 9) if by else 0.0))
    named = label_names(df) if by in ("speaker", "speaker_name") else None
    colors: Any = [lanes.ink(ax)]
    if by:
        colors = name_colors(names, named, kind=kind, transcripts=ids, dark=lanes.is_dark(ax), legend=True)
    lines, until = [], last
    for n, (color, dash) in enumerate(zip(colors, lanes.by_color(colors, lanes.LINES), strict=True)):
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
    lanes.clock_axis(ax, 0, until)
    low, high = sure.min(initial=1), max(1, sure.max(initial=1))
    ax.set_ylim(math.floor(10 * min(low, 0.9)) / 10, high + 0.02 * max(high - low, 0.1))
    ax.set_ylabel("confidence")
    ax.spines[["right", "top"]].set_visible(False)
    if by:
        lanes.add_legend(ax, [line if len(line.get_xdata()) else None for line in lines], names)  # type: ignore[arg-type]
    return ax


def _groups(df: pd.DataFrame, by: str | None) -> tuple[np.ndarray, list[str | None]]:
    """Return the line index of each row, and the names of the lines."""
    if by is None:
        return np.zeros(len(df), np.intp), [None]
    if by == "speaker":
        code, names = speaker_codes(df)
    else:
        code, values = pd.factorize(lanes.lane_values(df, by), use_na_sentinel=False)
        names = [None if pd.isna(name) else str(name) for name in values]
    order = sorted(range(len(names)), key=lambda n: (names[n] is None, names[n] or ""))
    return np.argsort(order)[code] if names else code, [names[n] for n in order]


def _means(at: np.ndarray, values: np.ndarray, window: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of each window and the mean of its rows, NaN for a window without rows."""
    means = pd.Series(values).groupby(np.floor(at / window).astype(np.intp)).mean()
    if len(means):
        means = means.reindex(range(means.index[0], means.index[-1] + 1))
    return (means.index.to_numpy() + 0.5) * window, means.to_numpy()


@takes_frames
def rates(table: pd.DataFrame, ax: Axes | None = None, *, label: str = "rate") -> Axes:
    """Draw a rate per group as a point with its interval.

    Args:
        table: Result of `voxframe.analysis.rates`, over any number of transcripts.
        ax: Axes to draw on. None (default): a new figure.
        label: Label of the x axis, with the unit.

    Returns:
        The Axes, with one lane per group. A group with fewer than two units, such as recordings, has a point
        without an interval, and says so.

    Raises:
        TypeError: `table` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 groups.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> table = pd.DataFrame({"transcript_id": ["a", "b"], "site": ["x", "y"], "fillers": [1, 3], "words": 100})
        >>> ax = voxframe.plots.rates(voxframe.analysis.rates(table, "fillers", "words", "site", per=100))
        >>> [tick.get_text() for tick in ax.get_yticklabels()]
        ['x', 'y']
    """
    require(table, ("units", "rate", "low", "high"), "rates")
    keys = list(table.columns[: list(table.columns).index("units")])
    names = lanes.group_names(table, keys)
    lanes.check_count(len(names), "groups", "select some of them")
    rate, low, high = (floats(table[name]) for name in ("rate", "low", "high"))
    ax = lanes.axes_or_new(ax, 7, lanes.figure_height(len(names)))
    color = themed(COLORS[0], dark=lanes.is_dark(ax))
    y = np.arange(len(names))
    finite = np.isfinite(low) & np.isfinite(high)
    ax.hlines(y[finite], low[finite], high[finite], color=color, linewidth=2.5, alpha=0.6)
    ax.scatter(rate, y, color=color, s=40, zorder=3)
    for n in np.flatnonzero(np.isfinite(rate) & ~finite):
        text = f"no interval: {quantity(int(table['units'].iloc[n]), 'unit')}"
        ax.annotate(text, (rate[n], n), (8, 0), textcoords="offset points", va="center", color=GREY, fontsize="small")
    lanes.name_lanes(ax, names)
    ax.margins(x=0.08)
    if (np.fmin(rate, low) < 0).any():
        ax.axvline(0, color=GREY, linewidth=1, zorder=0)
    else:
        ax.set_xlim(left=-0.03 * ax.get_xlim()[1])  # a point at 0 is not cut off
    ax.set_xlabel(label)
    if not np.isfinite(rate).any():
        lanes.say_nothing_to_show(ax)
    return ax


@takes_frames
def keyness(table: pd.DataFrame, ax: Axes | None = None, *, top: int = 10) -> Axes:
    """Draw the words that tell groups apart: bars to the right, the strongest of each group on top.

    Args:
        table: Result of `voxframe.analysis.keyness` or `distinctive_words`, over any number of transcripts.
        ax: Axes to draw on. None (default): a new figure.
        top: Number of words per group. Words that are rarer in the group are left out.

    Returns:
        The Axes, with one lane per word and one colour per group; G2 or z on the x axis. The number beside a bar is the
        size of the effect: how many times as frequent the word is in the group (of `keyness`). Bars of words that do
        not differ significantly (p above 0.05) are hollow.

    Raises:
        TypeError: `table` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 words.
        OptionError: `top` is not a whole number of at least 1.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> counts = pd.DataFrame({"site": ["x", "y"], "ngram": ["tree", "car"], "count": [9, 9]})
        >>> ax = voxframe.plots.keyness(voxframe.analysis.keyness(counts, "site"))
        >>> [tick.get_text() for tick in ax.get_yticklabels()]
        ['tree', 'car']
    """
    require(table, ("ngram",), "keyness")
    value = "z" if "z" in table.columns else "g2"
    require(table, ("ngram", value), "keyness")
    group, top = table.columns[0], checked("top", top, Integer(1))
    strongest = table[floats(table[value]) > 0].groupby(group, sort=True).head(top)
    lanes.check_count(len(strongest), "words", "choose a smaller top=")
    groups = sorted(strongest[group].unique(), key=str)
    ax = lanes.axes_or_new(
        ax, 7, lanes.figure_height(len(strongest)) + lanes.legend_height([str(name) for name in groups], 6)
    )
    ids = [None] * len(groups) if group == "person" else None
    colors = name_colors(groups, kind=lanes.kind_of(group), transcripts=ids, dark=lanes.is_dark(ax), legend=True)
    bars: list[Any] = []
    lengths, limit = floats(strongest[value]), _SIGNIFICANT[value]
    for name, color in zip(groups, colors, strict=True):
        of = np.flatnonzero((strongest[group] == name).to_numpy(bool))
        faces = np.where(lengths[of] >= limit, color, "none")
        bars.append(ax.barh(of, lengths[of], height=0.72, color=faces, edgecolor=color))
    if "log_ratio" in strongest:
        for y, (length, doublings) in enumerate(zip(lengths, floats(strongest["log_ratio"]), strict=True)):
            text = f"{2**doublings:.3g} times"
            ax.annotate(text, (length, y), (4, 0), textcoords="offset points", va="center", fontsize="small")
        ax.margins(x=0.12)
    lanes.name_lanes(ax, strongest["ngram"])
    label = "z of the log-odds ratio" if value == "z" else "G2 (log-likelihood)"
    hollow = f"; hollow: not significant (below {limit})" if (lengths < limit).any() else ""
    ax.set_xlabel(label + hollow)
    lanes.add_legend(ax, bars, [str(name) for name in groups])
    if not bars:
        lanes.say_nothing_to_show(ax)
    return ax


@takes_frames
def small_multiples(
    df: pd.DataFrame,
    plot: Callable[..., Any],
    ax: Axes | None = None,
    *,
    by: str = "transcript_id",
    columns: int = 2,
    **options: Any,
) -> list[Axes]:
    """Draw the same plot once per recording, or per other group, side by side on the same scales.

    Args:
        df: Rows of any number of transcripts.
        plot: Plot function, such as `voxframe.plots.pace`, that takes a DataFrame and `ax`.
        ax: Axes whose place the panels take; they are hidden. None (default): a new figure.
        by: Column with one panel per value. Rows without a value are left out.
        columns: Number of panels side by side.
        **options: Options of the plot.

    Returns:
        The Axes, one per value, in the order of first occurrence. Panels of a numeric or time axis share its range.

    Raises:
        TypeError: `df` is not a DataFrame, `plot` is not a function, or `ax` is not one Axes.
        ValueError: The column is missing, or there are more than 200 panels.
        OptionError: `columns` is not a whole number of at least 1.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> words = pd.DataFrame({"transcript_id": ["a", "b"], "text": "x", "start_ms": 0, "end_ms": [900, 2000]})
        >>> [ax.get_title("left") for ax in voxframe.plots.small_multiples(words, voxframe.plots.pace)]
        ['a', 'b']
    """
    import matplotlib.pyplot as plt

    require(df, (by,), "small_multiples")
    if not callable(plot):
        raise TypeError(f"plot must be a plot function, such as voxframe.plots.pace, got {shown(plot)}")
    columns = checked("columns", columns, Integer(1))
    parts = dict(iter(df.groupby(by, sort=False)))
    if not 0 < len(parts) <= lanes.MAX_LANES:
        raise ValueError(f"small_multiples draws 1 to {lanes.MAX_LANES} panels, got {len(parts)}")
    columns = min(columns, len(parts))
    rows = math.ceil(len(parts) / columns)
    if ax is None:
        figure: Any = plt.figure(figsize=(10, 0.6 + 2.4 * rows), layout="constrained")
        spec = figure.add_gridspec(rows, columns)
    else:
        figure, place = lanes.checked_axes(ax).get_figure(root=True), ax.get_subplotspec()
        edges = dict(zip(("left", "bottom", "right", "top"), ax.get_position().extents, strict=True))
        spec = figure.add_gridspec(rows, columns, **edges) if place is None else place.subgridspec(rows, columns)
        ax.set_axis_off()
    panels, highest = [figure.add_subplot(spec[n // columns, n % columns]) for n in range(len(parts))], 0.0
    titles = distinct_names([str(key) for key in parts], df) if by == "transcript_id" else [str(key) for key in parts]
    for panel, title, part in zip(panels, lanes.shown_names(titles), parts.values(), strict=True):
        plot(part, ax=panel, **options)
        legend = panel.get_legend()
        above = legend.get_window_extent().height / figure.dpi if legend else 0.0  # inches
        panel.set_title(title, parse_math=False, loc="left", fontsize="medium", pad=6 + 72 * above)
        highest = max(highest, above)
    if ax is None:
        figure.set_figheight(figure.get_figheight() + rows * highest)
    right = max(panel.get_xlim()[1] for panel in panels)
    for panel in panels:
        panel.set_xlim(right=right)
    if plot in (pace, sentiment_over_time):
        low, high = min(panel.get_ylim()[0] for panel in panels), max(panel.get_ylim()[1] for panel in panels)
        for panel in panels:
            panel.set_ylim(low, high)
    return panels
