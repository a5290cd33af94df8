"""Plots with one lane per speaker, recording or other label: timeline, talk time, sentiment, differences and words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe import analysis
from voxframe._arrow import takes_frames
from voxframe._text import clock
from voxframe.analysis.rows import distinct_names, floats, require, row_speakers, speaker_labels, uses
from voxframe.colors import COLORS, GREY, NEGATIVE, POSITIVE, name_colors, themed
from voxframe.compare.alignment import disagreements as places_of
from voxframe.errors import OptionError
from voxframe.plots import lanes
from voxframe.plots.lanes import Bands, Floats, several_transcripts
from voxframe.validators import Boolean, checked, name_list, shown, speaker_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection

    from voxframe.analysis.grouping import By


@takes_frames
@uses("start_ms", "end_ms")
def timeline(
    df: pd.DataFrame,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    pack: bool = False,
    speakers: Sequence[str] | None = None,
    colors: Sequence[str] | Mapping[str, str] | None = None,
    bands: Bands | None = None,
    view: tuple[float, float] | None = None,
) -> Axes:
    """Draw a speaker timeline: one lane per speaker, one bar per row.

    Args:
        df: Words, utterances, sentences, entities or any other rows with `start_ms` and `end_ms` (ms). Rows without
            times are left out.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one lane per value, such as "entity_type" or "transcript_id". None (default): `speaker`, or
            `channel` if there is no speaker, of each transcript.
        pack: Put the spans into as few lanes as possible without overlap, with a legend for the colours, instead of one
            lane per speaker.
        speakers: Lanes from top to bottom; all others are left out. None (default): by first occurrence.
        colors: One colour per lane, or per label if packed. They repeat if there are more lanes than colours. Also a
            dict of colours by the name of the lane, or by the name or label of the speaker, which may have a lane in
            several transcripts; other lanes keep their colours.
        bands: Time spans to show above the lanes: a DataFrame such as the result of `voxframe.load_chapters`, or a dict
            such as `{"chapters": chapters, "topics": topics}`. Each transcript has its own row. The title is the column
            `headline`, `label` or `text`.
        view: Start and end of the visible range in ms. None (default): everything.

    Returns:
        The Axes, with seconds on the x axis. Bars closer than 1/4000 of the visible range are drawn as one.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, there are more than 200 lanes, or `view` does
            not start before it ends.
        OptionError: `speakers`, `colors` or `pack` is invalid.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 0, "end": 400, "speaker": "A"}]})
        >>> ax = voxframe.plots.timeline(words)
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['A']
    """
    pack, custom_colors = checked("pack", pack, Boolean()), None if colors is None else _checked_colors(colors)
    spans, rows = lanes.spans(df, by, "timeline"), lanes.band_rows(bands)
    low, high = _view(view, max([spans.last, *(_last(band) for band in rows.values())]))
    resolution = (high - low) * lanes.RESOLUTION
    names = spans.names if speakers is None else [speaker_label(name) for name in name_list(speakers, "speakers")]
    spans = _chosen(spans, names) if view is None else _chosen(spans, names).within(low, high)
    drawn, lane = lanes.packed(spans, resolution) if pack else (spans, None)
    count = len(names) if lane is None else int(lane.max(initial=-1)) + 1
    advice = "choose a shorter view=" if pack else "choose fewer with speakers=, another column as by=, or pack=True"
    lanes.check_count(count, "lanes", advice)
    legend = 0.0 if lane is None else lanes.legend_height(names, 9)
    ax = lanes.axes_or_new(ax, 10, lanes.figure_height(count + len(rows)) + legend)
    dark, kind = lanes.is_dark(ax), lanes.kind_of(by)
    palette = name_colors(
        names, spans.named, kind=kind, transcripts=spans.transcripts, dark=dark, legend=lane is not None
    )
    if isinstance(custom_colors, Mapping):
        lane_colors = _lane_colors(df, by, spans, custom_colors)
        palette = [lane_colors.get(name, color) for name, color in zip(names, palette, strict=True)]
    elif custom_colors is not None:
        palette = custom_colors
    bars = []
    for n, of in enumerate(drawn.by_label()):
        at: Any = n if lane is None else lane[of]
        bars.append(_add_bars(ax, drawn.start[of], drawn.end[of], at, resolution, palette[n % len(palette)]))
    if lane is not None and custom_colors is None:
        for bar, hatch in zip(bars, lanes.by_color(list(palette), lanes.HATCHES), strict=True):
            bar.set_hatch(hatch)
    lanes.name_lanes(ax, names if lane is None else [""] * count, above=rows)
    lanes.draw_bands(ax, rows, low, high)
    lanes.clock_axis(ax, low, high)
    if lane is not None:
        lanes.add_legend(ax, [bar if len(bar.get_paths()) else None for bar in bars], names)
    return ax


def _checked_colors(colors: object) -> list[str] | Mapping[str, str]:
    """Return colours as a list, or as a dict by name."""
    from matplotlib.colors import is_color_like

    palette = colors if isinstance(colors, Mapping) else name_list(colors, "colors")  # type: ignore[arg-type]
    values = list(palette.values()) if isinstance(palette, Mapping) else palette
    odd = [color for color in values if not is_color_like(color)]
    if odd or not (values or isinstance(palette, Mapping)):
        raise OptionError(
            f"colors must be colours of matplotlib, such as 'red' or '#0072B2', got {shown(odd[0] if odd else colors)}"
        )
    return palette


def _lane_colors(df: pd.DataFrame, by: str | None, spans: lanes.Spans, colors: Mapping[str, str]) -> dict[Any, str]:
    """Return colours by lane, given colours by lane, or by name or label of the speaker."""
    named = spans.named or {}
    color_of = {named.get(name, name): color for name, color in colors.items()}
    if by is None and several_transcripts(df):
        rows = pd.DataFrame({"lane": lanes.lane_names(df), "name": row_speakers(df), "label": speaker_labels(df)})
        for lane, *names in rows.drop_duplicates().to_numpy(object).tolist():
            for color in (colors[name] for name in names if name in colors):
                color_of.setdefault(lane, color)
    return color_of


#: Up to this number of bars of one label, touching bars are told apart by an edge.
_SEPARATE = 500
_NARROWEST = 3  # points; the edge would hide most of a narrower bar


def _points(ax: Axes) -> float:
    """Return the width of the Axes in points."""
    return max(1.0, 72 * ax.get_window_extent().width / ax.get_figure(root=True).dpi)  # type: ignore[union-attr]


def _add_bars(ax: Axes, start: Floats, end: Floats, at: Any, resolution: float, color: str) -> PolyCollection:
    """Draw the bars of one label. Many bars of a lane are joined if they touch; few, and packed ones, stay separate."""
    from matplotlib.collections import PolyCollection

    narrowest = _NARROWEST / _points(ax) / lanes.RESOLUTION * resolution
    # Wide enough for an edge, and without overlap:
    few = len(start) <= _SEPARATE and bool((end - start > narrowest).all() and (start[1:] >= end[:-1]).all())
    join = isinstance(at, int) and not few
    begin, right = lanes.joined(start, end, resolution) if join else (start, np.maximum(end, start + resolution))
    bars = PolyCollection(
        list(lanes.corners(begin, right, at - 0.36, np.add(at, 0.36))),
        facecolors=color,
        edgecolors=ax.get_facecolor() if few else "none",  # tells neighbours apart
        linewidths=0.8 if few else 0,
    )
    ax.add_collection(bars, autolim=False)
    return bars


def _chosen(spans: lanes.Spans, names: list[Any]) -> lanes.Spans:
    """Return the spans with the given labels, renumbered in this order."""
    if names is spans.names:
        return spans
    number = {name: n for n, name in enumerate(names)}
    of = np.array([number.get(name, -1) for name in spans.names], np.intp)
    code = of[spans.code] if len(of) else spans.code
    id_of = dict(zip(spans.names, spans.transcripts or (), strict=False))
    ids = [id_of.get(name) for name in names] if id_of else None
    return replace(spans, code=code, names=names, transcripts=ids).where(code >= 0)


def _last(band: pd.DataFrame) -> float:
    """Return the end of the last band in seconds."""
    end = band["end_ms"].max()
    return 0.0 if pd.isna(end) else float(end) / 1000


def _view(view: tuple[float, float] | None, last: float) -> tuple[float, float]:
    """Return the visible range in seconds."""
    if view is None:
        return 0.0, last
    try:
        low, high = (float(end) / 1000 for end in view)
    except (TypeError, ValueError):
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"view must be (start, end) in ms with start < end, not {shown(view)}")
    return low, high


#: Columns of a table of talk time, after those of its groups. A selection need not have all of them.
_MEASURES = ("turns", "words", "talk_s", "share")


@takes_frames
def talk_time(df: pd.DataFrame, ax: Axes | None = None, *, by: By = ("transcript_id", "speaker")) -> Axes:
    """Draw the talk time of each speaker of each transcript, or of other groups.

    Args:
        df: Utterances or words, or the result of `voxframe.analysis.talk_time`.
        ax: Axes to draw on. None (default): a new figure.
        by: Columns to group utterances or words by, such as "person"; see `voxframe.analysis.grouping.with_keys`.

    Returns:
        The Axes, with seconds on the x axis. Each bar is labelled with its time and share.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 speakers or groups.
        OptionError: A group is unknown.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> turns = {"id": "a", "utterances": [{"speaker": "A", "text": "Hello.", "start": 0, "end": 60000}]}
        >>> [text.get_text() for text in voxframe.plots.talk_time(voxframe.load_utterances(turns)).texts]
        ['1:00 (100%)']
    """
    require(df, (), "talk_time")
    table = df if {"talk_s", "share"} <= set(df.columns) else analysis.talk_time(df, by)
    keys = list(itertools.takewhile(lambda name: name not in _MEASURES, table.columns))
    if {*keys} <= {"transcript_id", "recording", "speaker"} and "speaker" in keys:
        labels = table["speaker"].to_list()
        names = list(lanes.lane_names(table, df)) if several_transcripts(table) else labels
    else:
        labels = names = lanes.group_names(table, keys, df)
    lanes.check_count(len(table), "speakers" if "speaker" in keys else "groups", "select some of them")
    lengths, shares = floats(table["talk_s"]), floats(table["share"])
    ax = lanes.axes_or_new(ax, 7, lanes.figure_height(len(table)))
    by_last = keys[-1] if keys else None
    colors = name_colors(
        labels,
        table.attrs.get("label_names"),
        kind=lanes.kind_of(by_last),
        transcripts=lanes.transcripts_of(table, range(len(table)), labels, by_last),
        dark=lanes.is_dark(ax),
    )
    ax.barh(range(len(table)), lengths, height=0.72, color=colors)
    for y, (length, share) in enumerate(zip(lengths.tolist(), shares.tolist(), strict=True)):
        if math.isfinite(length) and math.isfinite(share):
            ax.annotate(f"{clock(length)} ({share:.0%})", (length, y), (4, 0), textcoords="offset points", va="center")
    lanes.name_lanes(ax, names)
    longest = float(np.nanmax(lengths, initial=0))
    lanes.clock_axis(ax, 0, longest * 1.18, "talk time")  # room for the label of the longest bar
    return ax


#: Label, direction from the middle of the lane, and colour.
_KINDS = (("POSITIVE", -1, POSITIVE), ("NEGATIVE", 1, NEGATIVE), ("NEUTRAL", 0, GREY))
_HALF, _THIN = 0.42, 0.05


@takes_frames
@uses("start_ms")
def sentiment(df: pd.DataFrame, ax: Axes | None = None, *, by: str | None = None) -> Axes:
    """Draw sentiment over time: one bar per sentence, up if positive, down if negative, with the confidence as height.

    Args:
        df: Result of `voxframe.load_sentiments`: `start_ms`, `end_ms` (ms), `sentiment` and optionally `confidence`
            (0-1). Rows without times are left out.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one lane per value. None (default): one lane per speaker of each transcript.

    Returns:
        The Axes, with seconds on the x axis. Sentences that are neutral or have another label are thin grey bars. A
        sentence without a confidence is drawn at full height.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 lanes.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> rows = [{"text": "Lovely.", "start": 0, "end": 900, "sentiment": "POSITIVE", "confidence": 0.9}]
        >>> ax = voxframe.plots.sentiment(voxframe.load_sentiments({"id": "a", "sentiment_analysis_results": rows}))
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['positive']
    """
    from matplotlib.collections import PolyCollection

    require(df, ("sentiment",), "sentiment")
    spans = lanes.spans(df, by, "sentiment")
    lanes.check_count(len(spans.names), "lanes", "choose another by=")
    label = df["sentiment"].astype("string").str.upper().fillna("").to_numpy(object)[spans.row]
    kinds = {kind for kind, _, _ in _KINDS[:2]}
    sure = np.ones(len(label))
    if "confidence" in df.columns:
        sure = floats(df["confidence"])[spans.row]
        sure = np.clip(np.where(np.isfinite(sure), sure, 1.0), 0, 1)

    ax = lanes.axes_or_new(ax, 10, lanes.figure_height(len(spans.names)) + lanes.legend_height([""], 9))
    dark, last = lanes.is_dark(ax), spans.last
    ax.hlines(np.arange(len(spans.names)), 0, last, color=GREY, linewidth=0.6, alpha=0.6, zorder=0)
    drawn = []
    for kind, direction, color in _KINDS:
        of = label == kind if direction else ~np.isin(label, list(kinds))
        middle = spans.code[of].astype(float)
        low, high = (middle, middle + direction * _HALF * sure[of]) if direction else (middle - _THIN, middle + _THIN)
        right = np.maximum(spans.end[of], spans.start[of] + last * lanes.RESOLUTION)
        bars = PolyCollection(
            list(lanes.corners(spans.start[of], right, low, high)),
            facecolors=themed(color, dark=dark),
            linewidths=0,
        )
        ax.add_collection(bars, autolim=False)
        drawn.append(bars if of.any() else None)
    lanes.name_lanes(ax, spans.names)
    lanes.clock_axis(ax, 0, last)
    lanes.add_legend(ax, drawn, [kind.lower() if direction else "neutral or other" for kind, direction, _ in _KINDS])
    return ax


#: Kinds of places, and the index of their colour.
_LEVELS = {"substitution": 1, "deletion": 0, "insertion": 2}
_LEAST = 0.002  # width of a bar as a share of the longest recording, so that a short word is visible


@takes_frames
def disagreements(df: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw where two transcripts differ: one lane per recording, one bar per place, coloured by the kind of edit.

    Args:
        df: Result of `voxframe.compare.align` or of `voxframe.compare.disagreements`, of one recording or many.
        ax: Axes to draw on. None (default): a new figure.

    Returns:
        The Axes, with seconds on the x axis. The lane of a recording ends with its last word, or its last disagreement
        if `df` has only these.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 recordings.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, voxframe
        >>> heard = pd.DataFrame({"text": ["good", "dog"], "start_ms": [0, 400], "end_ms": [300, 900]})
        >>> ax = voxframe.plots.disagreements(voxframe.compare.align("good day", heard))
        >>> len(ax.collections[1].get_paths())
        1
    """
    from matplotlib.collections import PolyCollection

    require(df, ("recording", "edit"), "disagreements")
    places = places_of(df) if "hyp_end_ms" in df.columns else df
    require(places, ("start_ms", "end_ms"), "disagreements")
    ends = {name: lanes.seconds(df[name]) for name in ("ref_end_ms", "hyp_end_ms", "end_ms") if name in df.columns}
    latest = pd.DataFrame(ends, df.index).max(axis=1)
    lasts = latest.groupby(df["recording"].fillna(""), sort=False).max().fillna(0)
    lanes.check_count(len(lasts), "recordings", "select some of them")
    ax = lanes.axes_or_new(ax, 10, lanes.figure_height(len(lasts)) + lanes.legend_height([*_LEVELS], 9))
    dark = lanes.is_dark(ax)
    high = float(lasts.max()) if len(lasts) else 0.0
    outline = lanes.corners(
        np.zeros(len(lasts)), lasts.to_numpy(float), np.arange(len(lasts)) - 0.36, np.arange(len(lasts)) + 0.36
    )
    ax.add_collection(PolyCollection(list(outline), facecolors=GREY, alpha=0.18, linewidths=0), autolim=False)
    timed = places[places["start_ms"].notna()]
    lane = lasts.index.get_indexer(pd.Index(timed["recording"].fillna("")))
    start, end = lanes.seconds(timed["start_ms"]), lanes.seconds(timed["end_ms"])
    end = np.maximum(end, start + high * max(_LEAST, lanes.RESOLUTION))
    bars = []
    for kind, color in _LEVELS.items():
        of = (timed["edit"] == kind).to_numpy(bool)
        paths = lanes.corners(start[of], end[of], lane[of] - 0.36, lane[of] + 0.36)
        face = themed(COLORS[color], dark=dark)
        bars.append(PolyCollection(list(paths), facecolors=face, linewidths=0, label=kind))
        ax.add_collection(bars[-1], autolim=False)
    lanes.name_lanes(ax, distinct_names(list(lasts.index), df))
    lanes.clock_axis(ax, 0.0, high)
    lanes.add_legend(ax, [bar if len(bar.get_paths()) else None for bar in bars], [*_LEVELS])
    return ax


Array: TypeAlias = npt.NDArray[Any]


@takes_frames
@uses("start_ms")
def dispersion(
    df: pd.DataFrame,
    queries: str | Iterable[str] | None = None,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    transcripts: pd.DataFrame | None = None,
) -> Axes:
    """Draw positions of searched words: one stroke per occurrence, one colour per query.

    Args:
        df: Result of `Corpus.search` or `voxframe.load_word_matches`, or words together with `queries`. In longer rows,
            such as turns, an occurrence is drawn at the start of its row.
        queries: Words and phrases to find in `df`, by the rules of `Corpus.search`. If `df` is a search result, the
            queries to draw. A query without occurrences still has a lane or a legend entry.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one lane per value: "term", "transcript_id", "speaker" or another column; "term" and "speaker"
            of each transcript. None (default): "term" for one transcript, "transcript_id" for more than one.
        transcripts: The table `transcripts`, such as `corpus.table("transcripts")`. If given, each transcript has a
            lane as long as its recording. None (default): the time axis ends with the last word, or with the last
            occurrence in a search result, which does not tell how long the recordings are.

    Returns:
        The Axes, with seconds from the start of each recording on the x axis. Occurrences closer than 1/4000 of the
        time axis are drawn as one stroke.

    Raises:
        TypeError: `df` is not a DataFrame, or `ax` is not one Axes.
        ValueError: A column is missing or has other values than numbers, or there are more than 200 lanes.
        OptionError: A query contains no word.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> import voxframe
        >>> texts = "one two three two one".split()
        >>> words = [{"text": text, "start": 1000 * n, "end": 1000 * n + 500} for n, text in enumerate(texts)]
        >>> ax = voxframe.plots.dispersion(voxframe.load_words({"id": "a", "words": words}), ["two", "four"])
        >>> [(lane.get_text(), len(strokes.get_segments()))
        ...  for lane, strokes in zip(ax.get_yticklabels(), ax.collections)]
        [('two', 2), ('four', 0)]
    """
    hits, asked = occurrences(df, queries)
    lengths = _lengths(df, transcripts)
    if transcripts is None and "term" not in df.columns and several_transcripts(df):
        transcripts = df  # a recording without an occurrence has a lane, too
    by, lane, names = term_lanes(hits, asked, by, transcripts)
    lanes.check_count(len(names), "lanes", "select some of the transcripts or queries, or choose another by=")
    start = lanes.seconds(hits["start_ms"])
    ends = np.full(len(names), np.nan)
    if by in ("term", "speaker") and not several_transcripts(hits):
        ends[:] = max(lengths.values(), default=np.nan)
    elif by == "transcript_id":
        ids = _transcripts(hits, transcripts)
        ends[:] = [lengths.get(name, np.nan) for name in ids]
    last = lanes.seconds(hits["end_ms"]) if "end_ms" in hits.columns else start
    until = max(np.nanmax(start, initial=0.0), np.nanmax(last, initial=0.0), max(lengths.values(), default=0.0))

    shared = by != "term" and len(asked) > 1
    rows = min(len(names) * math.ceil(len(asked) / 4), max(len(names), 40)) if shared else len(names)
    ax = lanes.axes_or_new(ax, 10, lanes.figure_height(rows) + (lanes.legend_height(asked, 9) if shared else 0.0))
    dark = lanes.is_dark(ax)
    colors = name_colors(asked, kind="term", dark=dark, legend=shared)
    term = pd.Index(asked).get_indexer(pd.Index(hits["term"]))
    strokes = []
    for n in range(len(asked)):
        of = (term == n) & np.isfinite(start) & (lane >= 0)
        # Queries that share a lane split its height, so that none hides another.
        top, height = (n / len(asked), 1 / len(asked)) if shared else (0.0, 1.0)
        strokes.append(_strokes(ax, start[of], lane[of] - 0.4 + 0.8 * top, 0.8 * height, until, colors[n]))
    ax.hlines(np.arange(len(names)), 0, ends, color=GREY, linewidth=0.6, alpha=0.6, zorder=0)
    for n in sorted({*range(len(names))} - {*lane.tolist()}):
        ax.annotate("no occurrence", (0, n), (4, 2), textcoords="offset points", color=GREY, fontsize="small")
    if not names and until:  # else the empty axis says so
        lanes.say_nothing_to_show(ax)
    lanes.name_lanes(ax, names)
    lanes.clock_axis(ax, 0, until)
    if shared:
        absent = [f"{name} (no occurrence)" if n not in term else name for n, name in enumerate(asked)]
        lanes.add_legend(ax, strokes, absent)
    return ax


def occurrences(df: pd.DataFrame, queries: str | Iterable[str] | None) -> tuple[pd.DataFrame, list[str]]:
    """Return the occurrences of queries, found in words if `df` is no result of a search, and the queries."""
    asked = list(dict.fromkeys([] if queries is None else name_list(queries, "queries")))
    if isinstance(df, pd.DataFrame) and "term" not in df.columns:
        require(df, ("text", "start_ms", "end_ms"), "dispersion")
        if not asked:
            raise ValueError(
                "dispersion of words needs queries, such as ['tree', 'river bank']; or pass the result of a search"
            )
        return analysis.find_words(df, asked), asked
    require(df, ("term", "start_ms"), "dispersion")
    asked = asked or df["term"].dropna().unique().tolist()
    return df[df["term"].isin(asked)], asked


def _lengths(df: pd.DataFrame, transcripts: pd.DataFrame | None) -> dict[Any, float]:
    """Return recording lengths in seconds by transcript id, from `transcripts` or the last word; empty if unknown."""
    if transcripts is not None:
        require(transcripts, ("transcript_id", "audio_duration_s"), "transcripts of dispersion")
        lengths = transcripts.groupby("transcript_id")["audio_duration_s"].max().astype(float)
    elif "term" in df.columns:
        return {}
    else:
        ids = df["transcript_id"] if "transcript_id" in df.columns else pd.Series("", index=df.index)
        lengths = pd.Series(lanes.seconds(df["end_ms"]), df.index).groupby(ids).max()
    return {name: length for name, length in lengths.items() if length > 0}


def term_lanes(
    hits: pd.DataFrame, queries: list[str], by: str | None, transcripts: pd.DataFrame | None = None
) -> tuple[str, Array, list[Any]]:
    """Return the column that lanes are made of, the lane index of each occurrence, and the names of the lanes."""
    several = several_transcripts(hits)
    if by is None:
        by = "transcript_id" if several or (transcripts is not None and several_transcripts(transcripts)) else "term"
    if by == "transcript_id":
        require(hits, (by,), "dispersion")
        ids = _transcripts(hits, transcripts)
        code = pd.Index(ids, dtype=object).get_indexer(pd.Index(hits[by], dtype=object))
        return by, code, list(distinct_names(ids, hits, transcripts))
    if by == "term":
        of = lanes.transcript_names(hits)
        names: list[Any] = [f"{name}{term}" for name in (of.unique() if several else [""]) for term in queries]
        return by, pd.Index(names, dtype=object).get_indexer(pd.Index(of + hits["term"].astype(object))), names
    if by == "speaker":
        label: pd.Series[Any] = lanes.lane_names(hits) if several else row_speakers(hits)
    else:
        require(hits, (by,), "dispersion")
        label = lanes.lane_values(hits, by)
    lane, labels = pd.factorize(label, use_na_sentinel=False)
    return by, lane, [None if pd.isna(name) else str(name) for name in labels]


def _transcripts(hits: pd.DataFrame, transcripts: pd.DataFrame | None) -> list[Any]:
    """Return the ids of the transcripts that have a lane."""
    return list(dict.fromkeys([*([] if transcripts is None else transcripts["transcript_id"]), *hits["transcript_id"]]))


def _strokes(ax: Axes, at: Array, top: Array, height: float, until: float, color: str) -> Any:
    """Draw one stroke per time. Strokes of one lane that are too close to tell apart are drawn as one."""
    if len(at) > 1 / lanes.RESOLUTION:
        bins = np.unique(np.stack([np.floor(at / (until * lanes.RESOLUTION)), top]), axis=1)
        at, top = (bins[0] + 0.5) * until * lanes.RESOLUTION, bins[1]
    return ax.vlines(at, top, top + height, color=color, linewidth=1.2)
