"""Measures computed on DataFrames of speech: who talks when and how, and with which words.

Every function takes a DataFrame and returns one, for any number of transcripts. `by=` groups by any column, such as
metadata, by speaker or by time bin: see `voxframe.analysis.grouping.with_keys`.
"""

from voxframe.analysis.floor_transfers import turn_matrix, turn_statistics, turn_taking
from voxframe.analysis.grouping import compare_groups, rates, relative_time
from voxframe.analysis.over_time import annotate, label_shares, pace, sentiment_over_time, split_spans
from voxframe.analysis.rows import turns
from voxframe.analysis.search_terms import find_words
from voxframe.analysis.speaking_time import balance, speech_activity, talk_time
from voxframe.analysis.speech_delivery import delivery, low_confidence, pauses, questions
from voxframe.analysis.vocabulary import collocations, distinctive_words, keyness, ngrams, vocabulary

__all__ = [
    "annotate",
    "balance",
    "collocations",
    "compare_groups",
    "delivery",
    "distinctive_words",
    "find_words",
    "keyness",
    "label_shares",
    "low_confidence",
    "ngrams",
    "pace",
    "pauses",
    "questions",
    "rates",
    "relative_time",
    "sentiment_over_time",
    "speech_activity",
    "split_spans",
    "talk_time",
    "turn_matrix",
    "turn_statistics",
    "turn_taking",
    "turns",
    "vocabulary",
]
