"""Dispersion: an interactive view of the positions of searched words, with playback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from voxframe.corpus import Corpus
from voxframe.plots.lane_plots import occurrences, term_lanes
from voxframe.plots.style import lane_color_indexes
from voxframe.widgets import encoding
from voxframe.widgets.base import define_comment
from voxframe.widgets.lane_chart import LaneChart, Marks
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.row_player import Audio

#: Number of words to show on each side of an occurrence.
_CONTEXT = 6


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
        OptionError: A query contains no word, or `audio` is one recording, but the rows belong to several.

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
        found, asked = occurrences(df, queries)
        if "match" in found.columns:
            sides = [found[name].fillna("") for name in ("left", "match", "right") if name in found.columns]
            found = found.assign(text=[" ".join(filter(None, side)) for side in zip(*sides, strict=True)])
        elif "text" in df.columns:
            found = found.assign(text=_around(df, found))
        self._queries, self._by = (None if queries is None else asked), by
        super().__init__(found, corpus, audio, player, title)
        used, lane, names = term_lanes(self._named(), asked, by)
        start, end, known = encoding.times(found)
        term = pd.Index(asked).get_indexer(pd.Index(found["term"]))
        rows = np.flatnonzero(known & (lane >= 0) & (term >= 0))
        colors = lane_color_indexes(asked)
        parts = asked if used != "term" and len(asked) > 1 else []
        place = lane * len(parts) + term if parts else lane
        if used != "term" and not parts:
            colors = colors[:1]
        repeated = [colors[n % len(colors)] for n in range(len(names) * max(1, len(parts)))] if colors else []
        texts = found["text"] if "text" in found.columns else None
        self._draw(Marks(start[rows], end[rows], place[rows], rows, names, repeated, texts, parts), used)

    def __repr__(self) -> str:
        return f"Dispersion({sum(len(start) for start, _ in self._lanes):,} occurrences, {len(self._lanes)} lanes)"

    @property
    def code(self) -> str:
        """Python code that shows the same; its first line describes `df` (and `player`)."""
        given, define = self._given()
        given = [
            *([] if self._queries is None else [repr(self._queries)]),
            *([f"by={self._by!r}"] if self._by else []),
            *given,
        ]
        given += [f"title={self.title!r}"] if self.title != "Dispersion" else []
        lines = [define_comment({"df": "the DataFrame of words or matches", **define}), "import voxframe", ""]
        lines += [f"dispersion = voxframe.Dispersion({', '.join(['df', *given])})", *self._state_code("dispersion")]
        return "\n".join([*lines, "result = dispersion.result", "dispersion"])


def _around(words: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    """Return the words around each occurrence, in its transcript."""
    key = "transcript_id" if "transcript_id" in words.columns else None
    said: dict[Any, tuple[Any, list[str]]] = {}
    timed = words[words["start_ms"].notna()].sort_values("start_ms", kind="stable")
    for name, part in timed.groupby(key, sort=False, dropna=False) if key else [(None, timed)]:
        said[name] = part["start_ms"].to_numpy(np.float64), part["text"].fillna("").astype(str).tolist()
    texts = []
    for name, start, end in zip(
        found[key] if key else [None] * len(found), found["start_ms"], found["end_ms"], strict=True
    ):
        if pd.isna(start) or name not in said:
            texts.append("")
            continue
        starts, spoken = said[name]
        first = int(np.searchsorted(starts, start))
        last = max(first + 1, int(np.searchsorted(starts, start if pd.isna(end) else end)))
        texts.append(" ".join(spoken[max(0, first - _CONTEXT) : last + _CONTEXT]))
    return texts
