"""Tick locator and formatter for time axes, with ticks at round times."""

from __future__ import annotations

import math

from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, Locator

from voxframe._text import clock

#: Seconds between ticks.
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)


def step(seconds: float, ticks: int) -> float:
    """Return the seconds between ticks for at most `ticks` ticks in a span of `seconds`.

    Example:
        >>> step(125, 8), step(4, 8), step(3 * 86_400, 8)
        (30, 0.5, 57600)
    """
    found = next((s for s in _STEPS if seconds / s <= ticks), _STEPS[-1])
    while seconds / found > ticks:
        found *= 2
    return found


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
        whole, part = divmod(round(x * parts), parts)
        sign = "-" if whole < 0 else ""
        return sign + clock(abs(whole), hours=high >= 3600) + (f".{part:0{digits}d}" if digits else "")
