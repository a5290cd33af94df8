"""A still picture of lanes for notebooks that are only read: an SVG, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from voxframe.plots.style import GREY, clock, shown_names, voice_colors
from voxframe.widgets.base import escaped

_WIDTH, _LEFT, _LANE = 720, 130, 24
#: Bars nearer than this part of the whole are one bar, so that the picture stays small with a million spans.
_RESOLUTION = 1 / 500


def lanes_picture(
    lanes: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]], names: Sequence[object], until: float
) -> str:
    """An `<img>` of who speaks when.

    Args:
        lanes: Start and end (ms) of the spans of each lane, sorted by start.
        names: Names of the lanes; null becomes "(unknown)".
        until: Where the time axis ends, ms.
    """
    shown, until = shown_names(names, 18), max(until, 1.0)
    scale = (_WIDTH - _LEFT) / until
    height = _LANE * len(shown) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"']
    parts[0] += f' font-size="12" fill="{GREY}">'
    for n, ((start, end), name, color) in enumerate(zip(lanes, shown, voice_colors(names), strict=True)):
        top = n * _LANE
        parts.append(f'<text x="0" y="{top + 16}">{escaped(name)}</text>')
        left, right = _bars(start, end, until * _RESOLUTION)
        bars = "".join(
            f"M{_LEFT + a * scale:.1f} {top + 4}h{(b - a) * scale:.1f}v{_LANE - 8}h-{(b - a) * scale:.1f}z"
            for a, b in zip(left, right, strict=True)
        )
        parts.append(f'<path fill="{GREY if color == "#000000" else color}" d="{bars}"/>')
    for part in (0, 0.5, 1):
        anchor = {0: "start", 0.5: "middle", 1: "end"}[part]
        x = _LEFT + part * (_WIDTH - _LEFT)
        parts.append(f'<text x="{x}" y="{height - 4}" text-anchor="{anchor}">{clock(part * until / 1000)}</text>')
    parts.append("</svg>")
    alt = f"Who speaks when: {', '.join(shown)}; 0:00 to {clock(until / 1000)}"
    source = "data:image/svg+xml," + quote("".join(parts), safe=" /:=.,;")
    return f'<img style="width:100%;max-width:{_WIDTH}px" alt="{escaped(alt)}" src="{source}">'


def _bars(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], resolution: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Spans nearer than `resolution` (ms) joined, none shorter than it."""
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] - reach[:-1] > resolution])
    return start[first], np.maximum(reach[np.r_[first[1:], len(start)] - 1], start[first] + resolution)
