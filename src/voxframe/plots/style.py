"""What the plots share: colours anyone can tell apart, names that cannot break a figure, times as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's colours, told apart with any common colour blindness, the strongest on white first.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800")

#: Seconds between ticks that people count in.
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)


def new_axes(width: float, height: float) -> Axes:
    """Axes of a new figure that pyplot (and so a notebook) knows, laid out so that no label is cut off."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def voice_colors(names: Sequence[object]) -> list[str]:
    """A colour for each speaker: the same speakers get the same colours in every plot, whatever their order there."""
    place = {name: n for n, name in enumerate(sorted(names, key=lambda name: (not isinstance(name, str), str(name))))}
    return [COLORS[place[name] % len(COLORS)] for name in names]


def shown_names(names: Iterable[object], longest: int = 24) -> list[str]:
    """Labels as text for a figure: one line, no control characters, shortened.

    Args:
        names: Labels; a null one becomes "(unknown)".
        longest: Most characters of a label.
    """
    cleaned = []
    for name in names:
        text = (
            "".join(c for c in str(name) if unicodedata.category(c)[0] != "C") if isinstance(name, str) else "(unknown)"
        )
        cleaned.append(text if len(text) <= longest else text[: longest - 1] + "…")
    return cleaned


def name_lanes(ax: Axes, names: Iterable[object]) -> None:
    """Name the lanes of the y axis, the first on top. A `$` in a name stays one."""
    labels = shown_names(names)
    ax.set_yticks(range(len(labels)), labels)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.set_ylim(max(1, len(labels)) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "right", "top"]].set_visible(False)


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


def clock_axis(ax: Axes, seconds: float) -> None:
    """Ticks of the x axis at round times, some seven of them over `seconds`."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    step = next((s for s in _STEPS if seconds / s <= 8), _STEPS[-1])
    while seconds / step > 8:
        step *= 2
    ax.xaxis.set_major_locator(MultipleLocator(step))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: clock(tick, hours=seconds >= 3600)))
