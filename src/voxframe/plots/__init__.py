"""Pictures of DataFrames with matplotlib: each function takes `ax=None`, returns the Axes and shows nothing itself.

Colours suit a light or a dark background; `matplotlib.style.use("dark_background")` makes all of them dark.
"""

from voxframe.plots.confidence import confidence
from voxframe.plots.dispersion import dispersion
from voxframe.plots.sentiment import sentiment
from voxframe.plots.talk_time import talk_time
from voxframe.plots.timeline import timeline

__all__ = ["confidence", "dispersion", "sentiment", "talk_time", "timeline"]
