"""Strip of the places at which two transcripts differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from voxframe.analysis.speaker_turns import require
from voxframe.compare.disagreement_spans import disagreements as places_of
from voxframe.plots import style
from voxframe.plots.spans import RESOLUTION, corners

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Kinds of places, and the index of their colour.
_KINDS = {"substitution": 1, "deletion": 0, "insertion": 2}
_LEAST = 0.002  # width of a bar as a share of the longest recording, so that a short word is visible


def disagreements(df: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw where two transcripts differ: one lane per recording, one bar per place, coloured by the kind of edit.

    Args:
        df: Result of `voxframe.compare.align` or of `voxframe.compare.disagreements`, of one recording or many.
        ax: Axes to draw on. None (default): a new figure.

    Returns:
        The Axes, with seconds on the x axis. The lane of a recording ends with its last word, or its last disagreement
        if `df` has only these.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, or there are more than 200 recordings.

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
    found = places_of(df) if "hyp_end_ms" in df.columns else df
    ends = df[[name for name in ("ref_end_ms", "hyp_end_ms", "end_ms") if name in df.columns]]
    lasts = ends.astype("Float64").max(axis=1).groupby(df["recording"].fillna(""), sort=False).max().fillna(0) / 1000
    if len(lasts) > style.MAX_LANES:
        raise ValueError(f"{len(lasts)} recordings are too many, at most {style.MAX_LANES} can be shown; select some")
    if ax is None:
        ax = style.new_axes(10, style.lanes_height(len(lasts)) + style.legend_height([*_KINDS], 9))
    dark = style.is_dark(ax)
    high = float(lasts.max()) if len(lasts) else 0.0
    whole = corners(
        np.zeros(len(lasts)), lasts.to_numpy(float), np.arange(len(lasts)) - 0.36, np.arange(len(lasts)) + 0.36
    )
    ax.add_collection(PolyCollection(list(whole), facecolors=style.GREY, alpha=0.18, linewidths=0), autolim=False)
    known = found[found["start_ms"].notna()]
    lane = lasts.index.get_indexer(pd.Index(known["recording"].fillna("")))
    start, end = (known[name].to_numpy(float) / 1000 for name in ("start_ms", "end_ms"))
    end = np.maximum(end, start + high * max(_LEAST, RESOLUTION))
    bars = []
    for kind, color in _KINDS.items():
        of = (known["edit"] == kind).to_numpy(bool)
        paths = corners(start[of], end[of], lane[of] - 0.36, lane[of] + 0.36)
        face = style.themed(style.COLORS[color], dark=dark)
        bars.append(PolyCollection(list(paths), facecolors=face, linewidths=0, label=kind))
        ax.add_collection(bars[-1], autolim=False)
    style.name_lanes(ax, lasts.index)
    style.clock_axis(ax, 0.0, high)
    style.add_legend(ax, [bar if len(bar.get_paths()) else None for bar in bars], [*_KINDS])
    return ax
