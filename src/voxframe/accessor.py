"""The accessor `df.vox`: analysis and plots as methods of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import pandas as pd

from voxframe import analysis, plots
from voxframe._forwarding import forwarded

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _method(
    function: Callable[Concatenate[pd.DataFrame, _Parameters], _Result],
) -> Callable[Concatenate[Vox, _Parameters], _Result]:
    """Return a method with the signature and the docstring of a function, whose first argument is the DataFrame."""

    @forwarded(function)
    def method(self: Vox, *args: object, **kwargs: object) -> _Result:
        return function(self._df, *args, **kwargs)  # type: ignore[arg-type]

    method.__name__ = function.__name__
    method.__doc__ = (method.__doc__ or "").partition("\n\nExample:")[0]  # it calls the function, not the method
    return method


@pd.api.extensions.register_dataframe_accessor("vox")
class Vox:
    """Analysis and plots of a DataFrame that voxframe loaded, or of one with the same columns.

    Each method is a function of `voxframe.analysis` or `voxframe.plots` whose first argument is the DataFrame.

    Args:
        df: The DataFrame.

    Example:
        >>> import voxframe
        >>> words = voxframe.load_words({"id": "a", "words": [{"text": "Hi", "start": 0, "end": 400, "speaker": "A"}]})
        >>> words.vox.talk_time()["talk_s"].to_list()
        [0.4]
    """

    def __init__(self, df: pd.DataFrame) -> None:
        self._df = df

    talk_time = _method(analysis.talk_time)
    speech_activity = _method(analysis.speech_activity)
    turn_statistics = _method(analysis.turn_statistics)  # type: ignore[arg-type]  # its **options
    delivery = _method(analysis.delivery)
    annotate = _method(analysis.annotate)
    turns = _method(analysis.turns)
    find_words = _method(analysis.find_words)

    timeline = _method(plots.timeline)
    plot_talk_time = _method(plots.talk_time)
    dispersion = _method(plots.dispersion)
    confidence = _method(plots.confidence)
    sentiment = _method(plots.sentiment)
