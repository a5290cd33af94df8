"""The accessor `df.vox`: analysis and plots as methods of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voxframe.plots.time_axis import Bands


@pd.api.extensions.register_dataframe_accessor("vox")
class Vox:
    """Analysis and plots of a DataFrame that voxframe loaded, or of one with the same columns.

    Args:
        df: The DataFrame.

    Example:
        >>> import voxframe
        >>> words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 0, "end": 400, "speaker": "A"}]})
        >>> words.vox.talk_time()["talk_s"].to_list()
        [0.4]
    """

    def __init__(self, df: pd.DataFrame) -> None:
        self._df = df

    def talk_time(self) -> pd.DataFrame:
        """Return the talk time of each speaker per transcript: see `voxframe.analysis.talk_time`."""
        from voxframe import analysis

        return analysis.talk_time(self._df)

    def turns(self, *, pause_ms: float | None = None) -> pd.DataFrame:
        """Group words into turns: see `voxframe.analysis.turns`."""
        from voxframe import analysis

        return analysis.turns(self._df, pause_ms=pause_ms)

    def timeline(
        self,
        ax: Axes | None = None,
        *,
        by: str | None = None,
        pack: bool = False,
        speakers: Sequence[str] | None = None,
        colors: Sequence[str] | None = None,
        bands: Bands | None = None,
        view: tuple[float, float] | None = None,
    ) -> Axes:
        """Draw a speaker timeline: see `voxframe.plots.timeline`."""
        from voxframe import plots

        return plots.timeline(self._df, ax, by=by, pack=pack, speakers=speakers, colors=colors, bands=bands, view=view)

    def plot_talk_time(self, ax: Axes | None = None) -> Axes:
        """Draw the talk time of each speaker as a bar: see `voxframe.plots.talk_time`."""
        from voxframe import plots

        return plots.talk_time(self._df, ax)

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
