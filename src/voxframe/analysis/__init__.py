"""Numbers over DataFrames of speech: who talked, for how long, in which turns."""

from voxframe.analysis.find_words import find_words
from voxframe.analysis.talk_time import talk_time
from voxframe.analysis.turns import turns

__all__ = ["find_words", "talk_time", "turns"]
