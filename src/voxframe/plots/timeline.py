"""Timeline: who speaks when, a lane a speaker, or any other spans, packed into few lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

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
    """Draw who speaks when: one lane a speaker, one bar a row.

    Args:
        df: Rows with `start_ms`, `end_ms` (ms): words, utterances, sentences, entities, any spans. Rows with no time
            are left out.
        ax: Where to draw; None makes a new figure.
        by: Column that names the lanes, such as "entity_type" or "transcript_id"; None takes `speaker` (or `channel`)
            of one transcript.
        pack: Put spans into as few lanes as they need not to overlap, in colours with a legend, instead of a lane for
            each speaker.
        speakers: Lanes from top to bottom; None takes them in the order they first speak. Others are left out.
        colors: A colour a lane (a label, where packed), used again from the first where there are more lanes.
        bands: Stretches of time to show above: a DataFrame such as `voxframe.load_chapters` gives (its `headline`,
            `label` or `text` is the title), or several by name, as in `{"chapters": chapters, "topics": topics}`.
        view: Start and end of what to show, in ms; None shows everything.

    Returns:
        The Axes; the x axis counts seconds. Bars closer than 1/4000 of what is in view are drawn as one.

    Raises:
        TypeError: `df` is no DataFrame.
        ValueError: A column is missing, the rows belong to several transcripts and `by` is None, there are more than
            200 lanes, or `view` does not end after it begins.

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
    if count > style.MOST_LANES:
        raise ValueError(
            f"{count} lanes are too many to see, {style.MOST_LANES} at most; "
            + ("choose a shorter view" if pack else "choose others as speakers=, another column as by=, or pack=True")
        )
    if ax is None:
        height = style.lanes_height(count + len(rows))
        ax = style.new_axes(10, height if lane is None else height + style.legend_height(names, 9))
    dark = style.is_dark(ax)
    palette = style.voice_colors(names, dark=dark) if colors is None else list(colors)
    if lane is not None and colors is None:
        palette = style.legend_colors(names, dark=dark)
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
    """Bars of one label: in one lane those that touch are one; packed ones stay apart."""
    from matplotlib.collections import PolyCollection

    left, right = (
        joined(start, end, resolution) if isinstance(at, int) else (start, np.maximum(end, start + resolution))
    )
    bars = PolyCollection(list(corners(left, right, at - 0.36, np.add(at, 0.36))), facecolors=color, linewidths=0)
    ax.add_collection(bars, autolim=False)
    return bars


def _chosen(found: Spans, names: list[Any]) -> Spans:
    """The spans of some labels, numbered in this order."""
    if names is found.names:
        return found
    number = {name: n for n, name in enumerate(names)}
    of = np.array([number.get(name, -1) for name in found.names], np.intp)
    code = of[found.code] if len(of) else found.code
    return Spans(found.start, found.end, code, found.row, names).where(code >= 0)


def _last(band: pd.DataFrame) -> float:
    """Where the last band ends, s."""
    end = band["end_ms"].max()
    return 0.0 if pd.isna(end) else float(end) / 1000


def _view(view: tuple[float, float] | None, last: float) -> tuple[float, float]:
    """What is in view, in seconds."""
    if view is None:
        return 0.0, last
    low, high = view
    if not low < high:
        raise ValueError(f"view is (start, end) in ms with the start first, not {view!r}")
    return low / 1000, high / 1000
