"""Matplotlib plots of DataFrames: each function accepts `ax=None`, returns the Axes and never calls `plt.show()`.

Colours adapt to a light or dark background. `matplotlib.style.use("dark_background")` makes every plot dark.
"""

from voxframe.plots.dispersion_plot import dispersion
from voxframe.plots.over_time_plot import confidence, sentiment
from voxframe.plots.timeline_plot import talk_time, timeline

__all__ = ["confidence", "dispersion", "sentiment", "talk_time", "timeline"]
