"""Shared style of the plots: safe labels, legends and time axes.

Text, ticks and frames keep the colours of matplotlib's style. The other colours adapt to the background of the Axes,
so `matplotlib.style.use("dark_background")` is enough for a dark figure.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from voxframe.colors import COLORS, GREY
from voxframe.validators import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

#: Styles of lines and hatchings of bars that have one colour: of the speakers A of several recordings.
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx")
#: Maximum number of lanes; more cannot be told apart.
MAX_LANES = 200


def given_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or those of a new pyplot figure, laid out so that no label is cut off.

    Args:
        ax: Axes. None: a new figure.
    """
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else checked_axes(ax)


def checked_axes(ax: object) -> Axes:
    """Return Axes."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be one Axes of matplotlib, such as axes[0] after figure, axes = plt.subplots(2), got {shown(ax)}"
        )
    return ax


def check_lanes(count: int, noun: str, advice: str) -> None:
    """Raise a ValueError if there are more lanes than can be told apart."""
    if count > MAX_LANES:
        raise ValueError(f"{count} {noun} are too many, at most {MAX_LANES} can be shown; {advice}")


def lanes_height(lanes: int) -> float:
    """Return the height of a new figure in inches. Lanes become narrower as their number grows."""
    return 1.2 + max(0.45 * min(lanes, 10), 0.25 * lanes, 0.45)


def is_dark(ax: Axes) -> bool:
    """Return True if the Axes have a dark background."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(ax.get_facecolor())
    if alpha < 0.5:
        red, green, blue, _ = to_rgba(ax.get_figure(root=True).get_facecolor())  # type: ignore[union-attr]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4


def ink(ax: Axes) -> ColorType:
    """Return the text colour of the Axes, which is visible on their background."""
    return ax.xaxis.label.get_color()


def shown_names(names: Iterable[object], longest: int = 40) -> list[str]:
    """Return labels as text for a figure: one line, no control characters, shortened in the middle.

    Args:
        names: Labels. A null label becomes "(unknown)". Each part of a label such as "call · Ada" is shortened.

    Example:
        >>> shown_names(["the recording of the first meeting · Ada", "call · Ada"], 20)
        ['the recor…ting · Ada', 'call · Ada']
    """
    cleaned = []
    for name in names:
        text = (
            "".join(c for c in str(name) if unicodedata.category(c)[0] != "C") if isinstance(name, str) else "(unknown)"
        )
        parts = text.split(" · ") if len(text) > longest else [text]
        room, budget = longest, longest - 3 * (len(parts) - 1)
        for n, part in enumerate(sorted(parts, key=len)):  # long parts share what short ones leave
            room = max(8, budget // (len(parts) - n))
            if len(part) > room:
                break
            budget -= len(part)
        last = room // 3  # long names often differ only at the end
        short = [part if len(part) <= room else f"{part[: room - 1 - last]}…{part[-last:]}" for part in parts]
        cleaned.append(" · ".join(short))
    return cleaned


def name_lanes(ax: Axes, names: Iterable[object], *, above: Iterable[object] = ()) -> None:
    """Label the lanes of the y axis, the first on top. A `$` in a name is shown as it is, never read as a formula.

    Args:
        ax: Axes with the lanes at y = 0, 1, 2, ...
        names: Names of the lanes. If there is not enough room, some are left out.
        above: Names of rows above the first lane, at y = ..., -2, -1.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import FontProperties

    over = shown_names(above)
    labels = [*over, *shown_names(names)]
    rows = max(1, len(labels) - len(over)) + len(over)
    room = ax.get_window_extent().height / rows  # pixels per row
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
    """Return the number of rows and columns of a legend that is `width` inches wide."""
    # At 10 points, a character is about 0.09 inches wide; the marker and its padding take 0.55.
    columns = max(1, int(width / (0.55 + 0.09 * max(map(len, labels), default=1))))
    columns = min(columns, max(1, len(labels)))
    return math.ceil(len(labels) / columns), columns


def legend_height(names: Sequence[object], width: float) -> float:
    """Return the height in inches that a legend needs above Axes that are `width` inches wide."""
    labels = shown_names(names)[: len(COLORS) + 1]
    return 0.25 * legend_shape(labels, width)[0] if labels else 0.0


def by_color(colors: Sequence[object], styles: Sequence[str]) -> list[str]:
    """Return a style for each colour: the first one, and the next if the colour came before. Grey has the first one.

    Example:
        >>> by_color(["#0072B2", "#D55E00", "#0072B2"], LINES)
        ['-', '-', '--']
    """
    return [styles[0 if color == GREY else colors[:n].count(color) % len(styles)] for n, color in enumerate(colors)]


def add_legend(ax: Axes, handles: Sequence[Artist | None], names: Sequence[object]) -> None:
    """Add a legend above the Axes, with as many rows as the names need. Nothing is added if nothing is drawn.

    Args:
        handles: Artists drawn in the colours of `legend_colors`; None for a label that is not visible.
        names: The labels. All grey labels share one entry.
    """
    drawn = [(n, handle) for n, handle in enumerate(handles) if handle is not None]
    distinct = min(len(names), len(COLORS))
    entries = [handle for n, handle in drawn if n < distinct]
    labels = shown_names(names[n] for n, _ in drawn if n < distinct)
    if len(drawn) > len(entries):
        labels.append(f"{len(drawn) - len(entries)} others")
        entries.append(drawn[-1][1])
    if not entries:
        return
    figure = ax.get_figure(root=True)
    columns = legend_shape(labels, ax.get_window_extent().width / figure.dpi)[1]  # type: ignore[union-attr]
    legend = ax.legend(
        entries, labels, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, frameon=False, ncols=columns
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def say_nothing_to_show(ax: Axes) -> None:
    """Write "nothing to show" in the middle of the Axes."""
    ax.text(0.5, 0.5, "nothing to show", transform=ax.transAxes, ha="center", va="center", color=GREY)


def clock_axis(ax: Axes, low: float, high: float, label: str = "time") -> None:
    """Show `low` to `high` seconds on the x axis, with ticks at round times. An empty range shows "nothing to show".

    Args:
        low: Start in seconds.
        high: End in seconds.
        label: Axis label; the unit is added.
    """
    from voxframe.plots.time_axis import ClockFormatter, ClockLocator

    if high <= low:
        say_nothing_to_show(ax)
    ax.set_xlim(low, high if high > low else low + 60)
    ax.xaxis.set_major_locator(ClockLocator())
    ax.xaxis.set_major_formatter(ClockFormatter())
    ax.set_xlabel(f"{label} (min:s)" if high < 3600 else f"{label} (h:min:s)")
