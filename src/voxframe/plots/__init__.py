"""Matplotlib plots of DataFrames: each function accepts `ax=None`, returns the Axes and never calls `plt.show()`.

Transcripts have the names of the column `recording`, otherwise their ids. The start of the id tells transcripts of one
recording apart.

Colours adapt to a light or dark background. `matplotlib.style.use("dark_background")` makes every plot dark.
"""

from voxframe.plots.lane_plots import disagreements, dispersion, sentiment, talk_time, timeline
from voxframe.plots.measure_plots import (
    confidence,
    keyness,
    pace,
    rates,
    sentiment_over_time,
    small_multiples,
    turn_matrix,
)

__all__ = [
    "confidence",
    "disagreements",
    "dispersion",
    "keyness",
    "pace",
    "rates",
    "sentiment",
    "sentiment_over_time",
    "small_multiples",
    "talk_time",
    "timeline",
    "turn_matrix",
]


def __dir__() -> list[str]:
    return __all__  # completion offers plots, not modules
