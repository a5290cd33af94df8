"""The accessor `df.vox`: analysis and plots as methods of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voxframe.analysis.grouping import By
    from voxframe.analysis.spans import Rule
    from voxframe.analysis.speaking_time import Whole
    from voxframe.plots.time_axis import Bands


@pd.api.extensions.register_dataframe_accessor("vox")
class Vox:
    """Analysis and plots of a DataFrame that voxframe loaded, or of one with the same columns.

    Example:
        >>> import voxframe
        >>> words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 0, "end": 400, "speaker": "A"}]})
        >>> words.vox.talk_time()["talk_s"].to_list()
        [0.4]
    """

    def __init__(self, df: pd.DataFrame) -> None:
        self._df = df

    def talk_time(
        self,
        by: By = ("transcript_id", "speaker"),
        *,
        of: Whole = "talk",
        transcripts: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Return the talk time of each speaker per transcript: see `voxframe.analysis.talk_time`."""
        from voxframe import analysis

        return analysis.talk_time(self._df, by, of=of, transcripts=transcripts)

    def speech_activity(self, by: By = "transcript_id", *, transcripts: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return seconds of speech, silence and overlap: see `voxframe.analysis.speech_activity`."""
        from voxframe import analysis

        return analysis.speech_activity(self._df, by, transcripts=transcripts)

    def turn_statistics(self, by: By = ("transcript_id", "speaker")) -> pd.DataFrame:
        """Return latency, overlaps and interruptions of each speaker: see `voxframe.analysis.turn_statistics`."""
        from voxframe import analysis

        return analysis.turn_statistics(self._df, by)

    def delivery(self, by: By = ("transcript_id", "speaker")) -> pd.DataFrame:
        """Return pace, pauses and fillers of each speaker, from words: see `voxframe.analysis.delivery`."""
        from voxframe import analysis

        return analysis.delivery(self._df, by)

    def annotate(
        self, others: pd.DataFrame, *, rule: Rule = "most", columns: Sequence[str] | None = None, prefix: str = ""
    ) -> pd.DataFrame:
        """Add the chapter, topic or other span that each row lies in: see `voxframe.analysis.annotate`."""
        from voxframe import analysis

        return analysis.annotate(self._df, others, rule=rule, columns=columns, prefix=prefix)

    def turns(self, *, pause_ms: float | None = None) -> pd.DataFrame:
        """Group words or longer rows into turns: see `voxframe.analysis.turns`."""
        from voxframe import analysis

        return analysis.turns(self._df, pause_ms=pause_ms)

    def timeline(
        self,
        ax: Axes | None = None,
        *,
        by: str | None = None,
        pack: bool = False,
        speakers: Sequence[str] | None = None,
        colors: Sequence[str] | Mapping[str, str] | None = None,
        bands: Bands | None = None,
        view: tuple[float, float] | None = None,
    ) -> Axes:
        """Draw a speaker timeline: see `voxframe.plots.timeline`."""
        from voxframe import plots

        return plots.timeline(self._df, ax, by=by, pack=pack, speakers=speakers, colors=colors, bands=bands, view=view)

    def plot_talk_time(self, ax: Axes | None = None, *, by: By = ("transcript_id", "speaker")) -> Axes:
        """Draw the talk time of each speaker, or of other groups, as a bar: see `voxframe.plots.talk_time`."""
        from voxframe import plots

        return plots.talk_time(self._df, ax, by=by)

    def dispersion(
        self,
        queries: str | Iterable[str] | None = None,
        ax: Axes | None = None,
        *,
        by: str | None = None,
        transcripts: pd.DataFrame | None = None,
    ) -> Axes:
        """Draw positions of searched words: see `voxframe.plots.dispersion`."""
        from voxframe import plots

        return plots.dispersion(self._df, queries, ax, by=by, transcripts=transcripts)

    def confidence(self, ax: Axes | None = None, *, by: str | None = None, window_s: float | None = None) -> Axes:
        """Draw confidence over time: see `voxframe.plots.confidence`."""
        from voxframe import plots

        return plots.confidence(self._df, ax, by=by, window_s=window_s)

    def sentiment(self, ax: Axes | None = None, *, by: str | None = None) -> Axes:
        """Draw sentiment over time: see `voxframe.plots.sentiment`."""
        from voxframe import plots

        return plots.sentiment(self._df, ax, by=by)

    def find_words(self, queries: str | Iterable[str]) -> pd.DataFrame:
        """Find every occurrence of words and phrases: see `voxframe.analysis.find_words`."""
        from voxframe import analysis

        return analysis.find_words(self._df, queries)
