"""Shared style of the plots: distinguishable colours, safe labels and time axes.

Text, ticks and frames keep the colours of matplotlib's style. The other colours adapt to the background of the Axes,
so `matplotlib.style.use("dark_background")` is enough for a dark figure.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from voxframe.validators import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

#: Colours that people with any common colour blindness can tell apart: Okabe and Ito, Color Universal Design, 2008
#: (https://jfly.uni-koeln.de/color/). Ordered by contrast on white; their yellow is darkened to be visible on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800")
#: Replacements on a dark background for colours that would be too dark to see.
ON_DARK = {"#0072B2": "#3E9BDC", "#D55E00": "#EE7F2D", "#009E73": "#1FBF92", "#000000": "#D8DCE2"}
#: Colours of sentiment, which no speaker has: ColorBrewer's PiYG, safe for colour blindness (https://colorbrewer2.org).
POSITIVE, NEGATIVE = "#4D9221", "#C51B7D"
ON_DARK |= {POSITIVE: "#7FBC41", NEGATIVE: "#E86FB4"}
#: Colours of search terms, which no speaker has: the dark half of P. Tol's muted scheme (https://personal.sron.nl/~pault/).
TERM_COLORS = ("#882255", "#117733", "#332288", "#AA4499", "#8A8A00", "#CC6677", "#2A8C7E", "#6B6BB8")
#: Colours of people, then of terms.
PALETTE = COLORS + TERM_COLORS
ON_DARK |= {
    "#882255": "#E0609C",
    "#117733": "#4DBD74",
    "#332288": "#9F90F5",
    "#AA4499": "#DD7ACD",
    "#2A8C7E": "#44AA99",
}
#: Grey with a contrast ratio above 4 on white and on black.
GREY = "#777777"
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


def themed(color: str, *, dark: bool) -> str:
    """Return the variant of a colour of `COLORS` for a light or dark background."""
    return ON_DARK.get(color, color) if dark else color


#: What colours belong to. Terms have a palette of their own, so that no hit looks like a speaker.
Kind: TypeAlias = Literal["person", "group", "term"]
#: Index in its palette of each name of a kind, as long as this process lives.
registry: dict[tuple[Kind, str], int] = {}


def color_indexes(names: Sequence[object], named: Mapping[Any, Any] | None = None, kind: Kind = "person") -> list[int]:
    """Return the index in its palette of each name. A person has the same colour in every plot and widget.

    A label of a transcript determines its index: A to H have 0 to 7, and a label that ends in a number below 8 has this
    number. Other names have the index of the label that they name first, if nobody else has it, otherwise the one that
    is used least. They keep it.

    Args:
        names: Names of people, labels, groups or terms; "call · Ada" belongs to Ada.
        named: Names by label, from `voxframe.analysis.speaker_turns.label_names`.

    Example:
        >>> color_indexes(["call · B", "A"]), color_indexes(["Example", "B"], {"C": "Example"})
        ([1, 0], [2, 1])
    """
    keys = [name.rpartition(" · ")[2] if isinstance(name, str) else None for name in names]
    label_of: dict[Any, Any] = {}
    for label, name in (named or {}).items():
        if label != name and (name not in label_of or _own_place(label) is not None):
            label_of.setdefault(name, label)
    fixed = {key: _own_place(key) if kind == "person" and key not in label_of else None for key in keys}
    reserved = set(fixed.values())
    places: dict[str | None, int] = {}
    unfixed = {key for key in keys if key is not None and fixed[key] is None}
    for key in sorted(unfixed, key=lambda key: (key not in label_of, key)):
        if (kind, key) not in registry:
            uses = Counter(place for (other, _), place in registry.items() if other == kind)
            own_place = _own_place(label_of.get(key))
            registry[kind, key] = min(
                range(len(COLORS)), key=lambda place: (place in reserved, uses[place], place != own_place, place)
            )
        places[key] = registry[kind, key]
    for key_left in sorted({*keys} - {*places}, key=lambda key: (key is None, key or "")):
        own_place, used = fixed[key_left], {*places.values()}
        free = (place for place in range(len(COLORS)) if place not in used)
        places[key_left] = own_place if own_place is not None and own_place not in used else next(free, own_place or 0)
    return [places[key] for key in keys]


def _own_place(label: object) -> int | None:
    """Return the index that the label alone determines, or None."""
    text = label if isinstance(label, str) else ""
    number = re.search(r"[0-9]+$", text)
    place = int(number[0][-9:]) if number else "ABCDEFGH".find(text) if len(text) == 1 else -1
    return place if 0 <= place < len(COLORS) else None


def name_colors(
    names: Sequence[object], named: Mapping[Any, Any] | None = None, *, kind: Kind = "person", dark: bool = False
) -> list[str]:
    """Return one colour per name: see `color_indexes`.

    Args:
        named: Names by label if the speakers have names.
    """
    palette = TERM_COLORS if kind == "term" else COLORS
    return [themed(palette[place], dark=dark) for place in color_indexes(names, named, kind)]


def legend_colors(
    names: Sequence[object], named: Mapping[Any, Any] | None = None, *, kind: Kind = "person", dark: bool = False
) -> list[str]:
    """Return one colour per legend label: those of `name_colors`, and grey for labels beyond the eighth."""
    most = len(COLORS)
    return name_colors(names[:most], named, kind=kind, dark=dark) + [GREY] * (len(names) - most)


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
