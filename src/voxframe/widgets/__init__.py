"""Interactive notebook widgets; their results are DataFrames."""

from voxframe.widgets.ask_panel import AskPanel
from voxframe.widgets.group_comparison import GroupComparison
from voxframe.widgets.lane_chart import Dispersion, Timeline
from voxframe.widgets.live_transcript import LiveTranscript
from voxframe.widgets.passage_list import PassageList
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.submit_form import SubmitForm
from voxframe.widgets.word_search import WordSearch

__all__ = [
    "AskPanel",
    "Dispersion",
    "GroupComparison",
    "LiveTranscript",
    "PassageList",
    "SubmitForm",
    "Timeline",
    "TranscriptPlayer",
    "WordSearch",
]
