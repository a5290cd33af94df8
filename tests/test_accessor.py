import inspect

import matplotlib as mpl
import pandas as pd

import voxframe
from voxframe import accessor

mpl.use("agg")

_WORDS = [
    {"text": "Is", "start": 0, "end": 200, "speaker": "A"},
    {"text": "it?", "start": 300, "end": 500, "speaker": "A"},
    {"text": "Yes.", "start": 900, "end": 1400, "speaker": "B"},
]


def test_the_accessor_only_delegates() -> None:
    """The methods of `df.vox` return the results of the functions."""
    words = voxframe.load_words({"id": "t", "words": _WORDS})
    assert isinstance(words.vox, accessor.Vox)
    pd.testing.assert_frame_equal(words.vox.turns(pause_ms=50), voxframe.analysis.turns(words, pause_ms=50))
    pd.testing.assert_frame_equal(words.vox.talk_time(), voxframe.analysis.talk_time(words))
    for name in ("speech_activity", "turn_statistics", "delivery"):
        pd.testing.assert_frame_equal(getattr(words.vox, name)(), getattr(voxframe.analysis, name)(words))
    assert words.vox.talk_time(by="minute", of="recording")["share"].to_list() == [1.0 / 1.4]
    turns = words.vox.turns()[["transcript_id", "turn_idx", "start_ms", "end_ms"]]
    assert words.vox.annotate(turns, rule="within")["turn_idx"].to_list() == [0, 0, 1]
    assert [t.get_text() for t in words.vox.plot_timeline(speakers=["B"]).get_yticklabels()] == ["B"]
    assert len(words.vox.plot_talk_time().patches) == 2
    assert len(words.vox.plot_talk_time(by="minute").patches) == 1
    assert words.vox.plot_timeline(colors={"B": "red"}).collections[1].get_facecolor().tolist() == [[1, 0, 0, 1]]
    pd.testing.assert_frame_equal(words.vox.find_words("is it"), voxframe.analysis.find_words(words, "is it"))
    assert [t.get_text() for t in words.vox.plot_dispersion(["is it", "no"]).get_yticklabels()] == ["is it", "no"]
    assert words.assign(confidence=0.5).vox.plot_confidence(window_s=1).lines[0].get_ydata().tolist() == [0.5]
    moods = words.assign(sentiment="POSITIVE").vox.plot_sentiment()
    assert [t.get_text() for t in moods.get_legend().get_texts()] == ["positive"]


def test_the_accessor_has_every_measure_and_plot() -> None:
    """Measures have their names, plots `plot_` before it; completion of `voxframe.plots` offers the plots alone."""
    names = {name for name in dir(accessor.Vox) if not name.startswith("_")}
    assert names == {*voxframe.analysis.__all__, *(f"plot_{name}" for name in voxframe.plots.__all__)}
    assert dir(voxframe.plots) == sorted(voxframe.plots.__all__)


def test_methods_take_every_argument_of_their_functions() -> None:
    """A method of `df.vox` has the parameters and the docstring of its function, without the DataFrame."""
    for name in ("talk_time", "speech_activity", "turn_statistics", "delivery", "annotate", "turns", "find_words"):
        method, function = getattr(accessor.Vox, name), getattr(voxframe.analysis, name)
        assert [*inspect.signature(method).parameters][1:] == [*inspect.signature(function).parameters][1:]
        assert (inspect.getdoc(function) or "").startswith(inspect.getdoc(method) or "-")
