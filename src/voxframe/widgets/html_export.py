"""Widgets without a kernel: a self-contained HTML page, and a static SVG of lanes for notebooks."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from voxframe._text import clock
from voxframe.plots.style import COLORS, GREY, shown_names
from voxframe.widgets.base import ScriptedWidget, escaped, static

_STYLE = """body { margin: 24px auto; max-width: 1100px; padding: 0 12px; background: light-dark(#ffffff, #16181c); }
:root { color-scheme: light dark; }
"""


_WIDTH, _LEFT, _LANE = 720, 130, 24
#: Bars closer than this fraction of the total are joined, so that the SVG stays small with a million spans.
_RESOLUTION = 1 / 500


def write_page(widget: ScriptedWidget, path: str | os.PathLike[str], **changes: Any) -> None:
    """Write a widget as an HTML page.

    The page's content security policy allows only the widget's own script, by its hash.

    Args:
        widget: The widget with its current traits.
        path: Path of the HTML file.
        **changes: Traits with other values in the page.
    """
    state = {
        name: getattr(widget, name)
        for name in widget.keys
        if name not in {"layout", "tabbable", "tooltip", "comm"}
        and not name.startswith(("_dom", "_esm", "_css"))
        and not name.startswith(("_model", "_view", "_anywidget"))
    } | changes
    # "<" in the data could close the script element, so it is written as an escape.
    data = json.dumps(state, default=_plain).replace("<", "\\u003c")
    names = [f"{name}.js" for name in ("base", *widget.scripts, "page")]
    script = static(*names).replace("export default ", "const makeWidget = ", 1) + "\nstartPage(makeWidget());\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; media-src * data: blob: file:"
    )
    Path(path).write_text(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{escaped(widget.title)}</title>
<style>
{_STYLE}{widget._css}</style>
</head>
<body>
<main id="widget"></main>
<script type="application/json" id="state">{data}</script>
<script type="module">{script}</script>
</body>
</html>
""",
        encoding="utf-8",
    )


def _plain(value: object) -> object:
    """Encode bytes as JSON."""
    if isinstance(value, bytes | memoryview):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} cannot be written to a page")


def lanes_svg(
    lanes: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]],
    names: Sequence[object],
    color_indexes: Sequence[int],
    until: float,
) -> str:
    """Return an `<img>` of lanes with spans.

    Args:
        lanes: Start and end (ms) of the spans of each lane, sorted by start.
        names: Names of the lanes; a null becomes "(unknown)".
        color_indexes: Index in `COLORS` of each lane.
        until: End of the time axis in ms.
    """
    shown, until = shown_names(names, 18), max(until, 1.0)
    scale = (_WIDTH - _LEFT) / until
    height = _LANE * len(shown) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"']
    parts[0] += f' font-size="12" fill="{GREY}">'
    for n, ((start, end), name, color_index) in enumerate(zip(lanes, shown, color_indexes, strict=True)):
        top = n * _LANE
        parts.append(f'<text x="0" y="{top + 16}">{escaped(name)}</text>')
        left, right = _bars(start, end, until * _RESOLUTION)
        bars = "".join(
            f"M{_LEFT + a * scale:.1f} {top + 4}h{(b - a) * scale:.1f}v{_LANE - 8}h-{(b - a) * scale:.1f}z"
            for a, b in zip(left, right, strict=True)
        )
        color = COLORS[color_index].replace("#000000", GREY)  # also readable on a dark page
        parts.append(f'<path fill="{color}" d="{bars}"/>')
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
    """Join spans closer than `resolution` (ms), and extend shorter ones to it."""
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] - reach[:-1] > resolution])
    return start[first], np.maximum(reach[np.r_[first[1:], len(start)] - 1], start[first] + resolution)
