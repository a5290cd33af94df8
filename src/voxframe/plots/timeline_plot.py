"""Who speaks when, in one lane per speaker or packed into few lanes, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from voxframe import analysis
from voxframe._text import clock
from voxframe.plots import style
from voxframe.plots.spans import RESOLUTION, Floats, Spans, corners, joined, packed, spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection

    from voxframe.plots.bands import Bands


def timeline(
    df: pd.DataFrame,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    pack: bool = False,
    speakers: Sequence[str] | None = None,
    colors: Sequence[str] | None = None,
    bands: Bands | None = None,
    view: tuple[float, float] | None = None,
) -> Axes:
    """Draw who speaks when: one lane per speaker, one bar per row.

    Args:
        df: Words, utterances, sentences, entities or any other rows with `start_ms` and `end_ms` (ms). Rows without
            times are left out.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one lane per value, such as "entity_type" or "transcript_id". None (default): `speaker` of one
            transcript, or `channel` if there is no speaker.
        pack: Put the spans into as few lanes as possible without overlap, with a legend for the colours, instead of one
            lane per speaker.
        speakers: Lanes from top to bottom; all others are left out. None (default): by first occurrence.
        colors: One colour per lane, or per label if packed. They repeat if there are more lanes than colours.
        bands: Time spans to show above the lanes: a DataFrame such as the result of `voxframe.load_chapters`, or a dict
            such as `{"chapters": chapters, "topics": topics}`. The title is the column `headline`, `label` or `text`.
        view: Start and end of the visible range in ms. None (default): everything.

    Returns:
        The Axes, with seconds on the x axis. Bars closer than 1/4000 of the visible range are drawn as one.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, `by` is None and the rows belong to more than one transcript, there are more
            than 200 lanes, or `view` does not start before it ends.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 0, "end": 400, "speaker": "A"}]})
        >>> ax = voxframe.plots.timeline(words)
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['A']
    """
    from voxframe.plots.bands import band_rows, draw_bands

    found, rows = spans(df, by, "timeline"), band_rows(bands)
    low, high = _view(view, max([found.last, *(_last(band) for band in rows.values())]))
    resolution = (high - low) * RESOLUTION
    names = found.names if speakers is None else list(speakers)
    found = _chosen(found, names) if view is None else _chosen(found, names).within(low, high)
    drawn, lane = packed(found, resolution) if pack else (found, None)
    count = len(names) if lane is None else int(lane.max(initial=-1)) + 1
    if count > style.MAX_LANES:
        raise ValueError(
            f"{count} lanes are too many, at most {style.MAX_LANES} can be shown; "
            + ("choose a shorter view" if pack else "choose others as speakers=, another column as by=, or pack=True")
        )
    if ax is None:
        height = style.lanes_height(count + len(rows))
        ax = style.new_axes(10, height if lane is None else height + style.legend_height(names, 9))
    dark = style.is_dark(ax)
    palette = style.speaker_colors(names, found.named, dark=dark) if colors is None else list(colors)
    if lane is not None and colors is None:
        palette = style.legend_colors(names, found.named, dark=dark)
    bars = []
    for n, of in enumerate(drawn.by_label()):
        at: Any = n if lane is None else lane[of]
        bars.append(_add_bars(ax, drawn.start[of], drawn.end[of], at, resolution, palette[n % len(palette)]))
    style.name_lanes(ax, names if lane is None else [""] * count, above=rows)
    draw_bands(ax, rows, low, high)
    style.clock_axis(ax, low, high)
    if lane is not None:
        style.add_legend(ax, [bar if len(bar.get_paths()) else None for bar in bars], names)
    return ax


def _add_bars(ax: Axes, start: Floats, end: Floats, at: Any, resolution: float, color: str) -> PolyCollection:
    """Draw the bars of one label. In a single lane, touching bars are joined; packed bars stay separate."""
    from matplotlib.collections import PolyCollection

    left, right = (
        joined(start, end, resolution) if isinstance(at, int) else (start, np.maximum(end, start + resolution))
    )
    bars = PolyCollection(list(corners(left, right, at - 0.36, np.add(at, 0.36))), facecolors=color, linewidths=0)
    ax.add_collection(bars, autolim=False)
    return bars


def _chosen(found: Spans, names: list[Any]) -> Spans:
    """Return the spans with the given labels, renumbered in this order."""
    if names is found.names:
        return found
    number = {name: n for n, name in enumerate(names)}
    of = np.array([number.get(name, -1) for name in found.names], np.intp)
    code = of[found.code] if len(of) else found.code
    return replace(found, code=code, names=names).where(code >= 0)


def _last(band: pd.DataFrame) -> float:
    """Return the end of the last band in seconds."""
    end = band["end_ms"].max()
    return 0.0 if pd.isna(end) else float(end) / 1000


def _view(view: tuple[float, float] | None, last: float) -> tuple[float, float]:
    """Return the visible range in seconds."""
    if view is None:
        return 0.0, last
    low, high = view
    if not low < high:
        raise ValueError(f"view must be (start, end) in ms with start < end, not {view!r}")
    return low / 1000, high / 1000


def talk_time(df: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the talk time of each speaker of one transcript.

    Args:
        df: Utterances or words of one transcript, or the result of `voxframe.analysis.talk_time`.
        ax: Axes to draw on. None (default): a new figure.

    Returns:
        The Axes, with seconds on the x axis. Each bar is labelled with its time and share.

    Raises:
        ValueError: A column is missing, or the rows belong to more than one transcript.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> turns = {"id": "a", "utterances": [{"speaker": "A", "text": "Hello.", "start": 0, "end": 60000}]}
        >>> [text.get_text() for text in voxframe.plots.talk_time(voxframe.load_utterances(turns)).texts]
        ['1:00 (100%)']
    """
    table = df if {"talk_s", "share"} <= set(df.columns) else analysis.talk_time(df)
    if (count := table["transcript_id"].nunique()) > 1:
        raise ValueError(f"talk_time draws one transcript, the DataFrame has {count}; select one")
    ax = ax if ax is not None else style.new_axes(7, style.lanes_height(len(table)))
    seconds = table["talk_s"].to_list()
    colors = style.speaker_colors(table["speaker"].to_list(), table.attrs.get("label_names"), dark=style.is_dark(ax))
    ax.barh(range(len(table)), seconds, height=0.72, color=colors)
    for y, (length, share) in enumerate(zip(seconds, table["share"], strict=True)):
        ax.annotate(f"{clock(length)} ({share:.0%})", (length, y), (4, 0), textcoords="offset points", va="center")
    style.name_lanes(ax, table["speaker"])
    longest = max(seconds, default=0)
    style.clock_axis(ax, 0, longest * 1.18, "talk time")  # room for the label of the longest bar
    return ax
