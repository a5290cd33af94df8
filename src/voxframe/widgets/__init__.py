"""Interactive notebook widgets; their results are DataFrames.

`PassageList` and the matches of `WordSearch` are one list of rows (`lines.js`); `Timeline`, `Dispersion` and
`GroupComparison` are one canvas with lanes (`lane_chart.js`). A widget for both would be more code: of a list, it could
save the 38 lines of `passage_list.js`, and it would draw in two ways.
"""

from voxframe.widgets.ask_panel import AskPanel
from voxframe.widgets.lane_chart import Dispersion, GroupComparison, Timeline
from voxframe.widgets.live_transcript import LiveTranscript
from voxframe.widgets.passage_lists import PassageList, WordSearch
from voxframe.widgets.player import TranscriptPlayer
from voxframe.widgets.submit_form import SubmitForm

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
