"""LaneChart: base of the interactive plots with lanes, which zoom, select, and play a mark on a click."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import traitlets

from voxframe._text import clock
from voxframe.corpus import Corpus
from voxframe.plots.spans import Floats, Ints
from voxframe.plots.style import MAX_LANES
from voxframe.widgets import encoding
from voxframe.widgets.base import check_range, escaped
from voxframe.widgets.encoding import lanes_svg, write_page
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.row_player import Audio, RowPlayerWidget

#: Longer texts (characters in total) are not sent to the browser; tooltips then show no text.
_MAX_CHARS = 4_000_000


@dataclass(frozen=True)
class Marks:
    """Marks of rows on lanes.

    Attributes:
        start: Start of each mark on the axis: ms, or steps of a value.
        end: End of each mark.
        lane: Index of its lane.
        row: Position of its row in the DataFrame.
        names: Names of the lanes; with parts, of groups of `len(parts)` lanes each.
        colors: Index in `COLORS` of each lane.
        texts: Text of each row of the DataFrame, for tooltips; None for none.
        parts: Labels of the lanes that share a name, which a legend explains.
    """

    start: Floats
    end: Floats
    lane: Ints
    row: Ints
    names: list[str | None]
    colors: list[int]
    texts: pd.Series[Any] | None = None
    parts: list[str] = field(default_factory=list)


class LaneChart(RowPlayerWidget):
    """A canvas with lanes of marks; smooth with a million marks. Subclasses call `_draw`.

    Attributes:
        time: Position of the cursor.
        interval: Start and end of the selection; empty for none.
        view: Start and end of the visible range; empty for everything.
    """

    #: Start of the alternative text of the static picture.
    _what: ClassVar[str] = "Who speaks when"
    #: True if marks are points, which are drawn as strokes.
    _points: ClassVar[bool] = False

    scripts = ("embed", "lanes", "lane_chart")
    styles = ("lane_chart",)

    time = traitlets.Int(0).tag(sync=True)
    interval = traitlets.List(traitlets.Int()).tag(sync=True)
    view = traitlets.List(traitlets.Int()).tag(sync=True)
    _columns = traitlets.Dict().tag(sync=True)
    _names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _colors = traitlets.List(traitlets.Int()).tag(sync=True)
    _parts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _until = traitlets.Int(0).tag(sync=True)
    _strokes = traitlets.Bool(False).tag(sync=True)
    _plays = traitlets.Bool(False).tag(sync=True)
    # For an axis of values: its first value, the value of a step, and its label. Empty: an axis of time.
    _axis = traitlets.Dict().tag(sync=True)
    # For each lane: low end, mean and high end of an interval, in steps; empty for none.
    _means: Any = traitlets.List().tag(sync=True)

    def __init__(
        self, df: pd.DataFrame, corpus: Corpus | None, audio: Audio, player: TranscriptPlayer | None, title: str
    ) -> None:
        super().__init__(df, corpus, audio, player, title=title)
        self._plays = self.playable

    def _draw(self, marks: Marks, by: str | None, **traits: Any) -> None:
        """Show marks, and set other traits.

        Raises:
            ValueError: There are more than 200 lanes.
        """
        if len(marks.names) > MAX_LANES:
            raise ValueError(
                f"by={by!r} gives {len(marks.names)} lanes, at most {MAX_LANES} are allowed; choose another column"
            )
        order = np.lexsort((marks.start, marks.lane))
        start, end, self._row_of = marks.start[order], marks.end[order], marks.row[order]
        first = np.searchsorted(marks.lane[order], np.arange(len(marks.colors) + 1))
        self._lanes = [(start[a:b], end[a:b]) for a, b in pairwise(first)]
        packed = {
            "start": encoding.int32(start),
            "end": encoding.int32(end),
            "first": encoding.int32(first),
            "row": encoding.int32(self._row_of),
        }
        if marks.texts is not None:
            texts = marks.texts.iloc[self._row_of]
            if texts.astype("string").str.len().sum() <= _MAX_CHARS:
                packed["text"], packed["offsets"] = encoding.texts(texts)
        given = {
            "_columns": packed | traits.pop("_columns", {}),
            "_names": [name or "(unknown)" for name in marks.names],
            "_colors": marks.colors,
            "_parts": marks.parts,
            "_strokes": self._points,
            "_until": int(end.max()) if len(end) else 0,
            **traits,
        }
        with self.hold_sync():
            for name, value in given.items():
                self.set_trait(name, value)

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

    def _state_code(self, name: str) -> list[str]:
        """Return lines of code that set the cursor, the view and the selection."""
        lines = [f"{name}.time = {self.time}"] if self.time else []
        lines += [f"{name}.view = {self.view}"] if self.view else []
        return lines + ([f"{name}.interval = {self.interval}"] if self.interval else [])

    def _lane_names(self) -> list[str | None]:
        """Return the displayed names of the lanes."""
        names: list[str | None] = list(self._names)
        return [f"{name} · {part}" for name in names for part in self._parts] if self._parts else names

    def _tick(self, position: float) -> str:
        """Return the label of a position on the axis."""
        return f"{self._axis['low'] + self._axis['step'] * position:.3g}" if self._axis else clock(position / 1000)

    def _static_html(self) -> str:
        picture = lanes_svg(
            self._lanes, self._lane_names(), self._colors, self._until, what=self._what, tick=self._tick
        )
        return f"<p><strong>{escaped(self.title)}</strong></p>{picture}"

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the plot as an HTML page that needs no kernel and no network; a click there plays nothing.

        Args:
            path: Path of the page; an existing file is replaced.
        """
        write_page(self, path, _plays=False)
