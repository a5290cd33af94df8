"""Wrong arguments of plots: an error that names the argument, the value and what is allowed, and no open figure."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from voxframe import analysis, plots

_TURNS = pd.DataFrame(
    {
        "transcript_id": "t",
        "speaker": ["A", "B", "A"],
        "text": ["tree", "river", "tree"],
        "start_ms": [0, 60_000, 70_000],
        "end_ms": [60_000, 70_000, 80_000],
        "confidence": [0.5, 0.6, 0.7],
        "sentiment": ["POSITIVE", "NEGATIVE", None],
    }
)
_PLACES = pd.DataFrame({"recording": "t", "edit": ["insertion"], "start_ms": [0], "end_ms": [900]})
_RATES = pd.DataFrame({"site": ["x", "y"], "units": 2, "rate": [1.0, 2.0], "low": [0.5, 1.0], "high": [2.0, 3.0]})
_KEYS = pd.DataFrame({"site": ["x", "y"], "ngram": ["tree", "car"], "g2": [5.0, 4.0]})
_PACE = pd.DataFrame({"transcript_id": ["t"], "start_ms": [0], "end_ms": [900], "window_wpm": [100.0]})

DRAW: dict[str, tuple[Callable[..., Any], pd.DataFrame]] = {
    "timeline": (plots.timeline, _TURNS),
    "talk_time": (plots.talk_time, _TURNS),
    "dispersion": (lambda df, ax=None: plots.dispersion(df, "tree", ax), _TURNS),
    "confidence": (plots.confidence, _TURNS),
    "sentiment": (plots.sentiment, _TURNS),
    "disagreements": (plots.disagreements, _PLACES),
    "turn_matrix": (plots.turn_matrix, _TURNS),
    "pace": (plots.pace, _PACE),
    "sentiment_over_time": (plots.sentiment_over_time, _TURNS),
    "rates": (plots.rates, _RATES),
    "keyness": (plots.keyness, _KEYS),
    "small_multiples": (lambda df, ax=None: plots.small_multiples(df, plots.pace, ax), _TURNS),
}


@pytest.mark.parametrize("name", DRAW)
def test_something_else_than_axes_or_rows_is_refused(name: str) -> None:
    """A name, a figure or an array as `ax` is an error that says what to pass; so are rows that are no DataFrame."""
    draw, df = DRAW[name]
    figure, axes = plt.subplots(2)
    for ax in ("x", figure, axes, 0):
        with pytest.raises(TypeError, match=r"^ax must be one Axes of matplotlib, .* got .*"):
            draw(df, ax)
    plt.close(figure)
    for rows in (None, "words.csv", df.to_dict("records"), df.iloc[:, 0]):
        with pytest.raises(TypeError, match=f"{name} needs a DataFrame, such as .* not {type(rows).__name__}"):
            draw(rows)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plots.timeline(_TURNS, view="x"), "view must be (start, end) in ms with start < end, not 'x'"),
        (lambda: plots.timeline(_TURNS, view=(5,)), "view must be (start, end) in ms"),
        (lambda: plots.timeline(_TURNS, view=(0, np.inf)), "view must be (start, end) in ms"),
        (lambda: plots.timeline(_TURNS, view=(None, 5)), "view must be (start, end) in ms"),
        (lambda: plots.timeline(_TURNS, pack="no"), "pack must be True or False, got 'no'"),
        (lambda: plots.timeline(_TURNS, speakers=5), "speakers are given as a name or a list of names, got 5"),
        (lambda: plots.timeline(_TURNS, colors=[]), "colors must be colours of matplotlib, such as 'red'"),
        (lambda: plots.timeline(_TURNS, colors={"A": "rot"}), "'#0072B2', got 'rot'"),
        (lambda: plots.dispersion(_TURNS, 5), "queries are given as a name or a list of names, got 5"),
        (lambda: plots.confidence(_TURNS, window_s="30"), "window_s must be a number from 0.001 to 1e+09, got '30'"),
        (lambda: plots.confidence(_TURNS, window_s=1e-9), "window_s must be a number from 0.001"),
        (lambda: plots.keyness(_KEYS, top=0), "top must be a whole number of at least 1, got 0"),
        (lambda: plots.small_multiples(_TURNS, plots.pace, columns="2"), "columns must be a whole number of at least"),
    ],
)
def test_wrong_options_are_named(draw: Callable[[], Any], said: str) -> None:
    """An option with a wrong value is an error before a figure is created."""
    with pytest.raises(ValueError, match=re.escape(said)):
        draw()
    assert plt.get_fignums() == []


def test_a_plot_of_panels_must_be_a_function() -> None:
    """The name of a plot instead of its function is an error."""
    with pytest.raises(TypeError, match=r"plot must be a plot function, such as voxframe\.plots\.pace, got 'pace'"):
        plots.small_multiples(_TURNS, "pace")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("timeline", "start_ms"),
        ("dispersion", "end_ms"),
        ("confidence", "confidence"),
        ("sentiment", "end_ms"),
        ("disagreements", "end_ms"),
        ("pace", "window_wpm"),
        ("rates", "rate"),
        ("keyness", "g2"),
    ],
)
@pytest.mark.parametrize("value", ["soon", [5]])
def test_columns_of_other_values_than_numbers_are_named(name: str, column: str, value: Any) -> None:
    """A column of words or lists instead of numbers is an error; numbers as text are read."""
    draw, df = DRAW[name]
    odd = df.assign(**{column: [value] * len(df)})
    if column == "end_ms" and name == "dispersion":
        odd["term"] = "tree"
    with pytest.raises(ValueError, match=re.escape(f"the column {column!r} must have numbers, got {value!r}")):
        draw(odd)
    assert plt.get_fignums() == []
    draw(df.assign(**{column: df[column].astype(str)}))


def test_tables_without_a_column_are_named() -> None:
    """A selection of columns of a measure that cannot be drawn is an error that lists the columns."""
    transfers = pd.DataFrame({"previous": ["A"], "following": ["B"], "transfers": [1]})
    for draw, df, lacking in (
        (plots.turn_matrix, transfers, "transfer_share"),
        (plots.pace, _PACE[["window_wpm"]], "transcript_id, start_ms, end_ms"),
        (plots.disagreements, _PLACES[["recording", "edit"]], "start_ms, end_ms"),
    ):
        with pytest.raises(ValueError, match=f"lacks {lacking}"):
            draw(df)


def test_one_color_and_one_speaker_need_no_list() -> None:
    """A single name is a list of one name, not of its letters."""
    ax = plots.timeline(_TURNS.replace({"speaker": {"A": "Ann"}}), speakers="Ann", colors="red")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Ann"]
    assert ax.collections[0].get_facecolor()[0].tolist() == [1, 0, 0, 1]


def test_unknown_talk_time_has_no_bar() -> None:
    """A speaker whose talk time is unknown has a lane without a bar and a label."""
    table = analysis.talk_time(_TURNS).assign(talk_s=[70.0, None], share=[1.0, None])
    ax = plots.talk_time(table)
    assert [text.get_text() for text in ax.texts] == ["1:10 (100%)"]
    assert len(ax.get_yticklabels()) == 2


@pytest.mark.parametrize("draw", [lambda: plots.rates(_RATES.iloc[:0]), lambda: plots.keyness(_KEYS.iloc[:0])])
def test_tables_of_groups_without_rows_say_so(draw: Callable[[], Any]) -> None:
    """Without rows, the plot says that there is nothing to show."""
    assert "nothing to show" in [text.get_text() for text in draw().texts]


def test_narrow_bars_have_no_edge() -> None:
    """Bars have an edge only if it leaves most of them visible, which depends on the width of the Axes."""
    start = np.arange(100) * 1000
    df = pd.DataFrame({"speaker": "A", "start_ms": start, "end_ms": start + 900})
    widths = []
    for size in (10, 2):
        ax = plots.timeline(df, plt.figure(figsize=(size, 2)).add_axes((0, 0, 1, 1)))
        bars = ax.collections[0]
        widths.append(bars.get_linewidth()[0])
        assert widths[-1] < 0.4 * 72 * size * 0.9 / 100  # points
    assert widths[0] > widths[1] == 0
