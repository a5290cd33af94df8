import time
import warnings
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from voxframe import plots

mpl.use("agg")


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    """No figure outlives a test, and no plot warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def _turns(**columns: object) -> pd.DataFrame:
    base = {
        "transcript_id": "t",
        "speaker": ["B", "A", "B"],
        "text": ["one", "two", "three"],
        "start_ms": [500, 61_000, 90_000],
        "end_ms": [60_000, 89_000, 120_000],
    }
    return pd.DataFrame(base | columns)


def _spans(ax: plt.Axes, lane: int) -> list[tuple[float, float]]:
    paths = ax.collections[lane].get_paths()
    return [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in paths]


def test_one_lane_a_speaker_in_order_of_speaking() -> None:
    """Lanes are named after the speakers, who speaks first on top, and hold bars in seconds."""
    ax = plots.timeline(_turns())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["B", "A"]
    assert _spans(ax, 0) == [(0.5, 60.0), (90.0, 120.0)]
    assert _spans(ax, 1) == [(61.0, 89.0)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_it_draws_where_it_is_told_and_shows_nothing() -> None:
    """The given Axes is returned, and no window or pyplot figure is made."""
    figure = Figure()
    ax = figure.subplots()
    assert plots.timeline(_turns(), ax) is ax
    assert plt.get_fignums() == []


def test_ticks_read_as_clock_times() -> None:
    """The time axis is labelled in minutes and seconds, from an hour on with hours."""
    ax = plots.timeline(_turns())
    ax.figure.canvas.draw()
    assert "1:00" in [label.get_text() for label in ax.get_xticklabels()]
    long = plots.timeline(_turns(end_ms=[60_000, 89_000, 7_200_000]))
    long.figure.canvas.draw()
    assert {"0:30:00", "1:00:00"} <= {label.get_text() for label in long.get_xticklabels()}


def test_no_label_is_cut_off() -> None:
    """Every label of a new figure lies inside it, also for a long name with markup in it."""
    ax = plots.timeline(_turns(speaker=["$\\frac$ Maximiliana von Hohenfels-Traunstein", "A", "A"]))
    ax.figure.canvas.draw()
    inside = ax.figure.bbox
    for label in [*ax.get_yticklabels(), *ax.get_xticklabels(), ax.xaxis.label]:
        box = label.get_window_extent()
        if ax.get_xlim()[0] <= label.get_position()[0] <= ax.get_xlim()[1]:
            assert inside.x0 <= box.x0
            assert box.x1 <= inside.x1 + 1
            assert inside.y0 <= box.y0


def test_speaker_names_are_taken_literally() -> None:
    """A dollar sign starts no formula and a control character is dropped."""
    ax = plots.timeline(_turns(speaker=["$x$", "a\x1b\nb", None]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$x$", "ab", "(unknown)"]
    ax.figure.canvas.draw()


def test_a_speaker_has_one_colour_everywhere() -> None:
    """Timeline and talk time paint the same speaker the same."""
    ax, bars = plots.timeline(_turns()), plots.talk_time(_turns(end_ms=[1_000, 89_000, 91_000]))
    lanes = dict(zip([t.get_text() for t in ax.get_yticklabels()], ax.collections, strict=True))
    names = [t.get_text() for t in bars.get_yticklabels()]
    assert names == ["A", "B"]
    for name, bar in zip(names, bars.patches, strict=True):
        assert tuple(lanes[name].get_facecolor()[0]) == bar.get_facecolor()


def test_lanes_can_be_chosen() -> None:
    """`speakers` picks and orders the lanes; one that never speaks has an empty lane."""
    ax = plots.timeline(_turns(), speakers=["A", "C"], colors=["red"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "C"]
    assert _spans(ax, 1) == []


def test_several_transcripts_are_refused() -> None:
    """Times of different recordings share no axis."""
    with pytest.raises(ValueError, match="has 3; pick one"):
        plots.timeline(_turns(transcript_id=["t", "u", "v"]))


@pytest.mark.parametrize("plot", [plots.timeline, plots.talk_time])
def test_nothing_to_draw_is_an_empty_plot(plot: object) -> None:
    """No rows, or rows with no times, draw an empty plot without a warning."""
    plot(_turns().iloc[:0]).figure.canvas.draw()
    plot(_turns(start_ms=pd.array([None] * 3, dtype="Int64"))).figure.canvas.draw()


def test_near_spans_are_joined_and_far_ones_are_not() -> None:
    """Bars that the eye cannot tell apart become one; order and overlap do not matter."""
    df = _turns(speaker="A", start_ms=[90_000, 0, 60_001], end_ms=[100_000, 60_000, 80_000])
    assert _spans(plots.timeline(df), 0) == [(0.0, 80.0), (90.0, 100.0)]


def test_a_million_spans_cost_little_more_than_one() -> None:
    """A million words are drawn in less time than it takes to add 20,000 rectangles one by one."""
    n = 1_000_000
    words = pd.DataFrame(
        {
            "speaker": pd.array(
                np.where(np.arange(n) // 9 % 2, "A", "B"), dtype=pd.StringDtype("pyarrow", na_value=np.nan)
            ),
            "start_ms": np.arange(n) * 300,
            "end_ms": np.arange(n) * 300 + 250,
        }
    )
    plots.timeline(words.head(9))
    begin = time.perf_counter()
    plots.timeline(words).figure.canvas.draw()
    ours = time.perf_counter() - begin
    ax = plt.subplots()[1]
    begin = time.perf_counter()
    for x in range(2_000):
        ax.add_patch(plt.Rectangle((x, 0), 1, 1))
    assert ours < (time.perf_counter() - begin) * 10
