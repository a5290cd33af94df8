"""Arguments of a wrong type are refused when a widget is created."""

from collections.abc import Callable

import pandas as pd
import pytest

import voxframe
from voxframe.errors import OptionError

ROWS = pd.DataFrame({"transcript_id": ["a"], "text": ["Hi"], "start_ms": [0], "end_ms": [90], "speaker": ["A"]})


@pytest.mark.parametrize(
    "widget",
    [
        voxframe.WordSearch,
        voxframe.SubmitForm,
        voxframe.AskPanel,
        lambda corpus: voxframe.PassageList(ROWS, corpus=corpus),
        lambda corpus: voxframe.Timeline(ROWS, corpus=corpus),
        lambda corpus: voxframe.TranscriptPlayer(ROWS, corpus=corpus),
    ],
)
def test_a_corpus_is_a_corpus(widget: Callable) -> None:
    """A path says how to open the corpus; another object says its type."""
    with pytest.raises(OptionError, match=r"not a path; pass corpus=voxframe\.Corpus\('calls'\)"):
        widget("calls")
    with pytest.raises(OptionError, match=r"corpus must be a voxframe\.Corpus, not of type DataFrame"):
        widget(ROWS)


def test_a_corpus_is_no_recording(corpus: voxframe.Corpus) -> None:
    """A corpus in the place of the recording is named as the mistake, also if the transcript is unknown."""
    with pytest.raises(OptionError, match=r"a recording must be a path or a URL, got Corpus; .* such as corpus="):
        voxframe.TranscriptPlayer("no such id", corpus)  # type: ignore[arg-type]
