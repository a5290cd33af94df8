"""Colours of people, groups and search terms. Plots, widgets and static pages take them from one registry.

A person has one colour in every picture of a session. Labels such as "A" and "SPEAKER_01" determine their colour, in
every recording. The people of a corpus have theirs in every session, too. It is not stored: the corpus lists the names
that were given, then the labels of its recordings, and the registry goes through them in this order.

Two speakers of one recording never share a colour while there are colours left. If they would, one of them, a label
rather than a person, has a free one in every picture of this recording. Speakers of two recordings may share a colour;
the name of a lane, the style of a line or a hatching tells them apart. What else a picture shows changes no colour.
"""

from __future__ import annotations

import re
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
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


#: Names of speakers and groups that are not known.
_UNKNOWN = ("(unknown)", "no speaker")

#: Index in `COLORS` of each person or group that has one, as long as this process lives.
registry: dict[tuple[Kind, str], int] = {}
#: Names by label of the speakers of each transcript seen so far; a speaker without a name has the label. A corpus
#: removes those of a transcript when its names change.
recordings: dict[Any, dict[Any, str]] = {}
#: For each open corpus, a function that returns pairs like those of `recordings`, always in the same order; None is not
#: the id of a transcript, but stands for people of several. It is called when somebody is drawn who is not known yet.
sources: weakref.WeakKeyDictionary[Any, Callable[[Any], Iterable[tuple[str | None, Mapping[Any, str]]]]] = (
    weakref.WeakKeyDictionary()
)


def color_indexes(
    names: Sequence[object],
    named: Mapping[Any, Any] | None = None,
    kind: Kind = "person",
    transcripts: Sequence[Any] | None = None,
) -> list[int]:
    """Return the index in `PALETTE` of each name. A person has the same one in every plot and widget.

    A label of a transcript determines its index: A to H have 0 to 7, and a label that ends in a number below 8 has this
    number. Other names have the index of the label that they name first, otherwise one that depends on the name. If
    somebody else in the recording has it, or if it is used more often than others, they have the one that is used
    least. They keep it. Unknown speakers and groups are grey.

    If speakers of one recording have the same index all the same, such as a person and a label that has no name yet,
    or the labels "agent 1" and "customer 1", the first one has it: people go first. The others have free ones in this
    recording. A term determines its index; terms of a picture that share one are told apart in the same way.

    Args:
        names: Names of people, labels, groups or terms; "call · Ada" belongs to Ada.
        named: Names by label if all are of one recording, from `voxframe.analysis.rows.label_names`.
        transcripts: Id of the transcript of each name; None for a person of several. None (default): all names are of
            one recording that has no id.

    Example:
        >>> color_indexes(["call · B", "A", None]), color_indexes(["Example", "B"], {"C": "Example"})
        ([1, 0, 16], [2, 1])
        >>> color_indexes(["agent 1", "customer 1"])
        [1, 0]
    """
    grey = len(PALETTE) - 1
    keys = [name.rpartition(" · ")[2] if isinstance(name, str) else None for name in names]
    if kind == "term":
        terms = _spread({term: _hash(term) % len(TERM_COLORS) for term in sorted(filter(None, keys))})
        return [len(COLORS) + terms[key] if key else grey for key in keys]
    keys = [None if key in _UNKNOWN else key for key in keys]
    if kind == "group":
        _register(kind, [{key: key for key in keys if key is not None}])
        return [grey if key is None else registry[kind, key] for key in keys]
    known = {} if transcripts is None else recordings
    drawn = list(zip([""] * len(keys) if transcripts is None else transcripts, keys, strict=True))
    is_known = (_index(kind, key) is not None and (i is None or i in recordings) for i, key in drawn if key is not None)
    if sources and not all(is_known):
        for corpus, seen_together in list(sources.items()):
            _see(recordings, list(seen_together(corpus)))
    label_of = {name: label for label, name in reversed([*(named or {}).items()])}
    seen: dict[Any, dict[Any, str]] = {}
    for key, transcript in sorted([(key, i) for i, key in drawn if key is not None], key=itemgetter(0)):
        seen.setdefault(transcript, {})[label_of.get(key, key)] = key
    _see(known, list(seen.items()))
    people = {transcript: _in_recording(known[transcript]) for transcript in seen if transcript is not None}
    return [grey if key is None else people.get(i, {}).get(key, _index(kind, key) or 0) for i, key in drawn]


def _see(known: dict[Any, dict[Any, str]], seen: Sequence[tuple[Any, Mapping[Any, str]]]) -> None:
    """Add speakers to those of their transcripts, and register them. A label does not take the place of a name."""
    for transcript, names in seen:
        if transcript is not None:
            of = known.setdefault(transcript, {})
            of |= {label: name for label, name in names.items() if label == name and label not in of}
    pictures: list[Mapping[Any, str]] = []
    for transcript, names in seen:
        if transcript is not None:
            known[transcript] |= {label: name for label, name in names.items() if label != name}
        pictures.append(names if transcript is None else dict(known[transcript]))
    _register("person", pictures)


def _in_recording(speakers: Mapping[Any, str]) -> dict[Any, int]:
    """Return the index of each speaker of a recording by name, and by label; people go before labels."""
    order = sorted(dict.fromkeys(speakers.values()), key=lambda name: _own_index(name) is not None)
    index_of = _spread({name: _index("person", name) or 0 for name in order})
    return {label: index_of[name] for label, name in speakers.items()} | index_of


def _index(kind: Kind, name: str) -> int | None:
    """Return the index of a name: the one that it determines, or the registered one; None if it has none."""
    own = _own_index(name) if kind == "person" else None
    return registry.get((kind, name)) if own is None else own


def _register(kind: Kind, pictures: Sequence[Mapping[Any, str]]) -> None:
    """Give an index to names that have none: in each picture or recording another one for each, if possible."""
    uses = Counter(index for (other, _), index in registry.items() if other == kind)
    for names in pictures:
        missing = [(label == name, name, label) for label, name in names.items() if _index(kind, name) is None]
        taken = {_index(kind, name) for name in names.values()}
        for is_label, name, label in sorted(missing, key=lambda item: item[:2]):
            if (kind, name) in registry:  # of two labels
                continue
            own = None if is_label else _own_index(label)
            if own is None and kind != "group":
                own = _hash(name) % _CLEAREST  # the same in the next session
            index = min((n in taken, uses[n], n != own, n) for n in range(len(COLORS)))[-1]
            registry[kind, name] = index
            uses[index] += 1
            taken.add(index)


def _spread(indexes: Mapping[str, int]) -> dict[str, int]:
    """Return the indexes; of names that share one, all but the first have free ones while there are any."""
    free = [n for n in range(len(COLORS)) if n not in indexes.values()]
    spread: dict[str, int] = {}
    for name, index in indexes.items():
        spread[name] = free.pop(0) if index in spread.values() and free else index
    return spread


def _hash(name: str) -> int:
    """Return a number that the name alone determines."""
    return zlib.crc32(name.encode(errors="replace"))


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
    names: Sequence[object],
    named: Mapping[Any, Any] | None = None,
    *,
    kind: Kind = "person",
    transcripts: Sequence[Any] | None = None,
    dark: bool = False,
    legend: bool = False,
) -> list[str]:
    """Return one colour per name: see `color_indexes`. In a legend, those beyond the eighth are grey."""
    colors = [themed(PALETTE[index], dark=dark) for index in color_indexes(names, named, kind, transcripts)]
    most = len(COLORS) if legend else len(colors)
    return colors[:most] + [GREY] * (len(names) - most)
