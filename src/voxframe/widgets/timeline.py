"""Timeline: who speaks when, to zoom, pan and select in."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import traitlets

from voxframe.analysis.columns import require, voices
from voxframe.plots.style import MOST_LANES, clock
from voxframe.widgets import columns
from voxframe.widgets.base import ScriptedWidget, escaped
from voxframe.widgets.page import write_page
from voxframe.widgets.picture import lanes_picture
from voxframe.widgets.theme import voice_places

#: Texts beyond this many characters stay in the kernel: bars then have no words in them.
_MOST_TEXT = 4_000_000


class Timeline(ScriptedWidget):
    """Who speaks when, on a canvas: one lane a speaker, a million spans as smoothly as a hundred.

    A click sets the time, a drag selects; Ctrl and the wheel zoom, the strip below shows where one is. "?" lists the
    keys. Seen from afar a pixel is as strong as the part of its time that is covered.

    Args:
        df: Rows with `start_ms` and `end_ms` (ms): words, utterances, sentences, any spans. Rows without a time, or
            that end before they start or after 24 days, are left out of the picture.
        by: Column that names the lanes; None takes `speaker` (or `channel`) of one transcript.
        bands: Stretches of time with a title, such as `voxframe.load_chapters` gives; drawn above the lanes.
        title: What stands above it.

    Attributes:
        time (int): The cursor, ms. Link it: `ipywidgets.jslink((timeline, "time"), (player, "time"))`.
        interval (list[int]): Start and end of the selection in ms, or empty.
        view (list[int]): Start and end of what is in view in ms; empty for everything.

    Raises:
        TypeError: `df` is no DataFrame.
        ValueError: A column is missing, the rows belong to several transcripts and `by` is None, or there are more
            than 200 lanes.

    Example:
        >>> import voxframe
        >>> turns = voxframe.load_utterances({"id": "a", "utterances": [
        ...     {"speaker": "A", "text": "Ready?", "start": 0, "end": 900},
        ...     {"speaker": "B", "text": "Yes.", "start": 1000, "end": 1500}]})
        >>> timeline = Timeline(turns)
        >>> timeline.interval = [950, 1600]
        >>> timeline.selection["text"].to_list()
        ['Yes.']
    """

    scripts = ("lanes", "timeline")
    styles = ("timeline",)

    time = traitlets.Int(0).tag(sync=True)
    interval = traitlets.List(traitlets.Int()).tag(sync=True)
    view = traitlets.List(traitlets.Int()).tag(sync=True)
    _columns = traitlets.Dict().tag(sync=True)
    _names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _colors = traitlets.List(traitlets.Int()).tag(sync=True)
    _until = traitlets.Int(0).tag(sync=True)

    def __init__(
        self, df: pd.DataFrame, *, by: str | None = None, bands: pd.DataFrame | None = None, title: str = "Timeline"
    ) -> None:
        require(df, ("start_ms", "end_ms", *([by] if by else [])), "Timeline")
        if by is None and "transcript_id" in df.columns and (count := df["transcript_id"].nunique()) > 1:
            raise ValueError(
                f'the DataFrame has {count} transcripts; pick one, or give by="transcript_id" for a lane each'
            )
        self._df, self._by, self._bands = df, by, bands
        start, end, known = columns.times(df)
        lane, found = pd.factorize(voices(df) if by is None else df[by], use_na_sentinel=False)
        if len(found) > MOST_LANES:
            raise ValueError(
                f"{len(found)} lanes are too many to see, {MOST_LANES} at most; choose another column as by="
            )
        # Lanes from top to bottom in the order in which they first speak.
        begins = np.full(len(found), np.inf)
        np.fmin.at(begins, lane[known], start[known])
        order = np.argsort(begins, kind="stable")
        lane = np.argsort(order)[lane]
        rows = np.flatnonzero(known)
        rows = rows[np.lexsort((start[rows], lane[rows]))]
        first = np.searchsorted(lane[rows], np.arange(len(found) + 1))
        self._lanes = [(start[rows[a:b]], end[rows[a:b]]) for a, b in pairwise(first)]
        # A lane may be named by anything; a null has no name.
        self._labels = [None if pd.isna(found[n]) else str(found[n]) for n in order]
        packed = {"start": columns.int32(start[rows]), "end": columns.int32(end[rows]), "first": columns.int32(first)}
        if "text" in df.columns and df["text"].str.len().sum() <= _MOST_TEXT:
            packed["text"], packed["offsets"] = columns.texts(df["text"].iloc[rows])
        if bands is not None:
            require(bands, ("start_ms", "end_ms"), "bands of Timeline")
            named = next((name for name in ("headline", "label", "text") if name in bands.columns), "start_ms")
            packed |= columns.bands(bands, named, "band")
        super().__init__(
            title=title,
            _columns=packed,
            _names=[name or "(unknown)" for name in self._labels],
            _colors=voice_places(self._labels),
            _until=int(end[known].max()) if known.any() else 0,
        )

    def __repr__(self) -> str:
        spans = sum(len(start) for start, _ in self._lanes)
        return f"Timeline({spans:,} spans, {len(self._lanes)} lanes, 0:00 to {clock(self._until / 1000)})"

    @traitlets.validate("interval", "view")
    def _check_range(self, proposal: Any) -> list[int]:
        value = proposal["value"]
        if value and (len(value) != 2 or value[0] > value[1]):
            raise traitlets.TraitError(
                f"{proposal['trait'].name} is [start, end] in ms with start first, or [] for none, not {value}"
            )
        return list(value)

    @property
    def selection(self) -> pd.DataFrame:
        """The rows that touch the selected interval, as they were given; no rows where nothing is selected."""
        if not self.interval:
            return self._df.iloc[:0]
        return self._df[(self._df["start_ms"] < self.interval[1]) & (self._df["end_ms"] > self.interval[0])]

    @property
    def result(self) -> pd.DataFrame:
        """The rows selected, or all rows where nothing is."""
        return self.selection if self.interval else self._df

    @property
    def code(self) -> str:
        """Lines that show the same again; `df` (and `bands`) stand for what was given."""
        given = [f"by={self._by!r}"] if self._by else []
        given += ["bands=bands"] if self._bands is not None else []
        lines = ["import voxframe", "", f"timeline = voxframe.Timeline({', '.join(['df', *given])})"]
        lines += [f"timeline.view = {self.view}"] if self.view else []
        if self.interval:
            low, high = self.interval
            lines.append(f"timeline.interval = {self.interval}")
            lines.append(f'selection = df[(df["start_ms"] < {high}) & (df["end_ms"] > {low})]')
        return "\n".join([*lines, "timeline"])

    def _still_html(self) -> str:
        """A still picture with the names of the lanes."""
        picture = lanes_picture(self._lanes, self._labels, self._until)
        return f"<p><strong>{escaped(self.title)}</strong></p>{picture}"

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page that shows this timeline from the disk, with no kernel and no network.

        Args:
            path: Where to write; what is there is replaced.
        """
        write_page(self, path)
