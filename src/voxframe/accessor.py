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

    Each method is a function of `voxframe.analysis`, or with `plot_` before its name one of `voxframe.plots`, whose
    first argument is the DataFrame.

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

    annotate = _method(analysis.annotate)
    balance = _method(analysis.balance)
    collocations = _method(analysis.collocations)
    compare_groups = _method(analysis.compare_groups)
    delivery = _method(analysis.delivery)
    distinctive_words = _method(analysis.distinctive_words)
    find_words = _method(analysis.find_words)
    keyness = _method(analysis.keyness)
    label_shares = _method(analysis.label_shares)
    low_confidence = _method(analysis.low_confidence)
    ngrams = _method(analysis.ngrams)
    pace = _method(analysis.pace)
    pauses = _method(analysis.pauses)
    questions = _method(analysis.questions)
    rates = _method(analysis.rates)
    relative_time = _method(analysis.relative_time)
    sentiment_over_time = _method(analysis.sentiment_over_time)
    speech_activity = _method(analysis.speech_activity)
    split_spans = _method(analysis.split_spans)
    talk_time = _method(analysis.talk_time)
    turn_matrix = _method(analysis.turn_matrix)  # type: ignore[arg-type]  # its **options
    turn_statistics = _method(analysis.turn_statistics)  # type: ignore[arg-type]  # its **options
    turn_taking = _method(analysis.turn_taking)
    turns = _method(analysis.turns)
    vocabulary = _method(analysis.vocabulary)

    plot_confidence = _method(plots.confidence)
    plot_disagreements = _method(plots.disagreements)
    plot_dispersion = _method(plots.dispersion)
    plot_keyness = _method(plots.keyness)
    plot_pace = _method(plots.pace)
    plot_rates = _method(plots.rates)
    plot_sentiment = _method(plots.sentiment)
    plot_sentiment_over_time = _method(plots.sentiment_over_time)
    plot_small_multiples = _method(plots.small_multiples)  # type: ignore[arg-type]  # its **options
    plot_talk_time = _method(plots.talk_time)
    plot_timeline = _method(plots.timeline)
    plot_turn_matrix = _method(plots.turn_matrix)
