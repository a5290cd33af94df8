import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from voxframe import analysis, plots

mpl.use("agg")

_TURNS = pd.DataFrame(
    {"transcript_id": "t", "speaker": ["A", "B"], "text": "hi", "start_ms": [0, 60_000], "end_ms": [60_000, 80_000]}
)


def test_bars_are_labelled_with_time_and_share() -> None:
    """The length of each bar is the talk time of its speaker, and its label has the time and the share."""
    ax = plots.talk_time(_TURNS, Figure().subplots())
    assert [bar.get_width() for bar in ax.patches] == [60.0, 20.0]
    assert [text.get_text() for text in ax.texts] == ["1:00 (75%)", "0:20 (25%)"]
    ax.figure.canvas.draw()


def test_a_talk_time_table_is_drawn() -> None:
    """The result of `analysis.talk_time` can be drawn directly."""
    ax = plots.talk_time(analysis.talk_time(_TURNS), Figure().subplots())
    assert [text.get_text() for text in ax.texts] == ["1:00 (75%)", "0:20 (25%)"]


def test_speakers_of_several_transcripts_have_bars() -> None:
    """Equal labels of two transcripts have a bar each, with the share of their own transcript."""
    ax = plots.talk_time(_TURNS.assign(transcript_id=["t", "u"], speaker="A"))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["t · A", "u · A"]
    assert all(text.get_text().endswith("(100%)") for text in ax.texts)


def test_any_groups_have_bars() -> None:
    """People, time bins and other groups have a bar each, also from a table of `analysis.talk_time`."""
    calls = pd.concat([_TURNS, _TURNS.assign(transcript_id="u")], ignore_index=True)
    people = calls.assign(person=["Ada", "Bob", "Ada", None])
    for ax in (plots.talk_time(people, by="person"), plots.talk_time(analysis.talk_time(people, by="person"))):
        assert [t.get_text() for t in ax.get_yticklabels()] == ["Ada", "Bob", "u · B"]
        assert [text.get_text() for text in ax.texts] == ["2:00 (75%)", "0:20 (12%)", "0:20 (12%)"]
    chosen = analysis.talk_time(calls)[["transcript_id", "speaker", "talk_s", "share"]]
    assert [t.get_text() for t in plots.talk_time(chosen).get_yticklabels()] == ["t · A", "t · B", "u · A", "u · B"]
    bars = plots.talk_time(calls.assign(recording="call"), by=["transcript_id", "minute"])
    assert [t.get_text() for t in bars.get_yticklabels()] == ["call-t · 0", "call-t · 1", "call-u · 0", "call-u · 1"]
    assert [bar.get_width() for bar in plots.talk_time(calls, by=None).patches] == [160.0]


def test_all_plots_of_a_dataframe_agree() -> None:
    """Each person has one colour in the time line, the talk time and the confidence of several recordings."""
    rows = pd.DataFrame(
        {
            "transcript_id": ["t", "t", "u", "u"],
            "speaker": ["A", "B", "A", "B"],
            "speaker_name": ["Ada", "Bo", "Bo", "Cy"],
            "text": "x",
            "start_ms": [0, 1000, 0, 1000],
            "end_ms": [900, 1900, 900, 1900],
            "confidence": 0.9,
        }
    )
    seen: dict[str, set[str]] = {}
    for part in (rows, rows[rows["transcript_id"] == "u"], rows[rows["transcript_id"] == "t"]):
        lanes, bars, lines = plots.timeline(part), plots.talk_time(part), plots.confidence(part, by="speaker_name")
        for ax, artists in ((lanes, lanes.collections), (bars, bars.patches)):
            for label, artist in zip(ax.get_yticklabels(), artists, strict=True):
                color = to_hex(np.atleast_2d(artist.get_facecolor())[0])
                seen.setdefault(label.get_text().rpartition(" · ")[2], set()).add(color)
        legend = lines.get_legend()
        for label, line in zip(legend.get_texts(), legend.get_lines(), strict=True):
            seen.setdefault(label.get_text(), set()).add(line.get_color().lower())
    assert {name: len(colors) for name, colors in seen.items()} == {"Ada": 1, "Bo": 1, "Cy": 1}
    assert len(set.union(*seen.values())) == 3
