import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from voxframe import plots
from voxframe.plots.lanes import is_dark, spans


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


def test_each_speaker_has_a_lane_in_order_of_speaking() -> None:
    """Lanes are named after the speakers, with the first speaker on top, and have bars in seconds."""
    ax = plots.timeline(_turns())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["B", "A"]
    assert _spans(ax, 0) == [(0.5, 60.0), (90.0, 120.0)]
    assert _spans(ax, 1) == [(61.0, 89.0)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_given_axes_are_used_without_a_window() -> None:
    """The given Axes are returned, and no window or pyplot figure is created."""
    figure = Figure()
    ax = figure.subplots()
    assert plots.timeline(_turns(), ax) is ax
    assert plt.get_fignums() == []


def test_ticks_read_as_clock_times() -> None:
    """The time axis is labelled with minutes and seconds, and from one hour on with hours."""
    ax = plots.timeline(_turns())
    ax.figure.canvas.draw()
    assert "1:00" in [label.get_text() for label in ax.get_xticklabels()]
    long = plots.timeline(_turns(end_ms=[60_000, 89_000, 7_200_000]))
    long.figure.canvas.draw()
    assert {"0:30:00", "1:00:00"} <= {label.get_text() for label in long.get_xticklabels()}


def test_speaker_names_are_taken_literally() -> None:
    """A dollar sign starts no formula, and a control character is removed."""
    ax = plots.timeline(_turns(speaker=["$x$", "a\x1b\nb", None]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$x$", "ab", "(unknown)"]
    assert [label.get_parse_math() for label in ax.get_yticklabels()] == [False] * 3
    ax.figure.canvas.draw()


def test_a_speaker_has_one_colour_everywhere() -> None:
    """A speaker has the same colour in the timeline and in the talk-time plot."""
    ax, bars = plots.timeline(_turns()), plots.talk_time(_turns(end_ms=[1_000, 89_000, 91_000]))
    lanes = dict(zip([t.get_text() for t in ax.get_yticklabels()], ax.collections, strict=True))
    names = [t.get_text() for t in bars.get_yticklabels()]
    assert names == ["A", "B"]
    for name, bar in zip(names, bars.patches, strict=True):
        assert tuple(lanes[name].get_facecolor()[0]) == bar.get_facecolor()


def test_lanes_can_be_chosen() -> None:
    """`speakers` selects and orders the lanes; a speaker without turns has an empty lane."""
    ax = plots.timeline(_turns(), speakers=["A", "C"], colors=["red"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "C"]
    assert _spans(ax, 1) == []


def test_colours_can_be_given_by_label() -> None:
    """A dict sets the colours of some lanes, by label or name; the others keep theirs, and more names are ignored."""
    own = [bars.get_facecolor()[0].tolist() for bars in plots.timeline(_turns()).collections]
    named = _turns(speaker_name=["Bob", "Ada", "Bob"])
    for turns, colors in ((_turns(), {"A": "red", "C": "blue"}), (named, {"A": "red"}), (named, {"Ada": "red"})):
        lanes = plots.timeline(turns, colors=colors).collections
        assert [bars.get_facecolor()[0].tolist() for bars in lanes] == [own[0], [1, 0, 0, 1]]
    packed = plots.timeline(_turns(), pack=True, colors={"A": "red"}).collections
    assert [bars.get_facecolor()[0].tolist() for bars in packed] == [own[0], [1, 0, 0, 1]]


def test_colours_by_label_are_for_all_transcripts() -> None:
    """A label or a name has its colour in the lanes of all transcripts, unless a lane has its own."""
    red, green = [1, 0, 0, 1], [0, 1, 0, 1]
    several = _turns(transcript_id=["t", "u", "u"], speaker=["A", "B", "A"])
    named = several.assign(speaker_name=["Ada", "Bob", "Ada"])
    for turns, colors, expected in (
        (several, {"A": "red"}, {"t · A": red, "u · A": red}),
        (several, {"A": "red", "u · A": "lime"}, {"t · A": red, "u · A": green}),
        (named, {"A": "red"}, {"t · Ada": red, "u · Ada": red}),
        (named, {"Ada": "red"}, {"t · Ada": red, "u · Ada": red}),
    ):
        for pack in (False, True):
            before, after = (
                [
                    bars.get_facecolor()[0].tolist()
                    for bars in plots.timeline(turns, Figure().subplots(), pack=pack, colors=given).collections
                ]
                for given in (None, colors)
            )
            lanes = spans(turns, None, "timeline").names
            assert after == [expected.get(lane, color) for lane, color in zip(lanes, before, strict=True)]


def test_several_transcripts_have_lanes_of_their_own() -> None:
    """Each speaker of each transcript has a lane, named by the recording if it is known."""
    several = _turns(transcript_id=["t", "u", "v"], speaker="A")
    assert [t.get_text() for t in plots.timeline(several).get_yticklabels()] == ["t · A", "u · A", "v · A"]
    known = several.assign(recording=["x", "y", "z"])
    assert [t.get_text() for t in plots.timeline(known).get_yticklabels()] == ["x · A", "y · A", "z · A"]


@pytest.mark.parametrize("plot", [plots.timeline, plots.talk_time])
def test_nothing_to_draw_is_an_empty_plot(plot: object) -> None:
    """A table without rows gives an empty plot without a warning."""
    plot(_turns().iloc[:0]).figure.canvas.draw()


def test_rows_without_times_are_an_empty_plot() -> None:
    """Turns without times give an empty plot, which says why."""
    untimed = _turns(start_ms=pd.array([None] * 3, dtype="Int64"))
    with pytest.warns(UserWarning, match=r"timeline: 3 of 3 rows have no times"):
        plots.timeline(untimed).figure.canvas.draw()
    with pytest.warns(UserWarning, match=r"talk_time: 3 of 3 rows have no times"):
        plots.talk_time(untimed).figure.canvas.draw()


def test_near_spans_are_joined_and_far_ones_are_not() -> None:
    """Many or overlapping bars too close to tell apart are joined; a few that touch are told apart by an edge."""
    df = _turns(speaker="A", start_ms=[90_000, 0, 60_001], end_ms=[100_000, 60_000, 80_000])
    assert _spans(plots.timeline(df), 0) == [(0.0, 60.0), (60.001, 80.0), (90.0, 100.0)]
    overlapping = _turns(speaker="A", start_ms=[90_000, 0, 59_999], end_ms=[100_000, 60_000, 80_000])
    assert _spans(plots.timeline(overlapping), 0) == [(0.0, 80.0), (90.0, 100.0)]
    nested = _turns(speaker="A", start_ms=[0, 1000, 50_000], end_ms=[100_000, 2000, 51_000])
    assert _spans(plots.timeline(nested), 0) == [(0.0, 100.0)]


def test_short_spans_are_visible_and_reversed_ones_left_out() -> None:
    """A span is at least 1/4000 of the range long; one that ends before it starts is left out."""
    df = _turns(speaker="A", start_ms=[0, 10_000, 30_000], end_ms=[40_000, 9000, 40_000])
    assert _spans(plots.timeline(df.iloc[:2]), 0) == [(0.0, 40.0)]
    instant = _turns(speaker="A", start_ms=[0, 20_000, 39_000], end_ms=[1000, 20_000, 40_000])
    assert _spans(plots.timeline(instant), 0)[1] == pytest.approx((20.0, 20.01))


@pytest.mark.parametrize(("color", "dark"), [("#ffffff", False), ("#cccccc", False), ("#555555", True), ("none", True)])
def test_dark_backgrounds_are_recognized(color: str, dark: bool) -> None:
    """Dark grey counts as dark; transparent Axes have the background of their figure."""
    ax = Figure(facecolor="black").subplots()
    ax.set_facecolor(color)
    assert is_dark(ax) == dark


def test_legends_and_titles_are_taken_literally() -> None:
    """A dollar sign in a legend or a title starts no formula."""
    bands = pd.DataFrame({"headline": ["$x$"], "start_ms": [0], "end_ms": [120_000]})
    ax = plots.timeline(_turns(speaker=["$a$", "b", "c"]), pack=True, bands=bands)
    texts = [*ax.get_legend().get_texts(), *ax.texts]
    assert [text.get_parse_math() for text in texts] == [False] * 4


@pytest.mark.parametrize("unit", [1, 0.37, 1e17])
def test_spans_are_sorted(unit) -> None:
    """Rows in any order give the same spans by start, with labels and rows: whole ms, fractions of ms, huge times."""
    start = np.arange(500) // 2 * unit
    df = pd.DataFrame({"speaker": np.arange(500) % 7, "start_ms": start, "end_ms": start + unit})
    mixed = df.sample(frac=1, random_state=3)
    found = spans(mixed, "speaker", "timeline")
    assert (np.diff(found.start) >= 0).all()
    again = mixed.iloc[found.row]
    assert (again["start_ms"] / 1000 == found.start).all()
    assert (again["end_ms"] / 1000 == found.end).all()
    assert again["speaker"].astype(str).to_list() == [found.names[n] for n in found.code]
    assert sorted(found.row) == list(range(500))
    some = spans(mixed.assign(start_ms=mixed["start_ms"].where(mixed["speaker"] > 0)), "speaker", "timeline")
    assert (mixed.iloc[some.row]["start_ms"] / 1000 == some.start).all()


def test_packed_spans_do_not_overlap_and_keep_their_colours(texts_of) -> None:
    """Each span takes the first free lane, so three at a time need three lanes; a legend names the speakers."""
    df = _turns(speaker=["B", "A", "C"], start_ms=[0, 10_000, 20_000], end_ms=[30_000, 40_000, 60_000])
    df = pd.concat([df, df.iloc[:1].assign(start_ms=30_000, end_ms=50_000)])
    ax = plots.timeline(df, pack=True)
    lanes = [[round(float(path.vertices[:, 1].mean())) for path in bars.get_paths()] for bars in ax.collections]
    assert lanes == [[0, 0], [1], [2]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["B", "A", "C"]
    assert ax.get_ylim() == (2.5, -0.5)
    assert "time (min:s)" in [text.get_text() for text in texts_of(ax)]


def test_a_legend_has_one_entry_for_speakers_beyond_the_eighth() -> None:
    """Eight speakers have colours and entries of their own; the others are grey and counted."""
    df = pd.DataFrame({"speaker": [f"S{n}" for n in range(10)], "start_ms": range(10), "end_ms": range(10, 20)})
    legend = plots.timeline(df, pack=True).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [*(f"S{n}" for n in range(8)), "2 others"]


def test_any_column_names_the_lanes() -> None:
    """`by` uses the values of any column as lanes, also for several transcripts."""
    ax = plots.timeline(_turns(transcript_id=["t", "u", "v"], kind=[1, 2, 1]), by="kind")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2"]
    assert _spans(ax, 0) == [(0.5, 60.0), (90.0, 120.0)]


def test_a_view_shows_a_part_with_finer_ticks() -> None:
    """A view draws only its spans, keeps the lanes, and has ticks with fractions of a second if it is short."""
    ax = plots.timeline(_turns(), view=(59_500, 61_500))
    assert ax.get_xlim() == (59.5, 61.5)
    assert (_spans(ax, 0), _spans(ax, 1)) == ([(0.5, 60.0)], [(61.0, 89.0)])
    ax.figure.canvas.draw()
    assert "1:00.5" in [label.get_text() for label in ax.get_xticklabels()]
    before = plots.timeline(_turns(), view=(-1000, 1000))
    before.figure.canvas.draw()
    labels = [label.get_text() for label in before.get_xticklabels()]
    assert labels == ["-0:01.0", "-0:00.5", "0:00.0", "0:00.5", "0:01.0"]
    with pytest.raises(ValueError, match="start < end"):
        plots.timeline(_turns(), view=(5, 5))


def test_bands_are_above_the_lanes_with_titles_that_fit() -> None:
    """A title is shortened to fit its band, and left out if two letters do not fit; a topic shows its last level."""
    chapters = pd.DataFrame({"headline": ["Trees", "A" * 300, "no"], "start_ms": [0, 60_000, 119_990],
                             "end_ms": [60_000, 119_990, 120_000]})  # fmt: skip
    topics = pd.DataFrame({"label": ["Home>Garden", "Home"], "start_ms": [0, 0], "end_ms": [50_000, 50_000]})
    ax = plots.timeline(_turns(), bands={"chapters": chapters, "topics": topics})
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["chapters", "topics", "B", "A"]
    shown = [artist.get_text() for artist in [*ax.texts, *ax.artists]]
    assert [shown[0], shown[2], shown[3]] == ["Trees", "", "Garden"]
    assert shown[1].startswith("AAAA")
    assert shown[1].endswith("…")
    title = [*ax.texts, *ax.artists][1]
    assert title.get_window_extent().x1 <= ax.transData.transform((119.99, 0))[0]


def test_titles_of_overlapping_bands_do_not_overlap() -> None:
    """The title of a band ends where the next band begins."""
    topics = pd.DataFrame({"text": ["A" * 300, "next"], "start_ms": [0, 60_000], "end_ms": [120_000, 120_000]})
    ax = plots.timeline(_turns(), bands=topics)
    ax.figure.canvas.draw()
    assert ax.texts[0].get_window_extent().x1 <= ax.transData.transform((60, 0))[0]


def test_too_many_lanes_are_refused_with_a_next_step() -> None:
    """201 lanes raise an error; packed, the same spans can be drawn."""
    df = pd.DataFrame({"text": [str(n) for n in range(201)], "start_ms": range(201), "end_ms": range(1, 202)})
    with pytest.raises(ValueError, match=r"201 lanes are too many, .* pack=True"):
        plots.timeline(df, by="text")
    assert len(plots.timeline(df, by="text", pack=True).collections) == 201


def test_a_million_spans_are_few_bars() -> None:
    """A million words are drawn as at most 4,000 bars per lane, over the same time."""
    n = 1_000_000
    words = pd.DataFrame(
        {
            "speaker": np.where(np.arange(n) // 9 % 2, "A", "B"),
            "start_ms": np.arange(n) * 300,
            "end_ms": np.arange(n) * 300 + 250,
        }
    )
    bars = [lane.get_paths() for lane in plots.timeline(words).collections]
    assert [0 < len(paths) <= 4000 for paths in bars] == [True, True]
    assert max(path.vertices[:, 0].max() for paths in bars for path in paths) == pytest.approx(
        n * 0.3, abs=n * 0.3 / 4000
    )


def test_bands_of_many_transcripts_have_a_row_each() -> None:
    """Bands of two transcripts are two rows, named by transcript and band."""
    chapters = pd.DataFrame({"transcript_id": list("ab"), "headline": "Start", "start_ms": 0, "end_ms": 60_000})
    turns = pd.concat([_turns().assign(transcript_id=name) for name in "ab"])
    for bands, rows in ((chapters, ["a", "b"]), ({"chapters": chapters}, ["a · chapters", "b · chapters"])):
        ax = plots.timeline(turns, bands=bands)
        assert [tick.get_text() for tick in ax.get_yticklabels()][:2] == rows
        assert [text.title for text in ax.texts if hasattr(text, "title")] == ["Start", "Start"]
