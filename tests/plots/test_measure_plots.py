import numpy as np
import pandas as pd
import pytest

import voxframe
from voxframe import analysis, plots
from voxframe.plots.lanes import shown_names

PATHS = [f"data/payloads/{name}.json" for name in ("call", "interview", "panel")]


@pytest.fixture(scope="module")
def words() -> pd.DataFrame:
    return voxframe.load_words(PATHS)


def test_the_turn_matrix_shows_the_counts(words, texts_of):
    """Each pair of speakers is a cell with its count; speakers of several recordings form blocks."""
    panel = words[words["transcript_id"] == words["transcript_id"].iloc[-1]]
    table = analysis.turn_matrix(panel)
    ax = plots.turn_matrix(panel)
    assert [text.get_text() for text in ax.texts] == table["transfers"].astype(str).tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == list("ABCD")
    assert len(plots.turn_matrix(words).get_yticklabels()) == 8
    texts_of(ax)


def test_pace_and_sentiment_have_a_line_per_group(words, texts_of):
    """Lines are named by transcript, and by speaker if wanted; their points are those of the measure."""
    ax = plots.pace(words, window_s=20)
    assert len(ax.lines) == 3
    texts_of(ax)
    one = words[words["transcript_id"] == words["transcript_id"].iloc[-1]]
    ax = plots.pace(one, by="speaker", window_s=20)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("ABCD")
    expected = analysis.pace(one, "speaker", window_s=20)
    assert ax.lines[1].get_ydata().tolist() == expected.loc[expected["speaker"] == "B", "window_wpm"].tolist()
    mood = one.assign(sentiment=np.resize(["POSITIVE", "NEGATIVE", "NEUTRAL"], len(one)))
    ax = plots.sentiment_over_time(mood, window_s=20)
    assert len(ax.lines) == 1
    texts_of(ax)


@pytest.mark.parametrize(("hours", "points"), [(1, 120), (2, 240), (24, 144)])
def test_long_recordings_have_longer_windows(hours, points):
    """Windows of 30 s, up to two hours; of a day, of ten minutes, because thousands of points are a solid block."""
    start = np.arange(0, hours * 3_600_000, 1000)
    words = pd.DataFrame({"transcript_id": "t", "text": "x", "start_ms": start, "end_ms": start + 900})
    (line,) = plots.pace(words).lines
    assert len(line.get_ydata()) == points
    mood = words.iloc[::10].assign(sentiment="POSITIVE")
    (line,) = [one for one in plots.sentiment_over_time(mood).lines if len(one.get_ydata()) > 2]
    assert len(line.get_ydata()) == min(points, 60 * hours)


def test_rates_have_points_and_intervals(texts_of):
    """Each group has a point; only groups of several recordings have an interval."""
    table = pd.DataFrame({"transcript_id": list("abc"), "site": list("xxy"), "n": [1, 3, 4], "of": 100})
    ax = plots.rates(analysis.rates(table, "n", "of", "site", per=100), label="fillers per 100 words")
    interval, points = ax.collections
    assert [segment[:, 0].tolist() for segment in interval.get_segments()] == [[1, 3]]
    assert points.get_offsets().tolist() == [[2, 0], [4, 1]]
    texts_of(ax)


def test_keyness_draws_the_strongest_words(words, texts_of):
    """The top words of each group are bars in the order of the table."""
    table = analysis.keyness(analysis.ngrams(words, by="transcript_id"), "transcript_id")
    ax = plots.keyness(table, top=3)
    expected = table.groupby("transcript_id").head(3)
    assert [label.get_text() for label in ax.get_yticklabels()] == expected["ngram"].tolist()
    assert [bar.get_width() for bar in ax.patches] == expected["g2"].tolist()
    texts_of(ax)


def test_figures_say_what_they_do_not_show(words):
    """Words without occurrence, recordings without one, missing intervals and chance differences are written."""
    ax = plots.dispersion(words, ["zebra", "the"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["zebra (no occurrence)", "the"]
    ax = plots.dispersion(words, ["zebra"])
    assert len(ax.get_yticklabels()) == words["recording"].nunique()
    assert {text.get_text() for text in ax.texts} == {"no occurrence"}
    table = pd.DataFrame({"transcript_id": list("abc"), "site": list("xxy"), "fillers": [1, 3, 5], "words": 100})
    ax = plots.rates(analysis.rates(table, "fillers", "words", "site", per=100))
    assert [text.get_text() for text in ax.texts] == ["no interval: 1 unit"]
    counts = pd.DataFrame({"site": list("xxyy"), "ngram": ["tree", "car"] * 2, "count": [400, 100, 100, 110]})
    ax = plots.keyness(analysis.keyness(counts.assign(count=[6, 4, 4, 6]), "site"))
    assert "hollow: not significant" in ax.get_xlabel()
    assert {bar.get_facecolor()[3] for bar in ax.patches} == {0}
    ax = plots.keyness(analysis.keyness(counts, "site"))
    assert {bar.get_facecolor()[3] for bar in ax.patches} == {1}
    assert ax.texts[0].get_text() == f"{0.8 / (100 / 210):.3g} times"


def test_long_names_leave_room_for_the_matrix():
    """The matrix of a new figure does not collapse if the names of the speakers are long."""
    turns = pd.DataFrame({"transcript_id": "t", "speaker": list("ABA"), "text": "x"})
    turns = turns.assign(start_ms=[0, 1500, 3000], end_ms=[1000, 2500, 4000])
    widths = []
    for names in ({"A": "A", "B": "B"}, {"A": "A" * 40, "B": "B" * 40}):
        ax = plots.turn_matrix(turns.replace({"speaker": names}))
        ax.figure.canvas.draw()
        widths.append(ax.get_window_extent().width)
    assert widths[1] > 0.7 * widths[0]


def test_titles_of_panels_are_above_their_legends():
    """The title of a panel does not cover its legend."""
    rows = pd.DataFrame({"transcript_id": list("ab"), "speaker": "A", "text": "x", "sentiment": "POSITIVE"})
    axes = plots.small_multiples(rows.assign(start_ms=0, end_ms=900), plots.sentiment)
    axes[0].figure.canvas.draw()
    for ax in axes:
        title = next(text for text in ax.texts + ax.get_children() if getattr(text, "get_text", str)() in ("a", "b"))
        assert title.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1


def test_small_multiples_share_their_scales(words):
    """Each recording has a panel with its name and its own rows, and all panels have the same axes."""
    axes = plots.small_multiples(words, plots.pace, window_s=20)
    assert [ax.get_title(loc="left") for ax in axes] == ["call", "interview", "panel"]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    assert len(axes[0].lines) == 1
    with pytest.raises(ValueError, match="1 to 200 panels, got 0"):
        plots.small_multiples(words.iloc[:0], plots.pace)


def test_panels_take_the_place_of_given_axes(words):
    """With `ax`, the panels lie within its place in the figure, also if it has no grid, and other axes stay."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    free = figure.add_axes((0.1, 0.1, 0.3, 0.2))
    for given in (right, free):
        box = given.get_position()
        axes = plots.small_multiples(words, plots.pace, given, columns=1, window_s=20)
        assert len(axes) == words["transcript_id"].nunique()
        for ax in axes:
            inside = ax.get_position()
            assert box.x0 - 1e-9 <= inside.x0 < inside.x1 <= box.x1 + 1e-9
            assert box.y0 - 1e-9 <= inside.y0 < inside.y1 <= box.y1 + 1e-9
            assert ax.figure is figure
    assert left.axison
    assert not right.axison


@pytest.mark.parametrize("plot", [plots.pace, plots.sentiment_over_time, plots.turn_matrix])
def test_a_table_without_rows_is_drawn(words, plot):
    """Without rows, the plot says that there is nothing to show, and gives no warning."""
    ax = plot(words.iloc[:0].assign(sentiment="POSITIVE"))
    ax.figure.canvas.draw()
    assert "nothing to show" in [text.get_text() for text in ax.texts]


def test_points_of_rates_are_inside_the_frame():
    """No point lies on the frame, zero is marked if a rate is negative, and a recording's id is not repeated."""
    table = pd.DataFrame({"transcript_id": ["id1", "id2"], "recording": ["call", "panel"], "units": 1})
    for values in ([0.0, 2.0], [-0.2, -0.1]):
        ax = plots.rates(table.assign(rate=values, low=values, high=values))
        low, high = ax.get_xlim()
        assert low < min(values) <= max(values) < high
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["call", "panel"]
        assert bool(ax.lines) == (min(values) < 0)


def test_parts_of_long_labels_stay_apart():
    """Of two speakers of a recording with a long name, the labels stay different."""
    labels = shown_names([f"the recording of {'x' * 60} · {name} Professor Dr. Hohenstein" for name in "AB"])
    assert len(set(labels)) == 2
    assert max(map(len, labels)) <= 40
