"""Matplotlib classes for a time axis: ticks at round times, and titles that fit into their bands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.ticker import Formatter, Locator

from voxframe._text import clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase


#: Seconds between ticks.
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)


def step(seconds: float, ticks: int) -> float:
    """Return the seconds between ticks for at most `ticks` ticks in a span of `seconds`.

    Example:
        >>> step(125, 8), step(4, 8), step(3 * 86_400, 8)
        (30, 0.5, 57600)
    """
    length = next((s for s in _STEPS if seconds / s <= ticks), _STEPS[-1])
    while seconds / length > ticks:
        length *= 2
    return length


class ClockLocator(Locator):
    """Ticks at round times: as many as fit, at most eight."""

    def __call__(self) -> list[float]:
        """Return the ticks in seconds."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks of an axis from `vmin` to `vmax` seconds."""
        low, high = sorted((vmin, vmax))
        # get_tick_space() assumes labels of three characters; clock labels have about seven.
        room = self.axis.get_tick_space() // 2 if isinstance(self.axis, Axis) else 8
        every = step(high - low, max(2, min(8, room)))
        return [n * every for n in range(math.ceil(low / every), math.floor(high / every) + 1)]


class ClockFormatter(Formatter):
    """Format seconds as m:ss, or h:mm:ss if the axis exceeds an hour, with decimals if it spans only a few seconds."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002  the base class has it
        """Return the text of a tick."""
        assert self.axis is not None
        low, high = sorted(self.axis.get_view_interval())
        digits = 0 if high - low > 4 else 1 if high - low > 0.4 else 2
        parts = 10**digits
        integer, part = divmod(abs(round(x * parts)), parts)
        sign = "-" if x < 0 and (integer or part) else ""
        return sign + clock(integer, hours=high >= 3600) + (f".{part:0{digits}d}" if digits else "")


class BandTitle(Text):
    """A text that shows as many characters as fit between two times, also after resizing or zooming."""

    def __init__(self, ax: Axes, title: str, begin: float, end: float, y: float) -> None:
        super().__init__(
            begin,
            y,
            "",
            va="center",
            color=ax.xaxis.label.get_color(),
            fontsize="small",
            parse_math=False,
            clip_on=True,
        )
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
