"""Measures computed on DataFrames of speech: talk time, turns and word occurrences."""

from voxframe.analysis.search_terms import find_words
from voxframe.analysis.speaker_turns import talk_time, turns

__all__ = ["find_words", "talk_time", "turns"]
