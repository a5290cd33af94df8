"""Lanes of the plots: time spans as arrays, labels, colours and legends, safe for any text.

Text, ticks and frames keep the colours of matplotlib's style. The other colours adapt to the background of the Axes,
so `matplotlib.style.use("dark_background")` is enough for a dark figure.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.grouping import labels_of, people_of
from voxframe.analysis.over_time import pack
from voxframe.analysis.rows import distinct_names, floats, label_names, require, speaker_codes
from voxframe.colors import COLORS, GREY, Kind
from voxframe.validators import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

#: Spans closer than this fraction of the visible range cannot be told apart on a screen or a page. They are drawn as
#: one, so that a million words are drawn as fast as a thousand turns.
RESOLUTION = 1 / 4000
#: Above this number of spans, `packed` first joins spans of one label that are too close to tell apart.
MOST_PACKED = 10_000


@dataclass(frozen=True)
class Spans:
    """Spans with known times, sorted by start.

    Attributes:
        start: Start in seconds.
        end: End in seconds, never before the start.
        code: Index in `names` of each span's label.
        row: Position in the DataFrame of each span's row; -1 if spans were joined.
        names: Labels (str or None) by first occurrence. Labels without a timed span come last.
        named: Speaker names by label, if `names` holds speaker names. Plots colour a name by its label.
        transcripts: Transcript of each label: see `transcripts_of`.
    """

    start: Floats
    end: Floats
    code: Ints
    row: Ints
    names: list[str | None]
    named: Mapping[Any, Any] | None = None
    transcripts: Sequence[Any] | None = None

    @property
    def last(self) -> float:
        """End of the last span in seconds, or 0 if there are no spans."""
        return float(self.end.max()) if len(self.end) else 0.0

    def where(self, mask: npt.NDArray[np.bool_]) -> Spans:
        """Return the selected spans; all labels are kept."""
        if mask.all():
            return self
        return replace(self, start=self.start[mask], end=self.end[mask], code=self.code[mask], row=self.row[mask])

    def by_label(self) -> list[Ints]:
        """Return the positions of the spans of each label."""
        if not self.names:
            return []
        order = np.argsort(self.code.astype(np.uint16), kind="stable")  # 16-bit integers sort several times faster
        return np.split(order, np.cumsum(np.bincount(self.code, minlength=len(self.names)))[:-1])

    def within(self, low: float, high: float) -> Spans:
        """Return the spans that overlap the time from `low` to `high`."""
        return self.where((self.start < high) & (self.end > low))


def kind_of(by: str | None) -> Kind:
    """Return what the values of a column are: people, or other groups."""
    return "person" if by in (None, "speaker", "speaker_name", "person", "channel") else "group"


def spans(df: pd.DataFrame, by: str | None, purpose: str) -> Spans:
    """Return the spans of a DataFrame, labelled by a column, or by the speaker or channel of each transcript."""
    require(df, ("start_ms", "end_ms", *([by] if by is not None else [])), purpose)
    names: list[str | None]
    named = label_names(df) if by in (None, "speaker_name") else None
    if by is None and several_transcripts(df):
        place = np.argsort(pd.factorize(df["transcript_id"])[0], kind="stable")
        lanes = lane_names(df)
        names = list(lanes.iloc[place].unique())
        code = pd.Index(names).get_indexer(pd.Index(lanes))
        named = dict(zip(names, names, strict=True))
    elif by is None:
        code, names = speaker_codes(df)
    else:
        code, labels = pd.factorize(lane_values(df, by), use_na_sentinel=False)
        names = [None if pd.isna(label) else str(label) for label in labels]
        names = distinct_names(names, df) if by == "transcript_id" else names
    start, end = seconds(df["start_ms"]), seconds(df["end_ms"])
    transcripts = transcripts_of(df, code, names, by) if kind_of(by) == "person" else None
    result = Spans(start, end, code, np.arange(len(df)), names, named, transcripts)
    result = _sorted(result.where(np.isfinite(start) & np.isfinite(end) & (end >= start)))
    if by is None and several_transcripts(df):
        return result  # lanes of a transcript stay together
    code, first = pd.factorize(result.code)
    order = [*first, *(n for n in range(len(names)) if n not in set(first))]
    ordered = None if transcripts is None else [transcripts[n] for n in order]
    return replace(result, code=code, names=[names[n] for n in order], transcripts=ordered)


def _sorted(bars: Spans) -> Spans:
    """Return the spans sorted by start."""
    order = np.argsort(bars.start, kind="stable")
    return replace(
        bars,
        start=bars.start[order],
        end=bars.end[order],
        code=bars.code[order],
        row=bars.row[order],
    )


def seconds(column: pd.Series[Any]) -> Floats:
    """Convert times from ms to seconds; unknown times become NaN."""
    return floats(column) / 1000


def band_titles(bands: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return the titles of bands. A chapter without a headline is called "Chapter 3", counted in the order of time.

    Example:
        >>> chapters = pd.DataFrame({"headline": ["Ovens", ""], "start_ms": [0, 9000]})
        >>> band_titles(chapters, "headline").to_list()
        ['Ovens', 'Chapter 2']
    """
    texts = bands[column].astype(object)
    if column != "headline":
        return texts
    unnamed = texts.fillna("").astype(str).str.strip() == ""
    number = bands["start_ms"].rank(method="first", na_option="bottom").astype(int)
    return texts.where(~unnamed, "Chapter " + number.astype(str))


def lane_values(df: pd.DataFrame, by: str) -> pd.Series[Any]:
    """Return the values of a column that name lanes. Labels of several transcripts are different speakers."""
    if by == "person":
        return people_of(df)
    if by == "speaker" and "transcript_id" in df.columns and df["transcript_id"].nunique() > 1:
        return labels_of(df)
    return df[by]


def several_transcripts(df: pd.DataFrame) -> bool:
    """Return True if the rows belong to more than one transcript."""
    if "transcript_id" not in df.columns or (df["transcript_id"] == df["transcript_id"].head(1).squeeze()).all():
        return False  # faster than counting the ids
    return bool(df["transcript_id"].nunique() > 1)


def transcript_names(df: pd.DataFrame, source: pd.DataFrame | None = None, last: str = " · ") -> pd.Series[str]:
    """Return labels that tell transcripts apart: the recording, or the start of the id; "" if there is only one."""
    if not several_transcripts(df):
        return pd.Series("", index=df.index, dtype=object)
    code, ids = pd.factorize(df["transcript_id"].astype(str))
    names = [
        name if name != id_ or len(id_) <= 12 else id_[:8]
        for name, id_ in zip(distinct_names(list(ids), source, df), ids, strict=True)
    ]
    names = names if len(set(names)) == len(names) else list(ids)
    return pd.Series(np.array([f"{name}{last}" for name in names], object)[code], index=df.index, dtype=object)


def lane_names(df: pd.DataFrame, source: pd.DataFrame | None = None) -> pd.Series[str]:
    """Return the transcript and the speaker of each row as one label."""
    code, names = speaker_codes(df)
    speaker = np.array([name or "(unknown)" for name in names], object)[code] if len(df) else np.array([], object)
    labels: pd.Series[str] = transcript_names(df, source) + speaker
    return labels


def group_names(table: pd.DataFrame, keys: list[str], source: pd.DataFrame | None = None) -> list[str]:
    """Return one label per row of a table of groups: its values, with the recording instead of an id."""
    keys = [key for key in keys if key != "recording" or "transcript_id" not in keys]
    texts = table[keys].astype("string")
    if "transcript_id" in keys:
        ids = table["transcript_id"].dropna().unique().tolist()
        texts["transcript_id"] = table["transcript_id"].map(
            dict(zip(ids, distinct_names(ids, table, source), strict=True))
        )
    rows = texts.astype("string").fillna("(unknown)").itertuples(index=False)
    return [" · ".join(row) for row in rows] if keys else ["all"] * len(table)


def transcripts_of(df: pd.DataFrame, code: npt.ArrayLike, names: Sequence[object], by: str | None) -> list[Any] | None:
    """Return the transcript of each lane for `color_indexes`; None for a person, or for several transcripts."""
    row, ids = pd.factorize(df["transcript_id"]) if "transcript_id" in df.columns else ((), ())
    if not len(ids):
        return None
    places: list[set[int]] = [set() for _ in names]
    for pair in pd.unique(np.asarray(code, np.int64) * (len(ids) + 1) + row + 1).tolist():
        places[pair // (len(ids) + 1)].add(pair % (len(ids) + 1) - 1)
    several = [by == "person" and " · " not in str(name) for name in names]
    single = [-1 if has or len(of) > 1 else next(iter(of), -1) for of, has in zip(places, several, strict=True)]
    return [None if n < 0 else ids[n] for n in single]


def joined(start: Floats, end: Floats, resolution: float) -> tuple[Floats, Floats]:
    """Join spans, sorted by start, at most `resolution` seconds apart, and extend shorter results to that length.

    Example:
        >>> left, right = joined(np.array([0.0, 1.1, 5.0]), np.array([1.0, 2.0, 5.0]), 0.2)
        >>> left.tolist(), right.tolist()
        ([0.0, 5.0], [2.0, 5.2])
    """
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] - reach[:-1] > resolution])
    left = start[first]
    return left, np.maximum(reach[np.r_[first[1:], len(start)] - 1], left + resolution)


def packed(lane_spans: Spans, resolution: float) -> tuple[Spans, Ints]:
    """Return the spans and the lane of each. Above `MOST_PACKED` spans, close spans of one label are joined first."""
    if len(lane_spans.start) > MOST_PACKED:
        parts = [joined(lane_spans.start[rows], lane_spans.end[rows], resolution) for rows in lane_spans.by_label()]
        code = np.repeat(np.arange(len(parts)), [len(left) for left, _ in parts])
        start, end = (np.concatenate(side) for side in zip(*parts, strict=True))
        lane_spans = _sorted(replace(lane_spans, start=start, end=end, code=code, row=np.full(len(start), -1)))
    return lane_spans, pack(lane_spans.start, lane_spans.end)


def corners(left: Floats, right: Floats, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Return the corners of bars, as an array of shape (bars, 4, 2)."""
    low, high = np.broadcast_to(low, left.shape), np.broadcast_to(high, left.shape)
    return np.stack([np.stack(corner, -1) for corner in ((left, low), (left, high), (right, high), (right, low))], 1)


#: Styles of lines and hatchings of bars that have one colour: of the speakers A of several recordings.
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx")
#: Maximum number of lanes; more cannot be told apart.
MAX_LANES = 200


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or those of a new pyplot figure, laid out so that no label is cut off."""
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


def check_count(count: int, noun: str, advice: str) -> None:
    """Raise a ValueError if there are more lanes than can be told apart."""
    if count > MAX_LANES:
        raise ValueError(f"{count} {noun} are too many, at most {MAX_LANES} can be shown; {advice}")


def figure_height(lanes: int) -> float:
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
    """Return labels as text for a figure: one line, no control characters, each part shortened in the middle.

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
    """Label the lanes of the y axis, the first on top, below the rows `above`; without enough room, only some."""
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
    places = range(0, len(labels), every)
    ax.set_yticks([n - len(over) for n in places], [labels[n] for n in places], fontsize=size)
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
    """Add a legend above the Axes for the artists that are drawn, with one entry for all grey labels."""
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
    """Show `low` to `high` seconds on the x axis, with ticks at round times; an empty range says "nothing to show"."""
    from voxframe.plots.time_axis import ClockFormatter, ClockLocator

    if high <= low:
        say_nothing_to_show(ax)
    ax.set_xlim(low, high if high > low else low + 60)
    ax.xaxis.set_major_locator(ClockLocator())
    ax.xaxis.set_major_formatter(ClockFormatter())
    ax.set_xlabel(f"{label} (min:s)" if high < 3600 else f"{label} (h:min:s)")


#: A DataFrame, such as the result of `voxframe.load_chapters`, or a dict from row name to DataFrame.
Bands: TypeAlias = pd.DataFrame | Mapping[str, pd.DataFrame]

_TITLES = ("headline", "label", "text")


def band_rows(bands: Bands | None) -> dict[str, pd.DataFrame]:
    """Return the bands as a dict from row name to DataFrame, with one row per transcript."""
    if bands is None:
        return {}
    rows: dict[str, pd.DataFrame] = {}
    for name, df in (bands if isinstance(bands, Mapping) else {"": bands}).items():
        require(df, ("start_ms", "end_ms"), "bands of timeline")
        of = transcript_names(df, last=f" · {name}" if name else "")
        rows |= {label or name: part for label, part in df.groupby(of, sort=False)} if len(df) else {name: df}
    return rows


def draw_bands(ax: Axes, rows: dict[str, pd.DataFrame], low: float, high: float) -> None:
    """Draw rows of bands at y = -len(rows), ..., -1, the first on top, with titles that fit into their bands."""
    from matplotlib.collections import PolyCollection

    from voxframe.plots.time_axis import BandTitle

    for y, df in enumerate(rows.values(), -len(rows)):
        start, end = seconds(df["start_ms"]), seconds(df["end_ms"])
        first = ~df.duplicated(["start_ms", "end_ms"]).to_numpy()
        visible = np.flatnonzero(first & (start < high) & (end > low))
        visible = visible[np.argsort(start[visible], kind="stable")]
        bars = PolyCollection(
            list(corners(start[visible], end[visible], y - 0.4, y + 0.4)),
            facecolors=[(ink(ax), strength) for strength in (0.14, 0.26)],  # tell neighbours apart
            linewidths=0,
        )
        ax.add_collection(bars, autolim=False)
        named = next((name for name in _TITLES if name in df.columns), None)
        titles = _titles(band_titles(df, named).iloc[visible], named) if named else []
        ends = np.minimum(end[visible], np.r_[start[visible][1:], np.inf])  # titles never overlap
        for title, begin, finish in zip(titles, start[visible], ends, strict=False):
            ax.add_artist(BandTitle(ax, title, max(begin, low), min(finish, high), y))


def _titles(texts: pd.Series[Any], column: str | None) -> list[str]:
    """Return titles as text for a figure. A topic label such as "A>B>C" is shown as its last level."""
    if column == "label":
        texts = texts.map(lambda text: text.rpartition(">")[2] if isinstance(text, str) else text)
    return ["" if pd.isna(text) else name for text, name in zip(texts, shown_names(texts, 200), strict=True)]
