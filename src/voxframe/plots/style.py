"""What the plots share: colours anyone can tell apart, names that cannot break a figure, times as people read them.

Text, ticks and frames keep the colours of matplotlib's style; what the plots colour themselves suits the Axes'
background, so that `matplotlib.style.use("dark_background")` is all a dark figure needs.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

#: Colours told apart with any common colour blindness: Okabe and Ito, Color Universal Design, 2008
#: (https://jfly.uni-koeln.de/color/), the strongest on white first, their yellow darkened to be seen on it.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800")
#: What a colour becomes on a dark background, where it alone would be too dark to see.
ON_DARK = {"#0072B2": "#3E9BDC", "#D55E00": "#EE7F2D", "#009E73": "#1FBF92", "#000000": "#D8DCE2"}
#: A grey with a contrast above 4 on white and on black.
GREY = "#777777"
#: More lanes than this cannot be told apart.
MOST_LANES = 200


def new_axes(width: float, height: float) -> Axes:
    """Axes of a new figure that pyplot (and so a notebook) knows, laid out so that no label is cut off."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def lanes_height(lanes: int) -> float:
    """Height of a new figure in inches: lanes become narrower where there are many."""
    return 1.2 + max(0.45 * min(lanes, 10), 0.25 * lanes, 0.45)


def is_dark(ax: Axes) -> bool:
    """Whether what is drawn on the Axes stands on a dark background."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(ax.get_facecolor())
    if alpha < 0.5:
        red, green, blue, _ = to_rgba(ax.get_figure(root=True).get_facecolor())  # type: ignore[union-attr]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4


def ink(ax: Axes) -> ColorType:
    """Colour of the text of the Axes, which shows on its background."""
    return ax.xaxis.label.get_color()


def themed(color: str, *, dark: bool) -> str:
    """A colour of `COLORS` as it is on a light or dark background."""
    return ON_DARK.get(color, color) if dark else color


def voice_colors(names: Sequence[object], *, dark: bool = False) -> list[str]:
    """A colour for each speaker: the same speakers get the same colours in every plot, whatever their order there.

    Args:
        names: Speakers, or other labels.
        dark: Whether they stand on a dark background.
    """
    place = {name: n for n, name in enumerate(sorted(names, key=lambda name: (not isinstance(name, str), str(name))))}
    return [themed(COLORS[place[name] % len(COLORS)], dark=dark) for name in names]


def legend_colors(names: Sequence[object], *, dark: bool = False) -> list[str]:
    """A colour for each label of a legend: those of `voice_colors` while they differ, grey for the others."""
    own = [themed(color, dark=dark) for color in COLORS]
    return voice_colors(names, dark=dark) if len(names) <= len(own) else [*own, *[GREY] * (len(names) - len(own))]


def shown_names(names: Iterable[object], longest: int = 24) -> list[str]:
    """Labels as text for a figure: one line, no control characters, shortened in their middle.

    Args:
        names: Labels; a null one becomes "(unknown)".
        longest: Most characters of a label.
    """
    cleaned = []
    for name in names:
        text = (
            "".join(c for c in str(name) if unicodedata.category(c)[0] != "C") if isinstance(name, str) else "(unknown)"
        )
        last = longest // 3  # long names often differ at their end only
        cleaned.append(text if len(text) <= longest else f"{text[: longest - 1 - last]}…{text[-last:]}")
    return cleaned


def name_lanes(ax: Axes, names: Iterable[object], *, above: Iterable[object] = ()) -> None:
    """Name the lanes of the y axis, the first on top. A `$` in a name stays one.

    Args:
        ax: Where the lanes are: at y = 0, 1, 2, ...
        names: Their names; where they stand too close for all, some are left out.
        above: Names of rows above the first lane, at y = ..., -2, -1.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import FontProperties

    over = shown_names(above)
    labels = [*over, *shown_names(names)]
    rows = max(1, len(labels) - len(over)) + len(over)
    room = ax.get_window_extent().height / rows  # pixels a row
    size = float(FontProperties(size=mpl.rcParams["ytick.labelsize"]).get_size_in_points())
    pixels_a_point = ax.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    size = min(size, max(5.0, 0.8 * room / pixels_a_point))
    every = max(1, math.ceil(1.25 * size * pixels_a_point / room)) if room > 0 else 1
    shown = range(0, len(labels), every)
    ax.set_yticks([n - len(over) for n in shown], [labels[n] for n in shown], fontsize=size)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.set_ylim(rows - len(over) - 0.5, -len(over) - 0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "right", "top"]].set_visible(False)


def legend_shape(labels: Sequence[str], width: float) -> tuple[int, int]:
    """Rows and columns of a legend with these labels on `width` inches."""
    # A character is some 0.09 inches wide at the usual 10 points, the mark and the space beside it 0.55.
    columns = max(1, int(width / (0.55 + 0.09 * max(map(len, labels), default=1))))
    columns = min(columns, max(1, len(labels)))
    return math.ceil(len(labels) / columns), columns


def legend_height(names: Sequence[object], width: float) -> float:
    """Inches that a legend of these labels needs above Axes of `width` inches."""
    labels = shown_names(names)[: len(COLORS) + 1]
    return 0.25 * legend_shape(labels, width)[0] if labels else 0.0


def add_legend(ax: Axes, handles: Sequence[Artist | None], names: Sequence[object]) -> None:
    """A legend above the Axes, in as many rows as its names need; none where nothing is drawn.

    Args:
        ax: The Axes.
        handles: What is drawn in the colours of `legend_colors`; None for a label that is not in view.
        names: The labels. Those that share the grey share an entry.
    """
    drawn = [(n, handle) for n, handle in enumerate(handles) if handle is not None]
    own = min(len(names), len(COLORS))
    shown = [handle for n, handle in drawn if n < own]
    labels = shown_names(names[n] for n, _ in drawn if n < own)
    if len(drawn) > len(shown):
        labels.append(f"{len(drawn) - len(shown)} others")
        shown.append(drawn[-1][1])
    if not shown:
        return
    figure = ax.get_figure(root=True)
    columns = legend_shape(labels, ax.get_window_extent().width / figure.dpi)[1]  # type: ignore[union-attr]
    legend = ax.legend(
        shown, labels, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, frameon=False, ncols=columns
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def clock(seconds: float, *, hours: bool = False) -> str:
    """Seconds as m:ss, or as h:mm:ss from one hour on and where `hours` says so.

    Example:
        >>> clock(75), clock(75, hours=True), clock(3675)
        ('1:15', '0:01:15', '1:01:15')
    """
    minutes, second = divmod(round(seconds), 60)
    if hours or minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"
    return f"{minutes}:{second:02d}"


def clock_axis(ax: Axes, low: float, high: float, label: str = "time") -> None:
    """Show `low` to `high` seconds on the x axis, with ticks at round times; say where that is nothing.

    Args:
        ax: The Axes.
        low: Where it begins, s.
        high: Where it ends, s.
        label: What the times are.
    """
    from voxframe.plots.ticks import ClockFormatter, ClockLocator

    if high <= low:
        ax.text(0.5, 0.5, "nothing to show", transform=ax.transAxes, ha="center", va="center", color=GREY)
    ax.set_xlim(low, high if high > low else low + 60)
    ax.xaxis.set_major_locator(ClockLocator())
    ax.xaxis.set_major_formatter(ClockFormatter())
    ax.set_xlabel(f"{label} (min:s)" if high < 3600 else f"{label} (h:min:s)")
