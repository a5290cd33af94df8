"""Data for the browser: binary columns, static SVG of lanes, and self-contained HTML pages."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._text import clock
from voxframe.colors import GREY, PALETTE
from voxframe.plots.lanes import band_titles, joined, shown_names
from voxframe.widgets.base import ScriptedWidget, escaped, static

#: Maximum time in ms (24 days).
LAST_MS = 2**31 - 1
#: Maximum number of lines in static HTML.
STATIC_ROWS = 12


def times(df: pd.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return start and end in ms (float64, shape (rows,)), and True for rows with valid times."""
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan)
    end = df["end_ms"].to_numpy(np.float64, na_value=np.nan)
    return start, end, (start >= 0) & (end >= start) & (end <= LAST_MS)  # False for NaN


def require_times(df: pd.DataFrame) -> None:
    """Check that `start_ms` and `end_ms` are numbers; columns without values may have any dtype."""
    for name in ("start_ms", "end_ms"):
        times = df[name].convert_dtypes() if df[name].dtype == object else df[name]
        if not pd.api.types.is_numeric_dtype(times) and times.notna().any():
            raise ValueError(
                f"{name} must be a column of numbers (ms), but its dtype is {df[name].dtype}; convert it to ms"
            )


def int32(values: npt.ArrayLike) -> bytes:
    r"""Return whole numbers as the bytes of an Int32Array.

    Example:
        >>> int32([1, 256])
        b'\x01\x00\x00\x00\x00\x01\x00\x00'
    """
    return np.asarray(values).astype("<i4").tobytes()


def float32(values: npt.ArrayLike) -> bytes:
    """Return numbers as the bytes of a Float32Array; missing numbers are NaN."""
    return np.asarray(values, np.float64).astype("<f4").tobytes()


def texts(values: Iterable[object]) -> tuple[bytes, bytes]:
    r"""Return concatenated UTF-8 bytes of texts, and their offsets as the bytes of an Int32Array.

    Nulls become empty texts; characters that UTF-8 cannot encode become "?".

    Example:
        >>> data, offsets = texts(["Hi", None, "é"])
        >>> data, np.frombuffer(offsets, "<i4").tolist()
        (b'Hi\xc3\xa9', [0, 2, 2, 4])
    """
    encoded = [value.encode("utf-8", "replace") if isinstance(value, str) else b"" for value in values]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return b"".join(encoded), int32(np.r_[0, np.cumsum(lengths)])


def starts(df: pd.DataFrame) -> bytes:
    """Return the starts of rows in ms as the bytes of an Int32Array; -1 if a start is unknown."""
    start = df["start_ms"].to_numpy(np.float64, na_value=np.nan)
    return int32(np.clip(np.where(start >= 0, start, -1), -1, LAST_MS))


def lines_table(lines: Iterable[tuple[str, str, str, str]]) -> str:
    """Return passages as an HTML table: place, words before, passage and words after."""
    cell = 'style="padding:1px 6px;text-align:'
    rows = (
        f'<tr><td {cell}left">{escaped(where)}</td><td {cell}right">{escaped(before)}</td>'
        f'<td {cell}center"><strong>{escaped(match)}</strong></td><td {cell}left">{escaped(right)}</td></tr>'
        for where, before, match, right in lines
    )
    return f"<table>{''.join(rows)}</table>"


def bands(table: pd.DataFrame | None, text: str, prefix: str) -> dict[str, bytes]:
    """Return columns of titled spans in time order: `<prefix>_start`, `_end`, `_text` and `_offsets`.

    Args:
        table: Rows with `start_ms` and `end_ms`; None gives no columns.
    """
    if table is None:
        return {}
    start, end, timed = times(table)
    order = np.flatnonzero(timed)[np.argsort(start[timed], kind="stable")]
    data, offsets = texts(band_titles(table, text).iloc[order])
    packed = {"start": int32(start[order]), "end": int32(end[order]), "text": data, "offsets": offsets}
    return {f"{prefix}_{name}": value for name, value in packed.items()}


_STYLE = """body { margin: 24px auto; max-width: 1100px; padding: 0 12px; background: light-dark(#ffffff, #16181c); }
:root { color-scheme: light dark; }
"""


_WIDTH, _LEFT, _LANE = 720, 130, 24
#: Bars closer than this fraction of the total are joined, so that the SVG stays small with a million spans.
_RESOLUTION = 1 / 500


def write_page(widget: ScriptedWidget, path: str | os.PathLike[str], **changes: Any) -> None:
    """Write a widget as an HTML page.

    The page's content security policy allows only the widget's own script, by its hash.
    """
    state = {
        name: getattr(widget, name)
        for name in widget.keys
        if name not in {"layout", "tabbable", "tooltip", "comm", "player"}
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
    *,
    what: str = "Who speaks when",
    tick: Callable[[float], str] = lambda ms: clock(ms / 1000),
) -> str:
    """Return an `<img>` of lanes with spans.

    Args:
        lanes: Start and end (ms) of the spans of each lane, sorted by start.
        names: Names of the lanes; a null becomes "(unknown)".
        color_indexes: Index in `PALETTE` of each lane.
        until: End of the axis in ms, or in another unit.
    """
    labels, until = shown_names(names, 18), max(until, 1.0)
    scale = (_WIDTH - _LEFT) / until
    height = _LANE * len(labels) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"']
    parts[0] += f' font-size="12" fill="{GREY}">'
    for n, ((start, end), name, color_index) in enumerate(zip(lanes, labels, color_indexes, strict=True)):
        top = n * _LANE
        parts.append(f'<text x="0" y="{top + 16}">{escaped(name)}</text>')
        begin, right = joined(start, end, until * _RESOLUTION)
        bars = "".join(
            f"M{_LEFT + a * scale:.1f} {top + 4}h{(b - a) * scale:.1f}v{_LANE - 8}h-{(b - a) * scale:.1f}z"
            for a, b in zip(begin, right, strict=True)
        )
        color = PALETTE[color_index].replace("#000000", GREY)  # also readable on a dark page
        parts.append(f'<path fill="{color}" d="{bars}"/>')
    for part in (0, 0.5, 1):
        anchor = {0: "start", 0.5: "middle", 1: "end"}[part]
        x = _LEFT + part * (_WIDTH - _LEFT)
        parts.append(f'<text x="{x}" y="{height - 4}" text-anchor="{anchor}">{escaped(tick(part * until))}</text>')
    parts.append("</svg>")
    alt = f"{what}: {', '.join(labels)}; {tick(0)} to {tick(until)}"
    source = "data:image/svg+xml," + quote("".join(parts), safe=" /:=.,;")
    return f'<img style="width:100%;max-width:{_WIDTH}px" alt="{escaped(alt)}" src="{source}">'
