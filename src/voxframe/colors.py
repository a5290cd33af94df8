"""Colours of people, groups and search terms. Plots, widgets and static pages take them from one registry.

A person has one colour in every picture of a session. Labels such as "A" and "SPEAKER_01" determine their colour, in
every recording. The people of a corpus have theirs in every session, too. It is not stored: the corpus lists the names
that were given, then the labels of its recordings, and the registry goes through them in this order.

Two speakers of one picture never share a colour while there are colours left. If they would, one of them has a free
colour there, the same one in every picture of these speakers. The speakers A of two recordings share their colour; the
name of a lane, the style of a line or a hatching tells them apart.
"""

from __future__ import annotations

import re
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

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
ON_DARK |= {
    "#882255": "#E0609C",
    "#117733": "#4DBD74",
    "#332288": "#9F90F5",
    "#AA4499": "#DD7ACD",
    "#2A8C7E": "#44AA99",
}
#: Grey with a contrast ratio above 4 on white and on black: of unknown speakers, and of what has no colour.
GREY = "#777777"
#: Colours of people, then of terms, then of unknown speakers.
PALETTE = (*COLORS, *TERM_COLORS, GREY)

_CLEAREST = 6  # of the colours, which are ordered by contrast

#: What colours belong to. Terms have a palette of their own, so that no hit looks like a speaker.
Kind: TypeAlias = Literal["person", "group", "term"]


#: Index in `COLORS` or `TERM_COLORS` of each name of a kind, as long as this process lives.
registry: dict[tuple[Kind, str], int] = {}
#: For each open corpus, a function that returns names and speakers that are seen together, each with its label or None,
#: always in the same order. It is called when a name without a colour is drawn.
sources: weakref.WeakKeyDictionary[Any, Callable[[Any], Iterable[Mapping[str, str | None]]]] = (
    weakref.WeakKeyDictionary()
)


def color_indexes(names: Sequence[object], named: Mapping[Any, Any] | None = None, kind: Kind = "person") -> list[int]:
    """Return the index in `PALETTE` of each name. A person has the same one in every plot and widget.

    A label of a transcript determines its index: A to H have 0 to 7, and a label that ends in a number below 8 has this
    number. Other names have the index of the label that they name first, otherwise one that depends on the name. If
    somebody else in the picture has it, or if it is used more often than others, they have the one that is used least.
    They keep it. An unknown speaker is grey.

    If two of the names have the same index, which can happen with more than eight people in a session or with labels
    such as "agent 1" and "customer 1", the last in alphabetical order has a free one in this picture.

    Args:
        names: Names of people, labels, groups or terms; "call · Ada" belongs to Ada.
        named: Names by label, from `voxframe.analysis.speaker_turns.label_names`.

    Example:
        >>> color_indexes(["call · B", "A", None]), color_indexes(["Example", "B"], {"C": "Example"})
        ([1, 0, 16], [2, 1])
        >>> color_indexes(["agent 1", "customer 1"])
        [1, 0]
    """
    keys = [name.rpartition(" · ")[2] if isinstance(name, str) else None for name in names]
    label_of = _label_of(named or {})
    picture = {key: label_of.get(key) for key in keys if key is not None}
    if kind == "person" and any(_index(kind, *of) is None for of in picture.items()):
        for corpus, seen_together in list(sources.items()):
            _register(kind, list(seen_together(corpus)))
    _register(kind, [picture])
    indexes = _distinct({name: _index(kind, name, label) or 0 for name, label in picture.items()})
    first = len(COLORS) if kind == "term" else 0
    return [len(PALETTE) - 1 if key is None else first + indexes[key] for key in keys]


def _index(kind: Kind, name: str, label: object) -> int | None:
    """Return the index of a name: of a label that determines it, or the registered one; None if it has none."""
    own = _own_index(name) if kind == "person" and label is None else None
    return registry.get((kind, name)) if own is None else own


def _register(kind: Kind, pictures: Sequence[Mapping[str, object]]) -> None:
    """Give an index to the names that have none: in each picture or recording another one for each, if possible.

    Args:
        pictures: Names that are seen together, each with its label or None.
    """
    uses = Counter(index for (other, _), index in registry.items() if other == kind)
    for names in pictures:
        taken = {_index(kind, *of) for of in names.items()}
        missing = [(name, label) for name, label in names.items() if _index(kind, name, label) is None]
        for name, label in sorted(missing, key=lambda item: (item[1] is None, item[0])):
            own = _own_index(label)
            if own is None and kind != "group":
                own = zlib.crc32(name.encode(errors="replace")) % _CLEAREST  # the same in the next session
            index = min((n in taken, uses[n], n != own, n) for n in range(len(COLORS)))[-1]
            registry[kind, name] = index
            uses[index] += 1
            taken.add(index)


def _distinct(indexes: Mapping[str, int]) -> dict[str, int]:
    """Return the indexes; of names that share one, all but the first by name have free ones while there are any."""
    free = [n for n in range(len(COLORS)) if n not in indexes.values()]
    distinct: dict[str, int] = {}
    for name in sorted(indexes):
        shares = indexes[name] in distinct.values() and free
        distinct[name] = free.pop(0) if shares else indexes[name]
    return distinct


def _label_of(named: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the first label of each name; None for a name that is its own label."""
    label_of: dict[Any, Any] = {}
    for label, name in named.items():
        if label != name:
            label_of.setdefault(name, label)
    return label_of


def _own_index(label: object) -> int | None:
    """Return the index that the label alone determines, or None."""
    text = label if isinstance(label, str) else ""
    number = re.search(r"[0-9]+$", text)
    index = int(number[0][-9:]) if number else "ABCDEFGH".find(text) if len(text) == 1 else -1
    return index if 0 <= index < len(COLORS) else None


def themed(color: str, *, dark: bool) -> str:
    """Return the variant of a colour of `PALETTE` for a light or dark background."""
    return ON_DARK.get(color, color) if dark else color


def name_colors(
    names: Sequence[object], named: Mapping[Any, Any] | None = None, *, kind: Kind = "person", dark: bool = False
) -> list[str]:
    """Return one colour per name: see `color_indexes`.

    Args:
        named: Names by label if the speakers have names.
    """
    return [themed(PALETTE[index], dark=dark) for index in color_indexes(names, named, kind)]


def legend_colors(
    names: Sequence[object], named: Mapping[Any, Any] | None = None, *, kind: Kind = "person", dark: bool = False
) -> list[str]:
    """Return one colour per legend label: those of `name_colors`, and grey for labels beyond the eighth."""
    most = len(COLORS)
    return name_colors(names[:most], named, kind=kind, dark=dark) + [GREY] * (len(names) - most)
