"""Bands: titled time spans, such as chapters and topics, in rows above the lanes of a plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.text import Text

from voxframe.analysis.speaker_columns import require
from voxframe.plots.spans import corners, one_transcript, seconds
from voxframe.plots.style import ink, shown_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

#: A DataFrame, such as the result of `voxframe.load_chapters`, or a dict from row name to DataFrame.
Bands: TypeAlias = pd.DataFrame | Mapping[str, pd.DataFrame]

_TITLES = ("headline", "label", "text")


def band_rows(bands: Bands | None) -> dict[str, pd.DataFrame]:
    """Return the bands as a dict from row name to DataFrame.

    Raises:
        TypeError: A value is not a DataFrame.
        ValueError: A column is missing, or the rows belong to more than one transcript.
    """
    if bands is None:
        return {}
    rows = dict(bands) if isinstance(bands, Mapping) else {"": bands}
    for df in rows.values():
        require(df, ("start_ms", "end_ms"), "bands of timeline")
        one_transcript(df, "bands of timeline")
    return rows


def draw_bands(ax: Axes, rows: dict[str, pd.DataFrame], low: float, high: float) -> None:
    """Draw rows of bands at y = -len(rows), ..., -1, the first row on top.

    Titles are shortened to fit into their bands.

    Args:
        ax: Axes to draw on.
        rows: Bands by row name. If several bands have the same start and end, only the first is drawn.
        low: Start of the visible range, in seconds.
        high: End of the visible range, in seconds.
    """
    from matplotlib.collections import PolyCollection

    for y, df in enumerate(rows.values(), -len(rows)):
        start, end = seconds(df["start_ms"]), seconds(df["end_ms"])
        first = ~df.duplicated(["start_ms", "end_ms"]).to_numpy()
        kept = np.flatnonzero(first & (start < high) & (end > low))
        kept = kept[np.argsort(start[kept], kind="stable")]
        bars = PolyCollection(
            list(corners(start[kept], end[kept], y - 0.4, y + 0.4)),
            facecolors=[(ink(ax), strength) for strength in (0.14, 0.26)],  # tell neighbours apart
            linewidths=0,
        )
        ax.add_collection(bars, autolim=False)
        named = next((name for name in _TITLES if name in df.columns), None)
        titles = _titles(df[named].iloc[kept], named) if named else []
        ends = np.minimum(end[kept], np.r_[start[kept][1:], np.inf])  # titles never overlap
        for title, begin, finish in zip(titles, start[kept], ends, strict=False):
            ax.add_artist(_Title(ax, title, max(begin, low), min(finish, high), y))


def _titles(texts: pd.Series[Any], column: str | None) -> list[str]:
    """Return titles as text for a figure. A topic label such as "A>B>C" is shown as its last level."""
    if column == "label":
        texts = texts.map(lambda text: text.rpartition(">")[2] if isinstance(text, str) else text)
    return ["" if pd.isna(text) else name for text, name in zip(texts, shown_names(texts, 200), strict=True)]


class _Title(Text):
    """A text that shows as many characters as fit between two times, also after resizing or zooming."""

    def __init__(self, ax: Axes, title: str, begin: float, end: float, y: float) -> None:
        super().__init__(begin, y, "", va="center", color=ink(ax), fontsize="small", parse_math=False, clip_on=True)
        self.title, self._begin, self._end, self._y = title, begin, end, y
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draw as much of the title as fits, with a small margin on both sides."""
        axes = self.axes
        if axes is None:
            return
        low, high = sorted(axes.get_xlim())
        corners = [(max(self._begin, low), self._y), (min(self._end, high), self._y)]
        edges = axes.transData.transform(corners)
        margin: Any = renderer.points_to_pixels(3)
        room = edges[1, 0] - edges[0, 0] - 2 * margin
        self.set_x(axes.transData.inverted().transform((edges[0, 0] + margin, edges[0, 1]))[0])
        self.set_text(self._fitted(renderer, room))
        super().draw(renderer)

    def _fitted(self, renderer: RendererBase, room: float) -> str:
        """Return the title shortened to `room` pixels, or "" if fewer than two characters fit."""

        def fits(count: int) -> bool:
            self.set_text(self._shortened(count))
            return bool(self.get_window_extent(renderer).width <= room)

        if room <= 0 or not self.title:
            return ""
        few, many = 0, len(self.title)  # binary search for the longest title that fits
        while few < many:
            middle = (few + many + 1) // 2
            few, many = (middle, many) if fits(middle) else (few, middle - 1)
        return self._shortened(few) if few > 1 or few == len(self.title) else ""

    def _shortened(self, count: int) -> str:
        return self.title if count >= len(self.title) else self.title[:count].rstrip() + "…"
