"""Timeline: an interactive view of turns and other time spans, with zoom and selection."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import traitlets

from voxframe._text import clock
from voxframe.analysis.speaker_turns import label_names, require, row_speakers
from voxframe.plots.style import MAX_LANES, lane_color_indexes
from voxframe.widgets import encoding
from voxframe.widgets.base import ScriptedWidget, check_range, define_comment, escaped, text_map
from voxframe.widgets.encoding import lanes_svg, write_page

#: Longer texts (characters in total) are not sent to the browser; bars then show no text.
_MAX_CHARS = 4_000_000


class Timeline(ScriptedWidget):
    """Spans on a canvas, one lane per speaker; smooth with a million spans.

    A click sets the time and a drag selects. Ctrl + wheel zooms; the strip below shows the visible part. "?" lists the
    keyboard shortcuts. When zoomed out, the opacity of a pixel shows how much of its time is covered.

    Args:
        df: Rows with `start_ms` and `end_ms` (ms), such as words, utterances or sentences. Rows are not shown if a
            time is missing, the end is before the start, or they end after 24 days.
        by: Column for the lanes. None (default): `speaker` (or `channel`) of one transcript.
        bands: Titled spans to show above the lanes, such as the result of `voxframe.load_chapters`.
        title: Title of the widget.

    Attributes:
        time (int): Position of the cursor in ms. Link it with `player.link(timeline)`, which also passes names on.
        interval (list[int]): Start and end of the selection in ms; empty for none.
        view (list[int]): Start and end of the visible span in ms; empty for everything.
        names (dict[str, str]): Names to show for speakers, by label. They change neither colours nor `result`.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, the rows belong to several transcripts and `by` is None, or there are more than
            200 lanes.

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
    names = text_map()
    _columns = traitlets.Dict().tag(sync=True)
    _names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _speakers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _colors = traitlets.List(traitlets.Int()).tag(sync=True)
    _until = traitlets.Int(0).tag(sync=True)

    def __init__(
        self, df: pd.DataFrame, *, by: str | None = None, bands: pd.DataFrame | None = None, title: str = "Timeline"
    ) -> None:
        require(df, ("start_ms", "end_ms", *([by] if by else [])), "Timeline")
        if by is None and "transcript_id" in df.columns and (count := df["transcript_id"].nunique()) > 1:
            raise ValueError(
                f'the DataFrame has {count} transcripts; select one, or give by="transcript_id" for one lane each'
            )
        self._df, self._by, self._bands = df, by, bands
        start, end, known = encoding.times(df)
        lane, found = pd.factorize(row_speakers(df) if by is None else df[by], use_na_sentinel=False)
        if len(found) > MAX_LANES:
            raise ValueError(
                f"by={by!r} gives {len(found)} lanes, at most {MAX_LANES} are allowed; choose another column"
            )
        # Lanes from top to bottom by first start.
        begins = np.full(len(found), np.inf)
        np.fmin.at(begins, lane[known], start[known])
        order = np.argsort(begins, kind="stable")
        lane = np.argsort(order)[lane]
        rows = np.flatnonzero(known)
        rows = rows[np.lexsort((start[rows], lane[rows]))]
        first = np.searchsorted(lane[rows], np.arange(len(found) + 1))
        self._lanes = [(start[rows[a:b]], end[rows[a:b]]) for a, b in pairwise(first)]
        self._labels = [None if pd.isna(found[n]) else str(found[n]) for n in order]
        packed = {
            "start": encoding.int32(start[rows]),
            "end": encoding.int32(end[rows]),
            "first": encoding.int32(first),
        }
        if "text" in df.columns and df["text"].str.len().sum() <= _MAX_CHARS:
            packed["text"], packed["offsets"] = encoding.texts(df["text"].iloc[rows])
        named = label_names(df) if by in (None, "speaker_name") else None
        label_of = {name: label for label, name in reversed((named or {}).items())}
        self._given_names = {label: name for label, name in (named or {}).items() if label and label != name}
        of_speakers = by in (None, "speaker", "speaker_name")
        if bands is not None:
            require(bands, ("start_ms", "end_ms"), "bands of Timeline")
            titles = next((name for name in ("headline", "label", "text") if name in bands.columns), "start_ms")
            packed |= encoding.bands(bands, titles, "band")
        super().__init__(
            title=title,
            _columns=packed,
            names=self._given_names,
            _names=[name or "(unknown)" for name in self._labels],
            _speakers=[(label_of.get(name, name) if of_speakers else None) or "" for name in self._labels],
            _colors=lane_color_indexes(self._labels, named),
            _until=int(end[known].max()) if known.any() else 0,
        )

    def __repr__(self) -> str:
        spans = sum(len(start) for start, _ in self._lanes)
        return f"Timeline({spans:,} spans, {len(self._lanes)} lanes, 0:00 to {clock(self._until / 1000)})"

    @traitlets.validate("interval", "view")
    def _check_range(self, proposal: Any) -> list[int]:
        return check_range(proposal)

    @property
    def selection(self) -> pd.DataFrame:
        """The rows that overlap the selected interval; no rows if nothing is selected."""
        if not self.interval:
            return self._df.iloc[:0]
        return self._df[(self._df["start_ms"] < self.interval[1]) & (self._df["end_ms"] > self.interval[0])]

    @property
    def result(self) -> pd.DataFrame:
        """The selected rows, or all rows if nothing is selected."""
        return self.selection if self.interval else self._df

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `bands`)."""
        given = [f"by={self._by!r}"] if self._by else []
        given += ["bands=bands"] if self._bands is not None else []
        given += [f"title={self.title!r}"] if self.title != "Timeline" else []
        define = {"df": "the DataFrame with start_ms and end_ms"}
        define |= {"bands": "the DataFrame of bands"} if self._bands is not None else {}
        lines = [
            define_comment(define),
            "import voxframe",
            "",
            f"timeline = voxframe.Timeline({', '.join(['df', *given])})",
        ]
        lines += [f"timeline.names = {self.names!r}"] if self.names != self._given_names else []
        lines += [f"timeline.time = {self.time}"] if self.time else []
        lines += [f"timeline.view = {self.view}"] if self.view else []
        if self.interval:
            low, high = self.interval
            lines.append(f"timeline.interval = {self.interval}")
            lines.append(f'selection = df[(df["start_ms"] < {high}) & (df["end_ms"] > {low})]')
        return "\n".join([*lines, "result = timeline.result", "timeline"])

    def _lane_names(self) -> list[str | None]:
        """Return the displayed names of the lanes."""
        lanes = zip(self._labels, self._speakers, strict=True)
        return [self.names.get(voice, voice) if voice else name for name, voice in lanes]

    def _static_html(self) -> str:
        picture = lanes_svg(self._lanes, self._lane_names(), self._colors, self._until)
        return f"<p><strong>{escaped(self.title)}</strong></p>{picture}"

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as an HTML page that needs no kernel and no network.

        Args:
            path: Path of the page; an existing file is replaced.
        """
        write_page(self, path)
