"""Timeline: an interactive view of turns and other time spans, with zoom, selection and playback."""

from __future__ import annotations

from typing import Any

import pandas as pd
import traitlets

from voxframe._text import clock
from voxframe.analysis.speaker_turns import label_names, require
from voxframe.corpus import Corpus
from voxframe.plots.spans import one_transcript, several_transcripts, spans
from voxframe.plots.style import lane_color_indexes
from voxframe.widgets import encoding
from voxframe.widgets.base import define_comment, text_map
from voxframe.widgets.lane_chart import LaneChart, Marks
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.row_player import Audio


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
        OptionError: `audio` is one recording, but the rows belong to several.

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
        found = spans(self._named(), by, "Timeline")
        found = found.where((found.start >= 0) & (found.end * 1000 <= encoding.LAST_MS))
        several = by is None and several_transcripts(df)
        named = None if several or by not in (None, "speaker_name") else label_names(df)
        label_of = {name: label for label, name in reversed((named or {}).items())}
        self._given_names = {label: name for label, name in (named or {}).items() if label and label != name}
        of_speakers = not several and by in (None, "speaker", "speaker_name")
        above = {}
        if bands is not None:
            require(bands, ("start_ms", "end_ms"), "bands of Timeline")
            one_transcript(bands, "bands of Timeline")
            titles = next((name for name in ("headline", "label", "text") if name in bands.columns), "start_ms")
            above = encoding.bands(bands, titles, "band")
        marks = Marks(
            (found.start * 1000).round(),
            (found.end * 1000).round(),
            found.code,
            found.row,
            found.names,
            lane_color_indexes(found.names, found.named),
            df["text"] if "text" in df.columns else None,
        )
        self._draw(
            marks,
            by,
            _columns=above,
            names=self._given_names,
            _speakers=[(label_of.get(name, name) if of_speakers else None) or "" for name in found.names],
        )

    def __repr__(self) -> str:
        spans = sum(len(start) for start, _ in self._lanes)
        return f"Timeline({spans:,} spans, {len(self._lanes)} lanes, 0:00 to {clock(self._until / 1000)})"

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `bands`)."""
        given, defined = self._given()
        given = [
            *([f"by={self._by!r}"] if self._by else []),
            *(["bands=bands"] if self._bands is not None else []),
            *given,
        ]
        given += [f"title={self.title!r}"] if self.title != "Timeline" else []
        define = {"df": "the DataFrame with start_ms and end_ms"}
        define |= {"bands": "the DataFrame of bands"} if self._bands is not None else {}
        lines = [define_comment(define | defined), "import voxframe", ""]
        lines += [f"timeline = voxframe.Timeline({', '.join(['df', *given])})"]
        lines += [f"timeline.names = {self.names!r}"] if self.names != self._given_names else []
        lines += self._state_code("timeline")
        if self.interval:
            low, high = self.interval
            lines.append(f'selection = df[(df["start_ms"] < {high}) & (df["end_ms"] > {low})]')
        return "\n".join([*lines, "result = timeline.result", "timeline"])

    def _lane_names(self) -> list[str | None]:
        lanes: Any = zip(self._names, self._speakers, strict=True)
        return [self.names.get(voice, voice) if voice else name for name, voice in lanes]
