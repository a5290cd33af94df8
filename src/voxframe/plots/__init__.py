"""Pictures of DataFrames with matplotlib: each function takes `ax=None` and returns the Axes."""

from voxframe.plots.talk_time import talk_time
from voxframe.plots.timeline import timeline

__all__ = ["talk_time", "timeline"]
