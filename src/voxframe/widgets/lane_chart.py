"""Interactive plots with lanes, which zoom, select, and play a mark: Timeline, Dispersion and GroupComparison."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import traitlets

from voxframe import analysis
from voxframe._arrow import takes_frames
from voxframe._text import clock, join_words, quantity
from voxframe.analysis.rows import floats, label_names, require
from voxframe.colors import color_indexes
from voxframe.corpus import Corpus
from voxframe.plots.lane_plots import occurrences, term_lanes
from voxframe.plots.lanes import (
    MAX_LANES,
    Floats,
    Ints,
    kind_of,
    lane_values,
    several_transcripts,
    spans,
)
from voxframe.widgets.base import (
    LAST_MS,
    check_range,
    clock_text,
    escaped,
    lanes_svg,
    pack_bands,
    pack_ints,
    pack_texts,
    require_times,
    row_times,
    text_map,
    write_page,
)
from voxframe.widgets.embedded_player import Audio, RowPlayerWidget, text_column
from voxframe.widgets.player import TranscriptPlayer

#: Longer texts (characters in total) are not sent to the browser; tooltips then show no text.
_MAX_CHARS = 4_000_000
#: Number of words that a tooltip of Dispersion shows on each side of an occurrence.
_CONTEXT = 6
#: Traits of a chart that its code sets.
_STATE = ("time", "view", "interval")


@dataclass(frozen=True)
class Marks:
    """Marks of rows on lanes.

    Attributes:
        start: Start of each mark on the axis: ms, or steps of a value.
        lane: Index of its lane.
        names: Names of the lanes; with parts, of groups of `len(parts)` lanes each.
        colors: Index in `PALETTE` of each lane.
        texts: Text of each row of the DataFrame, for tooltips; None for none.
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
    """A canvas with lanes of marks; smooth with a million marks. Subclasses call `_draw`."""

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
    # Queries that do not occur.
    _absent = traitlets.List(traitlets.Unicode()).tag(sync=True)
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
        """Show marks, and set other traits."""
        if len(marks.names) > MAX_LANES:
            raise ValueError(
                f"by={by!r} gives {len(marks.names)} lanes, at most {MAX_LANES} are allowed; choose another column"
            )
        order = np.lexsort((marks.start, marks.lane))
        start, end, self._row_of = marks.start[order], marks.end[order], marks.row[order]
        first = np.searchsorted(marks.lane[order], np.arange(len(marks.colors) + 1))
        self._lanes = [(start[a:b], end[a:b]) for a, b in pairwise(first)]
        packed = {
            "start": pack_ints(start),
            "end": pack_ints(end),
            "first": pack_ints(first),
            "row": pack_ints(self._row_of),
        }
        if marks.texts is not None:
            texts = marks.texts.iloc[self._row_of]
            if texts.astype("string").str.len().sum() <= _MAX_CHARS:
                packed["text"], packed["offsets"] = pack_texts(texts)
        values = {
            "_columns": packed | traits.pop("_columns", {}),
            "_names": [name or "(unknown)" for name in marks.names],
            "_colors": marks.colors,
            "_parts": marks.parts,
            "_strokes": self._points,
            "_until": int(end.max()) if len(end) else 0,
            **traits,
        }
        with self.hold_sync():
            for name, value in values.items():
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
        absent = f"<p>{escaped(', '.join(self._absent))}: no occurrence</p>" if self._absent else ""
        return f"<p><strong>{escaped(self.title)}</strong></p>{picture}{absent}"

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the plot as an HTML page that needs no kernel and no network; a click there plays nothing.

        Args:
            path: Path of the page; an existing file is replaced.
        """
        write_page(self, path, _plays=False)


class Timeline(LaneChart):
    """Spans on a canvas, one lane per speaker; smooth with a million spans.

    A tooltip shows the text of a span. A click sets the time, and plays the span if a corpus, a recording or a player
    is given. A drag selects. Ctrl + wheel zooms; the strip below shows the visible part. "?" lists the keyboard
    shortcuts. When zoomed out, the opacity of a pixel shows how much of its time is covered.

    Args:
        df: Rows with `start_ms` and `end_ms` (ms), such as words, utterances or sentences. Rows are not shown if a
            time is missing, the end is before the start, or they end after 24 days.
        by: Column for the lanes. None (default): `speaker` (or `channel`) of each transcript.
        bands: Titled spans of one transcript to show above the lanes, such as the result of `voxframe.load_chapters`.
        corpus: Corpus with the transcripts and their recordings.
        audio: Path or URL of the recording, or a dict of them by transcript id or name.
        player: A player that plays its own transcript; other transcripts use a player below the lanes.
        title: Title of the widget.

    Attributes:
        time (int): Position of the cursor in ms. Link it with `player.link(timeline)`, which also passes names on.
        interval (list[int]): Start and end of the selection in ms; empty for none.
        view (list[int]): Start and end of the visible span in ms; empty for everything.
        names (dict[str, str]): Names to show for speakers, by label. They change neither colours nor `result`.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, there are more than 200 lanes, or the bands belong to several transcripts.
        OptionError: `audio` is one recording, but the rows belong to several; or it has no recording of the rows.

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

    names = text_map()
    _speakers = traitlets.List(traitlets.Unicode()).tag(sync=True)

    @takes_frames
    def __init__(
        self,
        df: pd.DataFrame,
        *,
        by: str | None = None,
        bands: pd.DataFrame | None = None,
        corpus: Corpus | None = None,
        audio: Audio = None,
        player: TranscriptPlayer | None = None,
        title: str = "Timeline",
    ) -> None:
        super().__init__(df, corpus, audio, player, title)
        self._by, self._bands = by, bands
        bars = spans(self._named(), by, "Timeline")
        bars = bars.where((bars.start >= 0) & (bars.end * 1000 <= LAST_MS))
        several = by is None and several_transcripts(df)
        named = None if several or by not in (None, "speaker_name") else label_names(df)
        label_of = {name: label for label, name in reversed((named or {}).items())}
        self._given_names = {label: name for label, name in (named or {}).items() if label and label != name}
        of_speakers = not several and by in (None, "speaker", "speaker_name")
        above = {}
        if bands is not None:
            require(bands, ("start_ms", "end_ms"), "bands of Timeline")
            require_times(bands)
            if several_transcripts(bands):
                raise ValueError(
                    f"bands of Timeline draws one transcript, the DataFrame has {bands['transcript_id'].nunique()}; "
                    "pick one, as in df[df['transcript_id'] == id]"
                )
            titles = next((name for name in ("headline", "label", "text") if name in bands.columns), "start_ms")
            above = pack_bands(bands, titles, "band")
        marks = Marks(
            (bars.start * 1000).round(),
            (bars.end * 1000).round(),
            bars.code,
            bars.row,
            bars.names,
            color_indexes(bars.names, bars.named, kind_of(by), bars.transcripts),
            df["text"] if "text" in df.columns else None,
        )
        self._draw(
            marks,
            by,
            _columns=above,
            names=self._given_names,
            _speakers=[(label_of.get(name, name) if of_speakers else None) or "" for name in bars.names],
        )

    def __repr__(self) -> str:
        spans = sum(len(start) for start, _ in self._lanes)
        lanes = quantity(len(self._lanes), "lane")
        return f"Timeline({quantity(spans, 'span')}, {lanes}, 0:00 to {clock(self._until / 1000)})"

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `bands`)."""
        given, defined = self._given()
        arguments = ["df", *([f"by={self._by!r}"] if self._by else [])]
        define = {"df": "the DataFrame with start_ms and end_ms"}
        if self._bands is not None:
            arguments, define = [*arguments, "bands=bands"], define | {"bands": "the DataFrame of bands"}
        more = [f"timeline.names = {self.names!r}"] if self.names != self._given_names else []
        if self.interval:
            low, high = self.interval
            more.append(f'selection = df[(df["start_ms"] < {high}) & (df["end_ms"] > {low})]')
        return self._code("timeline", [*arguments, *given], define | defined, _STATE, more)

    def _lane_names(self) -> list[str | None]:
        lanes: Any = zip(self._names, self._speakers, strict=True)
        return [self.names.get(voice, voice) if voice else name for name, voice in lanes]


class Dispersion(LaneChart):
    """Positions of searched words on a canvas: one stroke per occurrence, one colour per query.

    A tooltip shows the words around an occurrence, and a click plays it if a corpus, a recording or a player is given.
    A drag selects. Ctrl + wheel zooms; the strip below shows the visible part. "?" lists the keyboard shortcuts.

    Args:
        df: Result of `Corpus.search`, or words together with `queries`: see `voxframe.plots.dispersion`.
        queries: Words and phrases to find in `df`; if it is a search result, the queries to show.
        by: Column for the lanes; the default and the special values are those of `voxframe.plots.dispersion`.
        corpus: Corpus with the transcripts and their recordings.
        audio: Path or URL of the recording, or a dict of them by transcript id or name.
        player: A player that plays its own transcript; other transcripts use a player below the lanes.
        title: Title of the widget.

    Attributes:
        time (int): Position of the cursor in ms.
        interval (list[int]): Start and end of the selection in ms; empty for none.
        view (list[int]): Start and end of the visible span in ms; empty for everything.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, or there are more than 200 lanes.
        OptionError: A query contains no word, or `audio` does not fit the rows: see `Timeline`.

    Example:
        >>> import voxframe
        >>> words = voxframe.load_words(voxframe.sample().with_name("payloads") / "interview.json")
        >>> dispersion = Dispersion(words, ["tree*", "money"], audio=voxframe.sample())
        >>> dispersion.interval = [0, 20_000]
        >>> dispersion.selection["text"].iloc[0]
        'with Dr. Paul Baker about the trees in our city. Good morning, Susan.'
    """

    _what = "Where words occur"
    _points = True

    @takes_frames
    def __init__(
        self,
        df: pd.DataFrame,
        queries: str | Iterable[str] | None = None,
        *,
        by: str | None = None,
        corpus: Corpus | None = None,
        audio: Audio = None,
        player: TranscriptPlayer | None = None,
        title: str = "Dispersion",
    ) -> None:
        hits, asked = occurrences(df, queries)
        if "match" in hits.columns:
            sides = [hits[name].fillna("") for name in ("left", "match", "right") if name in hits.columns]
            hits = hits.assign(text=[join_words(filter(None, side)) for side in zip(*sides, strict=True)])
        elif "text" in df.columns:
            hits = hits.assign(text=_around(df, hits))
        self._queries, self._by = (None if queries is None else asked), by
        super().__init__(hits, corpus, audio, player, title)
        of_words = "term" not in df.columns  # which tell how long recordings are, and of which nothing was found
        used, lane, names = term_lanes(self._named(), asked, by, df if of_words and several_transcripts(df) else None)
        start, end, timed = row_times(hits)
        term = pd.Index(asked).get_indexer(pd.Index(hits["term"]))
        rows = np.flatnonzero(timed & (lane >= 0) & (term >= 0))
        colors = color_indexes(asked, kind="term")
        parts = asked if used != "term" and len(asked) > 1 else []
        place = lane * len(parts) + term if parts else lane
        if used != "term" and not parts:
            colors = colors[:1]
        repeated = [colors[n % len(colors)] for n in range(len(names) * max(1, len(parts)))] if colors else []
        texts = hits["text"] if "text" in hits.columns else None
        marks = Marks(start[rows], end[rows], place[rows], rows, names, repeated, texts, parts)
        absent = pd.Index(asked, dtype=object).difference(pd.Index(hits["term"]), sort=False).tolist()
        last = {"_until": int(min(np.nanmax(floats(df["end_ms"]), initial=0.0), LAST_MS))} if of_words else {}
        self._draw(marks, used, _absent=absent, **last)

    def __repr__(self) -> str:
        total = sum(len(start) for start, _ in self._lanes)
        return f"Dispersion({quantity(total, 'occurrence')}, {quantity(len(self._lanes), 'lane')})"

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `player`)."""
        given, define = self._given()
        arguments = ["df", *([] if self._queries is None else [repr(self._queries)])]
        arguments += [f"by={self._by!r}"] if self._by else []
        define = {"df": "the DataFrame of words or matches", **define}
        return self._code("dispersion", [*arguments, *given], define, _STATE)


def _around(words: pd.DataFrame, hits: pd.DataFrame) -> list[str]:
    """Return the words around each occurrence, in its transcript."""
    key = "transcript_id" if "transcript_id" in words.columns else None
    spoken_by_id: dict[Any, tuple[Any, list[str]]] = {}
    timed = words[words["start_ms"].notna()].sort_values("start_ms", kind="stable")
    for name, part in timed.groupby(key, sort=False, dropna=False) if key else [(None, timed)]:
        spoken_by_id[name] = part["start_ms"].to_numpy(np.float64), part["text"].fillna("").astype(str).tolist()
    texts = []
    for name, start, end in zip(
        hits[key] if key else [None] * len(hits), hits["start_ms"], hits["end_ms"], strict=True
    ):
        if pd.isna(start) or name not in spoken_by_id:
            texts.append("")
            continue
        starts, spoken = spoken_by_id[name]
        first = int(np.searchsorted(starts, start))
        last = max(first + 1, int(np.searchsorted(starts, start if pd.isna(end) else end)))
        texts.append(join_words(spoken[max(0, first - _CONTEXT) : last + _CONTEXT]))
    return texts


#: Number of steps of the axis.
_STEPS = 100_000


class GroupComparison(LaneChart):
    """Values of passages by group: one stroke per row, and the mean of each group with a bootstrap interval.

    It shows which passages are behind a difference of groups. A tooltip shows the value and the text of a passage, and
    a click plays it if a corpus, a recording or a player is given. A drag selects; Ctrl + wheel zooms.

    Args:
        df: Rows with `start_ms`, `end_ms` (ms), the value and the group, such as turns with metadata merged into them.
            Rows without a value are left out.
        value: Column with the value, such as "offset_ms" of `voxframe.analysis.turn_taking` or "confidence" of words.
        by: Column with the groups; one lane per value.
        corpus: Corpus with the transcripts and their recordings.
        audio: Path or URL of the recording, or a dict of them by transcript id or name.
        player: A player that plays its own transcript; other transcripts use a player below the lanes.
        label: Label of the axis, with the unit. None (default): the name of the column.
        title: Title of the widget.

    Raises:
        TypeError: `df` is not a DataFrame.
        ValueError: A column is missing, the value is not a number, or there are more than 200 groups.
        OptionError: `audio` is one recording, but the rows belong to several; or it has no recording of the rows.

    Example:
        >>> import voxframe
        >>> turns = voxframe.load_utterances(voxframe.sample().with_name("payloads") / "interview.json")
        >>> groups = GroupComparison(turns, "confidence", "speaker", audio=voxframe.sample())
        >>> groups.means[["speaker", "rows"]].values.tolist()
        [['A', 10], ['B', 10]]
    """

    _what = "Values by group"
    _points = True

    @takes_frames
    def __init__(
        self,
        df: pd.DataFrame,
        value: str,
        by: str,
        *,
        corpus: Corpus | None = None,
        audio: Audio = None,
        player: TranscriptPlayer | None = None,
        label: str | None = None,
        title: str = "Groups",
    ) -> None:
        require(df, ("start_ms", "end_ms", value, by), "GroupComparison")
        if not pd.api.types.is_numeric_dtype(df[value]):
            raise ValueError(f"value must be a column of numbers, but {value!r} is {df[value].dtype}; choose another")
        super().__init__(df, corpus, audio, player, title)
        self._value, self._by, self._label = value, by, label
        rows = self._named()
        group = lane_values(rows, by)
        code, labels = pd.factorize(group.astype("string"), sort=True, use_na_sentinel=False)
        names = [None if pd.isna(name) else str(name) for name in labels]
        number = df[value].to_numpy(np.float64, na_value=np.nan)
        finite = np.flatnonzero(np.isfinite(number))
        low, high = (number[finite].min(), number[finite].max()) if len(finite) else (0.0, 0.0)
        room = 0.02 * float(high - low) or 0.5
        self._low, self._step = float(low) - room, (float(high - low) + 2 * room) / _STEPS
        self._table = self._means_of(rows, code, number)
        place = self._steps(number[finite])
        means = [
            None
            if np.isnan(mean)
            else [None if np.isnan(end) else float(self._steps(end)) for end in (low, mean, high)]
            for low, mean, high in self._table[["low", "mean", "high"]].itertuples(index=False)
        ]
        self._table.insert(0, by, pd.Series(names, dtype=object))
        marks = Marks(place, place + 1, code[finite], finite, names, [0] * len(names), self._tips(rows))
        axis = {"low": self._low, "step": self._step, "label": label or value}
        self._draw(marks, by, _axis=axis, _means=means, _until=_STEPS)

    def __repr__(self) -> str:
        return f"GroupComparison({self._value!r} by {self._by!r}, {quantity(len(self._lanes), 'group')})"

    @property
    def means(self) -> pd.DataFrame:
        """Mean of each group, sorted by group.

        Returns:
            The group; `units` int64 (recordings that the bootstrap draws, or rows if these name no recording), `rows`
            int64, `mean`, `low`, `high` float64 (95 % interval; NaN for fewer than two units).
        """
        return self._table

    @property
    def selection(self) -> pd.DataFrame:
        """The rows with a value in the selected interval; no rows if nothing is selected."""
        if not self.interval:
            return self._df.iloc[:0]
        low, high = (self._low + self._step * end for end in self.interval)
        number = self._df[self._value].to_numpy(np.float64, na_value=np.nan)
        return self._df[(number >= low) & (number <= high)]

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `player`)."""
        given, define = self._given()
        arguments = ["df", repr(self._value), repr(self._by), *given]
        arguments += [f"label={self._label!r}"] if self._label else []
        return self._code("groups", arguments, {"df": "the DataFrame with the values", **define}, _STATE)

    def _steps(self, number: Any) -> Any:
        return np.round((number - self._low) / self._step)

    def _means_of(self, rows: pd.DataFrame, code: Any, number: Any) -> pd.DataFrame:
        """Return the mean of each group and its interval."""
        unit = np.arange(len(rows)) if self._key is None else pd.factorize(rows[self._key])[0]
        table = pd.DataFrame({"group": code, "value": number, "rows": 1, "unit": unit})
        means = analysis.rates(table, "value", "rows", "group", resample="unit").set_index("group")
        means = means.reindex(range(int(code.max()) + 1 if len(code) else 0))
        means = means.rename(columns={"rate": "mean"}).fillna({"units": 0, "rows": 0}).reset_index(drop=True)
        return means[["units", "rows", "mean", "low", "high"]].astype({"units": "int64", "rows": "int64"})

    def _tips(self, rows: pd.DataFrame) -> pd.Series[Any]:
        """Return recording, time, speaker and text of each row."""
        when = map(clock_text, rows["start_ms"])
        columns = [self._places(rows), [*when]]
        columns += [rows["speaker"].astype("string").fillna("").tolist()] if "speaker" in rows.columns else []
        where = [" ".join(filter(None, values)) for values in zip(*columns, strict=True)]
        name = text_column(rows)
        text = [""] * len(rows) if name is None else rows[name].astype("string").fillna("").tolist()
        return pd.Series([f"{a}: {b}" if b else a for a, b in zip(where, text, strict=True)], dtype=object)
