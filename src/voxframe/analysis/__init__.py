"""Numbers over DataFrames of speech: who talked, for how long, in which turns."""

from voxframe.analysis.talk_time import talk_time
from voxframe.analysis.turns import turns

__all__ = ["talk_time", "turns"]
