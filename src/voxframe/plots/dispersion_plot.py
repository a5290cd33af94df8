"""Dispersion plot: positions of searched words in recordings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe import analysis
from voxframe.analysis.speaker_columns import require, row_speakers
from voxframe.plots import style
from voxframe.plots.spans import RESOLUTION, one_transcript, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array: TypeAlias = npt.NDArray[Any]

#: Lanes that need a single transcript: times and speaker labels of different transcripts are not comparable.
_OF_ONE = ("term", "speaker")
_FEW_LANES = "pick some of them first, or other lanes with by="


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
        df: Result of `Corpus.search` or `voxframe.load_word_matches`, or words together with `queries`.
        queries: Words and phrases to find in `df`, by the rules of `Corpus.search`. If `df` is a search result, the
            queries to draw. A query without occurrences still has a lane or a legend entry.
        ax: Axes to draw on. None (default): a new figure.
        by: Column with one lane per value: "term", "transcript_id", "speaker" or another column. None (default): "term"
            for one transcript, "transcript_id" for more than one.
        transcripts: The table `transcripts`. If given, the lane of each transcript is as long as its recording.

    Returns:
        The Axes, with seconds from the start of each recording on the x axis. Occurrences closer than 1/4000 of the
        time axis are drawn as one stroke.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, more than one transcript would share a lane, or there are more than 200 lanes.
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
    found, asked = _matches(df, queries)
    lengths = _lengths(df, transcripts)
    if by is None:
        several = "transcript_id" in found.columns and found["transcript_id"].nunique() > 1
        by = "transcript_id" if several or (transcripts is not None and len(transcripts) > 1) else "term"
    if by in _OF_ONE:
        one_transcript(found, "dispersion", 'by="transcript_id" gives each a lane')
    lane, names = _lanes(found, by, asked, transcripts)
    if len(names) > style.MAX_LANES:
        raise ValueError(f"{len(names)} lanes are too many, at most {style.MAX_LANES} can be shown; {_FEW_LANES}")
    start = seconds(found["start_ms"])
    ends = _ends(names, by, lengths)
    last = seconds(found["end_ms"]) if "end_ms" in found.columns else start
    until = max(np.nanmax(start, initial=0.0), np.nanmax(last, initial=0.0), max(lengths.values(), default=0.0))

    shared = by != "term" and len(asked) > 1
    if ax is None:
        rows = min(len(names) * math.ceil(len(asked) / 4), max(len(names), 40)) if shared else len(names)
        ax = style.new_axes(10, style.lanes_height(rows) + (style.legend_height(asked, 9) if shared else 0.0))
    dark = style.is_dark(ax)
    colors = style.legend_colors(asked, dark=dark) if shared else style.speaker_colors(asked, dark=dark)
    term = pd.Index(asked).get_indexer(pd.Index(found["term"]))
    strokes = []
    for n in range(len(asked)):
        of = (term == n) & np.isfinite(start) & (lane >= 0)
        # Queries that share a lane split its height, so that none hides another.
        top, height = (n / len(asked), 1 / len(asked)) if shared else (0.0, 1.0)
        strokes.append(_strokes(ax, start[of], lane[of] - 0.4 + 0.8 * top, 0.8 * height, until, colors[n]))
    ax.hlines(np.arange(len(names)), 0, ends, color=style.GREY, linewidth=0.6, alpha=0.6, zorder=0)
    style.name_lanes(ax, names)
    style.clock_axis(ax, 0, until)
    if shared:
        style.add_legend(ax, strokes, asked)
    return ax


def _matches(df: pd.DataFrame, queries: str | Iterable[str] | None) -> tuple[pd.DataFrame, list[str]]:
    """Return the occurrences and the queries."""
    asked = list(dict.fromkeys([queries] if isinstance(queries, str) else queries or ()))
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
        known = transcripts.groupby("transcript_id")["audio_duration_s"].max().astype(float)
    elif "term" in df.columns:
        return {}
    else:
        own = df["transcript_id"] if "transcript_id" in df.columns else pd.Series("", index=df.index)
        known = df["end_ms"].groupby(own).max().astype(float) / 1000
    return {name: length for name, length in known.items() if length > 0}


def _lanes(found: pd.DataFrame, by: str, asked: list[str], transcripts: pd.DataFrame | None) -> tuple[Array, list[Any]]:
    """Return the lane index of each occurrence, and the names of the lanes."""
    if by != "speaker":
        require(found, (by,), "dispersion")
    label = row_speakers(found) if by == "speaker" else found[by]
    if by == "term":
        names: list[Any] = asked
    elif by == "transcript_id" and transcripts is not None:
        names = list(dict.fromkeys([*transcripts["transcript_id"], *label]))
    else:
        lane, labels = pd.factorize(label, use_na_sentinel=False)
        return lane, [None if pd.isna(name) else str(name) for name in labels]
    return pd.Index(names, dtype=object).get_indexer(pd.Index(label, dtype=object)), names


def _ends(names: list[Any], by: str, lengths: dict[Any, float]) -> Array:
    """Return the end of each lane's line in seconds; NaN if unknown."""
    if by == "transcript_id":
        return np.array([lengths.get(name, np.nan) for name in names], float)
    return np.full(len(names), max(lengths.values(), default=np.nan) if by in _OF_ONE else np.nan)


def _strokes(ax: Axes, at: Array, top: Array, height: float, until: float, color: str) -> Any:
    """Draw one stroke per time. Strokes of one lane that are too close to tell apart are drawn as one."""
    if len(at) > 1 / RESOLUTION:
        bins = np.unique(np.stack([np.floor(at / (until * RESOLUTION)), top]), axis=1)
        at, top = (bins[0] + 0.5) * until * RESOLUTION, bins[1]
    return ax.vlines(at, top, top + height, color=color, linewidth=1.2)
