"""Measures computed on DataFrames of speech: who talks when and how, and with which words.

Every function takes a DataFrame and returns one, for any number of transcripts. `by=` groups by any column, such as
metadata, by speaker or by time bin: see `voxframe.analysis.grouping.with_keys`.
"""

from voxframe.analysis.grouping import relative_time
from voxframe.analysis.search_terms import find_words
from voxframe.analysis.spans import annotate, split_spans
from voxframe.analysis.speaker_turns import turns
from voxframe.analysis.talk_time import balance, speech_activity, talk_time
from voxframe.analysis.turn_taking import turn_matrix, turn_statistics, turn_taking

__all__ = [
    "annotate",
    "balance",
    "find_words",
    "relative_time",
    "speech_activity",
    "split_spans",
    "talk_time",
    "turn_matrix",
    "turn_statistics",
    "turn_taking",
    "turns",
]
