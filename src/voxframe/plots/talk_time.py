"""Talk time as bars, one a speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from voxframe import analysis
from voxframe.plots.style import clock, clock_axis, is_dark, lanes_height, name_lanes, new_axes, voice_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def talk_time(df: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how long each speaker of one transcript spoke.

    Args:
        df: Utterances or words of one transcript, or what `voxframe.analysis.talk_time` gives.
        ax: Where to draw; None makes a new figure.

    Returns:
        The Axes; the x axis counts seconds, each bar says its time and share.

    Raises:
        ValueError: A column is missing, or the rows belong to several transcripts.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> turns = {"id": "a", "utterances": [{"speaker": "A", "text": "Hello.", "start": 0, "end": 60000}]}
        >>> [text.get_text() for text in voxframe.plots.talk_time(voxframe.load_utterances(turns)).texts]
        ['1:00 (100%)']
    """
    table = df if {"talk_s", "share"} <= set(df.columns) else analysis.talk_time(df)
    if (count := table["transcript_id"].nunique()) > 1:
        raise ValueError(f"talk_time draws one transcript, the DataFrame has {count}; pick one of them first")
    ax = ax if ax is not None else new_axes(7, lanes_height(len(table)))
    seconds = table["talk_s"].to_list()
    ax.barh(range(len(table)), seconds, height=0.72, color=voice_colors(table["speaker"].to_list(), dark=is_dark(ax)))
    for y, (length, share) in enumerate(zip(seconds, table["share"], strict=True)):
        ax.annotate(f"{clock(length)} ({share:.0%})", (length, y), (4, 0), textcoords="offset points", va="center")
    name_lanes(ax, table["speaker"])
    longest = max(seconds, default=0)
    clock_axis(ax, 0, longest * 1.18, "talk time")  # room for the longest bar's own label
    return ax
